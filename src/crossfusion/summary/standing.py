"""Where versions of the same rows stand: which differ beyond their errors, which are tied, which are on the front."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, as_names, label_text
from crossfusion.fusion import EQUAL_MEANS_CAUTION, Design, Fusion, Record, has_equal_means, join_cautions
from crossfusion.inference import Side, UnitMoments, compute_half_widths, estimate_unit_errors, zero_rounding
from crossfusion.summary.label_effects import Loss, read_distances
from crossfusion.summary.moment_table import Factors
from crossfusion.summary.summary import Summary

Mask = NDArray[np.bool_]
ROUNDING = 1e-6  # of the largest distance
UNADJUSTED_CAUTION = (
    f"unadjusted, {EQUAL_MEANS_CAUTION}, as they do by construction after centering each group: the adjusted distance"
    " is also too small, by up to its sampling error, so compare rows that were not used to fit the correction"
)


@dataclass(frozen=True)
class Standing(Record):
    """Where one version stands among the others.

    Parameters
    ----------
    front : bool or None
        Whether the version is on the Pareto front: no other version is clearly better on one axis without being clearly
        worse on the other. False for a version that lost biology. None if it cannot be judged: no labels show what it
        keeps, or its groups have equal means by construction within each stratum.
    worse_than : tuple of str
        Versions that are better.
    tied_with : tuple of str
        Versions that differ on neither axis by more than the interval of the difference, nor in having lost biology.
    identical_to : tuple of str
        Versions with the same moments.
    lost : tuple of Loss
        Pairs of labels, single labels, or all labels together that keep less than half of the reference's distance, and
        labels whose rows have collapsed.
    caution : str or None
        Why the distance between groups may mislead, such as means that are equal by construction.
    """

    front: bool | None
    worse_than: tuple[str, ...] = ()
    tied_with: tuple[str, ...] = ()
    identical_to: tuple[str, ...] = ()
    lost: tuple[Loss, ...] = ()
    caution: str | None = None

    @property
    def text(self) -> str:
        """Format the standing for a table."""
        if self.lost:
            return "biology lost"
        equal = has_equal_means(self.caution)
        if self.front is None:
            return "not judged (equal means)" if equal else "–"
        place = "front" if self.front else f"worse than {label_text(self.worse_than[0])}"
        return f"{place} (equal means)" if equal else place


@dataclass(frozen=True)
class Axis:
    """One distance of all versions, and all differences between versions (row minus column) with their limits."""

    fusions: tuple[Fusion, ...]
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def measured(self) -> Mask:
        """Whether each version has the distance."""
        return ~np.isnan(read_distances(self.fusions, "unbiased"))

    @property
    def _rounding(self) -> float:
        """How far apart the same rows may be in float32 and float64."""
        distances = np.abs(read_distances(self.fusions, "unbiased"))
        return ROUNDING * float(distances.max(initial=0.0, where=np.isfinite(distances)))

    @property
    def clearly_lower(self) -> Mask:
        """Whether the interval of each difference lies below 0, by more than rounding."""
        below = (self.upper < -self._rounding) & np.isfinite(self.difference)
        return np.asarray(below | np.isneginf(self.difference))

    @property
    def tied(self) -> Mask:
        """Whether the interval of each difference includes 0."""
        equal_infinities = np.isinf([fusion.unbiased or 0.0 for fusion in self.fusions])
        included = (self.lower <= self._rounding) & (self.upper >= -self._rounding) & np.isfinite(self.difference)
        return np.asarray(included | np.outer(equal_infinities, equal_infinities))


def place_versions(
    versions: Mapping[str, Summary],
    batch: Axis,
    biology: Axis | None,
    lost: Sequence[tuple[Loss, ...]],
    cautions: Sequence[str | None],
) -> tuple[Standing, ...]:
    """Place each version among the others."""
    names = list(versions)
    judged = np.array([not has_equal_means(fusion.caution) for fusion in batch.fusions])
    measured = batch.measured & biology.measured if biology is not None else np.zeros(len(names), bool)
    intact = np.array([not entry for entry in lost])
    ties, same = find_ties(batch, biology) & (intact[:, None] == intact), find_identical(versions)
    eligible = judged & measured & intact
    worse = np.zeros_like(ties) if biology is None else find_dominated(batch, biology, eligible)

    def pick(mask: Mask) -> tuple[str, ...]:
        return tuple(name for name, chosen in zip(names, mask, strict=True) if chosen)

    order = np.argsort(read_distances(batch.fusions, "distance"), kind="stable")
    standings = []
    for k in range(len(names)):
        better = tuple(names[other] for other in order if worse[k, other])
        known = (judged[k] and measured[k]) or bool(lost[k])
        front = bool(eligible[k] and not better) if known else None
        standings.append(Standing(front, better, pick(ties[k]), pick(same[k]), lost[k], cautions[k]))
    return tuple(standings)


def find_caution(version: Summary, batch: Fusion, between: Factors, units: Factors | None) -> str | None:
    """Find out why the distance between the groups of a version, in the strata or unadjusted, may mislead."""
    if has_equal_means(batch.caution):
        return batch.caution
    plain = version.cfd(between, units=units)
    return join_cautions(UNADJUSTED_CAUTION if has_equal_means(plain.caution) else None, batch.caution)


def widen_limits(axis: Axis, centered: Mask) -> Axis:
    """Widen the limits of differences from versions whose groups were centered, unadjusted.

    Centering removes the sampling error of the means, which the unbiased estimate subtracts once more. A distance is
    too small by at most this bias.
    """
    with np.errstate(invalid="ignore"):  # infinity less infinity
        bias = read_distances(axis.fusions, "distance") - read_distances(axis.fusions, "unbiased")
    removed = np.where(centered, np.nan_to_num(bias, posinf=0.0), 0.0)
    apart = ~np.eye(len(removed), dtype=bool)
    return replace(axis, lower=axis.lower - removed * apart, upper=axis.upper + removed[:, None] * apart)


def measure_axis(
    versions: Mapping[str, Summary],
    between: Factors,
    given: Factors | None,
    units: Factors | None,
    *,
    weights: str,
    level: float,
    min_units: int,
    scale: str | None = None,
) -> Axis:
    """Measure the distance between groups in each version, and the differences between versions.

    Without units there are no intervals. A difference then counts as a tie if it is smaller than the bias of either
    plug-in distance, which is about the size of the sampling error of a distance near 0.
    """
    by_units = bool(as_names(units, "units"))
    options: dict[str, Any] = {"units": units, "weights": weights, "level": level if by_units else None}
    options |= {"min_units": min_units, "scale": scale}
    fusions = tuple(version.cfd(between, given=given, **options) for version in versions.values())
    unbiased = read_distances(fusions, "unbiased")
    with np.errstate(invalid="ignore"):  # infinity less infinity
        difference = zero_rounding(unbiased[:, None] - unbiased, unbiased)
    if not by_units:
        with np.errstate(invalid="ignore"):
            bias = read_distances(fusions, "distance") - unbiased
        margin = np.fmax(bias[:, None], bias)
        return Axis(fusions, difference, difference - margin, difference + margin)
    asked = [
        version._make_unit_design(between, given, units, "an interval", min_units)[:2] for version in versions.values()
    ]
    if scale is not None:
        scaled = [design.standardize(design.weights(weights)) for design, _ in asked]
        asked = [(design, moments.rescale(design)) for design, (_, moments) in zip(scaled, asked, strict=True)]
    below, above = zero_rounding(_compute_widths(asked, fusions, weights, level), unbiased)
    return Axis(fusions, difference, difference - below, difference + above)


def _compute_widths(
    asked: Sequence[tuple[Design, UnitMoments]], fusions: Sequence[Fusion], weights: str, level: float
) -> FloatArray:
    """Compute how far the limits of all differences lie below and above them."""
    sides = [
        Side(estimate_unit_errors(unit_moments, design, design.weights(weights)), fusion)
        for (design, unit_moments), fusion in zip(asked, fusions, strict=True)
    ]
    widths = np.zeros((2, len(sides), len(sides)))
    for a in range(len(sides)):
        for b in range(a):
            below, above = compute_half_widths(sides[a], sides[b], level)
            widths[:, a, b] = below, above
            widths[:, b, a] = above, below
    return widths


def find_dominated(batch: Axis, biology: Axis, judged: Mask) -> Mask:
    """Find which version (row) is worse than which (column), among those that are judged.

    One version is worse than another if its groups are clearly farther apart and its strata not clearly farther apart,
    or if its strata are clearly closer and its groups not clearly closer.
    """
    closer, keeps_more = batch.clearly_lower, biology.clearly_lower.T
    better = (closer & ~keeps_more.T) | (keeps_more & ~closer.T)  # row better than column
    return np.asarray(better.T & judged & judged[:, None])


def find_ties(batch: Axis, biology: Axis | None) -> Mask:
    """Find the pairs of versions that no difference tells apart."""
    tied = batch.tied if biology is None else batch.tied & biology.tied
    return np.asarray(tied & ~np.eye(len(tied), dtype=bool))


def find_identical(versions: Mapping[str, Summary]) -> Mask:
    """Find the pairs of versions with the same moments up to rounding."""
    moments = [version.moments for version in versions.values()]
    same = np.zeros((len(moments), len(moments)), bool)
    for a in range(len(moments)):
        for b in range(a):
            one, other = moments[a], moments[b]
            same[a, b] = same[b, a] = (
                one.mean.shape == other.mean.shape
                and np.allclose(one.mean, other.mean, rtol=1e-9, atol=1e-12 * float(np.abs(one.mean).max(initial=0.0)))
                and np.allclose(one.sumsq, other.sumsq, rtol=1e-9, atol=0)
            )
    return same
