"""Dask: each partition or chunk is reduced where it is read, and moments are merged in a tree.

Each partition is one task, which returns a `Reduction`. Further tasks merge eight of these at a time, in order, until
one is left. Only that one is sent back, with the number of rows of each partition. Dask repeats the work of a lost
worker, so the result is complete; the row counts of both ways must agree.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from crossfusion._base import (
    CrossfusionError,
    EngineError,
    FileError,
    InputError,
    RowLens,
    arg,
    find_finite_rows,
    first_line,
    optional,
    thread_count,
)
from crossfusion.io.engines import local
from crossfusion.io.engines.dask_collections import DaskTasks, make_keys, open_collection
from crossfusion.io.reduction import Reduction, RowCounts, merge_reductions, reduce_chunk, reduce_partition
from crossfusion.io.sources.chunk import Chunk, Source, merge_partitions

__all__ = ["DaskTasks", "draw", "open_collection", "run"]

FAN_IN = 8  # moments that a task merges
TASKS_PER_THREAD = 8  # of each thread, at most, so that few moments travel however many partitions a file has
MAX_WATCHED = 1000  # results, at most, that are waited for one by one; where there are more partitions, sums of several
LOOK_SECONDS = 2.0  # seconds without news after which to look whether there are workers
PATIENCE_SECONDS = 60.0  # seconds without any worker until the work is given up

Progress = Callable[[int], None] | None


@dataclass(frozen=True)
class _Tree:
    """The tasks of a source, and the keys of some: what each partition has seen, in order, and the sum of all."""

    source: Source | DaskTasks
    graph: Mapping[Any, Any]
    seen: Sequence[Any]
    root: Any

    @property
    def wanted(self) -> list[Any]:
        """Keys of all results that are wanted."""
        return [*self.seen, self.root]


def run(
    sources: Sequence[Source | DaskTasks],
    nan: str = "raise",
    progress: Progress = None,
    client: Any = None,
    lens: RowLens | None = None,
) -> list[tuple[str, Reduction]]:
    """What each source is reduced to; `progress` is told the rows of each partition.

    Partitions are reduced by `client`, by the active client, or by the scheduler that Dask is set to. Rows in the
    memory of this process are reduced here, since sending them would take longer.
    """
    client = _find_client() if client is None else _check_client(client)
    threads = thread_count() if client is None else sum(client.nthreads().values())
    found: dict[int, Reduction] = {}
    trees: dict[int, _Tree] = {}
    for number, source in enumerate(sources):
        if isinstance(source, Source) and source.here:
            found[number] = local.run([source], nan, progress, lens=lens)[0][1]
        elif isinstance(source, Source) and not source.partitions:
            found[number] = Reduction(source.name)
        else:
            trees[number] = _plan_tree(source, threads, lens, travels=client is not None)
    watches = [_Watch(tree.source, nan, progress) for tree in trees.values()]
    if trees:
        compute = _compute_locally if client is None else _compute_on_cluster
        roots = compute([*trees.values()], watches, client)
        found |= dict(zip(trees, roots, strict=True))
    for watch, number in zip(watches, trees, strict=True):
        watch.check_complete(found[number])
    return [(source.name, found[number]) for number, source in enumerate(sources)]


def _find_client() -> Any:
    """The client that Dask would use now, if any."""
    dask = optional.load("dask", "dask", "dask", "engine='dask'")
    distributed = sys.modules.get("distributed")  # who has a client has imported it
    if distributed is None or dask.config.get("scheduler", "distributed") not in ("distributed", "dask.distributed"):
        return None
    try:
        return _check_client(distributed.default_client())
    except ValueError:  # there is none
        return None


def _check_client(client: Any) -> Any:
    if not (hasattr(client, "compute") and hasattr(client, "nthreads")):
        raise InputError(
            "engine", client, "is not a Dask client", f"pass a distributed.Client, or {arg('engine', 'dask')}"
        )
    if client.asynchronous:
        raise InputError(
            problem="the Dask client is asynchronous, but its result is waited for", remedy="make it with Client(...)"
        )
    return client


def _plan_tree(source: Source | DaskTasks, threads: int, lens: RowLens | None, travels: bool) -> _Tree:
    """Tasks that reduce the partitions of a source, and tasks that merge what these give."""
    (shared,) = make_keys("crossfusion-lens", 1)  # a lens travels once, not with each task
    graph: dict[Any, Any] = {shared: partial(_reduce_leaf, lens) if isinstance(source, DaskTasks) else lens}
    if isinstance(source, DaskTasks):
        graph |= {**source.graph} | {leaf: (*source.graph[leaf], shared) for leaf in source.leaves}
        level = list(source.leaves)
    else:
        if travels:
            _check_picklable(source)
        source = merge_partitions(source, TASKS_PER_THREAD * max(1, threads))
        level = make_keys("crossfusion-partition", len(source.partitions))
        graph |= {
            key: (partial(reduce_partition, partition, source.name), shared)
            for key, partition in zip(level, source.partitions, strict=True)
        }
    seen: list[Any] = []
    while len(level) > 1 or not seen:
        if not seen and len(level) <= MAX_WATCHED:
            seen = make_keys("crossfusion-seen", len(level))
            graph |= {key: (_get_seen, reduction) for key, reduction in zip(seen, level, strict=True)}
            continue
        below, level = level, make_keys("crossfusion-merge", -(-len(level) // FAN_IN))
        graph |= {key: (merge_reductions, below[k * FAN_IN : (k + 1) * FAN_IN]) for k, key in enumerate(level)}
    return _Tree(source, graph, seen, level[0])


def _reduce_leaf(lens: RowLens | None, chunk: Chunk | None, name: str) -> Reduction:
    return Reduction(name) if chunk is None else reduce_chunk(chunk, name, lens=lens)


def draw(tasks: DaskTasks, share: float, seed: int, client: Any = None) -> list[Chunk]:
    """Some of the rows of a collection, each with this probability, drawn where they lie."""
    client = _find_client() if client is None else _check_client(client)
    base, threaded = (
        optional.load(f"dask.{module}", "dask", "dask", "engine='dask'") for module in ("base", "threaded")
    )
    works = make_keys("crossfusion-draw", len(tasks.leaves))
    graph = {**tasks.graph}
    for number, (leaf, work) in enumerate(zip(tasks.leaves, works, strict=True)):
        graph |= {work: partial(_draw_leaf, share, (seed, number)), leaf: (*tasks.graph[leaf], work)}
    get = (base.get_scheduler() or threaded.get) if client is None else client.get
    with _translate_errors([_Tree(tasks, graph, [], None)]):
        return [chunk for chunk in get(graph, list(tasks.leaves)) if chunk is not None]


def _draw_leaf(share: float, seed: Sequence[int], chunk: Chunk | None, _name: str) -> Chunk | None:
    """Finite rows of a chunk, each with this probability."""
    if chunk is None:
        return None
    chosen = np.flatnonzero(np.random.default_rng(seed).random(chunk.rows.shape[0]) < share)
    rows = chunk.rows[chosen] if isinstance(chunk.rows, np.ndarray) else chunk.rows[chosen].toarray()
    finite = find_finite_rows(rows)
    return Chunk(rows[finite], chunk.keys.take(chosen[finite]))


def _get_seen(reduction: Reduction) -> RowCounts:
    return reduction.seen


def _check_picklable(source: Source) -> None:
    """Refuse what only this process can read, such as an open connection."""
    dumps = optional.load("cloudpickle", "cloudpickle", "dask", "engine='dask'").dumps
    try:
        dumps(source.partitions[0])
    except Exception as problem:
        raise InputError(
            problem=f"{source.name} can be read by this process only, not by Dask workers",
            remedy=f"use {arg('engine', 'local')}",
        ) from problem


class _Watch:
    """Sees the partitions of a source in their order, tells the progress, and judges."""

    def __init__(self, source: Source | DaskTasks, nan: str, progress: Progress) -> None:
        self._source, self._nan, self._progress = source, nan, progress
        self._early: dict[int, RowCounts] = {}
        self._next = 0
        self._seen = RowCounts()

    def see(self, number: int, seen: RowCounts) -> None:
        """Take note of a partition; refuse rows that are not finite once it is known which is the first."""
        if self._progress is not None:
            self._progress(seen.rows)
        self._early[number] = seen
        while self._next in self._early:
            self._seen += self._early.pop(self._next)
            self._next += 1
        if self._nan == "raise":
            rows = self._source.rows
            self._seen.settle(self._source.name, "raise", so_far=rows is None or self._seen.rows < rows)

    def check_complete(self, reduction: Reduction) -> None:
        """Refuse a sum that does not hold the rows that there are."""
        name, rows = self._source.name, self._source.rows
        if reduction.seen != self._seen:
            raise EngineError(
                f"the parts of {name} had {self._seen.rows} rows when they were read, but the sum has"
                f" {reduction.seen.rows}",
                "they changed while they were read: summarize them again",
            )
        if rows is not None and reduction.seen.rows != rows:
            raise EngineError(
                f"{name} should have {rows} rows, but {reduction.seen.rows} were read",
                "it changed while it was read, or its chunk sizes are wrong",
            )


def _merge_graphs(trees: Sequence[_Tree]) -> dict[Any, Any]:
    return {key: task for tree in trees for key, task in tree.graph.items()}


def _compute_locally(trees: Sequence[_Tree], watches: Sequence[_Watch], _: Any) -> list[Reduction]:
    """Results from the scheduler that Dask is set to, threads of this process unless told otherwise."""
    base, threaded, callbacks = (
        optional.load(f"dask.{module}", "dask", "dask", "engine='dask'") for module in ("base", "threaded", "callbacks")
    )
    place = {key: (watch, k) for tree, watch in zip(trees, watches, strict=True) for k, key in enumerate(tree.seen)}

    def done(key: Any, result: Any, *_: Any) -> None:
        if key in place:
            watch, number = place.pop(key)
            watch.see(number, result)

    get = base.get_scheduler() or threaded.get
    with _translate_errors(trees), callbacks.Callback(posttask=done):
        found = get(_merge_graphs(trees), [tree.wanted for tree in trees])
        for tree, results in zip(trees, found, strict=True):
            for key, seen in zip(tree.wanted, results, strict=True):
                done(key, seen)  # where the scheduler has not told it before
        return [results[-1] for results in found]


def _compute_on_cluster(trees: Sequence[_Tree], watches: Sequence[_Watch], client: Any) -> list[Reduction]:
    """Results from a cluster; whatever goes wrong, nothing of it goes on running."""
    dask = optional.load("dask", "dask", "dask", "engine='dask'")
    quiet = {"distributed.admin.large-graph-warning-threshold": "1TB"}  # labels may be many, but rows are many more
    futures: list[Any] = []
    with _translate_errors(trees):
        try:
            patience = _Patience(client)
            with dask.config.set(quiet):
                futures += client.get(_merge_graphs(trees), [tree.wanted for tree in trees], sync=False)
            roots = []
            for (*seen, root), watch in zip(futures, watches, strict=True):
                for number, future in enumerate(seen):
                    watch.see(number, patience.result(future))
                roots.append(patience.result(root))
            return roots
        except BaseException:
            with suppress(Exception):  # the error that led here says more
                client.cancel([future for several in futures for future in several])
            raise


class _Patience:
    """Waits for results, but not for ever when all workers are gone."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._alive = time.monotonic()

    def result(self, future: Any) -> Any:
        """The result of a task, once it is there."""
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if future.status == "error":  # the task's own, not ours
                    return future.result()
                self._look()

    def _look(self) -> None:
        now = time.monotonic()
        if self._client.nthreads():
            self._alive = now
        elif now - self._alive > PATIENCE_SECONDS:
            raise EngineError(
                f"there has been no Dask worker for {now - self._alive:.0f} s, and the work is not complete",
                "start workers and call again",
            )


@contextmanager
def _translate_errors(trees: Sequence[_Tree]) -> Iterator[None]:
    """Errors of Dask and of files, in one sentence of ours; errors of ours and of users' own tasks pass as they are."""
    names = ", ".join(tree.source.name for tree in trees[:3]) + (", ..." if len(trees) > 3 else "")
    try:
        yield
    except CrossfusionError:
        raise
    except (CancelledError, TimeoutError) as problem:
        raise EngineError(
            f"Dask gave up the work on {names} ({first_line(problem)})", "there is no result, so call again"
        ) from problem
    except OSError as problem:
        if type(problem).__module__.startswith("distributed"):
            raise EngineError(
                f"the connection to Dask was lost ({first_line(problem)})", "there is no result, so call again"
            ) from problem
        raise FileError(
            problem=f"a Dask worker cannot read its part of {names} ({first_line(problem)})",
            remedy="every worker needs the file, under the same path",
        ) from problem
    except Exception as problem:
        if type(problem).__name__ != "KilledWorker":
            raise
        raise EngineError(
            f"workers died repeatedly while they read a part of {names}, probably for lack of memory",
            "give them more, or make the chunks smaller",
        ) from problem
