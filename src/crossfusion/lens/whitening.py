"""Whitened rows: distances in units of the covariance within groups, as Mahalanobis has them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import (
    FloatArray,
    InputError,
    arg,
    check_seed,
    check_whole,
    count_text,
    is_real,
    multiply_matrices,
    number_text,
    warn,
)
from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import SAMPLE_ROWS, Training, open_training
from crossfusion.lens.standardization import Standardize, make_standardize
from crossfusion.lens.step import Names, Step, check_shape

MAX_FULL = 1024  # features up to which all directions are estimated unless a rank is given
DEFAULT_RANK = 256  # beyond that
POWER_ROUNDS = 8  # of the subspace iteration that finds the main directions
SPARE_DIRECTIONS = 16  # that it carries along
MAX_BIAS = 0.3  # of a distance, from the estimated variances, in units of its standard error between alike groups


@dataclass(frozen=True, eq=False)
class Whiten(Step):
    """Rows times the inverse root of a correlation matrix: a factor for each of some directions, one for all others.

    Parameters
    ----------
    dim, features
        See `Step`.
    directions : array of shape (dim, rank)
        Orthonormal directions, as columns.
    gains : array of shape (rank,)
        Factors of these.
    rest : float
        Factor of everything orthogonal to them.
    shrinkage : float
        Weight of the identity in the estimate of the correlations.
    """

    directions: FloatArray
    gains: FloatArray
    rest: float
    shrinkage: float

    kind: ClassVar[str] = "whiten"

    def __post_init__(self) -> None:
        """Reject fields that do not belong together."""
        super().__post_init__()
        check_shape(self.directions, self.dim or 0, len(self.gains))
        check_shape(self.gains, len(self.gains))
        if not (np.all(self.gains > 0) and isinstance(self.rest, float) and self.rest > 0):
            raise ValueError("a factor is not positive")

    def name_features(self, names: Names | None) -> Names | None:
        """Names of the features of mapped rows."""
        return None if names is None else tuple(f"whitened {name}" for name in names)

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map finite rows."""
        values = rows.astype(np.float64, copy=False)
        along = multiply_matrices(values, self.directions)
        along *= self.gains - self.rest
        mapped = multiply_matrices(along, self.directions.T)
        mapped += self.rest * values
        return mapped

    def describe(self) -> str:
        """Describe the step."""
        rank = len(self.gains)
        how = "" if rank == self.dim else f", {count_text(rank, 'direction')}"
        return f"whiten {count_text(self.dim or 0, 'feature')} (shrinkage {number_text(self.shrinkage)}{how})"


def whiten(
    source: Any,
    *,
    by: Any = None,
    rank: int | None = None,
    shrinkage: float | None = None,
    seed: int = 0,
    vectors: Any = None,
    nan: str = "raise",
    after: Lens | None = None,
) -> Lens:
    r"""Fit a lens that gives the rows of each group, pooled, the identity as covariance.

    Parameters
    ----------
    source : array, path, list of paths, table or loader
        The rows to fit on, in any form that `summarize` reads. They are read twice; of collections of Dask and
        Spark, a sample is used.
    by : mapping or names, optional
        The factors that define the groups, as in `summarize`; by default, all rows are one group.
    rank : int, optional
        Number of directions whose variance is estimated each; all others share one. By default, all directions of up
        to 1,024 features, and 256 of more.
    shrinkage : float, optional
        Weight of the identity in the correlations, from 0 to 1; by default as Ledoit and Wolf estimate it [1]_.
    seed : int
        Seed of the sampled rows that directions are estimated from if there are fewer directions than features.
    vectors, nan
        As in `summarize`.
    after : Lens, optional
        A lens that is applied first: the new one is fitted on rows seen through it, and the result contains both.

    Returns
    -------
    Lens
        The lens: `standardize`, then the inverse root of the shrunk within-group correlations, which keeps each feature
        as close as possible to what it was [2]_. Its features are called "whitened NAME".

    Notes
    -----
    Squared distances between groups become those of Mahalanobis. It sees a shift along a direction in which the groups
    vary little, however the features are scaled or mixed. With all directions and without shrinkage, d times expm1 of
    the plug-in CFD is the Hotelling-Lawley trace of a MANOVA. `crossfusion.log_wilks` computes Wilks' Λ.

    Applying it costs two matrix products, rows × dim × rank. With all directions, fitting takes memory for three
    matrices of dim × dim; with fewer, for a sample of at most 20,000 rows or 256 MB.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of
       Multivariate Analysis 88, 2004.
    .. [2] A. Kessy, A. Lewin, K. Strimmer, "Optimal whitening and decorrelation", The American Statistician 72, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 1)) + 0.1 * rng.normal(size=(1000, 4))  # all features vary together
    >>> site = np.repeat(["A", "B"], 500)
    >>> x[site == "B", 0] += 0.1
    >>> lens = cf.lens.whiten(x, by={"site": site})
    >>> cf.cfd(x, labels=site).unbiased < 0.001, cf.cfd(x, labels=site, lens=lens).unbiased > 0.03
    (True, True)
    """
    return fit_whiten(open_training(source, by, vectors, nan, after), rank, shrinkage, seed)


def _check_options(rank: int | None, shrinkage: float | None, seed: int) -> None:
    """Reject options that no whitening has."""
    check_seed(seed)
    if rank is not None:
        check_whole(rank, "rank")
    if shrinkage is not None and not (is_real(shrinkage) and 0 <= shrinkage <= 1):
        raise InputError("shrinkage", shrinkage, "must be a number from 0 to 1, or None to estimate it")


def fit_whiten(training: Training, rank: int | None = None, shrinkage: float | None = None, seed: int = 0) -> Lens:
    """Fit the lens on rows that are ready to be read."""
    _check_options(rank, shrinkage, seed)
    first = make_standardize(training.summary)
    dim = len(first.scale)
    rank = (dim if dim <= MAX_FULL else DEFAULT_RANK) if rank is None else rank
    if rank > dim:
        raise InputError("rank", rank, f"is more than the {count_text(dim, 'feature')} that vary", "ask for fewer")
    freedom = float(training.summary.moments.count.sum()) - len(training.summary)
    values, vectors, share, rest = (
        _find_main(training, first, rank, shrinkage, seed)
        if rank < dim
        else (*_find_all(training, first, freedom, shrinkage), 1.0)
    )
    used = int(freedom) + len(training.summary)
    _warn_of_few_rows(values, float(share), used if rank == dim else min(used, SAMPLE_ROWS), len(training.summary))
    names = first.name_features(training.summary.features)
    step = Whiten(dim, names, vectors, 1 / np.sqrt(values), float(1 / np.sqrt(rest)), float(share))
    return training.follow(first) | Lens((step,))


def _find_all(
    training: Training, first: Standardize, freedom: float, shrinkage: float | None
) -> tuple[FloatArray, FloatArray, float]:
    """Variances along all principal directions, these directions, and the shrinkage."""
    dim = len(first.scale)
    scatter, fourth = np.zeros((dim, dim)), 0.0
    for gap in training.gaps():
        values = gap[:, first.kept] / first.scale
        scatter += values.T @ values
        fourth += float(np.sum(np.einsum("ij,ij->i", values, values) ** 2))
    scatter /= freedom
    share = _estimate_shrinkage(scatter, dim, fourth, freedom) if shrinkage is None else float(shrinkage)
    values, vectors = np.linalg.eigh(scatter)
    values = (1 - share) * values + share
    _check_varied(values[0], values[-1], dim, shrinkage)
    return values, vectors, share


def _check_varied(smallest: float, largest: float, dim: int, shrinkage: float | None) -> None:
    """Reject directions whose variance is rounding, or less."""
    if not smallest > dim * np.finfo(np.float64).eps * largest:
        raise InputError(
            "shrinkage",
            shrinkage,
            "leaves a direction without variance within groups, which cannot be whitened",
            "leave it out, or drop features that are sums of others",
        )


def _estimate_shrinkage(products: FloatArray, dim: int, fourth: float, number: float) -> float:
    """Estimate the shrinkage towards the identity (Ledoit and Wolf 2004).

    `products` are the correlations, or the inner products of the rows over their number, which have the same sum of
    squares; `fourth` is Σ‖x‖⁴ of the rows.
    """
    square = float(np.sum(products**2))
    error = (fourth / number - square) / number
    distance = square - dim
    return 1.0 if distance <= 0 else min(1.0, max(0.0, error / distance))


def _find_main(
    training: Training, first: Standardize, rank: int, shrinkage: float | None, seed: int
) -> tuple[FloatArray, FloatArray, float, float]:
    """The same for the main directions in a sample, and the variance along each other one."""
    rows = training.draw_gaps(seed, SAMPLE_ROWS)[:, first.kept] / first.scale
    number, dim = rows.shape
    if rank >= number:
        raise InputError("rank", rank, f"is too many for {count_text(number, 'sampled row')}", "ask for fewer")
    products = (rows @ rows.T if number < dim else rows.T @ rows) / number
    fourth = float(np.sum(np.einsum("ij,ij->i", rows, rows) ** 2))
    share = _estimate_shrinkage(products, dim, fourth, number) if shrinkage is None else float(shrinkage)
    values, vectors = _find_largest(products, rank, seed)
    if number < dim:
        _check_rank(values, dim, rank)
        vectors = rows.T @ vectors / np.sqrt(number * values)
    rest = (float(np.trace(products)) - float(values.sum())) / (dim - rank)
    values, rest = (1 - share) * values + share, (1 - share) * rest + share
    _check_varied(min(float(values[-1]), rest), float(values[0]), dim, shrinkage)
    return values, vectors, share, rest


def _warn_of_few_rows(values: FloatArray, share: float, rows: int, groups: int) -> None:
    """Warn if fitted rows look separate because their own variances were divided by.

    A variance that is estimated with ν degrees of freedom makes their squared distances larger by 1 / ν per direction
    that counts, a shrunk one less. `values` are the variances after shrinkage by `share`.
    """
    counted = float(np.sum(1 - share / values))
    if counted * np.sqrt(len(values) / 2) > MAX_BIAS * (rows - groups):
        said = f"whiten estimates {count_text(len(values), 'direction')} from {count_text(rows, 'row')}"
        warn(
            f"{said}, so that groups of these rows look farther apart than they are: fit it on more rows or on others,"
            f" or pass a smaller {arg('rank')}"
        )


def _check_rank(values: FloatArray, dim: int, rank: int) -> None:
    """Reject more directions than the sampled rows vary along within groups."""
    varied = int(np.count_nonzero(values > dim * np.finfo(np.float64).eps * values[0]))
    if varied < rank:
        raise InputError(
            "rank", rank, f"is more than the {count_text(varied, 'direction')} that rows vary along", "ask for fewer"
        )


def _find_largest(matrix: FloatArray, rank: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Find the largest eigenvalues of a symmetric matrix, and their vectors, by subspace iteration."""
    size = min(len(matrix), rank + SPARE_DIRECTIONS)
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(matrix), size)))[0]
    for _ in range(POWER_ROUNDS):
        basis = np.linalg.qr(matrix @ basis)[0]
    values, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
    return values[::-1][:rank], basis @ vectors[:, ::-1][:, :rank]
