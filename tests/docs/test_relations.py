"""What docs/relations.md states: exact relations to what other libraries compute, and bounds.

Those that need no more than one line, to PERMANOVA, Calinski-Harabasz, PCR, linear MMD and DISCO, are in test_peers.py.
"""

from itertools import combinations

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, stats
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.metrics import davies_bouldin_score, r2_score
from statsmodels.multivariate.manova import MANOVA

import crossfusion as cf


def tight(value):
    return pytest.approx(value, rel=1e-10)


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def test_analysis_of_variance(draw):
    labels = np.repeat([0, 1, 2], 8)
    x = draw.normal(size=(24, 4)) @ draw.normal(size=(4, 4)) + draw.normal(size=(3, 4))[labels]
    found, one = cf.cfd(x, labels=labels), cf.cfd(x[:, :1], labels=labels)
    f = stats.f_oneway(*(x[labels == g, 0] for g in range(3))).statistic
    assert np.expm1(one.distance) * 21 / 2 == tight(f)
    assert one.score == tight(1 / (1 + 2 * f / 21))  # Wilks' lambda of one feature
    assert one.unbiased is not None
    assert -np.expm1(-one.unbiased) == tight(2 * (f - 1) / (2 * (f - 1) + 24))  # omega squared
    one_hot = np.eye(3)[labels]
    fitted = LinearRegression().fit(one_hot, x).predict(one_hot)
    assert 1 - found.score == tight(r2_score(x, fitted, multioutput="variance_weighted"))

    within = np.cov((x - fitted).T, bias=True)
    total = np.cov(x.T, bias=True)
    table = MANOVA(x, np.column_stack([np.ones(24), one_hot[:, 1:]])).mv_test([("labels", np.eye(3)[1:])])
    value = table.results["labels"]["stat"]["Value"]
    by_total, by_within = (linalg.inv(linalg.sqrtm(matrix).real) for matrix in (total, within))
    assert 1 - cf.cfd(x @ by_total, labels=labels).score == pytest.approx(value["Pillai's trace"] / 4, rel=1e-9)
    lawley = value["Hotelling-Lawley trace"] / 4
    assert np.expm1(cf.cfd(x @ by_within, labels=labels).distance) == pytest.approx(lawley, rel=1e-9)


def test_clusters(draw):
    x = draw.normal(size=(60, 3)) + 2 * draw.integers(0, 2, (60, 1))
    model = KMeans(2, n_init=1, random_state=0).fit(x)
    found = cf.cfd(x, labels=model.labels_)
    assert found.within == pytest.approx(model.inertia_ / 60, rel=1e-9)
    for labels in (model.labels_, draw.integers(0, 2, 60)):
        balanced = cf.cfd(x, labels=labels, weights="balanced").distance
        assert davies_bouldin_score(x, labels) <= 1 / np.sqrt(np.expm1(balanced))


def test_transport_and_frechet(draw):
    a, b = draw.normal(size=(40, 3)) @ draw.normal(size=(3, 3)), draw.normal(0.5, 1, (40, 3))
    found = cf.cfd(a, b)

    def cost(x, y):
        squared = np.sum((x[:, None] - y) ** 2, axis=2)
        return squared[optimize.linear_sum_assignment(squared)].mean()

    translation = found.between * 4
    assert cost(a, b) == tight(translation + cost(a - a.mean(0), b - b.mean(0)))
    assert found.distance <= np.log1p(cost(a, b) / 4 / found.within)
    of_a, of_b = np.cov(a.T, bias=True), np.cov(b.T, bias=True)
    frechet = translation + np.trace(of_a + of_b - 2 * linalg.sqrtm(of_a @ of_b).real)
    assert cf.distance("gaussian_wasserstein", a, b) ** 2 == pytest.approx(frechet, rel=1e-9)


def test_a_kernel_that_sees_shapes(draw):
    """The kernel <x, y>² is linear in the products of features."""
    a, b = draw.normal(size=(20, 2)), draw.normal(0, 2, (30, 2))
    lifted = [np.einsum("ni,nj->nij", x, x).reshape(len(x), 4) for x in (a, b)]
    aa, bb, ab = (x @ y.T for x, y in ((a, a), (b, b), (a, b)))
    mmd2 = (aa**2).mean() + (bb**2).mean() - 2 * (ab**2).mean()
    within = np.mean([np.mean(np.diagonal(own) ** 2) - np.mean(own**2) for own in (aa, bb)])
    assert cf.cfd(*lifted, weights="balanced").distance == tight(np.log1p(mmd2 / 4 / within))


def test_two_groups_in_units_of_their_spread(draw):
    a, b = draw.normal(size=(50, 3)) @ draw.normal(size=(3, 3)), draw.normal(0.4, 1, (30, 3))
    found = cf.cfd(a, b, weights="balanced")
    delta = a.mean(0) - b.mean(0)
    assert np.linalg.norm(delta) / np.sqrt(found.within) == tight(2 * np.sqrt(np.expm1(found.distance)))
    covariance = (np.cov(a.T, bias=True) + np.cov(b.T, bias=True)) / 2
    squared, values = delta @ linalg.solve(covariance, delta), linalg.eigvalsh(covariance)
    standard = delta @ delta / np.trace(covariance)
    assert standard <= standard * values.sum() / values[-1] <= squared <= standard * values.sum() / values[0]
    unequal = cf.cfd(np.repeat(a, 4, axis=0), a + 1).distance  # pooled: one group weighs four times the other
    assert unequal < cf.cfd(np.repeat(a, 4, axis=0), a + 1, weights="balanced").distance


@pytest.mark.parametrize("shift", [0.01, 1.0, 5.0])
def test_information_is_bounded(shift):
    def density(z):
        return (stats.norm.pdf(z) + stats.norm.pdf(z, shift)) / 2

    entropy = integrate.quad(lambda z: -density(z) * np.log(density(z)), -12, 12 + shift, epsabs=1e-13)[0]
    information = entropy - np.log(2 * np.pi * np.e) / 2
    bound = np.log1p(shift**2 / 4) / 2
    assert information <= bound + 1e-12
    if shift < 0.1:
        assert information == pytest.approx(bound, rel=1e-3)


def test_all_groups_from_pairs(draw):
    sizes = np.array([8, 12, 20])
    groups = [draw.normal(k, 1 + k, (size, 2)) for k, size in enumerate(sizes)]
    weight = sizes / 40
    found = cf.cfd(np.concatenate(groups), labels=np.repeat([0, 1, 2], sizes))
    pairs = [(p, q, cf.cfd(groups[p], groups[q])) for p, q in combinations(range(3), 2)]
    summed = sum((weight[p] + weight[q]) ** 2 * pair.within * np.expm1(pair.distance) for p, q, pair in pairs)
    assert found.between == tight(summed)
