"""Corrections: what each makes equal, what it leaves alone, and what it refuses."""

import numpy as np
import pytest

import crossfusion as cf
from crossfusion.evaluation.correctors.domains import as_domains
from tests.helpers.missing_libraries import without

CENTRING = ("center", "standardize", "coral", "subspace")


def domains(seed=0, sizes=(60, 90, 40), dim=5):
    """Rows of domains that differ in mean, scale and covariance."""
    draw = np.random.default_rng(seed)
    name = np.repeat(["A", "B", "C"][: len(sizes)], sizes)
    parts = [draw.normal(size=(n, dim)) @ draw.normal(size=(dim, dim)) + 3 * draw.normal(size=dim) for n in sizes]
    order = draw.permutation(len(name))
    return np.concatenate(parts)[order], name[order]


def covariance(rows):
    return np.cov(rows.T, ddof=0)


@pytest.mark.parametrize("method", CENTRING)
def test_a_common_mean_brings_cfd_to_zero_by_construction(method):
    x, name = domains()
    before = cf.cfd(x, labels=name).distance
    assert before > 0.1
    assert cf.cfd(cf.correct(x, name, method), labels=name).distance < 1e-20


def test_none_changes_nothing_and_copies():
    x, name = domains()
    found = cf.correct(x, name, "none")
    assert np.array_equal(found, x)
    assert found is not x


def test_centring_moves_whole_domains():
    x, name = domains()
    moved = cf.correct(x, name, "center")
    assert moved.mean(axis=0) == pytest.approx(x.mean(axis=0))
    for one in "ABC":
        shift = (moved - x)[name == one]
        assert np.ptp(shift, axis=0) == pytest.approx(0, abs=1e-12)
    to_b = cf.correct(x, name, "center", reference="B")
    assert to_b[name == "B"] == pytest.approx(x[name == "B"])
    assert to_b[name == "A"].mean(axis=0) == pytest.approx(x[name == "B"].mean(axis=0))


def test_standardised_features_have_one_scale_and_flat_ones_none():
    x, name = domains()
    x[name == "A", 2] = 7.1
    found = cf.correct(x, name, "standardize")
    for one in "ABC":
        own = found[name == one]
        assert own.mean(axis=0) == pytest.approx(0, abs=1e-12)
        assert own.std(axis=0) == pytest.approx([1, 1, 0 if one == "A" else 1, 1, 1])
    like_b = cf.correct(x, name, "standardize", reference="B")
    assert like_b[name == "B"] == pytest.approx(x[name == "B"])
    assert like_b[name == "C"].std(axis=0) == pytest.approx(x[name == "B"].std(axis=0))


def test_coral_gives_all_domains_one_covariance():
    x, name = domains()
    found = cf.correct(x, name, "coral", ridge=1e-9)
    within = sum(np.sum(name == one) * covariance(x[name == one]) for one in "ABC") / len(x)
    for one in "ABC":
        assert covariance(found[name == one]) == pytest.approx(within, abs=1e-5)
    like_c = cf.correct(x, name, "coral", reference="C", ridge=1e-9)
    assert np.array_equal(like_c[name == "C"], x[name == "C"])
    assert covariance(like_c[name == "A"]) == pytest.approx(covariance(x[name == "C"]), abs=1e-5)


def test_coral_is_the_published_formula_on_standard_features():
    from scipy.linalg import sqrtm

    x, name = domains(sizes=(60, 90))
    x = np.concatenate([(x[name == one] - x[name == one].mean(0)) / x[name == one].std(0) for one in "AB"])
    name = np.repeat(["A", "B"], [60, 90])
    whiten, colour = (covariance(x[name == one]) + np.eye(5) for one in "AB")
    expected = x[name == "A"] @ np.linalg.inv(sqrtm(whiten)) @ sqrtm(colour)
    assert cf.correct(x, name, "coral", reference="B")[name == "A"] == pytest.approx(expected)


@pytest.mark.parametrize("method", ["coral", "subspace", "combat"])
def test_fewer_rows_than_features(method):
    x, name = domains(sizes=(12, 9), dim=40)
    found = cf.correct(x, name, method)
    assert np.isfinite(found).all()
    assert cf.cfd(found, labels=name).distance < cf.cfd(x, labels=name).distance
    assert found.shape == (21, 8 if method == "subspace" else 40)


def test_subspaces_are_aligned_as_published():
    from sklearn.decomposition import PCA

    x, name = domains()
    found = cf.correct(x, name, "subspace", reference="B", dim=2)
    axes = {one: PCA(2).fit(x[name == one]).components_.T for one in "AB"}
    centred = x[name == "A"] - x[name == "A"].mean(axis=0)
    expected = centred @ axes["A"] @ axes["A"].T @ axes["B"]
    assert np.abs(found[name == "A"]) == pytest.approx(np.abs(expected))  # the signs of axes are free
    own = (x[name == "B"] - x[name == "B"].mean(axis=0)) @ axes["B"]
    assert np.abs(found[name == "B"]) == pytest.approx(np.abs(own))


def combat_by_the_book(x, name):
    """Johnson, Li and Rabinovic (2007), section 3.1 and 3.2, one feature and batch at a time."""
    n, features = x.shape
    kinds = sorted(set(name))
    mean = {i: x[name == i].mean(axis=0) for i in kinds}
    alpha = sum(np.sum(name == i) / n * mean[i] for i in kinds)
    sigma = np.sqrt(sum(((x[name == i] - mean[i]) ** 2).sum(axis=0) for i in kinds) / n)
    z = (x - alpha) / sigma
    adjusted = np.empty_like(x)
    for i in kinds:
        own = z[name == i]
        gamma, delta = own.mean(axis=0), own.var(axis=0, ddof=1)
        bar, tau2 = gamma.mean(), gamma.var(ddof=1)
        v, s2 = delta.mean(), delta.var(ddof=1)
        shape, scale = (v**2 + 2 * s2) / s2, (v**3 + v * s2) / s2
        for g in range(features):
            location, spread = gamma[g], delta[g]
            for _ in range(500):
                location = (len(own) * tau2 * gamma[g] + spread * bar) / (len(own) * tau2 + spread)
                spread = (scale + 0.5 * ((own[:, g] - location) ** 2).sum()) / (len(own) / 2 + shape - 1)
            adjusted[name == i, g] = sigma[g] / np.sqrt(spread) * (own[:, g] - location) + alpha[g]
    return adjusted


def test_combat_is_the_published_formula():
    x, name = domains(dim=8)
    assert cf.correct(x, name, "combat") == pytest.approx(combat_by_the_book(x, name), abs=1e-5)


def test_combat_keeps_a_covariate_where_domains_differ_in_it():
    draw = np.random.default_rng(0)
    name = np.repeat(["A", "B"], 200)
    tissue = np.concatenate([draw.random(200) < 0.8, draw.random(200) < 0.2]).astype(int)
    x = draw.normal(size=(400, 10)) + 2 * tissue[:, None] + np.where(name == "B", 1.5, 0.0)[:, None]
    kept = cf.correct(x, name, "combat", covariate=tissue)
    blind = cf.correct(x, name, "combat")
    apart = {key: cf.cfd(rows, labels=tissue).distance for key, rows in {"kept": kept, "blind": blind}.items()}
    assert apart["kept"] > 1.3 * apart["blind"]
    assert cf.cfd(kept, labels=name, given=tissue).distance < 0.01
    with pytest.raises(cf.InputError, match="covariate cannot be told apart from domain"):
        cf.correct(x, name, "combat", covariate=name)


def test_combat_leaves_a_reference_and_flat_features():
    x, name = domains()
    found = cf.correct(x, name, "combat", reference="B")
    assert np.array_equal(found[name == "B"], x[name == "B"])
    assert cf.cfd(found, labels=name).distance < 0.05 * cf.cfd(x, labels=name).distance
    x[:, 3] = np.where(name == "A", 2.0, 5.0)
    flat = cf.correct(x, name, "combat")
    assert np.isfinite(flat).all()
    assert np.ptp(flat[:, 3]) == pytest.approx(0, abs=1e-9)


def test_harmony_is_named_where_it_is_missing(python):
    code = """
import numpy as np, crossfusion as cf
try:
    cf.correct(np.eye(6), [0, 1] * 3, "harmony")
except cf.MissingDependencyError as problem:
    print(problem)
"""
    expected = "the correction 'harmony' needs harmonypy, which is not installed: pip install harmonypy"
    assert python(without("harmonypy") + code) == expected


def test_harmony_where_it_is_installed():
    pytest.importorskip("harmonypy", reason="under the GPL, so no dependency: pip install harmonypy")
    x, name = domains(sizes=(80, 80))
    found = cf.correct(x, name, "harmony")
    assert found.shape == x.shape
    assert cf.cfd(found, labels=name).distance < cf.cfd(x, labels=name).distance


def test_what_cannot_be_corrected_is_refused(refuses):
    x, name = domains()
    with refuses("no correction 'corall': did you mean 'coral'"):
        cf.correct(x, name, "corall")
    with refuses("the correction 'center' has no option 'ridge'"):
        cf.correct(x, name, "center", ridge=1)
    with refuses("reference names 'Z', which is not a domain: there are 'A', 'B', 'C'"):
        cf.correct(x, name, "coral", reference="Z")
    with refuses("at least two domains"):
        cf.correct(x, ["A"] * len(x), "center")
    with refuses("domain has 3 entries for 190 rows"):
        cf.correct(x, ["A", "B", "C"], "center")
    with refuses("domain has 1 missing values"):
        cf.correct(x, [None, *name[1:]], "center")
    with refuses("ridge=0"):
        cf.correct(x, name, "coral", ridge=0)
    with refuses("dim=6 is more than the 5 axes"):
        cf.correct(x, name, "subspace", dim=6)
    with refuses("domain 'D' has one row"):
        cf.correct(np.vstack([x, x[:1]]), [*name, "D"], "combat")
    x[3, 1] = np.nan
    with refuses("x has NaN or infinite values", cf.NonFiniteError):
        cf.correct(x, name, "center")


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_rows_of_any_width_are_compared_with_what_can_be_squared(kind):
    found = as_domains(np.ones((4, 2), kind), ["a", "a", "b", "b"])  # warnings are errors here
    assert found.x.dtype == np.float64


@pytest.mark.parametrize(("old", "new"), [("centre", "center"), ("standardise", "standardize")])
def test_spellings_of_version_0_1_are_accepted_and_not_listed(old, new):
    x, name = np.arange(12.0).reshape(6, 2) ** 2, ["A", "A", "A", "B", "B", "B"]
    assert new in cf.corrections
    assert old not in list(cf.corrections)
    assert cf.corrections[old] is cf.corrections[new]
    np.testing.assert_array_equal(cf.correct(x, name, old), cf.correct(x, name, new))
    with pytest.raises(KeyError):
        cf.corrections["neither"]
