"""Parts of a whole: levels that add up, contributions, and what lies within and between groups."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray, number_text, percent
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def levels(names: Sequence[str], values: Sequence[float], *, axes: Any = None) -> "Figure":
    """Draw the distances of nested levels as a waterfall, with their sum.

    Parameters
    ----------
    names : sequence of str
        Names of the levels, from the outermost.
    values : sequence of float
        Their distances; NaN for a level that compares nothing.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> figure = plots.levels(["site", "scanner"], [0.5, 0.25])
    >>> figure.axes[0].get_xlabel()
    'Cross-Fusion Distance'
    """
    found = np.asarray(values, np.float64)
    finite = np.where(np.isfinite(found), found, 0.0)
    ends = np.cumsum(finite)
    starts = np.concatenate([[0.0], ends[:-1]])
    whole = float(np.nansum(found))
    with style.open_axes(axes, 0.55 + 0.24 * (len(found) + 1)) as own:
        own.barh(range(len(found)), finite, left=starts, color=style.NEAR, height=0.6)
        own.barh(len(found), ends[-1], color=style.INK, height=0.6)
        for k in range(len(found) - 1):
            own.plot([ends[k]] * 2, [k + 0.3, k + 0.7], color=style.MUTED, linewidth=0.6)
        for k, (value, end) in enumerate(zip([*found, whole], [*ends, ends[-1]], strict=True)):
            share = f" ({percent(value / whole)})" if k < len(found) and 0 < whole < np.inf and value >= 0 else ""
            _annotate_bar(own, end, k, f"{number_text(value)}{share}")
        style.label_rows(own, [*map(style.format_name, names), "whole"])
        own.set_xlim(min(0.0, float(starts.min()), float(ends.min())), 1.55 * max(float(ends.max()), 1e-12))
        own.set_xlabel("Cross-Fusion Distance")
        own.locator_params(axis="x", nbins=6)
    return style.find_figure(own)


def _annotate_bar(axes: Any, end: float, place: int, text: str) -> None:
    """A text to the right of where a bar ends."""
    axes.annotate(text, (end, place), (3, 0), textcoords="offset points", va="center", fontsize="small")


def contributions(
    labels: Sequence[Hashable],
    shares: FloatArray,
    *,
    over: str,
    of: int | None = None,
    what: str = "variance between groups",
    axes: Any = None,
) -> "Figure":
    """Draw contributions to a variance, which may be negative.

    Parameters
    ----------
    labels : sequence
        Names of the contributors, in drawing order.
    shares : array
        Their shares.
    over : str
        What the labels denote, such as "features".
    of : int, optional
        Total number, if only some are shown.
    what : str
        What they contribute to.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> figure = plots.contributions([3, 0], [0.75, 0.25], over="features", of=8)
    >>> figure.axes[0].get_title(loc="left")
    '2 of 8, together 100%'
    """
    found = np.asarray(shares, np.float64)
    some = of is not None and of > len(labels)
    with style.open_axes(axes, 0.6 + 0.17 * max(len(found), 2) + 0.17 * some) as own:
        known = np.nan_to_num(found)
        own.barh(range(len(found)), known, color=np.where(known < 0, style.FAR, style.NEAR), height=0.66)
        style.draw_zero_line(own)
        style.label_rows(own, [*map(style.format_name, labels)])
        own.xaxis.set_major_formatter(lambda value, _: f"{value:.3g}".rstrip() if value == 0 else f"{100 * value:.3g}%")
        own.set_xlabel(f"share of the {what}")
        own.set_ylabel(style.format_name(over))
        own.locator_params(axis="x", nbins=6)
        style.keep_label_inside(own)
        if some:
            own.set_title(f"{len(found)} of {of:,}, together {percent(float(found.sum()))}")
    return style.find_figure(own)


def parts(
    names: Sequence[str],
    values: Sequence[float],
    *,
    title: str,
    limits: Sequence[float] | None = None,
    axes: Any = None,
) -> "Figure":
    """Draw two shares of a total as one bar.

    Parameters
    ----------
    names : sequence of str
        Names of the two shares.
    values : sequence of float
        Their sizes.
    title : str
        Title of the figure.
    limits : sequence of float, optional
        Lower and upper limit of the first share.
    axes : matplotlib.axes.Axes, optional
        Axes to draw on; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> from crossfusion import plots
    >>> figure = plots.parts(["between", "within"], [1.0, 3.0], title="variance")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['between 25.0%', 'within 75.0%']
    """
    whole = float(np.sum(values))
    first = float(values[0]) / whole if whole > 0 else 0.0
    with style.open_axes(axes, 1.15) as own:
        own.barh(0, first, color=style.FAR, height=0.5, label=f"{names[0]} {percent(first)}")
        own.barh(0, 1 - first, left=first, color=style.COLORS[5], height=0.5, label=f"{names[1]} {percent(1 - first)}")
        if limits is not None:
            own.plot(np.clip(limits, 0, 1), [0, 0], color=style.INK, marker="|", markersize=6, label="interval")
        own.set_xlim(0, 1)
        own.set_ylim(-0.4, 0.4)
        own.set_yticks([])
        own.spines["left"].set_visible(False)
        own.grid(visible=False)
        own.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        own.set_title(title)
        own.legend(loc="upper center", bbox_to_anchor=(0.5, -0.38), ncols=3)
    return style.find_figure(own)
