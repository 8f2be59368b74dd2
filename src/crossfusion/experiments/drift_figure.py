"""Drift as a figure: distances with their limits, the line of the alarm, and where the series breaks."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion import storage
from crossfusion.drift.result import Drift
from crossfusion.experiments import output
from crossfusion.experiments.scatter import check_ending
from crossfusion.text import label_text

LINE, LIMIT, ALARM = "#0072b2", "#5b6570", "#d55e00"
NAMES = 12  # periods that are named below the axis


def draw(found: Drift) -> Any:
    """Figure of the windows in time.

    Parameters
    ----------
    found : Drift
        What `Summary.drift` found.

    Returns
    -------
    matplotlib.figure.Figure
        Distances, limits where there are some, the distance at which there is an alarm, alarms, and the change.
    """
    figure = output.figure(7.0, 3.0)
    axes, place = figure.subplots(), np.arange(len(found.periods))
    if found.lower is not None and found.upper is not None:
        axes.fill_between(place, found.lower, found.upper, color=LINE, alpha=0.2, linewidth=0, label="interval")
    axes.plot(place, found.distance, color=LINE, marker="o", markersize=3, linewidth=1.2, label="distance")
    if found.threshold is not None:
        axes.plot(place, found.threshold, color=LIMIT, linestyle="--", linewidth=1, label=f"alarm at {found.rate:g}")
    if found.alarm.any():
        axes.plot(place[found.alarm], found.distance[found.alarm], "D", color=ALARM, markersize=5, label="alarm")
    if found.change is not None and found.change.period in found.starts:
        axes.axvline(found.starts.index(found.change.period) - 0.5, color=LIMIT, linewidth=0.8, label="change")
    axes.set_ylim(bottom=0, top=1.15 * float(np.nanmax([*found.distance, *_limits(found)])))
    shown = place[:: -(-len(place) // NAMES)]
    axes.set_xticks(shown, [label_text(found.periods[k]) for k in shown], rotation=30, ha="right")
    axes.set_xlabel(found.time)
    axes.set_ylabel("Cross-Fusion Distance")
    axes.legend(frameon=False, ncols=5, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _limits(found: Drift) -> list[float]:
    """Upper ends that the figure is to show; a line of alarm far above everything is left outside."""
    limits = [] if found.upper is None else list(found.upper)
    if found.threshold is not None:
        limits.append(min(float(np.nanmedian(found.threshold)), 4 * float(np.nanmax(found.distance))))
    return limits


def save(found: Drift, path: Path) -> None:
    """Write the figure, whole or not at all.

    Parameters
    ----------
    found : Drift
        What `Summary.drift` found.
    path : path
        Ends in .png, .svg or .pdf.
    """
    check_ending(path)
    kind = path.suffix.lower()
    nameless: dict[str, Any] = {".png": {"Software": None}, ".svg": {"Date": None, "Creator": None}}
    with output.matplotlib().rc_context(output.STYLE | {"font.size": 9, "axes.grid": False}):
        keywords = {"format": kind[1:], "dpi": 200, "metadata": nameless.get(kind, {"CreationDate": None})}
        storage.write_whole(path, partial(draw(found).savefig, **keywords))
