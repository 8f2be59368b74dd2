"""Parquet files, of which each partition is some row groups."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, LazyRows, fit_rows_in_cache
from crossfusion.io.sources import chunk, paths
from crossfusion.io.sources.chunk import Chunk, Source, group_runs
from crossfusion.io.sources.columns_to_rows import (
    from_lists,
    is_float,
    is_number,
    is_vector,
    list_entry_type,
    list_length,
    transpose_columns,
)
from crossfusion.io.sources.parquet_file import ParquetFile, check_keys, read_batches, read_keys
from crossfusion.io.sources.parquet_wide import fits_columnwise, read_columnwise
from crossfusion.io.sources.vector_columns import find_vectors, has_feature_columns, make_chunk
from crossfusion.summary import METADATA_KEY

if TYPE_CHECKING:
    import pyarrow.parquet as pq

UNREADABLE = "is not a readable Parquet file"
MAX_LAZY_ROWS = 2**22  # rows whose factors are read at once, while their vectors are decoded late
PEEK_ROWS = 16  # rows that tell how long vectors are
PEEK_ROW_GROUPS = 8  # row groups that are asked for them
LIST_OVERHEAD = 4  # of a chunk of lists, since decoding these takes several times their memory
MAX_BATCH_ROWS = 2**24  # rows of a batch, whatever a file says of their size


def from_parquet(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A Parquet file with one list column of vectors, or many numeric columns."""
    name = paths.show_path(path)
    opened = ParquetFile(path, by)
    with paths.translate_errors(path, UNREADABLE), opened.file() as file:
        schema, about = file.schema_arrow, file.metadata
        if METADATA_KEY in (schema.metadata or {}):
            raise InputError(
                problem=f"{name} is a summary already, without rows",
                remedy="ask it with matrix, hierarchy or attribution",
            )
        columns = find_vectors(schema, by, vectors, name)
        row_bytes = _measure_row(file, columns, name)
        partitions = [
            partial(_read_chunks, opened, by, columns, groups, first, row_bytes)
            for groups, first in group_runs(
                [about.row_group(k).num_rows for k in range(about.num_row_groups)], row_bytes
            )
        ]
    opened.expect(len(partitions))
    features = tuple(columns) if has_feature_columns(schema, columns) else ()
    vector = columns[0] if vectors is None else ""
    return Source(name, partitions, about.num_rows, features=features, vector=vector, columns=tuple(schema.names))


def _measure_row(file: "pq.ParquetFile", columns: Sequence[str], name: str) -> int:
    """Bytes of the vector of a row once it is decoded, whatever the encoding in the file.

    Looks at types and, where these do not tell, at a few rows: what the footer says of single columns is not asked for,
    since a damaged one ends the process there.
    """
    schema = file.schema_arrow
    kinds = [schema.field(column).type for column in columns]
    if has_feature_columns(schema, columns):
        return sum(max(1, int(kind.bit_width) // 8) for kind in kinds)
    entries, size = list_entry_type(kinds[0]), list_length(kinds[0])
    if entries is not None and size is not None and is_number(entries):
        return max(1, size * max(1, int(entries.bit_width) // 8))
    groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
    filled = [number for number, group in enumerate(groups) if group.num_rows][:PEEK_ROW_GROUPS]
    for number in filled:
        rows = _read_head(file, [number], columns[0], name, sum(group.num_rows for group in groups[:number]))
        if rows is not None:
            return max(1, int(rows.shape[1]) * rows.itemsize)
    sizes = [int(group.total_byte_size) // max(1, int(group.num_rows)) for group in groups]
    return max([8, *sizes])


def _read_head(
    file: "pq.ParquetFile", groups: Sequence[int], column: str, name: str, first: int
) -> NDArray[Any] | None:
    """The first vectors; None where there are none."""
    table = next(read_batches(file, groups, [column], PEEK_ROWS), None)
    if table is None or table.column(0).null_count == table.num_rows:
        return None
    return from_lists(table.column(0), column, name, first)


def _read_chunks(
    opened: ParquetFile, by: Sequence[str], columns: Sequence[str], groups: Sequence[int], first: int, row_bytes: int
) -> Iterator[Chunk]:
    path = opened.path
    with ExitStack() as stack:
        stack.callback(opened.finish_partition)
        stack.enter_context(paths.translate_errors(path, paths.DAMAGED))
        file = stack.enter_context(opened.file())
        schema, sizes = file.schema_arrow, [file.metadata.row_group(group).num_rows for group in groups]
        number, wide = sum(sizes), has_feature_columns(schema, columns)
        if not wide and number <= MAX_LAZY_ROWS:
            rows = _decode_lazily(file, opened, columns[0], groups, first, row_bytes)
            if rows is not None:
                yield Chunk(rows, read_keys(file, groups, by), first)
                return
        if wide and fits_columnwise(schema, columns, sizes):
            yield from read_columnwise(file, opened, by, columns, groups, first)
            return
        most = max(1, chunk.CHUNK_BYTES // (1 if wide else LIST_OVERHEAD) // row_bytes)
        wanted, size = [*by, *columns], _choose_batch_rows(number, min(most, MAX_BATCH_ROWS))
        for table in read_batches(file, groups, wanted, size):
            keys = check_keys(table, by)
            if wide:
                yield Chunk(transpose_columns([table.column(name) for name in columns]), keys, first)
            else:
                yield make_chunk(table, by, columns, paths.show_path(path), first)
            first += table.num_rows


def _decode_lazily(
    file: "pq.ParquetFile", opened: ParquetFile, column: str, groups: Sequence[int], first: int, row_bytes: int
) -> LazyRows | None:
    """Vectors that are decoded while they are reduced, a megabyte at a time; None where their length is not known."""
    kind = file.schema_arrow.field(column).type
    if not is_vector(kind):
        return None
    dim, entries = list_length(kind), list_entry_type(kind)
    if dim is not None and entries is not None and is_float(entries):
        dtype = np.dtype(entries.to_pandas_dtype())
    else:
        rows = _read_head(file, groups, column, paths.show_path(opened.path), first)
        if rows is None:
            return None
        dim, dtype = int(rows.shape[1]), rows.dtype
    shape = sum(file.metadata.row_group(group).num_rows for group in groups), dim
    size = fit_rows_in_cache(row_bytes)
    return LazyRows(shape, dtype, partial(_decode_vectors, opened, column, groups, first, size, shape))


def _decode_vectors(
    opened: ParquetFile, column: str, groups: Sequence[int], first: int, size: int, shape: tuple[int, int]
) -> Iterator[NDArray[Any]]:
    (number, dim), start, name = shape, first, paths.show_path(opened.path)
    with paths.translate_errors(opened.path, paths.DAMAGED), opened.file() as file:
        for table in read_batches(file, groups, [column], size):
            rows = from_lists(table.column(0), column, name, first)
            if rows.shape[1] != dim:
                if table.column(0).null_count < table.num_rows:
                    raise InputError(
                        problem=f"column {column!r} of {name} holds vectors of unequal length, {dim} entries before"
                        f" row {first} and {rows.shape[1]} from there on",
                        remedy="pad or drop them",
                    )
                rows = np.full((len(rows), dim), np.nan)
            first += len(rows)
            if first - start > number:
                break
            yield rows
        if first - start != number:
            raise ValueError(f"{first - start} vectors or more for {number} rows")


def _choose_batch_rows(rows: int, most: int) -> int:
    """Rows of a batch, so that all are of about the same size and none has more than `most`."""
    batches = max(1, -(-rows // most))
    return max(1, -(-rows // batches))
