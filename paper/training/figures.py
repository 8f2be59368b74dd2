"""Figures of the study: the scanners, accuracies with intervals, strengths, and accuracy against distance."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion.study import figure, save_figure, set_figure_style
from paper.training.outcomes import Outcome
from paper.training.scanners import SCANNERS, load_digits, simulate_scan
from paper.training.settings import METHODS, NONE

INK, MUTED = "#1c2127", "#8a94a0"
COLOURS = {
    NONE: INK,
    "cfd": "#d55e00",
    "cfd_given_label": "#e69f00",
    "coral": "#0072b2",
    "mmd_linear": "#009e73",
    "mmd_rbf": "#56b4e9",
    "dann": "#b4568c",
}
MARKS = {"cfd": "o", "cfd_given_label": "D", "coral": "s", "mmd_linear": "^", "mmd_rbf": "v", "dann": "X"}
SHOWN = 10
CAPTIONS = {
    "scanners": "The same digits under both simulated scanners; in the study no digit is seen by both",
    "accuracy": "Accuracy on the target over that without a regulariser, seed by seed, with 95 % intervals; strengths"
    " are chosen without its labels, rings are the best of the grid by them, which is not to be had",
    "strengths": "Accuracy on the target against the strength of the penalty; filled where it is chosen, the line is no"
    " regulariser",
    "distances": "Accuracy on the target against the CFD of the features, a mark a method and strength; the cross is no"
    " regulariser",
}


def write_figures(out: Path, found: Sequence[Outcome]) -> list[str]:
    """Draw all figures.

    Parameters
    ----------
    out : path
        Their folder.
    found : sequence of Outcome
        All data sets and methods.

    Returns
    -------
    list of str
        Names of the SVG files.
    """
    groups = list(dict.fromkeys(outcome.group for outcome in found))
    by_group = {group: [outcome for outcome in found if outcome.group == group] for group in groups}
    with set_figure_style():
        drawn = {
            "scanners": _scanners(),
            "accuracy": _accuracy(by_group),
            "strengths": _panels(by_group, _strengths, "strength", "target accuracy"),
            "distances": _panels(by_group, _distances, "unbiased CFD of the features", "target accuracy"),
        }
        for name, picture in drawn.items():
            save_figure(picture, out, name)
    return [f"{name}.svg" for name in drawn]


def _scanners() -> Any:
    images, label = load_digits()
    first = [int(np.flatnonzero(label == k)[0]) for k in range(SHOWN)]
    with set_figure_style(axes_grid=False):
        drawn = figure(0.8 * SHOWN + 1.2, 2.0)
        grid = drawn.subplots(2, SHOWN)
        for axes, (name, rows) in zip(grid, zip(SCANNERS, (images, simulate_scan(images)), strict=True), strict=True):
            for one, at in zip(axes, first, strict=True):
                one.imshow(rows[at], cmap="gray", vmin=0, vmax=1.3)
                one.set(xticks=[], yticks=[])
                one.spines[:].set_visible(False)
            axes[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return drawn


def _accuracy(by_group: dict[str, list[Outcome]]) -> Any:
    """Differences seed by seed: what seeds have in common, and accuracies do not show, is not in their intervals."""
    drawn = figure(3.2 * len(by_group) + 1.6, 3.2)
    grid = drawn.subplots(1, len(by_group), squeeze=False, sharey=True)[0]
    for axes, (group, (base, *own)) in zip(grid, by_group.items(), strict=True):
        for place, outcome in enumerate(own):
            colour = COLOURS[outcome.method]
            mean, half = 100 * outcome.difference.mean, 100 * outcome.difference.half
            axes.plot([mean - half, mean + half], [place, place], color=colour, alpha=0.4, linewidth=2.5)
            axes.plot(mean, place, "o", color=colour, markersize=6)
            axes.plot(100 * outcome.best_difference.mean, place, "o", mfc="none", mec=colour, markersize=11)
        axes.axvline(0, color=MUTED, linewidth=0.8)
        axes.set_title(f"{group}, {100 * base.target.mean:.0f} % without")
        axes.set_xlabel("gain in accuracy, points")
    grid[0].set_yticks(range(len(METHODS) - 1), list(METHODS.values())[1:])
    grid[0].invert_yaxis()
    return drawn


def _panels(by_group: dict[str, list[Outcome]], draw: Any, across: str, up: str) -> Any:
    """A panel a data set, with one legend."""
    drawn = figure(3.3 * len(by_group) + 0.4, 3.9)
    grid = drawn.subplots(1, len(by_group), squeeze=False)[0]
    for axes, (group, own) in zip(grid, by_group.items(), strict=True):
        draw(axes, own)
        axes.set_title(group)
        axes.set_xlabel(across)
    grid[0].set_ylabel(f"{up}, %")
    handles, labels = grid[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(METHODS))
    return drawn


def _strengths(axes: Any, own: Sequence[Outcome]) -> None:
    for outcome in own:
        colour, title = COLOURS[outcome.method], METHODS[outcome.method]
        if outcome.method == NONE:
            axes.axhline(100 * outcome.target.mean, color=colour, linewidth=1.2, label=title)
            continue
        grid = list(outcome.by_strength)
        values = [100 * outcome.by_strength[strength]["target"] for strength in grid]
        mark = MARKS[outcome.method]
        axes.plot(grid, values, marker=mark, color=colour, mfc="white", markersize=6, linewidth=1.3, label=title)
        axes.plot(outcome.strength, 100 * outcome.target.mean, marker=mark, color=colour, markersize=7)
    grid = list(own[-1].by_strength)
    axes.set_xscale("log")
    axes.set_xticks(grid, [f"{strength:g}" for strength in grid])
    axes.minorticks_off()


def _distances(axes: Any, own: Sequence[Outcome]) -> None:
    for outcome in own:
        means = outcome.by_strength.values()
        across, up = [cell["cfd"] for cell in means], [100 * cell["target"] for cell in means]
        is_base = outcome.method == NONE
        mark = "P" if is_base else MARKS[outcome.method]
        size = 90 if is_base else 34
        axes.scatter(across, up, s=size, marker=mark, color=COLOURS[outcome.method], label=METHODS[outcome.method])
