"""The kernel against the machine's read bandwidth and against what else people use."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import best_times, peak_memory
from crossfusion import InputError, cfd, summarize
from crossfusion._base import thread_count
from crossfusion.moments import kernel
from paper.checks import check_positive, check_whole, load_library

GROUPS = 200
WIDTHS = (64, 256, 512, 1024)
PEER_BYTES = 200 * 10**6  # slower sides work on a part of the rows; all are compared per byte


def run(*, gigabytes: float = 1.6, dim: int = 256, repeats: int = 7) -> dict[str, Any]:
    """Measure everything and return it by name, with the aim of each ratio.

    Parameters
    ----------
    gigabytes : float
        Size of the float32 rows.
    dim : int
        Number of features.
    repeats : int
        Rounds, in which the sides alternate; the best of each side counts.

    Returns
    -------
    dict
        A title, the settings, and value and aim of each ratio.
    """
    check_whole(dim, "dim")
    check_whole(repeats, "repeats")
    check_positive(gigabytes, "gigabytes")
    number = int(gigabytes * 1e9 / 4 / dim)
    if number < 1000:
        raise InputError(
            "gigabytes", gigabytes, f"is too little to measure at {dim} features", "ask for at least 1000 rows"
        )
    rows, codes = _data(number, dim)
    ratios: dict[str, dict[str, Any]] = {}
    _bandwidth(ratios, rows, codes, repeats)
    _labels(ratios, rows.reshape(-1)[: rows.size // 64 * 64].reshape(-1, 64), repeats)
    _first_call(ratios, repeats)
    _peers(ratios, rows, repeats)
    _memory(ratios, rows, codes)
    del rows
    _growth(ratios)
    _matrix(ratios, repeats)
    title = f"{number:,} × {dim} float32 ({gigabytes:g} GB), {thread_count()} threads, best of {repeats}"
    return {"title": title, "rows": number, "dim": dim, "threads": thread_count(), "ratios": ratios}


def _data(number: int, dim: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    rows = np.empty((number, dim), np.float32)
    for start in range(0, number, 65536):
        rows[start : start + 65536] = rng.standard_normal(rows[start : start + 65536].shape, dtype=np.float32)
    return rows, rng.integers(0, GROUPS, number)


def _bandwidth(ratios: dict[str, Any], rows: Any, codes: Any, repeats: int) -> None:
    """Two groups, and many in random order, at several widths, beside a threaded sum of the same array."""
    for dtype in ("float32", "float64"):
        found = [_of_read(rows, codes, width, dtype, repeats) for width in WIDTHS]
        for k, (name, mean, least) in enumerate(
            (("two groups", 0.8, 0.65), (f"{GROUPS} groups at random", 0.55, 0.45))
        ):
            values = [one[k] for one in found]
            ratios[f"{dtype}, {name}, of the read bandwidth: mean"] = {"value": np.mean(values), "aim": f"≥ {mean}"}
            for width, value in zip(WIDTHS, values, strict=True):
                ratios[f"{dtype}, {name}, {width} features"] = {"value": value, "aim": f"≥ {least}"}


def _of_read(rows: Any, codes: Any, width: int, dtype: str, repeats: int) -> tuple[float, float]:
    number = rows.nbytes // (width * np.dtype(dtype).itemsize)
    values = rows.reshape(-1)[: number * width].reshape(number, width).astype(dtype, copy=False)
    half, labels = number // 2, np.resize(codes, number).astype(np.int32)
    best = best_times(
        {
            "read": lambda: _read(values),
            "two groups": lambda: cfd(values[:half], values[half:]),
            "many groups": lambda: kernel.reduce_rows(values, labels, GROUPS),
        },
        repeats,
    )
    return best["read"] / best["two groups"], best["read"] / best["many groups"]


def _read(values: NDArray[Any]) -> None:
    """Sum the same bytes on all cores."""
    chunks = np.array_split(values.reshape(-1), thread_count())
    with ThreadPoolExecutor(len(chunks)) as pool:
        list(pool.map(np.sum, chunks))


FIRST_CALL = """
import time, numpy as np, crossfusion as cf
x = np.ones((100_000, 250), np.float32)
for _ in range(2):
    start = time.perf_counter()
    cf.cfd(x[:50_000], x[50_000:])
    print(time.perf_counter() - start)
"""


def _first_call(ratios: dict[str, Any], repeats: int) -> None:
    """Seconds that the first call in a new process takes beyond the second, on 100 MB, without any cache."""
    extra = []
    for _ in range(min(repeats, 5)):
        with TemporaryDirectory() as folder:
            environment = os.environ | {"XDG_CACHE_HOME": folder, "HOME": folder}
            done = subprocess.run(
                [sys.executable, "-c", FIRST_CALL], check=True, capture_output=True, text=True, env=environment
            )
        first, second = map(float, done.stdout.split())
        extra.append(first - second)
    ratios["first call in a new process beyond the second, 100 MB, seconds"] = {"value": min(extra), "aim": "≤ 0.2"}


def _labels(ratios: dict[str, Any], rows: Any, repeats: int) -> None:
    """Rows of few features, whose labels take as long to read as they do."""
    pandas = load_library("pandas", "pandas", "pandas", "labels in a Categorical")
    codes = np.random.default_rng(0).integers(0, GROUPS, len(rows))
    names = np.array([f"site_{k:03}" for k in range(GROUPS)])
    texts = names[codes]
    kinds = {
        "200 string labels": {"group": texts},
        "200 Python strings": {"group": names.astype(object)[codes]},
        "200 categories": {"group": pandas.Categorical.from_codes(codes, names)},
        "20 × 10 strings, two factors": {"a": names[codes // 10], "b": names[codes % 10]},
    }
    sides: dict[str, Callable[[], Any]] = {kind: partial(summarize, rows, by=by) for kind, by in kinds.items()}
    sides["cfd, 200 string labels"] = partial(cfd, rows, labels=texts)
    best = best_times({"read": lambda: _read(rows), **sides}, repeats)
    for kind in sides:
        ratios[f"{kind} on 64 features, of the bandwidth"] = {"value": best["read"] / best[kind], "aim": "≥ 0.4"}


def _compute_plainly(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The formulas of the paper, as one writes them in NumPy."""
    both = np.concatenate([a, b])
    weight_a, weight_b = len(a) / len(both), len(b) / len(both)
    spread_a, spread_b, spread = (((x - x.mean(axis=0)) ** 2).sum(axis=1).mean() for x in (a, b, both))
    return float(-np.log((weight_a * spread_a + weight_b * spread_b) / spread))


def _peers(ratios: dict[str, Any], rows: Any, repeats: int) -> None:
    metrics = load_library("sklearn.metrics", "scikit-learn", "bench", "the comparison with calinski_harabasz_score")
    some = rows[: PEER_BYTES // rows[0].nbytes]
    share = len(some) / len(rows)
    half = len(rows) // 2
    labels = np.arange(len(some)) % 2
    sides = {
        "ours": lambda: cfd(rows[:half], rows[half:]),
        "obvious NumPy": lambda: _compute_plainly(some[: len(some) // 2], some[len(some) // 2 :]),
        "calinski_harabasz_score": lambda: metrics.calinski_harabasz_score(some, labels),
    }
    best = best_times(sides, min(repeats, 3))
    ratios["times as fast as the obvious NumPy"] = {
        "value": best["obvious NumPy"] / share / best["ours"],
        "aim": "≥ 8",
    }
    ratios["times as fast as calinski_harabasz_score"] = {
        "value": best["calinski_harabasz_score"] / share / best["ours"],
        "aim": "≥ 20",
    }


def _memory(ratios: dict[str, Any], rows: Any, codes: Any) -> None:
    half = len(rows) // 2
    extra = {
        "cfd(a, b)": peak_memory(lambda: cfd(rows[:half], rows[half:])),
        "200 groups": peak_memory(lambda: summarize(rows, by={"group": codes})),
    }
    for name, size in extra.items():
        ratios[f"peak extra memory of {name}, MB"] = {"value": size / 1e6, "aim": "< 64"}


def _growth(ratios: dict[str, Any]) -> None:
    """Exponent of time against rows and against features, over three decades."""
    flat = np.random.default_rng(0).standard_normal(480_000_000, dtype=np.float32)
    numbers = [30_000, 300_000, 3_000_000, 30_000_000]
    _fit(ratios, "rows", numbers, [flat[: n * 16].reshape(n, 16) for n in numbers])
    dims = [64, 640, 6_400, 64_000]
    _fit(ratios, "features", dims, [flat[: 7_000 * d].reshape(7_000, d) for d in dims])


def _fit(ratios: dict[str, Any], what: str, sizes: Sequence[int], inputs: Sequence[NDArray[Any]]) -> None:
    def reduce(rows: NDArray[Any]) -> Callable[[], Any]:
        return lambda: kernel.reduce_rows(rows, None, 1)

    call = best_times({"call": reduce(inputs[0][:1])}, 100)["call"]  # alone: after many rows, the caches are cold
    best = best_times(dict(zip(map(str, sizes), map(reduce, inputs), strict=True)), 7)
    times = np.log([best[str(size)] - call for size in sizes])  # beyond the fixed cost of a call
    slope, offset = np.polyfit(np.log(sizes), times, 1)
    worst = np.max(np.abs(times - offset - slope * np.log(sizes)))
    ratios[f"exponent of time in {what}, {sizes[0]:,} to {sizes[-1]:,}"] = {
        "value": float(slope),
        "aim": f"1 (fit within × {np.exp(worst):.2f})",
    }


def _matrix(ratios: dict[str, Any], repeats: int) -> None:
    rng = np.random.default_rng(0)
    means = rng.standard_normal((1000, 1024))
    summary = summarize(np.repeat(means, 2, axis=0), by={"group": np.repeat(np.arange(1000), 2)})
    sides: dict[str, Callable[[], Any]] = {
        "product": lambda: means @ means.T,
        "pairwise": lambda: summary.pairwise("group"),
    }
    sides["pairwise"]()
    best = best_times(sides, repeats)
    ratios["1000-group, 1024-dim pairwise matrix, in matrix products"] = {
        "value": best["pairwise"] / best["product"],
        "aim": "≤ 10",
    }
