"""The headline: what was found, in sentences with numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crossfusion.fusion import Fusion, Pairwise
from crossfusion.report.cautions import choose_estimate
from crossfusion.report.evidence import TestOutcome
from crossfusion.report.html.markup import format_number, format_percent, isolate
from crossfusion.report.name_text import format_factors
from crossfusion.report.question import Question

SEPARATION_WORDS = ((0.01, "hardly apart"), (0.05, "slightly apart"), (0.2, "clearly apart"), (math.inf, "far apart"))


def format_share(distance: float | None) -> str:
    """A distance as a share of the variance, 1 − exp(−CFD)."""
    share = 0.0 if distance is None else max(0.0, -math.expm1(-distance))
    return f"{format_percent(share)} of the variance"


def format_estimate(fusion: Fusion) -> str:
    """A distance for people, with its interval."""
    return ", ".join(filter(None, [format_number(choose_estimate(fusion)), format_interval(fusion)]))


def format_interval(fusion: Fusion) -> str | None:
    """An interval for people."""
    if fusion.interval is None or fusion.level is None:
        return None
    low, high = map(format_number, fusion.interval)
    return f"{100 * fusion.level:.4g}\u202f% interval {low} to {high}"


def could_be_chance(main: Fusion, tested: TestOutcome | None, level: float) -> bool | None:
    """Whether chance would separate the groups as far, by a test or else by the interval; None without either."""
    if tested is not None and not tested.partial:
        return tested.result.pvalue > 1 - level
    return None if main.interval is None else main.interval[0] <= 0


def choose_verdict(main: Fusion, tested: TestOutcome | None, level: float) -> str:
    """Two or three words."""
    found = choose_estimate(main)
    if found is None or _has_single_rows(main):
        return "cannot be told"
    share, chance = -math.expm1(-found), could_be_chance(main, tested, level)
    if found <= 0 or (chance and share < SEPARATION_WORDS[0][0]):
        return "together, as far as one can tell"
    if chance:
        return "not surely apart"
    if chance is None:
        return "apart, if not by chance"
    return next(word for edge, word in SEPARATION_WORDS if share < edge or edge == math.inf)


def _has_single_rows(fusion: Fusion) -> bool:
    """Whether every group is a single row, so that nothing is known of the variance within."""
    return max(fusion.counts.values()) < 2


def write_headline(
    question: Question, plain: Fusion, adjusted: Fusion | None, pairs: Pairwise, tested: TestOutcome | None, rows: int
) -> list[str]:
    """Which groups are apart and by how much, given the label, beyond chance, by which units."""
    return [
        _describe_separation(question, plain, adjusted, tested),
        *_describe_adjustment(question, plain, adjusted),
        *_describe_extremes(pairs, len(plain.counts)),
        *_describe_test(tested, question, adjusted),
        _describe_counting(question, tested, plain if adjusted is None else adjusted, rows),
    ]


def _describe_separation(question: Question, plain: Fusion, adjusted: Fusion | None, tested: TestOutcome | None) -> str:
    between, main = format_factors(question.between), plain if adjusted is None else adjusted
    said = choose_verdict(main, tested, question.level)
    if choose_estimate(main) is None:
        given, distance = format_factors(question.given), format_number(choose_estimate(plain))
        return (
            f"No {given} is found in two {between} groups: what separates the {between} groups (a"
            f" distance of {distance}) cannot be told from {given}."
        )
    if _has_single_rows(main):
        return f"Every {between} group is a single row, so how far groups are apart cannot be told."
    within = f" with {format_factors(question.given)} held fixed" if adjusted is not None else ""
    return (
        f"The {len(plain.counts):,} {between} groups are {said}{within}: {format_share(choose_estimate(main))} lies"
        f" between them (distance {format_estimate(main)})."
    )


def _describe_adjustment(question: Question, plain: Fusion, adjusted: Fusion | None) -> list[str]:
    """Whether the distance survives adjustment."""
    if adjusted is None:
        return []
    before, after = choose_estimate(plain), choose_estimate(adjusted)
    given = format_factors(question.given)
    if before is None or after is None:
        return []
    looks = f"As the rows come, {format_share(before)} lies between them (distance {format_estimate(plain)})"
    if not 0 < before < math.inf or after >= before:
        return [f"{looks}; with {given} held fixed it is not smaller."]
    share = format_percent(min(1.0, 1 - after / before))
    return [f"{looks}; with {given} held fixed it is {share} smaller."]


def _describe_extremes(pairs: Pairwise, groups: int) -> list[str]:
    """The farthest and the closest pair, of those that are shown."""
    first, second = np.triu_indices(len(pairs.labels), 1)
    found = select_estimates(pairs)[first, second]
    defined = np.flatnonzero(np.isfinite(found))
    if len(defined) < 2 or np.ptp(found[defined]) == 0:
        return []

    def pair(k: int) -> str:
        return f"{isolate(pairs.labels[first[k]])} and {isolate(pairs.labels[second[k]])} ({format_number(found[k])})"

    most, least = defined[np.argmax(found[defined])], defined[np.argmin(found[defined])]
    few = len(pairs.labels)
    farthest = "Farthest" if few == groups else f"Of the {few} groups with the most rows, farthest"
    return [f"{farthest} apart are {pair(int(most))}, closest {pair(int(least))}."]


def select_estimates(pairs: Pairwise) -> Any:
    """What is shown of pairs: unbiased, else plug-in, and NaN where nothing is compared."""
    return np.where(np.isnan(pairs.unbiased), pairs.distance, pairs.unbiased)


def describe_corrections(found: dict[str, Any] | None) -> list[str]:
    """Which version of the rows leaves the groups closest, and which one all else is about."""
    if found is None:
        return []
    if 1 not in found["rank"]:  # nothing is compared
        return [f"All sections but “batch versus biology” are about the version {isolate(found['reference'])}."]
    best = found["names"][found["rank"].index(1)]
    closest = found["batch"][found["names"].index(best)]["value"]
    about = f"All sections but “batch versus biology” are about the version {isolate(found['reference'])}"
    if best == found["reference"]:
        return [f"{about}; no other version leaves the groups closer."]
    kept = (
        ""
        if found["best"] is None
        else f", first in {format_percent(found['best'][found['names'].index(best)])} of resamples"
    )
    return [f"{about}; {isolate(best)} leaves the groups closest ({format_number(closest)}{kept})."]


def describe_exchanged(tested: TestOutcome, question: Question) -> str:
    """What a test exchanged, for people."""
    if not tested.by_units:
        return "single rows" if tested.number == tested.total else f"{tested.number:,} rows drawn at random"
    units = format_factors(question.units)
    return f"{format_factors(question.between)} within {units}" if tested.within else units


def _describe_test(tested: TestOutcome | None, question: Question, adjusted: Fusion | None) -> list[str]:
    if tested is None:
        return []
    test = tested.result
    number_of = f"all {test.permutations:,}" if test.exact else f"{test.permutations:,} random"
    found = f"p = {format_pvalue(test.pvalue)}"
    source = f"{number_of} rearrangements of {describe_exchanged(tested, question)}"
    if tested.partial:
        several = f"{tested.number:,} of {tested.total:,} {format_factors(question.units)} units"
        return [f"A test sees only the {several} that have several groups: {found}, from {source}."]
    start = "" if adjusted is None or choose_estimate(adjusted) is not None else "As the rows come: "
    if test.pvalue <= 1 - question.level:
        return [f"{start}Chance alone would hardly have done that: {found}, from {source}."]
    if test.null.min() < test.statistic and test.null.max() <= test.statistic:
        return [f"{start}Chance cannot be ruled out: {found} is the least that {source} can show."]
    return [f"{start}Chance could have done that: {found}, from {source}."]


def format_pvalue(probability: float) -> str:
    """A p-value for people."""
    return f"{probability:.3g}"


def _describe_counting(question: Question, tested: TestOutcome | None, main: Fusion, rows: int) -> str:
    """By what the evidence is counted, if anything is."""
    if tested is None and main.interval is None:
        return "Neither an interval nor a test could be had, so chance is not ruled out: see “what could mislead”."
    if question.units:
        number_of = f"{tested.total:,} " if tested else ""
        some = tested is not None and tested.number < tested.total and not tested.within
        fewer = f", of which {tested.number:,} are in strata of several groups" if tested and some else ""
        return f"Counted by {number_of}{format_factors(question.units)} units{fewer}, not by the {rows:,} rows."
    return f"No units are named, so the {rows:,} rows count as independent, which they seldom are."


def make_tiles(question: Question, found: Sequence[tuple[str, Fusion]]) -> list[dict[str, Any]]:
    """Distances that are shown large: name, value, and what each is about."""
    between, given = format_factors(question.between), format_factors(question.given)
    names = {
        "plain": (f"CFD({between})", f"between {between} groups, as the rows come"),
        "adjusted": (f"CFD({between} | {given})", f"between {between} groups of the same {given}"),
        "biology": (f"CFD({given} | {between})", f"between {given} groups of the same {between}: what should stay"),
    }
    return [
        {
            "name": names[kind][0],
            "value": format_number(choose_estimate(fusion)),
            "interval": format_interval(fusion),
            "text": f"{_format_tile_share(fusion)} {names[kind][1]}",
        }
        for kind, fusion in found
    ]


def _format_tile_share(fusion: Fusion) -> str:
    distance = choose_estimate(fusion)
    return "nothing to compare" if distance is None else format_share(distance)
