"""Threads of this process: each reads a block, reduces it, and goes on to the next one.

Parts are read side by side. Where there are fewer parts than threads, several threads share a part: while one reads its
next block, the others reduce the blocks before. So no more blocks are in memory than there are threads, and the result
has the same bits for any number of them, since pieces add up in the order of the blocks.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Lock

from crossfusion import kernels
from crossfusion.reduction import Reduced, Running, Seen, of_block
from crossfusion.sources.block import Block, Part, Source

AHEAD = 4  # parts, for each thread, that may be done before an earlier one is


def run(
    sources: Sequence[Source], nan: str = "raise", progress: Callable[[int], None] | None = None
) -> list[tuple[str, Reduced]]:
    """What each source is reduced to; `progress` is told the rows of each block."""
    found = []
    for source in sources:
        if source.whole:
            piece = of_block(next(source.blocks()), source.name, threads=None)
            if progress is not None:
                progress(piece.seen.rows)
        else:
            piece = _Job(source, nan, progress).run(kernels.thread_count())
        found.append((source.name, piece))
    return found


class _Lane:
    """A part that is being read, by one thread at a time."""

    def __init__(self, number: int, part: Part, name: str) -> None:
        self.number = number
        self.busy = 0  # threads that read or reduce a block of it
        self.ended = False
        self.total = Running(name)
        self._blocks = part()
        self._given = self._bytes = 0
        self._lock = Lock()

    def next(self) -> tuple[int, int, Block | None]:
        """Number of the next block, bytes up to its end, and the block."""
        with self._lock:
            block = None if self.ended else next(self._blocks, None)
            if block is None:
                self.ended = True
            else:
                self._given += 1
                self._bytes += block.rows.shape[0] * _row_bytes(block)
            return self._given - 1, self._bytes, block

    def close(self) -> None:
        """Let go of files that are still open."""
        close = getattr(self._blocks, "close", None)
        if close is not None:
            close()


def _row_bytes(block: Block) -> int:
    return int(block.rows.shape[1]) * int(block.rows.dtype.itemsize)


class _Job:
    """A source on its way through the threads."""

    def __init__(self, source: Source, nan: str, progress: Callable[[int], None] | None) -> None:
        self._source, self._nan, self._progress = source, nan, progress
        self._waiting = list(enumerate(source.parts))[::-1]
        self._lanes: list[_Lane] = []
        self._total = Running(source.name)
        self._change = Condition()
        self._stopped = False

    def run(self, threads: int) -> Reduced:
        """Start the threads and wait for them; the first error of any of them ends all."""
        try:
            with ThreadPoolExecutor(threads) as pool:
                try:
                    for done in [pool.submit(self._work, threads) for _ in range(threads)]:
                        done.result()
                finally:
                    self._stop()
        finally:
            for lane in self._lanes:
                lane.close()
        return self._total.total()

    def _stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _work(self, threads: int) -> None:
        try:
            while (lane := self._claim(threads)) is not None:
                number, size, block = lane.next()
                piece = None
                if block is not None:
                    piece = of_block(block, self._source.name, large=self._is_large(block, size))
                self._take(lane, number, piece)
        except BaseException:
            self._stop()
            raise

    def _claim(self, threads: int) -> _Lane | None:
        """The part to read next: a new one while there are fewer than threads, or the one with the fewest readers."""
        with self._change:
            while not self._stopped:
                reading = [lane for lane in self._lanes if not lane.ended]
                if len(reading) < threads and self._waiting and self._is_near(threads):
                    reading.append(_Lane(*self._waiting.pop(), self._source.name))
                    self._lanes.append(reading[-1])
                if reading:
                    lane = min(reading, key=lambda lane: lane.busy)
                    lane.busy += 1
                    return lane
                if not self._waiting:
                    return None
                self._change.wait()
            return None

    def _is_near(self, threads: int) -> bool:
        """Whether the next part is not so far ahead that what is done would pile up behind an earlier one."""
        return self._waiting[-1][0] < self._total.number + AHEAD * threads

    def _is_large(self, block: Block, size: int) -> bool:
        """Whether there is enough to read for the compiled kernel; the same for a block whatever the threads do."""
        rows = self._source.rows
        return (size if rows is None else rows * _row_bytes(block)) >= kernels.SMALL

    def _take(self, lane: _Lane, number: int, piece: Reduced | None) -> None:
        """Add what was found; the last reader of a part hands in its sum."""
        with self._change:
            lane.busy -= 1
            if piece is not None:
                lane.total.add(number, piece)
                if self._progress is not None:
                    self._progress(piece.seen.rows)
            first = lane.number == self._total.number
            if lane.ended and not lane.busy:
                self._lanes.remove(lane)
                self._total.add(lane.number, lane.total.total())
            if self._nan == "raise" and (first or self._total.seen.bad):
                self._refuse(self._total.seen if self._total.seen.bad else self._total.seen + lane.total.seen)
            self._change.notify_all()

    def _refuse(self, seen: Seen) -> None:
        """Refuse rows that are not finite as soon as it is known which is the first of them."""
        rows = self._source.rows
        seen.settle(self._source.name, "raise", so_far=rows is None or seen.rows < rows)
