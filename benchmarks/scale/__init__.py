"""How storages and engines stand beside plain reads of the same bytes."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.scale import memory, model, processes, storages
from crossfusion._base import thread_count
from paper.checks import check_known, check_positive, check_whole

HEADER = ["measured in this run", "value", "aim"]
PARTS = ("storages", "memory", "processes")
MODEL = model.HEADER


def run(
    *,
    gigabytes: float = 2.0,
    large: float = 12.0,
    dim: int = 256,
    repeats: int = 5,
    only: tuple[str, ...] = PARTS,
    folder: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    gigabytes : float
        Size of the rows that storages and engines read.
    large : float
        Gigabytes of the data set whose reading must stay within bounded memory.
    dim : int
        Number of features.
    repeats : int
        Rounds, in which the sides alternate: of plain reads the median ratio counts, else the best of each side.
    only : tuple of {"storages", "memory", "processes"}
        What to measure.
    folder : Path, optional
        Where the files are made, and deleted after; by default the folder for temporary files.
    tell : callable, optional
        Is told what is being measured.

    Returns
    -------
    dict
        A title, the names of the columns, the rows as text; and, where processes were measured, their rate in
        gigabytes a second for a thread and what the model makes of it.
    """
    check_known(only, PARTS, "part", "the benchmark")
    check_whole(repeats, "repeats")
    check_whole(dim, "dim")
    check_positive(gigabytes, "gigabytes")
    check_positive(large, "large")
    measures = {
        "storages": lambda place: storages.measure(place, gigabytes, dim, repeats, tell),
        "memory": lambda place: memory.measure(place, large, dim, tell),
        "processes": lambda place: processes.measure(place, gigabytes, dim, repeats, tell),
    }
    threads = thread_count()
    rows: list[list[str]] = []
    for name in only:
        with tempfile.TemporaryDirectory(prefix="crossfusion-scale-", dir=folder) as place:
            rows += measures[name](Path(place))
    rate = next((float(value) for what, value, _ in rows if what == processes.RATE), None)
    title = f"{gigabytes:g} GB of float32, {dim} features, {threads} cores, {repeats} rounds"
    costs = [] if rate is None else model.table(rate * 1e9)
    return {"title": title, "header": HEADER, "rows": rows, "rate": rate, "model": costs}
