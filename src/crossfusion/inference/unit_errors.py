"""The errors of a distance whose rows come in units, such as patients or slides, from the moments of the units.

Units are independent of each other, their rows are not. A unit u that has n_uc rows of mean μ_uc in cell c adds
e_uc = n_uc (μ_uc − μ_c) / n_c to the error of the cell's mean. So the covariance of the errors of the means of cells c
and c', summed over features, is V_cc' = f_cc' Σ_u ⟨e_uc, e_uc'⟩ over the units they share, with a factor f_cc' that
undoes what centring takes away. Cells without common units (units nested in groups) have uncorrelated errors, the same
units in several cells (a slide on two scanners) correlated ones; a design may have both.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray, InputError, arg, map_threads
from crossfusion.fusion import Codes, Design, between_by_feature, split_by_stratum, stratum_means
from crossfusion.inference.intervals import Errors
from crossfusion.inference.permutation.exchangeable import encode_strata_sets
from crossfusion.inference.row_errors import least_quadratic
from crossfusion.moments import Moments

SAMPLE = 2048  # pieces (a unit's rows in one cell) whose products give the size of the quadratic part


@dataclass(frozen=True)
class UnitMoments:
    """Moments of the rows that units have in cells, with the cell and the unit of each."""

    moments: Moments
    cell: Codes
    unit: Codes

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    def of_cells(self, cells: Codes) -> "UnitMoments":
        """The pieces in these cells, both numbered anew."""
        place = np.full(int(self.cell.max()) + 1, -1)
        place[cells] = np.arange(len(cells))
        kept = np.flatnonzero(place[self.cell] >= 0)
        return UnitMoments(
            self.moments[kept], place[self.cell[kept]], np.unique(self.unit[kept], return_inverse=True)[1]
        )


@dataclass(frozen=True)
class UnitErrors:
    """Errors of a distance, and what each unit and each pair of units adds to them.

    Parameters
    ----------
    errors : Errors
        Of the distance.
    influence : array of shape (units,)
        What each unit adds to the distance, to first order; the sum of its squares is the variance of that part.
    kernel : array of shape (units, units), or smaller where units are sampled
        What pairs of different units add to the quadratic part, over the total variance; scaled so that twice the sum
        of its squares is the variance of that part.
    """

    errors: Errors
    influence: FloatArray
    kernel: FloatArray


def estimate_unit_errors(pieces: UnitMoments, design: Design, weight: FloatArray) -> UnitErrors:
    """Errors of the distance of a design with these weights."""
    moments, cell, cells = pieces.moments, pieces.cell, design.cells
    if np.bincount(cell, minlength=len(cells)).min() < 2:
        raise InputError(
            problem=f"{arg('level')} and {arg('units')} need two units or more in each group (in its stratum), to tell"
            " the group's effect from a unit's own",
            remedy="leave smaller groups out, or pass coarser strata",
        )
    share = moments.count / cells.count[cell]
    error = (moments.mean - cells.mean[cell]) * share[:, None]  # e_uc
    own = _own_errors(pieces, error, share, cells)
    tables = [_covariances(members, pieces, error, share, weight, own) for members in split_by_stratum(design.part)]
    between = float(between_by_feature(cells.mean, weight, design.part).sum())
    within = float(np.sum(weight * cells.dispersion))
    bias = sum(float(np.sum(table.form * table.covariance)) for table in tables)
    if not (within > 0 and bias > 0):
        raise InputError(
            problem=f"{arg('level')} and {arg('units')} need units that differ within the groups, and strata that"
            " groups share",
            remedy=f"without them there is no error to speak of, so leave {arg('level')} out",
        )
    total = within + between
    influence = _influence(pieces, design, weight, within, total)
    influence -= 2 * sum(_own_influence(table, pieces, share) for table in tables) / total
    squared = influence**2 / (1 - _leverage(pieces, weight, share))
    with map_threads(1):
        kernel = _kernel(tables, pieces, error, share)
    return UnitErrors(
        errors=Errors(
            between=np.array((between - bias) / within),
            within=np.array(1 + np.sum(weight * own) / within),
            total=np.array(total / within),
            linear=np.array(float(squared.sum())),
            bias=np.array(bias / within),
            quadratic=np.array(max(2 * np.sum((kernel / within) ** 2), least_quadratic(bias / within, design))),
            freedom=np.array(_freedom(pieces, design, squared)),
        ),
        influence=np.sign(influence) * np.sqrt(squared),
        kernel=kernel / total,
    )


def _influence(pieces: UnitMoments, design: Design, weight: FloatArray, within: float, total: float) -> FloatArray:
    """Sum of the influences of each unit's rows on the distance."""
    moments, cell, cells, part = pieces.moments, pieces.cell, design.cells, design.part
    gap = moments.mean - cells.mean[cell]
    direction = (cells.mean - stratum_means(cells.mean, weight, part)[part])[cell]
    square = moments.sumsq.sum(axis=1) + moments.count * np.einsum("ij,ij->i", gap, gap)
    excess = square - moments.count * cells.dispersion[cell]
    influence = (excess + 2 * moments.count * np.einsum("ij,ij->i", gap, direction)) / total - excess / within
    return np.bincount(pieces.unit, weights=influence * (weight / cells.count)[cell]).astype(np.float64)


def _leverage(pieces: UnitMoments, weight: FloatArray, share: FloatArray) -> FloatArray:
    """By how much of its own error each unit has moved the means that it is compared with."""
    of_cell = weight[pieces.cell]
    squares = np.bincount(pieces.unit, weights=of_cell * share**2)
    return np.asarray(squares / np.bincount(pieces.unit, weights=of_cell * share))


def _freedom(pieces: UnitMoments, design: Design, squared: FloatArray) -> float:
    """Degrees of freedom of the standard error: units less their kinds, and fewer where single units decide."""
    freedom = float(max(pieces.units - len(np.unique(encode_strata_sets(pieces.unit, design.group[pieces.cell]))), 1))
    linear, fourth = float(squared.sum()), float(np.sum(squared**2))
    if fourth > 0:
        freedom = min(freedom, 2 * linear**2 / (fourth - linear**2 / (pieces.units + 1)))
    return freedom


def _own_errors(pieces: UnitMoments, error: FloatArray, share: FloatArray, cells: Moments) -> FloatArray:
    """Squared error of the mean of each cell, V_c.

    Units of variance τ², with rows of variance σ² around them, give the mean of n rows an error of S τ² + σ²/n, where S
    is the sum of the units' squared shares of the rows. In Σ ‖e_uc‖² centring leaves (S − 2 Σ share³ + S²) τ² of the
    first and (1 − S) σ²/n of the second, and σ² is known from the rows within units. Of equal units this makes
    U/(U − 1) Σ ‖e_uc‖².
    """
    moments, cell = pieces.moments, pieces.cell
    found, second, third = (
        np.bincount(cell, weights=values) for values in (np.einsum("ij,ij->i", error, error), share**2, share**3)
    )
    factor = second / (second - 2 * third + second**2)
    freedom = np.bincount(cell, weights=moments.count - 1)
    scatter = np.bincount(cell, weights=moments.sumsq.sum(axis=1))
    noise = np.where(freedom > 0, scatter / np.maximum(freedom, 1) / cells.count, 0.0)  # σ²/n
    return np.asarray(np.maximum(factor * found - ((1 - second) * factor - 1) * noise, found))


def estimate_cell_errors(pieces: UnitMoments, cells: Moments) -> tuple[FloatArray, FloatArray]:
    """Squared error of the mean of each cell, NaN where it has one unit; and the sum of its units' squared shares."""
    share = pieces.moments.count / cells.count[pieces.cell]
    error = (pieces.moments.mean - cells.mean[pieces.cell]) * share[:, None]
    second = np.asarray(np.bincount(pieces.cell, weights=share**2), float)
    single = np.bincount(pieces.cell) < 2
    with np.errstate(divide="ignore", invalid="ignore"):
        own = _own_errors(pieces, error, share, cells)
    return np.where(single, np.nan, own), second


@dataclass(frozen=True)
class StratumErrors:
    """Cells of a part, the quadratic form of their means, and the covariance of the errors of these.

    `squares` has the sums of the products of units' shares in two cells. `scale` turns the product of two units' errors
    into what the pair adds to the quadratic part.
    """

    members: Codes
    form: FloatArray
    covariance: FloatArray
    squares: FloatArray
    scale: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Covariance of the units themselves in two cells, of which that of the means follows."""
        nothing = np.zeros_like(self.squares)
        return np.divide(self.covariance, self.squares, out=nothing, where=self.squares > 0)


def _covariances(
    members: Codes, pieces: UnitMoments, error: FloatArray, share: FloatArray, weight: FloatArray, own: FloatArray
) -> StratumErrors:
    """Covariances of the errors of the means in one part, summed over features."""
    squares = np.diag(np.bincount(pieces.cell, weights=share**2).astype(np.float64)[members])
    covariance = np.diag(own[members])
    for a, b, here, there in _covary_shared(members, pieces):
        both = share[here] * share[there]
        squares[a, b] = squares[b, a] = both.sum()
        factor = 1 / (1 - np.sum(both * (share[here] + share[there])) / both.sum() + both.sum())
        covariance[a, b] = covariance[b, a] = factor * np.einsum("ij,ij->", error[here], error[there])
    form = np.diag(weight[members]) - np.outer(weight[members], weight[members]) / weight[members].sum()
    inflate = 1 / (1 - np.diagonal(squares))
    scale = form * np.sqrt(np.outer(inflate, inflate) / (1 - squares))
    return StratumErrors(members, form, covariance, squares, scale)


def _covary_shared(members: Codes, pieces: UnitMoments) -> Iterator[tuple[int, int, Codes, Codes]]:
    """Pairs of cells of a part that share units: their positions, and the pieces of the shared units in both."""
    inside = np.flatnonzero(np.isin(pieces.cell, members))
    if len(np.unique(pieces.unit[inside])) == len(inside):
        return  # every unit is in one cell only
    positions = [inside[pieces.cell[inside] == cell] for cell in members]
    for b in range(len(members)):
        for a in range(b):
            left, right = pieces.unit[positions[a]], pieces.unit[positions[b]]
            _, here, there = np.intersect1d(left, right, assume_unique=True, return_indices=True)
            if len(here):
                yield a, b, positions[a][here], positions[b][there]


def _own_influence(table: StratumErrors, pieces: UnitMoments, share: FloatArray) -> FloatArray:
    """What each unit's own error adds to its influence, on average; nothing if all units have the same rows."""
    inside = np.flatnonzero(np.isin(pieces.cell, table.members))
    shares = np.zeros((pieces.units, len(table.members)))
    shares[pieces.unit[inside], np.searchsorted(table.members, pieces.cell[inside])] = share[inside]
    crossed = np.sum(shares * (shares @ (table.form * table.variance)), axis=1)
    return np.asarray(crossed - shares @ np.sum(table.form * table.covariance, axis=1))


def _kernel(tables: list[StratumErrors], pieces: UnitMoments, error: FloatArray, share: FloatArray) -> FloatArray:
    """What pairs of different units add to the quadratic part, of all units or a sample."""
    units = pieces.units
    number = max(min(units, SAMPLE * units // len(pieces.unit)), min(units, 32))
    sampled = np.arange(units)
    if number < units:
        sampled = np.sort(np.random.default_rng(0).choice(units, number, replace=False))
    place = np.full(units, -1)
    place[sampled] = np.arange(number)
    kernel = np.zeros((number, number))
    for table in tables:
        inside = np.flatnonzero(np.isin(pieces.cell, table.members) & (place[pieces.unit] >= 0))
        cell = np.searchsorted(table.members, pieces.cell[inside])
        where, back = np.unique(place[pieces.unit[inside]], return_inverse=True)
        shares = np.zeros((len(where), len(table.members)))
        shares[back, cell] = share[inside]
        products = error[inside] @ error[inside].T + _centering(table, shares, back, cell)
        products *= table.scale[np.ix_(cell, cell)]
        if len(where) < len(inside):
            member = (np.arange(len(where))[:, None] == back).astype(np.float64)
            products, back = member @ products @ member.T, np.arange(len(where))
        kernel[np.ix_(where[back], where[back])] += products
    np.fill_diagonal(kernel, 0)
    if number < units:
        kernel *= np.sqrt(units * (units - 1) / (number * (number - 1)))
    return kernel


def _centering(table: StratumErrors, shares: FloatArray, unit: Codes, cell: Codes) -> FloatArray:
    """What centring takes from the product of the errors of different units, on average."""
    own = shares[unit, cell]
    crossing = shares[unit][:, cell]  # the share that the first unit has in the second one's cell
    apart = crossing + crossing.T - table.squares[np.ix_(cell, cell)]
    return np.asarray(np.outer(own, own) * apart * table.variance[np.ix_(cell, cell)])
