"""What docs/proofs.md states, each side computed independently of the other."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import linalg, stats

import crossfusion as cf
from crossfusion.fusion.design import Design
from crossfusion.inference import row_errors
from crossfusion.moments.moments import concat

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


# moments add


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


def shares_of(sizes):
    """Shares of units, and the maps from rows to the units' means and to their errors e_u."""
    unit = np.repeat(np.arange(len(sizes)), sizes)
    member = (np.arange(len(sizes))[:, None] == unit).astype(float)
    share, means = sizes / sizes.sum(), member / sizes[:, None]
    return share, member, means, share[:, None] * (means - share @ means)


def squared_error(x, sizes):
    """What solving the equation of the page gives for the squared error of the mean."""
    share, member, means, error = shares_of(sizes)
    second, third = np.sum(share**2), np.sum(share**3)
    factor = second / (second - 2 * third + second**2)
    noise = np.sum((x - member.T @ means @ x) ** 2) / (len(x) - len(sizes)) / len(x)
    return factor * np.sum((error @ x) ** 2) - ((1 - second) * factor - 1) * noise


def test_units_of_unequal_size_under_random_effects():
    """Expectations of quadratic forms x'Ax of rows with covariance C are tr(AC)."""
    sizes, others, tau, sigma = np.array([1, 2, 3, 6]), np.array([4, 2, 2, 1]), 1.7, 0.6
    share, member, means, error = shares_of(sizes)
    covariance = tau * member.T @ member + sigma * np.eye(sizes.sum())
    second, third = np.sum(share**2), np.sum(share**3)
    found = np.trace(error @ covariance @ error.T)
    assert found == tight((second - 2 * third + second**2) * tau + (1 - second) * sigma / sizes.sum())
    assert share @ means @ covariance @ means.T @ share == tight(second * tau + sigma / sizes.sum())
    other, _, _, _ = shares_of(others)  # the same units in another cell, effects of covariance tau
    centred = [p[:, None] * (np.eye(4) - p) for p in (share, other)]
    both = share * other
    assert tau * np.sum(centred[0] * centred[1]) == tight(tau * np.sum(both * (1 - share - other + both.sum())))


@pytest.mark.parametrize("crossed", [True, False])
def test_units_of_unequal_size_are_corrected_by_the_formula(draw, crossed):
    sizes = [np.array([1, 2, 3, 6]), np.array([4, 2, 2, 1])]
    units = [np.repeat(np.arange(4), own) for own in sizes]
    effect = 3 * draw.normal(size=(4, 2))
    rows = [effect[unit] + 0.1 * draw.normal(size=(len(unit), 2)) for unit in units]
    site = np.repeat([0, 1], [12, 9])
    plain = cf.cfd(np.concatenate(rows), labels=site, weights="balanced")
    own = [squared_error(x, size) for x, size in zip(rows, sizes, strict=True)]
    shared = 0.0
    if crossed:
        (p, _, _, left), (q, _, _, right) = (shares_of(size) for size in sizes)
        factor = np.sum(p * q) / np.sum(p * q * (1 - p - q + np.sum(p * q)))
        shared = factor * np.sum((left @ rows[0]) * (right @ rows[1]))
    between, within = plain.between - (sum(own) - 2 * shared) / 4, plain.within + sum(own) / 2
    names = np.concatenate([units[0], units[1] if crossed else units[1] + 4])
    found = cf.cfd(np.concatenate(rows), labels=site, units=names, weights="balanced")
    assert found.unbiased == tight(np.log1p(between / within))


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
    pieces = [row_errors.LabeledRows(rows, cell.astype(np.int32))]
    errors = row_errors.estimate_row_errors(pieces, row_errors.sample_rows(pieces, design), design, weight)
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
