"""Merge summaries of several sites."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from crossfusion._base import InputError, factors, label_text
from crossfusion.summary import checksums
from crossfusion.summary.feature_alignment import align_features
from crossfusion.summary.summary import Summary, combine, read_summary
from crossfusion.summary.suppression import suppress_small


def merge_summaries(
    parts: Sequence[str | os.PathLike[str] | Summary],
    *,
    min_count: int = 0,
    small: str = "drop",
    by_position: bool = False,
) -> Summary:
    """Add up summaries of different rows, such as those of several hospitals.

    Parameters
    ----------
    parts : list of paths or summaries
        Summaries, or files written by `Summary.write`, with the same features, factors and tags.
    min_count : int
        Minimum number of rows of a group after adding up. Smaller groups are dropped or merged, with a warning that
        names them.
    small : {"drop", "merge"}
        Whether small groups are dropped or merged. Merging joins small groups that differ only in the last factor into
        one group with a missing value for that factor, then does the same for the factor before it, and so on. Groups
        that are still too small are dropped.
    by_position : bool
        Whether features without names stand for the named features in the same position. By default, features are
        matched by name, unnamed ones by position, and a mix of both is rejected.

    Returns
    -------
    Summary
        The summary that `summarize` would return for all rows together.

    Raises
    ------
    FileError
        If a file is missing, damaged or not a summary.
    InputError
        If features, factors or tags differ, or two summaries contain the same rows.

    Examples
    --------
    >>> import crossfusion as cf
    >>> north = cf.summarize([[0.0], [2.0], [3.0]], by={"label": ["A", "B", "B"]})
    >>> south = cf.summarize([[4.0], [5.0]], by={"label": ["B", "C"]})
    >>> cf.merge_summaries([north, south])
    Summary of 3 groups by label: 5 rows × 1 feature (float64)
    label  count  dispersion
    A          1           0
    B          3      0.6667
    C          1           0
    """
    several = isinstance(parts, Iterable) and not isinstance(parts, str | bytes | os.PathLike | Summary | Mapping)
    given = list(parts) if several else []
    wrong = [entry for entry in given if not isinstance(entry, str | os.PathLike | Summary)]
    if not given or wrong:
        found = "none" if several and not wrong else type(wrong[0] if wrong else parts).__name__
        raise InputError("parts", problem=f"must be a list of paths or summaries, at least one, not {found}")
    names = [f"summary {k + 1}" if isinstance(entry, Summary) else str(entry) for k, entry in enumerate(given)]
    summaries = [record_batch(entry if isinstance(entry, Summary) else read_summary(entry)) for entry in given]
    total = combine(summaries, names, by_position=by_position)
    check_disjoint(align_features(summaries, names, by_position=by_position), names)
    return suppress_small(total, min_count, small)


def record_batch(summary: Summary) -> Summary:
    """Add the digest of the summary to its batches, unless it has batches already."""
    if summary.batches:
        return summary
    return replace(
        summary, batches=(checksums.hash_batch(summary.keys, summary.moments, summary.tags, summary.features),)
    )


def check_disjoint(summaries: Sequence[Summary], names: Sequence[str]) -> None:
    """Reject summaries that contain the same rows."""
    holder: dict[str, str] = {}
    cells: dict[str, str] = {}
    for summary, name in zip(summaries, names, strict=True):
        for batch in summary.batches:
            if batch in holder:
                said = "is named twice" if name == holder[batch] else f"holds rows that {holder[batch]} holds too"
                raise InputError(problem=f"{name} {said}", remedy="leave one of them out")
            holder[batch] = name
        for cell, position in checksums.hash_rows_in_cells(summary.keys, summary.moments, summary.features).items():
            if cell in cells:
                shown = label_text(factors.list_labels(summary.keys.slice(position, 1))[0])
                raise InputError(
                    problem=f"{name} has the very same rows as {cells[cell]} in the group {shown}",
                    remedy="leave one of them out",
                )
            cells[cell] = name
