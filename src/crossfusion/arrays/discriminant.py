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
from crossfusion.moments import reduce_groups

LEAST_SPREAD = 1e-12  # of a feature within cells, of that over all rows: less is rounding
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
    moments, _ = reduce_groups(rows, cell.astype(np.int32), cells, name="x")
    whole = moments.merge(np.zeros(cells, int), 1)
    scale = _choose_scale(np.sqrt(moments.sumsq.sum(axis=0) / len(rows)), np.sqrt(whole.sumsq[0] / len(rows)))
    means: FloatArray = (moments.mean - whole.mean) / scale
    residuals = (rows - moments.mean[cell]) / scale
    coefficients = np.asarray(np.linalg.solve(shrink_covariance(residuals), means.T).T, np.float64)
    return Discriminants(whole.mean, scale, coefficients, -np.einsum("ij,ij->i", coefficients, means) / 2)


def _choose_scale(within: FloatArray, whole: FloatArray) -> FloatArray:
    """Choose the standard deviation within cells, or over all rows where that is 0; 1 where both are."""
    constant = within <= LEAST_SPREAD * whole
    return np.asarray(np.where(constant, np.where(whole > 0, whole, 1.0), within))


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
    shrunk = np.asarray((1 - share) * found)
    shrunk[np.diag_indices(dim)] += share * mean + LEAST_VARIANCE
    return shrunk
