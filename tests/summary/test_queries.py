"""Questions to a summary: each equals a direct computation on the rows, and levels and parts add up."""

import datetime as dt
import warnings
from fractions import Fraction
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import spearmanr

import crossfusion as cf
from tests.helpers import reference

SEEDS = st.integers(0, 2**32 - 1)
WEIGHTS = st.sampled_from(["pooled", "balanced"])
GIVEN = st.sampled_from([None, "q"])


class Rows:
    """Random rows with factors p, q and u, in a design that may have cells of one row and cells missing."""

    def __init__(self, seed, least=1):
        draw = np.random.default_rng(seed)
        sizes = draw.integers(2, 5), draw.integers(1, 5), draw.integers(2, 7)
        number, dim = int(draw.integers(12, 60)), int(draw.integers(1, 5))
        self.by = {name: draw.integers(0, size, number) for name, size in zip("pqu", sizes, strict=True)}
        self.by["p"][:2] = 0, 1
        effects = [draw.normal(size=(size, dim)) for size in sizes]
        self.x = draw.normal(size=(number, dim)) + sum(e[c] for e, c in zip(effects, self.by.values(), strict=True))
        if least > 1:  # every row twice: no cell has one row
            self.x = np.concatenate([self.x, self.x + draw.normal(size=self.x.shape)])
            self.by = {name: np.tile(codes, 2) for name, codes in self.by.items()}
        self.summary = cf.summarize(self.x, by=self.by)

    def cells(self, name, given):
        """Exact moments of groups and strata."""
        return reference.cells(self.x, self.by[name].tolist(), self.by[given].tolist() if given else [0] * len(self.x))

    def cfd(self, kept=..., *, given=None, weights="pooled", features=...):
        """Distance of p straight from some of the rows."""
        strata = None if given is None else self.by[given][kept]
        return cf.cfd(self.x[kept][:, features], labels=self.by["p"][kept], given=strata, weights=weights)


def same(found, expected, rel=1e-11, tiny=1e-13):
    """Equal numbers, where undefined is equal to undefined."""
    if expected is None or found is None:
        return (found is None or np.isnan(found)) and (expected is None or np.isnan(expected))
    return found == pytest.approx(expected, rel=rel, abs=tiny, nan_ok=True)


@pytest.fixture(autouse=True)
def _quiet():
    """Confounded designs come up by chance; that they warn is tested in test_warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.CrossfusionWarning)
        yield


# ---- one distance


@given(SEEDS, WEIGHTS, GIVEN)
def test_a_summary_answers_as_the_rows_do(seed, weights, given):
    rows = Rows(seed)
    found, expected = rows.summary.cfd("p", given=given, weights=weights), rows.cfd(given=given, weights=weights)
    assert same(found.distance, expected.distance)
    assert same(found.unbiased, expected.unbiased)
    assert found.counts == expected.counts
    assert found.weights == pytest.approx(expected.weights)
    assert found.overlap == pytest.approx(expected.overlap)


@given(SEEDS, WEIGHTS)
def test_several_factors_are_compared_by_their_combinations(seed, weights):
    rows = Rows(seed)
    both = [f"{p} {q}" for p, q in zip(rows.by["p"], rows.by["q"], strict=True)]
    found = rows.summary.cfd(["p", "q"], given=["u"], weights=weights)
    expected = cf.cfd(rows.x, labels=both, given=rows.by["u"], weights=weights)
    assert same(found.distance, expected.distance)
    assert same(found.unbiased, expected.unbiased)
    assert found.counts == {tuple(map(int, str(label).split())): count for label, count in expected.counts.items()}


# ---- levels


@given(SEEDS)
def test_chain_rule(seed):
    summary = Rows(seed).summary
    assume(len(summary.rollup("q")) > 1)
    whole = summary.cfd(["p", "q"]).distance
    assert whole == pytest.approx(summary.cfd("q").distance + summary.cfd("p", given="q").distance, rel=1e-12)
    assert whole == pytest.approx(summary.cfd("p").distance + summary.cfd("q", given="p").distance, rel=1e-12)


@given(SEEDS, WEIGHTS, st.permutations(["p", "q", "u"]))
def test_levels_add_up(seed, weights, names):
    summary = Rows(seed, least=2).summary
    hierarchy, leaves = summary.hierarchy(names, weights=weights), summary.cfd(names, weights=weights)
    assert [level.level for level in hierarchy.levels] == names
    columns: Any = hierarchy.to_frame()[["distance", "unbiased", "share"]].sum()
    assert columns["distance"] == pytest.approx(hierarchy.distance, rel=1e-12)
    assert columns["unbiased"] == pytest.approx(hierarchy.unbiased, rel=1e-12, abs=1e-14)
    assert hierarchy.distance == pytest.approx(leaves.distance, rel=1e-12)
    assert hierarchy.unbiased == pytest.approx(leaves.unbiased, rel=1e-10, abs=1e-13)
    assert columns["share"] == pytest.approx(1, rel=1e-12)


@given(SEEDS, WEIGHTS)
def test_balanced_outermost_groups_are_as_far_apart_as_alone(seed, weights):
    rows = Rows(seed)
    levels = rows.summary.hierarchy(["p", "q", "u"], weights=weights, balance="p").levels
    assert same(levels[0].distance, rows.cfd(weights=weights).distance)


@given(SEEDS, WEIGHTS)
def test_each_level_is_the_distance_given_those_above(seed, weights):
    rows = Rows(seed)
    leaves = reference.cells(rows.x, *(rows.by[name].tolist() for name in "qpu"))
    total = sum(cell.count for cell in leaves.values())
    weight = {
        key: Fraction(cell.count, total) if weights == "pooled" else Fraction(1, len(leaves))
        for key, cell in leaves.items()
    }
    within = [reference.fuse(leaves, weight, itemgetter(slice(depth))) for depth in range(4)]
    hierarchy = rows.summary.hierarchy(["q", "p", "u"], weights=weights)
    groups = [len({key[:depth] for key in leaves}) for depth in range(4)]
    for k, (level, above, here) in enumerate(zip(hierarchy.levels, within[:-1], within[1:], strict=True)):
        if groups[k] == groups[k + 1]:  # no group is divided
            assert (level.distance, level.unbiased, level.share) == (None, None, None)
            continue
        below = here.within + here.between, here.within_unbiased + here.between_unbiased
        assert same(level.distance, reference.log_ratio(above.within + above.between - below[0], below[0]))
        unbiased = reference.log_ratio(above.within_unbiased + above.between_unbiased - below[1], below[1])
        assert same(level.unbiased, unbiased if above.defined else None)


def test_a_level_without_groups_of_its_own_adds_nothing():
    draw = np.random.default_rng(0)
    site = draw.integers(0, 3, 90)
    summary = cf.summarize(draw.normal(size=(90, 3)), by={"site": site, "country": site % 2, "again": site})
    hierarchy = summary.hierarchy(["country", "site", "again"])
    assert (hierarchy.levels[2].distance, hierarchy.levels[2].unbiased, hierarchy.levels[2].share) == (None, None, None)
    assert repr(hierarchy).splitlines()[4].split() == ["again", "–", "–", "–"]
    assert hierarchy.levels[0].distance == pytest.approx(summary.cfd("country").distance, rel=1e-12)
    assert hierarchy.distance == pytest.approx(summary.cfd("site").distance, rel=1e-12)


# ---- pairs


@given(SEEDS, WEIGHTS, GIVEN)
def test_each_pair_is_the_distance_of_these_two_groups(seed, weights, given):
    rows = Rows(seed)
    pairwise = rows.summary.pairwise("p", given=given, weights=weights)
    cells, whole = rows.cells("p", given), reference.pool(rows.cells("p", given))
    assert pairwise.labels == tuple(np.unique(rows.by["p"]))
    for i, first in enumerate(pairwise.labels):
        assert (pairwise.distance[i, i], pairwise.unbiased[i, i], pairwise.overlap[i, i]) == (0, 0, 1)
        for j, second in enumerate(pairwise.labels[:i]):
            expected = rows.summary.select(p=[first, second]).cfd("p", given=given, weights=weights)
            pair = {key: cell for key, cell in cells.items() if key[0] in (first, second)}
            exact = reference.fuse(pair, reference.weights(pair, weights), itemgetter(1), whole)
            if min(cell.count for cell in pair.values()) > 1:
                assert same(exact.unbiased, expected.unbiased)
            for at in ((i, j), (j, i)):
                assert same(pairwise.distance[at], expected.distance)
                assert same(pairwise.unbiased[at], exact.unbiased)
                assert same(pairwise.overlap[at], expected.overlap)


def test_pairs_of_combinations_and_as_tables():
    rows = Rows(1)
    pairwise = rows.summary.pairwise(["p", "q"])
    groups = rows.summary.rollup(["p", "q"])
    assert pairwise.labels == tuple(zip(*groups.keys.to_pydict().values(), strict=True))
    frame = pairwise.to_frame()
    assert list(frame.columns) == ["group_a", "group_b", "unbiased", "distance", "overlap"]
    assert len(frame) == len(groups) * (len(groups) - 1) // 2
    for row in frame.itertuples():
        place = pairwise.labels.index(row.group_a), pairwise.labels.index(row.group_b)
        assert place[0] < place[1]
        assert row.distance == pairwise.distance[place]
    assert pairwise.to_dict()["labels"] == groups.keys.to_pandas().to_numpy().tolist()


def test_sizes_do_not_rank_pairs():
    """Groups of 20 to 1,000 rows, all equally far apart: how equal two sizes are says nothing about the distance."""
    draw, number = np.random.default_rng(0), 23
    rows = draw.permutation(np.geomspace(20, 1000, number).astype(int))
    labels = np.repeat(np.arange(number), rows)
    x = draw.normal(size=(len(labels), 32)) + 0.5 * np.eye(number, 32)[labels]
    summary, upper = cf.summarize(x, by={"g": labels}), np.triu_indices(number, 1)
    weight = (np.outer(rows, rows) / np.add.outer(rows, rows) ** 2)[upper]
    found = summary.pairwise("g")
    assert found.weights == "balanced"
    assert abs(spearmanr(found.to_frame().iloc[:, 2], weight).statistic) < 0.2
    paper = summary.pairwise("g", weights="pooled").distance[upper]
    assert spearmanr(paper, weight).statistic > 0.6
    shown = found.plot().axes[0].images[0].get_array()
    np.testing.assert_array_equal(np.ma.filled(shown)[upper], found.unbiased[upper])


def test_many_pairs_on_the_compiled_route():
    draw = np.random.default_rng(2)
    groups, dim = 500, 150
    labels = np.repeat(np.arange(groups), 3)
    summary = cf.summarize(draw.normal(1e3, 1, (3 * groups, dim)), by={"g": labels})
    pairwise = summary.pairwise("g")
    np.testing.assert_array_equal(pairwise.distance, pairwise.distance.T)
    for i, j in draw.integers(0, groups, (30, 2)):
        if i != j:
            expected = summary.select(g=[i, j]).cfd("g", weights="balanced")
            assert same(pairwise.distance[i, j], expected.distance)
            assert same(pairwise.unbiased[i, j], expected.unbiased)


# ---- one against the rest


@given(SEEDS, WEIGHTS, GIVEN)
def test_one_against_the_rest_is_relabelling(seed, weights, given):
    rows = Rows(seed)
    found = rows.summary.one_vs_rest("p", given=given, weights=weights)
    assert list(found) == sorted(set(rows.by["p"].tolist()))
    for label, fusion in found.items():
        side = np.where(rows.by["p"] == label, "own", "rest")
        strata = None if given is None else rows.by[given]
        expected = cf.cfd(rows.x, labels=side, given=strata, weights=weights)
        two = reference.cells(rows.x, side.tolist(), [0] * len(side) if strata is None else strata.tolist())
        borrowed = reference.pool(rows.cells("p", given))
        exact = reference.fuse(two, reference.weights(two, weights), itemgetter(1), borrowed)
        assert same(fusion.distance, expected.distance)
        assert same(fusion.unbiased, exact.unbiased)
        assert same(fusion.overlap, expected.overlap)
        assert fusion.counts == {label: expected.counts["own"], f"not {label}": expected.counts["rest"]}
        assert list(fusion.weights.values()) == pytest.approx(list(expected.weights.values()))


# ---- attribution


@given(SEEDS, WEIGHTS, GIVEN)
def test_features_share_what_is_between(seed, weights, given):
    rows = Rows(seed)
    found = rows.summary.attribution("p", given=given, weights=weights)
    whole = rows.cfd(given=given, weights=weights)
    dim = rows.x.shape[1]
    assert (found.over, found.labels) == ("features", tuple(range(dim)))
    assert same(found.contribution.sum(), whole.between)
    for feature in range(dim):
        alone = rows.cfd(given=given, weights=weights, features=[feature])
        assert same(found.contribution[feature], alone.between)
        others = np.delete(np.arange(dim), feature)
        expected = rows.cfd(given=given, weights=weights, features=others).distance if dim > 1 else 0.0
        assert same(found.without[feature], expected)
    if whole.between > 1e-20:
        assert same(found.share.sum(), 1.0)
        np.testing.assert_allclose(found.share, found.contribution / whole.between, rtol=1e-11)


@given(SEEDS, WEIGHTS, GIVEN)
def test_units_share_what_is_between(seed, weights, given):
    rows = Rows(seed)
    found = rows.summary.attribution("p", given=given, over="u", weights=weights)
    whole = rows.cfd(given=given, weights=weights)
    units = sorted(set(rows.by["u"].tolist()))
    assert (found.over, found.labels) == ("u", tuple(units))
    assert same(found.contribution.sum(), whole.between, tiny=1e-12)
    for k, unit in enumerate(units):
        kept = rows.by["u"] != unit
        enough = len(set(rows.by["p"][kept])) > 1
        assert same(found.without[k], rows.cfd(kept, given=given, weights=weights).distance if enough else None)


def test_contributions_of_units_follow_their_formula():
    x = np.array([[0.0], [0.0], [4.0], [6.0], [14.0]])
    summary = cf.summarize(x, by={"p": [0, 0, 1, 1, 1], "u": ["a", "b", "a", "b", "c"]})
    found = summary.attribution("p", over="u")
    centre, means = x.mean(), np.array([0.0, 8.0])
    direction = (means - centre)[[0, 0, 1, 1, 1]]
    of_rows = (x[:, 0] - centre) * direction / 5
    np.testing.assert_allclose(found.contribution, [of_rows[[0, 2]].sum(), of_rows[[1, 3]].sum(), of_rows[4]])
    assert found.contribution[2] > found.contribution[1] > found.contribution[0] > 0
    opposed = cf.summarize([[0.0], [9.0], [-2.0], [3.0]], by={"p": [0, 1, 1, 1], "u": ["a", "b", "c", "c"]})
    assert opposed.attribution("p", over="u").contribution[2] < 0
    frame = found.to_frame()
    assert list(frame.columns) == ["label", "contribution", "share", "without"]
    assert [found.labels[k] for k in found.top(2)] == ["c", "b"]


def test_what_one_feature_hides_shows_without_it():
    rows = Rows(7)
    hidden = np.insert(rows.x, 0, 1e12 * rows.by["p"] + rows.x[:, 0], axis=1)
    without = cf.summarize(hidden, by=rows.by).attribution("p").without[0]
    assert without == pytest.approx(rows.cfd().distance, rel=1e-11)


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
def test_leaving_a_unit_out_can_empty_a_stratum_or_a_group(weights):
    by = {"p": [0, 1] * 6, "q": [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2], "u": [0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2]}
    x = np.random.default_rng(6).normal(size=(12, 2))
    found = cf.summarize(x, by=by).attribution("p", given="q", over="u", weights=weights)
    for unit in range(3):
        kept = np.array(by["u"]) != unit
        rest = {name: np.array(by[name])[kept] for name in "pq"}
        expected = cf.cfd(x[kept], labels=rest["p"], given=rest["q"], weights=weights)
        assert same(found.without[unit], expected.distance)
    alone = cf.summarize(x, by={"p": by["p"], "u": by["p"]}).attribution("p", over="u", weights=weights)
    assert np.isnan(alone.without).all()
    assert alone.to_dict()["without"] == [None, None]


def test_attribution_of_nothing_has_no_shares():
    summary = cf.summarize([[1.0], [3.0], [1.0], [3.0]], by={"p": [0, 0, 1, 1], "u": [0, 1, 0, 1]})
    for over in ("features", "u"):
        found = summary.attribution("p", over=over)
        assert np.isnan(found.share).all()
        assert not found.contribution.any()
        assert set(found.to_dict()["share"]) == {None}


# ---- weights, overlap, confounding


def test_balanced_weights_within_strata():
    rows = {("a", 0): 2, ("a", 1): 6, ("b", 0): 10, ("b", 1): 5, ("b", 2): 5, ("c", 2): 4}
    labels, strata = (np.repeat([key[k] for key in rows], list(rows.values())) for k in (0, 1))
    x = np.random.default_rng(3).normal(size=(len(labels), 2))
    fusion = cf.cfd(x, labels=labels, given=strata, weights="balanced")
    stratum = [(2 / 8 + 10 / 20) / 3, (6 / 8 + 5 / 20) / 3, (5 / 20 + 4 / 4) / 3]
    assert fusion.weights == pytest.approx(
        {"a": (stratum[0] + stratum[1]) / 2, "b": sum(stratum) / 2, "c": stratum[2] / 2}
    )
    assert fusion.overlap == 1
    assert cf.cfd(x, labels=labels, weights="balanced").weights == pytest.approx(dict.fromkeys("abc", 1 / 3))


@pytest.mark.parametrize(("weights", "overlap"), [("pooled", 6 / 10), ("balanced", (2 / 5 + 4 / 5) / 2)])
def test_overlap_is_the_weight_of_shared_strata(weights, overlap):
    by = {"p": ["a"] * 5 + ["b"] * 5, "q": [0, 0, 1, 1, 1, 0, 0, 0, 0, 2]}
    summary = cf.summarize(np.random.default_rng(4).normal(size=(10, 2)), by=by)
    assert summary.cfd("p", given="q", weights=weights).overlap == pytest.approx(overlap)
    assert summary.pairwise("p", given="q", weights=weights).overlap[0, 1] == pytest.approx(overlap)
    assert "overlap  60.0% of the weight" in repr(summary.cfd("p", given="q", weights=weights))


def test_a_confounded_design_compares_nothing(refuses):
    summary = cf.summarize(
        np.random.default_rng(5).normal(size=(12, 2)), by={"p": [0, 1, 2, 3] * 3, "q": [5, 6, 7, 8] * 3}
    )
    fusion, pairwise = summary.cfd("p", given="q"), summary.pairwise("p", given="q")
    assert (fusion.distance, fusion.unbiased, fusion.score, fusion.between, fusion.total) == (None,) * 5
    assert (fusion.overlap, fusion.reason) == (0, "no stratum holds two of the compared groups")
    assert repr(fusion).startswith("Cross-Fusion Distance –, nothing is compared")
    assert "reason" in repr(fusion)
    with refuses("there is no distance, because no stratum holds two"):
        float(fusion)
    with refuses("there is nothing to draw"):
        fusion.plot()
    np.testing.assert_array_equal(pairwise.overlap, np.eye(4))
    for values in (pairwise.distance, pairwise.unbiased):
        np.testing.assert_array_equal(np.isnan(values), ~np.eye(4, dtype=bool))
    assert repr(pairwise).splitlines()[2].split() == ["0", "0", "–", "–", "–"]
    assert "6 of 6 pairs share no stratum and have no distance" in repr(pairwise)
    for own in summary.one_vs_rest("p", given="q").values():
        assert (own.distance, own.unbiased, own.overlap) == (None, None, 0)
    shares = summary.attribution("p", given="q")
    assert shares.overlap == 0
    assert np.isnan([shares.contribution, shares.share, shares.without]).all()


def test_a_comparison_that_few_rows_carry_says_so():
    rows = {("a", "x"): 200, ("b", "x"): 5, ("b", "y"): 300}
    by = {name: np.repeat([key[k] for key in rows], list(rows.values())) for k, name in enumerate(["site", "label"])}
    summary = cf.summarize(np.random.default_rng(0).normal(size=(505, 2)), by=by | {"unit": np.arange(505) % 50})
    expected = "the comparison rests on few rows: only 5 of 305 rows of b are in strata with another group"
    assert summary.cfd("site", given="label").caution == expected
    assert summary.cfd("site", given="label", units="unit", level=0.9).caution == expected
    assert summary.cfd("site").caution is None
    pairs = summary.pairwise("site", given="label", weights="pooled")
    assert "overlap of the pairs: at least 40.6%" in repr(pairs)
    assert "overlap: 40.6% of the weight" in repr(summary.attribution("site", given="label"))


def test_leaving_a_unit_out_may_leave_nothing_to_compare():
    by = {"site": list("aabb"), "label": list("xyxz"), "unit": [0, 1, 0, 2]}
    summary = cf.summarize(np.random.default_rng(0).normal(size=(4, 2)), by=by)
    found = summary.attribution("site", given="label", over="unit")
    assert np.isnan(found.without).tolist() == [True, False, False]


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
def test_overlap_is_one_where_all_strata_are_shared(weights):
    draw = np.random.default_rng(8)
    cells = [(p, q) for p in range(4) for q in range(5) for _ in range(draw.integers(1, 9))]
    summary = cf.summarize(draw.normal(size=(len(cells), 2)), by=dict(zip("pq", np.transpose(cells), strict=True)))
    assert summary.cfd("p", given="q", weights=weights).overlap == 1
    assert (summary.pairwise("p", given="q", weights=weights).overlap == 1).all()


# ---- what cannot be asked

ASKED = {
    "no such factor": (lambda s: s.cfd("pp"), "did you mean 'p'"),
    "no such stratum": (lambda s: s.cfd("p", given="qq"), "did you mean 'q'"),
    "no factor": (lambda s: s.cfd([]), "between"),
    "no factor but strata": (lambda s: s.cfd([], given="q"), "between"),
    "None": (lambda s: s.pairwise(None), "between"),
    "a number": (lambda s: s.cfd(3), "between"),
    "compared and adjusted for": (lambda s: s.cfd(["p", "q"], given="q"), "'q' is in between and in given"),
    "twice": (lambda s: s.one_vs_rest(["p", "p"]), "between=.*twice"),
    "no levels": (lambda s: s.hierarchy([]), "factors"),
    "levels twice": (lambda s: s.hierarchy(["p", "p"]), "factors=.*twice"),
    "no such level": (lambda s: s.hierarchy(["p", "x"]), "no factor 'x'"),
    "balance of no level": (lambda s: s.hierarchy(["p"], balance="q"), "factors has no factor 'q'"),
    "weights of cfd": (lambda s: s.cfd("p", weights="even"), "weights='even'"),
    "weights of pairwise": (lambda s: s.pairwise("p", weights="even"), "weights='even'"),
    "weights of one_vs_rest": (lambda s: s.one_vs_rest("p", weights="even"), "weights='even'"),
    "weights of hierarchy": (lambda s: s.hierarchy(["p"], weights="even"), "weights='even'"),
    "weights of attribution": (lambda s: s.attribution("p", weights="even"), "weights='even'"),
    "over nothing": (lambda s: s.attribution("p", over="x"), "no factor 'x'"),
    "over no name": (lambda s: s.attribution("p", over=np.arange(2)), "over=array"),
    "over what is compared": (lambda s: s.attribution("p", given="q", over="q"), "over='q'"),
    "fewer than none": (lambda s: s.attribution("p").top(-1), "number=-1"),
    "labels that are no list": (lambda s: s.project("p", rows=[[1.0]], labels=5), "labels must hold the group"),
    "labels that are sets": (lambda s: s.project("p", rows=[[1.0]], labels=[{1}]), "labels must hold the group"),
    "rows that are not finite": (lambda s: s.project("p", rows=[[np.nan]], labels=[0]), "rows has NaN"),
    "one group": (lambda s: s.select(p=0).cfd("p"), "only one group"),
    "one group in pairs": (lambda s: s.select(p=0).pairwise("p"), r"only one group .*\(0\)"),
    "one group in levels": (lambda s: s.select(p=0, q=0).hierarchy(["p", "q"]), "only one group"),
    "one group and its rest": (lambda s: s.select(p=0).one_vs_rest("p"), "only one group"),
    "one group by feature": (lambda s: s.select(p=0).attribution("p"), "only one group"),
}


def test_rows_of_any_kind_are_projected():
    rows, by = np.random.default_rng(0).normal(size=(60, 5)), {"p": np.arange(60) % 2, "q": np.arange(60) % 3}
    summary = cf.summarize(rows, by=by)
    labels = list(zip(by["p"].tolist(), by["q"].tolist(), strict=True))
    expected = summary.project(["p", "q"], rows=rows, labels=labels)
    kinds: Any = (
        (sparse.csr_array(rows), labels),
        (rows.tolist(), [list(label) for label in labels]),
        (rows, np.array(labels)),
    )
    for kind, names in kinds:
        found = summary.project(["p", "q"], rows=kind, labels=names)
        assert found.points is not None
        np.testing.assert_allclose(found.points, np.asarray(expected.points), rtol=1e-12)
        np.testing.assert_array_equal(found.codes, expected.codes)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_any_unit_are_factors_and_are_found_again(unit):
    when = np.array(["2024-01-01", "2025-01-06"], "datetime64[D]").astype(f"datetime64[{unit}]")[np.arange(12) % 2]
    summary = cf.summarize(np.arange(12.0)[:, None], by={"when": when})
    for value in when[:2]:
        assert len(summary.select(when=value)) == 1


@pytest.mark.parametrize("when", [np.array([2**60, 5], "M8[h]"), np.array([12000 * 12, 5], "M8[M]")])
def test_times_that_cannot_be_kept_are_refused(when, refuses):
    with refuses("when must hold one plain value per row.*there is a time beyond"):
        cf.summarize(np.ones((2, 2)), by={"when": when})


NOON = dt.datetime(2024, 1, 1, 12)
MIXED: dict[str, list[Any]] = {
    "dates and times without a zone": [NOON.date(), NOON, NOON + dt.timedelta(hours=1)],
    "times with a zone and times without a zone": [NOON, NOON.replace(tzinfo=dt.UTC), None],
    "booleans and numbers": [1.0, True, 0.5],
}


@pytest.mark.parametrize("kinds", MIXED)
def test_values_that_arrow_would_merge_are_refused(kinds, refuses):
    values = MIXED[kinds]
    for column in (values, np.array(values, object), pd.Series(values, dtype=object)):
        with refuses(f"when must hold one plain value per row.*there are {kinds}"):
            cf.summarize(np.ones((3, 2)), by={"when": column})
    table = pd.DataFrame({"when": pd.Series(values, dtype=object), "v": [0.0, 1.0, 2.0]})
    with refuses(f"'when' of the table cannot be read .*there are {kinds}"):
        cf.summarize(table, by="when", vectors="v")


def test_without_a_shared_stratum_no_distance_is_left_without_a_feature():
    summary = cf.summarize([[0.0, 0.1], [1.0, 0.1], [2.0, 0.1]], by={"site": ["A", "A", "B"], "label": [0, 0, 1]})
    with pytest.warns(cf.CrossfusionWarning, match="fully confounded"):
        found = summary.attribution("site", given="label")
    for values in (found.contribution, found.share, found.without):
        assert np.isnan(values).all()


def test_names_of_factors_may_come_from_anything():
    table = pa.table({"v": pa.array([[1.0], [2.0]]), "g": ["a", "b"]})
    names: Any = (name for name in ["g"])
    assert cf.summarize(table, by=names, vectors="v").factors == ("g",)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)])
def test_bytes_are_read_as_text(kind):
    summary = cf.summarize(np.arange(4.0)[:, None], by={"g": pa.array([b"a", b"b"] * 2, kind)})
    assert summary.keys.column("g").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("case", ASKED)
def test_what_cannot_be_asked_is_refused(case, refuses):
    ask, pattern = ASKED[case]
    with refuses(pattern):
        ask(cf.summarize(np.arange(12.0)[:, None], by={"p": np.arange(12) % 3, "q": np.arange(12) % 2}))
