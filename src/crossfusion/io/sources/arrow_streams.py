"""Streams of record batches: readers, data sets, DuckDB relations, lazy frames, and whatever speaks Arrow.

How many rows there are shows only at the end, and no more than a block of them is in memory.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion._base import InputError, first_line, optional
from crossfusion.io.sources import chunk
from crossfusion.io.sources.chunk import Chunk, Source, even_cuts, size_of
from crossfusion.io.sources.rechunk import rechunk
from crossfusion.io.sources.vector_columns import is_one_feature_each, make_chunk, vector_columns

if TYPE_CHECKING:
    import pyarrow as pa

FEWEST, MOST = 2048, 65536  # rows of a batch that an engine is asked for
Batches = Callable[[list[str]], "Iterable[pa.RecordBatch]"]


@dataclass(frozen=True)
class Stream:
    """The columns there are, and a function from those that are needed to batches of them (or of more)."""

    schema: "pa.Schema"
    batches: Batches


def from_stream(stream: Stream, by: Sequence[str], vectors: Any, name: str) -> Source:
    """Source of one part, whose number of rows shows when it is read."""
    columns = vector_columns(stream.schema, by, vectors, name)
    features = tuple(columns) if is_one_feature_each(stream.schema, columns) else ()
    return Source(name, [partial(_blocks, stream.batches, by, columns, name)], features=features)


def _blocks(batches: Batches, by: Sequence[str], columns: Sequence[str], name: str) -> Iterator[Chunk]:
    """Batches put together, or cut, to blocks."""
    try:
        yield from rechunk(_read(batches, by, columns, name), name)
    except translate_errors() as problem:
        raise InputError(problem=f"{name} cannot be read ({first_line(problem)})") from problem


def _read(batches: Batches, by: Sequence[str], columns: Sequence[str], name: str) -> Iterator[Chunk]:
    import pyarrow as pa

    first = 0
    wanted = [*by, *columns]
    for batch in batches(wanted):
        for piece in _pieces(batch.select(wanted)):
            yield make_chunk(pa.Table.from_batches([piece]), by, columns, name, first)
            first += piece.num_rows


def _pieces(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    if batch.num_rows:
        for start, stop in even_cuts(batch.num_rows, max(1, size_of(batch) // batch.num_rows)):
            yield batch.slice(start, stop - start)


def translate_errors() -> tuple[type[BaseException], ...]:
    """What the libraries that are loaded raise when a stream breaks off."""
    import pyarrow as pa

    known = [pa.ArrowException, OSError]
    if "duckdb" in sys.modules:
        known.append(sys.modules["duckdb"].Error)
    if "polars" in sys.modules:
        known.append(sys.modules["polars"].exceptions.PolarsError)
    return tuple(known)


def is_stream(source: Any) -> bool:
    """Whether `stream_of` knows what this is."""
    is_arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_pyarrow_batches")
    return is_arrow or any(_is(source, *kind) for kind in _KNOWN)


def stream_of(source: Any) -> Stream | None:
    """Stream of an object that gives one."""
    for kind, make in _KNOWN.items():
        if _is(source, *kind):
            return make(source)
    if hasattr(source, "to_pyarrow_batches"):
        return _of_ibis(source)
    return _of_arrow(source) if hasattr(source, "__arrow_c_stream__") else None


def _is(source: Any, module: str, name: str) -> bool:
    """Whether this is an instance of a class, if the module that defines it is loaded."""
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(source, kind)


class _Once:
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


def _of_reader(reader: "pa.RecordBatchReader") -> Stream:
    return Stream(reader.schema, _Once(reader))


def _of_dataset(dataset: Any) -> Stream:
    return Stream(dataset.schema, partial(_scan, dataset))


def _scan(dataset: Any, columns: list[str]) -> "Iterable[pa.RecordBatch]":
    rows = batch_rows(dataset.schema, columns)
    reader: Iterable[pa.RecordBatch] = dataset.scanner(columns=columns, batch_size=rows, batch_readahead=2).to_reader()
    return reader


def _of_scanner(scanner: Any) -> Stream:
    return Stream(scanner.projected_schema, partial(_scan_batches, scanner))


def _scan_batches(scanner: Any, _columns: list[str]) -> "Iterable[pa.RecordBatch]":
    reader: Iterable[pa.RecordBatch] = scanner.to_reader()
    return reader


def batch_rows(schema: "pa.Schema", columns: Sequence[str]) -> int:
    """Rows that take about an eighth of a block, where types tell how wide they are; few where they do not."""
    import pyarrow as pa

    width = 0
    for kind in (schema.field(name).type for name in columns):
        if pa.types.is_fixed_size_list(kind):
            width += kind.list_size * kind.value_type.bit_width // 8
        elif pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            return FEWEST
        else:
            width += 8
    return max(FEWEST, min(MOST, chunk.BLOCK // 8 // max(width, 1)))


def _of_relation(relation: Any) -> Stream:
    schema = duckdb_reader(relation.limit(0), 1).schema
    return Stream(schema, partial(execute, relation, schema))


def execute(relation: Any, schema: "pa.Schema", columns: list[str]) -> "pa.RecordBatchReader":
    """Run a DuckDB relation for some of its columns."""
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in columns)
    return duckdb_reader(relation.project(quoted), batch_rows(schema, columns))


def duckdb_reader(result: Any, rows: int) -> "pa.RecordBatchReader":
    """Reader of a DuckDB relation, or of what a connection has executed, under the name that its version has for it."""
    names = ("to_arrow_reader", "fetch_record_batch", "fetch_arrow_reader")
    return next(getattr(result, name) for name in names if hasattr(result, name))(rows)


def _of_connection(connection: Any) -> Stream:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a relation would save a copy
            return _of_reader(duckdb_reader(connection, FEWEST))
    except translate_errors() as problem:
        raise InputError(
            problem=f"the DuckDB connection has no result ({first_line(problem)})", remedy="execute a select first"
        ) from problem


def _of_lazy(frame: Any) -> Stream:
    import pyarrow as pa

    polars = sys.modules["polars"]
    try:
        schema = pa.table(polars.DataFrame(schema=frame.collect_schema())).schema
    except translate_errors() as problem:
        raise InputError(problem=f"the lazy frame cannot be run ({first_line(problem)})") from problem
    return Stream(schema, partial(_collect, frame, schema))


def _collect(frame: Any, schema: "pa.Schema", columns: list[str]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    chosen = frame.select(columns)
    streaming = hasattr(chosen, "collect_batches")  # older versions of Polars have all rows in memory at once
    pieces = chosen.collect_batches(chunk_size=batch_rows(schema, columns)) if streaming else [chosen.collect()]
    for piece in pieces:
        yield from pa.table(piece).to_batches()


def _of_ibis(table: Any) -> Stream:
    return Stream(table.schema().to_pyarrow(), partial(_ibis_batches, table))


def _ibis_batches(table: Any, columns: list[str]) -> "Iterable[pa.RecordBatch]":
    reader: Iterable[pa.RecordBatch] = table.select(columns).to_pyarrow_batches(chunk_size=FEWEST)
    return reader


class _Again:
    """Batches of an object that exports an Arrow stream; the first is open already, since it knows the columns."""

    def __init__(self, source: Any, reader: "pa.RecordBatchReader") -> None:
        self._source = source
        self._reader: Iterable[pa.RecordBatch] | None = reader

    def __call__(self, _columns: list[str]) -> "Iterable[pa.RecordBatch]":
        reader, self._reader = self._reader, None
        return _import(self._source) if reader is None else reader


def _import(source: Any) -> "pa.RecordBatchReader":
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, OSError, RuntimeError, TypeError, ValueError) as problem:
        raise InputError(
            problem=f"{type(source).__name__} cannot be read as a table ({first_line(problem)})"
        ) from problem


def _of_arrow(source: Any) -> Stream:
    reader = _import(source)
    return Stream(reader.schema, _Again(source, reader))


def through_narwhals(source: Any) -> Stream:
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
    return Stream(few.to_arrow().schema, partial(_frame_batches, frame, lazy))


def _frame_batches(frame: Any, lazy: bool, columns: list[str]) -> "Iterator[pa.RecordBatch]":
    chosen = frame.select(columns)
    if lazy:
        yield from chosen.collect("pyarrow").to_arrow().to_batches()
        return
    for start in range(0, len(chosen), FEWEST):
        yield from chosen[start : start + FEWEST].to_arrow().to_batches()


_KNOWN: dict[tuple[str, str], Callable[[Any], Stream]] = {
    ("pyarrow", "RecordBatchReader"): _of_reader,
    ("pyarrow.dataset", "Dataset"): _of_dataset,
    ("pyarrow.dataset", "Scanner"): _of_scanner,
    ("duckdb", "DuckDBPyRelation"): _of_relation,
    ("duckdb", "DuckDBPyConnection"): _of_connection,
    ("polars", "LazyFrame"): _of_lazy,
}
