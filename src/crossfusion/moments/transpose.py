"""Rows × features from one array per feature, as tables store them."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import LazyRows, fit_rows_in_cache
from crossfusion.moments import kernel

Columns = Sequence[NDArray[Any]]


def transpose(columns: Columns) -> NDArray[Any]:
    """Rows × features from one array per feature."""
    return np.asarray(transpose_lazily(columns))


def transpose_lazily(columns: Columns) -> LazyRows:
    """Rows × features from one array per feature, a chunk at a time."""
    dtype = np.result_type(*columns)
    shape = len(columns[0]), len(columns)
    step = fit_rows_in_cache(dtype.itemsize * len(columns))
    return LazyRows(shape, dtype, partial(fill_rows, columns, dtype, step), stable=False)


def fill_rows(columns: Columns, dtype: np.dtype[Any], step: int) -> Iterator[NDArray[Any]]:
    """Yield some rows at a time, in memory that the next ones overwrite."""
    number = len(columns[0])
    if any(len(column) != number for column in columns):
        raise ValueError(f"columns of {sorted({len(column) for column in columns})} numbers")
    starts = range(0, number, step)
    if kernel.compiled is None or dtype not in (np.float32, np.float64):
        yield from (np.column_stack([column[start : start + step] for column in columns]) for start in starts)
        return
    ready = [np.require(column, dtype, ["C", "A"]) for column in columns]
    addresses = np.array([column.ctypes.data for column in ready], np.uint64)
    space = np.empty((min(step, number), len(columns)), dtype)
    for start in starts:
        rows = space[: number - start]
        kernel.compiled.interleave(addresses, number, start, rows)
        yield rows
