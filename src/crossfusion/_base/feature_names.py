"""Names of features: where frames keep them, and how rows of two origins are matched by them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base.errors import InputError
from crossfusion._base.text import count_text

MAX_LISTED_NAMES = 3  # in a message
Names = tuple[str, ...]


@dataclass(frozen=True)
class NamedRows:
    """Rows of any kind with the names of their features, as a frame has them; no names if there are none."""

    rows: Any
    columns: Names


def column_names(values: Any) -> Names:
    """Return the names of a frame's columns; none of an array, or of columns that are numbered from 0."""
    if isinstance(values, np.ndarray):
        return ()
    names = getattr(values, "column_names", None)  # of PyArrow, whose columns are the values
    found = list(names if isinstance(names, list) else getattr(values, "columns", ()))
    return () if found == list(range(len(found))) else tuple(map(str, found))


def as_features(value: Any, dim: int) -> Names | None:
    """Convert names of features to a tuple; reject duplicates, empty names and another number of them."""
    if value is None:
        return None
    names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else ()
    if len(names) != dim or not all(isinstance(name, str) for name in names):
        found = count_text(len(names), "name") if names else type(value).__name__
        raise InputError(
            "features", problem=f"must be {count_text(dim, 'name')}, one per feature, or None, not {found}"
        )
    check_distinct(names, "features")
    return tuple(map(str, names))


def check_distinct(names: Sequence[str], holder: str, remedy: str = "rename features apart") -> None:
    """Reject a name of two features, and a feature without a name."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(problem=f"{holder} names several features alike ({list_names(twice)})", remedy=remedy)
    if "" in names:
        raise InputError(problem=f"{holder} has a feature with an empty name", remedy=remedy)


def match_features(names: Names, other: Names, holder: str, its: str) -> NDArray[np.intp] | None:
    """Find where `other` has the features called `names`; None if it has them in the same order."""
    if other == names:
        return None
    lacking, extra = [sorted({*one} - {*two}) for one, two in ((names, other), (other, names))]
    if lacking or extra:
        said = [f"{what} {list_names(some)}" for what, some in (("lacks", lacking), ("has", extra)) if some]
        raise InputError(
            problem=f"{its} does not have the features of {holder}: it {' and '.join(said)}",
            remedy="name the same features in both",
        )
    check_distinct(names, holder)
    place = {name: k for k, name in enumerate(other)}
    return np.array([place[name] for name in names], np.intp)


def match_columns(first: Any, second: Any, rows: Any) -> Any:
    """Return `rows`, made of the frame `second`, with its features in the order of the frame `first`.

    Arrays have no names, so whatever is compared with one is compared by position.
    """
    names, other = column_names(first), column_names(second)
    order = match_features(names, other, "a", "b") if names and other else None
    return rows if order is None else rows[:, order]


def list_names(names: Sequence[str]) -> str:
    """List a few names, and count the others."""
    shown = ", ".join(map(repr, names[:MAX_LISTED_NAMES]))
    return shown if len(names) <= MAX_LISTED_NAMES else f"{shown} and {len(names) - MAX_LISTED_NAMES:,} more"
