"""A codebook: regions of the space of rows, whose counts show how groups mix locally."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, InputError, check_seed, check_whole, load
from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training, open_training
from crossfusion.lens.grid import VECTOR_BITS, multiply_exactly, round_to_grid
from crossfusion.lens.step import Names, Step, check_shape

REGION = "region"  # the factor
MAX_SEED = 2**32  # of scikit-learn


@dataclass(frozen=True, eq=False)
class Codebook(Step):
    """The number of the nearest of some points, as a factor; rows stay as they are.

    Parameters
    ----------
    dim, features
        See `Step`.
    center : array
        Mean of the rows.
    points : array of shape (dim, regions)
        The points, relative to the center, in units of the scale.
    scale : float
        Root mean square distance of rows from the center.
    seed : int
        Seed of the sample and of the points.
    """

    center: FloatArray
    points: FloatArray
    scale: float
    seed: int

    kind: ClassVar[str] = "codebook"
    factors: ClassVar[Names] = (REGION,)
    changes_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Reject fields that do not belong together."""
        super().__post_init__()
        check_shape(self.center, self.dim or 0)
        check_shape(self.points, self.dim or 0, max(1, self.points.shape[-1]))
        if not (isinstance(self.scale, float) and 0 < self.scale < np.inf):
            raise ValueError("the scale is not positive")

    @property
    def centers(self) -> FloatArray:
        """The points in the space of rows, one row per region."""
        return self.center + self.scale * self.points.T

    @property
    def width(self) -> int:
        """Number of regions."""
        return int(self.points.shape[1])

    def label_block(self, rows: NDArray[Any]) -> NDArray[np.int32]:
        """Number of the nearest point of each row; of points equally near, the first."""
        gain = multiply_exactly(rows, self.center, self.scale, self.points)
        gain -= np.einsum("ij,ij->j", self.points, self.points) / 2
        return np.asarray(gain.argmax(axis=1), np.int32)

    def describe(self) -> str:
        """Describe the step."""
        return f"codebook of {self.points.shape[1]} regions of {self.dim} features (seed {self.seed})"


def codebook(
    source: Any,
    *,
    regions: int = 64,
    seed: int = 0,
    vectors: Any = None,
    nan: str = "raise",
    after: Lens | None = None,
) -> Lens:
    """Fit a lens that adds the factor "region": the number of the nearest of k-means centers.

    Parameters
    ----------
    source : array, path, list of paths, table or loader
        The rows to fit on, in any form that `summarize` reads, but for tables of Dask and Spark.
    regions : int
        Number of regions.
    seed : int
        Seed of the sample and of k-means.
    vectors, nan
        As in `summarize`.
    after : Lens, optional
        A lens that is applied first: the new one is fitted on rows seen through it, and the result contains both.

    Returns
    -------
    Lens
        The lens. It leaves rows as they are; a summary through it has the integer factor "region".

    Notes
    -----
    Groups that are mixed locally have the same shares of rows in each region, whatever their means. The centers are
    found by k-means of scikit-learn on 20,000 sampled rows; fitting reads the rows once. Applying it costs a matrix
    product, rows × dim × regions. A row is in the same region wherever it is reduced.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> x = np.random.default_rng(0).normal(size=(1000, 4))
    >>> lens = cf.lens.codebook(x, regions=8)
    >>> summary = cf.summarize(x, by={"batch": np.repeat(["a", "b"], 500)}, lens=lens)
    >>> summary.factors, len(summary)
    (('batch', 'region'), 16)
    """
    return fit_codebook(open_training(source, None, vectors, nan, after), regions, seed)


def _check_options(regions: int, seed: int) -> None:
    """Reject options that no codebook has."""
    check_whole(regions, "regions", least=2)
    check_seed(seed, MAX_SEED)


def fit_codebook(training: Training, regions: int = 64, seed: int = 0) -> Lens:
    """Fit the lens on rows that are ready to be read."""
    _check_options(regions, seed)
    summary, sample, _ = training.draw(seed)
    moments = summary.moments
    center = moments.count @ moments.mean / moments.count.sum()
    values = sample - center
    scale = float(np.sqrt(np.mean(np.einsum("ij,ij->i", values, values))))
    if len(np.unique(values, axis=0)) < regions:
        raise InputError("regions", regions, "is more than there are different rows", "ask for fewer")
    if scale == 0:
        raise InputError("source", problem="has rows whose squared distances are 0 in float64", remedy="scale it up")
    points = round_to_grid(_find_centers(values / scale, regions, seed).T, VECTOR_BITS)
    return training.follow(
        Codebook(summary.dim, summary.features, center, np.ascontiguousarray(points), scale, int(seed))
    )


def _find_centers(rows: FloatArray, regions: int, seed: int) -> FloatArray:
    """Centers of k-means, in the order of their size, largest first."""
    cluster = load("sklearn.cluster", "scikit-learn", "lens", "a codebook")
    found = cluster.KMeans(regions, n_init=1, random_state=seed).fit(rows)
    order = np.argsort(-np.bincount(found.labels_, minlength=regions), kind="stable")
    return np.asarray(found.cluster_centers_[order], np.float64)
