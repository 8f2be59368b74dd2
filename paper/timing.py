"""How long calls take, next to each other."""

import math
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

ROUNDS = 25
RESOLVED = 0.001  # seconds that a timing lasts at least, by calling more than once
LEAST = 3  # rounds that all but the slowest take part in


def best_of(calls: Mapping[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Seconds of one call of each, the fastest of many rounds in which they take turns.

    Other work on the machine only ever adds time, so the fastest is the best estimate, and many short timings find it
    sooner than few long ones. Who has spent the budget sits out after three rounds, or after the first if it is slow.
    """
    best = dict.fromkeys(calls, math.inf)
    spent = dict.fromkeys(calls, 0.0)
    for turn in range(ROUNDS):
        for name, call in calls.items():
            if spent[name] >= budget * (1 if turn >= LEAST else LEAST):
                continue
            start = perf_counter()
            best[name] = min(best[name], _seconds(call))
            spent[name] += perf_counter() - start
    return best


def _seconds(call: Callable[[], Any]) -> float:
    """Time of one call, from as many as it takes to be well above the resolution of the clock."""
    start = perf_counter()
    call()
    first = perf_counter() - start
    times = math.ceil(RESOLVED / max(first, 1e-6))
    if times == 1:
        return first
    start = perf_counter()
    for _ in range(times):
        call()
    return min(first, (perf_counter() - start) / times)
