"""Decomposition of the distance between nested groups by level."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import FloatArray, number_text, percent
from crossfusion.fusion.cautions import join_cautions
from crossfusion.fusion.design import NO_VARIANCE, Codes, Design, between_by_feature, estimate_mean_errors
from crossfusion.fusion.display import Content, TextTable
from crossfusion.fusion.distance import log_ratio
from crossfusion.fusion.geometry import caution_about_geometry
from crossfusion.fusion.result import Result, record_columns
from crossfusion.fusion.scaling import describe_scale, name_scale
from crossfusion.moments import Moments

if TYPE_CHECKING:
    from matplotlib.figure import Figure


HEADER = ("level", "distance", "unbiased", "share")


@dataclass(frozen=True)
class Level:
    """One level of a hierarchy.

    Parameters
    ----------
    level : str
        The factor of this level.
    distance, unbiased : float or None
        Plug-in and unbiased CFD between the groups of this level, adjusted for the levels above. None if this level
        compares nothing, because no group of the level above is divided; `unbiased` is also None where undefined.
    share : float or None
        Share of the CFD between the finest groups; None if that CFD is 0 or infinite or this level compares nothing.
    overlap : float
        Share of the weight in groups of the level above that contain several groups of this level; in the rest, nothing
        is compared.
    """

    level: str
    distance: float | None
    unbiased: float | None
    share: float | None
    overlap: float = 1.0


@dataclass(frozen=True, repr=False)
class Hierarchy(Result):
    """CFD of nested levels, which add up to the CFD between the finest groups.

    Parameters
    ----------
    levels : tuple of Level
        The levels, from the outermost to the innermost.
    distance, unbiased : float
        Plug-in and unbiased CFD between the finest groups: the sums over the levels. `unbiased` is None if each of the
        finest groups has one row.
    scale : str, optional
        "features" if each feature is in units of its standard deviation within the finest groups.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary within the finest groups.
    caution : str, optional
        Warning that a few features of large variance hide a difference in the others, with the level.

    Notes
    -----
    `to_frame` returns one row per level with level, distance, unbiased, share, overlap. `plot` stacks the levels and
    shows their sum.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0]], by={"site": ["A", "A", "B", "B"], "n": [1, 2, 1, 2]})
    >>> summary.hierarchy(["site"])
    Cross-Fusion Distance by level
    level  distance  unbiased  share
    site     0.6931    0.2231   100%
    whole    0.6931    0.2231
    """

    levels: tuple[Level, ...]
    distance: float
    unbiased: float | None
    caution: str | None = None
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None

    def _values(self) -> dict[str, Any]:
        unscaled = () if self.scale else ("scale", "constant")
        return {name: value for name, value in super()._values().items() if name not in unscaled}

    def _columns(self) -> dict[str, Any]:
        return record_columns(Level, self.levels)

    def rows(self) -> list[list[str]]:
        """Return the rows of the printed table, with the total last.

        Returns
        -------
        list of list of str
            Level, distance, unbiased and share of each row.
        """
        found = [(entry.level, entry.distance, entry.unbiased, percent(entry.share)) for entry in self.levels]
        found.append(("whole", self.distance, self.unbiased, ""))
        return [
            [level, number_text(distance), number_text(unbiased), share] for level, distance, unbiased, share in found
        ]

    def remarks(self) -> list[str]:
        """Return remarks on the table: levels that are compared in only part of the rows, the scale, and a caution.

        Returns
        -------
        list of str
            Sentences.
        """
        partial = [f"{entry.level} {percent(entry.overlap)}" for entry in self.levels if entry.overlap < 1]
        said = f"overlap, the share of the weight in groups that a level divides: {', '.join(partial)}"
        scale = [f"scale: {describe_scale(self.constant or ())}"] if self.scale else []
        return [*([said] if partial else []), *scale, *([f"caution: {self.caution}"] if self.caution else [])]

    def _draw(self, axes: Any) -> "Figure":
        """Draw the levels, each from where the one above ends, and their sum."""
        names = [level.level for level in self.levels]
        values = [np.nan if level.distance is None else level.distance for level in self.levels]
        return plots.levels(names, values, axes=axes)

    def _contents(self) -> list[Content]:
        why = [] if self.unbiased is not None else [f"unbiased is undefined: {NO_VARIANCE}"]
        return ["Cross-Fusion Distance by level", TextTable(HEADER, self.rows()), *self.remarks(), *why]


def split_levels(
    leaves: Moments,
    partitions: Sequence[Codes],
    names: Sequence[str],
    *,
    weights: str,
    balance: Codes | None = None,
    scale: str | None = None,
    features: tuple[str, ...] | None = None,
) -> Hierarchy:
    """Split the distance between leaves over nested partitions.

    `partitions` holds the codes of the leaves' groups at each level, from the coarsest to the leaves themselves; the
    trivial partition above the first is implied. All levels use one set of leaf weights and leaf-level corrections, so
    both columns add up exactly: each level contributes log(W above / W here). `balance` holds the codes of the groups
    to which balanced weights give the same weight, by default the leaves. With a `scale`, all levels are in units of
    the standard deviations within the leaves, so that they still add up.
    """
    design = Design(leaves, partitions[-1], np.zeros(len(leaves), int), range(len(leaves)), features=features)
    design.check_groups()
    weight = design.weights(weights)
    if weights == "balanced" and balance is not None:
        rows_of_group = np.bincount(balance, weights=leaves.count)
        weight = leaves.count / rows_of_group[balance] / len(rows_of_group)
    if scale is not None:
        design = design.standardize(weight)
        leaves = design.cells
    error, noise = estimate_mean_errors(leaves), design.estimate_mean_errors()
    spread = leaves.sumsq * (weight / leaves.count)[:, None]
    here = Moments(weight, leaves.mean, spread)
    within = float(spread.sum())
    within_unbiased = float(np.sum(weight * error * leaves.count))  # NaN, as are its levels, if all leaves have one row
    found: list[tuple[float, float, float]] = []
    cautions = []
    for fine, coarse in pairwise([*reversed(partitions), np.zeros_like(partitions[0])]):
        above = _find_parents(fine, coarse)
        groups = Design(leaves.merge(fine, len(here)), np.arange(len(here)), above, range(len(here)))
        cautions.append(caution_about_geometry(groups, here.count, names=features))
        between = float(between_by_feature(here.mean, here.count, above).sum())
        corrected = design.shrinkage * between - _compute_correction(weight, noise, fine, coarse)
        overlap = float(here.count[np.bincount(above)[above] > 1].sum())  # the weights sum to 1
        found.append((log_ratio(between, within), log_ratio(corrected, within_unbiased), overlap))
        here = here.merge(above, int(above.max()) + 1)
        within += between
        within_unbiased += corrected
    return replace(_make_hierarchy(names, found[::-1], cautions[::-1]), **name_scale(design.scale))


def _find_parents(fine: Codes, coarse: Codes) -> Codes:
    """Find the coarse group of every fine group."""
    above = np.zeros(int(fine.max()) + 1, int)
    above[fine] = coarse
    return above


def _compute_correction(weight: FloatArray, error: FloatArray, fine: Codes, coarse: Codes) -> float:
    """Compute the between-variance due to sampling error alone: Σ w² (1/w_fine − 1/w_coarse) s²/n."""
    of_fine, of_coarse = (np.bincount(codes, weights=weight)[codes] for codes in (fine, coarse))
    return float(np.sum(weight**2 * (1 / of_fine - 1 / of_coarse) * error))


def _make_hierarchy(
    names: Sequence[str], found: Sequence[tuple[float, float, float]], cautions: Sequence[str | None]
) -> Hierarchy:
    distance, unbiased = (float(sum(entry[k] for entry in found)) for k in (0, 1))
    divisible = 0 < distance < np.inf
    levels = tuple(
        Level(name, value, _nan_to_none(corrected), value / distance if divisible else None, _snap_to_one(overlap))
        if overlap > 0
        else Level(name, None, None, None, 0.0)
        for name, (value, corrected, overlap) in zip(names, found, strict=True)
    )
    said = [f"{name}: {caution}" for name, caution in zip(names, cautions, strict=True) if caution is not None]
    return Hierarchy(levels, distance, _nan_to_none(unbiased), join_cautions(*said))


def _snap_to_one(share: float) -> float:
    """A share that may miss 1 by rounding."""
    return 1.0 if share > 1 - 1e-12 else share


def _nan_to_none(value: float) -> float | None:
    return None if np.isnan(value) else value
