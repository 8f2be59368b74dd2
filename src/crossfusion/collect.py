"""From rows to a Summary, one block at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import factors
from crossfusion.errors import InputError, warn
from crossfusion.moments import grouped
from crossfusion.sources import Block, Source, open_source
from crossfusion.summary import Summary, combine
from crossfusion.text import SHOWN, label_text
from crossfusion.validation import (
    NAN,
    FiniteCheck,
    as_rows,
    check_min_count,
    check_option,
    check_same_dim,
    check_some_rows,
)

if TYPE_CHECKING:
    import pyarrow as pa

PENDING = 64 * 2**20  # bytes of moments that wait to be merged


def summarize(
    source: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    vectors: str | Sequence[str] | None = None,
    nan: str = "raise",
    min_count: int = 0,
) -> Summary:
    """Reduce rows to the moments of their groups, in one pass.

    Parameters
    ----------
    source : array, path, list of paths, or table
        Rows × features; or a .npz, .csv, .tsv or .parquet file, or several; or a pandas, Polars or PyArrow table.
    by : mapping or names
        The factors that define the groups: arrays of values by name, or the names of columns. A missing value is a
        group of its own.
    vectors : str or list of str, optional
        The column that holds the vectors, or a pattern of many numeric columns such as ``"dim_*"``. Found by itself
        where there is one list column, and in text files where all numeric columns besides `by` are meant.
    nan : {"raise", "drop"}
        What to do about rows with NaN or infinite values.
    min_count : int
        Groups of fewer rows are left out, with a warning that names them.

    Returns
    -------
    Summary
        Groups in the order of their factors' values, whatever the order of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 16))
    >>> summary = cf.summarize(x, by={"batch": np.repeat(["a", "b", "c"], 100)})
    >>> len(summary), summary.dim
    (3, 16)
    """
    return collect(open_source(source, by, vectors), nan=nan, min_count=min_count)


def collect(
    sources: Iterable[Source], *, nan: str = "raise", min_count: int = 0, progress: Callable[[int], None] | None = None
) -> Summary:
    """Summary of all blocks of some sources; `progress` is told the rows of each block."""
    check_option(nan, NAN, "nan")
    check_min_count(min_count)
    pending: list[Summary] = []
    seen: list[pa.Table] = []
    dropped = 0
    for source in sources:
        check = FiniteCheck(source.name)
        for block in source.blocks:
            part, lost = _of_block(block, check)
            seen += [lost] if lost.num_rows else []
            if pending:
                check_same_dim({"what was read before": pending[0].dim, source.name: part.dim})
            pending.append(part)
            done, *waiting = (summary.moments.mean.nbytes for summary in pending)
            if sum(waiting) > max(PENDING, done):
                pending = [combine(pending)]
            if progress is not None:
                progress(block.rows.shape[0])
        dropped += check.settle(nan)
        check_some_rows(check.rows - check.bad, source.name)
    summary = replace(combine(pending), dropped=dropped)
    _warn_of_lost(seen, summary)
    return _large_enough(summary, min_count)


def _warn_of_lost(lost: "Sequence[pa.Table]", summary: Summary) -> None:
    """Name the groups of which no row was finite."""
    gone = {label for keys in lost for label in factors.labels(keys)} - set(factors.labels(summary.keys))
    if gone:
        names = ", ".join(sorted(map(label_text, gone))[:SHOWN])
        warn(f"groups without a finite row are gone ({len(gone)}): {names}")


def _of_block(block: Block, check: FiniteCheck) -> "tuple[Summary, pa.Table]":
    """Summary of the finite rows of a block, and keys without any; `check` takes note of rows that are not finite."""
    rows = as_rows(block.rows, check.name)
    codes, keys = factors.encode(block.keys)
    moments, finite = grouped(rows, codes, keys.num_rows, name=check.name)
    check.see(rows, finite)
    kept, lost = np.flatnonzero(moments.count > 0), np.flatnonzero(moments.count == 0)
    dtype = "float32" if rows.dtype.name == "bfloat16" else rows.dtype.name
    return Summary(keys.take(kept), moments[kept], dtype), keys.take(lost)


def _large_enough(summary: Summary, min_count: int) -> Summary:
    """Without the groups of fewer than `min_count` rows, naming them."""
    small = np.flatnonzero(summary.moments.count < min_count)
    if not len(small):
        return summary
    names = [label_text(label) for label in factors.labels(summary.keys.take(small[:SHOWN]))]
    shown = ", ".join(names) + (f" and {len(small) - len(names)} more" if len(small) > len(names) else "")
    if len(small) == len(summary):
        raise InputError(f"min_count={min_count} is more rows than any group has: lower it")
    warn(f"groups of fewer than {min_count} rows are left out ({len(small)} of {len(summary)}): {shown}")
    kept = np.flatnonzero(summary.moments.count >= min_count)
    return replace(summary, keys=summary.keys.take(kept), moments=summary.moments[kept])
