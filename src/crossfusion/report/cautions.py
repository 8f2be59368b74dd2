"""What could mislead in the data at hand, each with what to do about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import factors, label_text
from crossfusion.fusion import (
    FEW_UNITS,
    GEOMETRY_REMEDY,
    SHAPE_CAUTION,
    SPREAD_CAUTION,
    Attribution,
    Exclusion,
    Fusion,
    Pairwise,
    Record,
    caution_about_overlap,
    has_equal_means,
    split_cautions,
)
from crossfusion.inference import REACH_CAUTION, caution_about_number
from crossfusion.io import Rows
from crossfusion.report.evidence import Evidence, TestOutcome
from crossfusion.report.html.markup import format_number, format_percent, isolate
from crossfusion.report.name_text import format_factors, format_list
from crossfusion.summary import DISCLOSING_ROWS, Summary

IMBALANCE_RATIO = 5  # times as many rows in the largest group as in the smallest
FEW_ROWS = 30  # in a group
FEW_UNITS_IN_ALL = 20  # below which intervals of units are rough
CONFOUNDED_ASSOCIATION = 0.3  # Cramér's V of the compared factor and the one adjusted for
SHARED_WEIGHT = 0.9  # of the weight in strata that several groups share
FLAT_SHARE = 1e-6  # of the median variance of features
DOMINANT_SHARE = 0.5  # of the variance between the groups, by one unit
DUPLICATED_SHARE = 0.001  # of the rows
HEADLINE_KINDS = ("equal means", "spread", "shape", "geometry", "few rows")  # the distance misses what may differ


@dataclass(frozen=True)
class Concern(Record):
    """One thing that could mislead."""

    kind: str
    serious: bool
    title: str
    text: str
    advice: str


def find_concerns(
    evidence: Evidence,
    main: Fusion,
    tested: TestOutcome | None,
    pairs: Pairwise,
    units: Attribution | None,
    lost: Sequence[str] = (),
    excluded: Sequence[Exclusion] = (),
) -> list[Concern]:
    """All that is found, what is serious first; what was said of lost groups is repeated."""
    found = [
        *_find_confounding(evidence, main),
        *_find_missing_units(evidence),
        *_find_excluded(evidence, excluded),
        *_find_crossed_units(evidence, tested),
        *_find_missing_values(evidence),
        *_find_few_units(evidence),
        *_find_small_groups(evidence),
        *_find_imbalance(evidence, main),
        *_find_shape(main),
        *_find_geometry(main),
        *_find_weak_tests(tested, pairs),
        *_find_dominant_unit(units, main),
        *_find_duplicates(evidence),
        *_find_flat_features(evidence.summary),
        *_find_dropped_rows(evidence.summary),
        *_find_lost_groups(lost),
        *_find_disclosure(evidence),
    ]
    return sorted(found, key=lambda concern: not concern.serious)


def _find_confounding(evidence: Evidence, main: Fusion) -> Iterator[Concern]:
    """Strata that hold one group only, and groups of a different mix of them."""
    asked = evidence.question
    if not asked.given:
        return
    between, given = format_factors(asked.between), format_factors(asked.given)
    few = caution_about_overlap(evidence.summary._make_design(asked.between, asked.given))
    if few and main.overlap > 0:
        yield Concern(
            "few rows",
            True,
            f"{few[0].upper()}{few[1:]}",
            f"All other rows of these groups are in {given} groups that contain no other {between} group, so they are"
            " not compared.",
            f"Collect {given} groups that {between} groups share, or leave out these {between} groups.",
        )
    if main.overlap < SHARED_WEIGHT:
        share = format_percent(main.overlap)
        yield Concern(
            "overlap",
            main.overlap < SHARED_WEIGHT / 2,
            f"{given} and {between} are {'fully' if main.overlap == 0 else 'partly'} confounded",
            f"{share} of the weight lies in {given} groups that contain several {between} groups; the rest cannot be"
            " compared.",
            f"Collect {given} groups that {between} groups share, or draw no conclusions about the rest.",
        )
    association = _measure_association(evidence.summary, asked.between, asked.given)
    if association >= CONFOUNDED_ASSOCIATION and main.overlap > 0:
        yield Concern(
            "mix",
            False,
            f"The {between} groups differ in their mix of {given}",
            f"Cramér’s V of {between} and {given} is {association:.2f} (0: the same mix; 1: one {given} each).",
            f"Trust the CFD adjusted for {given}, not the unadjusted one.",
        )


def _measure_association(summary: Summary, between: Sequence[str], given: Sequence[str]) -> float:
    """Cramér's V of two sets of factors, by rows."""
    cells = summary.rollup([*between, *given])
    row, rows = factors.encode(cells.keys.select(list(between)))
    column, columns = factors.encode(cells.keys.select(list(given)))
    table = np.zeros((rows.num_rows, columns.num_rows))
    table[row, column] = cells.moments.count / cells.moments.count.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    least = min(table.shape) - 1
    return float(np.sqrt(np.sum((table - expected) ** 2 / expected) / least)) if least else 0.0


def _find_missing_units(evidence: Evidence) -> Iterator[Concern]:
    if not evidence.question.units:
        yield Concern(
            "units",
            True,
            "Rows are treated as independent",
            "No units are named. If rows of the same patient, slide or file resemble each other, the intervals are too"
            " narrow and the p-values too small.",
            "Name the independent units, such as the patient, in units.",
        )


def format_excluded(excluded: Sequence[Exclusion]) -> str:
    """Names of what is left out, with numbers of units."""
    places = ["" if entry.stratum is None else f" in {isolate(entry.stratum)}" for entry in excluded]
    return format_list(
        [f"{isolate(entry.group)}{place} ({entry.units:,})" for entry, place in zip(excluded, places, strict=True)]
    )


def _find_excluded(evidence: Evidence, excluded: Sequence[Exclusion]) -> Iterator[Concern]:
    """Groups, or groups in a stratum, that have too few units for an interval."""
    if excluded:
        what = format_factors(evidence.question.units) + " units" if evidence.question.units else "rows"
        yield Concern(
            "excluded",
            True,
            f"Some groups have too few {what} and are left out",
            f"{format_excluded(excluded)}. The numbers on this page describe the remaining groups.",
            f"Collect more {what} of these groups, or draw no conclusions about them.",
        )


def _find_crossed_units(evidence: Evidence, tested: TestOutcome | None) -> Iterator[Concern]:
    """Units that have several groups, among units that do not."""
    if tested is None or not tested.partial:
        return
    between, units = format_factors(evidence.question.between), format_factors(evidence.question.units)
    yield Concern(
        "crossed units",
        True,
        f"{tested.number:,} of {tested.total:,} {units} units occur in several {between} groups",
        f"The test can permute labels only within these, so it says nothing about the other {units} units. The"
        " interval counts all of them.",
        f"If a unit of {units} is in several {between} groups by mistake, correct or leave out those rows; otherwise"
        " rely on the interval.",
    )


def _find_missing_values(evidence: Evidence) -> Iterator[Concern]:
    """Rows without a value of a factor, which make up a group of their own."""
    asked, summary = evidence.question, evidence.summary
    for name in dict.fromkeys([*asked.between, *asked.given]):
        count = summary.moments.count[summary.keys.column(name).is_null().to_numpy()].sum()
        if count:
            yield Concern(
                "missing",
                True,
                f"{count:,.0f} of {evidence.total:,} rows have no {isolate(name)}",
                f"They count as a group of their own, {label_text(None)}, and are compared like any other.",
                f"Find out where they belong, or leave out rows without {isolate(name)}.",
            )


def _find_few_units(evidence: Evidence) -> Iterator[Concern]:
    """Few units in all, however many rows they have."""
    asked = evidence.question
    number = len(evidence.summary.rollup(asked.units)) if asked.units else FEW_UNITS_IN_ALL
    if number < FEW_UNITS_IN_ALL:
        yield Concern(
            "few units",
            False,
            f"The evidence rests on {number:,} {format_factors(asked.units)} units",
            f"With fewer than {FEW_UNITS_IN_ALL} units, intervals are rough and p-values coarse, whatever the number of"
            " rows.",
            "Collect more units; more rows of the same units do not help.",
        )


def _find_small_groups(evidence: Evidence) -> Iterator[Concern]:
    """Groups of few rows, or of few units."""
    asked, summary = evidence.question, evidence.summary
    groups = summary.rollup(asked.between)
    labels = factors.list_labels(groups.keys.select(list(asked.between)))
    numbers: dict[str, tuple[Any, int]] = {"rows": (groups.moments.count, FEW_ROWS)}
    if asked.units:
        both = summary.rollup(list(dict.fromkeys([*asked.between, *asked.units])))
        code, _ = factors.encode(both.keys.select(list(asked.between)))
        numbers = {"units": (np.bincount(code), FEW_UNITS)} | numbers
    for what, (count, least) in numbers.items():
        few = np.flatnonzero(count < least).tolist()
        if few:
            said = format_list([f"{isolate(labels[k])} ({int(count[k]):,})" for k in few])
            yield Concern(
                f"small {what}",
                what == "units",
                f"{len(few):,} of {len(labels):,} groups have fewer than {least} {what}",
                f"{said}. Their means are imprecise, and so are the CFDs that involve them.",
                f"Read the unbiased CFD with its interval, collect more {what}, or leave out these groups.",
            )


def _find_imbalance(evidence: Evidence, main: Fusion) -> Iterator[Concern]:
    count = main.counts
    largest, smallest = max(count, key=lambda name: count[name]), min(count, key=lambda name: count[name])
    ratio = count[largest] / count[smallest]
    if ratio >= IMBALANCE_RATIO and evidence.question.weights == "pooled":
        yield Concern(
            "imbalance",
            False,
            f"The largest group has {ratio:,.0f} times as many rows as the smallest",
            f"{isolate(largest)} has {count[largest]:,.0f} rows, {isolate(smallest)} {count[smallest]:,.0f}. On"
            " this page, groups are weighted by their number of rows, so the CFD also depends on their sizes.",
            "Use balanced weights if the sizes of the groups are an accident of sampling.",
        )


def choose_estimate(fusion: Fusion) -> float | None:
    """The unbiased distance; None where nothing is compared, or no variance is known."""
    return fusion.unbiased


def _find_shape(main: Fusion) -> Iterator[Concern]:
    for text in split_cautions(main.caution):
        if has_equal_means(text):
            yield Concern(
                "equal means",
                True,
                "The group means agree far more closely than sampling error allows",
                "This happens by construction if each group was centered, or if groups contain the same rows. The CFD"
                " is then about 0, however different the groups are.",
                "Compare rows that were not used to fit the correction, or use distance('energy').",
            )
        what = "spread" if text.startswith(SPREAD_CAUTION) else "shape" if text.startswith(SHAPE_CAUTION) else None
        if what is not None:
            yield Concern(
                what,
                True,
                f"The groups differ in {what} more than in position",
                "Cross-Fusion Distance compares means: groups with equal means have a CFD of 0, however different they"
                " are otherwise.",
                "Use dispersion_test and distance('energy') before you conclude that the groups agree.",
            )


def _find_geometry(main: Fusion) -> Iterator[Concern]:
    for text in split_cautions(main.caution):
        if text.endswith(GEOMETRY_REMEDY):
            said = text.removesuffix(f": {GEOMETRY_REMEDY}")
            yield Concern(
                "geometry",
                True,
                "A few features with large variance dominate the CFD",
                f"{said[0].upper()}{said[1:]}.",
                'Standardize the features: pass scale="features" to cfd and Summary.cfd, or --scale features.',
            )


def _find_weak_tests(tested: TestOutcome | None, pairs: Pairwise) -> Iterator[Concern]:
    """Tests that cannot give a small p-value, however far apart the groups are."""
    said = [text for text in split_cautions(pairs.caution) if text.startswith(REACH_CAUTION)]
    weak = None if tested is None else caution_about_number(tested.result)
    title = "has too few permutations to be significant"
    found = [(f"The test {title}", weak)] if weak else []
    for start, text in [*found, *((f"A test of a single pair {title}", text) for text in said)]:
        what, _, advice = text.partition(": ")
        yield Concern(
            "test",
            False,
            start,
            f"{what[0].upper()}{what[1:]}.",
            f"{advice[0].upper()}{advice[1:]}.",
        )


def _find_dominant_unit(units: Attribution | None, main: Fusion) -> Iterator[Concern]:
    if units is None or len(units.share) < 3 or not (choose_estimate(main) or 0) > 0:
        return
    top = units.top(1)[0]
    if abs(units.share[top]) > DOMINANT_SHARE:
        yield Concern(
            "one unit",
            False,
            f"One {isolate(units.over)} accounts for {format_percent(units.share[top])} of the variance between groups",
            f"Without {isolate(units.labels[top])}, the plug-in CFD is {format_number(units.without[top])}.",
            "Check this one: is it mislabeled, or different in kind?",
        )


def _find_duplicates(evidence: Evidence) -> Iterator[Concern]:
    """Rows that occur more than once, among those that were checked."""
    if evidence.rows is None:
        return
    repeated, looked_at, total = _count_repeated(evidence.rows), len(evidence.rows.x), evidence.total
    if (
        repeated and repeated >= DUPLICATED_SHARE * looked_at * looked_at / total
    ):  # a copy is seen if both are looked at
        more = "" if evidence.whole else f" Among all {total:,} rows, the share is larger."
        yield Concern(
            "duplicates",
            repeated >= 10 * DUPLICATED_SHARE * looked_at * looked_at / total,
            "Some rows occur more than once",
            f"Of {looked_at:,} rows that were checked, {repeated:,} are exact copies of another one.{more}",
            "Remove copies: they make intervals too narrow.",
        )


def _count_repeated(rows: Rows) -> int:
    """Rows that are equal to an earlier one in every feature."""
    plain = np.ascontiguousarray(rows.x) + np.zeros(1, rows.x.dtype)  # of two zeros, the plain one
    seen = plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()
    return len(seen) - len(np.unique(seen))


def _find_flat_features(summary: Summary) -> Iterator[Concern]:
    """Features that hardly vary."""
    whole = summary.moments.merge(np.zeros(len(summary), int), 1)
    variance = whole.sumsq[0] / whole.count[0]
    flat = np.flatnonzero(variance <= FLAT_SHARE * np.median(variance)).tolist()
    if flat and len(flat) < len(variance) + (np.median(variance) == 0):
        names = flat if summary.features is None else [isolate(summary.features[k]) for k in flat]
        yield Concern(
            "variance",
            False,
            f"{len(flat):,} of {len(variance):,} features hardly vary",
            f"The variance of features {format_list(names)} is close to 0, so they hardly contribute to any CFD.",
            "Check that the encoder and the file are intact; leave out features that are meant to be constant.",
        )


def _find_dropped_rows(summary: Summary) -> Iterator[Concern]:
    if summary.dropped:
        yield Concern(
            "dropped",
            False,
            f"{summary.dropped:,} rows are left out",
            "They contain NaN or infinite values.",
            "Find out why: if rows fail in only one group, its mean is biased.",
        )


def _find_lost_groups(said: Sequence[str]) -> Iterator[Concern]:
    for text in said:
        yield Concern(
            "lost groups",
            True,
            "Some groups are not on this page",
            f"{text[0].upper()}{text[1:]}.",
            "Find out why none of their rows is finite before you draw conclusions about all groups.",
        )


def _find_disclosure(evidence: Evidence) -> Iterator[Concern]:
    """Groups so small that the page tells of single rows, and names of units."""
    asked, groups = evidence.question, evidence.summary.rollup(evidence.question.between)
    small = int(np.sum(groups.moments.count < DISCLOSING_ROWS))
    shown = [f"{small:,} groups of fewer than {DISCLOSING_ROWS} rows"] if small else []
    shown += [f"the names of {format_factors(asked.units)} units"] if asked.units else []
    if shown:
        yield Concern(
            "disclosure",
            False,
            f"The page contains {' and '.join(shown)}",
            "They are part of its data. If rows were read, single rows are drawn as well.",
            "Check whether you may share them; replace names that identify people with codes.",
        )
