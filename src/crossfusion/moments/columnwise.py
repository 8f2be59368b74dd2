"""Rows that come as columns, a strip of features at a time, reduced while the strip is still in the cache."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import LazyRows, prefetch

FEATURES_AT_ONCE = (
    16  # features of a strip: of float32 what fills a cache line, and few enough that their columns stay there
)

FloatArray = NDArray[np.float64]
Columns = list[NDArray[Any]]


class ColumnwiseRows(LazyRows):
    """Rows × features in stretches of rows or, to be reduced, in strips of features.

    Parameters
    ----------
    shape : pair of int
        Rows and features.
    dtype : dtype
        Of all columns, float32 or float64.
    stretches : callable
        Gives an iterator of arrays of some rows each.
    strips : callable
        Gives an iterator of the columns of some features each, at most `FEATURES_AT_ONCE`, in the order of features.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        stretches: Callable[[], Iterator[NDArray[Any]]],
        strips: Callable[[], Iterator[Columns]],
    ) -> None:
        super().__init__(shape, dtype, stretches, lasting=False)
        self._strips = strips

    def strips(self) -> Iterator[tuple[int, Columns]]:
        """The columns of each strip, behind the number of features before it."""
        done = told = 0
        made = self._strips()
        for columns in prefetch(made) if self.ahead else made:
            before, done = done, done + len(columns)
            yield before, columns
            if self.tell is not None:
                now = self.shape[0] * done // self.shape[1]
                self.tell(now - told)
                told = now

    def finite(self) -> NDArray[np.bool_]:
        """Which rows hold only finite values."""
        mask = np.ones(self.shape[0], bool)
        for _, columns in self.strips():
            for column in columns:
                mask &= np.isfinite(column)
        return mask

    def row(self, number: int) -> NDArray[Any]:
        """One row."""
        return np.array([column[number] for _, columns in self.strips() for column in columns])


def reduce_columnwise(
    rows: ColumnwiseRows, codes: NDArray[np.int32] | None, groups: int, dtype: np.dtype[Any], tile_rows: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count, mean and sum of squares of each group, summed in `dtype` over short runs."""
    number, dim = rows.shape
    labels = np.empty(0, np.int32) if codes is None else codes
    if codes is not None and len(codes) != number:
        raise ValueError(f"{len(codes)} codes for {number} rows")  # the kernel would read what is not there
    count, mean, sumsq = np.zeros(groups), np.zeros((groups, dim)), np.zeros((groups, dim))
    order = np.empty(number, np.int32), np.empty(-(-number // tile_rows), np.int64), np.empty(groups, np.int64)
    tile = min(tile_rows, max(1, number))
    memory = np.empty(tile * FEATURES_AT_ONCE, dtype)
    for first, columns in rows.strips():
        ready = [np.ascontiguousarray(column, dtype) for column in columns]
        if any(len(column) != number for column in ready):
            raise ValueError(f"columns of {[len(column) for column in ready]} numbers for {number} rows")
        width, addresses = len(ready), np.array([column.ctypes.data for column in ready], np.uint64)
        origin, here, spread = np.zeros((groups, width), dtype), np.zeros((groups, width)), np.zeros((groups, width))
        sums, space = np.empty((3, width), dtype), memory[: tile * width].reshape(tile, width)
        count = np.zeros(groups)
        _kernel(dtype)(addresses, labels, first == 0, origin, count, here, spread, sums, *order, space)
        mean[:, first : first + width], sumsq[:, first : first + width] = here + origin, spread
        ready.clear()
        columns.clear()  # so that the next ones are decoded to the same memory, which is in the cache
    return count, mean, sumsq


@lru_cache(maxsize=2)
def _kernel(dtype: np.dtype[Any]) -> Any:
    from crossfusion.moments import compiled_columnwise

    return compiled_columnwise.compile_accumulate_strip(dtype)
