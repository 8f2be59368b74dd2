"""Who reads and reduces the partitions of a source: threads of this process, Dask or Spark."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from crossfusion._base import InputError, RowLens, Spelling, arg, factors
from crossfusion.io.engines import dask, local, spark
from crossfusion.io.engines.recognition import is_collection, is_frame
from crossfusion.io.engines.resume import Checkpoint
from crossfusion.io.reduction import Reduction
from crossfusion.io.sources.all_rows import Rows
from crossfusion.io.sources.chunk import concatenate_chunks

__all__ = ["ENGINES", "choose_engine", "draw", "is_collection", "is_frame", "open_distributed", "run"]

ENGINES = ("auto", "local", "dask", "spark")
OTHER_ENGINES = Spelling(
    "pass a distributed.Client", "write tcp://host:port of a Dask scheduler"
)  # what else may be an engine
LAZY_SOURCES = {"dask": "a Dask collection", "spark": "a Spark DataFrame"}


def choose_engine(engine: Any, source: Any) -> Any:
    """The engine that is meant, which may be a Dask client; collections of Dask and Spark are for their own engine."""
    if engine not in ENGINES if isinstance(engine, str) else not hasattr(engine, "nthreads"):
        raise InputError("engine", engine, "is not a known engine", f"choose {', '.join(ENGINES)}, or {OTHER_ENGINES}")
    kind = "dask" if is_collection(source) else "spark" if is_frame(source) else None
    named = engine if isinstance(engine, str) else "dask"
    if kind is not None and named not in ("auto", kind):
        raise InputError(
            problem=f"the rows are {LAZY_SOURCES[kind]}, which only its own engine can make",
            remedy=f"use {arg('engine', kind)}",
        )
    return engine if engine != "auto" else kind or "local"


def open_distributed(source: Any, by: Any, vectors: Any, engine: Any) -> list[Any] | None:
    """What an engine reads by its own means, or None where the rows come from a source of ours."""
    if is_collection(source):
        return [dask.open_collection(source, by, vectors)]
    if engine == "spark" and spark.is_table(source):
        with suppress(spark.UnknownTypeError):
            return [spark.open_table(source, by, vectors)]
    return None


def run(
    sources: Sequence[Any],
    engine: Any,
    nan: str = "raise",
    progress: Callable[[int], None] | None = None,
    keeper: Checkpoint | None = None,
    lens: RowLens | None = None,
) -> list[tuple[str, Reduction]]:
    """What each source is reduced to; `progress` is told rows as they are done, and threads keep what is done."""
    if engine == "local":
        return local.run(sources, nan, progress, keeper, lens)
    if engine == "spark":
        return spark.run(sources, nan, progress, lens)
    return dask.run(sources, nan, progress, None if engine == "dask" else engine, lens)


def draw(source: Any, rows: int, total: float, seed: int, engine: Any) -> Rows:
    """About so many finite rows, of this total, of what Dask or Spark reads by its own means; at most so many."""
    if isinstance(source, spark.SparkTable):
        chunks = spark.draw(source, rows, seed)
    else:
        share = min(1.0, (rows + 4 * np.sqrt(rows)) / total)  # so that there are hardly ever too few
        chunks = dask.draw(source, share, seed, None if engine == "dask" else engine)
    x, keys = concatenate_chunks(chunks), factors.concat_tables([chunk.keys for chunk in chunks], source.name)
    chosen = np.random.default_rng(seed).permutation(len(x))[:rows]
    return Rows(x[chosen], keys.take(chosen))
