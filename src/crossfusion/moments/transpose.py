"""Rows × features from one array per feature, as tables store them."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import LazyRows, fit_rows_in_cache
from crossfusion.moments import kernel


def transpose(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows × features from one array per feature."""
    if len(columns) * columns[0].nbytes < kernel.NUMPY_MAX_BYTES // 8:
        return np.column_stack(columns)
    return np.asarray(transpose_lazily(columns))


def transpose_lazily(columns: Sequence[NDArray[Any]]) -> LazyRows:
    """Rows × features from one array per feature, a chunk at a time."""
    dtype = np.result_type(*columns)
    shape = len(columns[0]), len(columns)
    step = fit_rows_in_cache(dtype.itemsize * len(columns))
    return LazyRows(shape, dtype, partial(_read_chunks, columns, shape, dtype, step), stable=False)


def _read_chunks(
    columns: Sequence[NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any], step: int
) -> Iterator[NDArray[Any]]:
    starts = range(0, shape[0], step)
    if dtype not in (np.float32, np.float64):
        yield from (np.column_stack([column[start : start + step] for column in columns]) for start in starts)
        return
    ready = [np.ascontiguousarray(column, dtype) for column in columns]
    addresses, fill_rows = np.array([column.ctypes.data for column in ready], np.uint64), _compile(dtype)
    space = np.empty((min(step, shape[0]), shape[1]), dtype)
    for start in starts:
        rows = space[: shape[0] - start]
        fill_rows(addresses, start, rows)
        yield rows


@lru_cache(maxsize=2)
def _compile(dtype: np.dtype[Any]) -> Any:
    from crossfusion.moments import compiled_columnwise

    return compiled_columnwise.compile_interleave(dtype)
