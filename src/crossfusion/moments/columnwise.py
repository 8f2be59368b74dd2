"""Rows that are stored by column and reduced a few features at a time, while their columns are still in the cache."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, LazyRows, prefetch
from crossfusion.moments.kernel import Accumulator, Triple, empty
from crossfusion.moments.transpose import fill_rows

FEATURES_AT_ONCE = 16  # in float32 they fill a cache line, and their columns stay in the cache
TILE_ROWS = 2**13  # rows of so many features that are still in the cache when they are reduced

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

    def reduce(self, codes: CodeArray | None, groups: int) -> Triple:
        """Count, mean and sum of squares of each group."""
        number, dim = self.shape
        if codes is not None and len(codes) != number:
            raise ValueError(f"{len(codes)} codes for {number} rows")
        count, mean, sumsq = empty(groups, dim)
        for first, columns in self.column_batches():
            here = slice(first, first + len(columns))
            count, mean[:, here], sumsq[:, here] = self._reduce_columns(columns, codes, groups)
            columns.clear()  # so that the next ones are decoded to the same memory, which is in the cache
        return count, mean, sumsq

    def _reduce_columns(self, columns: Columns, codes: CodeArray | None, groups: int) -> Triple:
        total = Accumulator(groups, len(columns))
        start = 0
        for rows in fill_rows(columns, self.dtype, TILE_ROWS):
            total.add(rows, None if codes is None else codes[start : start + len(rows)])
            start += len(rows)
        return total.result()
