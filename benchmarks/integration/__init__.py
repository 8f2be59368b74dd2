"""Leaderboards beside scib-metrics: the same embeddings, values and time."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.integration import mixing, times, values
from benchmarks.integration.cells import Cells, add_corrections, read_cells, simulate_cells
from crossfusion._base import thread_count
from paper.checks import check_known, check_positive

PARTS = ("values", "mixing", "times")
SIZES, QUICK = (100_000, 1_000_000), (5_000, 10_000)
CAP = 75.0  # seconds that a metric has


def run(
    *,
    quick: bool = False,
    only: Sequence[str] = PARTS,
    cap: float = CAP,
    data: Path | None = None,
    plot: Callable[[Any], None] | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure values and time, and return them as tables.

    Parameters
    ----------
    quick : bool
        Few cells, for a first look.
    only : sequence of str
        Which parts: values, mixing, times.
    cap : float
        Seconds that each metric of scib-metrics has; it is ended then.
    data : path, optional
        Folder with sc_mixology.parquet; made-up cells where there is none.
    plot : function, optional
        Takes the leaderboard of the values.
    tell : function, optional
        Told what is being done.

    Returns
    -------
    dict
        For each part a title, the names of the columns, and the rows as text.
    """
    check_known(only, PARTS, "part", "this benchmark")
    check_positive(cap, "cap")
    say = tell or (lambda _: None)
    found: dict[str, Any] = {}
    if "values" in only:
        found["values"] = _values(read_cells(data) or simulate_cells(2000), plot, say)
    if "mixing" in only:
        found["mixing"] = _mixing(read_cells(data) or simulate_cells(2000), say)
    if "times" in only:
        sizes = QUICK if quick else SIZES
        title = f"Time of each metric over that of crossfusion.anndata.cfd, {thread_count()} threads"
        rows = times.measure_times(sizes, cap, say)
        found["times"] = {"title": title, "header": times.header(sizes), "rows": rows, "note": times.note(cap)}
    return found


def _mixing(cells: Cells, say: Callable[[str], None]) -> dict[str, Any]:
    say("mixing of the corrected cells")
    rows, note = mixing.table(mixing.measure(add_corrections(cells)))
    title = f"Local mixing, {cells.name}: {len(cells.x):,} cells × {cells.x.shape[1]}, {len(set(cells.batch))} batches"
    return {"title": title, "header": mixing.HEADER, "rows": rows, "note": note}


def _values(cells: Cells, plot: Callable[[Any], None] | None, say: Callable[[str], None]) -> dict[str, Any]:
    say("correcting")
    adata = add_corrections(cells)
    board = values.leaderboard(adata)
    if plot is not None:
        plot(board)
    say("scib-metrics on the same embeddings")
    title = f"{cells.name}: {len(cells.x):,} cells × {cells.x.shape[1]}, {len(set(cells.batch))} batches"
    header, rows = values.rows(adata, board)
    return {"title": title, "header": header, "rows": rows, "note": values.NOTE}
