"""Lenses: what they map rows to, how they compose, what they refuse, and that moments of mapped rows still add up."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

import crossfusion as cf

RNG = np.random.default_rng(7)
ROWS, DIM = 1500, 6
X = RNG.normal(size=(ROWS, DIM)) @ RNG.normal(size=(DIM, DIM)) + 3
SITE = RNG.choice(["A", "B", "C"], ROWS)
X[SITE == "B"] += 0.4
BY = {"site": SITE}
GAPS = X - np.array([X[site == SITE].mean(axis=0) for site in "ABC"])[np.searchsorted(list("ABC"), SITE)]
MAKERS = {
    "unit": lambda x=X: cf.lens.unit(),
    "standardize": lambda x=X: cf.lens.standardize(x, by=BY),
    "whiten": lambda x=X: cf.lens.whiten(x, by=BY),
    "main directions": lambda x=X: cf.lens.whiten(x, by=BY, rank=2),
    "kernel": lambda x=X: cf.lens.kernel(x, features=64),
    "codebook": lambda x=X: cf.lens.codebook(x, regions=5),
    "composed": lambda x=X: cf.lens.standardize(x, by=BY) | cf.lens.codebook(x, regions=3) | cf.lens.unit(),
}
LENSES = {name: make() for name, make in MAKERS.items()}


def labels_of(summary):
    return summary.keys.to_pylist()


# ---- what rows become


def test_unit_vectors_have_length_one_and_zeros_stay():
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [1e200, 1e200], [1e-300, 0.0]])
    np.testing.assert_allclose(np.linalg.norm(cf.lens.unit()(rows), axis=1), [1, 0, 1, 1], rtol=1e-15)


def test_cfs_of_unit_vectors_is_a_ratio_of_squared_mean_lengths():
    found = cf.cfd(X, labels=SITE, lens=cf.lens.unit())
    values = X / np.linalg.norm(X, axis=1, keepdims=True)
    means = np.array([values[site == SITE].mean(axis=0) for site in "ABC"])
    weight = np.array([np.mean(site == SITE) for site in "ABC"])
    expected = (1 - weight @ np.sum(means**2, axis=1)) / (1 - np.sum(values.mean(axis=0) ** 2))
    assert found.score == pytest.approx(expected, rel=1e-12)


def test_standardized_features_have_unit_variance_within_groups():
    mapped = LENSES["standardize"](X)
    within = [mapped[site == SITE] - mapped[site == SITE].mean(axis=0) for site in "ABC"]
    np.testing.assert_allclose(np.sum(np.concatenate(within) ** 2, axis=0) / (ROWS - 3), 1, rtol=1e-12)
    np.testing.assert_allclose(mapped.mean(axis=0), 0, atol=1e-12)


def test_without_groups_all_rows_are_one():
    np.testing.assert_allclose(cf.lens.standardize(X)(X).std(axis=0, ddof=1), 1, rtol=1e-12)


def test_a_summary_is_enough_to_standardize():
    summary = cf.summarize(X, by=BY | {"half": np.arange(ROWS) % 2})
    found = cf.lens.standardize(summary, by="site").steps[0]
    np.testing.assert_allclose(found.scale, LENSES["standardize"].steps[0].scale, rtol=1e-12)


def test_constant_features_are_left_out_by_name():
    frame = pd.DataFrame(np.insert(X, 2, 5.0, axis=1), columns=list("abcdefg"))
    with pytest.warns(cf.CrossfusionWarning, match="constant features are left out: feature c$"):
        lens = cf.lens.standardize(frame, by=BY)
    assert repr(lens) == "Lens: standardize 6 features (feature c constant, left out)"
    np.testing.assert_allclose(lens(frame), LENSES["standardize"](X), rtol=1e-12)
    assert cf.summarize(frame, by=BY, lens=lens).features == tuple("abdefg")


@pytest.mark.parametrize(("rows", "rank", "warns"), [(60, None, True), (600, None, False), (600, 15, False)])
def test_whitening_by_few_rows_is_warned_of(rows, rank, warns):
    x = np.random.default_rng(0).normal(size=(rows, 30))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cf.lens.whiten(x, by={"half": np.arange(rows) % 2}, rank=rank, shrinkage=0.05)
    said = [str(entry.message) for entry in caught]
    assert len(said) == warns
    if warns:
        assert said[0].startswith("whiten estimates 30 directions from 60 rows, so that groups of these rows look")


def test_whitened_rows_have_the_identity_as_covariance_within_groups():
    mapped = cf.lens.whiten(X, by=BY, shrinkage=0.0)(X)
    means = np.array([mapped[site == SITE].mean(axis=0) for site in "ABC"])
    gaps = mapped - means[np.searchsorted(list("ABC"), SITE)]
    np.testing.assert_allclose(gaps.T @ gaps / (ROWS - 3), np.eye(DIM), atol=1e-10)


def test_shrinkage_is_that_of_ledoit_and_wolf():
    sklearn = pytest.importorskip("sklearn.covariance")
    gaps = GAPS / np.sqrt(np.sum(GAPS**2, axis=0) / ROWS)
    expected = sklearn.ledoit_wolf(gaps, assume_centered=True)[1]
    assert LENSES["whiten"].steps[1].shrinkage == pytest.approx(
        expected, rel=0.01
    )  # which divides by rows, not freedom


def test_the_largest_directions_are_whitened_one_by_one_and_the_rest_together():
    loadings = np.array([[1] * 40, [1, -1] * 20])  # features vary alike, and apart
    x = RNG.normal(size=(5000, 40)) + RNG.normal(size=(5000, 2)) * [2, 1] @ loadings
    mapped = cf.lens.standardize(x)(x)
    whitened = cf.lens.whiten(x, rank=2, shrinkage=0.0)(x)
    values = np.linalg.eigvalsh(np.cov(whitened.T))
    assert np.linalg.eigvalsh(np.cov(mapped.T))[-1] > 20
    assert 0.7 < values[0] < values[-1] < 1.35


def test_kernel_features_have_the_inner_products_of_the_kernel():
    lens = cf.lens.kernel(X, features=4096, bandwidth=6.0)
    mapped = lens(X[:40]).astype(np.float64)
    squares = np.sum((X[:40, None] - X[None, :40]) ** 2, axis=2)
    np.testing.assert_allclose(mapped @ mapped.T, np.exp(-squares / 72), atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, rtol=1e-6)


def test_the_bandwidth_is_the_median_distance():
    squares = np.sum((X[:1000, None] - X[None, :1000]) ** 2, axis=2)[np.triu_indices(1000, 1)]
    found = cf.lens.kernel(X[:1000]).steps[0].bandwidth
    assert found == pytest.approx(np.sqrt(np.median(squares)), rel=1e-9)


def test_regions_are_those_of_the_nearest_center_and_rows_stay():
    lens = LENSES["codebook"]
    region = lens.label(X)["region"]
    distance = np.linalg.norm(X[:, None] - lens.steps[0].centers, axis=2)
    np.testing.assert_array_equal(region, distance.argmin(axis=1))
    assert set(region) == set(range(5))
    assert lens(X) is X
    summary = cf.summarize(X, by=BY, lens=lens)
    assert summary.factors == ("site", "region")
    assert sum(row["region"] == 2 for row in labels_of(summary)) == 3
    np.testing.assert_allclose(summary.rollup("site").moments.mean, cf.summarize(X, by=BY).moments.mean, rtol=1e-12)


# ---- composition


def test_composition_applies_one_after_the_other():
    first, second = LENSES["standardize"], cf.lens.unit()
    np.testing.assert_array_equal((first | second)(X), second(first(X)))
    assert (first | second).digest != (second | first).digest
    regions = cf.lens.codebook(X, regions=3, after=first)
    np.testing.assert_array_equal(
        regions.label(X)["region"], cf.lens.codebook(first(X), regions=3).label(first(X))["region"]
    )
    assert [step.kind for step in regions.steps] == ["standardize", "codebook"]


def test_lenses_that_do_not_follow_each_other_are_refused(refuses):
    with refuses("standardize was fitted on 6 features, but the lens before gives 64"):
        LENSES["kernel"] | LENSES["standardize"]
    with refuses("two lenses add the factor 'region'"):
        LENSES["codebook"] | LENSES["codebook"]


# ---- adding up


@pytest.mark.parametrize("name", LENSES)
def test_merged_equals_pooled(name):
    lens = LENSES[name]
    parts = np.array_split(np.arange(ROWS), [1, 40, 700, 701])
    merged = sum(cf.summarize(X[part], by={"site": SITE[part]}, lens=lens) for part in parts)
    whole = cf.summarize(X, by=BY, lens=lens)
    assert labels_of(merged) == labels_of(whole)
    np.testing.assert_array_equal(merged.moments.count, whole.moments.count)
    for mine, theirs in ((merged.moments.mean, whole.moments.mean), (merged.moments.sumsq, whole.moments.sumsq)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    assert merged.lens == whole.lens == lens.digest
    expected = cf.cfd(lens(X), labels=SITE).distance
    assert whole.cfd("site").distance == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["kernel", "codebook"])
def test_a_row_is_mapped_to_the_same_bits_wherever_it_stands(name):
    lens, order = LENSES[name], RNG.permutation(ROWS)
    np.testing.assert_array_equal(lens(X[order]), lens(X)[order])
    np.testing.assert_array_equal(lens(X[:1])[0], lens(X)[0])
    for factor, values in lens.label(X).items():
        np.testing.assert_array_equal(lens.label(X[order])[factor], values[order])


def test_lenses_fitted_twice_are_the_same():
    assert {name: make().digest for name, make in MAKERS.items()} == {
        name: lens.digest for name, lens in LENSES.items()
    }
    assert cf.lens.kernel(X, features=64, seed=1).digest != LENSES["kernel"].digest


@pytest.mark.parametrize("name", LENSES)
def test_pickled_lenses_are_the_same(name):
    again = pickle.loads(pickle.dumps(LENSES[name]))
    assert again.digest == LENSES[name].digest
    np.testing.assert_array_equal(again(X), LENSES[name](X))


def test_summaries_of_different_lenses_do_not_add_up(refuses, tmp_path):
    raw, mapped = (cf.summarize(X, by=BY, lens=lens) for lens in (None, LENSES["unit"]))
    with refuses(f"the lenses differ \\(one summary has none, another has {LENSES['unit'].digest}\\)"):
        raw + mapped
    kernel = cf.summarize(X, by=BY, lens=LENSES["kernel"])
    with refuses("the lenses differ"):
        mapped + kernel
    mapped.write(tmp_path / "s.parquet")
    with refuses("the lenses differ"):
        cf.append_summary(raw, tmp_path / "s.parquet")
    assert cf.read_summary(tmp_path / "s.parquet").lens == LENSES["unit"].digest


# ---- kinds of rows


@pytest.mark.parametrize("name", LENSES)
def test_sparse_rows_and_lists_are_mapped_alike(name):
    lens = LENSES[name]
    expected = cf.summarize(X, by=BY, lens=lens).moments
    for rows in (scipy.sparse.csr_array(X), X.tolist(), np.asfortranarray(X)):
        found = cf.summarize(rows, by=BY, lens=lens).moments
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", LENSES)
def test_rows_that_are_not_finite_are_found_where_they_are(name, refuses):
    bad = X.copy()
    bad[700, 4], bad[900, 1] = np.nan, np.inf
    with refuses(r"NaN or infinite values in 2 of 1500 rows, the first in row 700, feature 4", cf.NonFiniteError):
        cf.summarize(bad, by=BY, lens=LENSES[name])
    kept = np.delete(np.arange(ROWS), [700, 900])
    expected = cf.summarize(X[kept], by={"site": SITE[kept]}, lens=LENSES[name])
    with pytest.warns(cf.CrossfusionWarning, match="rows are left out"):
        found = cf.summarize(bad, by=BY, lens=LENSES[name], nan="drop")
    assert (found.dropped, labels_of(found)) == (2, labels_of(expected))
    np.testing.assert_allclose(found.moments.sumsq, expected.moments.sumsq, rtol=1e-12, atol=1e-12)


def test_a_bad_value_in_a_feature_that_is_left_out_counts(refuses):
    with pytest.warns(cf.CrossfusionWarning, match="constant"):
        lens = cf.lens.standardize(np.insert(X, 0, 1.0, axis=1), by=BY)
    bad = np.insert(X, 0, 1.0, axis=1)
    bad[3, 0] = np.nan
    with refuses("row 3, feature 0", cf.NonFiniteError):
        cf.summarize(bad, by=BY, lens=lens)


def test_rows_that_are_mapped_beyond_numbers_are_refused(refuses):
    lens = cf.lens.standardize(X * 1e-150, by=BY)
    far = X.copy()
    far[5] = 1e300
    with refuses("x has a row that the lens maps beyond the range of float64: leave it out"):
        cf.summarize(far, by=BY, lens=lens)
    with refuses("NaN or infinite values in 1 of 1500 rows, the first in row 5", cf.NonFiniteError):
        cf.cfd(far, labels=SITE, lens=lens)


@pytest.mark.parametrize("name", ["kernel", "codebook", "unit"])
def test_rows_of_any_size_have_features_and_regions(name):
    far = X.copy()
    far[:3] = np.finfo(np.float64).max * np.array([[1.0], [-1.0], [1e-320]])
    far[3] = 5e-324
    assert np.isfinite(LENSES[name](far[:4]) if name != "codebook" else LENSES[name].label(far[:4])["region"]).all()


# ---- names and refusals


def test_names_of_features_pass_through():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    names = {
        name: cf.summarize(frame, by=BY, lens=make(frame)).features
        for name, make in MAKERS.items()
        if name != "main directions"
    }
    assert names["unit"] == names["standardize"] == names["codebook"] == names["composed"] == tuple("abcdef")
    assert names["whiten"] == tuple(f"whitened {name}" for name in "abcdef")
    assert names["kernel"] == tuple(f"kernel {k}" for k in range(64))
    assert cf.summarize(X, by=BY, lens=LENSES["kernel"]).features == names["kernel"]
    assert cf.cfd(frame[:700], frame[700:], lens=LENSES["kernel"]).distance > 0


def test_rows_with_other_features_are_refused(refuses):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    lens = cf.lens.standardize(frame, by=BY)
    assert lens.features == tuple("abcdef")
    with refuses("x has 5 features, but the lens was fitted on 6"):
        cf.summarize(X[:, :5], by=BY, lens=lens)
    with refuses("x does not have the features of the lens: it lacks 'a' and has 'z'"):
        cf.summarize(frame.rename(columns={"a": "z"}), by=BY, lens=lens)
    with refuses("x has the features of the lens in another order: select them in the order of lens.features"):
        cf.cfd(frame[list("bacdef")], labels=SITE, lens=lens)
    np.testing.assert_array_equal(lens(X), lens(frame))  # an array has no names


def test_constant_features_that_tell_groups_apart_are_named_as_such():
    x = np.column_stack([X, np.where(SITE == "A", 0.1, -0.1), np.ones(ROWS)])
    with pytest.warns(cf.CrossfusionWarning) as warned:
        cf.lens.standardize(x, by=BY)
    said = [str(entry.message) for entry in warned]
    assert said[0] == "constant features are left out: feature 7"
    assert "differ between them, are left out: feature 6: compare without the lens, too" in said[1]


def test_constant_features_whose_means_cancel_are_left_out():
    moments = cf.Moments(np.array([3.0, 3.0]), np.array([[0.0, 0.1], [1.0, -0.1]]), np.array([[1.0, 1e-34]] * 2))
    summary = cf.Summary(pa.table({"site": ["A", "B"]}), moments)
    with pytest.warns(cf.CrossfusionWarning, match="differ between them, are left out: feature 1"):
        assert cf.lens.standardize(summary).steps[0].left_out == (1,)


def test_a_summary_says_through_which_lens_rows_were_seen():
    lens = LENSES["standardize"]
    assert f"rows seen through the lens {lens.digest}" in repr(cf.summarize(X, by=BY, lens=lens))
    assert "lens" not in repr(cf.summarize(X, by=BY))


def test_a_lens_before_is_named_in_the_message(refuses):
    with refuses("^after=3 is not a lens"):
        cf.lens.kernel(X, after=3)


@pytest.mark.parametrize("lens", ["unit", 3, cf.lens.unit])
def test_what_is_not_a_lens_is_refused(lens, refuses):
    for ask in (
        lambda: cf.summarize(X, by=BY, lens=lens),
        lambda: cf.cfd(X, labels=SITE, lens=lens),
        lambda: cf.permutation_test(X, SITE, lens=lens),
        lambda: cf.dispersion_test(X, SITE, lens=lens),
        lambda: cf.Report(X, by=BY, between="site", lens=lens),
        lambda: cf.lens.standardize(X, after=lens),
    ):
        with refuses("is not a lens: pass one such as crossfusion.lens.unit"):
            ask()


def test_a_factor_that_is_added_needs_a_summary(refuses):
    lens = LENSES["codebook"]
    for ask in (lambda: cf.cfd(X, labels=SITE, lens=lens), lambda: cf.permutation_test(X, SITE, lens=lens)):
        with refuses("lens adds the factor 'region', which is of use in a summary only: pass it to summarize"):
            ask()
    with refuses("the lens adds the factor 'region', which the rows have already: rename theirs"):
        cf.summarize(X, by={"region": SITE}, lens=lens)
    with refuses("tags has 'region', which is a factor too"):
        cf.summarize(X, by=BY, lens=lens, tags={"region": "north"})


REFUSED = {
    "odd features": (lambda: cf.lens.kernel(X, features=7), "features=7 must be even"),
    "many features": (lambda: cf.lens.kernel(X, features=10**9), "features=1000000000 must be at most 65,536"),
    "no bandwidth": (lambda: cf.lens.kernel(X, bandwidth="mean"), "bandwidth='mean' is not known"),
    "bandwidth of 0": (lambda: cf.lens.kernel(X, bandwidth=0), "bandwidth=0 must be a finite number above 0"),
    "narrow": (
        lambda: cf.lens.kernel(X, bandwidth=1e-6),
        "bandwidth=1e-06 is too far from the median distance of rows",
    ),
    "wide": (lambda: cf.lens.kernel(X, bandwidth=1e9), "pass a number near it, or 'median'"),
    "tiny rows": (lambda: cf.lens.codebook(X * 1e-300, regions=3), "has rows whose squared distances are 0 in float64"),
    "lost directions": (
        lambda: cf.lens.whiten(RNG.normal(size=(20, 50)), by={"half": np.arange(20) % 2}, rank=19, shrinkage=0.0),
        "rank=19 is more than the 18 directions that rows vary along",
    ),
    "no rest": (
        lambda: cf.lens.whiten(RNG.normal(size=(20, 50)), by={"half": np.arange(20) % 2}, rank=18, shrinkage=0.0),
        "leaves a direction without variance",
    ),
    "equal rows": (lambda: cf.lens.kernel(np.ones((9, 2))), "bandwidth cannot be the median distance, which is 0"),
    "one region": (lambda: cf.lens.codebook(X, regions=1), "regions=1 must be a whole number, 2 or more"),
    "few rows": (lambda: cf.lens.codebook(X[:4], regions=5), "regions=5 is more than there are different rows"),
    "high rank": (lambda: cf.lens.whiten(X, rank=7), "rank=7 is more than the 6 features that vary"),
    "shrinkage": (lambda: cf.lens.whiten(X, shrinkage=2), "shrinkage=2 must be a number from 0 to 1"),
    "sums": (lambda: cf.lens.whiten(X[:, [0, 1, 1]], shrinkage=0.0), "leaves a direction without variance"),
    "single rows": (lambda: cf.lens.standardize(X, by={"row": np.arange(ROWS)}), "has one row per group"),
    "constant": (lambda: cf.lens.standardize(np.ones((9, 2))), "has no feature that varies within groups"),
    "negative seed": (lambda: cf.lens.kernel(X, seed=-1), "seed=-1 must be a whole number, 0 or more"),
    "nan": (lambda: cf.lens.kernel(np.where(X > 5, np.nan, X)), "has NaN or infinite values"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_options_are_refused(name, refuses):
    ask, said = REFUSED[name]
    with refuses(said):
        ask()
