"""Spark: each partition is reduced where it is, and only moments travel.

Two jobs. The first reduces each partition (`mapInArrow`) and keeps the moments in the executors' memory or on their
disks; the driver learns how many rows and bytes each reduction has. The second merges reductions in a tree until few
are left, which the driver collects. Spark replaces lost workers and executors and computes again what was lost; the
second job must merge exactly the rows that the first one counted.
"""

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from crossfusion._base import EngineError, InputError, RowLens, arg, as_names, find_finite_rows, optional
from crossfusion.io.engines import local
from crossfusion.io.engines import spark_tables as tables
from crossfusion.io.engines.recognition import is_frame
from crossfusion.io.engines.spark_tasks import (
    SCHEMA,
    Message,
    add_messages,
    merge_messages,
    raise_error,
    reduce_source_partitions,
    reduce_spark_partition,
)
from crossfusion.io.reduction import Reduction
from crossfusion.io.sources import Source, chunk
from crossfusion.io.sources.chunk import merge_partitions
from crossfusion.io.sources.vector_columns import make_chunk

FAN_IN = 8  # reductions that one task adds up
TASKS_PER_CORE = 8  # of each core, at most, so that few moments travel however many partitions a file has
MAX_COLLECTED_BYTES = 64 * 2**20  # bytes of reductions that the driver takes as they are

Progress = Callable[[int], None] | None
Found = list[tuple[str, Reduction]]


@dataclass(frozen=True)
class SparkTable:
    """Columns of a DataFrame that Spark will make: a name for messages, the factors and then the vectors."""

    name: str
    frame: Any
    by: tuple[str, ...]
    columns: tuple[str, ...]
    rows: None = None  # known only after they are made
    features: tuple[str, ...] = ()  # names of the columns, where each feature has one


UnknownTypeError = tables.UnknownTypeError


def is_table(source: Any) -> bool:
    """Whether Spark reads this by itself: a DataFrame, or paths of Parquet data."""
    return is_frame(source) or bool(tables.parquet_paths(source))


def open_table(source: Any, by: Any, vectors: Any = None) -> SparkTable:
    """The columns that are needed of a DataFrame, or of Parquet data, which the cluster reads as it is configured."""
    names = () if isinstance(by, Mapping) else as_names(by, "by")
    if not names:
        raise InputError(
            "by", problem="names no column", remedy="with Spark, factors are columns of the table, so name at least one"
        )
    paths = tables.parquet_paths(source)
    holder = ", ".join(paths) or "the DataFrame"
    with _translate_errors():
        frame = tables.read_parquet(tables.find_session(), paths) if paths else source
        chosen, columns, each = tables.select_columns(frame, names, vectors, holder)
    return SparkTable(holder, chosen, names, tuple(columns), features=tuple(columns) if each else ())


def run(
    sources: Sequence[Source | SparkTable],
    nan: str = "raise",
    progress: Progress = None,
    lens: RowLens | None = None,
) -> Found:
    """What each source is reduced to: tables and partitions of files by executors, rows that are in memory here.

    `progress` is told once of each source, when it is done.
    """
    away = [source for source in sources if isinstance(source, Source) and not source.here]
    sent = iter(_reduce_sources(away, lens) if away else [])
    found = []
    for source in sources:
        if isinstance(source, SparkTable):
            reduction = _reduce_table(source, lens)
        else:
            reduction = local.run([source], nan, lens=lens)[0][1] if source.here else next(sent)
        if progress is not None:
            progress(reduction.seen.rows)
        found.append((source.name, reduction))
    return found


def _reduce_table(table: SparkTable, lens: RowLens | None) -> Reduction:
    options: dict[str, Any] = {"by": table.by, "columns": table.columns, "name": table.name, "lens": lens}
    task = partial(reduce_spark_partition, size=chunk.CHUNK_BYTES, **options)
    with _translate_errors():
        (reduction,) = _add_up(table.frame.mapInArrow(task, SCHEMA), 1)
    return reduction


def draw(table: SparkTable, rows: int, seed: int) -> list[chunk.Chunk]:
    """At most so many rows of a table, drawn where they lie; those that are not finite are left out."""
    functions = optional.load("pyspark.sql.functions", "PySpark", "spark", "engine='spark'")
    with _translate_errors():
        found = table.frame.orderBy(functions.rand(seed)).limit(rows).toArrow()
    found = found.rename_columns([*table.by, *table.columns])
    drawn = make_chunk(found, table.by, table.columns, table.name)
    finite = np.flatnonzero(find_finite_rows(drawn.rows))
    return [chunk.Chunk(drawn.rows[finite], drawn.keys.take(finite))]


def _reduce_sources(sources: Sequence[Source], lens: RowLens | None) -> list[Reduction]:
    with _translate_errors():
        session = tables.find_session()
        tasks = TASKS_PER_CORE * tables.count_cores(session)
    sources = [merge_partitions(source, max(1, tasks // len(sources))) for source in sources]
    partitions = [
        (position, number, source.name, _pickle(partition, source.name))
        for position, source in enumerate(sources)
        for number, partition in enumerate(source.partitions)
    ]
    with _translate_errors():
        numbers = session.range(0, len(partitions), 1, len(partitions))
        reductions = _add_up(
            numbers.mapInArrow(partial(reduce_source_partitions, partitions=partitions, lens=lens), SCHEMA),
            len(sources),
            len(partitions),
        )
    for source, reduction in zip(sources, reductions, strict=True):
        if source.rows is not None and reduction.seen.rows != source.rows:
            raise EngineError(
                f"Spark read {reduction.seen.rows} of the {source.rows} rows of {source.name}", "run it again"
            )
    return reductions


def _pickle(partition: Any, name: str) -> bytes:
    try:
        return pickle.dumps(partition)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as problem:
        raise InputError(
            problem=f"{name} cannot be sent to Spark's executors ({problem})", remedy=f"use {arg('engine', 'local')}"
        ) from problem


def _add_up(reductions: Any, sources: int, partitions: int | None = None) -> list[Reduction]:
    """The sum of the reductions of each source; `partitions`: how many reductions there must be."""
    kept = reductions.persist()
    try:
        facts = [*map(_read_fact, kept.selectExpr(*Message._fields[:-1], "length(payload) as size").collect())]
        raise_error(message for message, _ in sorted(facts))
        _check_equal(partitions, sum(message.partitions for message, _ in facts), "parts")
        rows = _merge_in_tree(kept, facts).collect()
    finally:
        kept.unpersist()
    messages = sorted(Message(*row) for row in rows)
    found = {source: add_messages(some) for source, some in groupby(messages, key=lambda message: message.source)}
    for source in range(sources):
        expected = [message for message, _ in facts if message.source == source]
        reduction, merged_partitions = found.get(source, (Reduction(""), 0))
        _check_equal(sum(message.partitions for message in expected), merged_partitions, "parts")
        _check_equal(sum(message.rows for message in expected), reduction.seen.rows, "rows")
        counted = 0 if reduction.summary is None else int(reduction.summary.moments.count.sum())
        _check_equal(reduction.seen.rows - reduction.seen.bad, counted, "finite rows")
    return [found.get(source, (Reduction(""), 0))[0] for source in range(sources)]


def _read_fact(row: Any) -> tuple[Message, int]:
    return Message(*row[:-1]), row[-1] or 0


def _check_equal(expected: int | None, found: int, what: str) -> None:
    """Refuse a sum of other rows than were counted, as when the input changed while part of it was read again."""
    if expected is not None and found != expected:
        raise EngineError(
            f"Spark added up {found} {what} where {expected} were counted, so there is no result",
            "the input changes from one reading to the next, so store it first",
        )


def _merge_in_tree(reductions: Any, facts: Sequence[tuple[Message, int]]) -> Any:
    """Rounds in which each task adds up a few reductions, until few are left or all of them are small."""
    numbers = Counter(message.source for message, _ in facts if message.position == 0)
    size = sum(size for _, size in facts) / max(1, sum(numbers.values()))
    while sum(numbers.values()) * size > MAX_COLLECTED_BYTES and max(numbers.values()) > FAN_IN:
        numbers = Counter({source: -(-number // FAN_IN) for source, number in numbers.items()})
        together = reductions.selectExpr("*", f"number div {FAN_IN} as place")
        sorted_reductions = together.repartition(sum(numbers.values()), "source", "place").drop("place")
        sorted_reductions = sorted_reductions.sortWithinPartitions("source", "number", "position")
        reductions = sorted_reductions.mapInArrow(partial(merge_messages, fan=FAN_IN), SCHEMA)
    return reductions


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        theirs = type(problem).__module__.partition(".")[0] in ("pyspark", "py4j")
        if theirs or isinstance(problem, ConnectionError | EOFError):
            raise tables.make_engine_error(problem) from problem
        raise
