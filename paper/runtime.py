"""Time against the number of rows, for CFD and the distances that it is compared with."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion import FileError, __version__, distances
from crossfusion.study import make_folder, save_figure, set_figure_style, write_table, write_text
from paper.checks import check_positive, check_seed, check_whole
from paper.growth import MEASURES, curve, draw, fit_exponents, render_markdown
from paper.timing import LEAST, best_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MEASURES", "QUICK", "curve", "fit_exponents", "is_feasible", "read", "run", "sizes"]

QUICK: Mapping[str, Any] = {"largest": 10**4, "cap": 0.5}  # parameters of `run` for a first look
SMALLEST = 100
STEEPEST = 3.0  # power of the rows beyond which a growth between two points is noise
ONCE = 1e-9  # seconds: a budget that one call exceeds
MEMORY = 2e9  # bytes that a measure may take for its pairs of rows
WIDTHS = (96, 192, 384, 768)  # features, for the second half of "linear in rows and features"
MODERATE = 1000  # rows at which the other measures' features are varied
KEY = b"crossfusion.runtime"


def run(
    out: Path,
    *,
    dim: int = 128,
    cap: float = 10.0,
    largest: int = 10**6,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> "pa.Table":
    """Time every measure at growing numbers of rows, and write table, text and figure.

    Parameters
    ----------
    out : path
        Folder of ``runtime.parquet``, ``runtime.md``, ``runtime.png`` and ``runtime.svg``; made if it does not exist.
    dim : int
        Features.
    cap : float
        Seconds: a measure stops before the first number of rows at which one call is expected to take longer.
    largest : int
        Most rows a group.
    seed : int
        Seed of the rows.
    progress : function, optional
        Shown a line about each number of rows.

    Returns
    -------
    pyarrow.Table
        A row a measure and point: ``sweep`` (what grows: "rows" or "dim"), ``measure``, ``rows`` of each group,
        ``dim``, ``seconds`` of one call (best of several), and ``ratio`` to CFD's at the same point.
    """
    check_whole(largest, "largest", SMALLEST)
    check_whole(dim, "dim")
    check_positive(cap, "cap")
    check_seed(seed)
    tell = progress or (lambda _: None)
    make_folder(out)
    points = [*_over_rows(dim, cap, largest, seed, tell), *_over_features(largest, seed, tell)]
    points += _others_over_features(points, cap, seed, tell)
    table = _table(points, dim, cap)
    write_table(out / "runtime.parquet", table)
    write_text(out / "runtime.md", render_markdown(table))
    with set_figure_style():
        save_figure(draw(table), out, "runtime")
    return table


def read(out: Path) -> "pa.Table":
    """Table that `run` wrote.

    Parameters
    ----------
    out : path
        The folder.

    Returns
    -------
    pyarrow.Table
        As `run` returns it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = out / "runtime.parquet"
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as problem:
        raise FileError(path, "is not readable", "run 'python -m paper runtime'") from problem
    if KEY not in (table.schema.metadata or {}):
        raise FileError(path, "was not written by 'python -m paper runtime'", "choose its folder")
    return table


def sizes(largest: int) -> list[int]:
    """Numbers of rows: powers of ten and the half steps between them.

    Parameters
    ----------
    largest : int
        Where to stop.

    Returns
    -------
    list of int
        From 100 on.
    """
    steps = (round(10 ** (half / 2)) for half in range(4, 40))
    return [n for n in steps if n <= largest]


def _over_rows(dim: int, cap: float, largest: int, seed: int, tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Points of all measures, each as far as it gets."""
    a, b = _clouds(max(sizes(largest)), dim, seed)
    active: dict[str, dict[int, float]] = {name: {} for name in MEASURES}
    for name in active:
        distances[name](a[:SMALLEST], b[:SMALLEST])  # imports and compilers are not what is measured
    for rows in sizes(largest):
        active = {name: times for name, times in active.items() if is_feasible(name, times, rows, cap)}
        tell(f"runtime: {rows:,} rows, {', '.join(MEASURES[name].title for name in active)}")
        best = _time_measures({name: partial(distances[name], a[:rows], b[:rows]) for name in active}, cap / 5)
        for name, seconds in best.items():
            active[name][rows] = seconds
            yield {"sweep": "rows", "measure": name, "rows": rows, "dim": dim, "seconds": seconds}


def _time_measures(calls: Mapping[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Best times of at least two calls each, as the next point is predicted from them."""
    best = best_of(calls, budget)
    single = [name for name, seconds in best.items() if seconds >= LEAST * budget]  # which sat out after the first
    again = best_of({name: calls[name] for name in single}, ONCE)
    return {name: min(seconds, again.get(name, seconds)) for name, seconds in best.items()}


def _over_features(largest: int, seed: int, tell: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Points of CFD at one number of rows and growing numbers of features."""
    rows = max(largest // 10, SMALLEST)  # with which all widths take one route, NumPy's or the compiled one
    tell(f"runtime: CFD at {rows:,} rows, {WIDTHS[0]} to {WIDTHS[-1]} features")
    clouds = {width: _clouds(rows, width, seed) for width in WIDTHS}
    best = best_of({str(width): partial(distances["cfd"], *pair) for width, pair in clouds.items()}, 0.5)
    for width, seconds in best.items():
        yield {"sweep": "dim", "measure": "cfd", "rows": rows, "dim": int(width), "seconds": seconds}


def _others_over_features(
    points: Sequence[Mapping[str, Any]], cap: float, seed: int, tell: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Points of the other measures at growing numbers of features, as far as a linear growth stays within the cap."""
    known = {p["measure"]: p for p in points if p["sweep"] == "rows" and p["rows"] == MODERATE}
    tell(f"runtime: the others at {MODERATE:,} rows, {WIDTHS[0]} to {WIDTHS[-1]} features")
    clouds = {width: _clouds(MODERATE, width, seed) for width in WIDTHS}
    for name, point in known.items():
        widths = [width for width in WIDTHS if point["seconds"] * max(width / point["dim"], 1) <= cap]
        if name == "cfd" or len(widths) < 3:  # which no growth is fitted to
            continue
        for width in widths:
            distances[name](*(rows[:SMALLEST] for rows in clouds[width]))
        best = best_of({str(width): partial(distances[name], *clouds[width]) for width in widths}, min(cap / 5, 0.5))
        for wide, seconds in best.items():
            yield {"sweep": "dim", "measure": name, "rows": MODERATE, "dim": int(wide), "seconds": seconds}


def _clouds(rows: int, dim: int, seed: int) -> list[NDArray[np.float32]]:
    """Two clouds, the second moved by 2 along the first feature."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((rows, dim), dtype=np.float32) for _ in range(2))
    b[:, 0] += 2
    return [a, b]


def is_feasible(name: str, times: Mapping[int, float], rows: int, cap: float) -> bool:
    """Whether the next point is expected to stay within the cap, by the growth between the last two points.

    A single point that took too long for reasons of its own raises both the time and the growth, so neither point's
    prediction may exceed the steepest growth from the other.
    """
    if MEASURES[name].pair_bytes * float(rows) ** 2 > MEMORY:
        return False
    if len(times) < 2:
        return True
    (before, slow), (last, seconds) = list(times.items())[-2:]
    growth = min(max(1.0, math.log(seconds / slow) / math.log(last / before)), STEEPEST)
    expected = min(seconds * (rows / last) ** growth, slow * (rows / before) ** STEEPEST)
    return bool(expected <= cap)


def _table(points: list[dict[str, Any]], dim: int, cap: float) -> "pa.Table":
    import pyarrow as pa

    base = {row["rows"]: row["seconds"] for row in points if row["sweep"] == "rows" and row["measure"] == "cfd"}
    rows = [{**row, "ratio": row["seconds"] / base[row["rows"]] if row["sweep"] == "rows" else None} for row in points]
    kinds = {"sweep": pa.string(), "measure": pa.string(), "rows": pa.int64(), "dim": pa.int64()}
    schema = pa.schema([*kinds.items(), ("seconds", pa.float64()), ("ratio", pa.float64())])
    about = f'{{"version": "{__version__}", "dim": {dim}, "cap": {cap}}}'
    return pa.Table.from_pylist(rows, schema).replace_schema_metadata({KEY: about.encode()})
