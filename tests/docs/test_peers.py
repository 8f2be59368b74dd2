"""Identities with quantities that other libraries compute, and with those the design names."""

import numpy as np
import pytest
from skbio import DistanceMatrix
from skbio.stats.distance import permanova
from sklearn.decomposition import PCA
from sklearn.linear_model import LinearRegression
from sklearn.metrics import calinski_harabasz_score

import crossfusion as cf

GROUPS = [2, 5]


def labelled(groups):
    draw = np.random.default_rng(groups)
    labels = draw.permutation(np.repeat(np.arange(groups), 10 + 13 * np.arange(groups)))
    return draw.normal(size=(len(labels), 6)) + draw.normal(size=(groups, 6))[labels], labels


def squared_distances(x, y):
    return np.sum((x[:, None] - y) ** 2, axis=2)


def pseudo_f(rows, labels):
    groups = len(np.unique(labels))
    return np.expm1(cf.cfd(rows, labels=labels).distance) * (len(rows) - groups) / (groups - 1)


@pytest.mark.parametrize("groups", GROUPS)
def test_pseudo_f_is_the_calinski_harabasz_score(groups):
    rows, labels = labelled(groups)
    assert pseudo_f(rows, labels) == pytest.approx(calinski_harabasz_score(rows, labels), rel=1e-10)


@pytest.mark.parametrize("groups", GROUPS)
def test_pseudo_f_is_the_statistic_of_permanova(groups):
    rows, labels = labelled(groups)
    matrix = DistanceMatrix(np.sqrt(squared_distances(rows, rows)))
    statistic = permanova(matrix, labels.astype(str), permutations=0)["test statistic"]
    assert pseudo_f(rows, labels) == pytest.approx(statistic, rel=1e-10)


def test_between_two_groups_lies_the_mmd_of_a_linear_kernel():
    rows, labels = labelled(2)
    a, b = rows[labels == 0], rows[labels == 1]
    mmd2 = (a @ a.T).mean() + (b @ b.T).mean() - 2 * (a @ b.T).mean()
    assert cf.cfd(a, b).between == pytest.approx(len(a) * len(b) / len(rows) ** 2 * mmd2, rel=1e-10)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_score_is_within_over_total_of_disco_with_squared_distances(groups):
    rows, labels = labelled(groups)
    within = sum(
        len(own) / 2 * squared_distances(own, own).mean() for own in (rows[labels == g] for g in range(groups))
    )
    total = len(rows) / 2 * squared_distances(rows, rows).mean()
    assert cf.cfd(rows, labels=labels).score == pytest.approx(within / total, rel=1e-10)


@pytest.mark.parametrize("groups", GROUPS)
def test_principal_component_regression_explains_what_the_score_leaves(groups):
    rows, labels = labelled(groups)
    pca = PCA().fit(rows)
    components, one_hot = pca.transform(rows), np.eye(groups)[labels]
    explained = [LinearRegression().fit(one_hot, column).score(one_hot, column) for column in components.T]
    regression = np.average(explained, weights=pca.explained_variance_)
    assert regression == pytest.approx(1 - cf.cfd(rows, labels=labels).score, rel=1e-10)


def test_traces_of_scatter_matrices():
    rows, labels = labelled(5)
    counts = np.bincount(labels)
    means = np.stack([rows[labels == g].mean(axis=0) for g in range(5)])
    between = np.cov(means.T, bias=True, fweights=counts)
    within = np.cov((rows - means[labels]).T, bias=True)
    ratio = np.trace(between) / np.trace(within)
    assert np.expm1(cf.cfd(rows, labels=labels).distance) == pytest.approx(ratio, rel=1e-10)
