"""Which correction helps: the distances of several versions of the same rows, side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion._base import (
    FloatArray,
    InputError,
    as_names,
    check_known,
    check_level,
    factors,
    label_text,
    warn,
)
from crossfusion.fusion import MIN_UNITS, Content, Fusion, TextTable, check_scale, data_frame, has_equal_means
from crossfusion.summary.label_effects import (
    LabelEffect,
    LabelPairs,
    Loss,
    compare_label_pairs,
    find_losses,
    measure_labels,
)
from crossfusion.summary.moment_table import Factors
from crossfusion.summary.standing import Standing, find_caution, measure_axis, place_versions, widen_limits
from crossfusion.summary.summary import Summary
from crossfusion.summary.version_ranking import VersionRanking, fusion_columns

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class CorrectionComparison(VersionRanking):
    """Comparison of corrections of the same rows: how far groups and labels are separated after each.

    Parameters
    ----------
    names : tuple of str
        The corrections, in the order they were given.
    reference : str
        The correction that the others are compared with.
    batch : tuple of Fusion
        CFD between the groups for each correction, adjusted for the strata, which a correction should reduce.
    biology : tuple of Fusion, optional
        CFD between the strata, adjusted for the groups, which a correction should keep; None without ``given``.
    standing : tuple of Standing
        For each correction: whether it is on the Pareto front, the corrections it is tied with, the biology it lost,
        and a caution, for example if group means are equal by construction.
    difference : array
        `batch` of each correction minus that of the reference, both unbiased.
    kept : array, optional
        `biology` of each correction minus that of the reference, both unbiased.
    labels : tuple of LabelEffect
        Both CFDs for each correction and label; empty without ``given``.
    pairs : LabelPairs, optional
        CFD between the two labels of each pair, for each correction; None without ``given``.
    level : float, optional
        Confidence level of all intervals; None without ``units``.
    lower, upper : array, optional
        Confidence limits of `difference`. They account for the units that the corrections share.
    kept_lower, kept_upper : array, optional
        Confidence limits of `kept`.
    scale : str, optional
        "features" if each feature is in units of its standard deviation within groups.

    Notes
    -----
    A correction is on the *front* if no other one is clearly better on one axis without being clearly worse on the
    other. "Clearly" means that the interval of the difference excludes 0. A correction that keeps less than half of the
    reference's distance between two labels, or collapses a label, has lost biology and is never on the front. If the
    means of its groups are equal by construction within each stratum, `batch` says nothing about it, and it is not
    judged. If they are equal unadjusted, as after centering each group, `batch` is too small by up to its sampling
    error: the limits of its differences allow for that, and the table says so.

    `to_frame` has one row per correction: method, standing, front (1, 0, or NaN if not judged), tied_with, lost (number
    of pairs and labels), caution, batch, biology, difference, kept, and with units batch_lower, batch_upper,
    biology_lower, biology_upper, lower, upper, kept_lower, kept_upper. Batch and biology are unbiased. `labels_frame`
    and `pairs_frame` have one row per correction and label, or pair of labels. `plot` draws batch against biology, one
    point per correction, filled on the front; without ``given`` the batch alone.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(12), 20)
    >>> by = {"site": patient // 6, "label": np.tile([0, 1], 120), "patient": patient}
    >>> x = rng.normal(size=(240, 8)) + 0.3 * rng.normal(size=(12, 8))[patient] + by["label"][:, None]
    >>> far, near = x + by["site"][:, None], x + 0.5 * by["site"][:, None]
    >>> raw, corrected = cf.summarize(far, by=by), cf.summarize(near, by=by)
    >>> found = cf.compare_corrections(
    ...     {"raw": raw, "corrected": corrected}, between="site", given="label", units="patient"
    ... )
    >>> found.front
    ('corrected',)
    >>> bool(found.upper[1] < 0)  # groups are closer than in raw, beyond doubt
    True
    """

    names: tuple[str, ...]
    reference: str
    batch: tuple[Fusion, ...]
    standing: tuple[Standing, ...]
    difference: FloatArray
    biology: tuple[Fusion, ...] | None = None
    kept: FloatArray | None = None
    labels: tuple[LabelEffect, ...] = ()
    pairs: LabelPairs | None = None
    level: float | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    kept_lower: FloatArray | None = None
    kept_upper: FloatArray | None = None
    scale: str | None = None

    _kind: ClassVar[str] = "correction"

    def _names(self) -> tuple[str, ...]:
        return self.names

    def labels_frame(self) -> "pd.DataFrame":
        """Return one row per correction and label.

        Returns
        -------
        pandas.DataFrame
            Columns correction, label, rows, groups; batch (unbiased CFD between groups within the label),
            batch_distance (plug-in) and their limits; biology (unbiased CFD between the label and the others, within
            groups) and kept, its share of the reference's.
        """
        columns: dict[str, Any] = {
            "correction": [entry.version for entry in self.labels],
            "label": [label_text(entry.label) for entry in self.labels],
            "rows": [entry.rows for entry in self.labels],
            "groups": [entry.groups for entry in self.labels],
        }
        batch = fusion_columns("batch", [entry.batch for entry in self.labels], intervals=self.level is not None)
        kept = {name: [getattr(entry, name) for entry in self.labels] for name in ("biology", "kept")}
        return data_frame(columns | batch | kept)

    def _columns(self) -> dict[str, Any]:
        columns = {"method": list(self.names)} | self._standing_columns()
        distances = self._distance_columns("batch", "biology", plug_in=False)
        if self.biology is not None:
            distances["overlap"] = np.array([fusion.overlap for fusion in self.batch])
        changes = ("difference", "lower", "upper", "kept", "kept_lower", "kept_upper")
        return columns | distances | self._select_present(*changes)

    def title(self) -> str:
        """Return the title of the table.

        Returns
        -------
        str
            One line.
        """
        scaled = ", each feature in units of its standard deviation" if self.scale else ""
        return f"Corrections against {label_text(self.reference)}, {self._order_text()}{scaled}"

    def _contents(self) -> list[Content]:
        return [self.title(), TextTable(*self.table()), *self.remarks()]

    def _texts(self) -> dict[str, list[str]]:
        columns = self._distance_texts("batch", "biology")
        columns["batch change"] = self._change_texts(self.difference, self.lower, self.upper)
        if self.kept is not None:
            columns["biology change"] = self._change_texts(self.kept, self.kept_lower, self.kept_upper)
        return columns


def compare_corrections(
    methods: Mapping[str, Summary],
    *,
    between: Factors,
    given: Factors | None = None,
    units: Factors | None = None,
    weights: str = "pooled",
    level: float = 0.95,
    reference: str | None = None,
    min_units: int = MIN_UNITS,
    scale: str | None = None,
) -> CorrectionComparison:
    """Compare corrections of the same rows: how far they fuse groups, and how much of the biology they keep.

    Parameters
    ----------
    methods : mapping of str to Summary
        The rows after each correction, summarized by the same factors.
    between : str or list of str
        The factors whose groups should be fused, such as the scanner.
    given : str or list of str, optional
        The factors whose groups should stay separated, such as the label: groups are compared within labels, and labels
        within groups. Without it, nothing shows how much biology a correction removes, and there is no front.
    units : str or list of str, optional
        The factors that identify independent units, such as the patient; required for intervals.
    weights : {"pooled", "balanced"}
        "pooled" weights groups by their number of rows, "balanced" equally.
    level : float
        Confidence level of the intervals.
    reference : str, optional
        The correction that the others are compared with; by default the first one.
    min_units : int
        Minimum number of units per group (and stratum), at least 2. Smaller groups are left out and named in
        `excluded`.
    scale : {"features"}, optional
        "features" divides each feature of a correction by its standard deviation within the groups (and strata) of that
        correction, so that features count the same. Features that do not vary within groups are left out and named in
        `constant` of each CFD.

    Returns
    -------
    found : CorrectionComparison
        For each correction, CFD(between | given), CFD(given | between), their differences from the reference, its
        standing, and both CFDs by label and by pair of labels.

    Notes
    -----
    All corrections share the same units, so their errors are correlated, and a difference is estimated more precisely
    than either CFD. A correction can reduce the first CFD to 0 by removing everything: always read the second one too.

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
    >>> found = cf.compare_corrections({"raw": raw, "half": half}, between="site", given="label", units="patient")
    >>> found.to_frame()[["method", "standing", "batch", "biology"]].round(3)
      method         standing  batch  biology
    0    raw  worse than half  0.237    0.238
    1   half            front  0.071    0.238
    """
    names = _check_summaries(methods, reference)
    against = names[0] if reference is None else reference
    asked: dict[str, Any] = {"weights": weights, "level": level, "min_units": min_units, "scale": scale}
    return compare_summaries(methods, between, given, units, against, **asked)


def compare_summaries(
    methods: Mapping[str, Summary],
    between: Factors,
    given: Factors | None,
    units: Factors | None,
    reference: str,
    *,
    weights: str,
    level: float,
    min_units: int = MIN_UNITS,
    scale: str | None = None,
) -> CorrectionComparison:
    """Compare corrections, of which there may be one; `compare_corrections` documents the arguments."""
    check_level(level, needed=True)
    check_scale(scale)
    strata, by_units = as_names(given, "given"), bool(as_names(units, "units"))
    fine = _check_same(methods, [*as_names(between, "between"), *strata, *as_names(units, "units")])
    options: dict[str, Any] = {"units": units, "weights": weights, "level": level, "min_units": min_units}
    options |= {"scale": scale}
    batch = measure_axis(methods, between, given, **options)
    asked = zip(methods.values(), batch.fusions, strict=True)
    cautions = [find_caution(summary, fusion, between, units) for summary, fusion in asked]
    batch = widen_limits(batch, np.array([has_equal_means(caution) for caution in cautions]))
    own = list(methods).index(reference)
    limits = {"lower": batch.lower, "upper": batch.upper}
    found: dict[str, Any] = {"names": tuple(methods), "reference": reference, "batch": batch.fusions}
    found |= {"difference": batch.difference[:, own], "level": level if by_units else None}
    if not strata:
        found |= {"standing": place_versions(fine, batch, None, [()] * len(fine), cautions)}
    else:
        biology = measure_axis(methods, strata, between, **options)
        limits |= {"kept_lower": biology.lower, "kept_upper": biology.upper}
        effects, lost = _measure_effects(fine, between, strata, reference, biology.fusions, **options)
        standing = place_versions(fine, batch, biology, lost, cautions)
        found |= {"biology": biology.fusions, "kept": biology.difference[:, own], "standing": standing} | effects
    if by_units:
        found |= {name: values[:, own] for name, values in limits.items()}
    return CorrectionComparison(**found, scale=scale)


def _measure_effects(
    versions: Mapping[str, Summary],
    between: Factors,
    given: tuple[str, ...],
    reference: str,
    biology: tuple[Fusion, ...],
    *,
    units: Factors | None,
    weights: str,
    level: float,
    min_units: int,
    scale: str | None,
) -> tuple[dict[str, Any], list[tuple[Loss, ...]]]:
    """Measure labels and pairs of labels in each version, and find what each version lost."""
    rest = [version.one_vs_rest(given, given=between, weights=weights, scale=scale) for version in versions.values()]
    pairs = compare_label_pairs(versions, between, given, reference, weights, scale)
    options: dict[str, Any] = {"units": units, "weights": weights, "level": level if as_names(units, "units") else None}
    options |= {"min_units": min_units, "scale": scale}
    labels = measure_labels(versions, between, given, reference, rest=rest, **options)
    lost = find_losses(versions, between, given, reference, all_labels=biology, rest=rest, pairs=pairs)
    return {"labels": labels, "pairs": pairs}, lost


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


def _check_same(methods: Mapping[str, Summary], by: list[str]) -> dict[str, Summary]:
    """Reject corrections that did not see the same groups and units; return each by these factors alone."""
    first = next(iter(methods))
    seen: list[Any] = []
    rolled: dict[str, Summary] = {}
    for name, summary in methods.items():
        check_known(by, summary.factors, "factor", f"correction {name!r}")
        fine = rolled[name] = summary.rollup(by)
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
    return rolled
