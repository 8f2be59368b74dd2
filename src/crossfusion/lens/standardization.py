"""Features in units of their standard deviation within groups."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray, InputError, count_text, warn
from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training, open_training
from crossfusion.lens.step import Names, Step, check_shape
from crossfusion.summary import Summary

ROUNDING = 1e-14  # standard deviation of a feature, as a share of its mean, that is rounding
MAX_NAMED = 5  # features in a message


@dataclass(frozen=True, eq=False)
class Standardize(Step):
    """Each feature minus its mean, over its pooled standard deviation; constant features are left out.

    Parameters
    ----------
    dim, features
        See `Step`.
    center, scale : array
        What is subtracted from, and divides, each feature that is kept.
    left_out : tuple of int
        Positions of the constant features.
    """

    center: FloatArray
    scale: FloatArray
    left_out: tuple[int, ...] = ()

    kind: ClassVar[str] = "standardize"

    def __post_init__(self) -> None:
        """Reject fields that do not belong together."""
        super().__post_init__()
        dim = self.dim or 0
        inside = {place for place in self.left_out if type(place) is int and 0 <= place < dim}
        if list(self.left_out) != sorted(inside) or len(inside) >= dim:
            raise ValueError("the constant features are not among the features")
        for values in (self.center, self.scale):
            check_shape(values, dim - len(self.left_out))
        if np.any(self.scale <= 0):
            raise ValueError("a scale is not positive")

    @property
    def kept(self) -> CodeArray:
        """Positions of the features that are kept."""
        return np.delete(np.arange(self.dim or 0, dtype=np.int32), list(self.left_out))

    def count_features(self, dim: int) -> int:
        """Number of features of mapped rows."""
        return dim - len(self.left_out)

    def name_features(self, names: Names | None) -> Names | None:
        """Names of the features of mapped rows."""
        return None if names is None else tuple(names[k] for k in self.kept.tolist())

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map finite rows."""
        values = np.subtract(rows[:, self.kept] if self.left_out else rows, self.center, dtype=np.float64)
        return np.asarray(np.divide(values, self.scale, out=values))

    def describe(self) -> str:
        """Describe the step."""
        said = f"standardize {count_text(len(self.scale), 'feature')}"
        return f"{said} ({name_some(self.left_out, self.features)} constant, left out)" if self.left_out else said


def standardize(
    source: Any, *, by: Any = None, vectors: Any = None, nan: str = "raise", after: Lens | None = None
) -> Lens:
    """Fit a lens that gives each feature mean 0 and pooled within-group standard deviation 1.

    Parameters
    ----------
    source : array, path, list of paths, table, loader or Summary
        The rows to fit on, in any form that `summarize` reads, or a summary of them.
    by : mapping or names, optional
        The factors that define the groups, as in `summarize`; by default, all rows are one group. For a summary, names
        of factors; by default all of them.
    vectors, nan
        As in `summarize`.
    after : Lens, optional
        A lens that is applied first: the new one is fitted on rows seen through it, and the result contains both.

    Returns
    -------
    Lens
        The lens. Features that are constant within groups are left out, with a warning that names them.

    Notes
    -----
    The rows are read once, and only their moments are kept. It sees differences in features of small variance, which
    features of large variance hide otherwise. Its cost is that of reading the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> x = np.random.default_rng(0).normal(size=(500, 8)) * [1, 1, 1, 1, 1, 1, 1, 50]
    >>> lens = cf.lens.standardize(x, by={"site": np.repeat(["A", "B"], 250)})
    >>> lens
    Lens: standardize 8 features
    """
    if isinstance(source, Summary):
        return _standardize_summary(source, by, vectors, after)
    return fit_standardize(open_training(source, by, vectors, nan, after))


def _standardize_summary(summary: Summary, by: Any, vectors: Any, after: Lens | None) -> Lens:
    if vectors is not None or after is not None or summary.lens is not None:
        raise InputError(
            "source", problem="is a summary, whose rows have been chosen and mapped", remedy="pass the rows themselves"
        )
    return Lens((make_standardize(summary if by is None else summary.rollup(by)),))


def fit_standardize(training: Training) -> Lens:
    """Fit the lens on rows that are ready to be read."""
    return training.follow(make_standardize(training.summary))


def make_standardize(summary: Summary) -> Standardize:
    """Make the step from the moments of groups."""
    moments = summary.moments
    freedom = float(moments.count.sum()) - len(moments)
    if freedom < 1:
        raise InputError(
            "source", problem="has one row per group, which do not vary", remedy="pass more rows, or fewer groups"
        )
    center = moments.count @ moments.mean / moments.count.sum()
    scale = np.sqrt(moments.sumsq.sum(axis=0) / freedom)
    constant = np.flatnonzero(scale <= ROUNDING * np.abs(moments.mean).max(axis=0))
    if len(constant) == summary.dim:
        raise InputError("source", problem="has no feature that varies within groups", remedy="pass rows that differ")
    _warn_of_constant(constant, moments.mean, summary.features)
    kept = np.delete(np.arange(summary.dim), constant)
    return Standardize(summary.dim, summary.features, center[kept], scale[kept], tuple(constant.tolist()))


def _warn_of_constant(constant: NDArray[np.signedinteger[Any]], mean: FloatArray, names: Names | None) -> None:
    """Name the features that are left out, and say which of them tell groups apart."""
    gap = np.ptp(mean, axis=0)[constant] > ROUNDING * np.abs(mean).max(axis=0)[constant]
    apart, same = constant[gap].tolist(), constant[~gap].tolist()
    if same:
        warn(f"constant features are left out: {name_some(same, names)}")
    if apart:
        said = (
            f"features that do not vary within groups, yet differ between them, are left out: {name_some(apart, names)}"
        )
        warn(f"{said}: compare without the lens, too")


def name_some(positions: Any, names: Names | None) -> str:
    """Name a few features, or give their positions, and count the others."""
    said = [str(k) if names is None else names[k] for k in positions[:MAX_NAMED]]
    more = f" and {len(positions) - MAX_NAMED:,} more" if len(positions) > MAX_NAMED else ""
    return f"{'feature' if len(positions) == 1 else 'features'} {', '.join(said)}{more}"
