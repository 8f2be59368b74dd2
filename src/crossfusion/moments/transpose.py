"""Rows × features of one array a feature, as tables keep them."""

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import LazyRows, rows_per_chunk
from crossfusion.moments import kernel as kernels


def interleave(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Rows × features of one array a feature."""
    if len(columns) * columns[0].nbytes < kernels.NUMPY_MAX_BYTES // 8:
        return np.column_stack(columns)
    return np.asarray(interleave_chunks(columns))


def interleave_chunks(columns: Sequence[NDArray[Any]]) -> LazyRows:
    """Rows × features of one array a feature, a stretch at a time."""
    dtype = np.result_type(*columns)
    shape = len(columns[0]), len(columns)
    step = rows_per_chunk(dtype.itemsize * len(columns))
    return LazyRows(shape, dtype, partial(_stretches, columns, shape, dtype, step), lasting=False)


def _stretches(
    columns: Sequence[NDArray[Any]], shape: tuple[int, int], dtype: np.dtype[Any], step: int
) -> Iterator[NDArray[Any]]:
    starts = range(0, shape[0], step)
    if dtype not in (np.float32, np.float64):
        yield from (np.column_stack([column[start : start + step] for column in columns]) for start in starts)
        return
    ready = [np.ascontiguousarray(column, dtype) for column in columns]
    addresses, kernel = np.array([column.ctypes.data for column in ready], np.uint64), _interleave(dtype)
    space = np.empty((min(step, shape[0]), shape[1]), dtype)
    for start in starts:
        rows = space[: shape[0] - start]
        kernel(addresses, start, rows)
        yield rows


@lru_cache(maxsize=2)
def _interleave(dtype: np.dtype[Any]) -> Any:
    from crossfusion.moments import compiled_columnwise

    return compiled_columnwise.compile_interleave(dtype)
