"""The null distribution of a permutation test."""

from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FloatArray, count_text, number_text, p_text
from crossfusion.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BINS = 40


def null(
    statistic: float, by_chance: FloatArray, pvalue: float, *, name: str = "statistic", axes: Any = None
) -> "Figure":
    """Draw the statistic of a permutation test within its null distribution.

    Parameters
    ----------
    statistic : float
        The statistic of the observed groups.
    by_chance : array
        The statistic of each permutation.
    pvalue : float
        The p-value of the test.
    name : str
        The name of the statistic, under the horizontal axis.
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
    >>> plots.null(3.0, np.array([0.5, 1.0, 1.5]), 0.25).axes[0].get_title(loc="left")
    'p = 0.25, 3 permutations'
    """
    finite = np.asarray(by_chance, np.float64)
    finite = finite[np.isfinite(finite)]
    with style.open_axes(axes, 2.0) as own:
        if len(finite):
            edges = np.histogram_bin_edges(finite, min(MAX_BINS, max(5, round(len(finite) ** 0.5))))
            own.hist(finite, edges, color=style.COLORS[5], edgecolor="white", linewidth=0.3, label="by chance")
        if np.isfinite(statistic):
            own.axvline(statistic, color=style.FAR, linewidth=1.5, label=f"found {number_text(statistic)}")
        else:
            own.plot([], [], color=style.FAR, label="found: infinite")
        own.set_ylim(0, 1.25 * max(own.get_ylim()[1], 1e-12))  # room for the names
        own.set_xlabel(name)
        own.set_ylabel("permutations")
        own.grid(axis="x", visible=False)
        own.set_title(f"{p_text(pvalue)}, {count_text(len(by_chance), 'permutation')}")
        own.legend(loc="upper center", ncols=2)
    return style.find_figure(own)
