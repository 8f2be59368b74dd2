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

from crossfusion.design import Codes, Design, between_by_feature, part_means, parts_of
from crossfusion.errors import InputError
from crossfusion.interval import Errors
from crossfusion.items import pattern
from crossfusion.kernels import FloatArray
from crossfusion.moments import Moments
from crossfusion.row_errors import least_quadratic

SAMPLE = 2048  # pieces (a unit's rows in one cell) whose products give the size of the quadratic part


@dataclass(frozen=True)
class Pieces:
    """Moments of the rows that units have in cells, with the cell and the unit of each."""

    moments: Moments
    cell: Codes
    unit: Codes

    @property
    def units(self) -> int:
        """Number of units."""
        return int(self.unit.max()) + 1

    def of_cells(self, cells: Codes) -> "Pieces":
        """The pieces in these cells, both numbered anew."""
        place = np.full(int(self.cell.max()) + 1, -1)
        place[cells] = np.arange(len(cells))
        kept = np.flatnonzero(place[self.cell] >= 0)
        return Pieces(self.moments[kept], place[self.cell[kept]], np.unique(self.unit[kept], return_inverse=True)[1])


@dataclass(frozen=True)
class UnitErrors:
    """Errors of a distance, and what each unit and each pair of units adds to them.

    Parameters
    ----------
    errors : Errors
        Of the distance.
    influence : array of shape (units,)
        What each unit adds to the distance, to first order.
    sampled : array
        The units in `kernel`.
    kernel : array of shape (sampled, sampled)
        What pairs of different units add to the quadratic part, over the total variance; scaled so that twice the sum
        of its squares is the variance of that part.
    """

    errors: Errors
    influence: FloatArray
    sampled: Codes
    kernel: FloatArray


def of_units(pieces: Pieces, design: Design, weight: FloatArray) -> UnitErrors:
    """Errors of the distance of a design with these weights."""
    moments, cell, unit = pieces.moments, pieces.cell, pieces.unit
    cells, part = design.cells, design.part
    units_of_cell = np.bincount(cell, minlength=len(cells))
    if units_of_cell.min() < 2:
        raise InputError(
            "level and units need two units or more in each group (in its stratum), to tell the group's effect from"
            " a unit's own: leave smaller groups out, or pass coarser strata"
        )
    gap = moments.mean - cells.mean[cell]
    error = gap * (moments.count / cells.count[cell])[:, None]  # e_uc
    own = np.bincount(cell, weights=np.einsum("ij,ij->i", error, error)) * units_of_cell / (units_of_cell - 1)
    tables = [_covariances(members, pieces, error, weight, own, units_of_cell) for members in parts_of(part)]
    between = float(between_by_feature(cells.mean, weight, part).sum())
    within = float(np.sum(weight * cells.dispersion))
    total = within + between
    bias = sum(float(np.sum(table.form * table.covariance)) for table in tables)
    if not (within > 0 and bias > 0):
        raise InputError(
            "level and units need units that differ within the groups, and strata that groups share: without them"
            " there is no error to speak of"
        )
    direction = (cells.mean - part_means(cells.mean, weight, part)[part])[cell]
    square = moments.sumsq.sum(axis=1) + moments.count * np.einsum("ij,ij->i", gap, gap)
    influence = (1 / total - 1 / within) * (square - moments.count * cells.dispersion[cell])
    influence += 2 / total * moments.count * np.einsum("ij,ij->i", gap, direction)
    of_unit = np.bincount(unit, weights=influence * (weight / cells.count)[cell]).astype(np.float64)
    sampled, kernel = _kernel(tables, pieces, error)
    freedom = max(pieces.units - len(np.unique(pattern(unit, design.group[cell]))), 1)
    return UnitErrors(
        errors=Errors(
            between=np.array(between - bias),
            within=np.array(within + np.sum(weight * own)),
            total=np.array(total),
            linear=np.array(np.sum(of_unit**2) * pieces.units / freedom),
            bias=np.array(bias),
            quadratic=np.array(max(2 * np.sum(kernel**2), least_quadratic(bias, design))),
            freedom=np.array(freedom),
        ),
        influence=of_unit,
        sampled=sampled,
        kernel=kernel / total,
    )


@dataclass(frozen=True)
class Part:
    """Cells of a part, the quadratic form of their means, and the covariance of the errors of these.

    `shift` and `scale` turn the product of two units' errors into what the pair adds to the quadratic part.
    """

    members: Codes
    form: FloatArray
    covariance: FloatArray
    shift: FloatArray
    scale: FloatArray


def _covariances(
    members: Codes, pieces: Pieces, error: FloatArray, weight: FloatArray, own: FloatArray, units_of_cell: Codes
) -> Part:
    """Covariances of the errors of the means in one part, summed over features."""
    number = units_of_cell[members].astype(np.float64)
    shared, covariance = np.diag(number), np.diag(own[members])
    for a, b, here, there in _shared(members, pieces):
        shared[a, b] = shared[b, a] = len(here)
        factor = 1 / (1 - 1 / number[a] - 1 / number[b] + len(here) / (number[a] * number[b]))
        covariance[a, b] = covariance[b, a] = factor * np.einsum("ij,ij->", error[here], error[there])
    inflate = number / (number - 1)
    pairs = np.outer(number, number)
    form = np.diag(weight[members]) - np.outer(weight[members], weight[members]) / weight[members].sum()
    scale = form * np.sqrt(np.outer(inflate, inflate) / (1 - shared / pairs))
    return Part(members, form, covariance, covariance / pairs, scale)


def _shared(members: Codes, pieces: Pieces) -> Iterator[tuple[int, int, Codes, Codes]]:
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


def _kernel(tables: list[Part], pieces: Pieces, error: FloatArray) -> tuple[Codes, FloatArray]:
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
        products = (error[inside] @ error[inside].T + table.shift[np.ix_(cell, cell)]) * table.scale[np.ix_(cell, cell)]
        where, back = np.unique(place[pieces.unit[inside]], return_inverse=True)
        if len(where) < len(inside):
            member = np.zeros((len(where), len(inside)))
            member[back, np.arange(len(inside))] = 1
            products = member @ products @ member.T
            back = np.arange(len(where))
        kernel[np.ix_(where[back], where[back])] += products
    np.fill_diagonal(kernel, 0)
    if number < units:
        kernel *= np.sqrt(units * (units - 1) / (number * (number - 1)))
    return sampled, kernel
