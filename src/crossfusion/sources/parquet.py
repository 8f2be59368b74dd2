"""Parquet files, read a block at a time."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion.errors import FileError, InputError
from crossfusion.sources import block
from crossfusion.sources.block import Block, Source
from crossfusion.sources.frames import block_of, vector_columns
from crossfusion.storage import KEY

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def from_parquet(path: Path, by: Sequence[str], vectors: Any = None) -> Source:
    """A Parquet file with one list column of vectors, or many numeric columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as problem:
        raise FileError(f"{path} is not a readable Parquet file ({str(problem).splitlines()[0]})") from problem
    if KEY in (file.schema_arrow.metadata or {}):
        raise InputError(f"{path} is a summary already, without rows: ask it with matrix, hierarchy or attribution")
    columns = vector_columns(file.schema_arrow, by, vectors, str(path))
    features = tuple(columns) if len(columns) > 1 else ()
    read = partial(_blocks, file, path, by, columns)
    return Source(str(path), [read], file.metadata.num_rows, features=features)


def _batch_rows(file: "pq.ParquetFile") -> int:
    """Rows that take about an eighth of a block."""
    about = file.metadata
    size = sum(about.row_group(k).total_byte_size for k in range(about.num_row_groups))
    return int(max(1, min(65536, block.BLOCK // 8 * about.num_rows // max(size, 1))))


def _blocks(file: "pq.ParquetFile", path: Path, by: Sequence[str], columns: Sequence[str]) -> Iterator[Block]:
    import pyarrow as pa

    waiting: list[Any] = []
    first = size = 0
    try:
        for batch in file.iter_batches(batch_size=_batch_rows(file), columns=[*by, *columns]):
            waiting.append(batch)
            size += batch.nbytes
            if size >= block.BLOCK:
                table = pa.Table.from_batches(waiting)
                yield block_of(table, by, columns, str(path), first)
                first += table.num_rows
                waiting, size = [], 0
    except (pa.ArrowException, OSError) as problem:
        raise FileError(f"{path} is damaged ({str(problem).splitlines()[0]}): write it again") from problem
    if waiting:
        yield block_of(pa.Table.from_batches(waiting), by, columns, str(path), first)
