"""Which correction helps: the distances of several versions of the same rows, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from crossfusion._base import (
    FloatArray,
    InputError,
    arg,
    as_names,
    check_known,
    check_level,
    check_seed,
    check_whole,
    factors,
    label_text,
    warn,
)
from crossfusion.fusion import MIN_UNITS, Content, Design, Fusion, TextTable
from crossfusion.inference import (
    Side,
    UnitMoments,
    compute_half_widths,
    compute_replicates,
    draw_multiplicities,
    estimate_unit_errors,
    rank_values,
    zero_rounding,
)
from crossfusion.summary.moment_table import Factors
from crossfusion.summary.summary import Summary
from crossfusion.summary.version_ranking import VersionRanking


@dataclass(frozen=True, eq=False, repr=False)
class CorrectionComparison(VersionRanking):
    """Versions of the same rows, such as corrections, by how far they leave groups apart.

    Parameters
    ----------
    names : tuple of str
        The corrections, in the order they were given.
    reference : str
        The correction that the others are compared with.
    batch : tuple of Fusion
        Distance between the groups for each correction, given the strata: what a correction should reduce.
    biology : tuple of Fusion, optional
        Distance between the strata given the groups, which a correction should keep; None without ``given``.
    rank : array of int
        1 for the correction whose groups are closest; NaN if nothing is compared, because groups share no stratum.
    difference : array
        Unbiased distance of each correction less that of the reference.
    level : float, optional
        Confidence level of all intervals; None without ``units``.
    lower, upper : array, optional
        Confidence limits of the difference. They account for the units that the corrections share.
    stability : array, optional
        Share of resamples of the units in which the correction has its rank.
    best : array, optional
        Share of resamples in which it is first.

    Notes
    -----
    `to_frame` has one row per correction: method, rank, batch, biology, difference, and with units batch_lower,
    batch_upper, biology_lower, biology_upper, lower, upper, stability, best. Batch and biology are unbiased. `plot`
    draws batch against biology, one point per correction; without ``given`` the batch alone.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(12), 20)
    >>> by = {"site": patient // 6, "patient": patient}
    >>> x = rng.normal(size=(240, 8)) + 0.3 * rng.normal(size=(12, 8))[patient]
    >>> far, near = x + by["site"][:, None], x + 0.5 * by["site"][:, None]
    >>> raw, corrected = cf.summarize(far, by=by), cf.summarize(near, by=by)
    >>> found = cf.compare_corrections({"raw": raw, "corrected": corrected}, between="site", units="patient")
    >>> found.rank
    array([2, 1])
    >>> bool(found.upper[1] < 0)  # closer than raw, beyond doubt
    True
    """

    names: tuple[str, ...]
    reference: str
    batch: tuple[Fusion, ...]
    biology: tuple[Fusion, ...] | None
    rank: Any
    difference: FloatArray
    level: float | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    stability: FloatArray | None = None
    best: FloatArray | None = None

    _kind: ClassVar[str] = "correction"

    def _names(self) -> tuple[str, ...]:
        return self.names

    def _columns(self) -> dict[str, Any]:
        columns = {"method": list(self.names), "rank": self.rank}
        distances = self._distance_columns("batch", "biology", plug_in=False)
        return columns | distances | self._present("difference", "lower", "upper", "stability", "best")

    def _contents(self) -> list[Content]:
        title = f"Corrections against {label_text(self.reference)}, the most fused first"
        return [title, TextTable(*self.table()), *self._describe_excluded()]

    def _texts(self) -> dict[str, list[str]]:
        change = {"difference": self._change_texts(self.difference, self.lower, self.upper)}
        return self._distance_texts("batch", "biology") | change | self._stability_texts()


def compare_corrections(
    methods: Mapping[str, Summary],
    *,
    between: Factors,
    given: Factors | None = None,
    units: Factors | None = None,
    weights: str = "pooled",
    level: float = 0.95,
    reference: str | None = None,
    draws: int = 999,
    seed: int = 0,
    min_units: int = MIN_UNITS,
) -> CorrectionComparison:
    """Compare corrections of the same rows by how far they leave groups apart, and what they keep.

    Parameters
    ----------
    methods : mapping of str to Summary
        The rows after each correction, summarized by the same factors.
    between : str or list of str
        What should not matter, such as the scanner.
    given : str or list of str, optional
        What should, such as the label: groups are compared within it, and it is compared within groups.
    units : str or list of str, optional
        What is independent, such as the patient. Without it there are no intervals.
    weights : {"pooled", "balanced"}
        Groups weigh as their rows do, or all the same.
    level : float
        Confidence level of the intervals.
    reference : str, optional
        The correction that the others are compared with; the first one if it is not named.
    draws : int
        Resamples of the units, for the stability of ranks.
    seed : int
        Of the resamples.
    min_units : int
        Groups (in a stratum) with fewer units, at least 2, are left out and named in `excluded` of each distance.

    Returns
    -------
    found : CorrectionComparison
        For each correction CFD(between | given), CFD(given | between), the difference from the reference, and its rank.

    Notes
    -----
    All corrections see the same units, so their errors are correlated, and a difference is known better than either
    distance.
    A correction can bring the first distance to zero by removing everything: look at the second one beside it.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(12), 20)
    >>> by = {"site": patient // 6, "label": np.tile([0, 1], 120), "patient": patient}
    >>> x = rng.normal(size=(240, 8)) + by["label"][:, None] + by["site"][:, None]
    >>> raw = cf.summarize(x, by=by)
    >>> half = cf.summarize(x - 0.5 * by["site"][:, None], by=by)
    >>> cf.compare_corrections({"raw": raw, "half": half}, between="site", given="label", units="patient")
    Corrections against raw, the most fused first
    correction                      batch                    biology                    difference  rank holds in
    half        0.0712 (0.0454 to 0.1055)  0.2376 (0.1997 to 0.2807)  -0.1662 (-0.1912 to -0.1430)         100.0%
    raw         0.2373 (0.1915 to 0.2908)  0.2376 (0.1997 to 0.2807)                     reference         100.0%
    """
    names = _check_summaries(methods, reference)
    asked: dict[str, Any] = {"weights": weights, "level": level, "draws": draws, "seed": seed}
    asked |= {"min_units": min_units}
    return compare_summaries(methods, between, given, units, names[0] if reference is None else reference, **asked)


def compare_summaries(
    methods: Mapping[str, Summary],
    between: Factors,
    given: Factors | None,
    units: Factors | None,
    reference: str,
    *,
    weights: str,
    level: float,
    draws: int,
    seed: int,
    min_units: int = MIN_UNITS,
) -> CorrectionComparison:
    """Compare corrections, of which there may be one; `compare_corrections` documents the arguments."""
    check_level(level, needed=True)
    check_whole(draws, "draws")
    check_seed(seed)
    by_units = bool(as_names(units, "units"))
    options: dict[str, Any] = {"units": units, "weights": weights, "level": level if by_units else None}
    options |= {"min_units": min_units}

    def ask(groups: Factors, strata: Factors | None) -> tuple[Fusion, ...]:
        return tuple(summary.cfd(groups, given=strata, **options) for summary in methods.values())

    _check_same(methods, [*as_names(between, "between"), *as_names(given, "given"), *as_names(units, "units")])
    batch = ask(between, given)
    biology = ask(given, between) if given is not None and as_names(given, "given") else None
    unbiased = np.array([np.nan if fusion.unbiased is None else fusion.unbiased for fusion in batch])
    names = tuple(methods)
    with np.errstate(invalid="ignore"):  # infinity less infinity
        difference = zero_rounding(unbiased - unbiased[names.index(reference)], unbiased)
    rank = np.full(len(names), np.nan) if batch[0].distance is None else rank_values(unbiased[None])[0]
    found = CorrectionComparison(names, reference, batch, biology, rank, difference)
    if not by_units:
        return found
    asked = {
        name: summary._make_unit_design(between, given, units, f"{arg('level')}", min_units)[:2]
        for name, summary in methods.items()
    }
    return _add_unit_errors(found, asked, weights, level, draws, seed)


def _add_unit_errors(
    found: CorrectionComparison,
    asked: Mapping[str, tuple[Design, UnitMoments]],
    weights: str,
    level: float,
    draws: int,
    seed: int,
) -> CorrectionComparison:
    """The same with the limits of differences, and how often ranks hold among resampled units."""
    sides = {
        name: Side(estimate_unit_errors(unit_moments, design, design.weights(weights)), fusion)
        for (name, (design, unit_moments)), fusion in zip(asked.items(), found.batch, strict=True)
    }
    widths = np.array([compute_half_widths(side, sides[found.reference], level) for side in sides.values()])
    distances = np.array([fusion.unbiased for fusion in found.batch], np.float64)
    below, above = zero_rounding(widths, distances).T
    design, unit_moments = asked[found.reference]
    times = draw_multiplicities(unit_moments, design, draws, seed)
    placed = rank_values(
        np.array([compute_replicates(own, d, d.weights(weights), times) for d, own in asked.values()]).T
    )
    return replace(
        found,
        level=level,
        lower=found.difference - below,
        upper=found.difference + above,
        stability=np.mean(placed == found.rank, axis=0),
        best=np.mean(placed == 1, axis=0),
    )


def _check_summaries(methods: Any, reference: Any) -> tuple[str, ...]:
    """Names of the corrections."""
    if not isinstance(methods, Mapping) or not all(isinstance(summary, Summary) for summary in methods.values()):
        raise InputError(
            "methods", problem="must map names to summaries, such as {'raw': summarize(...), 'corrected': ...}"
        )
    if len(methods) < 2:
        raise InputError(problem=f"there is {len(methods) or 'nothing'} to compare", remedy="name at least two")
    names = tuple(methods)
    if reference is not None:
        check_known([reference], names, "correction", "the comparison")
    return names


def _check_same(methods: Mapping[str, Summary], by: list[str]) -> None:
    """Reject corrections that did not see the same groups and units."""
    first = next(iter(methods))
    seen: list[Any] = []
    for name, summary in methods.items():
        check_known(by, summary.factors, "factor", f"correction {name!r}")
        fine = summary.rollup(by)
        seen.append((factors.list_labels(fine.keys.select(by)), fine.moments.count))
        if seen[-1][0] != seen[0][0]:
            raise InputError(
                problem=f"corrections {first!r} and {name!r} have different units or groups",
                remedy="compare corrections of the same rows",
            )
        if not np.array_equal(seen[-1][1], seen[0][1]):
            warn(
                f"corrections {first!r} and {name!r} have different numbers of rows in the same groups, so that their"
                " difference is also one of rows",
                "compare corrections of the same rows",
            )
