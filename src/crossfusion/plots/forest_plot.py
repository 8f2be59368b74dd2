"""One line each: a value, and its interval where there is one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = 40  # lines of a figure
PAIR_NAME_LENGTH = 13  # characters of either name of a pair


def forest(
    names: Sequence[Any],
    values: FloatArray,
    lower: FloatArray | None = None,
    upper: FloatArray | None = None,
    *,
    what: str = "Cross-Fusion Distance",
    title: str = "",
    null: float = 0.0,
    axes: Any = None,
) -> "Figure":
    """Draw values with their intervals, one per line; markers are filled if the interval excludes `null`.

    Only the first `plots.LINES` values are drawn.

    Parameters
    ----------
    names : sequence
        Names of the lines; a tuple of two is a pair.
    values : array
        The values; NaN leaves a line empty.
    lower, upper : array, optional
        Ends of the intervals.
    what : str
        Label of the values.
    title : str
        Title of the figure.
    null : float
        Value if there is no difference, which a line marks.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> figure = plots.forest([("A", "B"), ("A", "C")], [0.7, 0.1], [0.5, -0.1], [0.9, 0.3])
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['A – B', 'A – C']
    """
    shown = np.asarray(values, np.float64)[:LINES]
    limits = None if lower is None or upper is None else np.array([lower[:LINES], upper[:LINES]], np.float64)
    with style.open_axes(axes, 0.55 + 0.17 * max(len(shown), 2) + 0.17 * bool(title)) as own:
        for place, value in enumerate(shown.tolist()):
            _draw_line(own, place, value, None if limits is None else limits[:, place], null)
        style.draw_zero_line(own, at=null)
        style.label_rows(own, [format_line_name(entry) for entry in names[:LINES]])
        own.set_xlabel(what)
        own.set_title(title)
        own.locator_params(axis="x", nbins=6)
        style.keep_label_inside(own)
    return style.find_figure(own)


def _draw_line(axes: Any, place: int, value: float, limits: FloatArray | None, null: float) -> None:
    if limits is not None and np.isfinite(limits).all():
        axes.plot(limits, [place, place], color=style.NEAR, linewidth=1.2, solid_capstyle="butt", zorder=2)
        filled = bool(limits[0] > null or limits[1] < null)
    else:
        filled = limits is None
    if np.isfinite(value):
        inside = style.NEAR if filled else "white"
        axes.plot(value, place, "o", color=style.NEAR, markerfacecolor=inside, markersize=4, zorder=3)
    elif np.isinf(value):
        axes.annotate("∞", (0.99, place), xycoords=("axes fraction", "data"), ha="right", va="center")


def format_line_name(entry: Any) -> str:
    """A name, or the two of a pair, neither of which crowds out the other."""
    if isinstance(entry, tuple) and len(entry) == 2:
        return " – ".join(style.format_name(part, PAIR_NAME_LENGTH) for part in entry)
    return style.format_name(entry, 2 * PAIR_NAME_LENGTH + 3)
