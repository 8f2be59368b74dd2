"""Permutation tests of the separation of groups."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from crossfusion._base import FloatArray, InputError, check_option, check_seed, check_whole
from crossfusion.fusion import (
    Codes,
    Design,
    ScaledRows,
    bound_lower_tail,
    caution_about_close_means,
    caution_about_geometry,
    caution_about_overlap,
    fuse,
    join_cautions,
    name_scale,
)
from crossfusion.inference.permutation.exchangeable import (
    ExchangeableItems,
    count_rows_by_label,
    find_exchangeable,
    has_one_entry_each,
)
from crossfusion.inference.permutation.grouped_sums import GroupedSums
from crossfusion.inference.permutation.orders import LabelOrders
from crossfusion.inference.permutation.result import STATISTICS, TestResult, caution_about_number
from crossfusion.inference.permutation.sums import Entries, PermutationSums
from crossfusion.inference.permutation.welch import (
    CellSpread,
    compute_observed,
    divide,
    measure_imbalance,
    measure_items,
    measure_rows,
    measure_scale,
)
from crossfusion.inference.permutation.welch_sums import WelchSums
from crossfusion.inference.unit_errors import UnitMoments, estimate_unit_bias
from crossfusion.moments import Moments

T = TypeVar("T", bound=PermutationSums)
TIE_TOLERANCE = {"welch": 1e-9, "pseudo-f": 1e-12}  # relative difference up to which two statistics count as equal
MAX_PERMUTATIONS = 10**8  # the statistic of each is kept
MAX_IMBALANCE = 1.2  # ratio of the expected to the assumed variance between groups from which pseudo-F has a caution


def check_test_options(permutations: Any, seed: Any, statistic: Any = "welch") -> None:
    """Check the number of permutations, the seed and the name of the statistic."""
    check_whole(permutations, "permutations")
    if permutations > MAX_PERMUTATIONS:
        raise InputError("permutations", permutations, "would never end", f"pass {MAX_PERMUTATIONS:,} or fewer")
    check_seed(seed)
    check_option(statistic, STATISTICS, "statistic")


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
    statistic: str,
) -> TestResult:
    """Test the groups of a design from the moments of each unit under each label and in each stratum."""
    items = find_exchangeable(label, stratum, unit, crossed=crossed)
    count_by_label = count_rows_by_label(moments.count, label, stratum, unit) if crossed else None
    entries = Entries(moments.mean, stratum, moments.count, count_by_label)
    result = run_test(design, entries, items, permutations=permutations, seed=seed, statistic=statistic)
    units = UnitMoments(moments, _find_cells(design, stratum, label), unit)
    return add_cautions(result, design, estimate_unit_bias(units, design, design.weights("pooled")))


def add_cautions(result: TestResult, design: Design, bias: FloatArray | None = None) -> TestResult:
    """Add the cautions of a distance that hold for a test, too; `bias` is as in `caution_about_geometry`."""
    cautions = (
        caution_about_overlap(design),
        caution_about_close_means(_bound_lower_tail(result)),
        caution_about_geometry(design, design.weights("pooled"), bias, design.features),
    )
    return replace(result, caution=join_cautions(result.caution, *cautions))


def name_test_scale(result: TestResult, scaled: Design, design: Design) -> TestResult:
    """Name the scale of a test, and set its distance to that of the `design` in the same scale as all distances."""
    distance = fuse(design.standardize(design.weights("pooled")), weights="pooled").distance
    assert distance is not None  # some stratum holds two groups
    return replace(result, distance=distance, **name_scale(scaled.scale))


def _bound_lower_tail(result: TestResult) -> float:
    """Bound the probability of a statistic as small as this one, from its permutations or, if few exist, its size."""
    reached = int(np.count_nonzero(result.null <= result.statistic))
    share = reached / result.permutations if result.exact else (reached + 1) / (result.permutations + 1)
    usual = float(np.median(result.null))
    return min(share, bound_lower_tail(result.statistic / usual, 1, np.inf)) if usual > 0 else 1.0


def run_test(
    design: Design, entries: Entries, items: ExchangeableItems, *, permutations: int, seed: int, statistic: str
) -> TestResult:
    """Compare the statistic of the groups with its values under permutations of their labels."""
    design.check_groups()
    _check_freedom(design)
    orders = LabelOrders.make(items.label, items.block)
    number = orders.count(permutations + 1)
    if number == 1:
        raise InputError(
            problem="the labels can be arranged in only one way, so no permutation test is possible",
            remedy="pass more units or pairs, or coarser strata",
        )
    exact = number <= permutations + 1
    permute = orders.enumerate_all() if exact else orders.draw_random(seed)
    compute = _compute_welch if statistic == "welch" else _compute_pseudo_f
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        found = compute(design, entries, items, orders, permute, number if exact else permutations)
    if np.isnan(found.statistic) or np.isnan(found.null).any():
        raise InputError(problem="the squares of the values leave the range of float64", remedy="scale the rows")
    reached, drawn = found.rank(TIE_TOLERANCE[statistic]), len(found.null)
    pvalue = reached / drawn if exact else (reached + 1) / (drawn + 1)
    assert found.distance is not None  # some stratum holds two groups
    result = TestResult(found.statistic, pvalue, drawn, found.null, found.distance, exact, statistic)
    return replace(result, caution=caution_about_number(result) or found.caution)


@dataclass(frozen=True)
class Statistics:
    """The distance, and the statistics, observed and of each permutation, as they are and on a scale from 0 to 1."""

    distance: float | None
    statistic: float
    null: FloatArray
    share: float
    shares: FloatArray
    rows: float
    caution: str | None = None

    def rank(self, tolerance: float) -> int:
        """Count the permutations that reach the observed statistic, and set statistics that tie with it to its value.

        Rounding errors are relative to the variance between and within groups, so ties are found on the scale to 1.
        """
        ties = tolerance * max(self.share, 1 / self.rows)
        self.null[np.abs(self.shares - self.share) <= ties] = self.statistic
        return int(np.count_nonzero(self.shares >= self.share - ties))


Permute = Callable[[int, int], Codes]


def _compute_welch(
    design: Design, entries: Entries, items: ExchangeableItems, orders: LabelOrders, permute: Permute, number: int
) -> Statistics:
    spread = _measure_spread(design, entries, items)
    if spread is None or spread.items[np.bincount(design.stratum)[design.stratum] > 1].max() == 1:
        raise InputError(
            problem="every group has one unit only (in its stratum), whose effect cannot be separated from the group's",
            remedy="pass more units, or coarser strata",
        )
    scale = measure_scale(design, spread)
    statistic = compute_observed(design, spread, scale)
    sums = _choose_sums(WelchSums, design, entries.drop_equal_counts(), items, orders)
    null, total = sums.welch(permute, number, scale), float(spread.items.sum())
    with np.errstate(divide="ignore"):
        share, shares = float(1 / (1 + total / np.float64(statistic))), 1 / (1 + total / null)
    return Statistics(fuse(design, weights="pooled").distance, statistic, null, share, shares, total)


def _compute_pseudo_f(
    design: Design, entries: Entries, items: ExchangeableItems, orders: LabelOrders, permute: Permute, number: int
) -> Statistics:
    rows, cells, strata = float(design.cells.count.sum()), len(design.cells), int(design.stratum.max()) + 1
    fusion = fuse(design, weights="pooled")
    sums = _choose_sums(PermutationSums, design, entries, items, orders)
    scatter = sums.scatter(permute, number)
    assert fusion.distance is not None  # some stratum holds two groups
    assert fusion.between is not None
    assert fusion.total is not None
    if entries.count_by_label is None:
        scatter[:, 1] += rows * fusion.total - sums.measure_observed()
    else:  # a mean of few rows that takes a label of many would add to the total: compare only what is between
        scatter[:, 1] = rows * fusion.total
    between, total = scatter.T
    shares = np.divide(between, total, out=np.zeros_like(between), where=total > 0)
    freedom = (rows - cells) / (cells - strata)
    statistic = float(freedom * divide(np.array(fusion.between), np.array(fusion.within)))
    null, share = freedom * divide(between, total - between), -math.expm1(-fusion.distance)
    caution = _caution_about_spread(design, entries, items)
    return Statistics(fusion.distance, statistic, null, share, shares, rows, caution)


def _choose_sums(
    products: type[T], design: Design, entries: Entries, items: ExchangeableItems, orders: LabelOrders
) -> T | GroupedSums:
    """Sum groups by products with their members, or each permutation by itself if there are many groups."""
    route: Any = GroupedSums if GroupedSums.pays(entries, np.bincount(design.stratum)) else products
    if route is GroupedSums and isinstance(entries.mean, ScaledRows):
        entries = replace(entries, mean=entries.mean[:])
    sums: T | GroupedSums = route.make(entries, items.item, _find_centers(design), orders)
    return sums


def _find_centers(design: Design) -> FloatArray:
    """Mean of all rows of each stratum."""
    return design.cells.merge(design.stratum, int(design.stratum.max()) + 1).mean


def _find_cells(design: Design, stratum: Codes, label: Codes) -> Codes:
    """Find the cell of each entry."""
    table = np.zeros((int(design.stratum.max()) + 1, len(design.labels)), int)
    table[design.stratum, design.group] = np.arange(len(design.cells))
    return np.asarray(table[stratum, label])


def _measure_spread(design: Design, entries: Entries, items: ExchangeableItems) -> CellSpread | None:
    """Measure the spread of items in each cell; None if entries are parts of items."""
    cell = _find_cells(design, entries.stratum, items.label[items.item])
    if entries.count is not None:
        return measure_items(entries.mean, entries.count, cell, design)
    return measure_rows(design) if has_one_entry_each(items.item, entries.stratum) else None


def _caution_about_spread(design: Design, entries: Entries, items: ExchangeableItems) -> str | None:
    """Return a caution if groups that differ in size also differ in spread, which pseudo-F takes for equal."""
    if entries.depends_on_label:
        return None
    spread = _measure_spread(design, entries, items)
    if spread is None or spread.items.max() == 1:
        return None
    ratio = measure_imbalance(design, spread)
    if 1 / MAX_IMBALANCE <= ratio <= MAX_IMBALANCE:
        return None
    often = "often" if ratio > 1 else "seldom"
    return (
        f"groups of different size differ in spread, so that pseudo-F rejects equal means too {often}: use the Welch"
        " statistic"
    )


def _check_freedom(design: Design) -> None:
    cells = len(design.cells)
    if cells == int(design.stratum.max()) + 1:
        raise InputError(
            problem="no stratum holds two of the compared groups, so no labels can be permuted",
            remedy="pass coarser ones",
        )
    if design.cells.count.sum() <= cells:
        raise InputError(
            problem="every group has one row only (in its stratum), so the spread within groups is unknown",
            remedy="pass more rows, or what belongs together as pairs",
        )
