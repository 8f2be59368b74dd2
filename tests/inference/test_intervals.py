"""Intervals: their parts by brute force, the coverage that they promise, and what they refuse."""

# mypy: disable-error-code="index,arg-type,misc,operator,union-attr"

import json

import numpy as np
import pytest
from scipy import sparse, stats

import crossfusion as cf
from crossfusion.fusion.design import Design
from crossfusion.inference import intervals, row_errors
from crossfusion.inference.row_errors import LabeledRows
from crossfusion.moments import kernel
from crossfusion.moments.influence import PRODUCTS, sum_influences
from crossfusion.moments.moments import reduce_groups
from tests.helpers.command_line import fails, run, run_json


def rows_in_groups(sizes, dim, shift, seed=0, given=False):
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    x = draw.normal(size=(len(labels), dim)) * (1 + 0.3 * labels[:, None])
    x[:, 0] += shift * labels
    strata = draw.integers(0, 2, len(labels)) if given else None
    if given:
        x[:, 1] += 2 * strata
    return x, labels, strata


def unit_rows(units, rows, dim, shift, *, crossed, seed=0, unequal=False):
    """Rows of units that share half of their variance; a crossed unit has rows in both groups."""
    draw = np.random.default_rng(seed)
    unit = np.tile(np.arange(units), 2) if crossed else np.arange(2 * units)
    group = np.repeat([0, 1], units)
    effect = draw.normal(size=(int(unit.max()) + 1, dim))[unit]
    often = draw.integers(2, 2 * rows, len(unit)) if unequal else np.full(len(unit), rows)
    unit, group, effect = (np.repeat(values, often, axis=0) for values in (unit, group, effect))
    x = draw.normal(size=(len(unit), dim)) + effect
    x[:, 0] += shift * group
    return x, group, unit


# ---- parts


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("weights", ["pooled", "balanced"])
def test_the_standard_error_is_that_of_leaving_rows_out(given, weights):
    x, labels, strata = rows_in_groups((90, 60, 120), 6, 1.5, given=given)
    fusion = cf.cfd(x, labels=labels, given=strata, weights=weights, level=0.95)
    cells = labels if strata is None else labels * 2 + strata
    design_weights = np.array([np.sum(cells == cell) for cell in np.unique(cells)], float)
    variance = 0.0
    for cell, size in zip(np.unique(cells), design_weights, strict=True):
        without = []
        for row in np.flatnonzero(cells == cell):
            kept = np.arange(len(x)) != row
            part = None if strata is None else strata[kept]
            without.append(cf.cfd(x[kept], labels=labels[kept], given=part, weights=weights).unbiased)
        variance += (size - 1) / size * np.sum((np.array(without) - np.mean(without)) ** 2)
    assert fusion.stderr == pytest.approx(np.sqrt(variance), rel=0.05)


def test_the_centre_is_the_unbiased_distance():
    x, labels, _ = rows_in_groups((30, 50), 12, 0.5)
    fusion = cf.cfd(x, labels=labels, level=0.9)
    assert fusion.unbiased == pytest.approx(cf.cfd(x, labels=labels).unbiased, rel=1e-12)
    assert fusion.level == 0.9
    low, high = fusion.interval
    assert low < fusion.unbiased < high
    assert fusion.distance == cf.cfd(x, labels=labels).distance


@pytest.mark.parametrize("dim", [37, 600])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_both_routes_sum_the_same_influences(dtype, dim, monkeypatch):
    x, labels, _ = rows_in_groups((300, 500, 7), dim, 0.5)
    rows, codes = x.astype(dtype) + dtype(3), labels.astype(np.int32)
    codes[5] = -1
    cells, _ = reduce_groups(rows, codes, 3, name="x")
    direction = cells.mean - cells.mean.mean(axis=0)
    found = []
    for compiled in (kernel.compiled, None):
        monkeypatch.setattr(kernel, "compiled", compiled)
        found.append(sum_influences(rows, codes, cells.mean, direction, cells.dispersion, 20.0))
    kept = codes >= 0
    gap = rows[kept].astype(float) - cells.mean[codes[kept]]
    s = ((gap**2).sum(axis=1) - cells.dispersion[codes[kept]]) / 20
    a = (gap * direction[codes[kept]]).sum(axis=1) / 20
    expected = [[np.sum((s**i * a**j)[codes[kept] == c]) for i, j in PRODUCTS] for c in range(3)]
    tolerance = 1e-11
    for sums in found:
        np.testing.assert_allclose(sums, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())


def test_extreme_scales_are_summed_in_float64():
    x, labels, _ = rows_in_groups((300, 500), 20, 0.5)
    plain = cf.cfd(x.astype(np.float32), labels=labels, level=0.95)
    for scale in (1e-22, 1e25):
        scaled = cf.cfd((x * scale).astype(np.float32), labels=labels, level=0.95)
        np.testing.assert_allclose(scaled.interval, plain.interval, rtol=1e-4)


@pytest.mark.parametrize("units", [None, np.arange(200) // 5])
def test_intervals_do_not_depend_on_the_scale(units):
    x, labels, _ = rows_in_groups((120, 80), 10, 0.7)
    plain = cf.cfd(x, labels=labels, units=units, level=0.95)
    for scale in (1e-140, 1e-60, 1e60, 1e140):
        scaled = cf.cfd(x * scale, labels=labels, units=units, level=0.95)
        np.testing.assert_allclose(scaled.interval, plain.interval, rtol=1e-6)
        assert scaled.stderr == pytest.approx(plain.stderr, rel=1e-6)


def test_intervals_do_not_depend_on_how_rows_come():
    x, labels, _ = rows_in_groups((120, 80), 10, 0.7)
    whole = cf.cfd(x, labels=labels, level=0.95)
    order = np.random.default_rng(1).permutation(len(x))
    for other in (
        cf.cfd(x[labels == 0], x[labels == 1], level=0.95),
        cf.cfd(x[order], labels=labels[order], level=0.95),
        cf.cfd(sparse.csr_array(x), labels=labels, level=0.95),
        cf.cfd(np.asfortranarray(x), labels=labels, level=0.95),
    ):
        np.testing.assert_allclose(other.interval, whole.interval, rtol=1e-9)
        assert other.stderr == pytest.approx(whole.stderr, rel=1e-9)


def test_rows_that_are_not_finite_are_left_out():
    x, labels, _ = rows_in_groups((120, 80), 10, 0.7)
    bad = np.concatenate([x, np.full((1, 10), np.nan)])
    for units in (None, np.arange(len(x)) // 4):
        extended = None if units is None else [*units, 999]
        with pytest.warns(cf.CrossfusionWarning, match="left out"):
            found = cf.cfd(bad, labels=[*labels, 1], nan="drop", level=0.95, units=extended)
        whole = cf.cfd(x, labels=labels, level=0.95, units=units)
        np.testing.assert_allclose(found.interval, whole.interval, rtol=1e-9)


def test_quantiles_are_those_of_the_distributions():
    normal = stats.norm.ppf(np.array([0.9, 0.975, 0.995]))
    for freedom in (1, 2, 4, 9, 60):
        for z in normal:
            expected = stats.t.ppf(stats.norm.cdf(z), freedom) / z
            assert float(intervals.student_ratio(z, np.array(float(freedom)))) == pytest.approx(expected, rel=0.02)
    for skewness in (0.01, 0.3, 1.0, 2.0):
        for probability in (0.025, 0.05, 0.95, 0.975):
            found = float(intervals._gamma_quantile(stats.norm.ppf(probability), np.array(skewness)))
            assert found == pytest.approx(stats.pearson3.ppf(probability, skewness), abs=0.06)


def test_limits_are_where_the_test_just_rejects():
    x, labels, _ = rows_in_groups((40, 60), 5, 1.0)
    codes = labels.astype(np.int32)
    cells, _ = reduce_groups(x, codes, 2, name="x")
    design = Design(cells, np.arange(2), np.zeros(2, int), [0, 1])
    chunks = [LabeledRows(x, codes)]
    errors = row_errors.estimate_row_errors(
        chunks, row_errors.sample_rows(chunks, design), design, design.weights("pooled")
    )
    low, high = errors.limits(0.9)
    heavier = intervals.student_ratio(stats.norm.ppf(0.95), errors.freedom)
    for limit, probability in ((low, 0.95), (high, 0.05)):
        quantile = errors._quantile(limit, stats.norm.ppf(probability), heavier)
        assert float(errors.estimate - limit - quantile) == pytest.approx(0, abs=1e-10)
    wider = errors.limits(0.99)
    assert wider[0] < low < high < wider[1]


# ---- units


@pytest.mark.parametrize("crossed", [False, True])
def test_the_centre_with_units_is_that_of_the_formula(crossed):
    x, group, unit = unit_rows(9, 5, 7, 1.0, crossed=crossed)
    fusion = cf.cfd(x, labels=group, units=unit, level=0.95)
    mean = np.array([x[group == g].mean(axis=0) for g in (0, 1)])
    sizes = np.array([np.sum(group == g) for g in (0, 1)])
    weight = sizes / sizes.sum()
    error = np.zeros((int(unit.max()) + 1, 2, 7))
    for u in np.unique(unit):
        for g in (0, 1):
            error[u, g] = (x[(unit == u) & (group == g)] - mean[g]).sum(axis=0) / sizes[g]
    within = np.sum(weight * [((x[group == g] - mean[g]) ** 2).sum() / sizes[g] for g in (0, 1)])
    between = weight[0] * weight[1] * np.sum((mean[0] - mean[1]) ** 2)
    factor = 9 / 8  # nine units in each group, or nine in all
    centre = np.einsum("c,ucd->ud", weight, error)[:, None] if crossed else 0
    if crossed:
        between -= factor * np.einsum("c,ucd,ucd->", weight, error - centre, error - centre)
    else:
        between -= factor * np.einsum("c,ucd,ucd->", weight * (1 - weight), error, error)
    within += factor * np.einsum("c,ucd,ucd->", weight, error, error)
    assert fusion.unbiased == pytest.approx(np.log1p(between / within), rel=1e-10)
    assert cf.cfd(x, labels=group, units=unit).unbiased == fusion.unbiased


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_a_summary_has_the_interval_of_its_rows(weights, crossed, given):
    x, group, unit = unit_rows(12, 8, 5, 0.8, crossed=crossed, unequal=True)
    strata = np.arange(len(x)) % 2
    summary = cf.summarize(x, by={"group": group, "unit": unit, "stratum": strata})
    asked = {"units": "unit", "weights": weights, "level": 0.9, "given": "stratum" if given else None}
    found = summary.cfd("group", **asked)
    rows = cf.cfd(x, labels=group, given=strata if given else None, units=unit, weights=weights, level=0.9)
    np.testing.assert_allclose(found.interval, rows.interval, rtol=1e-9)
    assert found.stderr == pytest.approx(rows.stderr, rel=1e-9)
    assert found.unbiased == pytest.approx(rows.unbiased, rel=1e-9)


def test_single_rows_as_units_are_rows():
    x, labels, _ = rows_in_groups((80, 90), 6, 1.0)
    rows = cf.cfd(x, labels=labels, level=0.95)
    assert cf.cfd(x, labels=labels, units=np.arange(170), level=0.95) == rows
    units = cf.summarize(x, by={"g": labels, "u": np.arange(170)}).cfd("g", units="u", level=0.95)
    assert units.unbiased == pytest.approx(rows.unbiased, rel=1e-10)
    np.testing.assert_allclose(units.interval, rows.interval, rtol=0.05)


def test_units_of_two_arrays():
    x, group, unit = unit_rows(10, 6, 4, 1.0, crossed=True)
    pair = x[group == 0], x[group == 1]
    found = cf.cfd(*pair, units=(unit[group == 0], unit[group == 1]), level=0.95)
    np.testing.assert_allclose(found.interval, cf.cfd(x, labels=group, units=unit, level=0.95).interval, rtol=1e-10)


@pytest.mark.parametrize("crossed", [False, True])
def test_a_bootstrap_confirms_the_standard_error(crossed):
    x, group, unit = unit_rows(30, 10, 6, 4.0, crossed=crossed, unequal=True)
    summary = cf.summarize(x, by={"group": group, "unit": unit})
    fusion = summary.cfd("group", units="unit", level=0.95)
    drawn = summary.bootstrap("group", units="unit", draws=2000, seed=3)
    assert drawn.shape == (2000,)
    assert np.mean(drawn) == pytest.approx(fusion.unbiased, abs=fusion.stderr / 2)
    assert np.std(drawn) == pytest.approx(fusion.stderr, rel=0.15)
    np.testing.assert_array_equal(drawn, summary.bootstrap("group", units="unit", draws=2000, seed=3))
    assert not np.array_equal(drawn, summary.bootstrap("group", units="unit", draws=2000, seed=4))


def test_a_bootstrap_is_that_of_repeated_units():
    x, group, unit = unit_rows(4, 3, 3, 2.0, crossed=False)
    summary = cf.summarize(x, by={"group": group, "unit": unit})
    from crossfusion.inference.bootstrap import compute_replicates, draw_multiplicities
    from crossfusion.inference.unit_errors import estimate_unit_errors

    design, units = summary._make_design("group", None), summary._make_unit_moments("group", None, "unit", "x")
    times = draw_multiplicities(units, design, 5, 0)
    assert (times[:, :4].sum(axis=1) == 4).all()
    assert (times[:, 4:].sum(axis=1) == 4).all()
    weight = design.weights("pooled")
    errors = estimate_unit_errors(units, design, weight).errors
    whole = np.sum(weight * design.cells.dispersion)
    bias, extra = float(errors.bias) * whole, float(errors.within - 1) * whole
    for often, found in zip(times, compute_replicates(units, design, weight, times), strict=True):
        chosen = np.repeat(np.arange(len(x)), often[unit].astype(int))
        plain = cf.cfd(x[chosen], labels=group[chosen])
        expected = np.log1p((plain.between - 2 * bias) / (plain.within + 2 * extra))
        assert found == pytest.approx(float(expected), rel=1e-9)


def test_many_units_are_sampled():
    x, group, unit = unit_rows(1500, 2, 3, 0.3, crossed=False)
    everyone = cf.cfd(x, labels=group, units=unit, level=0.95)
    from crossfusion.inference import unit_pairs

    whole, unit_pairs.MAX_SAMPLED_ENTRIES = unit_pairs.MAX_SAMPLED_ENTRIES, 10**6
    try:
        exact = cf.cfd(x, labels=group, units=unit, level=0.95)
    finally:
        unit_pairs.MAX_SAMPLED_ENTRIES = whole
    np.testing.assert_allclose(everyone.interval, exact.interval, rtol=0.03)


@pytest.mark.parametrize(
    ("units", "crossed", "given"), [(300, False, None), (300, True, None), (4000, False, None), (300, True, "s")]
)
def test_contributions_of_pairs_of_units_need_not_be_computed_one_by_one(monkeypatch, units, crossed, given):
    from crossfusion.inference.unit_pairs import UnitPairs

    draw = np.random.default_rng(0)
    unit = np.concatenate([np.arange(units), draw.integers(0, units, 3 * units)])
    group = draw.integers(0, 2, len(unit)) if crossed else unit % 2
    by = {"g": group, "u": unit, "s": draw.integers(0, 2, len(unit))}
    x = draw.normal(size=(len(unit), 3)) + draw.normal(size=(units, 3))[unit] + 0.1 * group[:, None]
    ask = {"units": "u", "level": 0.95, "given": given}
    summary = cf.summarize(x, by=by)
    one_by_one = []
    compute = UnitPairs.compute

    def count(pairs):
        one_by_one.append(pairs.number)
        return compute(pairs)

    monkeypatch.setattr(UnitPairs, "compute", count)
    fast = summary.cfd("g", **ask)
    assert not one_by_one
    monkeypatch.setattr(UnitPairs, "sum_squares", lambda pairs: float(np.sum(pairs.compute() ** 2)))
    slow = summary.cfd("g", **ask)
    assert fast.interval == pytest.approx(slow.interval, rel=1e-12)
    assert fast.stderr == pytest.approx(slow.stderr, rel=1e-12)


# ---- coverage: the whole study is a command of its own


def covered(draw_one, truth, number, **options):
    inside = 0
    for seed in range(number):
        low, high = draw_one(seed, **options)
        inside += low <= truth <= high
    return inside / number


@pytest.mark.parametrize(("dim", "shift"), [(4, 0.0), (4, 0.4), (40, 0.0), (40, 1.0), (4, 3.0)])
def test_intervals_cover(dim, shift):
    def draw_one(seed):
        draw = np.random.default_rng(seed)
        a, b = draw.normal(size=(40, dim)), draw.normal(size=(60, dim))
        b[:, 0] += shift
        return cf.cfd(a, b, level=0.95).interval

    assert covered(draw_one, np.log1p(0.24 * shift**2 / dim), 300) >= 0.91


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_intervals_of_units_cover_where_those_of_rows_do_not(crossed, shift):
    def draw_one(seed, with_units=True):
        x, group, unit = unit_rows(15, 5, 20, shift, crossed=crossed, seed=seed)
        draw = np.random.default_rng([seed, 1])
        x += draw.normal(size=(30, 20))[group * 15 + unit % 15] if crossed else 0  # scans differ, too
        return cf.cfd(x, labels=group, units=unit if with_units else None, level=0.95).interval

    truth = np.log1p(0.25 * shift**2 / (20 * (3 if crossed else 2)))
    assert covered(draw_one, truth, 150) >= 0.88
    assert covered(draw_one, truth, 150, with_units=False) < 0.7


# ---- pairs


def test_limits_of_pairs_are_those_of_two_groups_alone():
    x, group, unit = unit_rows(8, 6, 5, 1.0, crossed=False)
    group = np.where(unit % 3 == 0, 2, group)
    summary = cf.summarize(x, by={"group": group, "unit": unit, "stratum": np.arange(len(x)) % 2})
    for given in (None, "stratum"):
        found = summary.pairwise("group", given=given, units="unit", level=0.9, permutations=99, weights="balanced")
        for i, j in ((0, 1), (0, 2), (1, 2)):
            pair = summary.select(group=[i, j])
            alone = pair.cfd("group", given=given, units="unit", level=0.9, weights="balanced")
            for matrix, value in ((found.lower, alone.interval[0]), (found.upper, alone.interval[1])):
                assert matrix[i, j] == matrix[j, i] == pytest.approx(value, rel=1e-9)
            assert found.unbiased[i, j] == pytest.approx(alone.unbiased, rel=1e-9)
            tested = pair.test("group", given=given, units="unit", permutations=99)
            assert found.pvalue[i, j] == tested.pvalue
        upper = np.triu_indices(3, 1)
        np.testing.assert_allclose(found.adjusted[upper], cf.adjusted_pvalues(found.pvalue[upper]))
        assert list(found.to_frame().columns)[2:] == [
            "unbiased", "distance", "overlap", "lower", "upper", "stderr", "statistic", "pvalue", "adjusted",
        ]  # fmt: skip
    other = summary.pairwise("group", units="unit", permutations=99, adjust="bh")
    np.testing.assert_allclose(other.adjusted[upper], cf.adjusted_pvalues(other.pvalue[upper], method="bh"))
    assert json.loads(json.dumps(found.to_dict()))["level"] == 0.9
    assert repr(found).splitlines()[1].endswith(" p  adjusted p (holm)")


def test_a_pair_too_small_for_limits_has_none():
    x, group, unit = unit_rows(5, 4, 3, 1.0, crossed=False)
    group = np.where(unit == 9, 2, group)
    summary = cf.summarize(x, by={"group": group, "unit": unit})
    with pytest.warns(cf.CrossfusionWarning, match=r"left out: 2 \(1\): fewer than 2 units"):
        found = summary.pairwise("group", units="unit", level=0.95)
    assert np.isnan(found.distance[0, 2])
    assert np.isnan(found.lower[0, 2])
    assert np.isnan(found.upper[1, 2])
    assert found.upper[0, 1] > 0


# ---- refusals and words


def test_what_has_no_interval_is_refused(refuses):
    x, labels, _ = rows_in_groups((30, 20), 4, 1.0)
    for level in (0, 1, 1.5, 0.2, "high", True):
        with refuses("level="):
            cf.cfd(x, labels=labels, level=level)
    with refuses("trim cannot be combined with level"):
        cf.cfd(x, labels=labels, level=0.95, trim=0.1)
    for few in (1, 2):
        with refuses("fewer than two groups remain .* fewer than 3 rows"):
            cf.cfd(x, labels=[*([0] * (50 - few)), *([1] * few)], level=0.95)
    with refuses("units has missing values"):
        cf.cfd(x, labels=labels, units=[None, *range(49)], level=0.95)
    with refuses("units has missing values"):
        cf.permutation_test(x, labels, units=[None, *range(49)])
    with refuses("differ within the groups"):
        cf.cfd(np.zeros((6, 2)), labels=[0, 0, 0, 1, 1, 1], level=0.95)
    with refuses("fewer than two groups remain .* fewer than 2 units"):
        cf.cfd(x, labels=labels, level=0.95, units=labels)
    with refuses("units has 3 entries"):
        cf.cfd(x, labels=labels, level=0.95, units=[1, 2, 3])
    with refuses("units of two arrays must be a pair"):
        cf.cfd(x, x + 1, level=0.95, units=np.arange(50))
    with refuses("values of different types"):
        cf.cfd(x[:2], x[2:4], level=0.95, units=(["a", "b"], [1, 2]))
    summary = cf.summarize(x, by={"site": labels, "unit": np.arange(50)})
    with refuses("no rows, so level needs units"):
        summary.cfd("site", level=0.95)
    with refuses("no rows, so permutations needs units"):
        summary.pairwise("site", permutations=9)
    with refuses("is in units and in between"):
        summary.cfd("site", level=0.95, units="site")
    with refuses("adjust='none'"):
        summary.pairwise("site", units="unit", permutations=9, adjust="none")
    with refuses("draws=0"):
        summary.bootstrap("site", units="unit", draws=0)


def test_a_confounded_design_has_no_interval(refuses):
    x, labels, _ = rows_in_groups((30, 20), 4, 1.0)
    with refuses("strata that groups share"), pytest.warns(cf.CrossfusionWarning, match="confounded"):
        cf.cfd(x, labels=labels, given=labels, level=0.95)


def test_results_show_what_was_asked_for():
    x, labels, _ = rows_in_groups((30, 20), 4, 1.0)
    plain, asked = cf.cfd(x, labels=labels), cf.cfd(x, labels=labels, level=0.95)
    assert "interval" not in plain.to_dict()
    assert json.loads(json.dumps(asked.to_dict()))["interval"] == list(asked.interval)
    assert "95% confidence" in repr(asked)
    assert "interval" not in repr(plain)


@pytest.mark.parametrize(
    ("kind", "from_moments", "from_rows"),
    [
        ("same", None, None),
        ("apart", None, None),
        ("wider", "spread", "spread"),
        ("wider and apart", None, None),
        ("two modes", None, "shape"),
        ("heavy tails on both sides", None, None),
    ],
)
def test_caution_where_means_mislead(kind, from_moments, from_rows):
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 400, 16))
    if kind == "apart":
        b += 0.5
    if kind.startswith("wider"):
        b *= 2
    if kind == "wider and apart":
        b += 2
    if kind == "two modes":
        b = b * np.sqrt(0.19) + 0.9 * draw.choice([-1, 1], (400, 1))
    if kind.startswith("heavy"):
        a, b = draw.standard_t(3, size=(2, 400, 16))
    for found, expected in ((cf.cfd(a, b), from_moments), (cf.cfd(a, b, level=0.95), from_rows)):
        assert (found.caution is None) == (expected is None)
        assert expected is None or f"differ in {expected}" in str(found.caution)
        assert ("caution" in repr(found)) == (expected is not None)
    units = np.arange(400) // 4
    within = cf.cfd(a, b, units=(units, units + 100), level=0.95)
    assert (within.caution is None) == (from_rows is None)


@pytest.mark.parametrize(
    ("law", "shape"),
    [("standard_t", (12, 6)), ("standard_t", (50, 64)), ("lognormal", (50, 256)), ("lognormal", (40, 16))],
)
def test_chance_is_no_reason_for_caution(law, shape):
    flags = 0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        a, b = (draw.standard_t(5, shape) if law == "standard_t" else draw.lognormal(0, 1, shape) for _ in "ab")
        flags += cf.cfd(a, b, level=0.95).caution is not None
    assert flags <= 3


def test_two_arrays_and_labels_take_the_same_sample():
    x, labels, _ = rows_in_groups((6000, 9000), 5, 0.1)
    order = np.argsort(np.random.default_rng(0).random(15000))
    x, labels = x[order], labels[order]
    np.testing.assert_allclose(
        cf.cfd(x, labels=labels, level=0.95).interval,
        cf.cfd(x[labels == 0], x[labels == 1], level=0.95).interval,
        rtol=1e-9,
    )


def test_many_cells_are_found_by_sorting(monkeypatch):
    x, labels, _ = rows_in_groups((3000, 4000), 3, 0.5)
    strata = np.random.default_rng(0).integers(0, 50, 7000)
    sorted_out = cf.cfd(x, labels=labels, given=strata, level=0.95)
    monkeypatch.setattr(row_errors, "MAX_SCANNED_CELLS", 1000)
    assert cf.cfd(x, labels=labels, given=strata, level=0.95) == sorted_out


# ---- command line


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("units")
    x, group, unit = unit_rows(8, 10, 5, 1.0, crossed=False)
    np.save(folder / "a.npy", x[group == 0])
    np.save(folder / "b.npy", x[group == 1])
    by = {"site": np.where(unit % 3 == 0, "C", np.where(group == 0, "A", "B")), "patient": unit}
    by |= {"label": np.arange(len(x)) % 2}
    cf.summarize(x, by=by).write(folder / "s.parquet")
    np.savez(folder / "x.npz", x=x, **by)
    return folder


def test_compare_with_interval_and_test(files):
    a, b = (np.load(files / f"{name}.npy") for name in "ab")
    found = run_json("compare", files / "a.npy", files / "b.npy", "--level", 0.9, "--permutations", 99)
    expected = cf.cfd(a, b, level=0.9)
    assert found["interval"] == pytest.approx(list(expected.interval), rel=1e-12)
    assert found["stderr"] == pytest.approx(expected.stderr, rel=1e-12)
    tested = cf.permutation_test(np.concatenate([a, b]), [0] * len(a) + [1] * len(b), permutations=99)
    for name in ("statistic", "pvalue", "permutations"):
        assert found[name] == pytest.approx(getattr(tested, name), rel=1e-12)
    lines = run("compare", files / "a.npy", files / "b.npy", "--level", 0.9, "--permutations", 99).stdout
    assert "interval" in lines
    assert "pvalue" in lines
    assert "--level 2" in fails("compare", files / "a.npy", files / "b.npy", "--level", 2)
    assert "--permutations 0" in fails("compare", files / "a.npy", files / "b.npy", "--permutations", 0)
    assert "--trim cannot be combined with --level, --permutations or --fused-within" in fails(
        "compare", files / "a.npy", files / "b.npy", "--permutations", 9, "--trim", 0.1
    )
    assert "cannot be combined with --distance" in fails(
        "compare", files / "a.npy", files / "b.npy", "--distance", "mmd", "--level", 0.9
    )


def test_matrix_with_intervals_and_tests(files):
    summary = cf.read_summary(files / "s.parquet")
    asked = ("--between", "site", "--given", "label", "--units", "patient", "--level", 0.9, "--permutations", 49)
    expected = summary.pairwise("site", given="label", units="patient", level=0.9, permutations=49)
    for file in ("s.parquet", "x.npz"):
        found = run_json("matrix", files / file, *asked)
        assert (found["permutations"], found["adjust"], found["level"]) == (299, "holm", 0.9)  # three pairs reach 0.01
        for name in ("lower", "upper", "stderr", "statistic", "pvalue", "adjusted", "unbiased"):
            np.testing.assert_allclose(found[name], getattr(expected, name), rtol=1e-9)
    assert "adjusted p (bh)" in run("matrix", files / "s.parquet", *asked, "--adjust", "bh").stdout
    lines = run("matrix", files / "s.parquet", *asked, "--csv").stdout.splitlines()
    assert lines[0] == "group_a,group_b,unbiased,distance,overlap,lower,upper,stderr,statistic,pvalue,adjusted"
    assert len(lines) == 4
    assert "with --units" in fails("matrix", files / "s.parquet", "--between", "site", "--level", 0.9)


def test_matrix_of_independent_rows(files):
    arrays = np.load(files / "x.npz")
    found = run_json("matrix", files / "x.npz", "--between", "site", "--level", 0.9, "--permutations", 49)
    pair = np.isin(arrays["site"], ["A", "C"])
    x, labels = arrays["x"][pair], arrays["site"][pair]
    alone = cf.cfd(x, labels=labels, level=0.9, weights="balanced")
    assert [found["lower"][0][2], found["upper"][0][2]] == pytest.approx(list(alone.interval), rel=1e-9)
    tested = cf.permutation_test(x, labels, permutations=299)
    assert found["pvalue"][0][2] == tested.pvalue
    assert found["statistic"][0][2] == pytest.approx(tested.statistic, rel=1e-12)
    assert found["stderr"][0][2] == pytest.approx(alone.stderr, rel=1e-9)


def test_the_test_gives_the_estimate_beside_it(files):
    asked = ("--between", "site", "--given", "label", "--permutations", 49, "--level", 0.9)
    expected = cf.read_summary(files / "s.parquet").cfd("site", given="label", units="patient", level=0.9)
    found = run_json("test", files / "s.parquet", *asked, "--units", "patient")
    assert found["interval"] == pytest.approx(list(expected.interval), rel=1e-12)
    assert found["exchanged"] == "patient"
    assert set(found) >= {"interval", "stderr", "pvalue", "statistic", "permutations", "distance", "unbiased"}
    arrays = np.load(files / "x.npz")
    rows = cf.cfd(arrays["x"], labels=arrays["site"], given=arrays["label"], level=0.9)
    found = run_json("test", files / "x.npz", *asked)
    assert found["interval"] == pytest.approx(list(rows.interval), rel=1e-9)


def test_a_test_without_an_interval_says_so(tmp_path):
    x, group, unit = unit_rows(4, 3, 3, 1.0, crossed=True)
    kept = ~((group == 1) & (unit > 0))  # one unit only is in the second group
    cf.summarize(x[kept], by={"g": group[kept], "u": unit[kept]}).write(tmp_path / "s.parquet")
    done = run("test", tmp_path / "s.parquet", "--between", "g", "--units", "u", "--permutations", 9, "--json", code=2)
    assert "fewer than two groups remain" in done.stderr
    alone = ["--permutations", 9, "--min-units", 1, "--json"]
    done = run("test", tmp_path / "s.parquet", "--between", "g", "--units", "u", *alone)
    assert json.loads(done.stdout)["interval"] is None
    assert "there is no interval" in done.stderr
