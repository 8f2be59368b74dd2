"""Summaries with their features in one order, matched by name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crossfusion._base import InputError, Spelling, match_features
from crossfusion.moments import Moments

if TYPE_CHECKING:
    from crossfusion.summary.summary import Summary

BY_POSITION = Spelling(
    "name the others with with_features, or pass by_position=True to merge_summaries or append_summary",
    "give --by-position",
)


def align_features(
    summaries: "Sequence[Summary]", holders: Sequence[str], *, by_position: bool = False
) -> "list[Summary]":
    """Bring the features of summaries into the order of the first that names them; unnamed ones add to unnamed ones.

    `holders` are the names of the summaries in error messages. With `by_position`, unnamed features take the names.
    """
    named = next((k for k, summary in enumerate(summaries) if summary.features is not None), None)
    if named is None:
        return list(summaries)
    names, holder = summaries[named].features, holders[named]
    assert names is not None  # as it is named
    check_all_named([summary.features for summary in summaries], holders, by_position=by_position)
    return [
        replace(summary, features=names) if summary.features is None else _reorder(summary, names, holder, own)
        for summary, own in zip(summaries, holders, strict=True)
    ]


def check_all_named(
    features: Sequence[tuple[str, ...] | None], holders: Sequence[str], *, by_position: bool = False
) -> None:
    """Reject named features beside unnamed ones, unless the user wants them to be matched by position."""
    with_names, without = (
        [own for own, names in zip(holders, features, strict=True) if (names is None) is unnamed]
        for unnamed in (False, True)
    )
    if with_names and without and not by_position:
        raise InputError(
            problem=f"{with_names[0]} names its features and {without[0]} does not",
            remedy=f"if they are the same in the same order, {BY_POSITION}",
        )


def _reorder(summary: "Summary", names: tuple[str, ...], holder: str, own: str) -> "Summary":
    order = match_features(names, summary.features or (), holder, own)
    if order is None:
        return summary
    cells = summary.moments
    return replace(summary, moments=Moments(cells.count, cells.mean[:, order], cells.sumsq[:, order]), features=names)
