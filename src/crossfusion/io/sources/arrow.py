"""Arrow's own files: IPC files, of which Feather is one, memory-mapped; and IPC streams."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.chunk import Chunk, Source, group_runs
from crossfusion.io.sources.vector_columns import find_vectors, has_feature_columns, make_chunk

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"ARROW1"  # with which a file begins, and a stream does not
FEATHER_1_MAGIC = b"FEA1"
MIN_BATCH_DIVISOR = 16  # a batch of at least this fraction of a chunk is a chunk by itself
UNREADABLE = "is not a readable Arrow file"


def from_arrow(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """An Arrow IPC file or stream, or a Feather file, with one list column of vectors or many numeric columns."""
    name = paths.show_path(path)
    with paths.translate_errors(path, UNREADABLE), paths.open_arrow(path, mapped=True) as file:
        start = file.read(len(MAGIC))
        if start.startswith(FEATHER_1_MAGIC):
            raise ValueError("it is of Feather's first version: write it again")
        is_file = start == MAGIC
        schema = _open_reader(file, is_file).schema
        columns = find_vectors(schema, by, vectors, name)
        rows = _count_batch_rows(file, schema) if is_file else None
        size = file.size() if is_file else 0
    cuts = [(None, 0)] if rows is None else group_runs(rows, size / max(1, sum(rows)))
    partitions = [partial(_read_chunks, path, by, columns, numbers, first) for numbers, first in cuts]
    features = tuple(columns) if has_feature_columns(schema, columns) else ()
    vector = columns[0] if vectors is None else ""
    return Source(
        name,
        partitions,
        None if rows is None else sum(rows),
        features=features,
        vector=vector,
        columns=tuple(schema.names),
    )


def _open_reader(file: Any, is_file: bool, wanted: Sequence[int] = ()) -> Any:
    import pyarrow as pa

    file.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=list(wanted) or None, use_threads=False)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file, options=options)


def _count_batch_rows(file: Any, schema: "pa.Schema") -> list[int]:
    """Rows of each batch, from a look at the narrowest column, since nothing else of a packed file need be unpacked."""
    index = min(range(len(schema)), key=lambda k: _measure_width(schema.field(k).type))
    reader = _open_reader(file, True, [index])
    return [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]


def _measure_width(kind: "pa.DataType") -> int:
    try:
        return int(kind.bit_width)
    except ValueError:  # of varying width
        return 2**31


def _read_chunks(
    path: str, by: Sequence[str], columns: Sequence[str], numbers: Sequence[int] | None, first: int
) -> Iterator[Chunk]:
    """Rows of some batches of a file, or of all batches of a stream."""
    with ExitStack() as stack:
        stack.enter_context(paths.translate_errors(path, "is damaged: write it again"))
        file = stack.enter_context(paths.open_arrow(path, mapped=True))
        names = _open_reader(file, numbers is not None).schema.names
        reader = _open_reader(file, numbers is not None, sorted(map(names.index, {*by, *columns})))
        for table in _merge_batches(reader if numbers is None else map(reader.get_batch, numbers)):
            yield make_chunk(table, by, columns, paths.show_path(path), first)
            first += table.num_rows


def _merge_batches(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.Table]":
    """Small batches together, large ones in slices, which take no copy."""
    import pyarrow as pa

    waiting, size = [], 0
    for batch in batches:
        batch.validate(full=True)  # what a damaged file says of lengths and offsets is taken at its word otherwise
        waiting.append(batch)
        size += chunk.measure_bytes(batch)
        if size * MIN_BATCH_DIVISOR >= chunk.CHUNK_BYTES:
            table = pa.Table.from_batches(waiting)
            step = max(1, table.num_rows * chunk.CHUNK_BYTES // size)
            yield from (table.slice(start, step) for start in range(0, table.num_rows, step))
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)
