"""``scale="features"``: every feature in units of its standard deviation within groups, from the moments alone."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import crossfusion as cf
from crossfusion.fusion import Design
from tests.helpers.command_line import run, run_json

STRETCH = np.exp(2 * np.random.default_rng(9).normal(size=12))


def make_rows(rows=240, shift=0.5, seed=0):
    """Rows of three groups and two strata from units, with features of very different scale."""
    draw = np.random.default_rng(seed)
    unit = np.arange(rows) // 5
    by = {"site": unit % 3, "label": np.arange(rows) % 2, "unit": unit, "week": np.arange(rows) // 20}
    x = draw.normal(size=(rows, 12)) + 0.4 * draw.normal(size=(unit.max() + 1, 12))[unit]
    x[:, :4] += shift * by["site"][:, None] + by["label"][:, None]
    return x * STRETCH, by


def limits(fusion):
    assert fusion.interval is not None
    return fusion.interval


def dominated(rows=400):
    draw = np.random.default_rng(0)
    x, labels = draw.normal(size=(rows, 64)), np.repeat([0, 1], rows // 2)
    x[labels == 1, :16] += 0.8
    x[:, 63] *= 60
    return x, labels


def standardize(x, cells, weights):
    """Rows over the square root of the weighted variance within cells."""
    variance = sum(weights[k] * x[cells == k].var(axis=0) for k in np.unique(cells))
    return x / np.sqrt(variance)


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
def test_plug_in_equals_rows_standardized_by_hand(weights):
    x, by = make_rows()
    group, stratum = by["site"], by["label"]
    share = np.bincount(group) / len(group) if weights == "pooled" else np.full(3, 1 / 3)
    plain = cf.cfd(x, labels=group, weights=weights, scale="features")
    byhand = cf.cfd(standardize(x, group, share), labels=group, weights=weights)
    assert plain.distance == pytest.approx(byhand.distance, rel=1e-12)
    cell = 2 * group + stratum
    design = cf.summarize(x, by=by)._make_design("site", "label")
    cells = standardize(x, cell, design.weights(weights))
    adjusted = cf.cfd(x, labels=group, given=stratum, weights=weights, scale="features")
    assert adjusted.distance == pytest.approx(
        cf.cfd(cells, labels=group, given=stratum, weights=weights).distance, rel=1e-12
    )
    assert adjusted.within == pytest.approx(12, rel=1e-12)


def test_plug_in_is_the_mean_over_features_of_between_over_within():
    x, by = make_rows()
    group = by["site"]
    share = np.bincount(group) / len(group)
    mean = np.stack([x[group == k].mean(axis=0) for k in range(3)])
    within = sum(share[k] * x[group == k].var(axis=0) for k in range(3))
    between = share @ (mean - share @ mean) ** 2
    found = cf.summarize(x, by=by).cfd("site", scale="features")
    assert found.distance == pytest.approx(np.log1p(np.mean(between / within)), rel=1e-12)
    assert (found.scale, found.constant) == ("features", ())


def ask(x, by):
    """Every question, of rows in one scale."""
    summary, labels = cf.summarize(x, by=by), by["site"]
    asked = {"units": "unit", "scale": "features"}
    drift: Any = summary.drift("week", reference="first:6", scale="features", units="unit")
    rows = cf.cfd(x, labels=labels, level=0.9, scale="features")
    pairs = summary.pairwise("site", **asked, level=0.9, permutations=19)
    found = {
        "rows": [rows.distance, rows.unbiased, *limits(rows)],
        "units": summary.cfd("site", given="label", level=0.9, **asked).interval,
        "pairs": np.concatenate([values[np.triu_indices(3, 1)] for values in pairs.columns.values()]),
        "rest": [fusion.unbiased for fusion in summary.one_vs_rest("site", scale="features").values()],
        "rest of rows": [fusion.interval for fusion in cf.one_vs_rest(x, labels, level=0.9, scale="features").values()],
        "rest of units": [fusion.interval for fusion in summary.one_vs_rest("site", level=0.9, **asked).values()],
        "pairs of rows": cf.pairwise(x, labels, level=0.9, scale="features").upper[np.triu_indices(3, 1)],
        "levels": [level.unbiased for level in summary.hierarchy(["label", "site"], scale="features").levels],
        "features": summary.attribution("site", scale="features").share,
        "of units": summary.attribution("site", over="unit", scale="features").share,
        "plane": np.abs(summary.project("site", scale="features").means),
        "test": summary.test("site", permutations=19, **asked).null,
        "rows test": cf.permutation_test(x, labels, permutations=19, scale="features").null,
        "bootstrap": summary.bootstrap("site", draws=5, **asked),
        "drift": [*drift.unbiased, *drift.upper, *drift.pvalue],
    }
    compared = cf.compare_corrections({"a": summary, "b": summary.select(label=[0, 1])}, between="site", **asked)
    return found | {"corrections": [fusion.unbiased for fusion in compared.batch]}


def test_no_answer_depends_on_the_units_of_the_features():
    x, by = make_rows()
    before, after = ask(x, by), ask(x / STRETCH, by)
    for name, values in before.items():
        np.testing.assert_allclose(values, after[name], rtol=1e-8, atol=1e-12, err_msg=name)
        assert np.isfinite(values).all(), name


def test_answers_agree_with_each_other():
    x, by = make_rows()
    kept = by["site"] < 2
    x, by = x[kept], {name: values[kept] for name, values in by.items()}
    summary = cf.summarize(x, by=by)
    asked = {"units": "unit", "scale": "features", "level": 0.9, "weights": "balanced"}
    whole, pairs = summary.cfd("site", **asked), summary.pairwise("site", **asked)
    assert (pairs.unbiased[0, 1], pairs.lower[0, 1]) == pytest.approx((whole.unbiased, whole.interval[0]), rel=1e-9)
    rows = cf.cfd(x, labels=by["site"], units=by["unit"], level=0.9, scale="features", weights="balanced")
    assert (rows.unbiased, *limits(rows)) == pytest.approx((whole.unbiased, *limits(whole)), rel=1e-9)
    plain = summary.cfd("site", scale="features")
    one = summary.one_vs_rest("site", scale="features")[0]
    assert (one.distance, one.unbiased) == pytest.approx((plain.distance, plain.unbiased), rel=1e-9)
    levels = summary.hierarchy(["site", "label"], scale="features")
    finest = summary.cfd(["site", "label"], scale="features")
    assert (levels.distance, levels.unbiased) == pytest.approx((finest.distance, finest.unbiased), rel=1e-9)
    assert summary.hierarchy(["site"], scale="features").unbiased == pytest.approx(plain.unbiased, rel=1e-9)
    split = summary.attribution("site", scale="features")
    assert split.contribution.sum() == pytest.approx(plain.between, rel=1e-9)
    assert cf.permutation_test(x, by["site"], scale="features", permutations=9).distance == pytest.approx(
        plain.distance, rel=1e-9
    )


def test_merged_summaries_equal_pooled_rows():
    x, by = make_rows()
    parts = [cf.summarize(x[k::3], by={name: values[k::3] for name, values in by.items()}) for k in range(3)]
    merged, pooled = sum(parts), cf.summarize(x, by=by)
    for given in (None, "label"):
        one, other = (summary.cfd("site", given=given, scale="features") for summary in (merged, pooled))
        assert (one.distance, one.unbiased) == pytest.approx((other.distance, other.unbiased), rel=1e-12)


def test_a_dominating_feature_no_longer_hides_the_others():
    x, labels = dominated()
    plain, tested = cf.cfd(x, labels=labels, level=0.95), cf.permutation_test(x, labels)
    assert plain.interval[0] == 0
    assert tested.pvalue > 0.2
    assert plain.caution.endswith('pass scale="features"')
    scaled = cf.cfd(x, labels=labels, level=0.95, scale="features")
    assert scaled.interval[0] > 0.025
    assert scaled.caution is None
    found = cf.permutation_test(x, labels, scale="features")
    assert found.pvalue == 0.001
    assert "scale" in repr(found)
    assert found.to_dict()["scale"] == "features"


def test_the_test_equals_that_of_rows_over_their_standard_deviation_within_strata():
    x, by = make_rows(60)
    strata = by["label"]
    total = np.sqrt(np.mean([x[strata == k].var(axis=0) for k in (0, 1)], axis=0))
    for options in ({"given": strata}, {"given": strata, "units": by["unit"]}, {"statistic": "pseudo-f"}):
        scale = total if "given" in options else x.std(axis=0)
        found = cf.permutation_test(x, by["site"], permutations=49, scale="features", **options)
        byhand = cf.permutation_test(x / scale, by["site"], permutations=49, **options)
        np.testing.assert_allclose(found.null, byhand.null, rtol=1e-9)
        assert found.statistic == pytest.approx(byhand.statistic, rel=1e-9)


def test_the_level_holds_with_many_features_and_few_rows():
    pvalues = []
    for seed in range(150):
        x = np.random.default_rng(seed).normal(size=(20, 256))
        pvalues.append(cf.permutation_test(x, np.arange(20) % 2, permutations=39, seed=seed, scale="features").pvalue)
    assert 0.005 < np.mean(np.array(pvalues) <= 0.05) < 0.11


@pytest.mark.parametrize(("effect", "units"), [(0.0, False), (0.8, False), (0.0, True), (0.8, True)])
def test_dividing_by_an_estimate_leaves_no_bias(effect, units):
    """Ten rows per group, or five units whose means differ much, and 128 features."""
    found, byhand = [], []
    shift = np.r_[np.full(32, effect), np.zeros(96)]
    for seed in range(120):
        draw = np.random.default_rng(seed)
        unit = np.repeat(np.arange(10), 5) if units else np.arange(20)
        x = draw.normal(size=(len(unit), 128)) + (2 * draw.normal(size=(10, 128))[unit] if units else 0)
        spread = np.sqrt(5) if units else 1
        labels = (unit >= unit.max() / 2).astype(int)
        x[labels == 1] += shift * spread
        options = {"labels": labels, "units": unit if units else None}
        found.append(cf.cfd(x, scale="features", **options).unbiased)
        byhand.append(cf.cfd(standardize(x, labels, [0.5, 0.5]), **options).unbiased)
    true = np.log1p(np.mean(shift**2) / 4)
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - true) < 4 * error
    assert np.mean(byhand) - true > 6 * error


@pytest.mark.parametrize("units", [False, True])
def test_the_interval_knows_that_one_feature_carries_the_difference(units):
    """The standard deviation of that feature is in error, which those of the others do not average out."""
    unbiased, stderr, inside = [], [], 0
    true = np.log1p(36 / 4 / 64)
    for seed in range(100):
        draw = np.random.default_rng(seed)
        unit = np.repeat(np.arange(20), 4) if units else np.arange(40)
        x = draw.normal(size=(len(unit), 64))
        labels = (unit >= unit.max() / 2).astype(int)
        x[labels == 1, 0] += 6
        fusion = cf.cfd(x, labels=labels, units=unit if units else None, level=0.95, scale="features")
        unbiased.append(fusion.unbiased)
        stderr.append(fusion.stderr)
        inside += fusion.interval[0] <= true <= fusion.interval[1]
    assert 0.75 < np.mean(stderr) / np.std(unbiased) < 1.4
    assert inside >= 88


def test_the_bootstrap_agrees_with_the_standard_error():
    x, by = make_rows(480)
    summary = cf.summarize(x, by=by)
    fusion = summary.cfd("site", units="unit", level=0.95, scale="features")
    draws = summary.bootstrap("site", units="unit", scale="features")
    assert np.mean(draws) == pytest.approx(fusion.unbiased, abs=fusion.stderr)
    assert 0.6 < np.std(draws) / fusion.stderr < 1.5


def test_constant_features_are_left_out_by_name():
    x, by = make_rows()
    names = [f"f{k}" for k in range(14)]
    more = np.c_[x[:, :6], np.full(len(x), 0.1), x[:, 6:], by["site"] * 1.0]
    before = cf.summarize(x, by=by).cfd("site", scale="features", level=0.9, units="unit")
    named = cf.summarize(more, by=by).with_features(names)
    after = named.cfd("site", scale="features", level=0.9, units="unit")
    assert after.constant == ("f6", "f13")
    assert (after.unbiased, *limits(after)) == pytest.approx((before.unbiased, *limits(before)), rel=1e-9)
    assert "left out as constant: 2 features (f6, f13)" in repr(after)
    assert after.caution.startswith("feature f13 does not vary within groups, yet differs between them")
    assert after.to_dict()["constant"] == ["f6", "f13"]
    assert cf.cfd(more, labels=by["site"], scale="features").constant == (6, 13)
    assert named.pairwise("site", scale="features").constant == ("f6", "f13")
    assert named.attribution("site", scale="features").share[6] == 0
    assert named.drift("week", reference="first:6", scale="features").constant[0] == "f6"


def test_sparse_rows_and_rows_that_are_dropped():
    x, by = make_rows()
    x = np.where(np.abs(x) < 0.5, 0.0, x)
    options = {"labels": by["site"], "level": 0.9, "scale": "features"}
    whole = cf.cfd(x, **options)
    assert cf.cfd(sparse.csr_array(x), **options).interval == pytest.approx(whole.interval, rel=1e-9)
    lost = np.r_[x, np.full((1, 12), np.inf)]
    with pytest.warns(cf.CrossfusionWarning, match="1 of 241 rows"):
        found = cf.cfd(lost, **(options | {"labels": np.r_[by["site"], 0]}), nan="drop")
    assert found.interval == pytest.approx(whole.interval, rel=1e-9)


def test_many_groups_are_tested_by_reduction_too(monkeypatch):
    x, by = make_rows()
    options = {"permutations": 19, "scale": "features"}
    expected = cf.permutation_test(x, by["unit"], **options)
    monkeypatch.setattr("crossfusion.inference.permutation.grouped_sums.GroupedSums.pays", lambda *_: True)
    found = cf.permutation_test(x, by["unit"], **options)
    np.testing.assert_allclose(found.null, expected.null, rtol=1e-8)


def test_nothing_without_scale_names_one():
    x, by = make_rows()
    summary = cf.summarize(x, by=by)
    results = [summary.cfd("site"), summary.pairwise("site"), summary.hierarchy(["site"]), summary.project("site")]
    results += [summary.attribution("site"), summary.test("site", units="unit", permutations=9)]
    for result in results:
        assert "scale" not in result.to_dict()
        assert "scale" not in repr(result)


def test_the_design_is_standardized_at_its_weights():
    cells = cf.summarize(*make_rows()).rollup("site").moments
    design = Design(cells, np.arange(3), np.zeros(3, int), range(3))
    weight = design.weights("balanced")
    scaled = design.standardize(weight)
    np.testing.assert_allclose((weight / cells.count) @ scaled.cells.sumsq, 1, rtol=1e-12)
    np.testing.assert_allclose(scaled.cells.mean, cells.mean * scaled.scale.factor)
    assert scaled.scale.freedom == pytest.approx(np.sum(cells.count - 1), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x, by: cf.cfd(x, labels=by["site"], scale="rows"), "scale='rows' is not known"),
        (lambda x, by: cf.cfd(x, labels=by["site"], scale=True), "scale=True"),
        (lambda x, by: cf.cfd(x, labels=by["site"], scale="features", trim=0.1), "trim does not go with scale"),
        (lambda x, by: cf.permutation_test(x, by["site"], scale="unit"), "scale='unit' is not known"),
        (lambda x, by: cf.summarize(x, by=by).drift("week", reference="first:4", scale=1), "scale=1"),
        (lambda x, by: cf.cfd(by["site"][:, None] * 1.0, labels=by["site"], scale="features"), "no feature varies"),
        (
            lambda x, by: cf.cfd(x[:20] + 90 * np.random.default_rng(1).normal(size=(4, 12))[by["unit"][:20]],
                                 labels=by["unit"][:20] % 2, units=by["unit"][:20], scale="features"),
            "too few units",
        ),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(call, said):
    x, by = make_rows()
    with pytest.raises(cf.InputError) as caught:
        call(x, by)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_rows_leave_no_unbiased_estimate():
    x, _ = make_rows(6)
    found = cf.cfd(x[:4], labels=[0, 0, 1, 1], scale="features")
    assert found.unbiased is None
    assert "too few rows" in found.reason
    assert found.distance > 0


def test_a_test_says_what_it_divides_by(tmp_path):
    x, labels = dominated()
    np.savez(tmp_path / "rows.npz", x=x, group=labels)
    said = "each feature in units of its standard deviation without regard to groups (of the distance: within groups)"
    assert said in repr(cf.permutation_test(x, labels, scale="features", permutations=19))
    asked = ("test", tmp_path / "rows.npz", "--between", "group", "--permutations", 19, "--scale", "features")
    assert said in run(*asked).stdout


def test_commands_take_the_scale(tmp_path):
    x, labels = dominated()
    files = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for k, file in enumerate(files):
        np.save(file, x[labels == k])
    plain, scaled = (run("compare", *files, *more) for more in ((), ("--scale", "features")))
    assert "pass --scale features" in plain.stdout
    assert "scale: each feature in units of its standard deviation within groups" in scaled.stdout
    found = run_json("compare", *files, "--scale", "features", "--level", "0.95")
    assert found["scale"] == "features"
    assert found["interval"][0] > 0.025
    assert "--scale rows is not known" in run("compare", *files, "--scale", "rows", code=2).stderr
