"""Regions of a codebook on a plane, each with the groups it holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_RADIUS = 0.06  # of the largest region, as a share of the width of the plane
SHORT_NAME = 8  # characters, up to which four names fit beside each other


def region_map(
    labels: Sequence[str],
    places: FloatArray,
    rows: FloatArray,
    shares: FloatArray,
    *,
    title: str = "",
    axes: Any = None,
) -> "Figure":
    """Draw each region as a pie of its groups, as if all groups had the same number of rows.

    Parameters
    ----------
    labels : sequence of str
        Names of the groups.
    places : array of shape (regions, 2)
        Coordinates of the regions.
    rows : array of shape (regions,)
        Number of rows of each region, which its area shows.
    shares : array of shape (regions, groups)
        Share of each group's rows that lie in the region.
    title : str
        Title of the figure.
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
    >>> places = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> figure = plots.region_map(["a", "b"], places, np.array([30, 10]), np.array([[0.5, 1.0], [0.5, 0.0]]))
    >>> len(figure.axes[0].patches)
    3
    """
    from matplotlib.patches import Wedge

    width = float(np.ptp(places, axis=0).max()) or 1.0
    radius = MAX_RADIUS * width * np.sqrt(rows / rows.max())
    part = shares / shares.sum(axis=1, keepdims=True)
    with style.open_axes(axes, 3.1 + 0.16 * (-(-min(len(labels), style.MAX_COLORED_GROUPS + 1) // 2))) as own:
        for k in np.argsort(-rows, kind="stable").tolist():
            ends = 90 - 360 * np.concatenate([[0.0], np.cumsum(part[k])])
            for group in np.flatnonzero(part[k] > 0).tolist():
                own.add_patch(
                    Wedge(places[k], radius[k], ends[group + 1], ends[group], facecolor=_pick_color(group), linewidth=0)
                )
        for group, label in enumerate(labels[: style.MAX_COLORED_GROUPS + 1]):
            name = style.format_name(label, 14) if group < style.MAX_COLORED_GROUPS else "others"
            own.plot([], [], marker="o", linestyle="none", color=_pick_color(group), label=name)
        own.autoscale_view()
        own.set_xlabel("first direction between regions")
        own.set_ylabel("second direction between regions")
        own.set_aspect("equal", adjustable="datalim")
        own.set_title(title)
        if axes is None:
            handles, texts = own.get_legend_handles_labels()
            columns = 4 if max(map(len, texts)) <= SHORT_NAME else 2
            style.find_figure(own).legend(handles, texts, loc="outside lower center", ncols=min(len(texts), columns))
    return style.find_figure(own)


def _pick_color(group: int) -> str:
    return style.COLORS[group] if group < style.MAX_COLORED_GROUPS else style.FAINT
