"""Scores beside scikit-learn's: the same calls, the same refusals, and arrays of any library where they are."""

import math

import array_api_strict as strict
import jax
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import calinski_harabasz_score, silhouette_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crossfusion as cf
from crossfusion.sklearn import cross_fusion_distance, cross_fusion_score
from tests.helpers.missing_libraries import without

draw = np.random.default_rng(0)
LABELS = draw.integers(0, 4, 90)
GIVEN = draw.integers(0, 2, 90)
X = draw.normal(size=(90, 5)) + draw.normal(size=(4, 5))[LABELS] + GIVEN[:, None]
TEXT = np.array(["ant", "bee", "cat", "dog"])[LABELS]
KINDS = {
    "strict": strict.asarray,
    "strict elsewhere": lambda values: strict.asarray(values, device=strict.Device("device1")),
    "torch": torch.asarray,
    "jax": jax.numpy.asarray,
}
SETTINGS = [(w, u, g) for w in ("pooled", "balanced") for u in (False, True) for g in (False, True)]


@pytest.fixture(params=KINDS)
def made(request, double):
    """What makes an array of another library."""
    return KINDS[request.param]


def expected(weights="pooled", unbiased=False, given=None):
    fusion = cf.cfd(X, labels=LABELS, given=given, weights=weights)
    return fusion.unbiased if unbiased else fusion.distance


@pytest.mark.parametrize(("weights", "unbiased", "conditional"), SETTINGS)
def test_arrays_of_other_libraries_have_the_distance_of_numpy(weights, unbiased, conditional, made):
    given = GIVEN if conditional else None
    options = {"weights": weights, "unbiased": unbiased, "given": made(given) if conditional else None}
    found = cross_fusion_distance(made(X), made(LABELS), **options)
    assert type(found) is float
    assert found == pytest.approx(expected(weights, unbiased, given), rel=1e-10)
    assert cross_fusion_score(made(X), made(LABELS), **options) == pytest.approx(math.exp(-found), rel=1e-12)


@pytest.mark.parametrize("labels", [TEXT, TEXT.tolist(), TEXT.astype(object), pd.Series(TEXT), LABELS - 7, LABELS > 1])
def test_labels_are_what_scikit_learn_takes(labels, made):
    silhouette_score(X, labels)
    distance = cf.cfd(X, labels=labels).distance
    assert cross_fusion_distance(X, labels) == pytest.approx(distance, rel=1e-12)
    assert cross_fusion_distance(made(X), labels) == pytest.approx(distance, rel=1e-10)


@pytest.mark.parametrize("rows", [X.tolist(), pd.DataFrame(X), sp.csr_array(X), sp.coo_matrix(X), np.asfortranarray(X)])
def test_rows_are_what_scikit_learn_takes(rows):
    calinski_harabasz_score(X, LABELS)
    found = cross_fusion_score(rows, LABELS)
    assert type(found) is float
    assert found == pytest.approx(cf.cfd(X, labels=LABELS).score, rel=1e-12)


@pytest.mark.parametrize("groups", [2, 4])
def test_calinski_and_harabasz_have_the_same_number(groups, made):
    labels = LABELS % groups
    n, k = len(X), groups
    for rows in (X, made(X)):
        score = math.expm1(cross_fusion_distance(rows, labels)) * (n - k) / (k - 1)
        assert score == pytest.approx(calinski_harabasz_score(X, labels), rel=1e-10)


@pytest.mark.parametrize("kind", ["torch", "jax"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8"])
def test_every_type_is_reduced_in_float32_at_least(kind, dtype):
    if kind == "torch":
        rows = torch.asarray(X * 10).to(getattr(torch, dtype))
        wide = rows.double().numpy()
    else:
        rows = jax.numpy.asarray(X * 10).astype(dtype)
        wide = np.asarray(rows, np.float64)
    assert cross_fusion_distance(rows, LABELS) == pytest.approx(cf.cfd(wide, labels=LABELS).distance, rel=1e-5)


def test_an_offset_does_no_harm_in_float32():
    rows = (X + 1e4).astype(np.float32)
    exact = cf.cfd(rows, labels=LABELS).distance
    assert cross_fusion_distance(torch.asarray(rows), LABELS) == pytest.approx(exact, rel=1e-5)


def test_rows_stay_where_they_are(made, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the rows were moved")

    rows, labels = made(X), made(LABELS)
    for kind in (torch.Tensor, type(rows)):
        for name in ("numpy", "cpu", "__array__", "tolist", "to_device"):
            if hasattr(kind, name):
                monkeypatch.setattr(kind, name, refuse, raising=False)
    assert cross_fusion_distance(rows, labels) == pytest.approx(expected(), rel=1e-10)


def test_missing_labels_are_one_group(made):
    labels = np.where(LABELS == 1, np.nan, LABELS)
    assert cross_fusion_distance(made(X), made(labels)) == pytest.approx(cross_fusion_distance(X, labels), rel=1e-6)


def test_sparse_tensors_are_refused(refuses):
    with refuses("X is sparse .*: pass X.to_dense()"):
        cross_fusion_distance(torch.asarray(X).to_sparse(), LABELS)


def test_tensors_of_a_graph_are_only_looked_at():
    rows = torch.asarray(X).requires_grad_()
    assert cross_fusion_distance(rows, LABELS) == pytest.approx(expected(), rel=1e-10)
    assert rows.grad is None


@pytest.mark.parametrize("labels", [np.zeros(90, int), np.arange(90)], ids=["one", "all different"])
def test_the_number_of_labels_is_that_of_scikit_learn(labels, made, refuses):
    with pytest.raises(ValueError, match="Number of labels"):
        silhouette_score(X, labels)
    for rows in (X, made(X)):
        with refuses("labels has|only one group"):
            cross_fusion_score(rows, labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": X[:, 0]}, "two-dimensional"),
        ({"X": np.where(X > 2, np.nan, X)}, "NaN or infinite"),
        ({"X": X.astype(complex)}, "numbers"),
        ({"X": X[:, :0]}, "has rows without features|but has shape"),
        ({"X": X[:0], "labels": LABELS[:0]}, "has no rows|but has shape"),
        ({"labels": LABELS[:5]}, "5 entries for 90 rows"),
        ({"given": TEXT[:7]}, "7 entries|differ in length"),
        ({"labels": pd.DataFrame({"a": LABELS, "b": LABELS})}, r"labels must hold .* shape \(90, 2\): pass one column"),
        ({"given": pd.DataFrame({"a": LABELS})}, r"given must hold .* shape \(90, 1\): pass one column"),
        ({"weights": "equal"}, "weights='equal'"),
        (
            {"labels": np.arange(90) % 2, "given": np.arange(90) // 2, "unbiased": True},
            "variance within groups is unknown",
        ),
    ],
)
def test_bad_arguments_get_one_sentence(change, message, made, refuses):
    arguments = {"X": X, "labels": LABELS} | change
    for rows in (arguments["X"], made(arguments["X"])):
        with refuses(message):
            cross_fusion_distance(**arguments | {"X": rows})


def test_without_spread_within():
    rows = np.eye(2)[LABELS % 2]
    for kind in (np.asarray, torch.asarray):
        assert cross_fusion_distance(kind(rows), LABELS % 2) == math.inf
        assert cross_fusion_score(kind(rows), LABELS % 2) == 0
        assert cross_fusion_score(kind(rows * 0), LABELS % 2) == 1


def apart(pipeline, rows, y=None):
    """A scorer as scikit-learn calls it: how far the labels are apart after all steps."""
    return cross_fusion_distance(pipeline.transform(rows), y)


def test_a_search_can_choose_by_it():
    noise = np.random.default_rng(1).normal(size=(90, 40)) * 5
    search = GridSearchCV(
        make_pipeline(StandardScaler(), PCA(random_state=0)), {"pca__n_components": [2, 30]}, scoring=apart, cv=3
    )
    search.fit(np.hstack([X * 3, noise]), LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"])) == 2


def test_clusters_are_chosen_as_by_calinski_and_harabasz():
    rows = np.random.default_rng(2).normal(size=(120, 2)) + 12 * np.array([[0, 0], [1, 0], [0, 1]])[np.arange(120) % 3]
    found = {k: KMeans(k, n_init=3, random_state=0).fit_predict(rows) for k in range(2, 6)}
    ratio = {k: math.expm1(cross_fusion_distance(rows, c)) * (120 - k) / (k - 1) for k, c in found.items()}
    assert max(ratio, key=ratio.__getitem__) == 3
    distances = [cross_fusion_distance(rows, clusters) for clusters in found.values()]
    assert distances == sorted(distances)  # more clusters are always further apart


def test_scikit_learn_is_not_needed(python):
    code = """
from crossfusion.sklearn import cross_fusion_score
print(cross_fusion_score([[0.0], [2.0], [2.0], [4.0]], ["a", "a", "b", "b"]))
"""
    assert python(without("sklearn") + code) == "0.5"
