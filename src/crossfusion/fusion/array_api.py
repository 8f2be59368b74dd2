"""Differentiable Cross-Fusion Distance of groups × strata in any array library.

It works with libraries that follow the array API, and with PyTorch. Empty cells have no weight, and no division has a
zero denominator even where its result is not used, because its derivative would be NaN.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import InputError, arg

MIN_FREEDOM = 1e-5  # relative to the weight of a cell; less is rounding, as for a cell of one row


@dataclass(frozen=True)
class Cells:
    """Moments of groups × strata: rows, means (a last axis of features), centered sums of squares over all features.

    `row` is the weight of a row of each cell where it is not 1: `count` over it is how many rows there are.
    """

    count: Any
    mean: Any
    scatter: Any
    row: Any = 1.0


def compute_distance(xp: Any, cells: Cells, *, weights: str, unbiased: bool, eps: Any = 0.0) -> Any:
    """Compute the Cross-Fusion Distance of cells, plug-in or unbiased, in the namespace `xp`."""
    weight = _compute_weights(xp, cells.count, weights)
    of_stratum = xp.sum(weight, axis=0)
    share = weight / _replace_zero(xp, of_stratum)[None, :]
    apart = cells.mean - xp.sum(share[:, :, None] * cells.mean, axis=0)[None, :, :]
    between = xp.sum(weight * xp.sum(apart * apart, axis=2))
    count = _replace_zero(xp, cells.count)
    if not unbiased:
        return log_ratio(xp, between, xp.sum(weight * cells.scatter / count) + eps)
    variance = _estimate_variance(xp, cells)
    corrected = between - xp.sum(weight * (1.0 - share) * variance * cells.row / count)
    return log_ratio(xp, corrected, xp.sum(weight * variance) + eps)


def log_ratio(xp: Any, between: Any, within: Any) -> Any:
    """Return log((within + between) / within); without any variance within inf, or 0 if there is none between.

    Where `between` is the larger, a difference of logarithms: the square of a small `within` in the derivative of the
    ratio would leave the range of float32. Branches that are not taken are fed 0 or 1, so that no NaN comes from them.
    """
    zero, one = xp.zeros_like(within), xp.ones_like(within)
    none = within < xp.finfo(within.dtype).smallest_normal
    near = (between < within) & ~none
    far = ~near & ~none
    close = xp.log1p(xp.where(near, between, zero) / xp.where(near, within, one))
    wide = xp.log(xp.where(far, within + between, one)) - xp.log(xp.where(far, within, one))
    limit = xp.where(between > 0, xp.full_like(within, float("inf")), zero)
    return xp.where(none, limit, xp.where(near, close, wide))


def _replace_zero(xp: Any, values: Any) -> Any:
    """Replace zeros by 1, to divide by."""
    return xp.where(values > 0, values, xp.ones_like(values))


def _compute_weights(xp: Any, count: Any, scheme: str) -> Any:
    """Compute the weights of the cells as `Design.weights` does."""
    if scheme == "pooled":
        return count / _replace_zero(xp, xp.sum(count))
    of_group = xp.sum(count, axis=1)
    present = xp.where(count > 0, xp.ones_like(count), xp.zeros_like(count))
    groups = xp.sum(xp.where(of_group > 0, xp.ones_like(of_group), xp.zeros_like(of_group)))
    of_stratum = xp.sum(count / _replace_zero(xp, of_group)[:, None], axis=0) / _replace_zero(xp, groups)
    return present * (of_stratum / _replace_zero(xp, xp.sum(present, axis=0)))[None, :]


def _estimate_variance(xp: Any, cells: Cells) -> Any:
    """Estimate the variance within each cell; a cell of one row gets the pooled variance of the others."""
    none = xp.zeros_like(cells.count)
    freedom = cells.count - cells.row
    several = freedom > MIN_FREEDOM * cells.count
    freedom = xp.where(several, freedom, none)
    pooled = xp.sum(xp.where(several, cells.scatter, none)) / _replace_zero(xp, xp.sum(freedom))
    return xp.where(several, cells.scatter / _replace_zero(xp, freedom), pooled * xp.ones_like(freedom))


def check_strata(given: Any, num_given: int | None) -> None:
    """Reject a number of strata without strata."""
    if given is None and num_given is not None:
        raise InputError("num_given", num_given, f"goes with {arg('given')}, which is None", "pass both, or neither")


def check_eps(eps: Any) -> None:
    """Reject a negative `eps`; arrays are not checked, since they may be traced."""
    number = isinstance(eps, int | float | np.number) and not isinstance(eps, bool)
    if not (0 <= eps < float("inf") if number else hasattr(eps, "dtype") and hasattr(eps, "shape")):
        raise InputError("eps", eps, "must be 0 or a positive variance, which is added to that within the groups")
