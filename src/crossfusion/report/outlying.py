"""Which groups differ from the rest: the rule behind the verdict of a report.

If all groups together are not significantly separated, none differs. Otherwise groups are removed one at a time, each
time the one with the largest mean distance to the remaining ones, until the remaining groups are not significantly
separated. Each removed group is then tested against the remaining ones together, with p-values adjusted for their
number (Holm), and is named if that is significant. At most half of the groups, and at most `MAX_REMOVED`, are removed.

Where that leaves no majority without significant separation, as with much data, sizes decide: of the groups removed in
the same order, as many as possible but fewer than half are named such that each is farther from the remaining ones
together than these are from each other, by intervals that do not overlap (those of the single groups at a level that
allows for the number of groups).

Ties are not broken: nothing is named where another group could take the place of a named one, as in a row of three
groups of which the outer two are equally far from the middle.

The rule asks questions about some of the groups, and does not see data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.fusion import Record
from crossfusion.inference import adjusted_pvalues

MAX_REMOVED = 10  # groups
MAX_RIVALS = 3  # groups that are tried in the place of a named one, the farthest first


class Judge(Protocol):
    """Answers about some of the groups."""

    def is_separated(self, groups: Sequence[int]) -> bool | None:
        """Whether groups are significantly separated; None if no test can tell."""

    def compare(self, group: int, rest: Sequence[int]) -> float:
        """The p-value of one group against others together."""

    def is_farther(self, group: int, rest: Sequence[int]) -> bool:
        """Whether one group is farther from others together than these are from each other."""


@dataclass(frozen=True)
class Standing(Record):
    """Where groups stand to each other.

    `kind` is "none" (no significant separation), "outlying" (some differ from a majority without significant
    separation), "farther" (some differ more than the others do), "split" (two halves without separation within), "all"
    (the only two groups differ), "many" (no majority agrees), "unclear" (no test can tell which differ) or "untested".
    """

    kind: str
    outlying: tuple[int, ...] = ()  # farthest first
    rest: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()  # removed, but not significantly apart from the rest

    def place(self, places: Sequence[int]) -> "Standing":
        """Return the same standing of groups that are at these places among more."""
        named = (self.outlying, self.rest, self.doubtful)
        return Standing(self.kind, *(tuple(places[k] for k in groups) for groups in named))


def find_standing(distance: FloatArray, judge: Judge, alpha: float) -> Standing:
    """Find which groups differ from the rest, from the distances of all pairs and answers about some of the groups."""
    everything = tuple(range(len(distance)))
    separated = judge.is_separated(everything)
    if not separated:
        return Standing("untested" if separated is None else "none", rest=everything)
    if len(everything) == 2:
        return Standing("all", outlying=everything)
    order = order_by_removal(distance)
    found = _find_by_tests(order, judge, alpha)
    return _find_by_sizes(order, judge) or found if found.kind in ("many", "unclear") else found


def _find_by_tests(order: Sequence[int], judge: Judge, alpha: float) -> Standing:
    """Remove groups until the remaining ones are not significantly separated."""
    most = min(len(order) // 2, MAX_REMOVED)
    last = judge.is_separated(sorted(order[most:]))
    if last or last is None:
        return Standing("many" if last else "unclear")
    for number in range(1, most):
        separated = judge.is_separated(sorted(order[number:]))
        if separated is None:
            return Standing("unclear")
        if not separated:
            break
    else:
        number = most
    rivals = [] if 2 * number == len(order) else order[number : number + MAX_RIVALS]
    for rival in rivals:  # in the place of the last one that was removed
        if not judge.is_separated(sorted({*order[number - 1 :]} - {rival})):
            return Standing("unclear")
    return _name_outlying(order[:number], sorted(order[number:]), judge, alpha)


def _name_outlying(removed: Sequence[int], rest: Sequence[int], judge: Judge, alpha: float) -> Standing:
    """Name those of the removed groups that differ from the rest together."""
    adjusted = adjusted_pvalues([judge.compare(group, rest) for group in removed])
    outlying = tuple(group for group, pvalue in zip(removed, adjusted, strict=True) if pvalue <= alpha)
    doubtful = tuple(group for group in removed if group not in outlying)
    if not outlying:
        return Standing("unclear")
    if len(removed) < len(rest):
        return Standing("outlying", outlying, tuple(rest), doubtful)
    if doubtful:
        return Standing("unclear")
    return Standing("many") if judge.is_separated(sorted(removed)) else Standing("split", outlying, tuple(rest))


def _find_by_sizes(order: Sequence[int], judge: Judge) -> Standing | None:
    """Name as many groups as are farther from the remaining ones than these are from each other."""
    for number in range(min((len(order) - 1) // 2, MAX_REMOVED), 0, -1):
        rest, rivals = sorted(order[number:]), order[number : number + MAX_RIVALS]
        if all(judge.is_farther(group, rest) for group in reversed(order[:number])):
            if any(judge.is_farther(rival, sorted({*order[number - 1 :]} - {rival})) for rival in rivals):
                return None
            kind = "farther" if judge.is_separated(rest) else "outlying"
            return Standing(kind, tuple(order[:number]), tuple(rest))
    return None


def order_by_removal(distance: FloatArray) -> list[int]:
    """Order groups by taking away, again and again, the one with the largest mean distance to the remaining ones.

    Undefined distances do not count; of equally far groups, the later one goes first.
    """
    largest = np.max(distance, initial=0.0, where=np.isfinite(distance))
    apart = np.where(
        np.isnan(distance), 0.0, np.minimum(distance, 2.0 * largest + 1.0)
    )  # of infinite ones, a large one
    known = (~np.isnan(distance)).astype(float)
    np.fill_diagonal(apart, 0.0)
    np.fill_diagonal(known, 0.0)
    total, number = apart.sum(axis=1), known.sum(axis=1)
    left, order = list(range(len(distance))), []
    while left:
        mean = [total[k] / max(number[k], 1.0) for k in left]
        chosen = left[len(mean) - 1 - int(np.argmax(mean[::-1]))]
        order.append(chosen)
        left.remove(chosen)
        total -= apart[:, chosen]
        number -= known[:, chosen]
    return order
