"""Threads for work that consists of matrix products.

BLAS has its own threads. Called from several threads at once, or on busy cores, they mostly wait for one
another. So each product runs on one BLAS thread, and the tasks run on our threads. If BLAS cannot be limited
(threadpoolctl, which scikit-learn brings along, is missing), one product runs at a time, on the threads of BLAS.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from crossfusion._base.typing import FloatArray

_guard = threading.Lock()
_product = threading.Lock()
_limited = 0
_limits: Any = None


def multiply_matrices(a: FloatArray, b: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Multiply matrices, inside `map_threads`."""
    if _load_blas() is not None:
        return np.matmul(a, b, out=out)
    with _product:
        return np.matmul(a, b, out=out)


@contextmanager
def map_threads(tasks: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Provide a `map` on all cores for tasks that multiply matrices; results keep their order."""
    threads = min(thread_count(), tasks)
    with limit_blas():
        if threads < 2:
            yield map
        else:
            with ThreadPoolExecutor(threads) as pool:
                yield pool.map


@lru_cache(maxsize=1)
def _load_blas() -> Any:
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ModuleNotFoundError:
        return None
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


@contextmanager
def limit_blas() -> Iterator[None]:
    """Limit BLAS to one thread; the last of nested users restores the original limit."""
    blas = _load_blas()
    _count_users(blas, 1)
    try:
        yield
    finally:
        _count_users(blas, -1)


def _count_users(blas: Any, change: int) -> None:
    global _limited, _limits
    with _guard:
        if blas is not None and _limited == 0:
            _limits = blas.limit(limits=1)
        _limited += change
        if blas is not None and _limited == 0:
            _limits.restore_original_limits()


def thread_count() -> int:
    """Return the number of threads: the cores this process may use, or fewer if OMP_NUM_THREADS says so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wish = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(wish)) if wish.isdecimal() and int(wish) > 0 else cores
