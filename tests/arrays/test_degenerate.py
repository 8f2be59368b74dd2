"""Where distances are zero, infinite or undefined, and input that has none."""

import json
import math

import numpy as np
import pytest
from scipy import sparse

import crossfusion as cf
from crossfusion.fusion import estimate_mean_errors
from crossfusion.moments import Moments, concat, kernel

DTYPES = [np.float32, np.float64]
draw = np.random.default_rng(0)


# ---- clouds that are the same, or have no spread


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [1, 50, 5000])
def test_a_cloud_is_at_zero_from_itself(number, dtype, route):
    rows = draw.normal(5, 1, (number, 17)).astype(dtype)
    fusion = cf.cfd(rows, rows.copy())
    assert (fusion.distance, fusion.score, fusion.between) == (0.0, 1.0, 0.0)


COPIES = {"stacked": lambda rows: np.concatenate([rows, rows]), "side by side": lambda rows: np.repeat(rows, 2, axis=0)}
COPY_LABELS = {
    "stacked": lambda number: np.repeat([0, 1], number),
    "side by side": lambda number: np.tile([0, 1], number),
}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("number", [50, 5000])
@pytest.mark.parametrize(("dtype", "rounding"), [(np.float32, 1e-13), (np.float64, 1e-28)])
@pytest.mark.parametrize("copies", COPIES)
def test_labelled_copies_of_a_cloud_are_at_zero(copies, dtype, rounding, number, threads, route, monkeypatch):
    """Exactly with NumPy; on the compiled route tiles and threads cut the groups, so but for rounding."""
    monkeypatch.setattr(kernel, "thread_count", lambda: threads)
    rows = COPIES[copies](draw.normal(5, 1, (number, 17)).astype(dtype))
    distance = cf.cfd(rows, labels=COPY_LABELS[copies](number)).distance
    assert 0 <= distance <= (rounding if route == "compiled" else 0)


@pytest.mark.parametrize("number", [50, 5000])
def test_sparse_copies_of_a_cloud_are_at_zero(number):
    own = np.random.default_rng(1)
    rows = sparse.csr_array(np.where(own.random((number, 5)) < 0.5, own.normal(size=(number, 5)), 0))
    assert cf.cfd(rows, rows.copy()).distance == 0.0
    assert cf.cfd(sparse.vstack([rows, rows]), labels=np.repeat([0, 1], number)).distance == 0.0


FORMS = {"dense": np.asarray, "sparse": sparse.csr_array}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_points_that_all_coincide_are_together(dtype, form, route):
    rows = FORMS[form](np.full((9000, 3), 0.1, dtype))
    for fusion in (cf.cfd(rows[:3000], rows[3000:]), cf.cfd(rows, labels=np.arange(9000) % 7)):
        assert (fusion.distance, fusion.unbiased, fusion.score) == (0.0, 0.0, 1.0)
        assert (fusion.within, fusion.between, fusion.total) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_groups_without_spread_are_infinitely_far(dtype, form, route):
    rows = FORMS[form](np.repeat([[0.1, 0.3], [0.7, 0.3]], [3000, 7000], axis=0).astype(dtype))
    labels = np.repeat(["a", "b"], [3000, 7000])
    for fusion in (cf.cfd(rows[:3000], rows[3000:]), cf.cfd(rows, labels=labels)):
        assert (fusion.distance, fusion.unbiased, fusion.score, fusion.within) == (math.inf, math.inf, 0.0, 0.0)
        assert fusion.between == pytest.approx(0.3 * 0.7 * 0.6**2, rel=1e-6)
        assert fusion.to_dict()["distance"] == fusion.to_dict()["unbiased"] == "inf"
        assert json.loads(json.dumps(fusion.to_dict(), allow_nan=False))["score"] == 0.0
        assert "Distance inf" in repr(fusion)


def test_infinity_in_every_question():
    x = np.repeat([[0.0], [1.0], [1.0]], 2, axis=0)
    summary = cf.summarize(x, by={"g": np.repeat([0, 1, 2], 2), "h": [0, 0, 1, 1, 1, 1], "u": [0, 1] * 3})
    pairwise = summary.pairwise("g")
    np.testing.assert_array_equal(pairwise.distance, [[0, math.inf, math.inf], [math.inf, 0, 0], [math.inf, 0, 0]])
    np.testing.assert_array_equal(pairwise.unbiased, pairwise.distance)
    assert pairwise.to_dict()["distance"][0] == [0.0, "inf", "inf"]
    hierarchy = summary.hierarchy(["h", "g"])
    assert [level.distance for level in hierarchy.levels] == [math.inf, 0.0]
    assert [level.share for level in hierarchy.levels] == [None, None]
    assert (hierarchy.distance, hierarchy.to_dict()["distance"]) == (math.inf, "inf")
    rest = [fusion.distance for fusion in summary.one_vs_rest("g").values()]
    assert rest == pytest.approx([math.inf, np.log1p(1 / 3), np.log1p(1 / 3)])
    assert summary.attribution("g").without.tolist() == [0.0]
    assert summary.attribution("g", over="u").without.tolist() == [math.inf, math.inf]
    for result in (pairwise, hierarchy, summary.attribution("g", over="u")):
        json.dumps(result.to_dict(), allow_nan=False)
        assert repr(result)


# ---- groups of one row, or of none


def test_a_group_with_one_row_borrows_the_pooled_variance():
    fusion = cf.cfd([[1.0]], [[2.0], [4.0]])
    between, correction = 2 / 9 * 4, (2 / 9) * (2 / 1 + 2 / 2)  # each variance is 2
    assert fusion.unbiased == pytest.approx(np.log1p((between - correction) / 2))
    assert fusion.distance == pytest.approx(np.log1p((2 / 9) * 4 / (2 / 3)))
    assert fusion.reason is None


def test_without_any_variance_the_unbiased_distance_is_undefined_with_a_reason():
    fusion = cf.cfd([[1.0]], [[2.0]])
    assert fusion.unbiased is None
    assert fusion.to_dict()["unbiased"] is None
    assert fusion.reason == fusion.to_dict()["reason"]
    assert "every group has one row" in fusion.reason
    assert f"Cross-Fusion Distance – ({fusion.reason})" in repr(fusion)
    summary = cf.summarize([[1.0], [2.0], [4.0]], by={"g": [0, 1, 2], "h": [0, 0, 1]})
    assert np.isnan(summary.pairwise("g").unbiased[~np.eye(3, dtype=bool)]).all()
    assert summary.pairwise("g").to_dict()["unbiased"][0] == [0.0, None, None]
    hierarchy = summary.hierarchy(["h", "g"])
    assert [hierarchy.unbiased, *(level.unbiased for level in hierarchy.levels)] == [None] * 3
    assert "–" in repr(hierarchy)
    assert "unbiased is undefined: every group has one row" in repr(hierarchy)
    assert all(rest.unbiased is not None or rest.reason for rest in summary.one_vs_rest("g").values())


def test_one_rare_row_does_not_separate_pure_noise():
    """The estimate stays with the one without that row, in every question."""
    draw = np.random.default_rng(4)
    x = draw.normal(size=(241, 64))
    site, tissue = np.arange(241) % 6, np.arange(241) // 6 % 4
    site[-1], tissue[-1] = 0, 9  # a tissue that one row has ...
    tissue[-2], site[-2] = 9, 1  # ... and a second group with one row
    summary = cf.summarize(x, by={"site": site, "tissue": tissue})
    without = cf.summarize(x[:-2], by={"site": site[:-2], "tissue": tissue[:-2]})
    for weights in ("pooled", "balanced"):
        options = {"given": "tissue", "weights": weights}
        found, expected = summary.cfd("site", **options), without.cfd("site", **options)
        assert found.unbiased == pytest.approx(expected.unbiased, abs=0.01)
        assert found.distance > 0.05  # the plug-in is all bias
        np.testing.assert_allclose(
            summary.pairwise("site", **options).unbiased, without.pairwise("site", **options).unbiased, atol=0.02
        )
        for one, other in zip(
            summary.one_vs_rest("site", **options).values(),
            without.one_vs_rest("site", **options).values(),
            strict=True,
        ):
            assert one.unbiased == pytest.approx(other.unbiased, abs=0.02)
    levels = summary.hierarchy(["tissue", "site"])
    assert levels.unbiased == pytest.approx(without.hierarchy(["tissue", "site"]).unbiased, abs=0.02)


def test_a_borrowed_variance_is_unbiased_where_variances_are_equal():
    draw = np.random.default_rng(5)
    count, mean = np.array([6, 4, 1]), np.array([[0.0], [1.0], [3.0]]) * np.ones(8)
    weight = count / count.sum()
    truth = float(np.sum(weight * ((mean - weight @ mean) ** 2).sum(axis=1)))
    found = []
    for _ in range(4000):
        rows = [draw.normal(own, size=(number, 8)) for own, number in zip(mean, count, strict=True)]
        fusion = cf.cfd(np.concatenate(rows), labels=np.repeat([0, 1, 2], count))
        error = estimate_mean_errors(concat([Moments.of(own) for own in rows]))
        between = fusion.between - np.sum(weight * (1 - weight) * error)
        within = np.sum(weight * count * error)
        assert fusion.unbiased == pytest.approx(np.log1p(between / within))
        found.append((between, within))
    average, deviation = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(average - [truth, 8]) < 4 * deviation)


@pytest.mark.parametrize(
    ("ask", "pattern"),
    [
        (lambda: cf.cfd(np.empty((0, 2)), [[1.0, 2.0]]), "a has no rows"),
        (lambda: cf.cfd([[1.0, 2.0]], np.empty((0, 2))), "b has no rows"),
        (lambda: cf.cfd(np.empty((0, 2)), labels=[]), "x has no rows"),
        (lambda: cf.summarize(np.empty((0, 2)), by={"g": []}), "x has no rows"),
        (lambda: cf.cfd([[1.0], [2.0]], labels=["a", "a"]), r"only one group .*\('a'\)"),
        (lambda: cf.cfd([[1.0, 2.0]], [[1.0]]), "a has 2, b has 1"),
        (lambda: cf.cfd([[1.0]], [[1.0]], weights="even"), "weights='even' is not known"),
        (lambda: cf.cfd([[1.0]], [[1.0]], nan="keep"), "nan='keep' is not known"),
        (lambda: cf.summarize([[1.0]], by={"g": [1]}, nan="keep"), "nan='keep' is not known"),
        (lambda: cf.summarize([[1.0]], by={}), "by is empty"),
        (lambda: cf.summarize([[1.0], [2.0]], by={"g": [1]}), "g has 1 entry for 2 rows"),
        (lambda: cf.summarize([[1.0]], by={"g": [1], "h": [1, 2]}), "differ in length.*'h': 2"),
        (lambda: cf.summarize([[1.0]], by={"g": [1]}, vectors="v"), "vectors"),
        (lambda: cf.summarize([[1.0]], by="g"), r"^list has no columns to find 'g' in: pass by="),
        (lambda: cf.cfd([1.0, 2.0], [[1.0]]), "a must be two-dimensional"),
        (lambda: cf.cfd([[1.0]], [["b"]]), "b must hold numbers"),
        (lambda: cf.cfd([[1.0], [2.0]], ["p", "q"]), r"one value for each row of a, as labels do: .*labels="),
        (lambda: cf.cfd([[1.0], [2.0]], np.array([0, 1])), r"one value for each row of a, as labels do: .*labels="),
        (lambda: cf.cfd([[1.0], [2.0]], np.ones(3)), "b must be two-dimensional"),
        (lambda: cf.cfd([1.0, 2.0], labels=[1, 2]), "x must be two-dimensional"),
    ],
)
def test_input_without_a_distance_is_refused(ask, pattern, refuses):
    with refuses(pattern):
        ask()


# ---- values that are not finite


def spoiled(dtype, form):
    """Three of 40 rows are not finite, the first of them row 7, in feature 2."""
    rows = draw.normal(size=(40, 4)).astype(dtype)
    rows[7, 2], rows[8, 0], rows[30] = np.nan, np.inf, -np.inf
    return FORMS[form](rows), np.delete(rows, [7, 8, 30], axis=0)


FOUND = r"3 of 40 rows, the first in row 7, feature 2"
LABELS = np.arange(40) % 2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_are_not_finite_are_counted_and_located(dtype, form, route, refuses):
    rows, _ = spoiled(dtype, form)
    with refuses(f"x has .*{FOUND}", cf.NonFiniteError):
        cf.cfd(rows, labels=LABELS)
    with refuses(f"b has .*{FOUND}", cf.NonFiniteError):
        cf.cfd(np.ones((2, 4)), rows)
    with refuses(f"x has .*{FOUND}", cf.NonFiniteError):
        cf.summarize(rows, by={"g": LABELS})
    with refuses(f"rows has .*{FOUND}", cf.NonFiniteError):
        cf.Moments.of(rows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_are_not_finite_can_be_dropped(dtype, form, route):
    rows, clean = spoiled(dtype, form)
    labels = np.delete(LABELS, [7, 8, 30])
    with pytest.warns(cf.CrossfusionWarning, match=f"x has .*{FOUND}"):
        fusion = cf.cfd(rows, labels=LABELS, nan="drop")
    expected = cf.cfd(clean, labels=labels)
    assert (fusion.dropped, fusion.counts) == (3, expected.counts)
    assert fusion.distance == pytest.approx(expected.distance, rel=1e-6)
    assert "dropped  3 rows" in repr(fusion)
    with pytest.warns(cf.CrossfusionWarning, match=FOUND):
        summary = cf.summarize(rows, by={"g": LABELS}, nan="drop")
    assert (summary.dropped, summary.cfd("g").dropped, summary.rollup("g").dropped) == (3, 3, 3)


def test_dropping_can_empty_a_group(refuses):
    rows = [[np.nan], [1.0], [2.0]]
    with pytest.warns(cf.CrossfusionWarning), refuses("only one group"):
        cf.cfd(rows, labels=["a", "b", "b"], nan="drop")
    with pytest.warns(cf.CrossfusionWarning), refuses("a has no rows"):
        cf.cfd([[np.nan]], [[1.0]], nan="drop")
    with pytest.warns(cf.CrossfusionWarning):
        summary = cf.summarize(rows, by={"g": ["a", "b", "b"]}, nan="drop")
    assert summary.keys["g"].to_pylist() == ["b"]
    with pytest.warns(cf.CrossfusionWarning), refuses("x has no rows"):
        cf.summarize([[np.inf]], by={"g": [1]}, nan="drop")


# ---- values at the ends of the range


@pytest.mark.parametrize("scale", [1e-35, 1e-25, 1e25, 1e35])
def test_float32_whose_squares_leave_its_range(scale, route):
    a, b = draw.normal(size=(500, 3)), draw.normal(0.5, 1, (500, 3))
    expected = cf.cfd(a, b)
    fusion = cf.cfd((a * scale).astype(np.float32), (b * scale).astype(np.float32))
    assert fusion.distance == pytest.approx(expected.distance, rel=1e-5)
    assert fusion.unbiased == pytest.approx(expected.unbiased, rel=1e-5)


FAR = {
    "within a group": lambda: cf.cfd([[1e200], [-1e200]], [[0.0]]),
    "within a labelled group": lambda: cf.cfd([[1e200], [-1e200], [0.0]], labels=[0, 0, 1]),
    "between groups": lambda: cf.cfd([[0.0], [1.0]], [[1e200], [1e200]]),
    "in a sum": lambda: cf.cfd(np.full((3, 1), 1.7e308), np.array([[1.7e308], [-1.7e308]])),
    "with frequencies": lambda: cf.Moments.of([[1e200], [-1e200]], frequency=[1, 2]),
    "in a summary": lambda: cf.summarize([[1e200], [-1e200]], by={"g": [0, 0]}),
    "between groups of a summary": lambda: cf.summarize([[1e200], [-1e200]], by={"g": [0, 1]}).cfd("g"),
    "between pairs": lambda: cf.summarize([[1e200], [-1e200]], by={"g": [0, 1]}).pairwise("g"),
    "when adding": lambda: cf.Moments.of([[1e200]]) + cf.Moments.of([[-1e200]]),
}


@pytest.mark.parametrize("case", FAR)
def test_values_whose_squares_exceed_float64_are_refused(case, refuses):
    with refuses("range of float64"):
        FAR[case]()


def test_rows_of_the_smallest_numbers_have_the_interval_of_any_scale():
    own = np.random.default_rng(2)
    rows, labels, units = own.normal(size=(60, 3)), np.arange(60) % 2, np.arange(60) // 6
    with np.errstate(all="raise", under="ignore"):
        found = [cf.cfd(rows * scale, labels=labels, units=units, level=0.9).interval for scale in (1, 1e-155)]
    assert found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("scale", [1e-158, 1e-162, 1e-200])
@pytest.mark.parametrize("offset", [False, True])
def test_values_whose_squares_underflow_are_refused(scale, offset):
    rng = np.random.default_rng(0)
    labels, units = np.repeat([0, 1], 20), np.arange(40) // 4
    x = scale * (rng.normal(size=(40, 3)) + labels[:, None])
    x = np.c_[np.ones(40), x] if offset else x
    summary = cf.summarize(x, by={"g": labels, "u": units})
    for ask in (
        lambda: cf.cfd(x, labels=labels),
        lambda: cf.cfd(x, labels=labels, level=0.95),
        lambda: cf.permutation_test(x, labels),
        lambda: cf.dispersion_test(x, labels),
        lambda: summary.cfd("g"),
        lambda: summary.pairwise("g"),
        lambda: summary.hierarchy(["g", "u"]),
        lambda: summary.attribution("g"),
        lambda: summary.project("g"),
    ):
        with pytest.raises(cf.InputError, match="squares fall below the range of float64: scale the rows up"):
            ask()


def test_values_whose_squares_are_in_range_have_their_distance():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(40, 3)), np.repeat([0, 1], 20)
    assert cf.cfd(1e-140 * x, labels=labels).unbiased == pytest.approx(cf.cfd(x, labels=labels).unbiased, rel=1e-12)
    assert cf.cfd(np.zeros((4, 2)), labels=[0, 0, 1, 1]).distance == 0
