"""Streams of record batches: readers, data sets, DuckDB relations, lazy frames, and whatever speaks Arrow.

How many rows there are shows only at the end, and no more than a chunk of them is in memory.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion._base import InputError, first_line, optional
from crossfusion.io.sources import chunk
from crossfusion.io.sources.chunk import Chunk, Source, cut_evenly, measure_bytes
from crossfusion.io.sources.rechunk import rechunk
from crossfusion.io.sources.vector_columns import find_vectors, has_feature_columns, make_chunk

if TYPE_CHECKING:
    import pyarrow as pa

MIN_BATCH_ROWS, MAX_BATCH_ROWS = 2048, 65536  # that an engine is asked for
Batches = Callable[[list[str]], "Iterable[pa.RecordBatch]"]


@dataclass(frozen=True)
class Stream:
    """The columns there are, and a function from those that are needed to batches of them (or of more)."""

    schema: "pa.Schema"
    batches: Batches


def from_stream(stream: Stream, by: Sequence[str], vectors: Any, name: str) -> Source:
    """Source of one partition, whose number of rows shows when it is read."""
    columns = find_vectors(stream.schema, by, vectors, name)
    features = tuple(columns) if has_feature_columns(stream.schema, columns) else ()
    return Source(name, [partial(_read_chunks, stream.batches, by, columns, name)], features=features)


def _read_chunks(batches: Batches, by: Sequence[str], columns: Sequence[str], name: str) -> Iterator[Chunk]:
    """Batches put together, or cut, to chunks."""
    try:
        yield from rechunk(_read_batches(batches, by, columns, name), name)
    except list_stream_errors() as problem:
        raise InputError(
            problem=f"{name} cannot be read ({first_line(problem)})",
            remedy="fix the query or the table, and pass it again",
        ) from problem


def _read_batches(batches: Batches, by: Sequence[str], columns: Sequence[str], name: str) -> Iterator[Chunk]:
    import pyarrow as pa

    first = 0
    wanted = [*by, *columns]
    for batch in batches(wanted):
        for batch_slice in _split_batch(batch.select(wanted)):
            yield make_chunk(pa.Table.from_batches([batch_slice]), by, columns, name, first)
            first += batch_slice.num_rows


def _split_batch(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    if batch.num_rows:
        for start, stop in cut_evenly(batch.num_rows, max(1, measure_bytes(batch) // batch.num_rows)):
            yield batch.slice(start, stop - start)


def list_stream_errors() -> tuple[type[BaseException], ...]:
    """What the libraries that are loaded raise when a stream breaks off."""
    import pyarrow as pa

    known = [pa.ArrowException, OSError]
    if "duckdb" in sys.modules:
        known.append(sys.modules["duckdb"].Error)
    if "polars" in sys.modules:
        known.append(sys.modules["polars"].exceptions.PolarsError)
    return tuple(known)


def is_stream(source: Any) -> bool:
    """Whether `open_stream` knows what this is."""
    is_arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_pyarrow_batches")
    return is_arrow or any(_is_instance(source, *kind) for kind in _KNOWN)


def open_stream(source: Any) -> Stream | None:
    """Stream of an object that gives one."""
    for kind, make in _KNOWN.items():
        if _is_instance(source, *kind):
            return make(source)
    if hasattr(source, "to_pyarrow_batches"):
        return _open_ibis(source)
    return _open_capsule(source) if hasattr(source, "__arrow_c_stream__") else None


def _is_instance(source: Any, module: str, name: str) -> bool:
    """Whether this is an instance of a class, if the module that defines it is loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(source, kind)


class _SinglePass:
    """Batches of a reader, which can be read only once."""

    def __init__(self, reader: "Iterable[pa.RecordBatch]") -> None:
        self._reader: Iterable[pa.RecordBatch] | None = reader

    def __call__(self, _columns: list[str]) -> "Iterable[pa.RecordBatch]":
        reader, self._reader = self._reader, None
        if reader is None:
            raise InputError(
                problem="the reader was read before and gives its rows only once", remedy="pass a new one, or a table"
            )
        return reader


def _open_reader(reader: "pa.RecordBatchReader") -> Stream:
    return Stream(reader.schema, _SinglePass(reader))


def _open_dataset(dataset: Any) -> Stream:
    return Stream(dataset.schema, partial(_scan_dataset, dataset))


def _scan_dataset(dataset: Any, columns: list[str]) -> "Iterable[pa.RecordBatch]":
    rows = choose_batch_rows(dataset.schema, columns)
    reader: Iterable[pa.RecordBatch] = dataset.scanner(columns=columns, batch_size=rows, batch_readahead=2).to_reader()
    return reader


def _open_scanner(scanner: Any) -> Stream:
    return Stream(scanner.projected_schema, partial(_scan_batches, scanner))


def _scan_batches(scanner: Any, _columns: list[str]) -> "Iterable[pa.RecordBatch]":
    reader: Iterable[pa.RecordBatch] = scanner.to_reader()
    return reader


def choose_batch_rows(schema: "pa.Schema", columns: Sequence[str]) -> int:
    """Rows that take about an eighth of a chunk, where types tell how wide they are; few where they do not."""
    import pyarrow as pa

    width = 0
    for kind in (schema.field(name).type for name in columns):
        if pa.types.is_fixed_size_list(kind):
            width += kind.list_size * kind.value_type.bit_width // 8
        elif pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            return MIN_BATCH_ROWS
        else:
            width += 8
    return max(MIN_BATCH_ROWS, min(MAX_BATCH_ROWS, chunk.CHUNK_BYTES // 8 // max(width, 1)))


def _open_relation(relation: Any) -> Stream:
    schema = open_duckdb_reader(relation.limit(0), 1).schema
    return Stream(schema, partial(run_relation, relation, schema))


def run_relation(relation: Any, schema: "pa.Schema", columns: list[str]) -> "pa.RecordBatchReader":
    """Run a DuckDB relation for some of its columns."""
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    return open_duckdb_reader(relation.project(quoted), choose_batch_rows(schema, columns))


def open_duckdb_reader(result: Any, rows: int) -> "pa.RecordBatchReader":
    """Reader of a DuckDB relation, or of what a connection has executed, under the name that its version has for it."""
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    return next(getattr(result, name) for name in names if hasattr(result, name))(rows)


def _open_connection(connection: Any) -> Stream:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a relation would save a copy
            return _open_reader(open_duckdb_reader(connection, MIN_BATCH_ROWS))
    except list_stream_errors() as problem:
        raise InputError(
            problem=f"the DuckDB connection has no result ({first_line(problem)})", remedy="execute a select first"
        ) from problem


def _open_lazy_frame(frame: Any) -> Stream:
    import pyarrow as pa

    polars = sys.modules["polars"]
    try:
        schema = pa.table(polars.DataFrame(schema=frame.collect_schema())).schema
    except list_stream_errors() as problem:
        raise InputError(
            problem=f"the lazy frame cannot be run ({first_line(problem)})", remedy="fix its query, or collect it first"
        ) from problem
    return Stream(schema, partial(_collect_batches, frame, schema))


def _collect_batches(frame: Any, schema: "pa.Schema", columns: list[str]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    chosen = frame.select(columns)
    streaming = hasattr(chosen, "collect_batches")  # older versions of Polars have all rows in memory at once
    frames = chosen.collect_batches(chunk_size=choose_batch_rows(schema, columns)) if streaming else [chosen.collect()]
    for rows in frames:
        yield from pa.table(rows).to_batches()


def _open_ibis(table: Any) -> Stream:
    return Stream(table.schema().to_pyarrow(), partial(_read_ibis, table))


def _read_ibis(table: Any, columns: list[str]) -> "Iterable[pa.RecordBatch]":
    reader: Iterable[pa.RecordBatch] = table.select(columns).to_pyarrow_batches(chunk_size=MIN_BATCH_ROWS)
    return reader


class _Repeatable:
    """Batches of an object that exports an Arrow stream; the first is open already, since it knows the columns."""

    def __init__(self, source: Any, reader: "pa.RecordBatchReader") -> None:
        self._source = source
        self._reader: Iterable[pa.RecordBatch] | None = reader

    def __call__(self, _columns: list[str]) -> "Iterable[pa.RecordBatch]":
        reader, self._reader = self._reader, None
        return _import_reader(self._source) if reader is None else reader


def _import_reader(source: Any) -> "pa.RecordBatchReader":
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, OSError, RuntimeError, TypeError, ValueError) as problem:
        raise InputError(
            problem=f"{type(source).__name__} cannot be read as a table ({first_line(problem)})",
            remedy="pass a pandas, Polars or PyArrow table",
        ) from problem


def _open_capsule(source: Any) -> Stream:
    reader = _import_reader(source)
    return Stream(reader.schema, _Repeatable(source, reader))


def open_narwhals(source: Any) -> Stream:
    """Stream of any other frame that narwhals knows."""
    narwhals = optional.load("narwhals", "narwhals", "frames", f"reading {type(source).__name__} as a table")
    try:
        frame = narwhals.from_native(source)
    except TypeError as problem:
        raise InputError(
            problem=f"{type(source).__name__} is not a table that can be read",
            remedy="pass a pandas, Polars or PyArrow one",
        ) from problem
    lazy = isinstance(frame, narwhals.LazyFrame)
    few = frame.head(0).collect("pyarrow") if lazy else frame.head(0)
    return Stream(few.to_arrow().schema, partial(_read_frame, frame, lazy))


def _read_frame(frame: Any, lazy: bool, columns: list[str]) -> "Iterator[pa.RecordBatch]":
    chosen = frame.select(columns)
    if lazy:
        yield from chosen.collect("pyarrow").to_arrow().to_batches()
        return
    for start in range(0, len(chosen), MIN_BATCH_ROWS):
        yield from chosen[start : start + MIN_BATCH_ROWS].to_arrow().to_batches()


_KNOWN: dict[tuple[str, str], Callable[[Any], Stream]] = {
    ("pyarrow", "RecordBatchReader"): _open_reader,
    ("pyarrow.dataset", "Dataset"): _open_dataset,
    ("pyarrow.dataset", "Scanner"): _open_scanner,
    ("duckdb", "DuckDBPyRelation"): _open_relation,
    ("duckdb", "DuckDBPyConnection"): _open_connection,
    ("polars", "LazyFrame"): _open_lazy_frame,
}
