"""Separability: against scikit-learn, on data with a known answer, and where there is none."""

import json

import numpy as np
import pytest
from sklearn.covariance import LedoitWolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crossfusion as cf
from crossfusion.arrays.discriminant import fit_discriminants, shrink_covariance


class Pooled:
    """The covariance that scikit-learn should use, whatever rows of a class it passes."""

    def __init__(self, covariance):
        self.covariance = covariance

    def fit(self, _rows):
        self.covariance_ = self.covariance
        return self


def patients(groups=2, units=20, rows=10, dim=6, shift=1.0, icc=0.3, seed=0):
    """Rows of patients of groups, each of which is shifted along a feature of its own."""
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(groups * units), rows)
    site = unit // units
    x = np.sqrt(icc) * rng.normal(size=(groups * units, dim))[unit] + np.sqrt(1 - icc) * rng.normal(
        size=(len(unit), dim)
    )
    x[np.arange(len(x)), site % dim] += shift
    return x, site, unit


def test_discriminants_are_those_of_scikit_learn():
    x, site, _ = patients(3)
    fitted = fit_discriminants(x, site, 3)
    scale = np.sqrt(np.mean([x[site == k].var(axis=0) for k in range(3)], axis=0))
    residuals = (x - np.array([x[site == k].mean(axis=0) for k in range(3)])[site]) / scale
    covariance = LedoitWolf(assume_centered=True).fit(residuals).covariance_
    np.testing.assert_allclose(shrink_covariance(residuals), covariance, atol=2e-6)
    scaled = (x - x.mean(axis=0)) / scale
    theirs = LinearDiscriminantAnalysis("lsqr", covariance_estimator=Pooled(covariance), priors=np.full(3, 1 / 3))
    ours = fitted.score(x, np.arange(3))
    expected = theirs.fit(scaled, site).decision_function(scaled)
    np.testing.assert_allclose(ours - ours[:, :1], expected - expected[:, :1], rtol=1e-4, atol=1e-4)


def test_shrinkage_keeps_more_features_than_rows_apart_from_noise():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 100))
    np.testing.assert_allclose(shrink_covariance(x), LedoitWolf(assume_centered=True).fit(x).covariance_, atol=2e-6)


@pytest.mark.parametrize("groups", [2, 4])
def test_accuracy_and_auc_are_near_those_of_plain_scikit_learn(groups):
    x, site, unit = patients(groups, units=30)
    found = cf.separability(x, site, units=unit)
    model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis("lsqr", shrinkage="auto"))
    folds = StratifiedGroupKFold(5, shuffle=True, random_state=0)
    posterior = cross_val_predict(model, x, site, groups=unit, cv=folds, method="predict_proba")
    assert found.accuracy == pytest.approx(balanced_accuracy_score(site, posterior.argmax(axis=1)), abs=0.03)
    auc = [roc_auc_score(site == k, posterior[:, k]) for k in range(groups)]
    assert found.auc == pytest.approx(np.mean(auc), abs=0.02)
    for k, each in enumerate(found.one_vs_rest):
        assert (each.group_a, each.group_b) == (k, None)
        assert each.auc == pytest.approx(auc[k], abs=0.04)


def test_rows_without_units_are_held_out_one_by_one_with_a_caution():
    x, site, _ = patients(2, units=300, rows=1, icc=0)
    found = cf.separability(x, site)
    model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis("lsqr", shrinkage="auto"))
    theirs = cross_val_predict(model, x, site, cv=StratifiedKFold(5, shuffle=True, random_state=0))
    assert found.accuracy == pytest.approx(balanced_accuracy_score(site, theirs), abs=0.02)
    assert (found.by, found.units, found.rows, found.folds) == ("rows", 600, 600, 5)
    assert "as if they were independent" in found.caution
    assert cf.separability(x, site, units=np.arange(600)).caution is None


def test_patients_that_are_recognized_themselves_do_not_count():
    """Rows of a patient are alike, sites are not: held out by row, a classifier would recognize patients."""
    x, site, unit = patients(2, units=8, rows=40, dim=40, shift=0.0, icc=0.7)
    honest, naive = cf.separability(x, site, units=unit), cf.separability(x, site)
    assert naive.accuracy > 0.85
    assert honest.interval[0] < 0.5 < honest.interval[1]


def test_known_accuracy_of_two_normal_groups():
    """Groups 2 apart in one feature of standard deviation 1: Φ(1) = 84.1%, AUC Φ(√2) = 92.1%."""
    rng = np.random.default_rng(1)
    x, site = rng.normal(size=(20_000, 4)), np.repeat(["A", "B"], 10_000)
    x[10_000:, 2] += 2
    found = cf.separability(x, site)
    assert found.accuracy == pytest.approx(0.8413, abs=0.006)
    assert found.auc == pytest.approx(0.9214, abs=0.005)
    assert found.interval[0] < 0.8413 < found.interval[1]
    assert found.auc_interval[0] < 0.9214 < found.auc_interval[1]


@pytest.mark.parametrize(("units", "rows"), [(6, 10), (40, 1)])
def test_intervals_hold_chance_where_there_is_nothing_to_recognize(units, rows):
    held = []
    for seed in range(60):
        x, site, unit = patients(2, units=units, rows=rows, shift=0.0, seed=seed)
        low, high = cf.separability(x, site, units=unit, seed=seed).interval or (1.0, 0.0)
        held.append(low <= 0.5 <= high)
    assert np.mean(held) >= 0.9


def test_perfect_recognition_has_an_interval_that_few_units_widen():
    few, many = (
        cf.separability(*patients(2, units=number, shift=50.0)[:2], units=patients(2, units=number)[2])
        for number in (5, 50)
    )
    assert few.accuracy == many.accuracy == few.auc == 1.0
    assert few.interval[0] < many.interval[0] < 1.0 == few.interval[1]
    assert few.describe().endswith("(65–100%); chance 50%")


def test_pairs_differ_as_groups_do():
    x, site, unit = patients(3, shift=0.0)
    x[site == 2, 0] += 4
    found = cf.separability(x, site, units=unit)
    pairs = {(pair.group_a, pair.group_b): pair for pair in found.pairs}
    assert pairs[0, 2].accuracy > 0.95 < pairs[1, 2].accuracy
    assert pairs[0, 1].lower < 0.5 < pairs[0, 1].upper
    assert found.one_vs_rest[2].accuracy > 0.95
    assert found.chance == pytest.approx(1 / 3)


# ---- adjusted


def test_what_strata_differ_in_is_not_recognized_when_adjusted():
    rng = np.random.default_rng(3)
    tissue = rng.random(4000) < 0.5
    site = (rng.random(4000) < np.where(tissue, 0.8, 0.2)).astype(int)
    x = rng.normal(size=(4000, 5)) + 3.0 * tissue[:, None]
    assert cf.separability(x, site).accuracy > 0.75
    found = cf.separability(x, site, given=tissue)
    assert found.interval[0] < 0.5 < found.interval[1]


def test_a_shift_that_differs_between_strata_is_recognized_within_them():
    rng = np.random.default_rng(4)
    tissue, site = rng.integers(0, 2, (2, 4000))
    x = rng.normal(size=(4000, 5))
    x[:, 0] += np.where(tissue == 1, 2.0, -2.0) * (site - 0.5)
    assert cf.separability(x, site).accuracy < 0.55
    assert cf.separability(x, site, given=tissue).accuracy == pytest.approx(0.841, abs=0.02)


def test_groups_are_compared_within_the_strata_they_share():
    x, site, unit = patients(3, units=12)
    stratum = np.where(site == 2, "own", "shared")
    found = cf.separability(x, site, given=stratum, units=unit)
    assert found.chance == 0.5
    assert found.overlap == pytest.approx(2 / 3)
    pairs = {(pair.group_a, pair.group_b): pair.accuracy for pair in found.pairs}
    assert pairs[0, 2] is pairs[1, 2] is found.one_vs_rest[2].accuracy is None
    assert pairs[0, 1] == pytest.approx(found.accuracy)
    assert "rests on few rows" in found.caution


def test_a_confounded_design_has_no_accuracy():
    x, site, unit = patients()
    with pytest.warns(cf.CrossfusionWarning, match="fully confounded"):
        found = cf.separability(x, site, given=site, units=unit)
    assert (found.accuracy, found.interval, found.auc, found.pairs, found.rows) == (None, None, None, (), 0)
    assert found.reason in found.describe()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["accuracy"] is None
    with pytest.raises(cf.InputError, match="there is no accuracy"):
        float(found)
    with pytest.raises(cf.InputError, match="nothing to draw"):
        found.plot()


# ---- units, samples, bad input


def test_units_in_several_groups_are_held_out_whole():
    rng = np.random.default_rng(5)
    slide, scanner = np.repeat(np.arange(30), 20), np.tile([0, 1], 300)
    x = 5 * rng.normal(size=(30, 6))[slide] + rng.normal(size=(600, 6))
    found = cf.separability(x, scanner, units=slide)
    assert found.units == 30
    assert found.interval[0] < 0.5 < found.interval[1]


def test_groups_of_one_unit_are_left_out_and_named():
    x, site, unit = patients(3)
    unit = np.where(site == 1, -1, unit)
    with pytest.warns(cf.CrossfusionWarning, match="left out"):
        found = cf.separability(x, site, units=unit)
    assert [(entry.group, entry.units) for entry in found.excluded] == [(1, 1)]
    assert found.groups == (0, 2)


def test_few_units_are_a_caution_and_an_auc_without_a_common_part_is_none():
    x, site, unit = patients(2, units=3)
    assert "only 3 units" in cf.separability(x, site, units=unit).caution


def test_large_data_are_sampled_evenly_and_the_seed_decides():
    rng = np.random.default_rng(6)
    site = np.repeat(["rare", "common"], [2_000, 58_000])
    x = rng.normal(size=(60_000, 3))
    x[:2_000] += 1.5
    found = cf.separability(x, site)
    assert found.rows == 20_000
    assert found.accuracy == pytest.approx(0.903, abs=0.01)  # Φ(1.5 √3 / 2)
    assert found == cf.separability(x, site)
    assert found.accuracy != cf.separability(x, site, seed=1).accuracy


@pytest.mark.parametrize("case", ["constant", "offset", "scales"])
def test_features_of_any_kind(case):
    x, site, unit = patients(2, shift=3.0)
    expected = cf.separability(x, site, units=unit).accuracy
    changed = {
        "constant": np.column_stack([x, np.full(len(x), 7.0)]),
        "offset": x + 1e6,
        "scales": x * np.array([1e-6, 1e6, 1, 1, 1, 1]),
    }[case]
    assert cf.separability(changed, site, units=unit).accuracy == pytest.approx(expected, abs=0.005)


def test_groups_that_differ_in_a_feature_constant_within_are_recognized():
    x, site, unit = patients(2, shift=0.0)
    assert cf.separability(np.column_stack([x, site]), site, units=unit).accuracy == 1.0


def test_equal_rows_are_recognized_by_chance():
    found = cf.separability(np.ones((40, 2)), np.repeat([0, 1], 20))
    assert (found.accuracy, found.auc) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": 2}, "level=2 must be a confidence level"),
        ({"seed": -1}, "seed=-1 must be a whole number"),
        ({"min_units": 1}, "min_units=1 must be a whole number, 2 or more"),
        ({"units": [1, 2]}, "units has 2 entries for 400 rows of x: pass one entry per row"),
        ({"given": [1, 2]}, "differ in length"),
    ],
)
def test_bad_arguments_are_named(options, said):
    x, site, _ = patients()
    with pytest.raises(cf.InputError, match=said):
        cf.separability(x, site, **options)


def test_bad_rows_are_named():
    x, site, unit = patients()
    with pytest.raises(cf.InputError, match="only one group"):
        cf.separability(x, np.zeros(len(x)))
    with pytest.raises(cf.InputError, match="fewer than two groups remain"):
        cf.separability(x, site, units=site)
    x[3, 2] = np.nan
    with pytest.raises(cf.NonFiniteError):
        cf.separability(x, site, units=unit)
    with pytest.raises(cf.InputError, match="1,001 groups"):
        cf.separability(np.arange(2002.0)[:, None], np.repeat(np.arange(1001), 2))


# ---- how it reads


def test_sentence_table_and_frame_agree():
    x, site, unit = patients(4, units=12)
    found = cf.separability(x, np.array(["Aarhus", "Bonn", "Cork", "Delft"])[site], units=unit, level=0.9)
    sentence = found.describe("site", "patient")
    assert sentence.startswith("a linear classifier recognizes the site of a row of an unseen patient in ")
    assert f"{100 * found.accuracy:.0f}% (" in sentence
    assert sentence.endswith("; chance 25%")
    assert repr(found).startswith("a linear classifier recognizes the group of a row of an unseen unit in ")
    frame = found.to_frame()
    assert frame["comparison"].tolist() == ["overall"] + ["one_vs_rest"] * 4 + ["pair"] * 6
    assert frame["accuracy"][0] == found.accuracy == float(found)
    assert frame["upper"].iloc[-1] == found.pairs[-1].upper
    np.testing.assert_allclose(frame["auc"][0], frame["auc"][1:5].mean())
