"""The machine that a table was measured on."""

import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from crossfusion._base import thread_count

READ_BYTES = 2**29  # more than any cache holds
ROUNDS = 5


@cache
def describe_machine() -> str:
    """Name the processor, the cores, and how fast all of them together read memory."""
    return f"{_name_processor()}, {thread_count()} of {os.cpu_count()} cores, {measure_bandwidth() / 1e9:.1f} GB/s read"


def _name_processor() -> str:
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@cache
def measure_bandwidth() -> float:
    """Bytes per second of a threaded `np.sum` over an array that no cache holds, the best of some rounds."""
    parts = np.array_split(np.ones(READ_BYTES // 4, np.float32), thread_count())
    best = np.inf
    with ThreadPoolExecutor(len(parts)) as pool:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            list(pool.map(np.sum, parts))
            best = min(best, time.perf_counter() - start)
    return READ_BYTES / best
