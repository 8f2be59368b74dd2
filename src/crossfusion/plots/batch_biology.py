"""Batch versus biology: what a correction removes and what it keeps."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Limits = FloatArray | None
SHORT_NAME_LENGTH = 10  # characters of names of which three fit side by side


def plane(
    names: Sequence[Any],
    batch: FloatArray,
    biology: FloatArray,
    batch_limits: Limits = None,
    biology_limits: Limits = None,
    *,
    front: Sequence[bool] | None = None,
    across: str = "batch: groups apart",
    up: str = "biology: strata apart",
    axes: Any = None,
) -> "Figure":
    """Draw corrections on the plane of two distances; the upper left is best.

    Parameters
    ----------
    names : sequence
        Names of the corrections.
    batch, biology : array
        Distance between groups that should be fused, and between groups that should stay separated, per correction.
    batch_limits, biology_limits : array of shape (2, corrections), optional
        Lower and upper limits.
    front : sequence of bool, optional
        Whether each correction is on the Pareto front; the others are drawn hollow.
    across, up : str
        Labels of the axes.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> plots.plane(["raw", "corrected"], [0.4, 0.1], [0.5, 0.5]).axes[0].get_title(loc="left")
    '← groups fused, ↑ biology kept'
    """
    filled = [True] * len(names) if front is None else front
    columns = 3 if max((len(style.format_name(entry, 16)) for entry in names), default=0) <= SHORT_NAME_LENGTH else 2
    lines = -(-len(names) // columns)
    with style.open_axes(axes, 2.7 + 0.16 * lines) as own:
        spread = [_measure_error_bars(batch, batch_limits), _measure_error_bars(biology, biology_limits)]
        for k, entry in enumerate(names):
            ends = [None if own_ends is None else own_ends[:, [k]] for own_ends in spread]
            own.errorbar(
                batch[k],
                biology[k],
                xerr=ends[0],
                yerr=ends[1],
                linestyle="none",
                markersize=5.5,
                **style.mark_front(style.pick_look(k), filled=filled[k]),
                elinewidth=1.0,
                label=style.format_name(entry, 16),
                zorder=3,
            )
        style.draw_zero_line(own)
        own.margins(0.12)
        own.set_ylim(bottom=min(0.0, own.get_ylim()[0]))  # half of the biology is half as high
        own.locator_params(nbins=6)
        own.set_xlabel(across)
        own.set_ylabel(up)
        complete = "← groups fused, ↑ biology kept"
        own.set_title(complete if all(filled) else "← fused, ↑ biology kept; filled: on the front")
        if axes is None:
            handles = [bars.lines[0] for bars in own.containers]
            texts = [bars.get_label() for bars in own.containers]
            style.find_figure(own).legend(handles, texts, loc="outside lower center", ncols=columns)
    return style.find_figure(own)


def _measure_error_bars(values: FloatArray, limits: Limits) -> Limits:
    """How far limits are from their values, to either side."""
    if limits is None:
        return None
    ends = np.abs(np.asarray(limits, np.float64) - np.asarray(values, np.float64))
    return np.asarray(np.nan_to_num(ends))
