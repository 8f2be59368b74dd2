"""Contributions of pairs of different units to the quadratic term of a distance's error.

Units u and v that add the errors e_uc and e_vc' to the means of cells c and c' contribute scale_cc' ⟨e_uc, e_vc'⟩, with
a correction for centering. That is a product of two matrices with a row per unit, so the sum of the squares of all
contributions follows from two small products, as long as cells and features are few.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray, multiply_matrices
from crossfusion.fusion import Codes

MAX_SAMPLED_ENTRIES = 2048  # entries (a unit's rows in one cell) whose products give the size of the quadratic term


@dataclass(frozen=True)
class StratumErrors:
    """Cells of a stratum, the quadratic form of their means, and the covariance of the errors of the means.

    `mixture` is the form of the variance between the cells of a side, which is 0 where each cell is a side of its own.
    `squares` holds the sums of products of the units' shares in two cells. `scale` converts the product of two units'
    errors to the contribution of the pair to the quadratic term.
    """

    members: Codes
    form: FloatArray
    mixture: FloatArray
    covariance: FloatArray
    squares: FloatArray
    scale: FloatArray

    @property
    def variance(self) -> FloatArray:
        """Covariance of the units in two cells, from which that of the means follows."""
        nothing = np.zeros_like(self.squares)
        return np.divide(self.covariance, self.squares, out=nothing, where=self.squares > 0)


@dataclass(frozen=True)
class UnitPairs:
    """Entries of a sample of units: errors and shares in the cells of strata.

    `position` holds the place of each entry's unit in the sample, and `factor` scales sums of squares to all pairs.
    Contributions are divided by `unit`, so that their squares stay within the range of float64.
    """

    strata: Sequence[StratumErrors]
    cell: Codes
    position: Codes
    error: FloatArray
    share: FloatArray
    number: int
    factor: float
    unit: float

    @classmethod
    def sample(
        cls,
        strata: Sequence[StratumErrors],
        cell: Codes,
        unit: Codes,
        share: FloatArray,
        compute_errors: Callable[[Codes], FloatArray],
        scale: float,
    ) -> "UnitPairs":
        """Sample units, or take all of them if they have few entries, of which `compute_errors` gives the errors."""
        total, root = int(unit.max()) + 1, np.sqrt(scale)
        number = max(min(total, MAX_SAMPLED_ENTRIES * total // len(unit)), min(total, 32))
        if number == total:
            return cls(strata, cell, unit, compute_errors(np.arange(len(cell))) / root, share, total, 1.0, scale)
        sampled = np.sort(np.random.default_rng(0).choice(total, number, replace=False))
        place = np.full(total, -1)
        place[sampled] = np.arange(number)
        own = np.flatnonzero(place[unit] >= 0)
        factor = total * (total - 1) / (number * (number - 1))
        return cls(strata, cell[own], place[unit[own]], compute_errors(own) / root, share[own], number, factor, scale)

    def sum_squares(self) -> float:
        """Sum the squares of the contributions of all pairs."""
        columns = sum(len(stratum.members) for stratum in self.strata) * (self.error.shape[1] + 2)
        if 2 * columns > self.number:
            return float(np.sum(self.compute() ** 2))
        left, right = self._factorize(columns)
        every = np.sum(multiply_matrices(left.T, left) * multiply_matrices(right.T, right))
        return self.factor * float(every - np.sum(np.einsum("ij,ij->i", left, right) ** 2))

    def _factorize(self, columns: int) -> tuple[FloatArray, FloatArray]:
        """Find two matrices with a row per unit whose product holds the contributions of pairs."""
        left, right = np.zeros((2, self.number, columns))
        start, dim = 0, self.error.shape[1]
        for stratum in self.strata:
            inside, cell = self._locate(stratum)
            unit, width = self.position[inside], len(stratum.members)
            stop, edge = start + width * (dim + 2), start + width * dim
            errors = left[:, start:edge].reshape(self.number, width, dim)  # a view
            shares = np.zeros((self.number, width))
            errors[unit, cell], shares[unit, cell] = self.error[inside], self.share[inside]
            right[:, start:edge] = np.matmul(stratum.scale, errors).reshape(self.number, -1)
            centered = stratum.scale * stratum.variance / self.unit
            crossed = shares * (shares @ centered)
            left[:, edge:stop] = np.hstack([crossed, shares])
            right[:, edge:stop] = np.hstack([shares, crossed - shares @ (centered * stratum.squares)])
            start = stop
        return left, right

    def compute(self) -> FloatArray:
        """Compute the contribution of each pair of different units."""
        kernel = np.zeros((self.number, self.number))
        for stratum in self.strata:
            inside, cell = self._locate(stratum)
            where, back = np.unique(self.position[inside], return_inverse=True)
            shares = np.zeros((len(where), len(stratum.members)))
            shares[back, cell] = self.share[inside]
            products = self.error[inside] @ self.error[inside].T
            products += _correct_centering(stratum, shares, back, cell) / self.unit
            products *= stratum.scale[np.ix_(cell, cell)]
            if len(where) < len(inside):
                member = (np.arange(len(where))[:, None] == back).astype(np.float64)
                products, back = member @ products @ member.T, np.arange(len(where))
            kernel[np.ix_(where[back], where[back])] += products
        np.fill_diagonal(kernel, 0)
        return kernel * np.sqrt(self.factor) if self.factor != 1 else kernel

    def _locate(self, stratum: StratumErrors) -> tuple[Codes, Codes]:
        """Find the entries in a stratum, and their cells among those of the stratum."""
        inside = np.flatnonzero(np.isin(self.cell, stratum.members))
        return inside, np.searchsorted(stratum.members, self.cell[inside])


def _correct_centering(stratum: StratumErrors, shares: FloatArray, unit: Codes, cell: Codes) -> FloatArray:
    """Compute the mean effect of centering on the products of errors of different units."""
    own = shares[unit, cell]
    crossing = shares[unit][:, cell]  # the share that the first unit has in the second one's cell
    apart = crossing + crossing.T - stratum.squares[np.ix_(cell, cell)]
    return np.asarray(np.outer(own, own) * apart * stratum.variance[np.ix_(cell, cell)])
