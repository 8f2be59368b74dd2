"""Drift over time: distances with their limits, the line of the alarm, and where the series breaks."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_NAMED_PERIODS = 8  # periods that are named below the axis


def series(
    periods: Sequence[Hashable],
    distance: FloatArray,
    *,
    alarm: Any = None,
    limits: FloatArray | None = None,
    threshold: FloatArray | None = None,
    rate: float | None = None,
    change: int | None = None,
    time: str = "period",
    axes: Any = None,
) -> "Figure":
    """Draw the distance of each window from the reference.

    Parameters
    ----------
    periods : sequence
        Names of the windows, in order of time.
    distance : array
        Their distances.
    alarm : array of bool, optional
        Which windows raise an alarm.
    limits : array of shape (2, windows), optional
        Lower and upper limits.
    threshold : array, optional
        The distance above which a window raises an alarm.
    rate : float, optional
        The false alarm rate.
    change : int, optional
        The first window after the change point.
    time : str
        Name of the time factor.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> figure = plots.series([1, 2, 3], [0.1, 0.1, 0.5], alarm=[False, False, True], time="week")
    >>> figure.axes[0].get_xlabel()
    'week'
    """
    values, place = np.asarray(distance, np.float64), np.arange(len(periods))
    alarms = np.zeros(len(values), bool) if alarm is None else np.asarray(alarm, bool)
    with style.open_axes(axes, 2.3) as own:
        if limits is not None:
            style.draw_band(own, place, limits, style.NEAR, 0.2, label="interval")
        own.plot(place, values, color=style.NEAR, marker="o", markersize=2.5, label="distance")
        if threshold is not None:
            label = "alarm line" if rate is None else f"alarm at {rate:g}"
            own.plot(place, threshold, color=style.MUTED, linestyle="--", linewidth=0.9, label=label)
        if alarms.any():
            own.plot(place[alarms], values[alarms], "D", color=style.FAR, markersize=4, label="alarm")
        if change is not None:
            own.axvline(change - 0.5, color=style.INK, linestyle=":", linewidth=0.9, label="change")
        own.set_ylim(bottom=min(0.0, float(np.nanmin(_keep_finite(values)))), top=_find_top(values, limits, threshold))
        shown = place[:: -(-len(place) // MAX_NAMED_PERIODS)]
        names = [style.format_name(periods[k], 12) for k in shown]
        turned = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 4 else {}
        own.set_xticks(shown, names, **turned)
        own.set_xlabel(style.format_name(time))
        own.set_ylabel("Cross-Fusion Distance")
        own.legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1.02))
    return style.find_figure(own)


def _keep_finite(values: Any) -> FloatArray:
    found = np.asarray(values, np.float64).ravel()
    found = found[np.isfinite(found)]
    return found if len(found) else np.zeros(1)


def _find_top(values: FloatArray, limits: FloatArray | None, threshold: FloatArray | None) -> float:
    """The upper end of the figure; a line of alarm far above everything is left outside."""
    highest = _keep_finite(values).max()
    ends = [highest] + ([] if limits is None else [_keep_finite(limits).max()])
    if threshold is not None:
        ends.append(min(float(np.median(_keep_finite(threshold))), 4 * highest))
    return 1.08 * float(max(ends)) or 1.0
