"""Exact optimal transport: the plan itself, the closed form for Gaussians, and sliced distances."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import (
    CrossfusionError,
    FloatArray,
    as_row_pair,
    check_seed,
    check_whole,
    field_values,
    map_threads,
    optional,
    percent,
    quantity_text,
)
from crossfusion.evaluation.baselines.pair_distances import compute_squared_distances
from crossfusion.fusion import Content, Facts, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_PIVOTS = 10_000_000  # pivots of the network simplex, beyond what any problem that fits into memory needs


def wasserstein(a: Any, b: Any) -> float:
    r"""Wasserstein distance of order 2, exact.

    .. math:: W_2 = \Bigl(\min_{\pi\in\Pi(A,B)} \sum_{ij}\pi_{ij}\,\lVert a_i-b_j\rVert^2\Bigr)^{1/2}

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups; all rows have the same weight.

    Returns
    -------
    float
        The square root of the smallest cost.

    Notes
    -----
    Uses the network simplex of POT: about cubic in rows, with memory for every pair of rows. Blind to nothing, which
    is a drawback here: it mixes translation and deformation in one number (``wasserstein_decomposition`` splits
    it), it grows with the scale of the features, and two samples of one distribution are far apart in high dimensions.

    References
    ----------
    Bonneel, van de Panne, Paris and Heidrich, *Displacement interpolation using Lagrangian mass transport* (2011).
    Flamary et al., *POT: Python Optimal Transport* (2021).
    """
    return float(np.sqrt(_compute_cost(*as_row_pair(a, b))))


def _compute_cost(a: FloatArray, b: FloatArray) -> float:
    """Smallest mean squared distance that takes one group to the other."""
    plan, squares = solve_transport(a, b)
    return float(np.sum(plan * squares))


def solve_transport(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Optimal plan between two groups, and the squared distances that it pays."""
    lp = optional.load("ot.lp", "POT", "distances", "the distance 'wasserstein'")
    squares = compute_squared_distances(a, b)
    scaled = squares / (squares.max() or 1.0)  # the simplex has tolerances of its own, which are absolute
    plan, log = lp.emd(
        _weigh_equally(a), _weigh_equally(b), scaled, numItermax=MAX_PIVOTS, log=True, check_marginals=False
    )
    if log["warning"] is not None:
        raise CrossfusionError(
            problem=f"the network simplex found no plan ({log['warning']})", remedy="use the distance 'sinkhorn'"
        )
    return plan, squares


def _weigh_equally(rows: FloatArray) -> FloatArray:
    return np.full(len(rows), 1 / len(rows))


@dataclass(frozen=True, repr=False)
class Decomposition(Result):
    """The squared Wasserstein distance of order 2, split into two terms that add up exactly.

    Parameters
    ----------
    translation : float
        Squared distance between the means: the cost of moving the whole group.
    deformation : float
        Squared Wasserstein distance between the centered groups, that is, once the means agree.

    Notes
    -----
    `to_frame` returns one row with both terms, their total and the distance. `plot` draws the two terms.

    Examples
    --------
    >>> import crossfusion as cf
    >>> cf.Decomposition(translation=3.0, deformation=1.0)
    Wasserstein distance 2.000, squared 4.000
      translation  3.000   75.0%
      deformation  1.000   25.0%
    """

    translation: float
    deformation: float

    @property
    def total(self) -> float:
        """Squared distance."""
        return self.translation + self.deformation

    @property
    def distance(self) -> float:
        """Wasserstein distance."""
        return float(np.sqrt(self.total))

    def _draw(self, axes: Any) -> "Figure":
        """Draw the two parts."""
        names = ("translation", "deformation")
        title = f"Wasserstein distance {quantity_text(self.distance)}, squared"
        return plots.parts(names, (self.translation, self.deformation), title=title, axes=axes)

    def _values(self) -> dict[str, Any]:
        return field_values(self) | {"total": self.total, "distance": self.distance}

    def _contents(self) -> list[Content]:
        parts = {"translation": self.translation, "deformation": self.deformation}
        numbers = {name: quantity_text(part) for name, part in parts.items()}
        shares = {name: percent(part / self.total if self.total > 0 else None) for name, part in parts.items()}
        width = max(map(len, numbers.values()))
        lines = [(name, f"{numbers[name]:>{width}}", f"{shares[name]:>6}") for name in parts]
        return [
            f"Wasserstein distance {quantity_text(self.distance)}, squared {quantity_text(self.total)}",
            Facts(lines),
        ]


def wasserstein_decomposition(a: Any, b: Any) -> Decomposition:
    r"""Split the squared Wasserstein distance into translation and deformation, exactly.

    .. math:: W_2^2(A, B) = \lVert\mu_A-\mu_B\rVert^2 + W_2^2(A-\mu_A,\,B-\mu_B)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups; all rows have the same weight.

    Returns
    -------
    Decomposition
        Both terms; their sum is the square of ``distance("wasserstein", a, b)``.

    Notes
    -----
    The squares add, not the distances. Expanding the square around the means leaves a cross term that is zero for
    every plan, so the best plan for the centered groups is also the best plan for the groups themselves.

    References
    ----------
    Peyré and Cuturi, *Computational Optimal Transport* (2019), remark 2.19.

    Examples
    --------
    >>> import crossfusion as cf
    >>> import numpy as np
    >>> a = np.array([[0.0, 0.0], [0.0, 2.0]])
    >>> cf.wasserstein_decomposition(a, a + [3.0, 0.0])
    Wasserstein distance 3.000, squared 9.000
      translation  9.000    100%
      deformation      0      0%
    """
    a, b = as_row_pair(a, b)
    center_a, center_b = a.mean(axis=0), b.mean(axis=0)
    return Decomposition(float(np.sum((center_a - center_b) ** 2)), _compute_cost(a - center_a, b - center_b))


def sliced_wasserstein(a: Any, b: Any, *, projections: int = 128, seed: int = 0) -> float:
    r"""Sliced Wasserstein distance of order 2: the mean over random directions.

    .. math:: \Bigl(\frac1L\sum_{l=1}^{L} W_2^2(\langle\theta_l, A\rangle, \langle\theta_l, B\rangle)\Bigr)^{1/2}

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups; all rows have the same weight.
    projections : int
        Number of directions.
    seed : int
        Seed of the directions.

    Returns
    -------
    float
        The square root of the mean.

    Notes
    -----
    One sort per direction: O(L n (d + log n)). Blind only to what a small number of directions miss, but it dilutes:
    a shift along one of d features contributes 1/d of its square. The directions are random; the seed fixes them.

    References
    ----------
    Bonneel, Rabin, Peyré and Pfister, *Sliced and Radon Wasserstein barycenters of measures* (2015).
    """
    check_whole(projections, "projections")
    check_seed(seed)
    a, b = as_row_pair(a, b)
    directions = np.random.default_rng(seed).standard_normal((projections, a.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    origin = a.mean(axis=0)
    with map_threads(1):
        sorted_a, sorted_b = (np.sort((rows - origin) @ directions.T, axis=0) for rows in (a, b))
    edges = np.union1d(np.arange(1, len(a) + 1) / len(a), np.arange(1, len(b) + 1) / len(b))
    middle = edges - np.diff(edges, prepend=0) / 2
    gap = sorted_a[(middle * len(a)).astype(int)] - sorted_b[(middle * len(b)).astype(int)]
    return float(np.sqrt(np.mean(np.diff(edges, prepend=0) @ (gap * gap))))


def gaussian_wasserstein(a: Any, b: Any) -> float:
    r"""Wasserstein distance between Gaussians with the groups' means and covariances (Fréchet distance).

    .. math:: \Bigl(\lVert\mu_A-\mu_B\rVert^2
              + \mathrm{tr}\bigl(\Sigma_A+\Sigma_B-2(\Sigma_A^{1/2}\Sigma_B\Sigma_A^{1/2})^{1/2}\bigr)\Bigr)^{1/2}

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups. Covariances divide by the number of rows, so that a group and two copies of it are at
        distance zero.

    Returns
    -------
    float
        The square root; its square is what FID reports.

    Notes
    -----
    O(n d² + d³). Blind to everything except means and covariances, and biased upwards unless there are several times
    more rows than features.

    References
    ----------
    Dowson and Landau, *The Fréchet distance between multivariate normal distributions* (1982).
    Heusel et al., *GANs trained by a two time-scale update rule* (2017).
    """
    a, b = as_row_pair(a, b)
    center_a, center_b = a.mean(axis=0), b.mean(axis=0)
    # tr (Σ_A^½ Σ_B Σ_A^½)^½ is the sum of the singular values of the product of any two factors of the covariances.
    with map_threads(1):
        factor_a, factor_b = _factor_covariance(a - center_a), _factor_covariance(b - center_b)
        cross = np.linalg.svd(factor_a @ factor_b.T, compute_uv=False).sum()
    shape = np.sum(factor_a**2) + np.sum(factor_b**2) - 2 * cross  # equal shapes: rounding, of either sign
    return float(np.sqrt(np.sum((center_a - center_b) ** 2) + max(shape, 0.0)))


def _factor_covariance(centered: FloatArray) -> FloatArray:
    """A matrix R with Rᵀ R = covariance."""
    triangle: FloatArray = np.linalg.qr(centered, mode="r") / np.sqrt(len(centered))
    return triangle
