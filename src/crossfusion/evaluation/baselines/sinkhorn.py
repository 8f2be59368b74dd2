"""Entropic optimal transport, to a small regularization and a small error.

With an entropy that is small beside the costs the plan is nearly a permutation, and Sinkhorn's alternating updates
crawl: mass has to travel through links that are almost closed. But such a plan is also sparse, so the Hessian of the
dual is, and Newton's method sees at once where the mass has to go. So: start at a large entropy, shrink it step by
step, follow the potentials, and correct them at each step by Newton's method with a sparse conjugate gradient.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, arg, as_row_pair, check_positive, check_whole, map_threads, optional, warn
from crossfusion.evaluation.baselines.pair_distances import compute_squared_distances

ENTROPY_SHRINKAGE = 0.6  # the next entropy, as a share of the last
INTERMEDIATE_ERROR = 0.02  # marginal error that is small enough to go on to the next entropy
NEGLIGIBLE_EXPONENT = 30.0  # an exponent below a column's largest by more than this adds less than 1e-13 of it
SPARSE_SHARE = 0.15  # share of entries that matter, below which a plan is kept as a sparse matrix
STARVED_SHARE = 0.01  # share of its weight below which a row is fed by a plain Sinkhorn update
DAMPING = 1e-6, 1e-3, 1e3  # least, first and largest damping of a Newton step, in units of the row weights


@dataclass(frozen=True)
class Solution:
    """An entropic plan and how good it is."""

    cost: float  # ⟨plan, squared distances⟩, what is missing from the marginals included
    value: float  # the dual's value: the cost plus epsilon times the plan's relative entropy
    marginal_error: float  # sum of the absolute errors of both marginals
    iterations: int  # Newton steps, over all entropies
    plan: Any  # dense or sparse (CSR)


def sinkhorn(a: Any, b: Any, *, epsilon: float = 0.1, tolerance: float = 1e-2, max_iterations: int = 1000) -> float:
    r"""Square root of the transport cost of the entropic plan.

    .. math:: \langle\pi_\varepsilon, C\rangle^{1/2},\qquad
              \pi_\varepsilon = \arg\min_{\pi\in\Pi(A,B)}\ \langle\pi, C\rangle
              + \varepsilon\,\mathrm{KL}(\pi\,|\,A\otimes B),\qquad C_{ij} = \lVert a_i-b_j\rVert^2

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups; all rows have the same weight.
    epsilon : float
        Weight of the entropy term, in the units of squared distances.
    tolerance : float
        Largest accepted sum of absolute errors of the plan's marginals.
    max_iterations : int
        Largest number of Newton steps; if it is reached, a warning follows.

    Returns
    -------
    float
        The square root of the cost.

    Notes
    -----
    Memory and time of a step are quadratic in rows; 20 to 50 steps are usual, also for small epsilon. Mass that the
    marginals lack within the tolerance is added in proportion to the deficits, so the cost is that of a complete plan
    and distant rows are not left out. The entropy blurs the plan: the value is at least that of ``wasserstein``, and
    not zero for equal groups (``sinkhorn_divergence`` is). Blind to the same differences as ``wasserstein``.

    References
    ----------
    Cuturi, *Sinkhorn distances* (2013). Schmitzer, *Stabilized sparse scaling algorithms for entropy regularized
    transport problems* (2019). Altschuler, Weed and Rigollet, *Near-linear time approximation algorithms for optimal
    transport via Sinkhorn iteration* (2017), algorithm 2. Tang et al., *Accelerating Sinkhorn algorithm with sparse
    Newton iterations* (2024).
    """
    check_whole(max_iterations, "max_iterations")
    return float(
        np.sqrt(solve_sinkhorn(a, b, epsilon=epsilon, tolerance=tolerance, max_iterations=max_iterations).cost)
    )


def sinkhorn_divergence(
    a: Any, b: Any, *, epsilon: float = 0.1, tolerance: float = 1e-3, max_iterations: int = 1000
) -> float:
    r"""Square root of the debiased entropic transport cost.

    .. math:: S_\varepsilon = \mathrm{OT}_\varepsilon(A,B)
              - \tfrac12\mathrm{OT}_\varepsilon(A,A) - \tfrac12\mathrm{OT}_\varepsilon(B,B)

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The two groups; all rows have the same weight.
    epsilon : float
        Weight of the entropy term, in the units of squared distances.
    tolerance : float
        Largest accepted sum of absolute errors of each plan's marginals.
    max_iterations : int
        Largest number of Newton steps; if it is reached, a warning follows.

    Returns
    -------
    float
        The square root of the divergence. If errors within the tolerance make the divergence negative, minus the square
        root of its absolute value.

    Notes
    -----
    Three problems of ``sinkhorn``. Zero for equal groups; it lies between the Wasserstein distance (small epsilon) and
    the distance of the means (large epsilon), so epsilon decides what it is blind to.

    References
    ----------
    Feydy et al., *Interpolating between optimal transport and MMD using Sinkhorn divergences* (2019).
    """
    check_whole(max_iterations, "max_iterations")
    options: dict[str, Any] = {"epsilon": epsilon, "tolerance": tolerance, "max_iterations": max_iterations}
    across, first, second = (solve_sinkhorn(x, y, **options).value for x, y in ((a, b), (a, a), (b, b)))
    divergence = across - (first + second) / 2
    return float(np.copysign(np.sqrt(np.abs(divergence)), divergence))


def solve_sinkhorn(a: Any, b: Any, *, epsilon: float, tolerance: float, max_iterations: int = 1000) -> Solution:
    """Entropic plan between two groups, with its cost and its marginal error."""
    check_positive(epsilon, "epsilon")
    check_positive(tolerance, "tolerance")
    squares = compute_squared_distances(*as_row_pair(a, b))
    unit = float(squares.max()) or 1.0
    squares /= unit
    dual, entropy = _Dual(squares), float(epsilon) / unit
    with map_threads(1):
        point, iterations = _follow_path(dual, entropy, tolerance, max_iterations)
    if point.error > tolerance:
        warn(
            f"sinkhorn stopped after {iterations} iterations with a marginal error of {point.error:.1e},"
            f" above {arg('tolerance', tolerance)}",
            "allow more max_iterations, or a larger epsilon or tolerance",
        )
    value = point.value + entropy * np.log(squares.size)
    return Solution(unit * dual.compute_cost(point), unit * float(value), point.error, iterations, point.plan)


class _Point(NamedTuple):
    """A potential of the rows, with the best potential of the columns for it."""

    potential: FloatArray
    other: FloatArray
    plan: Any  # its column sums are exact
    rows: FloatArray  # its row sums
    value: float  # of the dual, to be maximized
    error: float


class _Dual:
    """The dual as a function of the potential of the rows alone; concave, with gradient weight - row sums."""

    def __init__(self, squares: FloatArray) -> None:
        self.squares = squares
        self.work = np.empty_like(squares)
        self.kept = np.empty(squares.shape, bool)
        self.sparse = optional.load("scipy.sparse", "SciPy", "distances", "the distance 'sinkhorn'")
        self.weight = 1 / squares.shape[0]

    def is_sparse(self, plan: Any) -> bool:
        return bool(self.sparse.issparse(plan))

    def evaluate(self, potential: FloatArray, epsilon: float) -> _Point:
        """Plan, row sums and value for a potential of the rows."""
        columns = self.squares.shape[1]
        gap = np.subtract(potential[:, None], self.squares, out=self.work)
        top = gap.max(axis=0)
        gap -= top
        kept = np.flatnonzero(np.greater(gap, -NEGLIGIBLE_EXPONENT * epsilon, out=self.kept))
        if len(kept) < SPARSE_SHARE * gap.size:
            plan, total = self._make_sparse_plan(kept, epsilon)
            rows = np.asarray(plan.sum(axis=1))
        else:
            gap /= epsilon
            plan = np.exp(gap, out=gap)
            total = plan.sum(axis=0)
            plan = plan / (columns * total)
            rows = plan.sum(axis=1)
        other = -top - epsilon * (np.log(total) + np.log(columns))
        error = float(np.abs(rows - self.weight).sum())
        return _Point(potential, other, plan, rows, float(potential.mean() + other.mean()), error)

    def feed(self, point: _Point, epsilon: float) -> _Point:
        """Give rows that get almost nothing the potential at which they get their weight; Newton would creep there."""
        starved = np.flatnonzero(point.rows < STARVED_SHARE * self.weight)
        if not len(starved):
            return point
        gap = point.other - self.squares[starved]
        top = gap.max(axis=1)
        total = np.exp((gap - top[:, None]) / epsilon).sum(axis=1)
        potential = point.potential.copy()
        potential[starved] = epsilon * (np.log(self.weight) - np.log(total)) - top
        return self.evaluate(potential, epsilon)

    def compute_cost(self, point: _Point) -> float:
        """Cost of the plan after rows that send too much send less, and what is then lacking is sent as well."""
        keep = np.minimum(1.0, np.divide(self.weight, point.rows, out=np.ones_like(point.rows), where=point.rows > 0))
        if self.is_sparse(point.plan):
            paid, columns = point.plan.multiply(self.squares).sum(axis=1), keep @ point.plan
        else:
            paid, columns = np.einsum("ij,ij->i", point.plan, self.squares), keep @ point.plan
        lack_of_rows = self.weight - keep * point.rows
        lack_of_columns = 1 / len(columns) - columns
        lacking = lack_of_rows.sum()
        rest = lack_of_rows @ (self.squares @ lack_of_columns) / lacking if lacking > 0 else 0.0
        return float(keep @ np.asarray(paid).reshape(-1) + rest)

    def _make_sparse_plan(self, kept: NDArray[np.intp], epsilon: float) -> tuple[Any, FloatArray]:
        number, columns = self.squares.shape
        row, column = np.divmod(kept, columns)
        entries = np.exp(self.work.reshape(-1)[kept] / epsilon)
        total = np.bincount(column, entries, columns).astype(np.float64, copy=False)
        entries /= columns * total[column]
        starts = np.searchsorted(row, np.arange(number + 1))
        return self.sparse.csr_array((entries, column, starts), (number, columns)), total

    def take_newton_step(self, point: _Point, epsilon: float, damping: float) -> FloatArray:
        """Damped Newton step: solve (diag(rows) - plan diag(1/weights) planᵀ + damping) step = epsilon × gradient."""
        columns = self.squares.shape[1]
        across = point.plan.T.tocsr() if self.is_sparse(point.plan) else point.plan.T
        diagonal = point.rows + damping * self.weight

        def apply_hessian(step: FloatArray) -> Any:
            return diagonal * step - point.plan @ ((across @ step) * columns)

        return _solve_conjugate_gradient(apply_hessian, diagonal, epsilon * (self.weight - point.rows))


def _solve_conjugate_gradient(matrix: Any, diagonal: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a positive definite system to a few percent, which is what a Newton step far from its goal is worth."""
    solution = np.zeros_like(right)
    residual = right.copy()
    direction = scaled = residual / diagonal
    size = first = residual @ scaled
    for _ in range(200):
        if size <= 0.05**2 * first or size == 0:
            break
        image = matrix(direction)
        length = size / (direction @ image)
        solution += length * direction
        residual -= length * image
        scaled = residual / diagonal
        before, size = size, residual @ scaled
        direction = scaled + (size / before) * direction
    return solution


def _follow_path(dual: _Dual, epsilon: float, tolerance: float, max_iterations: int) -> tuple[_Point, int]:
    """Follow the potential from a large entropy to the one asked for."""
    entropy = max(float(dual.squares.max()) / 4, epsilon)
    start, iterations, damping = np.zeros(len(dual.squares)), 0, DAMPING[1]
    before: tuple[float, FloatArray] | None = None
    while True:
        goal = tolerance if entropy == epsilon else max(INTERMEDIATE_ERROR, tolerance)
        point = dual.feed(dual.evaluate(start, entropy), entropy)
        while point.error > goal and iterations < max_iterations:
            point, damping = _improve(dual, point, entropy, damping)
            point = dual.feed(point, entropy)
            iterations += 1
        if entropy == epsilon:
            return point, iterations
        if iterations >= max_iterations:
            return dual.evaluate(point.potential, epsilon), iterations
        following = max(entropy * ENTROPY_SHRINKAGE, epsilon)
        start = point.potential
        if before is not None:  # along the line through the last two potentials
            start = start + (start - before[1]) * (following - entropy) / (entropy - before[0])
        before, entropy = (entropy, point.potential), following


def _improve(dual: _Dual, point: _Point, epsilon: float, damping: float) -> tuple[_Point, float]:
    """One Newton step, damped until it brings what its gradient promised a thousandth of."""
    least, _, largest = DAMPING
    first = True
    while True:
        step = dual.take_newton_step(point, epsilon, damping)
        trial = dual.evaluate(point.potential + step, epsilon)
        promised = (dual.weight - point.rows) @ step
        gained = trial.value - point.value >= 1e-3 * promised or 2 * trial.error < point.error
        if gained or damping >= largest:
            return trial, max(damping / 10, least) if first else damping
        damping, first = max(10 * damping, 1e-4), False
