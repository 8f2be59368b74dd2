"""How time and memory are measured."""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def rounds(sides: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Times of each side in each round, the sides taking turns."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, work in sides.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    return times


def best_times(sides: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Best time of each side, the sides taking turns."""
    return {name: min(times) for name, times in rounds(sides, repeats).items()}


def peak_memory(work: Callable[[], Any]) -> int:
    """Largest growth of the process's resident memory while `work` runs, in bytes."""
    page = os.sysconf("SC_PAGESIZE")

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)  # what was freed before would be used again without any growth
    before = highest = resident()
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.001):
            highest = max(highest, resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return highest - before
