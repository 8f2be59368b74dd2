"""A linear classifier of groups within strata: discriminant analysis with a shrunk covariance.

Rows of a cell (a group in a stratum) are treated as normal around the mean of the cell, with one covariance for all
cells. Equal prior probabilities then make the best classifier linear:
d_c(x) = ⟨Σ⁻¹ μ_c, x⟩ − ⟨Σ⁻¹ μ_c, μ_c⟩ / 2, and the largest d_c among the groups of the row's stratum wins. This is
scikit-learn's `LinearDiscriminantAnalysis` with equal priors, one covariance pooled over cells and strata, and the
shrinkage of `LedoitWolf`, which keeps it stable with more features than rows. One fit serves all groups, all pairs and
all strata, where a logistic regression would need one fit for each.
"""

from dataclasses import dataclass

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Codes

LEAST_VARIANCE = 1e-6  # of a standardized feature: one that never varies within cells is then all but decisive


@dataclass(frozen=True)
class Discriminants:
    """Linear discriminants d_c of cells, for rows that are shifted and scaled first."""

    shift: FloatArray
    scale: FloatArray
    coefficients: FloatArray
    intercepts: FloatArray

    def score(self, rows: FloatArray, cells: Codes) -> FloatArray:
        """Compute the discriminants of some cells for each row."""
        standardized = (rows - self.shift) / self.scale
        return np.asarray(standardized @ self.coefficients[cells].T + self.intercepts[cells])


def fit_discriminants(rows: FloatArray, cell: Codes, cells: int) -> Discriminants:
    """Fit discriminants to rows; everything, the scale of the features too, comes from these rows alone."""
    shift = rows.mean(axis=0)
    centered = rows - shift
    count = np.maximum(np.bincount(cell, minlength=cells), 1)
    sums = np.zeros((cells, rows.shape[1]))
    np.add.at(sums, cell, centered)
    means = sums / count[:, None]
    residuals = centered - means[cell]
    scale = _choose_scale(residuals, centered)
    means /= scale
    coefficients = np.linalg.solve(shrink_covariance(residuals / scale), means.T).T
    return Discriminants(shift, scale, coefficients, -np.einsum("ij,ij->i", coefficients, means) / 2)


def _choose_scale(residuals: FloatArray, centered: FloatArray) -> FloatArray:
    """Standard deviation of each feature within cells; over all rows where it does not vary within; 1 if never."""
    within, whole = (np.sqrt(np.mean(values**2, axis=0)) for values in (residuals, centered))
    constant = within <= 1e-12 * whole
    return np.where(constant, np.where(whole > 0, whole, 1.0), within)


def shrink_covariance(residuals: FloatArray) -> FloatArray:
    """Covariance of centered rows, shrunk towards a multiple of the identity (Ledoit and Wolf 2004).

    The same as `sklearn.covariance.LedoitWolf`, which multiplies matrices twice as often.
    """
    rows, dim = residuals.shape
    found = residuals.T @ residuals / rows
    mean = float(np.trace(found)) / dim
    spread = float(np.sum(found**2)) / dim - mean**2
    noise = float(np.mean(np.einsum("ij,ij->i", residuals, residuals) ** 2)) / dim - float(np.sum(found**2)) / dim
    share = min(max(noise / rows, 0.0), spread) / spread if spread > 0 else 0.0
    shrunk = (1 - share) * found
    shrunk[np.diag_indices(dim)] += share * mean + LEAST_VARIANCE
    return shrunk
