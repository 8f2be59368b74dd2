"""Distances against the depth of a network."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NAMED_LAYERS = 24  # layers, beyond which the axis has numbers for names


def depth(
    names: Sequence[str],
    values: Mapping[str, FloatArray],
    limits: Mapping[str, FloatArray] | None = None,
    *,
    axes: Any = None,
) -> "Figure":
    """Draw distances against the layers of a model, in call order.

    Parameters
    ----------
    names : sequence of str
        Names of the layers.
    values : mapping
        Lines by name, with one value per layer.
    limits : mapping, optional
        Lower and upper limits of some lines, as arrays of shape (2, layers).
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> plots.depth(["first", "last"], {"CFD(site)": [0.1, 0.2]}).axes[0].get_ylabel()
    'Cross-Fusion Distance'
    """
    place = np.arange(1, len(names) + 1)
    width = style.COLUMN if len(names) <= 12 else style.PAGE
    with style.open_axes(axes, 2.6, width) as own:
        for k, (label, found) in enumerate(values.items()):
            looks = style.pick_look(k)
            if limits is not None and label in limits:
                style.draw_band(own, place, limits[label], looks["color"], 0.18)
            size = 3.5 if len(names) <= MAX_NAMED_LAYERS else 2
            own.plot(place, found, markersize=size, label=style.format_name(label, 40), zorder=3, **looks)
        style.draw_zero_line(own, vertical=False)
        own.set_ylabel("Cross-Fusion Distance")
        own.set_xlabel("layer, in the order of calls")
        own.set_xlim(0.5, len(names) + 0.5)
        if len(names) <= MAX_NAMED_LAYERS:
            shown = [style.format_name(entry) for entry in names]
            own.set_xticks(place, shown, rotation=45, ha="right", rotation_mode="anchor")
        own.legend(loc="lower left", bbox_to_anchor=(0, 1.02), ncols=2)
    return style.find_figure(own)
