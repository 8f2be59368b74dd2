"""From rows to a Summary, one block at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from crossfusion.engines import local
from crossfusion.reduction import settled
from crossfusion.small import WAYS, large_enough
from crossfusion.sources import Source, open_source
from crossfusion.summary import Summary
from crossfusion.validation import NAN, as_tags, check_min_count, check_option


def summarize(
    source: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    vectors: str | Sequence[str] | None = None,
    nan: str = "raise",
    min_count: int = 0,
    small: str = "drop",
    tags: Mapping[str, str] | None = None,
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
        Groups of fewer rows are left out or merged, with a warning that names them.
    small : {"drop", "merge"}
        What to do about those; see `merge_summaries`.
    tags : mapping of str to str, optional
        What the rows have in common, such as ``{"encoder": "virchow"}``: summaries of other tags do not add up.

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
    check_option(nan, NAN, "nan")
    check_min_count(min_count)
    check_option(small, WAYS, "small")
    known = as_tags(tags or {})
    summary = collect(open_source(source, by, vectors), nan=nan)
    return replace(large_enough(summary, min_count, small), tags=known)


def collect(
    sources: Sequence[Source],
    *,
    nan: str = "raise",
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Summary of some sources; `progress` is told the rows of each block."""
    check_option(nan, NAN, "nan")
    return settled(local.run(sources, nan, progress), nan)
