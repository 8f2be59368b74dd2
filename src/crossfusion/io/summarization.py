"""From rows to a Summary, one block at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from crossfusion._base import NAN_OPTIONS, InputError, arg, as_names, as_tags, check_option, check_tags, check_whole
from crossfusion.io import engines
from crossfusion.io.engines import dask, spark
from crossfusion.io.engines.resume import Checkpoint
from crossfusion.io.reduction import finish_summary
from crossfusion.io.sources import open_rows, open_source
from crossfusion.io.sources.manifest import ManifestJoin, join
from crossfusion.summary import SMALL_OPTIONS, Summary, suppress_small


def summarize(
    source: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    vectors: str | int | Sequence[str] | None = None,
    manifest: Any = None,
    on: str | None = None,
    engine: Any = "auto",
    nan: str = "raise",
    min_count: int = 0,
    small: str = "drop",
    tags: Mapping[str, str] | None = None,
) -> Summary:
    """Reduce rows to the moments of their groups, in one pass.

    Parameters
    ----------
    source : array, path, list of paths, table, or loader
        Rows × features; or files, folders, patterns such as ``"lake/*.parquet"`` and URLs; or a table of pandas,
        Polars, PyArrow, DuckDB and others; or a collection of Dask or Spark; or a data set of Hugging Face, or a
        DataLoader of PyTorch.
    by : mapping or names
        The factors that define the groups: arrays of values by name, or the names of columns. A missing value is a
        group of its own. Groups come in the order of their values: the order of an ordered categorical is not kept,
        so name such values as they sort. Of a DataLoader, a mapping names or numbers the entries of its batches.
    vectors : str, int or list of str, optional
        The column that holds the vectors, or a pattern of many numeric columns such as ``"dim_*"``. Found by itself
        where there is one list column, and in text files where all numeric columns besides `by` are meant. Of a
        DataLoader, the entry of its batches, by name or position.
    manifest : path or table, optional
        A table of its own that holds factors of `by`: its rows belong to the vectors of the same key, or of the same
        file, or in the same place.
    on : str, optional
        The column of the manifest that holds the key: values of the vectors' column of this name or, where they have
        none, names of their files. Without it, row by row in order.
    engine : {"auto", "local", "dask", "spark"} or distributed.Client
        Who reads and reduces: threads of this process, Dask or Spark. "auto" takes Dask for its collections, Spark for
        its DataFrames, and threads for all else.
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
    check_option(nan, NAN_OPTIONS, "nan")
    check_whole(min_count, "min_count", least=0)
    check_option(small, SMALL_OPTIONS, "small")
    known, engine = as_tags(tags or {}), engines.choose_engine(engine, source)
    names = as_names([*by] if isinstance(by, Mapping) else by, "by")
    check_tags(known, names)
    by = by if isinstance(by, Mapping | str) else names
    sources, joined = open_sources(source, by, vectors, manifest, on, engine)
    summary = collect(sources, engine=engine, nan=nan, joined=joined)
    return replace(suppress_small(summary, min_count, small), tags=known)


def open_sources(
    source: Any, by: Any, vectors: Any, manifest: Any = None, on: str | None = None, engine: Any = "local"
) -> tuple[Sequence[Any], ManifestJoin | None]:
    """Sources of whatever a user passes, with the factors that they have or that a manifest has for them."""
    if manifest is not None:
        if dask.is_collection(source) or spark.is_frame(source):
            raise InputError(
                "manifest",
                problem="goes with files and tables",
                remedy="join it to a collection of Dask or Spark first",
            )
        joined = join(partial(open_rows, source, vectors=vectors), manifest, on, by)
        return joined.sources, joined
    if on is not None:
        raise InputError("on", on, "names the key column of a manifest", f"pass {arg('manifest')} too")
    return engines.open_distributed(source, by, vectors, engine) or open_source(source, by, vectors), None


def collect(
    sources: Sequence[Any],
    *,
    engine: Any = "local",
    nan: str = "raise",
    progress: Callable[[int], None] | None = None,
    joined: ManifestJoin | None = None,
    keeper: Checkpoint | None = None,
) -> Summary:
    """Summary of some sources, which a manifest may have joined; `progress` is told rows as they are done.

    `keeper` keeps what is done, so that the same work can go on after it was interrupted.
    """
    check_option(nan, NAN_OPTIONS, "nan")
    found = engines.run(sources, engine, nan, progress, keeper)
    if joined is not None:
        joined.settle([piece.match for _, piece in found], sum(piece.seen.rows for _, piece in found))
    return finish_summary(found, nan)
