"""The rule that names groups which differ from the rest, on groups whose places are known."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from crossfusion.report.outlying import MAX_REMOVED, Standing, find_standing, order_by_removal


@dataclass
class Places:
    """Groups at places on a line or in space: separated if two are more than `reach` apart."""

    places: np.ndarray
    reach: float = 0.5
    blind: int = 0  # groups up to which a test can never be significant

    def __post_init__(self) -> None:
        self.places = np.asarray(self.places, float).reshape(len(self.places), -1)

    @property
    def distance(self) -> np.ndarray:
        return np.asarray(np.linalg.norm(self.places[:, None] - self.places, axis=2) ** 2)

    def is_separated(self, groups: Sequence[int]) -> bool | None:
        if len(groups) <= self.blind:
            return None
        own = self.distance[np.ix_(groups, groups)]
        return bool(own.max() > self.reach**2)

    def compare(self, group: int, rest: Sequence[int]) -> float:
        gap = self.places[group] - self.places[list(rest)].mean(axis=0)
        return 0.001 if np.linalg.norm(gap) > self.reach else 0.5

    def is_farther(self, group: int, rest: Sequence[int]) -> bool:
        own = self.places[list(rest)]
        gap = self.places[group] - own.mean(axis=0)
        return bool(0.25 * gap @ gap > 1.5 * np.mean(np.sum((own - own.mean(axis=0)) ** 2, axis=1)))


def stand(places, **options) -> Standing:
    judge = Places(places, **options)
    return find_standing(judge.distance, judge, 0.05)


def test_one_outlier_is_named():
    assert stand([0.0, 0.1, 3.0, 0.2]) == Standing("outlying", (2,), (0, 1, 3))


def test_two_outliers_that_agree_with_each_other_are_both_named():
    found = stand([0.0, 3.0, 0.1, 3.1, 0.2, 0.15, 0.05])
    assert (found.kind, set(found.outlying), found.rest) == ("outlying", {1, 3}, (0, 2, 4, 5, 6))


def test_two_outliers_on_opposite_sides_are_both_named():
    assert set(stand([0.0, 3.0, 0.1, -3.1, 0.2, 0.15, 0.05]).outlying) == {1, 3}


@pytest.mark.parametrize("outlying", [(4, 17), (0, 29)])
def test_two_outliers_among_thirty(outlying):
    places = np.random.default_rng(0).normal(0, 0.01, (30, 5))
    places[list(outlying), 0] += [2.0, 5.0]
    found = stand(places)
    assert set(found.outlying) == set(outlying)
    assert len(found.rest) == 28


def test_small_differences_of_the_others_leave_the_outliers_farthest():
    """With much data everything is significant: sizes decide."""
    places = np.random.default_rng(0).normal(0, 0.05, (30, 8))
    places[[4, 17], 0] += 3.0
    found = stand(places, reach=0.001)
    assert found.kind == "farther"
    assert set(found.outlying) == {4, 17}


def test_where_all_differ_alike_none_is_named():
    assert stand(3 * np.eye(5)) == Standing("many")
    assert stand(3 * np.eye(30)) == Standing("many")


def test_where_none_differ_none_is_named():
    assert stand([0.0, 0.1, 0.2, 0.3]) == Standing("none", rest=(0, 1, 2, 3))


def test_two_groups_differ_or_do_not():
    assert stand([0.0, 3.0]) == Standing("all", (0, 1))
    assert stand([0.0, 0.1]) == Standing("none", rest=(0, 1))


def test_two_halves_are_told_as_halves():
    found = stand([0.0, 3.0, 0.1, 3.1])
    assert found.kind == "split"
    assert {frozenset(found.outlying), frozenset(found.rest)} == {frozenset({0, 2}), frozenset({1, 3})}


@pytest.mark.parametrize("places", [[0.0, 0.4, 0.8], [0.0, 0.45, 0.9, 0.45]])
def test_ties_are_not_broken(places):
    """Either end of a row could be the outlier."""
    assert stand(places) == Standing("unclear")
    assert stand(places, reach=0.01) == Standing("many")


def test_a_test_that_cannot_be_significant_clears_no_one():
    assert stand([0.0, 0.1, 3.0, 0.2], blind=4).kind == "untested"
    assert stand([0.0, 3.0, 6.0], blind=2).kind == "unclear"


def test_without_a_majority_that_agrees_none_is_named():
    places = np.concatenate([np.zeros((30, 30)), 3 * np.eye(30)])[: 2 * MAX_REMOVED + 22]
    assert stand(places).kind == "many"


def test_groups_are_removed_farthest_first_and_undefined_distances_do_not_count():
    distance = Places([0.0, 0.1, 3.0, -9.0]).distance
    assert order_by_removal(distance)[:2] == [3, 2]
    distance[3, :] = distance[:, 3] = np.nan
    assert order_by_removal(distance)[0] == 2
    distance[1, 2] = distance[2, 1] = np.inf
    assert order_by_removal(distance)[0] == 2
