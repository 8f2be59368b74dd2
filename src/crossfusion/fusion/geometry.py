"""Caution about features of very different scale, where a few features decide a distance that sums over all.

With the variance W_j within groups and B_j between them, CFD is log(1 + Σ B_j / Σ W_j): a feature counts as much as its
variance. The effective dimension (Σ W_j)² / Σ W_j² says how many features that leaves. If it is small, and the groups
are much farther apart with every feature in units of its own standard deviation, log(1 + mean_j B_j / W_j), the large
features hide a difference in the others. All of it comes from the moments.
"""

from collections.abc import Sequence

import numpy as np

from crossfusion._base import FloatArray, number_text
from crossfusion.fusion.design import Design, between_by_feature

GEOMETRY_REMEDY = 'pass scale="features"'
FEW_FEATURES = (
    0.25  # effective dimension as a share of the features; real embeddings and principal components: 0.1 to 0.9
)
MIN_DIMENSION = 1.5  # effective dimension below which one feature decides, however few there are
HIDDEN_RATIO = 3  # standardized variance between over the plain one; on real data it is below 1
HIDDEN_NOISE = 6  # times what sampling error alone adds to the standardized variance between
MIN_HIDDEN = 0.01  # standardized variance between; a smaller one is negligible
MAX_NAMED = 5  # features


def caution_about_geometry(
    design: Design, weight: FloatArray, bias: FloatArray | None = None, names: Sequence[str] | None = None
) -> str | None:
    """Return a caution if a few features hold most of the variance within groups and hide a difference in the others.

    `bias` is the part of the variance between groups due to sampling error, per feature; by default that of rows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return _find_hidden_difference(design, weight, bias, names)


def _find_hidden_difference(
    design: Design, weight: FloatArray, bias: FloatArray | None, names: Sequence[str] | None
) -> str | None:
    """The same; numbers beyond the range of float64 give no caution."""
    within, by_rows = _estimate_by_feature(design, weight)
    bias = by_rows if bias is None else bias
    total = float(within.sum())
    if not 0 < total < np.inf:
        return None
    share = within / total
    dimension = float(1 / np.sum(share**2))
    if dimension > max(MIN_DIMENSION, FEW_FEATURES * len(within)):
        return None
    between = between_by_feature(design.cells.mean, weight, design.stratum) - bias
    varied = share > np.finfo(np.float64).eps
    standardized, noise = (float(np.mean(values[varied] / within[varied])) for values in (between, bias))
    hidden = max(HIDDEN_RATIO * float(between.sum()) / total, HIDDEN_NOISE * noise, MIN_HIDDEN)
    if not standardized > hidden:
        return None
    return (
        f"{_name_largest(share, round(dimension), names)} (effective dimension {dimension:.1f}), which hides a"
        f" difference in the others (CFD {number_text(np.log1p(standardized))} if all features count the same):"
        f" {GEOMETRY_REMEDY}"
    )


def _estimate_by_feature(design: Design, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Estimate the variance within groups, and the variance between them due to sampling error, per feature.

    A cell with one row borrows the variance pooled over the others.
    """
    cells, stratum = design.cells, design.stratum
    share = weight / np.bincount(stratum, weights=weight)[stratum]
    several = cells.count > 1
    freedom = np.where(several, cells.count - 1, 1.0)
    pooled = (several @ cells.sumsq) / max(float(freedom[several].sum()), 1.0)
    found = [
        np.where(several, factor / freedom, 0.0) @ cells.sumsq + float(factor[~several].sum()) * pooled
        for factor in (weight, weight * (1 - share) / cells.count)
    ]
    return found[0], found[1]


def _name_largest(share: FloatArray, number: int, names: Sequence[str] | None) -> str:
    """Name the features of the largest shares of the variance within groups."""
    order = np.argsort(-share, kind="stable")
    held = f"{share[order[:number]].sum():.0%} of the variance within groups"
    listed = ", ".join(str(k) if names is None else names[k] for k in order[:MAX_NAMED][:number].tolist())
    if number == 1:
        return f"feature {listed} holds {held}"
    more = f" and {number - MAX_NAMED:,} more" if number > MAX_NAMED else ""
    return f"{number:,} of {len(share):,} features ({listed}{more}) hold {held}"
