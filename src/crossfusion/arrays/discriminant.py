"""A linear classifier of groups within strata: discriminant analysis with a shrunk covariance.

Rows of a cell (a group in a stratum) are treated as normal around the mean of the cell, with one covariance for all
cells. Equal prior probabilities then make the best classifier linear:
d_c(x) = ⟨Σ⁻¹ μ_c, x⟩ − ⟨Σ⁻¹ μ_c, μ_c⟩ / 2, and the largest d_c among the groups of the row's stratum wins. This is
scikit-learn's `LinearDiscriminantAnalysis` with equal priors, one covariance pooled over cells and strata, and the
shrinkage of `LedoitWolf`, which keeps it stable with more features than rows. One fit serves all groups, all pairs and
all strata, where a logistic regression would need one fit for each.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, load
from crossfusion.fusion import Codes

PURPOSE = "separability"
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
    covariance: Any = load("sklearn.covariance", "scikit-learn", "separability", PURPOSE)
    shift = rows.mean(axis=0)
    centered = rows - shift
    count = np.maximum(np.bincount(cell, minlength=cells), 1)
    sums = np.zeros((cells, rows.shape[1]))
    np.add.at(sums, cell, centered)
    means = sums / count[:, None]
    residuals = centered - means[cell]
    scale = _choose_scale(residuals, centered)
    means /= scale
    shrunk = covariance.LedoitWolf(store_precision=False, assume_centered=True).fit(residuals / scale).covariance_
    shrunk[np.diag_indices_from(shrunk)] += LEAST_VARIANCE
    coefficients = np.linalg.solve(shrunk, means.T).T
    return Discriminants(shift, scale, coefficients, -np.einsum("ij,ij->i", coefficients, means) / 2)


def _choose_scale(residuals: FloatArray, centered: FloatArray) -> FloatArray:
    """Standard deviation of each feature within cells; over all rows where it does not vary within; 1 if never."""
    within, whole = (np.sqrt(np.mean(values**2, axis=0)) for values in (residuals, centered))
    constant = within <= 1e-12 * whole
    return np.where(constant, np.where(whole > 0, whole, 1.0), within)
