"""The summary of rows: a table of moments, one row per group, with addition, queries and storage."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    InputError,
    as_features,
    check_same_dim,
    check_same_factors,
    check_same_lens,
    check_same_tags,
    factors,
)
from crossfusion._version import __version__
from crossfusion.moments import concat
from crossfusion.summary import storage
from crossfusion.summary.feature_alignment import align_features
from crossfusion.summary.moment_table import merge_cells
from crossfusion.summary.queries import Queries
from crossfusion.summary.suppression import warn_about_disclosure

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Queries):
    """Moments of the groups that factors define, from which distances are computed without the rows.

    Created by `summarize` or `read_summary`. The sum of summaries of disjoint sets of rows is the summary of all rows.

    Parameters
    ----------
    keys : pyarrow.Table
        One column per factor, one row per observed combination of their values, sorted.
    moments : Moments
        Moments of these groups.
    dtype : str
        Type of the rows.
    dropped : int
        Rows dropped because they contain NaN or infinity.
    tags : mapping of str to str
        Properties of all rows, such as ``{"encoder": "virchow"}``; only summaries with equal tags can be added.
    batches : tuple of str
        Digests of the summaries that `append_summary` and `merge_summaries` added, so that no rows are added twice.
    features : tuple of str or None
        Names of the features, by which features are matched when summaries are added; None if the features have no
        names, as in an array.
    lens : str or None
        Digest of the map that was applied to the rows; only summaries with equal digests can be added.

    Examples
    --------
    >>> import crossfusion as cf
    >>> x = [[0.0], [2.0], [2.0], [4.0], [7.0], [9.0]]
    >>> summary = cf.summarize(x, by={"site": ["A", "A", "B", "B", "B", "B"], "label": [0, 0, 0, 0, 1, 1]})
    >>> summary
    Summary of 3 groups by site, label: 6 rows × 1 feature (float64)
    site  label  count  dispersion
    A         0      2       1.000
    B         0      2       1.000
    B         1      2       1.000
    >>> round(float(summary.cfd("site", given="label")), 6)
    0.510826
    """

    def __add__(self, other: "Summary") -> "Summary":
        if not isinstance(other, Summary):
            return NotImplemented
        return combine([self, other])

    def __radd__(self, other: Any) -> "Summary":
        return self if isinstance(other, int) and other == 0 else NotImplemented  # the start of sum()

    def with_features(self, features: Sequence[str] | None) -> "Summary":
        """Name the features, rename them, or remove their names.

        Parameters
        ----------
        features : list of str or None
            A name for each feature, in order; None removes the names, so that features are matched by position.

        Returns
        -------
        Summary
            The same moments under these names.

        Examples
        --------
        >>> import crossfusion as cf
        >>> array = cf.summarize([[0.0, 2.0], [1.0, 5.0]], by={"site": ["A", "A"]})
        >>> array.with_features(["proline", "magnesium"]).features
        ('proline', 'magnesium')
        """
        return replace(self, features=as_features(features, self.dim))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the summary to a Parquet file, atomically; warn about groups of fewer than five rows.

        Parameters
        ----------
        path : path
            The file, ending in .parquet or .pq; an existing file is replaced.
        """
        write_summary(self, path)


def write_summary(summary: Summary, path: str | os.PathLike[str], mark: str = "") -> None:
    """Write a summary; `mark` is part of the name of the temporary file, to recognize leftovers."""
    storage.check_ending(path)
    facts = {
        "dtype": summary.dtype,
        "dropped": int(summary.dropped),
        "tags": dict(summary.tags),
        "batches": list(summary.batches),
        "features": None if summary.features is None else list(summary.features),
        "lens": summary.lens,
        "creator": f"crossfusion {__version__}",
    }
    storage.write(path, summary.keys, summary.moments, facts, mark)
    warn_about_disclosure(summary, path)


def combine(summaries: Sequence[Summary], names: Sequence[str] = (), *, by_position: bool = False) -> Summary:
    """Add up summaries in one merge; `names` are their names in error messages.

    With `by_position`, features without names take the names of those in the same position in another summary.
    """
    if len(summaries) == 1:
        return summaries[0]
    first, called = summaries[0], names or ["one summary", *["another"] * (len(summaries) - 1)]
    for summary, name in zip(summaries[1:], called[1:], strict=True):
        check_same_lens({called[0]: first.lens, name: summary.lens})  # which features and factors depend on
        check_same_dim({called[0]: first.dim, name: summary.dim})
        check_same_factors({called[0]: first.factors, name: summary.factors})
        check_same_tags({called[0]: first.tags, name: summary.tags})
    summaries = align_features(summaries, called, by_position=by_position)
    first = summaries[0]
    dtype = reduce(np.promote_types, (np.dtype(summary.dtype) for summary in summaries)).name
    table, moments = merge_cells(_concat_keys(summaries, called), concat([summary.moments for summary in summaries]))
    batches = tuple(dict.fromkeys(batch for summary in summaries for batch in summary.batches))
    dropped = sum(summary.dropped for summary in summaries)
    return replace(first, keys=table, moments=moments, dtype=dtype, dropped=dropped, batches=batches)


def _concat_keys(summaries: Sequence[Summary], names: Sequence[str]) -> "pa.Table":
    """Concatenate the keys of summaries; on incompatible types, name the summary at fault."""
    keys = [summary.keys.select(list(summaries[0].factors)) for summary in summaries]
    try:
        return factors.concat_tables(keys, f"{names[0]} and {names[1]}")
    except InputError:
        for other, name in zip(keys[1:], names[1:], strict=True):
            factors.concat_tables([keys[0], other], f"{names[0]} and {name}")
        raise


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read a summary written by `Summary.write`.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Summary
        The summary as it was written.

    Raises
    ------
    FileError
        If the file is missing, damaged, not a summary, or has a newer format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0]], by={"site": ["A", "B"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary.write(Path(folder) / "summary.parquet")
    ...     again = cf.read_summary(Path(folder) / "summary.parquet")
    >>> again.moments == summary.moments
    True
    """
    keys, moments, facts = storage.read(path)
    table, moments = merge_cells(keys, moments)
    features = None if facts["features"] is None else tuple(facts["features"])
    about = (facts["dtype"], facts["dropped"], facts["tags"], tuple(facts["batches"]), features, facts["lens"])
    return Summary(table, moments, *about)
