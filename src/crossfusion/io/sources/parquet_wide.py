"""Parquet files with a column for each feature, of which a few are decoded and reduced before the next."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.chunk import Chunk
from crossfusion.io.sources.columns_to_rows import read_numbers, transpose_columns
from crossfusion.io.sources.parquet_file import ParquetFile, read_batches, read_keys
from crossfusion.moments import FEATURES_AT_ONCE, ColumnwiseRows

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

COLUMNS_PER_CALL = 8  # columns that are decoded by one call, and stay in the cache while they are
MIN_COLUMNWISE_ROWS = 2**14  # rows from which a row group is worth a call for each few columns


def fits_columnwise(schema: "pa.Schema", columns: Sequence[str], rows: Sequence[int]) -> bool:
    """Whether all columns are floats of one type, and row groups of so many rows neither too short nor too long."""
    import pyarrow as pa

    kinds = {schema.field(column).type for column in columns}
    if len(columns) <= FEATURES_AT_ONCE or len(kinds) > 1 or not kinds <= {pa.float32(), pa.float64()}:
        return False
    return (
        min(rows) >= MIN_COLUMNWISE_ROWS
        and max(rows) * FEATURES_AT_ONCE * kinds.pop().bit_width // 8 <= chunk.CHUNK_BYTES
    )


def read_columnwise(
    file: "pq.ParquetFile",
    opened: ParquetFile,
    by: Sequence[str],
    columns: Sequence[str],
    groups: Sequence[int],
    first: int,
) -> Iterator[Chunk]:
    """A chunk for each row group."""
    dtype = np.dtype(file.schema_arrow.field(columns[0]).type.to_pandas_dtype())
    for group in groups:
        number = int(file.metadata.row_group(group).num_rows)
        rows = ColumnwiseRows(
            (number, len(columns)),
            dtype,
            partial(_read_rows, opened, columns, group, number, dtype),
            partial(_read_columns, opened, columns, group, number),
        )
        yield Chunk(rows, read_keys(file, [group], by), first)
        first += number


def _read_rows(
    opened: ParquetFile, columns: Sequence[str], group: int, number: int, dtype: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    size = max(1, chunk.CHUNK_BYTES // (len(columns) * dtype.itemsize))
    with paths.translate_errors(opened.path, paths.DAMAGED), opened.file() as file:
        for table in read_batches(file, [group], columns, size):
            yield from transpose_columns([table.column(name) for name in columns]).chunks()
            number -= table.num_rows
        if number:
            raise ValueError(f"{number} rows are not there, or too many")


def _read_columns(opened: ParquetFile, columns: Sequence[str], group: int, number: int) -> Iterator[list[NDArray[Any]]]:
    with paths.translate_errors(opened.path, paths.DAMAGED), opened.file() as file:
        for start in range(0, len(columns), FEATURES_AT_ONCE):
            yield _decode_columns(file, columns[start : start + FEATURES_AT_ONCE], group, number)


def _decode_columns(file: "pq.ParquetFile", columns: Sequence[str], group: int, number: int) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = []
    for start in range(0, len(columns), COLUMNS_PER_CALL):
        few = list(columns[start : start + COLUMNS_PER_CALL])
        table = file.read_row_group(group, columns=few, use_threads=False)
        if table.num_rows != number:
            raise ValueError(f"{table.num_rows} values of {few[0]!r} for {number} rows")
        found += [read_numbers(table.column(name)) for name in few]
    return found
