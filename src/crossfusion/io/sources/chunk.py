"""What a source is: rows in chunks, with the factor values that belong to them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import LazyRows, arrow

if TYPE_CHECKING:
    import pyarrow as pa

    from crossfusion.io.sources.manifest_match import Match

CHUNK_BYTES = 64 * 2**20  # bytes of a chunk, enough for the compiled kernel to be worth it


def measure_bytes(table: "pa.Table | pa.RecordBatch") -> int:
    """Bytes of a table's rows; of its buffers, where PyArrow (before 24) cannot tell, as of views."""
    import pyarrow as pa

    try:
        return int(table.nbytes)
    except pa.ArrowTypeError:
        return int(table.get_total_buffer_size())


@dataclass(frozen=True)
class Chunk:
    """Some rows and, for each of them, the values of the factors, if there are any."""

    rows: Any
    keys: "pa.Table"
    first: int = 0  # index of the first row in its file or table
    file: str = ""  # the file, where a source has several
    before: int | None = 0  # rows of the files before that one; None: not known
    match: "Match | None" = None  # what a manifest has of its keys


Partition = Callable[[], Iterator[Chunk]]


@dataclass(frozen=True)
class Source:
    """A name for messages, and partitions that each give a generator of chunks whenever they are called.

    Partitions are independent: several are read at the same time, in threads or, for files, in other processes. So a
    partition of a file can be pickled (a `functools.partial` of a function in a module) and opens the file by itself.
    Together, in their order, they hold every row once.
    """

    name: str
    partitions: Sequence[Partition]
    rows: int | None = None  # None: known only after reading
    note: str = ""  # what was decided without being asked
    features: tuple[str, ...] = ()  # names of the columns, where each feature has one
    whole: bool = False  # the rows are in memory, in one chunk
    here: bool = False  # the rows are in the memory of this process, so that sending them takes longer than reducing
    files: tuple[str, ...] = ()  # names of its files, where it has several
    vector: str = ""  # the column that was found to hold the vectors, where none was named
    columns: tuple[str, ...] = ()  # names of all columns of a file, where it has them
    cautions: tuple[str, ...] = ()  # warnings for whoever opened it
    matrix: str = ""  # the matrix whose features are named, where a file has several

    def chunks(self) -> Iterator[Chunk]:
        """All chunks in order."""
        return chain.from_iterable(partition() for partition in self.partitions)


def hold_in_memory(name: str, rows: Any, keys: "pa.Table", features: tuple[str, ...] = ()) -> Source:
    """Source of one chunk that is there already."""
    return Source(name, [partial(iter, [Chunk(rows, keys)])], rows.shape[0], features=features, whole=True, here=True)


def concatenate_chunks(chunks: Sequence[Chunk]) -> Any:
    """The rows of some chunks in one array; that of a single chunk is not copied."""
    return stack_rows([np.asarray(chunk.rows) if isinstance(chunk.rows, LazyRows) else chunk.rows for chunk in chunks])


def stack_rows(rows: Sequence[Any]) -> Any:
    """Arrays of rows, or sparse rows, below each other; a single one is not copied."""
    if len(rows) == 1:
        return rows[0]
    if all(isinstance(entry, np.ndarray) for entry in rows):
        return np.concatenate(rows)
    from scipy import sparse

    return sparse.csr_array(sparse.vstack(rows))


def combine_sources(name: str, sources: Sequence[Source]) -> Source:
    """One source of the rows of several files, which the chunks name."""
    before = _count_rows_before(sources)
    partitions = [
        partial(_name_file, partition, source.name, at)
        for source, at in zip(sources, before, strict=False)
        for partition in source.partitions
    ]
    note = next((source.note for source in sources if source.note), "")
    features = next((source.features for source in sources if source.features), ())
    return Source(name, partitions, before[-1], note, features, files=tuple(source.name for source in sources))


def _count_rows_before(sources: Sequence[Source]) -> list[int | None]:
    """Rows of all sources before each, and of all of them; None once one is not known."""
    before: list[int | None] = [0]
    for source in sources:
        before.append(None if before[-1] is None or source.rows is None else before[-1] + source.rows)
    return before


def _name_file(partition: Partition, file: str, before: int | None) -> Iterator[Chunk]:
    return (replace(chunk, file=chunk.file or file, before=before) for chunk in partition())


def merge_partitions(source: Source, number: int) -> Source:
    """The same source in at most so many partitions, each of several that are read in turn."""
    size = -(-len(source.partitions) // max(1, number))
    if size < 2:
        return source
    starts = range(0, len(source.partitions), size)
    return replace(
        source, partitions=[partial(_chain_partitions, source.partitions[start : start + size]) for start in starts]
    )


def _chain_partitions(partitions: Sequence[Partition]) -> Iterator[Chunk]:
    return chain.from_iterable(partition() for partition in partitions)


def add_keys(source: Source, values: Mapping[str, Any], order: Sequence[str] = ()) -> Source:
    """The same rows under further factors, each with one value for all of them; `order`: of all factors."""
    return replace(
        source,
        partitions=[partial(_add_keys, partition, dict(values), tuple(order)) for partition in source.partitions],
    )


def _add_keys(partition: Partition, values: Mapping[str, Any], order: Sequence[str]) -> Iterator[Chunk]:
    import pyarrow as pa

    for chunk in partition():
        keys, number = chunk.keys, chunk.rows.shape[0]
        for name, value in values.items():
            level = arrow.from_texts([value]) if isinstance(value, str) else pa.array([value])
            same = pa.DictionaryArray.from_arrays(arrow.from_numbers(np.zeros(number, np.int32)), level)
            keys = keys.append_column(name, same) if keys.num_columns else pa.table({name: same})
        yield replace(chunk, keys=keys.select(list(order)) if order else keys)


def cut_evenly(rows: int, row_bytes: int, size: int | None = None) -> list[tuple[int, int]]:
    """Chunks of rows of about `size` bytes (`CHUNK_BYTES`), all of about the same number; at least one."""
    number = max(1, min(rows, rows * row_bytes // (size or CHUNK_BYTES)))
    edges = [0, *accumulate(rows // number + (k < rows % number) for k in range(number))]
    return list(pairwise(edges))


def group_runs(rows: Sequence[int], row_bytes: float) -> list[tuple[list[int], int]]:
    """Consecutive row groups or batches that make about one chunk, each run with the index of its first row."""
    found: list[tuple[list[int], int]] = []
    first, size = 0, 0.0
    for index, number in enumerate(rows):
        if not found or size + number * row_bytes / 2 > CHUNK_BYTES:
            found.append(([], first))
            size = 0
        found[-1][0].append(index)
        size += number * row_bytes
        first += number
    return found
