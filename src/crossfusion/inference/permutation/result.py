"""The outcome of a permutation test, and how it comes about: from moments, items and their rearrangements."""

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import FloatArray, InputError, check_seed, check_whole, number_text, plain_value
from crossfusion.fusion import Codes, Design, Fusion, fuse
from crossfusion.inference.permutation.exchangeable import ExchangeableItems, count_landing_rows, find_exchangeable
from crossfusion.inference.permutation.orders import LabelOrders
from crossfusion.inference.permutation.sums import PermutationSums, Values
from crossfusion.moments import Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIE = 1e-12  # relative difference up to which a rearrangement counts as separated as far as the groups are
MOST = 10**8  # permutations, whose outcomes are kept


@dataclass(frozen=True, eq=False, repr=False)
class TestResult:
    """Outcome of a permutation test.

    Parameters
    ----------
    statistic : float
        Pseudo-F of the groups: variance between over variance within them, each by its degrees of freedom.
    pvalue : float
        Share of rearrangements, the observed one included, that separate the groups at least as far.
    permutations : int
        Number of rearrangements in `null`.
    null : array of shape (permutations,)
        The statistic under each of them.
    distance : float
        Cross-Fusion Distance of the groups, plug-in, pooled weights.
    exact : bool
        Whether `null` holds every rearrangement there is, the observed one included, rather than a random sample.

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.permutation_test([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]], list("aaabbb"))
    Permutation test: p = 0.1000 (all 20 rearrangements)
      statistic  73.5000 (by chance: median 0.4712, 95 % up to 73.5000)
      distance   2.9640
    """

    __test__ = False  # not a class of tests, whatever its name suggests to pytest

    statistic: float
    pvalue: float
    permutations: int
    null: FloatArray
    distance: float
    exact: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Fields by name, ready for JSON; infinity becomes "inf".

        Returns
        -------
        dict
            Plain Python values.
        """
        return {entry.name: plain_value(getattr(self, entry.name)) for entry in fields(self)}

    def plot(self, *, axes: Any = None) -> "Figure":
        """Draw the statistic among those of the rearrangements.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure, one column wide, if it is left out.

        Returns
        -------
        matplotlib.figure.Figure
            What was drawn on; write it with ``savefig``.
        """
        return plots.null(self.statistic, self.null, self.pvalue, axes=axes)

    def __repr__(self) -> str:
        half, rare = np.quantile(self.null, (0.5, 0.95), method="higher")
        kind = f"all {self.permutations:,} rearrangements" if self.exact else f"{self.permutations:,} permutations"
        by_chance = f"by chance: median {number_text(half)}, 95 % up to {number_text(rare)}"
        return "\n".join(
            [
                f"Permutation test: p = {number_text(self.pvalue)} ({kind})",
                f"  statistic  {number_text(self.statistic)} ({by_chance})",
                f"  distance   {number_text(self.distance)}",
            ]
        )


def check_test_options(permutations: Any, seed: Any) -> None:
    """Refuse numbers of permutations and seeds that are none."""
    check_whole(permutations, "permutations")
    if permutations > MOST:
        raise InputError(
            "permutations", permutations, "would never end", f"pass {MOST:,} or fewer, which are enough for any purpose"
        )
    check_seed(seed)


def test_moments(
    moments: Moments,
    label: Codes,
    part: Codes,
    unit: Codes,
    design: Design,
    *,
    crossed: bool,
    permutations: int,
    seed: int,
) -> TestResult:
    """Test of the moments of each unit under each label and in each part of a design."""
    items = find_exchangeable(label, part, unit, crossed=crossed)
    landing = count_landing_rows(moments.count, label, part, unit) if crossed else None
    values = Values(moments.mean, part, moments.count, landing)
    return run_test(design, values, items, permutations=permutations, seed=seed)


def run_test(design: Design, values: Values, items: ExchangeableItems, *, permutations: int, seed: int) -> TestResult:
    """Compare the separation of the groups with that under rearrangements of their labels."""
    design.check_groups()
    rows, cells, parts = float(design.cells.count.sum()), len(design.cells), int(design.part.max()) + 1
    _check_freedom(rows, cells, parts)
    exchange = LabelOrders.of(items.label, items.block)
    number = exchange.count(permutations + 1)
    if number == 1:
        raise InputError(
            problem="there is only one way to arrange the labels, so nothing can be judged by chance",
            remedy="pass more units or pairs that may exchange their labels, or coarser strata",
        )
    fusion = fuse(design, weights="pooled")
    pieces = PermutationSums.of(values, items.item, design.cells.merge(design.part, parts).mean, exchange)
    exact = number <= permutations + 1
    scatter = pieces.scatter(exchange.every() if exact else exchange.random(seed), number if exact else permutations)
    if values.landing is None:
        scatter[:, 1] += rows * fusion.total - pieces.present()
    else:  # a mean of few rows that lands where many are would add to the total: flips are compared by what is between
        scatter[:, 1] = rows * fusion.total
    return _result(fusion, scatter, rows, (rows - cells) / (cells - parts), exact)


def _result(fusion: Fusion, scatter: FloatArray, rows: float, freedom: float, exact: bool) -> TestResult:
    """Outcome, from the sums of squares between the groups and of all under each rearrangement."""
    between, total = scatter.T
    share = np.divide(between, total, out=np.zeros_like(between), where=total > 0)
    observed = -math.expm1(-fusion.distance)
    ties = TIE * max(observed, 1 / rows)
    statistic = float(freedom * _ratio(np.array(fusion.between), np.array(fusion.within)))
    null = freedom * _ratio(between, total - between)
    null[np.abs(share - observed) <= ties] = statistic
    reached, number = int(np.count_nonzero(share >= observed - ties)), len(null)
    pvalue = reached / number if exact else (reached + 1) / (number + 1)
    return TestResult(statistic, pvalue, number, null, fusion.distance, exact)


def _check_freedom(rows: float, cells: int, parts: int) -> None:
    if cells == parts:
        raise InputError(
            problem="no stratum holds two of the compared groups, so nothing can be exchanged",
            remedy="pass coarser ones",
        )
    if rows <= cells:
        raise InputError(
            problem="every group has one row only (in its stratum), so there is no spread to judge by",
            remedy="pass more rows, or what belongs together as pairs",
        )


def _ratio(between: FloatArray, within: FloatArray) -> FloatArray:
    """Between over within; infinite without any spread within, 0 without any at all."""
    nothing_within = np.where(between > 0, math.inf, 0.0)
    return np.divide(between, within, out=nothing_within, where=within > 0)
