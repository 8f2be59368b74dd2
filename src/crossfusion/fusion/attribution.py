"""Attribution of a distance to features or to units."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import MAX_LISTED_GROUPS, FloatArray, check_whole, label_text, number_text, percent
from crossfusion.fusion.design import Codes, Design, between_by_feature, compute_stratum_means
from crossfusion.fusion.display import Content, TextTable
from crossfusion.fusion.distance import check_overlap, log_ratio, measure_overlap
from crossfusion.fusion.one_vs_rest import leave_one_out
from crossfusion.fusion.result import Result
from crossfusion.fusion.scaling import describe_scale, name_scale
from crossfusion.moments import Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEATURES = "features"


@dataclass(frozen=True, eq=False, repr=False)
class Attribution(Result):
    """Contributions of features or units to the variance between groups.

    Parameters
    ----------
    over : str
        "features", or the factor whose values are the units.
    labels : tuple
        Names of the features, or their numbers from 0 if they have none; or the values of the factor.
    contribution, share : array
        Contribution to the variance between groups, which may be negative for a unit, and its share of the total. The
        shares sum to 1, or are NaN if there is no variance between groups. Both are NaN if nothing is compared.
    without : array
        Plug-in CFD without this feature or unit; NaN if fewer than two groups remain, or if they share no stratum.
    overlap : float
        Share of the weight in strata with at least two groups; 1 without ``given``. If it is 0, nothing is compared.
    scale : str, optional
        "features" if each feature is in units of its standard deviation within groups.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary within groups; their contribution is 0.

    Notes
    -----
    `to_frame` returns one row per feature or unit with label, contribution, share, without.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0]], by={"site": ["A", "A", "B", "B"], "n": [1, 2, 1, 2]})
    >>> summary.attribution("site", over="n")
    Share of the variance between groups, largest first
    n  share  distance without
    1  50.0%               inf
    2  50.0%               inf
    """

    over: str
    labels: tuple[Hashable, ...]
    contribution: FloatArray
    share: FloatArray
    without: FloatArray
    overlap: float = 1.0
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None

    def _values(self) -> dict[str, Any]:
        return {name: value for name, value in super()._values().items() if value is not None}

    def _columns(self) -> dict[str, Any]:
        columns = {"contribution": self.contribution, "share": self.share, "without": self.without}
        return {"label": list(self.labels)} | columns

    def top(self, number: int) -> list[int]:
        """Return the positions of the largest contributions in absolute value.

        Parameters
        ----------
        number : int
            Number of contributions.

        Returns
        -------
        list of int
            Indices into `labels`, largest contribution first.
        """
        check_whole(number, "number", least=0)
        order = np.argsort(-np.abs(self.contribution), kind="stable")
        return [int(position) for position in order[:number]]

    def plot(self, number: int = 15, *, axes: Any = None) -> "Figure":
        """Draw the largest contributions.

        Parameters
        ----------
        number : int
            Number of contributions.
        axes : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure, one column wide.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; save it with ``savefig``.
        """
        check_whole(number, "number")
        top = self.top(number)
        labels = [self.labels[i] for i in top]
        return plots.contributions(labels, self.share[top], over=self.over, of=len(self.labels), axes=axes)

    def _contents(self) -> list[Content]:
        rows = [
            [label_text(self.labels[i]), percent(self.share[i]), number_text(self.without[i])]
            for i in self.top(MAX_LISTED_GROUPS)
        ]
        table = TextTable([self.over, "share", "distance without"], rows, more=len(self.labels) - len(rows))
        overlap = [] if self.overlap == 1 else [f"overlap: {percent(self.overlap)} of the weight"]
        scale = [f"scale: {describe_scale(self.constant or ())}"] if self.scale else []
        return ["Share of the variance between groups, largest first", table, *overlap, *scale]


def _compute_share(contribution: FloatArray, between: float) -> FloatArray:
    return contribution / between if between > 0 else np.full(len(contribution), np.nan)


def attribute_to_features(design: Design, *, weights: str) -> Attribution:
    """Split the between-variance over features, of which it is the sum."""
    design.check_groups()
    cells, weight = design.cells, design.weights(weights)
    overlap = check_overlap(weight, design.stratum)
    nothing = np.nan if overlap == 0 else 0.0  # is compared
    between = between_by_feature(cells.mean, weight, design.stratum) + nothing
    within = np.asarray((weight / cells.count) @ cells.sumsq)
    without = [log_ratio(b, w) + nothing for b, w in zip(_sum_others(between), _sum_others(within), strict=True)]
    whole = float(between.sum())
    labels = tuple(range(cells.dim)) if design.features is None else tuple(design.features)
    share = _compute_share(between, whole)
    return Attribution(FEATURES, labels, between, share, np.array(without), overlap, **name_scale(design.scale))


def _sum_others(values: FloatArray) -> FloatArray:
    """Sum, for each entry, all other entries, without subtraction."""
    padded = np.concatenate([[0.0], values, [0.0]])
    return np.asarray(np.cumsum(padded)[:-2] + np.cumsum(padded[::-1])[::-1][2:])


def attribute_to_units(
    fine: Moments, cell: Codes, unit: Codes, design: Design, *, over: str, units: Sequence[Hashable], weights: str
) -> Attribution:
    """Split the between-variance over units, w_u ⟨μ_u − μ_g, μ_c − μ_g⟩, and leave each unit out in turn.

    `fine` has one entry per observed combination of a cell of the design and a unit.
    """
    design.check_groups()
    cells, weight = design.cells, design.weights(weights)
    overlap = check_overlap(weight, design.stratum)
    center = compute_stratum_means(cells.mean, weight, design.stratum)[design.stratum]
    direction = cells.mean - center
    fine_weight = weight[cell] * fine.count / cells.count[cell]
    products = np.einsum("ij,ij->i", fine.mean - center[cell], direction[cell])
    contribution = np.bincount(unit, weights=fine_weight * products, minlength=len(units)).astype(np.float64)
    contribution += np.nan if overlap == 0 else 0.0  # nothing is compared
    between = float(np.sum(weight * np.einsum("ij,ij->i", direction, direction)))
    others = leave_one_out(fine, cell)
    without = []
    for code in range(len(units)):
        own = np.flatnonzero(unit == code)
        without.append(_compute_distance_with(design, cell[own], others[own], weights))
    share = _compute_share(contribution, between)
    return Attribution(over, tuple(units), contribution, share, np.array(without), overlap, **name_scale(design.scale))


def _compute_distance_with(design: Design, changed: Codes, replacement: Moments, weights: str) -> float:
    """Compute the distance with some cells replaced, or dropped if empty; NaN if nothing remains to compare."""
    count, mean, sumsq = design.cells.count.copy(), design.cells.mean.copy(), design.cells.sumsq.copy()
    count[changed], mean[changed], sumsq[changed] = replacement.count, replacement.mean, replacement.sumsq
    kept = np.flatnonzero(count > 0)
    present, group = np.unique(design.group[kept], return_inverse=True)
    if len(present) < 2:
        return math.nan
    rest = Design(Moments(count[kept], mean[kept], sumsq[kept]), group, design.stratum[kept], present.tolist())
    weight = rest.weights(weights)
    if measure_overlap(weight, rest.stratum) == 0:
        return math.nan
    between = between_by_feature(rest.cells.mean, weight, rest.stratum)
    return log_ratio(float(between.sum()), float(np.sum(weight * rest.cells.dispersion)))
