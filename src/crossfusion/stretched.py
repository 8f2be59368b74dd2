"""Rows that are made a few at a time while they are reduced, so that they are still in the cache when they are."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

STRETCH = 2**20  # bytes: what stays in the second-level cache


class Stretched:
    """Rows × features in stretches, which are made anew whenever they are asked for.

    Parameters
    ----------
    shape : pair of int
        Rows and features of all stretches together.
    dtype : dtype
        Of the first stretch, at least.
    stretches : callable
        Gives an iterator of arrays of some rows each, of which each is good until the next one is asked for.
    """

    ndim = 2

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], stretches: Callable[[], Iterator[NDArray[Any]]]
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._stretches = stretches
        self.tell: Callable[[int], None] | None = None  # is told the rows of each stretch that was used; may raise

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for stretch in self._stretches():
            yield stretch
            if self.tell is not None:
                self.tell(len(stretch))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        rows = np.empty(self.shape, dtype or self.dtype)
        start = 0
        for stretch in self._stretches():
            rows[start : start + len(stretch)] = stretch
            start += len(stretch)
        return rows


def rows_of_stretch(row_bytes: int) -> int:
    """Rows that make a stretch."""
    return max(1, STRETCH // max(1, row_bytes))
