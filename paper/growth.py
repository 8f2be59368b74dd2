"""What timings say: how each measure's time grows, beside the paper's complexities."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion.study import figure

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Measure:
    """A distance in the figure: its title, the paper's complexity, the power of n in it, bytes a pair of rows."""

    title: str
    complexity: str = "–"
    power: float = math.nan
    pair_bytes: int = 0
    colour: str = "#555f6b"


MEASURES: Mapping[str, Measure] = {
    "cfd": Measure("CFD", "O(n·d)", 1, 0, "#d55e00"),
    "wasserstein": Measure("Wasserstein", "O(n³ log n·d)", 3, 32, "#0072b2"),
    "sinkhorn": Measure("Sinkhorn", "O(K·n²·d)", 2, 32, "#56b4e9"),
    "mmd": Measure("MMD", "O(n²·d)", 2, 0, "#009e73"),
    "hausdorff": Measure("Hausdorff", "O(n²·d)", 2, 0, "#b4568c"),
    "chamfer": Measure("Chamfer", "O(n²·d)", 2, 0, "#7a6a00"),
    "energy": Measure("Energy", colour="#888888"),
    "sliced_wasserstein": Measure("Sliced Wasserstein", colour="#a0a0a0"),
    "gaussian_wasserstein": Measure("Gaussian Wasserstein", colour="#b8b8b8"),
}


def fit_exponents(table: "pa.Table", sweep: str = "rows") -> dict[str, float]:
    """Power of the rows (or features) with which each measure's time grows.

    Parameters
    ----------
    table : pyarrow.Table
        As `run` returns it.
    sweep : {"rows", "dim"}
        What grows.

    Returns
    -------
    dict
        Slope of log time on log size, by measure, over the last three points: a decade, where fixed cost is small.
        Measures with fewer than three points are left out.

    Notes
    -----
    Where a larger input is faster, another route has taken over (compiled code pays off for large inputs only): the
    three points are the last of one route.
    """
    found = {}
    for name in MEASURES:
        size, seconds = curve(table, name, sweep)
        known = np.isfinite(seconds)
        size, seconds = size[known], seconds[known]
        if len(size) < 3:
            continue
        upper = _upper_end(seconds)
        found[name] = float(np.polyfit(np.log(size[upper]), np.log(seconds[upper]), 1)[0])
    return found


def _upper_end(seconds: NDArray[Any]) -> NDArray[Any]:
    """Places of the points that a slope is fitted to."""
    turns = np.flatnonzero(np.diff(seconds) < 0) + 1
    routes = [route for route in np.split(np.arange(len(seconds)), turns) if len(route) >= 3]
    upper: NDArray[Any] = (routes[-1] if routes else np.arange(len(seconds)))[-3:]
    return upper


def curve(table: "pa.Table", measure: str, sweep: str = "rows") -> tuple[NDArray[Any], NDArray[Any]]:
    """Sizes and seconds of a measure.

    Parameters
    ----------
    table : pyarrow.Table
        As `run` returns it.
    measure : str
        Name of the measure.
    sweep : {"rows", "dim"}
        What grows.

    Returns
    -------
    tuple of two arrays
        In ascending order of size.
    """
    rows = [row for row in table.to_pylist() if (row["measure"], row["sweep"]) == (measure, sweep)]
    rows.sort(key=lambda row: row[sweep])
    return np.array([row[sweep] for row in rows], float), np.array([row["seconds"] for row in rows], float)


def render_markdown(table: "pa.Table") -> str:
    """Markdown of ratios and exponents: seconds belong to one machine, ratios less so.

    Parameters
    ----------
    table : pyarrow.Table
        As `run` returns it.

    Returns
    -------
    str
        A table, a row a measure.
    """
    rows = [row for row in table.to_pylist() if row["sweep"] == "rows"]
    grid = sorted({row["rows"] for row in rows})
    shown = [n for n in grid if math.log10(n).is_integer()]
    ratio = {(row["measure"], row["rows"]): row["ratio"] for row in rows}
    power, width = fit_exponents(table), fit_exponents(table, "dim")
    lines = [
        f"# Time against rows, {rows[0]['dim']} features",
        "",
        "Time of one call over that of CFD at the same number of rows a group; a dash where one call is expected to",
        "exceed the cap or the memory. The exponent is the slope of log time on log rows at the upper end, that of the",
        f"features the same on log features ({_feature_rows(table)}; the paper's is 1 for all of its measures).",
        "",
        f"| measure | {' | '.join(f'n = {n:,}' for n in shown)} | exponent | of features | paper |",
        f"|---|{'---:|' * len(shown)}---:|---:|---|",
    ]
    for name, measure in MEASURES.items():
        cells = [f"{ratio[name, n]:,.3g}" if (name, n) in ratio else "–" for n in shown]
        cells += [f"{found[name]:.2f}" if name in found else "–" for found in (power, width)]
        lines.append(f"| {measure.title} | {' | '.join(cells)} | {measure.complexity} |")
    return "\n".join(lines) + "\n"


def _feature_rows(table: "pa.Table") -> str:
    """At how many rows the features were varied: those of CFD, then those of the others."""
    dims = [row for row in table.to_pylist() if row["sweep"] == "dim"]
    own = {row["rows"] for row in dims if row["measure"] == "cfd"}
    others = {row["rows"] for row in dims if row["measure"] != "cfd"}
    parts = [(name, rows) for name, rows in (("CFD", own), ("others", others)) if rows]
    return ", ".join(f"{name} at {max(rows):,} rows" for name, rows in parts) or "not timed"


def draw(table: "pa.Table") -> Any:
    """Figure of time against rows, both logarithmic, with the fitted powers in the legend.

    Parameters
    ----------
    table : pyarrow.Table
        As `run` returns it.

    Returns
    -------
    matplotlib.figure.Figure
        One panel.
    """
    drawn = figure(10, 6)
    axes = drawn.subplots()
    power = fit_exponents(table)
    for name, measure in MEASURES.items():
        size, seconds = curve(table, name)
        in_paper = measure.complexity != "–"
        fitted = f"  n^{power[name]:.2f}" if name in power else ""
        style = {"linewidth": 3 if name == "cfd" else 1.8, "linestyle": "-" if in_paper else "--", "marker": "o"}
        stated = f"   paper {measure.complexity}" if in_paper else ""
        label = f"{measure.title}{fitted}{stated}"
        axes.loglog(size, seconds, color=measure.colour, markersize=4, label=label, **style)
    axes.set_xlabel("rows of each group")
    axes.set_ylabel("seconds of one call")
    axes.set_title(f"Time against rows, {table.column('dim')[0].as_py()} features")
    drawn.legend(loc="outside right upper")
    return drawn
