"""Distances against degradation, a panel a distance."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion import storage
from crossfusion.errors import FileError
from crossfusion.experiments import output
from crossfusion.protocols.drops import SCORES
from crossfusion.protocols.outcomes import Study

ENDINGS = (".png", ".svg", ".pdf")
COLOURS = ("#1c2127", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a2be2")
MARKERS = "osD^vPX*"
MANY = 9  # panels, beyond which they stand closer and with fewer dots an inch


def draw(study: Study) -> Any:
    """Figure of every directed pair: distance against CDDR, one panel a distance, one colour a correction.

    Parameters
    ----------
    study : Study
        What ``degradation_study`` found.

    Returns
    -------
    matplotlib.figure.Figure
        The panels; their titles give Pearson's correlation over the pairs within the first correction and over all.
    """
    names = study.distances
    across = min(3 if len(names) <= MANY else 4, len(names))
    down = -(-len(names) // across)
    drawn = output.figure(4.2 * across, 3.6 * down + 0.5)
    grid = drawn.subplots(down, across, squeeze=False, sharey=True).ravel()
    for axes, name in zip(grid, names, strict=False):
        _panel(axes, study, name)
    for axes in grid[len(names) :]:
        axes.set_axis_off()
    for axes in grid[::across]:
        axes.set_ylabel(f"CDDR of the {SCORES[study.metric]}")
    handles, labels = grid[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
    return drawn


def _panel(axes: Any, study: Study, name: str) -> None:
    for k, correction in enumerate(study.corrections):
        own = [outcome for outcome in study.outcomes if outcome.correction == correction]
        x, y = [o.distances[name] for o in own], np.array([o.cddr for o in own])
        limits = np.abs(np.array([[o.lower for o in own], [o.upper for o in own]]) - y)
        colour, marker = COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)]
        axes.errorbar(x, y, limits, fmt="none", ecolor=colour, elinewidth=0.7, alpha=0.4)
        axes.scatter(
            x, y, s=26, color=colour, marker=marker, label=correction, edgecolors="white", linewidths=0.4, zorder=3
        )
    axes.set_xlabel(name)
    axes.locator_params(axis="x", nbins=6)
    axes.axhline(0, color="#9aa3ad", linewidth=0.8)
    axes.set_title(_title(study, name))


def _title(study: Study, name: str) -> str:
    found = {(a.over, a.correction): a.pearson for a in study.associations if a.distance == name}
    first = study.corrections[0]
    values = {first: found["pairs", first]} | ({"all": found["all", None]} if ("all", None) in found else {})
    return ", ".join(f"r {text} {value:.2f}" if np.isfinite(value) else f"r {text} –" for text, value in values.items())


def save(study: Study, path: Path) -> None:
    """Write the figure, whole or not at all.

    Parameters
    ----------
    study : Study
        What ``degradation_study`` found.
    path : path
        Ends in .png, .svg or .pdf.
    """
    check_ending(path)
    with output.matplotlib().rc_context(output.STYLE):
        write(draw(study), path, 150 if len(study.distances) <= MANY else 90)


def write(drawn: Any, path: Path, dpi: int = 150) -> None:
    """Write any figure, whole or not at all, the same bytes from the same numbers.

    Parameters
    ----------
    drawn : matplotlib.figure.Figure
        The figure.
    path : path
        Ends in .png, .svg or .pdf.
    dpi : int
        Dots an inch.
    """
    ending = path.suffix.lower()
    dates: dict[str, dict[str, Any]] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}
    metadata = dates.get(ending, {"CreationDate": None})
    with output.matplotlib().rc_context({"svg.hashsalt": output.STYLE["svg.hashsalt"]}):
        storage.write_whole(path, partial(drawn.savefig, format=ending[1:], dpi=dpi, metadata=metadata))


def check_ending(path: Path) -> None:
    """Refuse a file that is no figure, before any work.

    Parameters
    ----------
    path : path
        Where the figure is to go.
    """
    if path.suffix.lower() not in ENDINGS:
        raise FileError(f"{path} has an ending that is no figure's: use {' or '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}")
