"""Small groups: suppression, which drops or merges them, and a warning where they are written as they are."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import MAX_LISTED_GROUPS, InputError, arg, check_option, check_whole, factors, label_text, warn
from crossfusion.moments import Moments

if TYPE_CHECKING:
    import pyarrow as pa

    from crossfusion.summary.summary import Summary

SMALL_OPTIONS = ("drop", "merge")  # small groups are dropped or merged
DISCLOSING_ROWS = 5  # groups of fewer rows come close to showing the rows
Mask = NDArray[np.bool_]


def suppress_small(summary: "Summary", min_count: int, small: str = "drop") -> "Summary":
    """Drop or merge groups with fewer than `min_count` rows, with a warning that names them.

    With ``small="merge"``, small groups that differ only in the last factor become one group whose last factor is
    missing; then the same for the factor before it, and so on. Groups that are still too small are dropped.
    """
    check_whole(min_count, "min_count", least=0)
    check_option(small, SMALL_OPTIONS, "small")
    too_small = summary.moments.count < min_count
    if not too_small.any():
        return summary
    names = summary.factors if small == "merge" else ()
    keys, moments, target = _merge_small(summary.keys, summary.moments, min_count, names)
    kept = np.flatnonzero(moments.count >= min_count)
    if not len(kept):
        most = "all groups have together" if small == "merge" else "any group has"
        raise InputError("min_count", min_count, f"is more rows than {most}", "lower it")
    lost = too_small & (moments.count < min_count)[target]
    _warn_about_small(summary, too_small & ~lost, min_count, f"merged into {len(np.unique(target[too_small & ~lost]))}")
    _warn_about_small(summary, lost, min_count, "left out")
    return replace(summary, keys=keys.take(kept), moments=moments[kept])


def _merge_small(
    keys: "pa.Table", moments: Moments, min_count: int, names: Sequence[str]
) -> tuple["pa.Table", Moments, NDArray[Any]]:
    """Merge small groups over the named factors, from the last to the first; return the new index of each group."""
    target: NDArray[Any] = np.arange(len(moments))
    for name in reversed(names):
        too_small = moments.count < min_count
        if not too_small.any():
            break
        codes, keys = factors.encode(_drop_small(keys, name, too_small))
        moments, target = moments.merge(codes, keys.num_rows), codes[target]
    return keys, moments, target


def _drop_small(keys: "pa.Table", name: str, rows: Mask) -> "pa.Table":
    """Set a factor to missing in some rows of the keys."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = keys.column(name)
    missing = pc.if_else(pa.array(rows), pa.scalar(None, column.type), column)
    return keys.set_column(keys.column_names.index(name), name, missing)


def _warn_about_small(summary: "Summary", which: Mask, min_count: int, what: str) -> None:
    """Warn about groups by name."""
    if which.any():
        warn(f"groups of fewer than {min_count} rows are {what} {_list_groups(summary, which)}")


def warn_about_disclosure(summary: "Summary", path: str | os.PathLike[str]) -> None:
    """Warn about groups in a file that are so small that they come close to showing their rows."""
    which = summary.moments.count < DISCLOSING_ROWS
    if which.any():
        warn(
            f"{os.fspath(path)} shows groups of fewer than {DISCLOSING_ROWS} rows {_list_groups(summary, which)}",
            "the moments of a group of one row disclose that row: leave small groups out with"
            f" {arg('min_count')} before you share it",
        )


def _list_groups(summary: "Summary", which: Mask) -> str:
    """Count groups, and name a few."""
    index: Sequence[int] = np.flatnonzero(which).tolist()
    few = [summary.keys.slice(place, 1) for place in index[:MAX_LISTED_GROUPS]]  # take() would import pandas
    names = [label_text(factors.list_labels(key)[0]) for key in few]
    more = f" and {len(index) - len(names)} more" if len(index) > len(names) else ""
    return f"({len(index)} of {len(summary)}): {', '.join(names)}{more}"
