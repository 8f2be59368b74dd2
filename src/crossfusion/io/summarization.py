"""From rows to a Summary, one chunk at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from crossfusion._base import (
    NAN_OPTIONS,
    InputError,
    RowLens,
    align_index,
    arg,
    as_names,
    as_tags,
    check_lens,
    check_option,
    check_tags,
    check_whole,
    show_progress,
)
from crossfusion.io import engines
from crossfusion.io.engines import is_collection, is_frame
from crossfusion.io.engines.resume import Checkpoint
from crossfusion.io.reduction import finish_summary
from crossfusion.io.sources import open_rows, open_source
from crossfusion.io.sources.feature_order import find_features
from crossfusion.io.sources.manifest import ManifestJoin, check_only_matched, join
from crossfusion.summary import SMALL_OPTIONS, Summary, suppress_small


def summarize(
    source: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    *,
    vectors: str | int | Sequence[str] | None = None,
    manifest: Any = None,
    on: str | None = None,
    only_matched: bool = False,
    engine: Any = "auto",
    nan: str = "raise",
    min_count: int = 0,
    small: str = "drop",
    tags: Mapping[str, str] | None = None,
    by_position: bool = False,
    progress: bool | None = None,
    lens: RowLens | None = None,
) -> Summary:
    """Reduce rows to the moments of their groups, in one pass.

    Parameters
    ----------
    source : array, path, list of paths, table, or loader
        An array of rows × features; files, folders, patterns such as ``"lake/*.parquet"``, or URLs; a pandas, Polars,
        PyArrow, DuckDB or similar table; a Dask or Spark collection; a Hugging Face dataset; or a PyTorch DataLoader.
    by : mapping or names
        The factors that define the groups: arrays of values by name, or names of columns. A missing value is its own
        group. Groups are sorted by value: the order of an ordered categorical is not kept. For a DataLoader, a mapping
        from factor names to the names or positions of entries of its batches.
    vectors : str, int or list of str, optional
        The column that holds the embeddings, or a pattern of numeric columns such as ``"dim_*"``. By default, the only
        list column or, in text files, all numeric columns not in `by`. For a DataLoader, the name or position of the
        entry of its batches.
    manifest : path or table, optional
        A separate table with factors of `by`, matched to the rows by key, by file, or by position.
    on : str, optional
        The column of the manifest with the key, matched to the column of the same name in the source or, if there is
        none, to file names. Without it, rows are matched by position.
    only_matched : bool
        Whether files and rows that the manifest does not name in `on` are left out, with a warning. By default, they
        are an error.
    engine : {"auto", "local", "dask", "spark"} or distributed.Client
        Where the rows are read and reduced: in threads of this process, on Dask, or on Spark. "auto" uses Dask for
        Dask collections, Spark for Spark DataFrames, and threads otherwise.
    nan : {"raise", "drop"}
        Whether rows with NaN or infinite values raise an error or are dropped.
    min_count : int
        Minimum number of rows per group. Smaller groups are dropped or merged, with a warning that names them.
    small : {"drop", "merge"}
        Whether small groups are dropped or merged; see `merge_summaries`.
    tags : mapping of str to str, optional
        Properties of all rows, such as ``{"encoder": "virchow"}``; only summaries with equal tags can be added.
    by_position : bool
        Whether features without names in some files stand for the named features in the same position of others. By
        default, a mix of both is rejected.
    progress : bool, optional
        Whether to show a bar while the rows are read: True on a terminal and in a notebook, False never. By default, in
        notebooks only. In a pipe, nothing is shown.
    lens : crossfusion.lens.Lens, optional
        A map that is applied to the rows before they are reduced. Its digest is part of the summary; only summaries
        through the same lens can be added.

    Returns
    -------
    Summary
        Moments per group, sorted by the values of the factors.

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
    check_lens(lens)
    known, engine = as_tags(tags or {}), engines.choose_engine(engine, source)
    names = as_names([*by] if isinstance(by, Mapping) else by, "by")
    check_tags(known, [*names, *(() if lens is None else lens.factors)])
    by = by if isinstance(by, Mapping | str) else names
    options = {"by_position": by_position, "only_matched": only_matched}
    sources, joined = open_sources(source, by, vectors, manifest, on, engine, **options)
    with show_progress("reading", count_rows(sources), wanted=progress) as told:
        summary = reduce_sources(sources, engine=engine, nan=nan, joined=joined, progress=told, lens=lens)
    return replace(suppress_small(summary, min_count, small) if min_count else summary, tags=known)


def open_sources(
    source: Any,
    by: Any,
    vectors: Any,
    manifest: Any = None,
    on: str | None = None,
    engine: Any = "local",
    *,
    by_position: bool = False,
    only_matched: bool = False,
) -> tuple[Sequence[Any], ManifestJoin | None]:
    """Open the sources that a user passed, with factors from the sources themselves or from a manifest."""
    if manifest is not None:
        if is_collection(source) or is_frame(source):
            raise InputError(
                "manifest",
                problem="goes with files and tables",
                remedy="join it to a collection of Dask or Spark first",
            )
        if on is None:
            (manifest,) = align_index("source", source, manifest=manifest)
        opened = partial(open_rows, source, vectors=vectors, by_position=by_position)
        joined = join(opened, manifest, on, by, only_matched=only_matched)
        return joined.sources, joined
    if on is not None:
        raise InputError("on", on, "names the key column of a manifest", f"pass {arg('manifest')} too")
    check_only_matched(only_matched, on)
    distributed = engines.open_distributed(source, by, vectors, engine)
    return distributed or open_source(source, by, vectors, by_position=by_position), None


def count_rows(sources: Sequence[Any]) -> int | None:
    """Count the rows of sources, if that is known before they are read."""
    known = [rows for source in sources if (rows := getattr(source, "rows", None)) is not None]
    return sum(known) if len(known) == len(sources) else None


def reduce_sources(
    sources: Sequence[Any],
    *,
    engine: Any = "local",
    nan: str = "raise",
    progress: Callable[[int], None] | None = None,
    joined: ManifestJoin | None = None,
    keeper: Checkpoint | None = None,
    lens: RowLens | None = None,
) -> Summary:
    """Summarize sources, which may be joined to a manifest; `progress` is called with the number of rows done.

    `keeper` saves completed work, so that an interrupted run can be resumed. `lens` is applied to all rows.
    """
    check_option(nan, NAN_OPTIONS, "nan")
    features = find_features(sources)
    if lens is not None:
        features = lens.name_features(features, ", ".join(source.name for source in sources[:1]))
    found = engines.run(sources, engine, nan, progress, keeper, lens)
    if joined is not None:
        joined.settle([reduction.match for _, reduction in found], sum(reduction.seen.rows for _, reduction in found))
        if joined.only_matched:
            found = [(name, reduction) for name, reduction in found if reduction.seen.rows]
    return replace(finish_summary(found, nan), features=features, lens=None if lens is None else lens.digest)
