"""How much faster Dask is with two worker processes than with one."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion import optional
from crossfusion.benchmarks.timing import best_times
from crossfusion.collect import collect
from crossfusion.sources import open_file
from crossfusion.sources.block import with_keys

PIECE = 65536  # rows that are made and written at a time


def speedup(
    *, gigabytes: float = 1.0, dim: int = 256, workers: int = 2, repeats: int = 3, folder: str | None = None
) -> dict[str, float]:
    """Times of one and of several one-thread worker processes over the same warm .npy file, taking turns.

    Parameters
    ----------
    gigabytes : float
        Size of the float32 rows, which are made, and deleted after.
    dim : int
        Number of features.
    workers : int
        Processes of the larger cluster.
    repeats : int
        Rounds, in which the clusters alternate; the best of each counts.
    folder : path, optional
        Where the file is made.

    Returns
    -------
    dict
        `one` and `several`, in seconds, and `ratio`.
    """
    with tempfile.TemporaryDirectory(dir=folder) as place, ExitStack() as stack:
        path = Path(place) / "rows.npy"
        _write(path, int(gigabytes * 1e9 / 4 / dim), dim)
        clients = {name: stack.enter_context(_client(size, stack)) for name, size in _sizes(workers)}
        sides = {name: _side(path, client) for name, client in clients.items()}
        for work in sides.values():
            work()  # the workers load what they need, and the file is warm
        best = best_times(sides, repeats)
    return best | {"ratio": best["one"] / best["several"]}


def _sizes(workers: int) -> tuple[tuple[str, int], ...]:
    return ("one", 1), ("several", workers)


def _write(path: Path, number: int, dim: int) -> None:
    rng = np.random.default_rng(0)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (number, dim))
    for start in range(0, number, PIECE):
        rows[start : start + PIECE] = rng.standard_normal(rows[start : start + PIECE].shape, dtype=np.float32)
    rows.flush()


def _client(workers: int, stack: ExitStack) -> Any:
    """Client of a new cluster of processes of one thread each."""
    distributed = optional.load("distributed", "distributed", "dask", "the measurement of Dask")
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    )
    return distributed.Client(stack.enter_context(cluster), set_as_default=False)


def _side(path: Path, client: Any) -> Callable[[], Any]:
    source = with_keys(open_file(path, []), {"group": 0})
    return lambda: collect([source], engine=client)
