"""The permutation test and its result."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import FloatArray, InputError, check_seed, check_whole, number_text
from crossfusion.fusion import Codes, Content, Design, Exclusion, Facts, Fusion, Result, describe_excluded, fuse
from crossfusion.inference.permutation.exchangeable import ExchangeableItems, count_rows_by_label, find_exchangeable
from crossfusion.inference.permutation.orders import LabelOrders
from crossfusion.inference.permutation.sums import Entries, PermutationSums
from crossfusion.moments import Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TIE_TOLERANCE = 1e-12  # relative difference up to which the statistic of a permutation equals the observed one
MAX_PERMUTATIONS = 10**8  # the statistic of each is kept


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(Result):
    """Result of a permutation test.

    Parameters
    ----------
    statistic : float
        Pseudo-F of the groups: variance between groups over variance within them, each divided by its degrees of
        freedom.
    pvalue : float
        Share of permutations, including the observed labels, with a statistic at least as large as the observed one.
    permutations : int
        Number of permutations in `null`.
    null : array of shape (permutations,)
        The statistic under each permutation.
    distance : float
        Plug-in Cross-Fusion Distance between the groups, with pooled weights.
    exact : bool
        Whether `null` holds all possible permutations, including the observed labels, instead of a random sample.
    excluded : tuple of Exclusion
        Groups that have too few units and are left out of the test.

    Notes
    -----
    `to_frame` has one row with all single values. `plot` draws the observed statistic and its distribution
    under permutation.

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.permutation_test([[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]], list("aaabbb"))
    Permutation test: p = 0.1000 (all 20 permutations)
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
    excluded: tuple[Exclusion, ...] = ()

    def _draw(self, axes: Any) -> "Figure":
        """Draw the observed statistic and its distribution under permutation."""
        return plots.null(self.statistic, self.null, self.pvalue, axes=axes)

    def _contents(self) -> list[Content]:
        half, rare = np.quantile(self.null, (0.5, 0.95), method="higher")
        kind = f"all {self.permutations:,} permutations" if self.exact else f"{self.permutations:,} permutations"
        by_chance = f"by chance: median {number_text(half)}, 95 % up to {number_text(rare)}"
        facts = [
            ("statistic", f"{number_text(self.statistic)} ({by_chance})"),
            ("distance", number_text(self.distance)),
        ]
        if self.excluded:
            facts.append(("excluded", describe_excluded(self.excluded)))
        return [f"Permutation test: p = {number_text(self.pvalue)} ({kind})", Facts(facts)]


def check_test_options(permutations: Any, seed: Any) -> None:
    """Check the number of permutations and the seed."""
    check_whole(permutations, "permutations")
    if permutations > MAX_PERMUTATIONS:
        raise InputError("permutations", permutations, "would never end", f"pass {MAX_PERMUTATIONS:,} or fewer")
    check_seed(seed)


def run_moment_test(
    moments: Moments,
    label: Codes,
    stratum: Codes,
    unit: Codes,
    design: Design,
    *,
    crossed: bool,
    permutations: int,
    seed: int,
) -> TestResult:
    """Test the groups of a design from the moments of each unit under each label and in each stratum."""
    items = find_exchangeable(label, stratum, unit, crossed=crossed)
    count_by_label = count_rows_by_label(moments.count, label, stratum, unit) if crossed else None
    entries = Entries(moments.mean, stratum, moments.count, count_by_label)
    return run_test(design, entries, items, permutations=permutations, seed=seed)


def run_test(design: Design, entries: Entries, items: ExchangeableItems, *, permutations: int, seed: int) -> TestResult:
    """Compare the statistic of the groups with its values under permutations of their labels."""
    design.check_groups()
    rows, cells, strata = float(design.cells.count.sum()), len(design.cells), int(design.stratum.max()) + 1
    _check_freedom(rows, cells, strata)
    orders = LabelOrders.make(items.label, items.block)
    number = orders.count(permutations + 1)
    if number == 1:
        raise InputError(
            problem="there is only one way to arrange the labels, so nothing can be judged by chance",
            remedy="pass more units or pairs that may exchange their labels, or coarser strata",
        )
    fusion = fuse(design, weights="pooled")
    sums = PermutationSums.make(entries, items.item, design.cells.merge(design.stratum, strata).mean, orders)
    exact = number <= permutations + 1
    permute = orders.enumerate_all() if exact else orders.draw_random(seed)
    scatter = sums.scatter(permute, number if exact else permutations)
    assert fusion.total is not None  # some stratum holds two groups
    if entries.count_by_label is None:
        scatter[:, 1] += rows * fusion.total - sums.measure_observed()
    else:  # a mean of few rows that takes a label of many would add to the total: compare only what is between
        scatter[:, 1] = rows * fusion.total
    return _summarize_test(fusion, scatter, rows, (rows - cells) / (cells - strata), exact)


def _summarize_test(fusion: Fusion, scatter: FloatArray, rows: float, freedom: float, exact: bool) -> TestResult:
    """Compute the result from the between-group and total sums of squares under each permutation."""
    assert fusion.distance is not None  # some stratum holds two groups
    assert fusion.between is not None
    between, total = scatter.T
    share = np.divide(between, total, out=np.zeros_like(between), where=total > 0)
    observed = -math.expm1(-fusion.distance)
    ties = TIE_TOLERANCE * max(observed, 1 / rows)
    statistic = float(freedom * _divide(np.array(fusion.between, float), np.array(fusion.within)))
    null = freedom * _divide(between, total - between)
    null[np.abs(share - observed) <= ties] = statistic
    reached, number = int(np.count_nonzero(share >= observed - ties)), len(null)
    pvalue = reached / number if exact else (reached + 1) / (number + 1)
    return TestResult(statistic, pvalue, number, null, fusion.distance, exact)


def _check_freedom(rows: float, cells: int, strata: int) -> None:
    if cells == strata:
        raise InputError(
            problem="no stratum holds two of the compared groups, so nothing can be exchanged",
            remedy="pass coarser ones",
        )
    if rows <= cells:
        raise InputError(
            problem="every group has one row only (in its stratum), so there is no spread to judge by",
            remedy="pass more rows, or what belongs together as pairs",
        )


def _divide(between: FloatArray, within: FloatArray) -> FloatArray:
    """Divide between by within; infinite if only `within` is 0, and 0 if both are."""
    nothing_within = np.where(between > 0, math.inf, 0.0)
    return np.divide(between, within, out=nothing_within, where=within > 0)
