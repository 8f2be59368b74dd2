"""Random Fourier features: any difference between groups that a Gaussian kernel sees becomes a difference of means."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, InputError, check_positive, check_seed, check_whole, count_text, number_text
from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training, open_training
from crossfusion.lens.grid import VECTOR_BITS, multiply_exactly, round_to_grid
from crossfusion.lens.step import Names, Step, check_shape
from crossfusion.moments import squared_distances

MAX_FEATURES = 2**16
MEDIAN_ROWS = 1000  # sampled rows whose distances the median is of
MEDIAN = "median"  # the bandwidth that is the median distance
MAX_RATIO = 2.0**16  # of bandwidth and median distance, either way: beyond, rows are too coarse on the grid of products


@dataclass(frozen=True, eq=False)
class Kernel(Step):
    """Cosines and sines of random projections, whose inner products are about those of a Gaussian kernel.

    Parameters
    ----------
    dim, features
        See `Step`.
    center : array
        What is subtracted from rows, which changes no distance.
    frequencies : array of shape (dim, number of cosines)
        Directions of the projections, in units of 1 / bandwidth.
    bandwidth : float
        The h of exp(-‖x - y‖² / 2 h²).
    seed : int
        Seed of the frequencies and of the sample for the bandwidth.
    """

    center: FloatArray
    frequencies: FloatArray
    bandwidth: float
    seed: int

    kind: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        """Reject fields that do not belong together."""
        super().__post_init__()
        check_shape(self.center, self.dim or 0)
        check_shape(self.frequencies, self.dim or 0, max(1, self.frequencies.shape[-1]))
        if not (isinstance(self.bandwidth, float) and 0 < self.bandwidth < np.inf):
            raise ValueError("the bandwidth is not positive")

    @property
    def width(self) -> int:
        """Number of features of mapped rows."""
        return int(2 * self.frequencies.shape[1])

    def count_features(self, dim: int) -> int:  # noqa: ARG002 - whatever it is
        """Number of features of mapped rows."""
        return self.width

    def name_features(self, names: Names | None) -> Names:  # noqa: ARG002 - whatever they are
        """Names of the features of mapped rows."""
        return tuple(f"kernel {k}" for k in range(self.width))

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map finite rows: cosines, then sines."""
        phase = multiply_exactly(rows, self.center, self.bandwidth, self.frequencies).astype(np.float32)
        number = phase.shape[1]
        mapped = np.empty((len(phase), 2 * number), np.float32)
        np.cos(phase, out=mapped[:, :number])
        np.sin(phase, out=mapped[:, number:])
        mapped *= np.float32(1 / np.sqrt(number))
        return mapped

    def describe(self) -> str:
        """Describe the step."""
        number = count_text(self.width, "random Fourier feature")
        return f"kernel of {number} of {self.dim} (bandwidth {number_text(self.bandwidth)}, seed {self.seed})"


def kernel(
    source: Any,
    *,
    features: int = 1024,
    bandwidth: float | str = MEDIAN,
    seed: int = 0,
    vectors: Any = None,
    nan: str = "raise",
    after: Lens | None = None,
) -> Lens:
    r"""Fit a lens of random Fourier features, through which CFD sees any difference that a Gaussian kernel sees.

    .. math:: \varphi(x) = \sqrt{2/D}\,\bigl(\cos\omega_1^\top z, \ldots, \cos\omega_{D/2}^\top z,
              \sin\omega_1^\top z, \ldots, \sin\omega_{D/2}^\top z\bigr), \qquad z = (x - \mu)/h

    Parameters
    ----------
    source : array, path, list of paths, table or loader
        The rows to fit on, in any form that `summarize` reads, but for tables of Dask and Spark.
    features : int
        Number D of features of mapped rows, an even number.
    bandwidth : float or "median"
        The h of the kernel :math:`e^{-\lVert x-y\rVert^2/2h^2}`; "median" for the median distance between 1,000
        sampled rows.
    seed : int
        Seed of the frequencies and of the sample.
    vectors, nan
        As in `summarize`.
    after : Lens, optional
        A lens that is applied first: the new one is fitted on rows seen through it, and the result contains both.

    Returns
    -------
    Lens
        The lens. Its features are called "kernel 0", "kernel 1" and so on.

    Notes
    -----
    ``between`` of two groups is w_A w_B MMD², up to the error of the features, which falls as 1 / √D, so CFD becomes a
    normalized MMD that adds up, adjusts and has intervals. It sees differences in spread, modes and tails, as far as
    MMD with this bandwidth does. Frequencies are orthogonal in blocks of as many as there are features [2]_, which has
    a smaller error than independent ones.

    Applying it costs a matrix product, rows × dim × D / 2, and a cosine and a sine of each entry. A summary takes 16 D
    bytes per group. Fitting reads the rows once.

    References
    ----------
    .. [1] A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NeurIPS 2007.
    .. [2] F. X. Yu et al., "Orthogonal random features", NeurIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2000, 8)), rng.normal(scale=1.3, size=(2000, 8))  # equal means
    >>> cf.cfd(a, b).unbiased < 0.0005
    True
    >>> lens = cf.lens.kernel(np.concatenate([a, b]), features=256)
    >>> round(cf.cfd(a, b, lens=lens).unbiased, 3)
    0.007
    """
    return fit_kernel(open_training(source, None, vectors, nan, after), features, bandwidth, seed)


def _check_options(features: int, bandwidth: float | str, seed: int) -> None:
    """Reject options that no kernel has."""
    check_whole(features, "features", least=2)
    check_seed(seed)
    if features > MAX_FEATURES:
        raise InputError("features", features, f"must be at most {MAX_FEATURES:,}", "ask for fewer")
    if features % 2:
        raise InputError("features", features, "must be even, a cosine and a sine each", f"pass {features + 1}")
    if isinstance(bandwidth, str) and bandwidth != MEDIAN:
        raise InputError("bandwidth", bandwidth, "is not known", f"pass a number, or {MEDIAN!r}")
    if not isinstance(bandwidth, str):
        check_positive(bandwidth, "bandwidth")


def fit_kernel(training: Training, features: int = 1024, bandwidth: float | str = MEDIAN, seed: int = 0) -> Lens:
    """Fit the lens on rows that are ready to be read."""
    _check_options(features, bandwidth, seed)
    summary, sample, _ = training.draw(seed, MEDIAN_ROWS)
    moments = summary.moments
    center = moments.count @ moments.mean / moments.count.sum()
    width = _choose_bandwidth(bandwidth, _find_median_distance(sample))
    frequencies = round_to_grid(draw_frequencies(summary.dim, features // 2, seed), VECTOR_BITS)
    return training.follow(Kernel(summary.dim, summary.features, center, frequencies, width, int(seed)))


def draw_frequencies(dim: int, number: int, seed: int) -> FloatArray:
    """Draw directions that are orthogonal in blocks, with the lengths of Gaussian vectors."""
    rng = np.random.default_rng(seed)
    blocks = []
    for _ in range(-(-number // dim)):
        rotation, upper = np.linalg.qr(rng.normal(size=(dim, dim)))
        blocks.append(rotation * np.sign(np.diagonal(upper)) * np.sqrt(rng.chisquare(dim, dim)))
    return np.concatenate(blocks, axis=1)[:, :number]


def _choose_bandwidth(bandwidth: float | str, median: float) -> float:
    """Choose the bandwidth; reject one at which all rows would look alike, or none."""
    if isinstance(bandwidth, str):
        if median > 0:
            return median
        raise InputError("bandwidth", problem="cannot be the median distance, which is 0", remedy="pass a number")
    if median > 0 and not median / MAX_RATIO <= bandwidth <= median * MAX_RATIO:
        raise InputError(
            "bandwidth",
            bandwidth,
            f"is too far from the median distance of rows, {number_text(median)}, to see a difference",
            f"pass a number near it, or {MEDIAN!r}",
        )
    return float(bandwidth)


def _find_median_distance(rows: NDArray[Any]) -> float:
    """Find the median distance between rows, 0 for one row."""
    squares = squared_distances(rows.astype(np.float64))[np.triu_indices(len(rows), 1)]
    return float(np.sqrt(np.median(squares))) if len(squares) else 0.0
