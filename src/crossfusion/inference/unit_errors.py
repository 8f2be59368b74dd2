"""Errors of a distance whose rows come in units, such as patients or slides, from the moments of the units.

Units are independent of each other, their rows are not. A unit u that has n_uc rows of mean μ_uc in cell c adds
e_uc = n_uc (μ_uc − μ_c) / n_c to the error of the cell's mean. So the covariance of the errors of the means of cells c
and c', summed over features, is V_cc' = f_cc' Σ_u ⟨e_uc, e_uc'⟩ over the units they share, with a factor f_cc' that
corrects for centering. Cells without common units (units nested in groups) have uncorrelated errors; cells that share
units (a slide on two scanners) have correlated errors. A design may have both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from crossfusion._base import FloatArray, InputError, arg, map_threads
from crossfusion.fusion import Codes, Design, split_by_stratum
from crossfusion.inference.intervals import Errors
from crossfusion.inference.permutation.exchangeable import encode_strata_sets
from crossfusion.inference.row_errors import bound_quadratic
from crossfusion.inference.scale_errors import ScaleErrors, estimate_scale_errors, weigh_features
from crossfusion.inference.unit_pairs import StratumErrors, UnitPairs
from crossfusion.moments import READ_BYTES, Moments


@dataclass(frozen=True)
class UnitMoments:
    """Moments of units in cells, with the cell and the unit of each entry."""

    moments: Moments
    cell: Codes
    unit: Codes

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    def count_units(self, cells: int) -> FloatArray:
        """Number of units in each cell."""
        return np.bincount(self.cell, minlength=cells).astype(np.float64)

    def rescale(self, design: Design) -> "UnitMoments":
        """The same units, in the scale of a design."""
        return self if design.scale is None else replace(self, moments=self.moments.multiply(design.scale.factor))

    def select_cells(self, cells: Codes) -> "UnitMoments":
        """Units in these cells, with cells and units renumbered."""
        if len(cells) > self.cell.max():
            return self
        place = np.full(int(self.cell.max()) + 1, -1)
        place[cells] = np.arange(len(cells))
        kept = np.flatnonzero(place[self.cell] >= 0)
        return UnitMoments(
            self.moments[kept], place[self.cell[kept]], np.unique(self.unit[kept], return_inverse=True)[1]
        )


@dataclass(frozen=True)
class UnitErrors:
    """Errors of a distance, and the contribution of each unit and each pair of units.

    Parameters
    ----------
    errors : Errors
        Of the distance.
    influence : array of shape (units,)
        First-order contribution of each unit to the distance; the sum of squares is the variance of the linear term.
    pairs : UnitPairs
        Contributions of pairs of units to the quadratic term, divided by the variance within.
    ratio : float
        Plug-in variance within, divided by the total.
    """

    errors: Errors
    influence: FloatArray
    pairs: UnitPairs
    ratio: float

    @property
    def kernel(self) -> FloatArray:
        """Contribution of each pair of different units, or of a sample of them, divided by the total variance.

        It is scaled so that twice the sum of its squares is the variance of the quadratic term.
        """
        with map_threads(1):
            return self.pairs.compute() * self.ratio


def estimate_unit_errors(units: UnitMoments, design: Design, weight: FloatArray) -> UnitErrors:
    """Estimate the errors of the distance of a design with these weights."""
    moments, cell, cells = units.moments, units.cell, design.cells
    if np.bincount(cell, minlength=len(cells)).min() < 2:
        raise InputError(
            problem=f"{arg('level')} and {arg('units')} need two units or more in each group (in its stratum), to tell"
            " the group's effect from a unit's own",
            remedy="leave smaller groups out, or pass coarser strata",
        )
    share = moments.count / cells.count[cell]
    sides = design.compute_sides(weight)
    between, within = sides.between, sides.within
    square, along = _measure_gaps(units, cells, sides.find_direction(cells.mean) if within > 0 else None)
    scatter = moments.sumsq.sum(axis=1)
    own = _estimate_mean_errors(units, share**2 * square, scatter, share, cells)
    strata = [
        _estimate_covariances(members, units, design, share, weight, own)
        for members in split_by_stratum(design.stratum)
    ]
    noise = _estimate_scale_errors(units, design, weight)
    bias = sum(float(np.sum(stratum.form * stratum.covariance)) for stratum in strata) * noise.bias_factor
    mixed = sum(float(np.sum(stratum.mixture * stratum.covariance)) for stratum in strata)
    if not (within > 0 and bias > 0):
        raise InputError(
            problem=f"{arg('level')} and {arg('units')} need units that differ within the groups, and strata that"
            " groups share",
            remedy=f"without them the standard error is undefined, so leave {arg('level')} out",
        )
    total = within + between
    excess = _measure_excess(units, design, weight)
    if excess is None:
        excess = scatter + moments.count * (square - cells.dispersion[cell])
    influence = (excess + 2 * moments.count * along) / total - excess / within
    influence = np.bincount(units.unit, weights=influence * (weight / cells.count)[cell]).astype(np.float64)
    influence -= 2 * sum(_compute_self_influence(stratum, units, share) for stratum in strata) / total
    squared = influence**2 / (1 - _compute_leverage(units, weight, share))
    pairs = UnitPairs.sample(strata, cell, units.unit, share, partial(_compute_errors, units, cells, share), within)
    with map_threads(1):
        squares = pairs.sum_squares()
    return UnitErrors(
        errors=Errors(
            between=np.array((noise.shrinkage * between - bias) / within),
            within=np.array(1 + (np.sum(weight * own) - mixed) / within),
            total=np.array(total / within),
            linear=np.array(float(squared.sum())),
            bias=np.array(bias / within),
            quadratic=np.array(max(2 * squares, bound_quadratic(bias / within, design.dim * design.rank)))
            * noise.inflate(design.rank),
            freedom=np.array(_estimate_freedom(units, design, squared)),
        ),
        influence=np.sign(influence) * np.sqrt(squared),
        pairs=pairs,
        ratio=within / total,
    )


def _estimate_scale_errors(units: UnitMoments, design: Design, weight: FloatArray) -> ScaleErrors:
    """Estimate the error of the scale of a design, if it has one."""
    form = weight * (1 - weight / np.bincount(design.stratum, weights=weight)[design.stratum])
    return estimate_scale_errors(units.moments, units.cell, design, weight, form)


def _measure_excess(units: UnitMoments, design: Design, weight: FloatArray) -> FloatArray | None:
    """Compute how far the scatter of each unit exceeds that of its cell, if features do not all count the same."""
    if design.scale is None:
        return None
    counted = weigh_features(design, weight)
    moments, cells, root = units.moments, design.cells, np.sqrt(counted)
    stretched = replace(units, moments=moments.multiply(root)), cells.multiply(root)
    square, _ = _measure_gaps(*stretched)
    usual = np.asarray(cells.sumsq @ counted) / cells.count
    return np.asarray(moments.sumsq @ counted + moments.count * (square - usual[units.cell]))


def _measure_gaps(
    units: UnitMoments, cells: Moments, direction: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Compute ‖μ_uc − μ_c‖² and, in the direction of each cell, ⟨μ_uc − μ_c, direction_c⟩; some entries at a time."""
    mean, cell = units.moments.mean, units.cell
    square, along = np.zeros((2, len(cell)))
    step = max(1, READ_BYTES // (8 * cells.dim))
    for start in range(0, len(cell), step):
        here = slice(start, start + step)
        gap = mean[here] - cells.mean[cell[here]]
        square[here] = np.einsum("ij,ij->i", gap, gap)
        if direction is not None:
            along[here] = np.einsum("ij,ij->i", gap, direction[cell[here]])
    return square, along


def _compute_errors(units: UnitMoments, cells: Moments, share: FloatArray, entries: Codes) -> FloatArray:
    """Compute what some entries add to the errors of their cells' means, e_uc."""
    gap = units.moments.mean[entries] - cells.mean[units.cell[entries]]
    return np.asarray(gap * share[entries][:, None])


def _compute_leverage(units: UnitMoments, weight: FloatArray, share: FloatArray) -> FloatArray:
    """Compute the share of each unit's error by which it has moved the means that it is compared with."""
    of_cell = weight[units.cell]
    squares = np.bincount(units.unit, weights=of_cell * share**2)
    return np.asarray(squares / np.bincount(units.unit, weights=of_cell * share))


def _estimate_freedom(units: UnitMoments, design: Design, squared: FloatArray) -> float:
    """Estimate the degrees of freedom of the standard error: units minus kinds, fewer if single units dominate."""
    freedom = float(max(units.unit_count - len(np.unique(encode_strata_sets(units.unit, design.group[units.cell]))), 1))
    linear, fourth = float(squared.sum()), float(np.sum(squared**2))
    if fourth > 0:
        freedom = min(freedom, 2 * linear**2 / (fourth - linear**2 / (units.unit_count + 1)))
    return freedom


def _estimate_mean_errors(
    units: UnitMoments, square: FloatArray, scatter: FloatArray, share: FloatArray, cells: Moments
) -> FloatArray:
    """Estimate the squared error of the mean of each cell, V_c, from ‖e_uc‖² and the scatter of rows within units.

    Units of variance τ², with rows of variance σ² around them, give the mean of n rows an error of S τ² + σ²/n, where S
    is the sum of the units' squared shares of the rows. In Σ ‖e_uc‖² centering leaves (S − 2 Σ share³ + S²) τ² of the
    first and (1 − S) σ²/n of the second, and σ² is known from the rows within units. Of equal units this makes
    U/(U − 1) Σ ‖e_uc‖².
    """
    cell = units.cell
    found, second, third = (np.bincount(cell, weights=values) for values in (square, share**2, share**3))
    factor = second / (second - 2 * third + second**2)
    freedom = np.bincount(cell, weights=units.moments.count - 1)
    noise = np.where(
        freedom > 0, np.bincount(cell, weights=scatter) / np.maximum(freedom, 1) / cells.count, 0.0
    )  # σ²/n
    return np.asarray(np.maximum(factor * found - ((1 - second) * factor - 1) * noise, found))


def estimate_cell_errors(units: UnitMoments, cells: Moments) -> tuple[FloatArray, FloatArray]:
    """Estimate the squared error of the mean of each cell, NaN for one unit, and the sum of squared unit shares."""
    share = units.moments.count / cells.count[units.cell]
    square, scatter = share**2 * _measure_gaps(units, cells)[0], units.moments.sumsq.sum(axis=1)
    second = np.asarray(np.bincount(units.cell, weights=share**2), float)
    single = np.bincount(units.cell) < 2
    with np.errstate(divide="ignore", invalid="ignore"):
        own = _estimate_mean_errors(units, square, scatter, share, cells)
    return np.where(single, np.nan, own), second


def estimate_unit_bias(units: UnitMoments, design: Design, weight: FloatArray) -> FloatArray:
    """Estimate the variance between groups that units add by chance, per feature, as if no unit were in two groups."""
    cells, cell = design.cells, units.cell
    share = units.moments.count / cells.count[cell]
    number = np.bincount(cell, minlength=len(cells))
    of_side = design.compute_share(weight)
    of_cell = weight / np.bincount(design.stratum, weights=weight)[design.stratum]
    factor = (weight * (of_side - of_cell) * number / np.maximum(number - 1, 1))[cell] * share**2
    bias, step = np.zeros(cells.dim), max(1, READ_BYTES // (8 * cells.dim))
    for start in range(0, len(cell), step):
        here = slice(start, start + step)
        bias += factor[here] @ (units.moments.mean[here] - cells.mean[cell[here]]) ** 2
    return bias


def _estimate_covariances(
    members: Codes, units: UnitMoments, design: Design, share: FloatArray, weight: FloatArray, own: FloatArray
) -> StratumErrors:
    """Estimate the covariances of the errors of the means in one stratum, summed over features."""
    cells = design.cells
    squares = np.diag(np.bincount(units.cell, weights=share**2).astype(np.float64)[members])
    covariance = np.diag(own[members])
    for a, b, here, there in _find_shared_units(members, units):
        both = share[here] * share[there]
        squares[a, b] = squares[b, a] = both.sum()
        errors = (_compute_errors(units, cells, share, entries) for entries in (here, there))
        factor = 1 / (1 - np.sum(both * (share[here] + share[there])) / both.sum() + both.sum())
        covariance[a, b] = covariance[b, a] = factor * np.einsum("ij,ij->", *errors)
    products = np.outer(weight[members], weight[members])
    together = np.diag(weight[members])
    if design.side is not None:
        of_side = np.bincount(design.side, weights=weight)[design.side[members]]
        together = products * (design.side[members][:, None] == design.side[members]) / of_side
    form = together - products / weight[members].sum()
    inflate = 1 / (1 - np.diagonal(squares))
    scale = form * np.sqrt(np.outer(inflate, inflate) / (1 - squares))
    return StratumErrors(members, form, np.diag(weight[members]) - together, covariance, squares, scale)


def _find_shared_units(members: Codes, units: UnitMoments) -> Iterator[tuple[int, int, Codes, Codes]]:
    """Find pairs of cells of a stratum that share units: their positions, and the shared units' entries in both."""
    inside, place = _locate_entries(members, units)
    if np.bincount(units.unit[inside]).max() == 1:
        return  # every unit is in one cell only
    positions = [inside[place == position] for position in range(len(members))]
    for b in range(len(members)):
        for a in range(b):
            left, right = units.unit[positions[a]], units.unit[positions[b]]
            _, here, there = np.intersect1d(left, right, assume_unique=True, return_indices=True)
            if len(here):
                yield a, b, positions[a][here], positions[b][there]


def _compute_self_influence(stratum: StratumErrors, units: UnitMoments, share: FloatArray) -> FloatArray:
    """Compute the mean effect of each unit's own error on its influence; 0 if all units have equal shares."""
    inside, cell = _locate_entries(stratum.members, units)
    unit, own = units.unit[inside], share[inside]
    crossed, whole = stratum.form * stratum.variance, np.sum(stratum.form * stratum.covariance, axis=1)
    if np.bincount(unit).max() == 1:
        effect = own * (own * np.diagonal(crossed)[cell] - whole[cell])
        return np.bincount(unit, weights=effect, minlength=units.unit_count).astype(np.float64)
    shares = np.zeros((units.unit_count, len(stratum.members)))
    shares[unit, cell] = own
    return np.asarray(np.sum(shares * (shares @ crossed), axis=1) - shares @ whole)


def _locate_entries(members: Codes, units: UnitMoments) -> tuple[Codes, Codes]:
    """Find the entries in some cells, and their cells among these."""
    place = np.full(int(units.cell.max()) + 1, -1)
    place[members] = np.arange(len(members))
    inside = np.flatnonzero(place[units.cell] >= 0)
    return inside, place[units.cell[inside]]
