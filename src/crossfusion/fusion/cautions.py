"""Cautions: few rows carry a comparison, or groups differ more in spread or shape than in position.

From moments alone, the spread of single features can be compared. Groups with independent normal features are
Σ ‖μ_a − μ_b‖² + Σ ‖sd_a − sd_b‖² apart (squared 2-Wasserstein): position and spread, in the same units. Differences in
shape show in the rows only. The energy distance of sampled rows, with and without the cells' means, tells how much of
the difference between groups is not in position.

Means that were set equal, as by centering each group, leave a distance nothing to measure. They show in the variance
between means: it is far smaller than the sampling error of the means makes it by chance.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, label_text, map_threads
from crossfusion.fusion.design import Codes, Design, between_by_feature, split_by_stratum

SPREAD_CAUTION = "the groups differ in spread more than in position"
SHAPE_CAUTION = "the groups differ in shape more than in position"
CAUTION_REMEDY = ", which a distance of means does not see: compare with dispersion_test and distance('energy')"
EQUAL_MEANS_CAUTION = "the group means agree far more closely than sampling error allows"
EQUAL_MEANS_REMEDY = (
    ", as they do by construction after centering each group or if groups hold the same rows: a distance of means"
    " then says nothing about the groups, so compare rows that were not used to fit the correction, or use"
    " distance('energy')"
)
EQUAL_MEANS_LEVEL = 1e-3  # probability of means as close as these by chance, at most
MIN_SHARE = 0.01  # of the variance within, or of the mean distance between rows: smaller differences are negligible
SPREAD_NOISE = 12  # times the expected chance variation of normal rows, for the spread of all features together
MIN_SHARED_SHARE = 0.5  # of a group's rows in strata with another group; with fewer, most of it is not compared
MIN_SHARED_ROWS = 20  # rows of a group in such strata, of a group that has as many
FEATURE_NOISE = 120  # the same for single features, where heavy tails do not average out
MAX_SAMPLED_ROWS = 256  # rows
MAX_SAMPLED_NUMBERS = 2**17  # numbers in them
PERMUTATIONS = 99
MAX_NAMED = 3  # groups


def are_few(shared: FloatArray, count: FloatArray) -> NDArray[np.bool_]:
    """Find where the rows in shared strata are too few to speak for all rows."""
    return (shared < MIN_SHARED_SHARE * count) | ((shared < MIN_SHARED_ROWS) & (count >= MIN_SHARED_ROWS))


def count_shared_rows(design: Design) -> tuple[FloatArray, FloatArray]:
    """Count the rows of each group in strata that hold another group, and all of its rows."""
    inside = np.bincount(design.stratum)[design.stratum] > 1
    shared, whole = (
        np.bincount(design.group, weights=count).astype(np.float64)
        for count in (design.cells.count * inside, design.cells.count)
    )
    return shared, whole


def caution_about_overlap(design: Design) -> str | None:
    """Return a caution if few rows of some group are in strata that hold another group."""
    shared, count = count_shared_rows(design)
    few = np.flatnonzero(are_few(shared, count))
    if not len(few):
        return None
    few = few[np.argsort(shared[few], kind="stable")]
    named = [f"{shared[k]:,.12g} of {count[k]:,.12g} rows of {label_text(design.labels[k])}" for k in few[:MAX_NAMED]]
    more = f" and of {len(few) - MAX_NAMED} more groups" if len(few) > MAX_NAMED else ""
    return f"the comparison rests on few rows: only {', '.join(named)}{more} are in strata with another group"


def join_cautions(*cautions: str | None) -> str | None:
    """Join the cautions that there are to one text, each once."""
    return "; ".join(dict.fromkeys(text for caution in cautions for text in split_cautions(caution))) or None


def split_cautions(text: str | None) -> list[str]:
    """Split a text that `join_cautions` made."""
    return text.split("; ") if text else []


def caution_about_spread(design: Design, weight: FloatArray, between: float, independent: FloatArray) -> str | None:
    """Return a caution if cells differ more in the spread of features than in their means.

    `between` is the unbiased variance between means; `independent` is the number of rows or units of each cell, of
    which one alone shows no spread.
    """
    cells, stratum = design.cells, design.stratum
    several = np.flatnonzero(independent > 1)
    if not len(several):
        return None
    if len(several) < len(cells):
        cells, weight, independent = cells[several], weight[several], independent[several]
        stratum = np.unique(stratum[several], return_inverse=True)[1]
    each = np.sqrt(cells.sumsq / cells.count[:, None])
    whole = np.sqrt(cells.dispersion)[:, None]
    share = weight / np.bincount(stratum, weights=weight)[stratum]
    by_chance = float(np.sum(weight * (1 - share) * cells.dispersion / (2 * independent)))
    within = float(np.sum(weight * cells.dispersion))
    for deviation, noise in ((whole, SPREAD_NOISE), (each, FEATURE_NOISE)):
        apart = float(between_by_feature(deviation, weight, stratum).sum())
        if apart > max(between, noise * by_chance, MIN_SHARE * within):
            return SPREAD_CAUTION + CAUTION_REMEDY
    return None


def caution_about_equal_means(
    between: float, error: float, freedom: float, error_freedom: float = np.inf
) -> str | None:
    """Return a caution if the means of groups agree so closely that they must have been set equal.

    `between` is the plug-in variance between means and `error` its expected value if all groups had the same mean, with
    `freedom` and `error_freedom` degrees of freedom. Their ratio is then about F-distributed.
    """
    if not (error > 0 and freedom > 0 and error_freedom > 0):
        return None
    return caution_about_close_means(bound_lower_tail(between / error, freedom, error_freedom))


def caution_about_close_means(lower_tail: float) -> str | None:
    """Return the same caution, given the probability of means as close as these by chance."""
    return EQUAL_MEANS_CAUTION + EQUAL_MEANS_REMEDY if lower_tail <= EQUAL_MEANS_LEVEL else None


def bound_lower_tail(ratio: float, freedom: float, error_freedom: float) -> float:
    """Bound the probability that an F-distributed ratio is as small as this one (Chernoff's bound, in closed form)."""
    if ratio >= 1:
        return 1.0
    if ratio <= 0:
        return 0.0
    if np.isinf(error_freedom):
        return float(np.exp(freedom / 2 * (np.log(ratio) + 1 - ratio)))
    both = freedom + error_freedom
    denominator = np.log1p((freedom * (ratio - 1)) / both)
    return float(np.exp(freedom / 2 * np.log(ratio) - both / 2 * denominator))


def has_equal_means(caution: str | None) -> bool:
    """Whether a caution is about means that agree too closely."""
    return caution is not None and EQUAL_MEANS_CAUTION in caution


def caution_about_shape(
    sampled: Mapping[int, NDArray[Any]], size: float, design: Design, weight: FloatArray
) -> str | None:
    """Return a caution if more than half of the energy distance between cells remains when their means are equal.

    `sampled` holds independent rows of each cell, centered and divided by `size`.
    """
    each = max(2, min(MAX_SAMPLED_ROWS, MAX_SAMPLED_NUMBERS // design.cells.dim) // len(sampled))
    strata = []
    for members in split_by_stratum(design.stratum):
        rows = [sampled[cell][:each] for cell in members]
        if len(members) > 1 and min(map(len, rows)) > 1:
            cell = np.repeat(np.arange(len(members)), [len(values) for values in rows])
            center = ((design.cells.mean[members] - design.cells.mean[members[0]]) / size).astype(np.float32)
            strata.append((np.concatenate(rows), center, cell, weight[members]))
    with map_threads(1):
        apart = [(_compute_distances(rows), cell, own) for rows, _, cell, own in strata]
        left = sum(_compute_energy(distances, cell, own) for distances, cell, own in apart)
        scale = sum(float(own.sum() * distances.mean()) for distances, _, own in apart)
        if not left > MIN_SHARE * scale:
            return None
        whole = sum(
            _compute_energy(_compute_distances(_center(rows + mean[cell])), cell, own)
            for rows, mean, cell, own in strata
        )
        if not left > whole / 2:
            return None
        draw = np.random.default_rng(0)
        by_chance = (
            sum(_compute_energy(distances, draw.permutation(cell), own) for distances, cell, own in apart)
            for _ in range(PERMUTATIONS)
        )
        return SHAPE_CAUTION + CAUTION_REMEDY if left > max(by_chance) else None


def _compute_distances(rows: NDArray[Any]) -> NDArray[Any]:
    """Compute the distances between all rows, which are not far from the origin."""
    square = np.einsum("ij,ij->i", rows, rows)
    return np.asarray(np.sqrt(np.maximum(square[:, None] + square - 2 * (rows @ rows.T), 0.0)))


def _center(rows: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(rows - rows.mean(axis=0))


def _compute_energy(distances: NDArray[Any], cell: Codes, weight: FloatArray) -> float:
    """Compute the weighted squared energy distances between cells, without small-sample bias."""
    member = (cell[:, None] == np.arange(len(weight))).astype(distances.dtype)
    size = member.sum(axis=0)
    sums = member.T @ distances @ member
    mean = sums / np.outer(size, size)
    np.fill_diagonal(mean, np.diagonal(sums) / (size * (size - 1)))
    own = np.diagonal(mean)
    apart = 2 * mean - own[:, None] - own
    return float(np.sum(np.outer(weight, weight) * apart) / (2 * weight.sum()))
