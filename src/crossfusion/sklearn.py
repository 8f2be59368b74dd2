"""Cross-Fusion Distance with scikit-learn's conventions, beside `silhouette_score`; scikit-learn itself is not needed.

NumPy arrays, frames and sparse matrices are reduced by the kernel of `cfd`. Arrays of other libraries (PyTorch, JAX,
whatever follows the array API) are reduced by their own library, where they are.
"""

import math
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from crossfusion._base import InputError, NonFiniteError, arg, check_index, check_length, check_option, factors
from crossfusion.arrays import cfd
from crossfusion.fusion import NO_VARIANCE, WEIGHTS, Cells, compute_distance

__all__ = ["cross_fusion_distance", "cross_fusion_score"]

SUM_TYPES = ("float32", "float64")
NARROW_TYPES = ("float16", "bfloat16")


def cross_fusion_distance(
    X: Any, labels: Any, *, given: Any = None, weights: str = "pooled", unbiased: bool = False
) -> float:
    """Cross-Fusion Distance between labeled groups: 0 if their means are equal, larger the farther they are apart.

    Parameters
    ----------
    X : array or sparse matrix of shape (rows, dim)
        Rows from NumPy, pandas, Polars or SciPy; or an array of PyTorch, JAX or another array API library, which is
        reduced on its device.
    labels : array of shape (rows,)
        The group or cluster of each row: numbers, strings, or values of any other single type.
    given : array of shape (rows,), optional
        The stratum of each row: groups are compared within strata.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    unbiased : bool
        Whether to return the unbiased estimate. A group with one row (in a stratum) borrows the pooled variance of the
        others.

    Returns
    -------
    float
        The distance; larger means better separated clusters. Infinite without variance within groups.

    Notes
    -----
    With N rows in K groups, ``(exp(distance) - 1) * (N - K) / (K - 1)`` is scikit-learn's `calinski_harabasz_score`, up
    to rounding. Splitting a cluster never lowers the distance, just as it never raises the inertia: to choose K,
    compare that score, or distances at the same K.

    As everywhere in scikit-learn, labels are matched to rows by position. A pandas index of `labels` that differs from
    that of `X` is an error, whereas `crossfusion.cfd` matches labels by index.

    Arrays of other libraries are reduced in their own type, at least float32; NumPy arrays in float64.

    Examples
    --------
    >>> from crossfusion.sklearn import cross_fusion_distance
    >>> X = [[0.0], [2.0], [2.0], [4.0]]
    >>> round(cross_fusion_distance(X, ["a", "a", "b", "b"]), 6)
    0.693147
    """
    check_option(weights, WEIGHTS, "weights")
    if _is_foreign(X):
        return _compute_foreign_distance(X, labels, given, weights, unbiased)
    check_index("X", X, labels=labels, given=given)  # scikit-learn goes by position, so no other order is right
    fusion = cfd(X, labels=labels, given=given, weights=weights)
    _check_groups(len(fusion.counts), int(sum(fusion.counts.values())))
    distance = float(fusion)  # refuses a design in which nothing is compared
    if not unbiased:
        return distance
    if fusion.unbiased is None:
        raise _make_single_rows_error()
    return fusion.unbiased


def cross_fusion_score(
    X: Any, labels: Any, *, given: Any = None, weights: str = "pooled", unbiased: bool = False
) -> float:
    """Cross-Fusion Score of labeled groups: the share of the variance within groups, ``exp(-distance)``.

    A **low** score means separated groups. For clusters, lower is better, unlike `silhouette_score`; for batches or
    domains that should be fused, 1 is best.

    Parameters
    ----------
    X, labels, given, weights, unbiased
        As in `cross_fusion_distance`.

    Returns
    -------
    float
        From 0 (groups without variance) to 1 (groups with equal means); slightly above 1 is possible if `unbiased`.

    Examples
    --------
    >>> from crossfusion.sklearn import cross_fusion_score
    >>> cross_fusion_score([[0.0], [2.0], [2.0], [4.0]], ["a", "a", "b", "b"])
    0.5
    """
    return math.exp(-cross_fusion_distance(X, labels, given=given, weights=weights, unbiased=unbiased))


def _check_groups(groups: int, rows: int) -> None:
    """Refuse what scikit-learn's scores of clusters refuse."""
    if not 2 <= groups < rows:
        raise InputError(
            "labels",
            problem=f"has {groups} different values for {rows} rows of X",
            remedy=f"pass from 2 up to {rows - 1}",
        )


def _make_single_rows_error() -> InputError:
    return InputError(problem=NO_VARIANCE, remedy=f"pass larger groups, or use {arg('unbiased', False)}")


def _find_torch() -> Any:
    return sys.modules.get("torch")  # who passes a tensor has imported it


def _is_tensor(values: Any) -> bool:
    torch = _find_torch()
    return torch is not None and isinstance(values, torch.Tensor)


def _is_foreign(values: Any) -> bool:
    """Whether this is an array of another library than NumPy."""
    own = isinstance(values, np.ndarray | np.generic)
    return _is_tensor(values) or (not own and hasattr(values, "__array_namespace__"))


def _find_namespace(values: Any) -> Any:
    return _find_torch() if _is_tensor(values) else values.__array_namespace__()


def _compute_foreign_distance(x: Any, labels: Any, given: Any, weights: str, unbiased: bool) -> float:
    """Distance of rows that stay where they are: only codes of labels and the result travel."""
    xp = _find_namespace(x)
    x = x.detach() if _is_tensor(x) else x
    if x.ndim != 2 or not x.shape[0] or not x.shape[1]:
        raise InputError(
            "X",
            problem=f"must be two-dimensional, rows × features, but has shape {tuple(x.shape)}",
            remedy="reshape it",
        )
    if _is_tensor(x) and x.layout is not xp.strided:
        raise InputError(
            "X", problem=f"is sparse ({x.layout})", remedy="pass X.to_dense(), or a sparse matrix of SciPy"
        )
    group, groups = _encode_labels(xp, x, labels, "labels")
    part, parts = (group * 0, 1) if given is None else _encode_labels(xp, x, given, "given")
    _check_groups(groups, x.shape[0])
    counts, cells = _compute_cells(xp, x, group * parts + part, (groups, parts))
    if not bool(xp.all(xp.isfinite(cells.scatter))):
        raise NonFiniteError(
            "X",
            problem="has NaN or infinite values, or squares beyond the range of its type",
            remedy="fix or scale the rows",
        )
    if unbiased and max(counts) < 2:
        raise _make_single_rows_error()
    return float(compute_distance(xp, cells, weights=weights, unbiased=unbiased))


def _encode_labels(xp: Any, x: Any, values: Any, name: str) -> tuple[Any, int]:
    """Numbers of groups beside the rows, and how many there are; text is numbered here, and its numbers are sent."""
    beside = _is_foreign(values) and _find_namespace(values) is xp and _find_device(values) == _find_device(x)
    if beside and values.ndim == 1 and values.shape[0]:
        check_length(values.shape[0], x.shape[0], name, "X")
        missing = values != values  # NaN, which is one group, as for NumPy arrays
        known = xp.where(missing, xp.zeros_like(values), values)
        codes = xp.unique(known, return_inverse=True)[1] if xp is _find_torch() else xp.unique_inverse(known)[1]
        codes = xp.where(missing, xp.max(codes) + 1, codes)
        codes = xp.unique(codes, return_inverse=True)[1] if xp is _find_torch() else xp.unique_inverse(codes)[1]
        return codes, int(xp.max(codes)) + 1
    keys = factors.as_table({name: values})
    check_length(keys.num_rows, x.shape[0], name, "X")
    numbers, present = factors.encode(keys)
    return xp.asarray(numbers.copy(), **_make_device_option(x)), present.num_rows


def _find_device(values: Any) -> Any:
    return None if hasattr(values, "sharding") else values.device  # JAX brings what has no place yet to what has one


def _make_device_option(x: Any) -> dict[str, Any]:
    """Option that makes a new array beside the rows."""
    device = _find_device(x)
    return {} if device is None else {"device": device}


def _compute_cells(xp: Any, x: Any, cell: Any, shape: tuple[int, int]) -> tuple[Sequence[int], Cells]:
    """Rows of each cell that has some, and moments of all, from one cell after the other, around its first row."""
    dtype = _choose_sum_type(xp, x)
    order = xp.argsort(cell)
    edges = xp.searchsorted(
        _take_rows(xp, cell, order), xp.arange(shape[0] * shape[1] + 1, dtype=cell.dtype, **_make_device_option(x))
    )
    means, scatters, counts = [], [], []
    nothing = xp.zeros(x.shape[1], dtype=dtype, **_make_device_option(x))
    origin = _cast(xp, x[0, :], dtype)
    for start, stop in pairwise(int(edge) for edge in edges):
        mean, scatter = nothing, xp.sum(nothing)
        if stop > start:
            rows = _cast(xp, _take_rows(xp, x, order[start:stop]), dtype)
            shifted = rows - rows[:1, :]
            mean = xp.sum(shifted, axis=0) / (stop - start)
            centered = shifted - mean[None, :]
            mean, scatter = mean + (rows[0, :] - origin), xp.sum(centered * centered)
        means.append(mean)
        scatters.append(scatter)
        counts.append(stop - start)
    count = xp.asarray([float(number) for number in counts], dtype=dtype, **_make_device_option(x))
    mean = xp.reshape(xp.stack(means), (*shape, x.shape[1]))
    return counts, Cells(xp.reshape(count, shape), mean, xp.reshape(xp.stack(scatters), shape))


def _choose_sum_type(xp: Any, x: Any) -> Any:
    """Type in which the rows are reduced: their own, at least float32; of whole numbers, the library's usual float."""
    name = str(x.dtype).rpartition(".")[2]
    if name in SUM_TYPES:
        return x.dtype
    if name in NARROW_TYPES:
        return xp.float32
    if name != "bool" and not name.startswith(("int", "uint")):
        raise InputError("X", problem=f"must hold real numbers, not {x.dtype}", remedy="convert it")
    return xp.asarray(0.0).dtype


def _cast(xp: Any, values: Any, dtype: Any) -> Any:
    return values.to(dtype) if xp is _find_torch() else xp.astype(values, dtype)


def _take_rows(xp: Any, values: Any, index: Any) -> Any:
    """Some of the rows, or entries."""
    return values[index] if xp is _find_torch() else xp.take(values, index, axis=0)
