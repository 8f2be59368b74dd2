"""Distances against degradation, a panel a distance."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def panels(titles: Mapping[str, str], corrections: Mapping[str, Sequence[Mapping[str, float]]], *, up: str) -> "Figure":
    """Draw distance against degradation for every directed pair, one panel per distance, one color per correction.

    Parameters
    ----------
    titles : mapping
        Titles of the panels by distance.
    corrections : mapping
        Points by correction: the distances by name, and "cddr", "lower" and "upper".
    up : str
        Label of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, wider than one column.

    Examples
    --------
    >>> from crossfusion import plots
    >>> points = [{"cfd": 0.1, "cddr": 0.2, "lower": 0.1, "upper": 0.3}]
    >>> len(plots.panels({"cfd": "r = 1"}, {"none": points}, up="CDDR").axes)
    1
    """
    across = min(3 if len(titles) <= style.MANY_PANELS else 4, len(titles))
    down = -(-len(titles) // across)
    with style.load_matplotlib().rc_context(style.WIDE):
        drawn = style.make_styled_figure(4.2 * across, 3.6 * down + 0.5, style.WIDE)
        grid = drawn.subplots(down, across, squeeze=False, sharey=True).ravel()
        for axes, (name, title) in zip(grid, titles.items(), strict=False):
            _draw_panel(axes, corrections, name)
            axes.set_title(title)
        for axes in grid[len(titles) :]:
            axes.set_axis_off()
        for axes in grid[::across]:
            axes.set_ylabel(up)
        handles, labels = grid[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6))
    found: Figure = drawn
    return found


def _draw_panel(axes: Any, corrections: Mapping[str, Sequence[Mapping[str, float]]], name: str) -> None:
    for k, (correction, points) in enumerate(corrections.items()):
        columns: dict[str, FloatArray] = {
            column: np.array([point[column] for point in points]) for column in (name, "cddr", "lower", "upper")
        }
        x, y = columns[name], columns["cddr"]
        limits = np.abs(np.array([columns["lower"], columns["upper"]]) - y)
        color, marker = (
            style.PANEL_COLORS[k % len(style.PANEL_COLORS)],
            style.PANEL_MARKERS[k % len(style.PANEL_MARKERS)],
        )
        axes.errorbar(x, y, limits, fmt="none", ecolor=color, elinewidth=0.7, alpha=0.4)
        looks = {"color": color, "marker": marker, "edgecolors": "white", "linewidths": 0.4}
        axes.scatter(x, y, s=26, label=style.format_name(correction), zorder=3, **looks)
    axes.set_xlabel(name)
    axes.locator_params(axis="x", nbins=6)
    axes.axhline(0, color="#9aa3ad", linewidth=0.8)
