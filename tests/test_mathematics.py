"""What docs/proofs.md and docs/relations.md state, each side computed independently of the other.

Relations to scikit-bio, scikit-learn's scores and linear kernels that need no more than one line are in test_peers.py.
"""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import integrate, linalg, optimize, stats
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression
from sklearn.metrics import davies_bouldin_score, r2_score
from statsmodels.multivariate.manova import MANOVA

import crossfusion as cf
from crossfusion import row_errors
from crossfusion.design import Design
from crossfusion.moments import concat
from crossfusion.unit_errors import UnitMoments, errors_of_cells

TIGHT = 1e-10
SIZES = {("a", "x"): 5, ("a", "y"): 9, ("b", "x"): 4, ("b", "y"): 7, ("c", "x"): 6}  # group c has no rows in y


def tight(value):
    return pytest.approx(value, rel=TIGHT, abs=1e-13)


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def drawn(draw, dim=3):
    """Rows of the cells above, each with a mean and a spread of its own."""
    return {cell: draw.normal(draw.normal(size=dim), 0.5 + draw.random(), (size, dim)) for cell, size in SIZES.items()}


def summarized(cells):
    group, part = (np.concatenate([[key[k]] * len(rows) for key, rows in cells.items()]) for k in (0, 1))
    return cf.summarize(np.concatenate(list(cells.values())), by={"group": group, "part": part})


def weights_of(cells, scheme):
    """Weights of cells as the page on mathematics defines them."""
    count = np.array([len(rows) for rows in cells.values()], float)
    if scheme == "pooled":
        return count / count.sum()
    group, part = np.array(list(cells)).T
    share = count / [count[group == g].sum() for g in group]
    return np.array([share[part == p].sum() / len(set(group)) / np.sum(part == p) for p in part])


def form_of(cells, weight):
    """The matrix Q: diag(w) - w w'/w_g in each part."""
    part = np.array(list(cells))[:, 1]
    return np.diag(weight) - (part[:, None] == part) * np.outer(weight, weight) / [
        weight[part == p].sum() for p in part
    ]


def means_of(cells):
    return np.stack([rows.mean(axis=0) for rows in cells.values()])


# docs/proofs.md: moments add


def test_moments_add_by_the_formula(draw):
    left, right = draw.normal(1e3, 1, (7, 3)), draw.normal(1e3, 2, (11, 3))
    total = cf.Moments.of(left) + cf.Moments.of(right)
    both = np.concatenate([left, right])
    delta = right.mean(axis=0) - left.mean(axis=0)
    assert total.mean == tight(left.mean(axis=0) + 11 / 18 * delta)
    assert total.mean == tight(both.mean(axis=0))
    assert total.sumsq == tight(7 * left.var(axis=0) + 11 * right.var(axis=0) + 77 / 18 * delta**2)
    assert total.sumsq == tight(18 * both.var(axis=0))
    assert total + cf.Moments.empty(3) == total


# the variance between


@pytest.mark.parametrize("scheme", ["pooled", "balanced"])
def test_between_is_a_form_in_the_means_and_a_sum_over_pairs(draw, scheme):
    cells = drawn(draw)
    weight, mean = weights_of(cells, scheme), means_of(cells)
    form = form_of(cells, weight)
    found = summarized(cells).cfd("group", given="part", weights=scheme)
    assert found.between == tight(np.sum(form * (mean @ mean.T)))
    pairs = combinations(range(len(mean)), 2)
    assert found.between == tight(sum(-form[c, k] * np.sum((mean[c] - mean[k]) ** 2) for c, k in pairs))
    parts = np.array(list(cells))[:, 1]
    total = 0.0  # of the mixture within parts: rows that weigh w_c / n_c
    for part in "xy":
        own = [k for k in range(len(cells)) if parts[k] == part]
        rows = np.concatenate([list(cells.values())[k] for k in own])
        each = np.concatenate([np.full(len(list(cells.values())[k]), weight[k] / list(SIZES.values())[k]) for k in own])
        total += np.sum(each[:, None] * (rows - np.average(rows, axis=0, weights=each)) ** 2)
    assert found.total == tight(total)


def test_it_is_no_metric():
    spread = np.array([[-9.0], [9.0]])
    ends = cf.cfd(spread, spread + 2).distance
    assert ends > 1.9 * (cf.cfd(spread, spread + 1).distance + cf.cfd(spread + 1, spread + 2).distance)
    near, far, wide = np.array([[-1.0], [1.0]]), np.array([[9.0], [11.0]]), np.array([[-1e3], [1e3]])
    root = [np.sqrt(cf.cfd(*pair).distance) for pair in ((near, far), (near, wide), (wide, far))]
    assert root[0] > root[1] + root[2]


# chain rule


def test_distances_of_levels_add_up(draw):
    summary = summarized(drawn(draw))
    fine, coarse, given = (
        summary.cfd(["group", "part"]),
        summary.cfd("part"),
        summary.cfd("group", given="part"),
    )
    assert fine.distance == tight(coarse.distance + given.distance)
    assert fine.score == tight(coarse.score * given.score)
    for scheme in ("pooled", "balanced"):
        levels = summary.hierarchy(["part", "group"], weights=scheme)
        leaves = summary.cfd(["part", "group"], weights=scheme)
        assert sum(level.distance for level in levels.levels) == tight(leaves.distance)
        assert sum(level.unbiased for level in levels.levels) == tight(leaves.unbiased)
    balanced = [summary.cfd(*ask, weights="balanced").distance for ask in ((["group", "part"],), ("part",))]
    assert balanced[0] != pytest.approx(balanced[1] + summary.cfd("group", given="part", weights="balanced").distance)


# the unbiased form


@pytest.mark.parametrize("scheme", ["pooled", "balanced"])
def test_the_correction_is_exact_over_all_samples(draw, scheme):
    """Every sample with replacement from small populations, each as likely: the mean of the estimates is the truth."""
    sizes = {("a", "x"): 2, ("a", "y"): 3, ("b", "x"): 2, ("b", "y"): 2, ("c", "x"): 2}
    populations = {cell: draw.normal(draw.normal(size=2), 1 + draw.random(), (2, 2)) for cell in sizes}
    samples = [list(product(rows, repeat=sizes[cell])) for cell, rows in populations.items()]
    example = {cell: draw.normal(size=(size, 2)) for cell, size in sizes.items()}
    weight = weights_of(example, scheme)
    form = form_of(example, weight)

    def corrected(cells):
        mean = np.stack([np.mean(rows, axis=0) for rows in cells])
        spread = np.array([np.var(rows, axis=0, ddof=1).sum() for rows in cells])
        error = spread / [len(rows) for rows in cells]
        return np.sum(form * (mean @ mean.T)) - np.diagonal(form) @ error, weight @ spread

    between, within = np.mean([corrected(cells) for cells in product(*samples)], axis=0)
    truth = means_of(populations)
    assert between == tight(np.sum(form * (truth @ truth.T)))
    assert within == tight(weight @ [rows.var(axis=0).sum() for rows in populations.values()])
    found = summarized(example).cfd("group", given="part", weights=scheme)
    assert found.unbiased == tight(np.log1p(np.divide(*corrected(list(example.values())))))


@pytest.mark.parametrize("crossed", [True, False])
def test_units_of_equal_size_are_exact_over_all_samples(draw, crossed):
    """Two units of two rows a group, drawn from three; crossed: the same units in both groups."""
    population = draw.normal(size=(2, 3, 2, 2)) + 2 * draw.normal(size=(2, 3, 1, 2)) + draw.normal(size=(2, 1, 1, 2))
    site, unit = np.repeat([0, 1], 4), np.tile(np.repeat([0, 1], 2), 2)
    form, parts = np.array([[1, -1], [-1, 1]]) / 4, []
    chosen = list(product(range(3), repeat=2))
    for first, second in zip(chosen, chosen, strict=True) if crossed else product(chosen, repeat=2):
        x = np.concatenate([population[0, list(first)].reshape(4, 2), population[1, list(second)].reshape(4, 2)])
        plain = cf.cfd(x, labels=site)
        error = np.stack([(x[site == g].reshape(2, 2, 2).mean(1) - x[site == g].mean(0)) / 2 for g in (0, 1)])
        covariance = 2 * np.einsum("cuj,kuj->ck", error, error) * (1 if crossed else np.eye(2))
        parts.append((plain.between - np.sum(form * covariance), plain.within + np.trace(covariance) / 2))
        if first[0] != first[1] and second[0] != second[1]:
            found = cf.cfd(x, labels=site, units=unit if crossed else unit + 2 * site)
            assert found.unbiased == tight(np.log1p(np.divide(*parts[-1])))
    mean = population.mean(axis=(1, 2))
    between, within = np.mean(parts, axis=0)
    assert between == tight(np.sum((mean[0] - mean[1]) ** 2) / 4)
    assert within == tight(np.mean((population - mean[:, None, None]) ** 2, axis=(0, 1, 2)).sum())


def test_units_of_unequal_size_under_random_effects(draw):
    """Expectations of quadratic forms x'Ax of rows with covariance C are tr(AC)."""
    sizes = np.array([1, 2, 3, 6])
    unit, number = np.repeat(np.arange(4), sizes), sizes.sum()
    member = (np.arange(4)[:, None] == unit).astype(float)
    share = sizes / number
    means = member / sizes[:, None]
    error = share[:, None] * (means - share @ means)  # e_u as a linear map of the rows
    within = np.eye(number) - means.T @ member  # rows around their unit's mean
    tau, sigma = 1.7, 0.6
    covariance = tau * member.T @ member + sigma * np.eye(number)
    second, third = np.sum(share**2), np.sum(share**3)
    expected = np.trace(error @ covariance @ error.T)
    assert expected == tight((second - 2 * third + second**2) * tau + (1 - second) * sigma / number)
    assert share @ means @ covariance @ means.T @ share == tight(second * tau + sigma / number)

    x = (draw.normal(size=4) @ member + 0.1 * draw.normal(size=number))[:, None]
    factor = second / (second - 2 * third + second**2)
    noise = np.sum((within @ x) ** 2) / (number - 4) / number
    solved = factor * np.sum((error @ x) ** 2) - ((1 - second) * factor - 1) * noise
    moments = concat([cf.Moments.of(x[unit == u]) for u in range(4)])
    found, _ = errors_of_cells(UnitMoments(moments, np.zeros(4, int), np.arange(4)), concat([cf.Moments.of(x)]))
    assert found[0] == tight(solved)


# errors


@pytest.mark.parametrize("scheme", ["pooled", "balanced"])
def test_influence_is_the_derivative_of_the_distance(draw, scheme):
    """By a complex step in the frequency of each row, which is exact."""
    cells = drawn(draw)
    weight, part, rows = weights_of(cells, scheme), np.array(list(cells))[:, 1], np.concatenate(list(cells.values()))
    cell = np.repeat(np.arange(len(cells)), list(SIZES.values()))

    def distance(frequency):
        mean, within = np.zeros((len(cells), 3), complex), 0
        for c in range(len(cells)):
            own = frequency[cell == c] / frequency[cell == c].sum()
            mean[c] = own @ rows[cell == c]
            within = within + weight[c] * (own @ (rows[cell == c] - mean[c]) ** 2).sum()
        return np.log1p(np.sum(form_of(cells, weight) * (mean @ mean.T)) / within)

    found = summarized(cells).cfd("group", given="part", weights=scheme)
    assert distance(np.ones(len(rows))).real == tight(found.distance)
    step = 1e-30j * np.eye(len(rows))
    derivative = np.array([distance(1 + step[i]).imag / 1e-30 for i in range(len(rows))])

    mean = means_of(cells)
    centre = np.stack([np.average(mean[part == p], axis=0, weights=weight[part == p]) for p in part])
    v = np.sum((rows - centre[cell]) ** 2, 1) / found.total - np.sum((rows - mean[cell]) ** 2, 1) / found.within
    deviation = v - np.array([v[cell == c].mean() for c in cell])
    assert derivative == tight(weight[cell] / np.bincount(cell)[cell] * deviation)

    group, of_part = (np.unique(np.array(list(cells))[:, k], return_inverse=True)[1] for k in (0, 1))
    design = Design(concat([cf.Moments.of(own) for own in cells.values()]), group, of_part, ["a", "b", "c"])
    pieces = [row_errors.Labelled(rows, cell.astype(np.int32))]
    errors = row_errors.of_rows(pieces, row_errors.samples(pieces, design), design, weight)
    assert errors.linear == tight(np.sum((weight / (np.bincount(cell) - 1))[cell] ** 2 * deviation**2))
    assert errors.bias * found.within == tight(
        np.diagonal(form_of(cells, weight)) @ [own.var(0, ddof=1).sum() / len(own) for own in cells.values()]
    )


def test_the_quadratic_part_of_normal_errors(draw):
    """Variance of e'Ae and growth of the linear part's variance, by matrices of all cells and features."""
    cells = drawn(draw)
    form = form_of(cells, weights_of(cells, "pooled"))
    each = [np.cov(rows.T) / len(rows) for rows in cells.values()]  # covariance of the error of each mean
    whole, errors = np.kron(form, np.eye(3)), linalg.block_diag(*each)
    second = 2 * sum(form[c, k] ** 2 * np.trace(each[c] @ each[k]) for c, k in product(range(len(each)), repeat=2))
    assert second == tight(2 * np.trace(whole @ errors @ whole @ errors))
    assert 4 * np.trace(errors @ whole @ errors @ whole) == tight(2 * second)


# permutation tests


def test_p_values_hold_their_level_over_all_arrangements(draw):
    rows = np.round(draw.normal(size=(7, 2)), 0)  # with ties
    found = []
    for chosen in combinations(range(7), 3):
        labels = np.isin(np.arange(7), chosen).astype(int)
        found.append(cf.permutation_test(rows, labels, permutations=99).pvalue)
    assert all(np.mean(np.array(found) <= level) <= level + 1e-12 for level in found)


# invariance


def test_what_leaves_it_as_it_is_and_what_does_not(draw):
    a, b = draw.normal(size=(30, 4)), draw.normal(0.7, 2, (20, 4))
    found = cf.cfd(a, b)
    turn, shift = stats.ortho_group.rvs(4, random_state=0), draw.normal(size=4)
    moved = cf.cfd(3 * a @ turn + shift, 3 * b @ turn + shift)
    assert (moved.distance, moved.unbiased) == (tight(found.distance), tight(found.unbiased))
    twice = cf.cfd(np.repeat(a, 2, axis=0), np.repeat(b, 2, axis=0))
    assert twice.distance == tight(found.distance)
    assert twice.unbiased != pytest.approx(found.unbiased)  # it believes in twice the rows
    linear = draw.normal(size=(4, 4))
    singular = linalg.svdvals(linear)
    ratio = np.expm1(cf.cfd(a @ linear, b @ linear).distance) / np.expm1(found.distance)
    assert (singular[-1] / singular[0]) ** 2 <= ratio <= (singular[0] / singular[-1]) ** 2
    noise = np.tile([-1.5, 1.5], 15)[:, None], np.tile([-1.5, 1.5], 10)[:, None]
    with_noise = cf.cfd(np.hstack([a, noise[0]]), np.hstack([b, noise[1]]))
    assert with_noise.distance == tight(np.log1p(found.between / (found.within + 1.5**2)))


# docs/relations.md


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
