"""Rows that are stored by column and reduced a few features at a time, while their columns are still in the cache."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, LazyRows, prefetch
from crossfusion.moments.kernel import Triple, choose_tile_rows

FEATURES_AT_ONCE = 16  # in float32 they fill a cache line, and their columns stay in the cache

Columns = list[NDArray[Any]]


class ColumnwiseRows(LazyRows):
    """Rows × features that are read in chunks of rows or, to be reduced, a few features at a time.

    Parameters
    ----------
    shape : pair of int
        Rows and features.
    dtype : dtype
        Of all columns, float32 or float64.
    read : callable
        Returns an iterator of arrays of some rows each.
    read_columns : callable
        Returns an iterator of lists of at most `FEATURES_AT_ONCE` columns, in the order of the features.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        read: Callable[[], Iterator[NDArray[Any]]],
        read_columns: Callable[[], Iterator[Columns]],
    ) -> None:
        super().__init__(shape, dtype, read, stable=False)
        self._read_columns = read_columns

    def column_batches(self) -> Iterator[tuple[int, Columns]]:
        """Some columns at a time, each time with the number of features before them."""
        done = reported = 0
        batches = self._read_columns()
        for columns in prefetch(batches) if self.read_ahead else batches:
            before, done = done, done + len(columns)
            yield before, columns
            if self.on_rows is not None:
                now = self.shape[0] * done // self.shape[1]
                self.on_rows(now - reported)
                reported = now

    def find_finite(self) -> NDArray[np.bool_]:
        """Which rows hold only finite values."""
        mask = np.ones(self.shape[0], bool)
        for _, columns in self.column_batches():
            for column in columns:
                mask &= np.isfinite(column)
        return mask

    def read_row(self, number: int) -> NDArray[Any]:
        """One row."""
        return np.array([column[number] for _, columns in self.column_batches() for column in columns])

    def reduce(self, codes: CodeArray | None, groups: int, dtype: np.dtype[Any]) -> Triple:
        """Count, mean and sum of squares of each group, summed in `dtype` over short runs."""
        number, dim = self.shape
        labels = np.empty(0, np.int32) if codes is None else codes
        if codes is not None and len(codes) != number:
            raise ValueError(f"{len(codes)} codes for {number} rows")  # the kernel would read past their end
        size = choose_tile_rows(groups)
        count, mean, sumsq = np.zeros(groups), np.zeros((groups, dim)), np.zeros((groups, dim))
        order = np.empty(number, np.int32), np.empty(-(-number // size), np.int64), np.empty(groups, np.int64)
        tile = min(size, max(1, number))
        memory = np.empty(tile * FEATURES_AT_ONCE, dtype)
        for first, columns in self.column_batches():
            ready = [np.ascontiguousarray(column, dtype) for column in columns]
            if any(len(column) != number for column in ready):
                raise ValueError(f"columns of {[len(column) for column in ready]} numbers for {number} rows")
            width, addresses = len(ready), np.array([column.ctypes.data for column in ready], np.uint64)
            origin, here, spread = (np.zeros((groups, width), kind) for kind in (dtype, np.float64, np.float64))
            sums, space = np.empty((3, width), dtype), memory[: tile * width].reshape(tile, width)
            count = np.zeros(groups)
            _compile(dtype)(addresses, labels, first == 0, origin, count, here, spread, sums, *order, space)
            mean[:, first : first + width], sumsq[:, first : first + width] = here + origin, spread
            ready.clear()
            columns.clear()  # so that the next ones are decoded to the same memory, which is in the cache
        return count, mean, sumsq


@lru_cache(maxsize=2)
def _compile(dtype: np.dtype[Any]) -> Any:
    from crossfusion.moments import compiled_columnwise

    return compiled_columnwise.compile_accumulate_strip(dtype)
