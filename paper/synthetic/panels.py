"""One panel of a figure: measures against the factor that an experiment varies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.checks import load_library
from paper.synthetic.measures import NAMES
from paper.synthetic.tables import FACTORS, describe_experiment

Row = dict[str, Any]
BAND = 2.0  # standard errors on either side
LOG_FROM = 10.0  # ratio of the largest to the smallest value from which an axis is logarithmic
LINEAR = ("imbalance",)  # where unbiased distances of few rows scatter around zero

# Colours of Okabe and Ito, which colour-blind readers tell apart; Cross-Fusion Distances share theirs. Wasserstein,
# Hausdorff and Chamfer often coincide, so the lines drawn later are thinner, and the marks of earlier ones hollow.
HOLLOW = {"markerfacecolor": "none", "markeredgewidth": 1.2}
DASHED, DOTTED, BROKEN = (0, (4, 2)), (0, (1, 1.2)), (0, (5, 1, 1, 1))
STYLES: dict[str, dict[str, Any]] = {
    "cfd": {"color": "#d55e00", "marker": "o", "linewidth": 2.4, "zorder": 4},
    "cfd_unbiased": {"color": "#d55e00", "linestyle": DASHED},
    "cfd_balanced": {"color": "#8c3d00", "marker": "o", "linestyle": DOTTED},
    "cfd_balanced_unbiased": {"color": "#8c3d00", "linestyle": DASHED},
    "cfd_trimmed": {"color": "#8c3d00", "marker": "P", "linestyle": BROKEN, "zorder": 6},
    "wasserstein": {"color": "#0072b2", "marker": "s", "linewidth": 3.0, "markersize": 9, **HOLLOW},
    "sinkhorn": {"color": "#0072b2", "marker": "s", "linewidth": 3.0, "markersize": 9, **HOLLOW},
    "mmd": {"color": "#009e73", "marker": "^", "linewidth": 1.8, "markersize": 8, "zorder": 5, **HOLLOW},
    "hausdorff": {"color": "#cc79a7", "marker": "v", "linewidth": 2.2, "markersize": 6.5, **HOLLOW},
    "chamfer": {"color": "#e69f00", "marker": "D", "markersize": 3.5},
    "energy": {"color": "#56b4e9", "marker": "x", "linestyle": DASHED},
    "gaussian_wasserstein": {"color": "#555f6b", "marker": "1", "linestyle": DOTTED},
    "sliced_wasserstein": {"color": "#555f6b", "marker": "+", "linestyle": DASHED},
    "classifier": {"color": "#000000", "marker": "*", "linestyle": BROKEN},
}
COMMON = {"linewidth": 1.3, "markersize": 4.5}


@dataclass(frozen=True)
class Line:
    """One measure: where, how much, and its standard error."""

    measure: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64]


@dataclass(frozen=True)
class Panel:
    """What a panel shows: an experiment, a quantity, and the measures in it."""

    experiment: str
    variant: str
    quantity: str
    measures: tuple[str, ...]

    def lines(self, rows: Sequence[Row]) -> list[Line]:
        """Its lines, of rows of `levels` of one dimension and size; measures without values are left out."""
        error = "stderr" if self.quantity == "mean" else f"{self.quantity}_stderr"
        found = []
        for measure in self.measures:
            key = self.experiment, self.variant, measure
            here = [row for row in rows if (row["experiment"], row["variant"], row["measure"]) == key]
            columns = (_numbers(here, name) for name in ("level", self.quantity, error))
            line = Line(measure, *columns)
            if np.isfinite(line.y).any():
                found.append(line)
        return found


def _numbers(rows: Sequence[Row], name: str) -> NDArray[np.float64]:
    return np.array([row[name] for row in rows], np.float64)  # None is NaN


def draw(axis: Any, panel: Panel, lines: Sequence[Line], letter: str) -> dict[str, Any]:
    """Draw a panel; return what its legend shows, by name."""
    handles = {}
    for line in lines:
        style = COMMON | STYLES[line.measure]
        (handles[NAMES[line.measure]],) = axis.plot(line.x, line.y, **style)
        band = BAND * np.nan_to_num(line.error)
        axis.fill_between(line.x, line.y - band, line.y + band, color=style["color"], alpha=0.15, linewidth=0)
    kind = ", in standard deviations" if panel.quantity == "shift" else ""
    axis.set_title(f"({letter}) {describe_experiment(panel.experiment, panel.variant)}{kind}", fontsize=10)
    axis.set_xlabel(FACTORS[panel.experiment])
    axis.tick_params(labelsize=8)
    axis.grid(color="#d8dce0", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    _set_factor(axis, panel.experiment, lines[0].x)
    _set_scale(axis, panel, lines)
    return handles


def _set_factor(axis: Any, experiment: str, x: NDArray[np.float64]) -> None:
    """Ticks at the levels; factors that double or shrink are on a logarithmic axis."""
    if experiment in ("displacement", "dispersion"):
        return
    if experiment in ("scaling", "topology", "imbalance"):
        axis.set_xscale("log")
        axis.minorticks_off()
    if experiment == "imbalance":
        axis.invert_xaxis()
    small = experiment == "imbalance"
    axis.set_xticks(x, [f"1/{1 / value:g}" if small and value < 1 else f"{value:g}" for value in x])


def _set_scale(axis: Any, panel: Panel, lines: Sequence[Line]) -> None:
    """A logarithmic axis where values differ by factors, with numbers that people read."""
    ticker = load_library("matplotlib.ticker", "matplotlib", "reproduce", "a figure")
    low, high = _extent(lines)
    if panel.quantity == "shift":
        axis.set_yscale("symlog", linthresh=2.0)
    elif panel.quantity == "mean":
        axis.set_yscale("log", nonpositive="mask")
        axis.set_ylim(bottom=low / 4)
    elif panel.experiment in LINEAR or high < LOG_FROM * low:
        bottom, top = axis.get_ylim()
        axis.set_ylim(min(bottom, 0.9), max(top, 1.1))  # so that noise around one does not look like a trend
        return
    else:
        axis.set_yscale("log", nonpositive="mask")
        axis.set_ylim(bottom=low / 1.5)
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.yaxis.set_minor_formatter(ticker.NullFormatter())


def _extent(lines: Sequence[Line]) -> tuple[float, float]:
    """Range of the values that are positive by definition; unbiased ones may be as near to zero as they like."""
    sure = [line.y for line in lines if "unbiased" not in line.measure] or [line.y for line in lines]
    values = np.concatenate(sure)
    positive = values[values > 0]
    return (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
