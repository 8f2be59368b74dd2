"""Parquet files with a column for each feature, of which a few are decoded and reduced before the next."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion.sources import block, places
from crossfusion.sources.block import Block
from crossfusion.sources.opened import DAMAGED, Opened, batches, keys_of
from crossfusion.sources.pages import Pages
from crossfusion.sources.vectors import numbers, stretched_numbers
from crossfusion.strips import WIDTH, Striped

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FEW = 8  # columns that are decoded by one call, and stay in the cache while they are
TALL = 2**14  # rows from which a row group is worth a call for each few columns


def fits_strips(schema: "pa.Schema", columns: Sequence[str], rows: Sequence[int]) -> bool:
    """Whether all columns are floats of one type, and row groups of so many rows neither too short nor too long."""
    import pyarrow as pa

    kinds = {schema.field(column).type for column in columns}
    if len(columns) <= WIDTH or len(kinds) > 1 or not kinds <= {pa.float32(), pa.float64()}:
        return False
    return min(rows) >= TALL and max(rows) * WIDTH * kinds.pop().bit_width // 8 <= block.BLOCK


def striped_blocks(
    file: "pq.ParquetFile", opened: Opened, by: Sequence[str], columns: Sequence[str], groups: Sequence[int], first: int
) -> Iterator[Block]:
    """A block for each row group."""
    dtype = np.dtype(file.schema_arrow.field(columns[0]).type.to_pandas_dtype())
    for group in groups:
        number = int(file.metadata.row_group(group).num_rows)
        rows = Striped(
            (number, len(columns)),
            dtype,
            partial(_stretches, opened, columns, group, number, dtype),
            partial(_strips, opened, columns, group, number, dtype),
        )
        yield Block(rows, keys_of(file, [group], by), first)
        first += number


def _stretches(
    opened: Opened, columns: Sequence[str], group: int, number: int, dtype: np.dtype[Any]
) -> Iterator[NDArray[Any]]:
    size = max(1, block.BLOCK // (len(columns) * dtype.itemsize))
    with places.reaching(opened.path, DAMAGED), opened.file() as file:
        for table in batches(file, [group], columns, size):
            yield from stretched_numbers([table.column(name) for name in columns])
            number -= table.num_rows
        if number:
            raise ValueError(f"{number} rows are not there, or too many")


def _strips(
    opened: Opened, columns: Sequence[str], group: int, number: int, dtype: np.dtype[Any]
) -> Iterator[list[NDArray[Any]]]:
    with places.reaching(opened.path, DAMAGED), opened.file() as file:
        pages = opened.pages(file)
        for start in range(0, len(columns), WIDTH):
            strip = columns[start : start + WIDTH]
            found = None if pages is None else _plain(pages, strip, group, number, dtype)
            if found is None:
                pages = None  # the next ones will not be plain either
            yield found or _decoded(file, strip, group, number)


def _plain(
    pages: Pages, columns: Sequence[str], group: int, number: int, dtype: np.dtype[Any]
) -> list[NDArray[Any]] | None:
    space = np.empty((len(columns), number), dtype)
    return list(space) if pages.columns(group, columns, space) else None


def _decoded(file: "pq.ParquetFile", columns: Sequence[str], group: int, number: int) -> list[NDArray[Any]]:
    found: list[NDArray[Any]] = []
    for start in range(0, len(columns), FEW):
        few = list(columns[start : start + FEW])
        table = file.read_row_group(group, columns=few, use_threads=False)
        if table.num_rows != number:
            raise ValueError(f"{table.num_rows} values of {few[0]!r} for {number} rows")
        found += [numbers(table.column(name)) for name in few]
    return found
