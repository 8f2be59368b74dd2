"""Work on all cores: one process each, fresh interpreters of one thread, which end with their parent."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from crossfusion._base import CrossfusionError, arg, check_whole, thread_count

SINGLE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
UNUSED = ("PYTORCH", "JAX", "TENSORFLOW", "CUPY")  # which POT would import for seconds, and is not asked to use

T = TypeVar("T")
R = TypeVar("R")


def count_workers(workers: int | None = None) -> int:
    """Check a number of processes, by default one per core."""
    if workers is not None:
        check_whole(workers, "workers")
    return workers or thread_count()


def compute_all(work: Callable[[T], R], tasks: Sequence[T], workers: int) -> Generator[tuple[T, R], None, None]:
    """Compute picklable tasks in several processes, begun in order: yield each with its result when finished."""
    if not tasks:
        return
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(workers, len(tasks)), mp_context=context, initializer=_prepare)
    try:
        with _set_environment():
            futures = {pool.submit(work, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as problem:
        raise CrossfusionError(
            problem="a worker ended before its work was done, perhaps for lack of memory",
            remedy=f"run the same command again, with fewer {arg('workers')}; finished tasks are kept",
        ) from problem
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()  # what is half done is given up at once
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _set_environment() -> Iterator[None]:
    """What workers inherit: one thread each, as sums of several threads would depend on how many there are."""
    wanted = dict.fromkeys(SINGLE, "1") | {f"POT_BACKEND_DISABLE_{name}": "1" for name in UNUSED}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _prepare() -> None:
    """Leave interrupts to the parent, and end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
