"""From rows to a Summary, one block at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossfusion import factors
from crossfusion.engines import local
from crossfusion.errors import InputError, warn
from crossfusion.reduction import settled
from crossfusion.sources import Source, open_source
from crossfusion.summary import Summary
from crossfusion.text import SHOWN, label_text
from crossfusion.validation import NAN, check_min_count, check_option


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
    sources: Sequence[Source],
    *,
    nan: str = "raise",
    min_count: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Summary of some sources; `progress` is told the rows of each block."""
    check_option(nan, NAN, "nan")
    check_min_count(min_count)
    return _large_enough(settled(local.run(sources, nan, progress), nan), min_count)


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
