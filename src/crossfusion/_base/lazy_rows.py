"""Rows that are made a few at a time while they are reduced, so that they are still in the cache when they are."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

CHUNK_BYTES = 2**20  # bytes: what stays in the second-level cache
Made = TypeVar("Made")
WAIT = 0.05  # seconds until a thread that waits looks whether it still has to


class LazyRows:
    """Rows × features in stretches, which are made anew whenever they are asked for.

    Parameters
    ----------
    shape : pair of int
        Rows and features of all stretches together.
    dtype : dtype
        Of the first stretch; others have one of their own where whole numbers are missing.
    stretches : callable
        Gives an iterator of arrays of some rows each.
    lasting : bool
        Whether a stretch is still good when the next one was made.
    """

    ndim = 2

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        stretches: Callable[[], Iterator[NDArray[Any]]],
        *,
        lasting: bool = True,
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._stretches, self._lasting = stretches, lasting
        self.tell: Callable[[int], None] | None = None  # is told the rows of each stretch that was used; may raise
        self.ahead = False  # whether a thread of its own makes the next stretch while one is used

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        made = self._stretches()
        for stretch in prefetch(made) if self.ahead and self._lasting else made:
            yield stretch
            if self.tell is not None:
                self.tell(len(stretch))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        stretches = self._stretches()
        kept = list(stretches) if self._lasting else [stretch.copy() for stretch in stretches]
        rows = np.concatenate(kept) if kept else np.empty(self.shape, self.dtype)
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def watch(self, look: Callable[[int, NDArray[Any]], None]) -> "LazyRows":
        """The same rows; `look` is shown each stretch, and the number of its first row, when it is first made."""
        seen = 0

        def stretches() -> Iterator[NDArray[Any]]:
            nonlocal seen
            start = 0
            for stretch in self._stretches():
                if start >= seen:
                    look(start, stretch)
                    seen = start + len(stretch)
                start += len(stretch)
                yield stretch

        return LazyRows(self.shape, self.dtype, stretches, lasting=self._lasting)

    def finite(self) -> NDArray[np.bool_]:
        """Which rows hold only finite values."""
        masks = [np.isfinite(stretch.astype(np.float64, copy=False)).all(axis=1) for stretch in self]
        return np.concatenate([np.ones(0, bool), *masks])

    def row(self, number: int) -> NDArray[Any]:
        """One row."""
        for stretch in self._stretches():
            if number < len(stretch):
                return np.array(stretch[number])
            number -= len(stretch)
        raise IndexError(number)


def rows_per_chunk(row_bytes: int) -> int:
    """Rows that make a stretch."""
    return max(1, CHUNK_BYTES // max(1, row_bytes))


def prefetch(stretches: Iterator[Made]) -> Iterator[Made]:
    """The same stretches, made by a thread that is one or two ahead."""
    queue: Queue[Any] = Queue(1)
    given_up = Event()

    def put(found: Any) -> None:
        waiting = True
        while waiting and not given_up.is_set():
            with suppress(Full):
                queue.put(found, timeout=WAIT)
                waiting = False

    def make() -> None:
        try:
            for stretch in stretches:
                put((stretch, None))
                if given_up.is_set():
                    return
            put((None, None))
        except BaseException as problem:
            put((None, problem))

    maker = Thread(target=make, daemon=True)
    maker.start()
    try:
        while True:
            try:
                stretch, problem = queue.get(timeout=WAIT)
            except Empty:
                continue
            if problem is not None:
                raise problem
            if stretch is None:
                return
            yield stretch
    finally:
        given_up.set()
        maker.join()
