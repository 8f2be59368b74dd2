"""Count, mean and centered sum of squares: the commutative monoid behind everything else."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import (
    CodeArray,
    FiniteCheck,
    FloatArray,
    InputError,
    align_index,
    as_frequency,
    as_rows,
    check_same_dim,
    find_finite_rows,
    split_rows,
)
from crossfusion.moments import kernel


@dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """Count, mean and centered sum of squares per feature, for one group of rows or many groups.

    Moments add: the sum of the moments of two disjoint sets of rows is the moments of their union, in any order and
    any number of chunks. ``Moments.empty(dim)`` is the exact identity.

    Parameters
    ----------
    count : float or array of shape (groups,)
        Number of rows.
    mean : array of shape (dim,) or (groups, dim)
        Mean of each feature.
    sumsq : array of the shape of `mean`
        Sum of squared deviations from the mean, per feature.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample variance: analysis and
       recommendations", The American Statistician 37, 1983.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> left = cf.Moments.of(np.array([[0.0, 1.0], [2.0, 1.0]]))
    >>> right = cf.Moments.of(np.array([[4.0, 4.0]]))
    >>> left + right
    Moments(count=3, dim=2)
    >>> (left + right).mean
    array([2., 2.])
    >>> sum([left, right]).sumsq
    array([8., 6.])
    """

    count: FloatArray
    mean: FloatArray
    sumsq: FloatArray

    def __post_init__(self) -> None:
        """Take float64 and make it read-only."""
        for name in ("count", "mean", "sumsq"):
            values = np.asarray(getattr(self, name), np.float64)
            if values.flags.writeable:
                values = values.view()
                values.flags.writeable = False
            object.__setattr__(self, name, values)
        if self.mean.shape != self.sumsq.shape or self.mean.shape[:-1] != self.count.shape:
            raise InputError(
                problem=f"count, mean and sumsq have shapes {self.count.shape}, {self.mean.shape} and"
                f" {self.sumsq.shape}",
                remedy="mean and sumsq take the shape of count and one axis of features",
            )

    @classmethod
    def of(cls, rows: Any, frequency: Any = None) -> "Moments":
        """Compute the moments of rows.

        Parameters
        ----------
        rows : array of shape (rows, dim)
            Rows of any float or integer type and any memory layout: a NumPy array, anything that NumPy can view as an
            array, such as a CPU tensor, or a SciPy sparse matrix.
        frequency : array of shape (rows,), optional
            How often each row counts; 0 leaves a row out.

        Returns
        -------
        Moments
            The moments of one group.

        Examples
        --------
        >>> import crossfusion as cf
        >>> cf.Moments.of([[1.0], [5.0]], frequency=[3, 1]).mean
        array([2.])
        """
        (frequency,) = align_index("rows", rows, frequency=frequency)
        values = as_rows(rows, "rows")
        if frequency is None:
            total, finite = reduce_groups(values, None, 1, name="rows")
        else:
            total, finite = _reduce_weighted(values, as_frequency(frequency, values.shape[0]), name="rows")
        check = FiniteCheck("rows")
        check.see(values, finite)
        check.settle("raise", way_out="give those rows frequency 0")
        return total[0]

    @classmethod
    def empty(cls, dim: int) -> "Moments":
        """Return the moments of no rows, the identity of addition.

        Parameters
        ----------
        dim : int
            Number of features.

        Returns
        -------
        Moments
            Moments with count 0.

        Examples
        --------
        >>> import crossfusion as cf
        >>> cf.Moments.empty(2) + cf.Moments.empty(2)
        Moments(count=0, dim=2)
        """
        return cls(*kernel.empty(1, dim))[0]

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.mean.shape[-1])

    @property
    def dispersion(self) -> FloatArray:
        """Mean squared distance of rows from their mean, summed over features (σ² in the formulas)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.sumsq.sum(axis=-1) / self.count)

    def is_finite(self) -> bool:
        """Return whether all means and sums of squares are finite."""
        return bool(np.isfinite(self.mean).all() and np.isfinite(self.sumsq).all())

    def merge(self, codes: NDArray[Any], groups: int) -> "Moments":
        """Add up the groups that share a code.

        Parameters
        ----------
        codes : array of int
            The new group of each group; a negative code leaves a group out.
        groups : int
            Number of new groups.

        Returns
        -------
        Moments
            Moments of the new groups.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            merged = Moments(*kernel.merge(self.count, self.mean, self.sumsq, codes, groups))
        _check_range(merged, "the sum")
        return merged

    def multiply(self, factor: FloatArray) -> "Moments":
        """Compute the moments of the same rows with each feature multiplied by a factor.

        Parameters
        ----------
        factor : array of shape (dim,)
            The factor of each feature.

        Returns
        -------
        Moments
            Moments of the same groups.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = Moments(self.count, self.mean * factor, self.sumsq * factor**2)
        _check_range(scaled, "the product")
        return scaled

    def __getitem__(self, index: Any) -> "Moments":
        return Moments(self.count[index], self.mean[index], self.sumsq[index])

    def __len__(self) -> int:
        return len(self.count)

    def __add__(self, other: "Moments") -> "Moments":
        if not isinstance(other, Moments):
            return NotImplemented
        check_same_dim({"the left side": self.dim, "the right side": other.dim})
        if self.count.shape != other.count.shape:
            raise InputError(
                problem=f"{self} and {other} have different numbers of groups",
                remedy="merge them to the same ones first",
            )
        left, right = (self.count, self.mean, self.sumsq), (other.count, other.mean, other.sumsq)
        with np.errstate(over="ignore", invalid="ignore"):
            total = Moments(*kernel.add(left, right))
        _check_range(total, "the sum")
        return total

    def __radd__(self, other: Any) -> "Moments":
        return self if isinstance(other, int) and other == 0 else NotImplemented  # the start of sum()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moments):
            return NotImplemented
        fields = operator.attrgetter("count", "mean", "sumsq")
        return all(np.array_equal(a, b) for a, b in zip(fields(self), fields(other), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        count = f"{self.count:g}" if self.count.ndim == 0 else f"{len(self)} groups"
        return f"Moments(count={count}, dim={self.dim})"


def concat(several: Sequence[Moments]) -> Moments:
    """Concatenate moments of single groups or of many."""
    return Moments(
        np.concatenate([np.atleast_1d(moments.count) for moments in several]),
        np.concatenate([np.atleast_2d(moments.mean) for moments in several]),
        np.concatenate([np.atleast_2d(moments.sumsq) for moments in several]),
    )


def reduce_groups(
    rows: Any, codes: CodeArray | None, groups: int, *, name: str, threads: int | None = None
) -> tuple[Moments, NDArray[np.bool_] | None]:
    """Compute the moments of the finite rows of each group, and which rows are finite, if not all."""
    total = Moments(*kernel.reduce_rows(rows, codes, groups, threads=threads))
    finite = None if total.is_finite() else find_finite_rows(rows)
    if finite is not None and not finite.all():
        codes = np.where(finite, 0 if codes is None else codes, -1).astype(np.int32)
        total = Moments(*kernel.reduce_rows(rows, codes, groups, threads=threads))
    _check_range(total, name)
    return total, None if finite is None or finite.all() else finite


def squared_distance_to_mean(rows: Any, codes: CodeArray, mean: FloatArray) -> FloatArray:
    """Compute the squared distance of each row from the mean of its group."""
    found = np.zeros(rows.shape[0])
    for start, chunk in split_rows(rows):
        dense = chunk if isinstance(chunk, np.ndarray) else chunk.toarray()
        stop = start + dense.shape[0]
        gap = dense.astype(np.float64) - mean[codes[start:stop]]
        found[start:stop] = np.einsum("ij,ij->i", gap, gap)
    return found


def _reduce_weighted(rows: Any, weight: FloatArray, *, name: str) -> tuple[Moments, NDArray[np.bool_] | None]:
    """Compute the moments of one group of weighted rows, and which rows are finite, if not all."""
    total = kernel.empty(1, rows.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start, chunk in split_rows(rows):
            dense = chunk if isinstance(chunk, np.ndarray) else chunk.toarray()
            total = kernel.add(total, kernel.merge(weight[start : start + len(dense)], dense, None, None, 1))
    moments = Moments(*total)
    finite = None if moments.is_finite() else find_finite_rows(rows) | (weight == 0)
    if finite is None or finite.all():
        _check_range(moments, name)
    return moments, finite


def _check_range(moments: Moments, name: str) -> None:
    if not moments.is_finite():
        raise InputError(name, problem="has values whose squares exceed the range of float64", remedy="scale it down")
