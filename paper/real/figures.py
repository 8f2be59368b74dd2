"""Figures over all data sets: correlations with degradation, and the centres' matrices."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion.study import Evaluation, figure, save_figure, set_figure_style

INK, MUTED, OURS = "#1c2127", "#8a94a0", "#d55e00"


def write_correlations(out: Path, found: Sequence[Evaluation]) -> list[Path]:
    """Draw how closely each distance goes with degradation, a panel a data set."""
    studies = [(result.name, result.study) for result in found if result.study and len(result.study.domains) > 2]
    if not studies:
        return []
    names = studies[0][1].distances
    with set_figure_style():
        drawn = figure(3.1 * len(studies) + 2.0, 0.3 * len(names) + 1.6)
        grid = drawn.subplots(1, len(studies), squeeze=False, sharey=True)[0]
        for axes, (name, study) in zip(grid, studies, strict=True):
            entries = {a.distance: a for a in study.associations if (a.over, a.correction) == ("pairs", "none")}
            _panel(axes, [entries[distance] for distance in names])
            axes.set_title(f"{name}, {len(study.domains)} domains")
        grid[0].set_yticks(range(len(names)), names)
        grid[0].invert_yaxis()
        handles, labels = grid[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3)
        return save_figure(drawn, out, "correlations")


def _panel(axes: Any, entries: Sequence[Any]) -> None:
    for place, entry in enumerate(entries):
        colour = OURS if entry.distance.startswith("cfd") else INK
        if entry.pearson_lower is not None:
            axes.plot([entry.pearson_lower, entry.pearson_upper], [place, place], color=colour, alpha=0.35, linewidth=2)
        label = "Pearson" if place == len(entries) - 1 else None
        axes.plot(entry.pearson, place, "o", color=colour, markersize=6, label=label)
        label = "Spearman" if place == len(entries) - 1 else None
        axes.plot(entry.spearman, place, "|", color=colour, markersize=11, markeredgewidth=2, label=label)
    axes.axvline(0, color=MUTED, linewidth=0.8)
    axes.set_xlim(-1.05, 1.05)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_xlabel("correlation with CDDR")


def write_centres(out: Path, found: Mapping[str, Any]) -> list[Path]:
    """Draw the matrices of centres, a panel a version, on one scale."""
    values = {version: np.where(np.eye(len(p.labels), dtype=bool), np.nan, p.unbiased) for version, p in found.items()}
    high = 1.1 * max(float(np.nanmax(cells)) for cells in values.values())
    with set_figure_style(axes_grid=False):
        drawn = figure(4.3 * len(values), 4.1)
        grid = drawn.subplots(1, len(values), squeeze=False)[0]
        for axes, (version, cells) in zip(grid, values.items(), strict=True):
            labels = list(map(str, found[version].labels))
            axes.imshow(cells, cmap="Blues", vmin=0.0, vmax=high)
            axes.set_xticks(range(len(labels)), labels)
            axes.set_yticks(range(len(labels)), labels)
            axes.set_title(f"{version}: unbiased CFD by tile")
            axes.set_xlabel("centre")
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
            for i, j in zip(*np.nonzero(np.isfinite(cells)), strict=True):
                colour = "white" if cells[i, j] > high / 2 else INK
                axes.text(j, i, f"{cells[i, j]:.2f}", ha="center", va="center", color=colour)
        grid[0].set_ylabel("centre")
        return save_figure(drawn, out, "centres")
