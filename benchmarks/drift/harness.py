"""What all detectors run in: streams from files, alarms, time and memory of a window to standard output, as JSON.

It needs NumPy only, since the detectors of others run in environments of their own.
"""

import contextlib
import io
import json
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Fitted = Callable[[Any], Callable[[Any], bool]]


def main(detectors: Mapping[str, Fitted], by_period: bool = False) -> None:
    """Run detectors on the files that are named: each stream a file of shape (streams, periods, rows, features).

    The first argument is the number of reference periods. A detector makes a function of a window's rows from the
    reference's, which are one block unless they are wanted by period.
    """
    warnings.simplefilter("ignore")
    number, *paths = sys.argv[1:]
    split = int(number)
    found = {}
    for name, fitted in detectors.items():
        with contextlib.redirect_stdout(io.StringIO()):
            found[name] = _of(fitted, split, paths, by_period)
    print(json.dumps(found))


def _of(fitted: Fitted, split: int, paths: Sequence[str], by_period: bool) -> dict[str, Any]:
    alarms: list[list[list[bool]]] = []
    seconds: list[float] = []
    for path in paths:
        alarms.append([])
        for stream in np.load(path):
            alarm = fitted(_reference(stream, split, by_period))
            answers = []
            for window in stream[split:]:
                start = time.perf_counter()
                answers.append(alarm(window.copy()))
                seconds.append(time.perf_counter() - start)
            alarms[-1].append(answers)
    stream = np.load(paths[0])[0]
    alarm = fitted(_reference(stream, split, by_period))
    tracemalloc.start()
    alarm(stream[split].copy())
    peak = tracemalloc.get_traced_memory()[1]
    return {"alarms": alarms, "seconds": sorted(seconds)[len(seconds) // 2], "bytes": peak}


def _reference(stream: Any, split: int, by_period: bool) -> Any:
    rows = stream[:split]
    return rows.copy() if by_period else rows.reshape(-1, rows.shape[-1]).copy()
