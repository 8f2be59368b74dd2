"""Worker processes: how much faster several are than one, and what Spark costs beside threads."""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks.scale import files
from benchmarks.timing import best_times
from crossfusion import summarize
from crossfusion._base import thread_count
from paper.checks import load_library

RATE = "Dask, one process of one thread, Parquet (GB/s)"
SIZES = (1, 2, 4)  # worker processes of one thread each


def measure(
    folder: Path, gigabytes: float, dim: int, repeats: int, tell: Callable[[str], None] | None = None
) -> list[list[str]]:
    """Lines for Dask with more and more processes, and for Spark."""
    path = folder / "rows.parquet"
    files.write_parquet(path, gigabytes, dim)
    if tell is not None:
        tell("measuring Dask")
    lines = _dask(path, gigabytes, repeats)
    if tell is not None:
        tell("measuring Spark")
    return [*lines, *_spark(folder, path, gigabytes, dim, repeats)]


def _dask(path: Path, gigabytes: float, repeats: int) -> list[list[str]]:
    best = {f"{size}": float("inf") for size in SIZES}
    with patch.dict(os.environ):  # Dask sets what limits threads, for good
        for _ in range(repeats):
            for size in SIZES:  # one cluster at a time, so that no other is in its way
                with ExitStack() as stack:
                    client = stack.enter_context(_client(size, stack))
                    work = partial(summarize, path, by="site", vectors="vector", engine=client)
                    work()  # workers load what they need
                    best[f"{size}"] = min(best[f"{size}"], best_times({"": work}, 2)[""])
    return [
        [f"Dask, {size} processes of one thread: times as fast as one", f"{best['1'] / best[f'{size}']:.2f}", aim]
        for size, aim in (
            (2, f"≥ 1.6 (model: {min(2, thread_count())})"),
            (4, f"(model: {min(4, thread_count())}, the cores)"),
        )
    ] + [[RATE, f"{gigabytes / best['1']:.2f}", "(the model's rate)"]]


def _client(workers: int, stack: ExitStack) -> Any:
    """Client of a new cluster of processes of one thread each."""
    distributed = load_library("distributed", "distributed", "dask", "the benchmark of Dask")
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    )
    return distributed.Client(stack.enter_context(cluster), set_as_default=False)


def _spark(folder: Path, path: Path, gigabytes: float, dim: int, repeats: int) -> list[list[str]]:
    """What a row costs beyond the fixed cost of a job, which a hundredth of the rows shows."""
    few = folder / "few.parquet"
    files.write_parquet(few, gigabytes / 100, dim)
    rows, less = files.count_rows(gigabytes, dim), files.count_rows(gigabytes / 100, dim)
    threads = thread_count()
    with ExitStack() as stack:
        stack.callback(_session(threads).stop)
        sides = {
            f"{engine}, {name}": partial(summarize, where, by="site", vectors="vector", engine=engine)
            for engine in ("local", "spark")
            for name, where in (("all", path), ("few", few))
        }
        for work in sides.values():
            work()
        best = best_times(sides, repeats)
    local, spark = ((best[f"{engine}, all"] - best[f"{engine}, few"]) / (rows - less) for engine in ("local", "spark"))
    return [
        ["Spark, local: time of a row, in times of threads", f"{spark / local:.1f}", "(stated)"],
        [
            "Spark, local: time to start a job, in rows of threads",
            f"{best['spark, few'] / local:,.0f}",
            "(stated)",
        ],
    ]


def _session(threads: int) -> Any:
    sql = load_library("pyspark.sql", "PySpark", "spark", "the benchmark of Spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the Python that has what is needed
    builder = sql.SparkSession.builder.master(f"local[{threads}]").config("spark.ui.enabled", "false")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
