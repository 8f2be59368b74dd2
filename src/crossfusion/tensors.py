"""The distance of groups × strata in any array library: the formulas of `fusion`, fit to be differentiated.

Every library that follows the array API will do, and PyTorch. Cells without rows weigh nothing, and no division has a
zero below it even where its result is not used: a derivative would be NaN there.
"""

from dataclasses import dataclass
from typing import Any

from crossfusion.errors import InputError


@dataclass(frozen=True)
class Cells:
    """Moments of groups × strata: rows, means (a last axis of features), centred sums of squares over all features."""

    count: Any
    mean: Any
    scatter: Any


def distance(xp: Any, cells: Cells, *, weights: str, unbiased: bool, eps: float = 0.0) -> Any:
    """Cross-Fusion Distance of cells, plug-in or from unbiased parts, in the namespace `xp`."""
    weight = _weights(xp, cells.count, weights)
    of_part = xp.sum(weight, axis=0)
    share = weight / _or_one(xp, of_part)[None, :]
    apart = cells.mean - xp.sum(share[:, :, None] * cells.mean, axis=0)[None, :, :]
    between = xp.sum(weight * xp.sum(apart * apart, axis=2))
    count = _or_one(xp, cells.count)
    if not unbiased:
        return log_ratio(xp, between, xp.sum(weight * cells.scatter / count), eps)
    variance = _variance(xp, cells)
    corrected = between - xp.sum(weight * (1.0 - share) * variance / count)
    return log_ratio(xp, corrected, xp.sum(weight * variance), eps)


def log_ratio(xp: Any, between: Any, within: Any, eps: float = 0.0) -> Any:
    """Return log(1 + between / (within + eps)); without any spread within inf or 0, both flat."""
    spread = within + eps
    none = spread <= 0
    ratio = xp.where(none, xp.zeros_like(between), between) / xp.where(none, xp.ones_like(spread), spread)
    limit = xp.where(between > 0, xp.full_like(spread, float("inf")), xp.zeros_like(spread))
    return xp.where(none, limit, xp.log1p(ratio))


def _or_one(xp: Any, values: Any) -> Any:
    """Values to divide by, 1 where there is nothing to divide."""
    return xp.where(values > 0, values, xp.ones_like(values))


def _weights(xp: Any, count: Any, scheme: str) -> Any:
    """Weights of the cells, summing to 1: as `Design.weights`."""
    if scheme == "pooled":
        return count / _or_one(xp, xp.sum(count))
    of_group = xp.sum(count, axis=1)
    present = xp.where(count > 0, xp.ones_like(count), xp.zeros_like(count))
    groups = xp.sum(xp.where(of_group > 0, xp.ones_like(of_group), xp.zeros_like(of_group)))
    of_part = xp.sum(count / _or_one(xp, of_group)[:, None], axis=0) / _or_one(xp, groups)
    return present * (of_part / _or_one(xp, xp.sum(present, axis=0)))[None, :]


def _variance(xp: Any, cells: Cells) -> Any:
    """Unbiased variance within each cell; a cell of one row has that of the others together, weighted by freedom."""
    several = cells.count > 1
    freedom = xp.where(several, cells.count - 1.0, xp.zeros_like(cells.count))
    pooled = xp.sum(xp.where(several, cells.scatter, xp.zeros_like(freedom))) / _or_one(xp, xp.sum(freedom))
    return xp.where(several, cells.scatter / _or_one(xp, freedom), pooled * xp.ones_like(freedom))


def check_eps(eps: Any) -> None:
    """Refuse a negative addition to the variance; what is traced cannot be looked at."""
    if isinstance(eps, bool) or (isinstance(eps, int | float) and not 0 <= eps < float("inf")):
        raise InputError(f"eps={eps!r} must be a variance to add to that within the groups, 0 or more")
