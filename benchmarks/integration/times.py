"""Time of metrics of scib-metrics over ours: each in a process of its own, which is ended at the cap."""

import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection

from benchmarks.integration.cells import make_anndata, simulate_cells
from benchmarks.integration.peers import METRICS, Metric
from crossfusion import CrossfusionError
from crossfusion.anndata import cfd

REPEATS = 5  # of ours before and after each of theirs; the best counts
WARM = 500  # cells of a first call, so that compilers have started
ENDED = float("inf")  # seconds of what was ended
START = 600.0  # seconds to load the library and make the cells


def header(sizes: Sequence[int]) -> list[str]:
    """Names of the columns."""
    return ["scib-metrics", *(f"{size:,} cells" for size in sizes), f"growth, {sizes[0]:,} to {sizes[-1]:,}"]


def note(cap: float) -> str:
    """What the numbers are."""
    return (
        f"'>': ended after {cap:.0f} s, so it takes longer; '–': not tried, as fewer cells took longer already.\n"
        "Ours gives every distance of one embedding with its parts, theirs one number. Libraries are loaded and\n"
        "have run once on few cells; what JAX compiles for each new number of cells is in."
    )


def measure_times(
    sizes: Sequence[int], cap: float, say: Callable[[str], None], metrics: Mapping[str, Metric] = METRICS
) -> list[list[str]]:
    """A row a metric, and one of our own growth."""
    ours = {size: _Ours(size) for size in sizes}
    rows = []
    for name, work in metrics.items():
        seconds = _theirs(name, work, sizes, cap, ours, say)
        cells = [_ratio(seconds.get(size), cap, ours[size].best) for size in sizes]
        growth = seconds.get(sizes[-1], ENDED) / seconds[sizes[0]]
        rows.append([name, *cells, f"{growth:.3g}" if growth < ENDED else "–"])
    growth = ours[sizes[-1]].best / ours[sizes[0]].best
    return [*rows, ["(ours, to itself)", *["1"] * len(sizes), f"{growth:.3g}"]]


def _ratio(seconds: float | None, cap: float, ours: float) -> str:
    if seconds is None:
        return "–"
    return f"> {cap / ours:,.0f}" if seconds == ENDED else f"{seconds / ours:,.1f}"


class _Ours:
    """Our side on so many cells: the best of all times so far."""

    def __init__(self, size: int) -> None:
        cells = simulate_cells(size)
        self._adata = make_anndata(cells, X_pca=cells.x)
        self.best = ENDED

    def again(self) -> None:
        """Measure some more times."""
        for _ in range(REPEATS):
            start = time.perf_counter()
            cfd(self._adata, batch_key="batch", label_key="label", use_rep="X_pca", key_added=None)
            self.best = min(self.best, time.perf_counter() - start)


def _theirs(
    name: str, work: Metric, sizes: Sequence[int], cap: float, ours: dict[int, _Ours], say: Callable[[str], None]
) -> dict[int, float]:
    """Seconds of a metric at each size, up to the one at which it was ended."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(work, there), daemon=True)
    process.start()
    there.close()
    found: dict[int, float] = {}
    try:
        for size in sizes:
            say(f"{name}, {size:,} cells")
            ours[size].again()
            found[size] = _ask(here, size, cap)
            ours[size].again()
            if found[size] == ENDED:
                break
    finally:
        process.kill()
        process.join()
    return found


def _ask(here: Connection, size: int, cap: float) -> float:
    """Seconds that the other process needs for so many cells."""
    try:
        here.send(size)
        if not here.poll(START):
            raise CrossfusionError(
                problem=f"the cells for scib-metrics were not there after {START:.0f} s", remedy="run this again"
            )
        here.recv()
        return float(here.recv()) if here.poll(cap) else ENDED
    except (EOFError, OSError) as problem:
        raise CrossfusionError(
            problem="the process of scib-metrics ended by itself, most likely for want of memory",
            remedy="give it more, or use --quick",
        ) from problem


def _serve(work: Metric, pipe: Connection) -> None:
    """Do what is asked for, in a process of its own: make cells, say so, measure, tell the seconds."""
    small = simulate_cells(WARM)
    work(small.x, small.x, small.batch, small.label)
    while True:
        cells = simulate_cells(pipe.recv())
        pipe.send("ready")
        start = time.perf_counter()
        work(cells.x, cells.x, cells.batch, cells.label)
        pipe.send(time.perf_counter() - start)
