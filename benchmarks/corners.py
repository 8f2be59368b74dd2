"""What was slow once: many groups, many units, units of one row each, and many small files."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import best_times, peak_memory
from crossfusion import cfd, permutation_test, summarize
from crossfusion._base import thread_count
from paper.checks import check_whole, load_library

HEADER = ["corner", "size", "value", "of", "aim"]
DIM = 64
PERMUTATIONS = 10
Tell = Callable[[str], None] | None


def run(*, repeats: int = 3, quick: bool = False, tell: Tell = None) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    repeats : int
        Rounds, in which the sides alternate; the best of each side counts.
    quick : bool
        A tenth of the sizes.
    tell : callable, optional
        Called with the name of each corner.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    check_whole(repeats, "repeats")
    part = 10 if quick else 1
    rows = []
    for measure in (_many_groups, _many_units, _units_of_one_row, _cells_as_donors, _small_files):
        if tell is not None:
            tell(measure.__name__.strip("_").replace("_", " "))
        rows += measure(part, repeats)
    return {"title": f"Corners, {thread_count()} threads, best of {repeats}", "header": HEADER, "rows": rows}


def _many_groups(part: int, repeats: int) -> list[list[str]]:
    """Permutations of many groups, against a loop that multiplies a sparse matrix of members with the rows."""
    sparse = load_library("scipy.sparse", "SciPy", "bench", "the comparison with a sparse loop")
    number, groups = 100_000 // part, 200
    draw = np.random.default_rng(0)
    x, labels = draw.standard_normal((number, DIM)), draw.integers(0, groups, number)
    size = np.bincount(labels)

    def loop() -> list[float]:
        shuffle, centered = np.random.default_rng(0), x - x.mean(axis=0)
        found = []
        for _ in range(PERMUTATIONS):
            places = (shuffle.permutation(labels), np.arange(number))
            sums = sparse.csr_array((np.ones(number), places), (groups, number)) @ centered
            found.append(float(np.sum((sums * sums).sum(axis=1) / size)))
        return found

    def ask(statistic: str) -> Callable[[], Any]:
        return lambda: permutation_test(x, labels, permutations=PERMUTATIONS, statistic=statistic)

    sides: dict[str, Callable[[], Any]] = {"loop": loop, "welch": ask("welch"), "pseudo-f": ask("pseudo-f")}
    ask("welch")()  # what is loaded or compiled at first use
    best = best_times(sides, repeats)
    shape = f"{number:,} × {DIM} in {groups}"
    return [
        [
            f"{PERMUTATIONS} permutations, {name}",
            shape,
            f"{best[name] / best['loop']:.2f}",
            "SciPy's sparse loop",
            "≤ 1",
        ]
        for name in ("welch", "pseudo-f")
    ]


def _many_units(part: int, repeats: int) -> list[list[str]]:
    groups, units = 20, 2000 // part
    draw = np.random.default_rng(0)
    unit = np.repeat(np.arange(groups * units), 3)
    summary = summarize(draw.standard_normal((len(unit), DIM)), by={"group": unit % groups, "unit": unit})
    best = best_times({"matrix": lambda: summary.pairwise("group", units="unit", level=0.95)}, repeats)
    size = f"{groups} groups × {units:,} units"
    return [["matrix with intervals", size, f"{best['matrix']:.2f}", "seconds", "≤ 3"]]


def _units_of_one_row(part: int, repeats: int) -> list[list[str]]:
    number, dim = 1_000_000 // part, 32
    draw = np.random.default_rng(0)
    x, group, unit = draw.standard_normal((number, dim), np.float32), draw.integers(0, 5, number), np.arange(number)

    def from_summary() -> Any:
        return summarize(x, by={"group": group, "unit": unit}).cfd("group", units="unit", level=0.95)

    extra = peak_memory(from_summary)
    sides = {"rows": lambda: cfd(x, labels=group, units=unit, level=0.95), "summary": from_summary}
    best = best_times(sides, repeats)
    size = f"{number:,} units × {dim}"
    return [
        ["cfd, units of one row", size, f"{best['rows']:.2f}", "seconds", "≤ 10"],
        ["Summary.cfd, units of one row", size, f"{best['summary']:.2f}", "seconds", "≤ 10"],
        ["Summary.cfd, units of one row", size, f"{extra / 1e9:.2f}", "GB beside the rows", "≤ 2"],
    ]


def _cells_as_donors(part: int, repeats: int) -> list[list[str]]:
    """A leaderboard of which every cell is a donor."""
    anndata = load_library("anndata", "anndata", "anndata", "the leaderboard of cells")
    pandas = load_library("pandas", "pandas", "pandas", "the leaderboard of cells")
    from crossfusion.anndata import cfd as rank

    number, dim = 100_000 // part, 50
    draw = np.random.default_rng(0)
    obs = pandas.DataFrame({"batch": draw.integers(0, 4, number), "label": draw.integers(0, 6, number)})
    x = draw.standard_normal((number, dim), np.float32) + 0.3 * obs[["label"]].to_numpy(np.float32)
    adata = anndata.AnnData(x, obs=obs.set_index(obs.index.astype(str)))
    keys: dict[str, Any] = {"batch_key": "batch", "label_key": "label", "donor_key": "index"}
    best = best_times({"board": lambda: rank(adata, **keys, use_rep="X")}, repeats)
    return [['anndata.cfd, donor_key="index"', f"{number:,} cells × {dim}", f"{best['board']:.2f}", "seconds", "≤ 10"]]


def _small_files(part: int, repeats: int) -> list[list[str]]:
    """Files of some rows each, with a manifest: seconds, and how the time grows from half as many."""
    number, dim = 20_000 // part, 16
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / half for half in ("first", "second")]
        for place in places:
            place.mkdir()
        for k in range(number):
            np.save(places[k % 2] / f"{k:06d}.npy", draw.standard_normal((8, dim), np.float32))
        manifest = {"file": [f"{k:06d}.npy" for k in range(number)], "site": [k % 5 for k in range(number)]}
        table = load_library("pyarrow", "PyArrow", "", "a manifest").table(manifest)
        even = table.take(list(range(0, number, 2)))
        sides = {
            "all": lambda: summarize(folder, by="site", manifest=table, on="file"),
            "half": lambda: summarize(places[0], by="site", manifest=even, on="file"),
        }
        best = best_times(sides, 1 if repeats == 1 else 2)
    size = f"{number:,} files × 8 rows"
    return [
        ["summarize, small files", size, f"{best['all']:.1f}", "seconds", "≤ 20"],
        ["summarize, small files", size, f"{best['all'] / best['half']:.2f}", "the time of half as many", "≤ 2.3"],
    ]
