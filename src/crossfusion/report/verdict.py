"""The verdict: which groups differ, decided by tests, and in one sentence."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crossfusion.fusion import Fusion, Pairwise, Record
from crossfusion.report.evidence import Evidence, TestOutcome, list_groups
from crossfusion.report.outlying import Standing, find_standing
from crossfusion.report.question import Question
from crossfusion.summary import Summary

MAX_RANKED_GROUPS = 1000  # of more, it takes too long to say which differ


@dataclass(frozen=True)
class Verdict(Record):
    """What was found: where the groups stand, whether that is as expected, and in one sentence.

    `status` is "good", "bad" or "open" where the user said what to expect, else "neutral". `margin` is the largest CFD
    that counts as agreement, and `agreed` whether the groups, or those that do not differ, were shown to lie below it.
    """

    kind: str
    status: str
    sentence: str
    outlying: tuple[Hashable, ...]
    rest: tuple[Hashable, ...]
    doubtful: tuple[Hashable, ...]
    margin: float | None
    agreed: bool | None


@dataclass(frozen=True)
class Findings:
    """What a verdict is about."""

    question: Question
    labels: tuple[Hashable, ...]
    main: Fusion  # adjusted, if the question is
    unadjusted: Fusion
    pairs: Pairwise
    tested: TestOutcome | None
    standing: Standing
    rest: Fusion | None = None  # of the groups that do not differ, where some do
    alone: tuple[Hashable, ...] = ()  # groups that share no stratum with another one

    @property
    def compared(self) -> list[Hashable]:
        """Labels of the groups that are compared with another one."""
        return [label for label in self.labels if label not in set(self.alone)]

    def name(self, places: Sequence[int]) -> list[Hashable]:
        """Labels of some groups."""
        return [self.labels[k] for k in places]


def could_be_chance(main: Fusion, tested: TestOutcome | None, level: float) -> bool | None:
    """Whether chance would separate the groups as far, by a test or else by the interval; None without either."""
    if tested is not None and not tested.partial:
        return tested.result.pvalue > 1 - level
    return None if main.interval is None else main.interval[0] <= 0


def judge_groups(
    evidence: Evidence,
    strata: tuple[str, ...],
    main: Fusion,
    pairs: Pairwise,
    tested: TestOutcome | None,
    alone: Sequence[Hashable] = (),
) -> Standing:
    """Find which groups differ from the rest; pairs hold all groups, or those that are shown.

    Groups that are `alone` in their strata are compared with no other one, so they have no place.
    """
    asked, everyone = evidence.question, list_groups(evidence.summary, evidence.question.between)
    places = [k for k, label in enumerate(everyone) if label not in set(alone)]
    labels = [everyone[k] for k in places]
    judge = EvidenceJudge(evidence, strata, labels, main, tested)
    if len(labels) > MAX_RANKED_GROUPS or main.unbiased is None:
        separated = judge.is_separated(range(len(labels)))
        return Standing("untested" if separated is None else "unclear" if separated else "none")
    known = len(pairs.labels) == len(everyone)
    distance = np.asarray(pairs.unbiased if known else _measure_pairs(evidence.summary, asked, strata))
    return find_standing(distance[np.ix_(places, places)], judge, 1 - asked.level).place(places)


def _measure_pairs(summary: Summary, asked: Question, strata: tuple[str, ...]) -> Any:
    return summary.pairwise(asked.between, given=strata or None, weights=asked.weights).unbiased


@dataclass(frozen=True)
class EvidenceJudge:
    """Answers about some of the groups from the evidence on all of them."""

    evidence: Evidence
    strata: tuple[str, ...]
    labels: Sequence[Any]
    main: Fusion
    tested: TestOutcome | None
    measured: dict[tuple[int, ...], Fusion] = field(default_factory=dict)

    def is_separated(self, groups: Sequence[int]) -> bool | None:
        """Whether groups are significantly separated; None if no test can tell."""
        level = self.evidence.question.level
        if len(groups) == len(self.labels):
            chance = could_be_chance(self.main, self.tested, level)
            return None if chance is None else not chance and (self.main.unbiased or 0.0) > 0
        some = self._select(groups)
        tested = some.test(self.strata)
        if tested is not None and not tested.partial:
            return tested.result.pvalue <= 1 - level if tested.result.smallest_pvalue <= 1 - level else None
        chance = could_be_chance(self._measure(some), tested, level)
        return None if chance is None else not chance

    def compare(self, group: int, rest: Sequence[int]) -> float:
        """The p-value of one group against others together; where only an interval tells, 0 or 1."""
        two = self._oppose(group, rest)
        tested = two.test(self.strata)
        if tested is not None and not tested.partial:
            return tested.result.pvalue
        return 1.0 if could_be_chance(self._measure(two), tested, two.question.level) is not False else 0.0

    def is_farther(self, group: int, rest: Sequence[int]) -> bool:
        """Whether one group is farther from others together than these are from each other, by their intervals."""
        two, some = self._oppose(group, rest), self._select(rest)
        far, near = two.estimate(self.strata), some.estimate(self.strata)
        if far is None or near is None or far <= near:
            return False
        known = tuple(rest)
        if known not in self.measured:
            self.measured[known] = self._measure(some)
        within, apart = self.measured[known], self._measure(two)
        if within.interval is None or apart.errors is None:
            return False
        limits = apart.limits(1 - (1 - two.question.level) / len(self.labels))
        return limits is not None and limits[0] > within.interval[1]

    def _measure(self, evidence: Evidence) -> Fusion:
        return evidence.distance(evidence.question.between, self.strata)

    def _select(self, groups: Sequence[int]) -> Evidence:
        return self.evidence.select([self.labels[k] for k in groups]).balance()

    def _oppose(self, group: int, rest: Sequence[int]) -> Evidence:
        return self.evidence.oppose([self.labels[group]], [self.labels[k] for k in rest]).balance()


def measure_rest(
    evidence: Evidence, strata: tuple[str, ...], standing: Standing, labels: Sequence[Any]
) -> Fusion | None:
    """The distance between the groups that do not differ, where others do."""
    if standing.kind not in ("outlying", "farther"):
        return None
    chosen = evidence.select([labels[k] for k in standing.rest])
    return chosen.distance(evidence.question.between, strata)


def agrees_within(fusion: Fusion | None, margin: float | None, level: float) -> bool | None:
    """Whether groups were shown to lie closer than a margin; None if that was not asked, or cannot be told."""
    if fusion is None or margin is None or fusion.errors is None:
        return None
    return fusion.fused_within(margin, min(1 - level, 0.25))
