"""Rows that are decoded in small chunks while they are reduced, so that each chunk is still in the cache then."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

CACHE_BYTES = 10**6  # bytes of rows that stay in the second-level cache; memory for a little more is slow to get
POLL_SECONDS = 0.05  # after which a waiting thread checks whether it still has to wait

Item = TypeVar("Item")


class LazyRows:
    """Rows × features in chunks, which are decoded again whenever they are asked for.

    Parameters
    ----------
    shape : pair of int
        Rows and features of all chunks together.
    dtype : dtype
        Of the first chunk; others may differ where integers are missing.
    read : callable
        Returns an iterator of arrays of some rows each.
    stable : bool
        Whether a chunk stays valid after the next one is decoded.
    """

    ndim = 2

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        read: Callable[[], Iterator[NDArray[Any]]],
        *,
        stable: bool = True,
    ) -> None:
        self.shape, self.dtype = shape, dtype
        self._read, self._stable = read, stable
        self.on_rows: Callable[[int], None] | None = None  # called with the rows of each chunk once used; may raise
        self.read_ahead = False  # whether another thread decodes the next chunk while one is used

    def __len__(self) -> int:
        return self.shape[0]

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Arrays of some rows each, in order."""
        chunks = self._read()
        for chunk in prefetch(chunks) if self.read_ahead and self._stable else chunks:
            yield chunk
            if self.on_rows is not None:
                self.on_rows(len(chunk))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        chunks = [chunk if self._stable else chunk.copy() for chunk in self._read()]
        rows = np.concatenate(chunks) if chunks else np.empty(self.shape, self.dtype)
        return rows if dtype is None else rows.astype(dtype, copy=False)

    def watch(self, look: Callable[[int, NDArray[Any]], None]) -> "LazyRows":
        """The same rows; `look` is called with each chunk, and the index of its first row, when it is first decoded."""
        seen = 0

        def read() -> Iterator[NDArray[Any]]:
            nonlocal seen
            start = 0
            for chunk in self._read():
                if start >= seen:
                    look(start, chunk)
                    seen = start + len(chunk)
                start += len(chunk)
                yield chunk

        return LazyRows(self.shape, self.dtype, read, stable=self._stable)

    def find_finite(self) -> NDArray[np.bool_]:
        """Which rows hold only finite values."""
        masks = [np.isfinite(chunk.astype(np.float64, copy=False)).all(axis=1) for chunk in self.chunks()]
        return np.concatenate([np.ones(0, bool), *masks])

    def read_row(self, number: int) -> NDArray[Any]:
        """One row."""
        for chunk in self._read():
            if number < len(chunk):
                return np.array(chunk[number])
            number -= len(chunk)
        raise IndexError(number)


def fit_rows_in_cache(row_bytes: int) -> int:
    """How many rows of this size stay in the cache."""
    return max(1, CACHE_BYTES // max(1, row_bytes))


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, made by a thread that is one or two ahead."""
    queue: Queue[Any] = Queue(1)
    given_up = Event()

    def put(entry: Any) -> None:
        waiting = True
        while waiting and not given_up.is_set():
            with suppress(Full):
                queue.put(entry, timeout=POLL_SECONDS)
                waiting = False

    def make() -> None:
        try:
            for item in items:
                put((item, None))
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
                item, problem = queue.get(timeout=POLL_SECONDS)
            except Empty:
                continue
            if problem is not None:
                raise problem
            if item is None:
                return
            yield item
    finally:
        given_up.set()
        maker.join()
