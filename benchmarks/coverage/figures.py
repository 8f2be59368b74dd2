"""Two figures: coverage against distance, and level and power of the tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.coverage.plan import POWER
from benchmarks.coverage.promises import CLEAR, LEAST, LEVEL, MOST, SIZE, band
from benchmarks.coverage.tables import list_points, noise_text, patients_text, rows_text
from crossfusion.study import figure, save_figure, set_figure_style
from paper.checks import load_library

BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
BLACK, GREY, SHADE = "#33383d", "#8a929b", "#e8f1f8"
FAMILIES = {
    "normal": (BLUE, "o"),
    "t5": (ORANGE, "s"),
    "two modes": (GREEN, "^"),
    "three modes": (PINK, "v"),
    "dominated": (BLACK, "D"),
}
CURVES = {"": ("independent rows", BLUE), "units": ("patients, nested", ORANGE), "pairs": ("patients, paired", GREEN)}
FARTHEST = 250  # standard errors
TICKS = (0, 0.001, 0.004, 0.01, 0.02, 0.03)  # distances


def write(out: Path, result: Mapping[str, Any]) -> list[Path]:
    """Draw both and write them as PNG and SVG.

    Parameters
    ----------
    out : path
        Folder.
    result : mapping
        As `run` returns it.

    Returns
    -------
    list of path
        The files.
    """
    with set_figure_style():
        coverage, tests = draw_coverage(result), draw_tests(result)
        return [*save_figure(coverage, out, "coverage"), *save_figure(tests, out, "tests")]


def draw_coverage(result: Mapping[str, Any]) -> Any:
    """Coverage of all intervals against the distance in standard errors: of rows, and of patients beside the naive."""
    drawn = figure(11, 4.6)
    rows, units = drawn.subplots(1, 2)
    _axes(rows, "Independent rows", (0.90, 1.004), MOST, LEAST["rows"])
    for family, (colour, marker) in FAMILIES.items():
        points = [
            point
            for design in result["designs"]
            if design["section"] == "rows" and design["family"] == family
            for point in design["points"]
        ]
        label = noise_text({"family": family})
        _scatter(rows, points, "coverage", color=colour, marker=marker, alpha=0.75, linewidths=0, label=label)
    rows.legend(loc="lower center", ncols=3, fontsize=9.5, columnspacing=1.2, handletextpad=0.3)
    points = list_points(result, "units")
    _axes(units, "Rows of 20 patients a group", (-0.02, 1.02), 1.0, LEAST["units"])
    _scatter(units, points, "coverage", color=BLUE, marker="o", alpha=0.75, linewidths=0, label="patients as units")
    naive = {"facecolors": "none", "edgecolors": ORANGE, "marker": "D", "linewidths": 1.2}
    _scatter(units, points, "naive", label="rows taken to be independent", **naive)
    units.legend(loc="lower right", fontsize=9.5, handletextpad=0.3)
    return drawn


def _axes(axes: Any, title: str, limits: tuple[float, float], most: float, least: float) -> None:
    """A panel with the promise shaded."""
    axes.set_xscale("symlog", linthresh=1, linscale=0.6)
    axes.set_xlim(-0.08, FARTHEST)
    axes.set_ylim(*limits)
    axes.set_xticks([0, 1, 3, 10, 30, 100], ["0", "1", "3", "10", "30", "100"])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.fill_between([-1, CLEAR, CLEAR, FARTHEST], least, [1, 1, most, most], color=SHADE, linewidth=0, zorder=0)
    axes.axhline(LEVEL, color=GREY, linewidth=1)
    axes.set_xlabel("true distance in standard errors")
    axes.set_title(title)
    axes.set_ylabel("coverage of 95 % intervals")


def _scatter(axes: Any, points: Sequence[Mapping[str, Any]], share: str, **style: Any) -> None:
    axes.scatter([point["ratio"] for point in points], [point[share] for point in points], s=26, **style)


def draw_tests(result: Mapping[str, Any]) -> Any:
    """How often tests reject: groups that are not apart, and groups that are."""
    drawn = figure(11, 5.4)
    level, power = drawn.subplots(1, 2, width_ratios=[1, 1.4])
    _draw_level(level, [design for design in result["designs"] if design["section"] == "level"], result["draws"])
    _draw_power(power, [design for design in result["designs"] if design["section"] == "power"])
    return drawn


def _draw_level(axes: Any, designs: Sequence[Mapping[str, Any]], draws: int) -> None:
    low, high = band(draws, SIZE)
    places = range(len(designs), 0, -1)
    axes.axvspan(low, high, color=SHADE, linewidth=0, zorder=0)
    axes.axvline(SIZE, color=GREY, linewidth=1)
    shares = [design["points"][0]["rejected"] for design in designs]
    colours = [CURVES[design["told"]][1] for design in designs]
    axes.scatter(shares, places, s=34, c=colours, zorder=3)
    axes.set_yticks(places, [_words(design) for design in designs], fontsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, max([0.1, *(1.1 * share for share in (*shares, high))]))
    axes.xaxis.set_major_locator(_every(SIZE))
    axes.xaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.set_xlabel("rejected at 5 %")
    axes.set_title("Level: groups are not apart")


def _every(step: float) -> Any:
    return load_library("matplotlib.ticker", "matplotlib", "reproduce", "drawing a figure").MultipleLocator(step)


def _words(design: Mapping[str, Any]) -> str:
    patients = "" if design["patients"] is None else f"{patients_text(design)}: "
    return f"{patients}{noise_text(design)}, {rows_text(design)}, d = {design['dim']}"


def _draw_power(axes: Any, designs: Sequence[Mapping[str, Any]]) -> None:
    dims = sorted({design["dim"] for design in designs})
    for design in designs:
        name, colour = CURVES[design["told"]]
        distances = [point["distance"] for point in design["points"]]
        shares = [point["rejected"] for point in design["points"]]
        style = "-" if design["dim"] == dims[-1] else "--"
        label = f"{name}, d = {design['dim']}"
        axes.plot(distances, shares, style, color=colour, marker="o", markersize=3.5, linewidth=1.8, label=label)
    axes.axhline(SIZE, color=GREY, linewidth=1)
    axes.set_xscale("function", functions=(lambda x: abs(x) ** 0.5, lambda x: x**2))
    axes.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.set_xlim(0, POWER[-1])
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.set_xlabel("true distance (square-root scale)")
    axes.set_ylabel("rejected at 5 %")
    axes.set_title("Power: groups are apart, 200 rows each")
    if designs:
        axes.legend(loc="lower right", fontsize=7.5, handlelength=1.6, bbox_to_anchor=(1.0, 0.05))
