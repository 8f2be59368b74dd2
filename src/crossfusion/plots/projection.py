"""Groups on the plane that separates them most."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray, percent
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_VECTOR_POINTS = 2000  # points, beyond which they are one picture inside a vector file


def cloud(
    labels: Sequence[Hashable],
    means: FloatArray,
    points: FloatArray | None = None,
    codes: Any = None,
    *,
    shown: float | None = None,
    second: str = "between",
    axes: Any = None,
) -> "Figure":
    """Draw the means of groups, and optionally rows, on a plane.

    Parameters
    ----------
    labels : sequence
        Names of the groups.
    means : array of shape (groups, 2)
        Coordinates of the means.
    points : array of shape (rows, 2), optional
        Coordinates of rows.
    codes : array of int, optional
        The group of each of these rows.
    shown : float, optional
        Share of the variance between groups that lies in the plane.
    second : str
        "between" if the second direction separates groups; otherwise it is a direction of large variance.
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
    >>> plots.cloud(["A", "B"], np.array([[-1.0, 0.0], [1.0, 0.0]]), shown=1.0).axes[0].get_title(loc="left")
    '100% of the variance between groups'
    """
    few = len(labels) <= style.MAX_COLORED_GROUPS
    with style.open_axes(axes, 2.9 + 0.16 * (-(-len(labels) // 4) if few else 0)) as own:
        if points is not None:
            _draw_points(own, np.asarray(points), np.asarray(codes, int), few)
        for k, (entry, (x, y)) in enumerate(zip(labels, np.asarray(means).tolist(), strict=True)):
            looks = style.pick_look(k) if few else {"color": style.INK, "marker": "o"}
            size = 7.5 if few else 3.5
            own.plot(
                x,
                y,
                markersize=size,
                markeredgecolor="white",
                linestyle="none",
                label=style.format_name(entry, 14),
                **looks,
            )
        if not few:
            own.annotate(f"● means of {len(labels):,} groups", (0.02, 0.98), xycoords="axes fraction", va="top")
        own.set_xlabel("first direction between groups")
        own.set_ylabel(f"second direction {'between groups' if second == 'between' else 'within groups'}")
        own.set_aspect("equal", adjustable="datalim")
        if shown is not None:
            own.set_title(f"{percent(shown)} of the variance between groups")
        if few and axes is None:
            handles, texts = own.get_legend_handles_labels()
            style.find_figure(own).legend(handles, texts, loc="outside lower center", ncols=min(len(labels), 4))
    return style.find_figure(own)


def _draw_points(axes: Any, points: FloatArray, codes: Any, few: bool) -> None:
    """Rows, in the colors of their groups; in a fixed disorder, so that none hides the others."""
    order = np.random.default_rng(0).permutation(len(points))
    colors = np.array(style.COLORS)[codes % len(style.COLORS)] if few else np.full(len(points), style.FAINT)
    size = float(np.clip(2000 / max(len(points), 1), 0.8, 8))
    axes.scatter(
        *points[order].T,
        s=size,
        c=colors[order],
        alpha=0.45,
        linewidths=0,
        rasterized=len(points) > MAX_VECTOR_POINTS,
        zorder=1,
    )
