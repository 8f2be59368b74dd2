"""A table of moments, one row a group: it adds up, can be asked, and is kept in a file."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import InputError, check_same_dim, check_same_factors, check_same_tags, factors
from crossfusion._version import __version__
from crossfusion.moments import concat
from crossfusion.summary import storage
from crossfusion.summary.moment_table import merge_cells
from crossfusion.summary.queries import Queries

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Queries):
    """Moments of groups that named factors define; every distance is answered from here, without the rows.

    Made by `summarize` or `read_summary`. Summaries of disjoint sets of rows add up to the summary of all of them.

    Parameters
    ----------
    keys : pyarrow.Table
        A column for each factor, a row for each observed combination of their values, in order.
    moments : Moments
        Of those groups.
    dtype : str
        Type of the rows seen.
    dropped : int
        Rows left out because they were not finite.
    tags : mapping of str to str
        What the rows have in common, such as ``{"encoder": "virchow"}``; only summaries of the same tags add up.
    batches : tuple of str
        Digests of what `append_summary` and `merge_summaries` added up, so that they add nothing twice.

    Examples
    --------
    >>> import crossfusion as cf
    >>> x = [[0.0], [2.0], [2.0], [4.0], [7.0], [9.0]]
    >>> summary = cf.summarize(x, by={"site": ["A", "A", "B", "B", "B", "B"], "label": [0, 0, 0, 0, 1, 1]})
    >>> summary
    Summary of 3 groups by site, label: 6 rows × 1 features (float64)
    site  label  count  dispersion
    A         0      2      1.0000
    B         0      2      1.0000
    B         1      2      1.0000
    >>> round(float(summary.cfd("site", given="label")), 6)
    0.510826
    """

    def __add__(self, other: "Summary") -> "Summary":
        if not isinstance(other, Summary):
            return NotImplemented
        return combine([self, other])

    def __radd__(self, other: Any) -> "Summary":
        return self if isinstance(other, int) and other == 0 else NotImplemented  # the start of sum()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to one Parquet file, whole or not at all.

        Parameters
        ----------
        path : path
            The file, which is replaced if it exists.
        """
        write_summary(self, path)


def write_summary(summary: Summary, path: str | os.PathLike[str], mark: str = "") -> None:
    """Write a summary; `mark` is in the name of the temporary file, so that whoever finds it knows whose it was."""
    facts = {
        "dtype": summary.dtype,
        "dropped": int(summary.dropped),
        "tags": dict(summary.tags),
        "batches": list(summary.batches),
        "creator": f"crossfusion {__version__}",
    }
    storage.write(path, summary.keys, summary.moments, facts, mark)


def combine(summaries: Sequence[Summary], names: Sequence[str] = ()) -> Summary:
    """Summary of the rows of all parts, in one merge; `names` are theirs in messages."""
    if len(summaries) == 1:
        return summaries[0]
    first, called = summaries[0], names or ["one summary", *["another"] * (len(summaries) - 1)]
    for summary, name in zip(summaries[1:], called[1:], strict=True):
        check_same_dim({called[0]: first.dim, name: summary.dim})
        check_same_factors({called[0]: first.factors, name: summary.factors})
        check_same_tags({called[0]: first.tags, name: summary.tags})
    dtype = reduce(np.promote_types, (np.dtype(summary.dtype) for summary in summaries)).name
    table, moments = merge_cells(_concat_keys(summaries, called), concat([summary.moments for summary in summaries]))
    batches = tuple(dict.fromkeys(batch for summary in summaries for batch in summary.batches))
    return Summary(table, moments, dtype, sum(summary.dropped for summary in summaries), first.tags, batches)


def _concat_keys(summaries: Sequence[Summary], names: Sequence[str]) -> "pa.Table":
    """Keys of all parts; values that do not go together are refused by the name of who has them."""
    keys = [summary.keys.select(list(summaries[0].factors)) for summary in summaries]
    try:
        return factors.concat_tables(keys, f"{names[0]} and {names[1]}")
    except InputError:
        for other, name in zip(keys[1:], names[1:], strict=True):
            factors.concat_tables([keys[0], other], f"{names[0]} and {name}")
        raise


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read a summary that `Summary.write` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Summary
        As it was written.

    Raises
    ------
    FileError
        If the file is missing, damaged, not a summary, or of a newer format.

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
    return Summary(table, moments, facts["dtype"], facts["dropped"], facts["tags"], tuple(facts["batches"]))
