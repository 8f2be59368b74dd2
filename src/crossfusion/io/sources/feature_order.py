"""Features of several sources in one order, matched by name."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from crossfusion._base import InputError, Spelling, match_features
from crossfusion.io.sources.chunk import Source

Reopen = Callable[[int, Source, Sequence[str]], Source]  # a source with its features in a given order
BY_POSITION = Spelling("pass by_position=True to summarize", "give --by-position")


def align_features(sources: Sequence[Source], reopen: Reopen, *, by_position: bool = False) -> list[Source]:
    """Open sources again that have the features of the first in another order; reject other features.

    With `by_position`, features without names take the names of those in the same position.
    """
    first = next((source for source in sources if source.features), None)
    if first is None:
        return list(sources)
    found = list(sources)
    for position, source in enumerate(sources):
        if by_position and not source.features:
            found[position] = replace(source, features=first.features)
        elif match_source(first, source):
            found[position] = reopen(position, source, first.features)
    return found


def match_source(first: Source, other: Source) -> bool:
    """Return whether a source has the features of the first in another order; reject other features."""
    if not other.features and other.rows != 0:
        raise InputError(
            problem=f"{first.name} names its features and {other.name} does not",
            remedy=f"if they are the same in the same order, {BY_POSITION}",
        )
    return bool(other.features) and match_features(first.features, other.features, first.name, other.name) is not None


def find_features(sources: Sequence[Any]) -> tuple[str, ...] | None:
    """Find the names of the features that all sources have in the same order; None if they have none."""
    first = next((source for source in sources if source.features), None)
    if first is None:
        return None
    for source in sources:
        if match_source(first, source):
            raise InputError(
                problem=f"{source.name} has the features of {first.name} in another order",
                remedy="select them in the same order",
            )
    names: tuple[str, ...] = first.features
    return names
