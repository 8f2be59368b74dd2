"""Some of the rows, drawn while all of them are read: for pictures of the cloud, and for what moments do not show.

Every row draws a number, and the rows with the smallest numbers are kept. A chunk draws by the seed and its place among
the partitions, so the sample is the same whichever thread comes first, and takes no memory that grows with the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import LazyRows, as_rows, factors, find_finite_rows
from crossfusion.io.sources.all_rows import Rows
from crossfusion.io.sources.chunk import Chunk, Partition, Source

if TYPE_CHECKING:
    import pyarrow as pa

MAX_SAMPLE_ROWS = 20_000  # kept at most
MAX_SAMPLE_BYTES = 64 * 2**20  # that these may take


class Sample:
    """Rows drawn with the same chance each, from chunks in any order.

    Parameters
    ----------
    seed : int
        Of the draw.
    rows, size : int
        How many rows are kept at most, and how many bytes they may take.
    """

    def __init__(self, seed: int, rows: int = MAX_SAMPLE_ROWS, size: int = MAX_SAMPLE_BYTES) -> None:
        self._seed, self._rows, self._size = seed, rows, size
        self._kept: list[tuple[NDArray[np.float64], NDArray[Any], pa.Table]] = []
        self._waiting = 0  # rows that are kept for now
        self._below = 1.0  # of the numbers that are still of interest
        self._lock = Lock()
        self.seen = 0

    def watch(self, sources: Sequence[Source]) -> list[Source]:
        """The same sources, whose chunks are looked at as they pass."""
        return [
            replace(
                source,
                partitions=[partial(self._watch, partition, (k, n)) for n, partition in enumerate(source.partitions)],
            )
            for k, source in enumerate(sources)
        ]

    def _watch(self, partition: Partition, place: tuple[int, int]) -> Iterator[Chunk]:
        for number, chunk in enumerate(partition()):
            drawn = np.random.default_rng([self._seed, *place, number]).random(chunk.rows.shape[0])
            with self._lock:
                self.seen += len(drawn)
            if isinstance(chunk.rows, LazyRows):
                look = partial(self._watch_chunk, chunk.keys, drawn)
                yield replace(chunk, rows=chunk.rows.watch(look))
            else:
                self._take(as_rows(chunk.rows, chunk.file), chunk.keys, drawn)
                yield chunk

    def _watch_chunk(self, keys: "pa.Table", drawn: NDArray[np.float64], start: int, rows: NDArray[Any]) -> None:
        self._take(rows, keys.slice(start, len(rows)), drawn[start : start + len(rows)])

    def _take(self, rows: Any, keys: "pa.Table", drawn: NDArray[np.float64]) -> None:
        """Keep the rows whose numbers are small enough so far, those that are finite."""
        chosen = np.flatnonzero(drawn < self._below)
        if not len(chosen):
            return
        own = rows[chosen] if isinstance(rows, np.ndarray) else rows[chosen].toarray()
        finite = find_finite_rows(own)
        kept = drawn[chosen[finite]], own[finite], keys.take(chosen[finite])
        with self._lock:
            self._kept.append(kept)
            self._waiting += len(kept[0])
            if self._waiting > 2 * self._count_kept(rows):
                self._settle()

    def _count_kept(self, rows: NDArray[Any]) -> int:
        """How many of such rows are kept."""
        return max(1, min(self._rows, self._size // int(rows.shape[1] * rows.dtype.itemsize)))

    def _settle(self) -> None:
        """Of what is kept, keep the smallest numbers."""
        drawn, rows, keys = self._join()
        order = np.argsort(drawn, kind="stable")[: self._count_kept(rows)]
        if len(order) < len(drawn):
            self._below = float(drawn[order[-1]])
        self._kept, self._waiting = [(drawn[order], rows[order], keys.take(order))], len(order)

    def _join(self) -> "tuple[NDArray[np.float64], NDArray[Any], pa.Table]":
        drawn, rows, keys = zip(*self._kept, strict=True)
        return np.concatenate(drawn), np.concatenate(rows), factors.concat_tables(keys, "the rows")

    def rows(self) -> Rows | None:
        """What was drawn, in the order of the numbers, which is no order; None if no row was finite."""
        if not self._kept:
            return None
        self._settle()
        _, rows, keys = self._kept[0]
        return Rows(rows, keys)
