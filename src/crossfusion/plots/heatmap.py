"""Distances of all pairs, as a matrix of colors."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NUMBERED_GROUPS = 7  # groups up to which cells hold their number
MAX_COLUMN_GROUPS = 18  # groups that fit on one column
MAX_NAMED_GROUPS = 50  # groups that are all named
DARK_SHARE = 0.55  # share of the largest distance from which on numbers are white


def matrix(
    labels: Sequence[Hashable], values: FloatArray, *, what: str = "Cross-Fusion Distance", axes: Any = None
) -> "Figure":
    """Draw the distances between all pairs of groups as a heatmap.

    Parameters
    ----------
    labels : sequence
        Names of the groups.
    values : array of shape (groups, groups)
        Their distances; pairs that cannot be compared are NaN and drawn in gray.
    what : str
        Label of the values.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from crossfusion import plots
    >>> len(plots.matrix(["A", "B"], np.array([[0.0, 0.7], [0.7, 0.0]])).axes)  # the matrix and its scale
    2
    """
    values = np.asarray(values, np.float64)
    number = len(labels)
    finite = values[np.isfinite(values)]
    low, high = 0.0, max(finite.max(initial=0.0), 1e-12)  # what is below zero is as close as can be
    width = style.COLUMN if number <= MAX_COLUMN_GROUPS else style.PAGE
    with style.open_axes(axes, 0.85 * width, width) as own:
        own.set_facecolor(style.FAINT)
        colors = style.load_matplotlib().colormaps["Blues"]
        shown = np.where(np.isposinf(values), high, values)
        image = own.imshow(np.ma.masked_invalid(shown), cmap=colors, vmin=low, vmax=high)
        _draw_names(own, labels)
        own.grid(visible=False)
        own.spines[:].set_visible(False)
        if number <= MAX_NUMBERED_GROUPS:
            _draw_numbers(own, values, low, high)
        scale = style.find_figure(own).colorbar(image, ax=own, label=what, fraction=0.05, pad=0.03, aspect=25)
        scale.outline.set_visible(False)
        if axes is None:
            style.find_figure(own).set_layout_engine("compressed")  # squares leave room at the sides
    return style.find_figure(own)


def _draw_names(axes: Any, labels: Sequence[Hashable]) -> None:
    """Names along both sides; of very many, some."""
    places = np.arange(len(labels))[:: -(-len(labels) // MAX_NAMED_GROUPS)]
    names = [
        style.format_name(labels[k], 14 if len(labels) <= MAX_COLUMN_GROUPS else style.NAME_LENGTH) for k in places
    ]
    short = max(map(len, names)) <= 3 and len(labels) <= MAX_COLUMN_GROUPS
    turned = {} if short else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(places, names, **turned)
    axes.set_yticks(places, names)
    axes.tick_params(length=0)


def _draw_numbers(axes: Any, values: FloatArray, low: float, high: float) -> None:
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            light = not np.isfinite(value) or (value - low) / (high - low) > DARK_SHARE
            color = "white" if light else style.INK
            axes.text(column, row, format_brief(value), ha="center", va="center", color=color, fontsize="small")


def format_brief(value: float) -> str:
    """A number in few characters."""
    if np.isinf(value):
        return "∞"
    if value == 0 or abs(value) >= 0.095:
        return f"{value:.2f}" if abs(value) < 10 else f"{value:.3g}"
    return f"{value:.3f}" if abs(value) >= 0.0005 else f"{value:.0e}".replace("e-0", "e-")
