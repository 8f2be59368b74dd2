"""Labels from pandas belong to the rows with the same index, wherever labels meet rows."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import crossfusion as cf
from crossfusion.sklearn import cross_fusion_distance

rng = np.random.default_rng(3)
ROWS = 240
SITE = np.repeat(["A", "B", "C", "D"], ROWS // 4)
LABEL = np.tile([0, 1], ROWS // 2)
UNIT = np.repeat(np.arange(ROWS // 6), 6)
X = rng.normal(size=(ROWS, 4)) + (SITE == "B")[:, None] + 2.0 * LABEL[:, None]
INDEX = [f"row{k}" for k in range(ROWS)]
FRAME = pd.DataFrame(X, index=INDEX, columns=list("abcd"))
ORDER = rng.permutation(ROWS)
SHUFFLED = FRAME.iloc[ORDER]


def series(values, index=INDEX):
    return pd.Series(values, index=index)


def study(x, y, site):
    corrected = {"none": "none", "own": pd.DataFrame(X - X.mean(axis=0), index=INDEX) if isinstance(x, type(FRAME)) else
                 (X - X.mean(axis=0))[ORDER]}  # fmt: skip
    found = cf.degradation_study(x, y, site, distances=["cfd"], corrections=corrected, folds=2, permutations=9)
    return [(outcome.correction, outcome.distances["cfd"], outcome.cross) for outcome in found.outcomes]


ASKED = {
    "cfd": lambda x, site, label, unit: cf.cfd(x, labels=site, given=label, units=unit, level=0.9),
    "cfd of a pair": lambda x, _, __, unit: cf.cfd(x, X, units=(unit, UNIT[::-1]), level=0.9),
    "permutation_test": lambda x, site, label, unit: (
        cf.permutation_test(x, site, given=label, units=unit, permutations=9).statistic
    ),
    "pairs": lambda x, _, label, unit: cf.permutation_test(x, label, pairs=unit, permutations=9).statistic,
    "separability": lambda x, site, _, unit: cf.separability(x, site, units=unit).accuracy,
    "one_vs_rest": lambda x, site, label, unit: (
        {k: f.interval for k, f in cf.one_vs_rest(x, site, given=label, units=unit, level=0.9).items()}
    ),
    "dispersion_test": lambda x, site, label, unit: cf.dispersion_test(x, site, units=unit, permutations=9).statistic,
    "summarize": lambda x, site, label, _: cf.summarize(x, by={"site": site, "label": label}).moments.mean.tolist(),
    "Moments.of": lambda x, _, label, __: cf.Moments.of(x, frequency=label).mean.tolist(),
    "combat": lambda x, site, label, _: cf.corrections["combat"](x, site, covariate=label).tolist(),
    "center": lambda x, site, *_: cf.corrections["center"](x, site).tolist(),
    "rdr": lambda x, site, _, unit: cf.rdr(x, site, units=unit).to_dict(),
    "cddr": lambda x, site, label, unit: cf.cddr(x, label, site, units=unit, folds=2, draws=9).to_dict(),
    "degradation_study": lambda x, site, label, _: study(x, label, site),
    "project": lambda x, site, *_: (
        cf.summarize(X, by={"site": SITE}).project("site", rows=x, labels=site).points.tolist()
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_labels_follow_the_index_of_shuffled_rows(name):
    columns = SITE, LABEL, UNIT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = ASKED[name](X[ORDER], *(values[ORDER] for values in columns))
        assert ASKED[name](SHUFFLED, *map(series, columns)) == expected


@pytest.mark.parametrize("name", ASKED)
def test_an_index_that_does_not_match_is_refused(name, refuses):
    other = [f"other{k}" for k in range(ROWS)]
    with refuses(r"pandas index that has other entries than the index of .*: pass .*to_numpy\(\)"):
        ASKED[name](SHUFFLED, *(series(values, other) for values in (SITE, LABEL, UNIT)))


def test_equal_indexes_and_arrays_go_by_position():
    repeated = FRAME.set_axis(["same"] * ROWS)
    expected = cf.cfd(X, labels=SITE)
    for x, labels in (
        (repeated, series(SITE, ["same"] * ROWS)),
        (FRAME, SITE),
        (FRAME, list(SITE)),
        (X, series(SITE, ORDER)),
        (FRAME, pl.Series(SITE)),
        (FRAME, pd.Categorical(SITE)),
    ):
        assert cf.cfd(x, labels=labels) == expected


def test_repeated_index_entries_in_another_order_are_refused(refuses):
    index = np.repeat(np.arange(ROWS // 2), 2)
    with refuses("labels has a pandas index that differs from the index of x and repeats entries"):
        cf.cfd(FRAME.set_axis(index), labels=series(SITE, index[::-1]))


def test_columns_in_different_orders_are_refused_beside_plain_rows(refuses):
    with refuses("units has a pandas index that is in another order than the index of labels"):
        cf.cfd(X, labels=series(SITE), units=series(UNIT).iloc[ORDER], level=0.9)
    assert cf.cfd(X, labels=series(SITE), units=pd.Series(UNIT), level=0.9) == cf.cfd(
        X, labels=SITE, units=UNIT, level=0.9
    )


def test_scikit_learn_goes_by_position_and_refuses_another_index(refuses):
    assert cross_fusion_distance(FRAME, series(SITE)) == cross_fusion_distance(X, SITE)
    with refuses("labels has a pandas index that differs from the index of X"):
        cross_fusion_distance(SHUFFLED, series(SITE))


def test_a_manifest_without_a_key_follows_the_index(refuses):
    rows = pd.DataFrame({"v": list(X)}, index=INDEX)
    manifest = pd.DataFrame({"site": SITE}, index=INDEX)
    expected = cf.summarize(X, by={"site": SITE})
    found = cf.summarize(rows.iloc[ORDER], by="site", manifest=manifest)
    np.testing.assert_allclose(found.moments.mean, expected.moments.mean)
    with refuses("manifest has a pandas index that has other entries"):
        cf.summarize(rows, by="site", manifest=manifest.reset_index(drop=True))


VECTORS = {
    "arrays": pd.Series(list(X)),
    "lists": pd.Series(X.tolist()),
    "narrow": pd.Series(list(X.astype("float32"))),
    "polars": pl.Series(X.tolist()),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_column_of_vectors_is_rows(name):
    expected = cf.cfd(np.array(VECTORS[name].to_list()), labels=SITE)
    assert cf.cfd(VECTORS[name], labels=SITE).distance == pytest.approx(expected.distance, rel=1e-6)
    assert cf.cfd(VECTORS[name], VECTORS[name]).distance == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0], [1.0, 2.0]], "vectors of unequal length"),
        ([[[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]]], "vectors of unequal length"),
        ([[1.0], None], "has no vector in 1 of 2 rows, first in row 1"),
        ([[[1.0]], [[1.0]]], "must be two-dimensional"),
        ([["a"], ["b"]], "must hold numbers"),
        (["a", "b"], "must hold numbers"),
    ],
)
def test_columns_of_other_things_are_refused(vectors, message, refuses):
    with refuses(message):
        cf.cfd(pd.Series(vectors), labels=[0, 1])
