"""Threads of this process: each reads a chunk, reduces it, and goes on to the next one.

Partitions are read side by side. If there are fewer partitions than threads, several threads share one: while one reads
the next chunk, the others reduce the chunks before it; in a partition of one long chunk, one thread decodes what
another reduces. So memory holds at most one chunk per thread, and the result has the same bits for any number of
threads, since reductions are added in the order of the chunks.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Condition, Lock

from crossfusion._base import LazyRows, RowLens, as_rows, limit_blas, thread_count
from crossfusion.io.engines.resume import Checkpoint
from crossfusion.io.reduction import Reduction, RowCounts, RunningSum, reduce_chunk
from crossfusion.io.sources.chunk import Chunk, Partition, Source, cut_evenly

Progress = Callable[[int], None] | None

MAX_AHEAD = 4  # partitions, for each thread, that may be done before an earlier one is


def run(
    sources: Sequence[Source],
    nan: str = "raise",
    progress: Progress = None,
    keeper: Checkpoint | None = None,
    lens: RowLens | None = None,
) -> list[tuple[str, Reduction]]:
    """What each source is reduced to; `progress` is told the rows of each chunk, `keeper` keeps what is done."""
    with limit_blas() if lens is not None else nullcontext():  # once, not by each thread
        return _run(sources, nan, progress, keeper, lens)


def _run(
    sources: Sequence[Source], nan: str, progress: Progress, keeper: Checkpoint | None, lens: RowLens | None
) -> list[tuple[str, Reduction]]:
    found: dict[int, Reduction] = {}
    if lens is not None:
        sources = [_cut_rows(source, lens) if source.whole else source for source in sources]
    for number, source in enumerate(sources):
        if source.whole:
            found[number] = reduce_chunk(next(source.chunks()), source.name, threads=None)
            if progress is not None:
                progress(found[number].seen.rows)
    away = {number: source for number, source in enumerate(sources) if not source.whole}
    if away:
        found |= zip(away, _Job([*away.values()], nan, progress, keeper, lens).run(thread_count()), strict=True)
    return [(source.name, found[number]) for number, source in enumerate(sources)]


def _cut_rows(source: Source, lens: RowLens) -> Source:
    """The rows of a source in memory in chunks for all threads, whose mapped rows take about as much as others."""
    chunk = next(source.chunks())
    rows = as_rows(chunk.rows, source.name)
    dim = max(rows.shape[1], lens.count_features(rows.shape[1], source.name))
    cuts = cut_evenly(rows.shape[0], 8 * dim)
    partitions = [partial(_cut_chunk, replace(chunk, rows=rows), start, stop) for start, stop in cuts]
    return replace(source, partitions=partitions, whole=False)


def _cut_chunk(chunk: Chunk, start: int, stop: int) -> Iterator[Chunk]:
    yield replace(
        chunk, rows=chunk.rows[start:stop], keys=chunk.keys.slice(start, stop - start), first=chunk.first + start
    )


class _StoppedError(BaseException):
    """Work was given up, for a reason that another thread tells."""


class _PartitionReader:
    """A partition that is being read, by one thread at a time."""

    def __init__(self, place: int, source: int, number: int, partition: Partition, name: str) -> None:
        self.place, self.source, self.number, self.name = (
            place,
            source,
            number,
            name,
        )  # among all partitions, and in its own
        self.busy = 0  # threads that read or reduce a chunk of it
        self.ended = False
        self.total = RunningSum(name)
        self._chunks = partition()
        self._given = 0
        self._lock = Lock()

    def next(self) -> tuple[int, Chunk | None]:
        """Number of the next chunk, and the chunk."""
        with self._lock:
            chunk = None if self.ended else next(self._chunks, None)
            if chunk is None:
                self.ended = True
            else:
                self._given += 1
            return self._given - 1, chunk

    def close(self) -> None:
        """Let go of files that are still open; a thread that is reading them comes to its end first."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            with self._lock:
                close()


class _Job:
    """Sources on their way through the threads."""

    def __init__(
        self,
        sources: Sequence[Source],
        nan: str,
        progress: Progress,
        keeper: Checkpoint | None,
        lens: RowLens | None = None,
    ) -> None:
        partitions = (
            (k, number, partition)
            for k, source in enumerate(sources)
            for number, partition in enumerate(source.partitions)
        )
        self._waiting = [(place, *partition) for place, partition in enumerate(partitions)][::-1]
        self._sources, self._nan, self._progress = sources, nan, progress
        self._keeper, self._lens = keeper, lens
        self._totals = [RunningSum(source.name) for source in sources]
        self._lanes: list[_PartitionReader] = []
        self._change = Condition()
        self._stopped = False
        self._first = 0  # of the sources that are not done
        self._go_on()

    def _go_on(self) -> None:
        """Take over what an earlier run has done."""
        kept = None if self._keeper is None else self._keeper.load(len(self._sources))
        for total, (number, reduction) in zip(self._totals, kept or [], strict=False):
            total.start(number, reduction)
            if self._progress is not None:
                self._progress(reduction.seen.rows)
        self._waiting = [entry for entry in self._waiting if entry[2] >= self._totals[entry[1]].number]

    def run(self, threads: int) -> list[Reduction]:
        """Start the threads and wait for them; the first error of any of them ends all."""
        try:
            with ThreadPoolExecutor(threads) as pool:
                try:
                    for done in [pool.submit(self._work, threads) for _ in range(threads)]:
                        done.result()
                finally:
                    self._stop()
        except KeyboardInterrupt:
            if self._keeper is not None:
                self._keeper.keep_interrupted(self._totals)
            raise
        finally:
            for lane in self._lanes:
                lane.close()
        return [total.total() for total in self._totals]

    def _stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _work(self, threads: int) -> None:
        try:
            while (lane := self._claim(threads)) is not None:
                number, chunk = lane.next()
                reduction = None
                if chunk is not None:
                    watched = self._watch(chunk, threads)
                    reduction = reduce_chunk(chunk, lane.name, lens=self._lens)
                    self._tell(reduction.seen.rows - watched.told)
                self._take(lane, number, reduction)
        except _StoppedError:  # by what happened elsewhere
            return
        except BaseException:
            self._stop()
            raise

    def _watch(self, chunk: Chunk, threads: int) -> "_RowReporter":
        """Tell of rows of a chunk while it is still being read, as it may be long; give it up when all work is."""
        watched = _RowReporter(self, chunk.rows.shape[0])
        if isinstance(chunk.rows, LazyRows):
            chunk.rows.on_rows = watched
            with self._change:  # a thread that has no partition of its own helps to read this one
                chunk.rows.read_ahead = (
                    len([lane for lane in self._lanes if not lane.ended]) < threads and not self._waiting
                )
        return watched

    def _tell(self, rows: int) -> None:
        """Tell of rows that are done."""
        if self._progress is not None and rows:
            with self._change:
                self._progress(rows)

    def _claim(self, threads: int) -> _PartitionReader | None:
        """The partition to read next: a new one while there are fewer than threads, or the least read one."""
        with self._change:
            while not self._stopped:
                reading = [lane for lane in self._lanes if not lane.ended]
                if len(reading) < threads and self._waiting and self._is_near(threads):
                    place, source, number, partition = self._waiting.pop()
                    reading.append(_PartitionReader(place, source, number, partition, self._sources[source].name))
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
        """Whether the next partition is not so far ahead that what is done would pile up behind an earlier one."""
        earliest = min((lane.place for lane in self._lanes), default=self._waiting[-1][0])
        return self._waiting[-1][0] < earliest + MAX_AHEAD * threads

    def _take(self, lane: _PartitionReader, number: int, reduction: Reduction | None) -> None:
        """Add what was found; the last reader of a partition hands in its sum."""
        with self._change:
            lane.busy -= 1
            if reduction is not None:
                lane.total.add(number, reduction)
            if lane.ended and not lane.busy:
                self._lanes.remove(lane)
                self._totals[lane.source].add(lane.number, lane.total.total())
                if self._keeper is not None:
                    self._keeper.look(self._totals)
            if self._nan == "raise":
                self._refuse(lane)
            self._change.notify_all()

    def _refuse(self, lane: _PartitionReader) -> None:
        """Refuse rows that are not finite as soon as it is known which is the first of them."""
        while self._first < len(self._sources):
            source, total = self._sources[self._first], self._totals[self._first]
            seen = total.seen
            if not seen.bad and lane in self._lanes and lane.source == self._first:
                seen += lane.total.seen if lane.number == total.number else RowCounts()
            if seen.bad:
                seen.settle(source.name, "raise", so_far=source.rows is None or seen.rows < source.rows)
            if total.number < len(source.partitions):
                return
            self._first += 1


class _RowReporter:
    """Rows of a chunk of which was told already; those that are looked at again are not told of twice."""

    def __init__(self, job: _Job, rows: int) -> None:
        self._job, self._rows, self.told = job, rows, 0

    def __call__(self, rows: int) -> None:
        if self._job._stopped:
            raise _StoppedError
        now = min(rows, self._rows - self.told)
        self.told += now
        self._job._tell(now)
