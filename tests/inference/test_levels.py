"""Tests hold the level that they promise, and find what is there; those that ignore the design do not."""

import numpy as np
import pytest
from scipy import stats

import crossfusion as cf


def band(number, level=0.05):
    return stats.binom.interval(0.999, number, level)


def rejections(simulate, number, **options):
    """How often tests of simulated rows say 5 %; several tests of the same rows if there are several designs."""
    counts = []
    for seed in range(number):
        draw = np.random.default_rng(seed)
        counts.append([found.pvalue <= 0.05 for found in simulate(draw, permutations=99, seed=seed)])
    return np.sum(counts, axis=0)


def by_rows(draw, **options):
    labels = np.repeat([0, 1, 2], [4, 9, 20])
    yield cf.permutation_test(draw.exponential(size=(33, 3)), labels, **options)


def by_units(draw, **options):
    unit, number = np.repeat(np.arange(16), 2 + np.arange(16) % 5), 16
    x = draw.normal(size=(len(unit), 3)) + draw.normal(size=(number, 3))[unit]  # intra-class correlation 0.5
    labels = draw.permutation(np.arange(16) % 2)[unit]
    yield cf.permutation_test(x, labels, units=unit, **options)
    yield cf.dispersion_test(x, labels, units=unit, **options)
    yield cf.permutation_test(x, labels, **options)


def by_strata(draw, **options):
    strata = np.repeat([0, 1], 20)
    labels = (draw.uniform(size=40) < np.where(strata == 0, 0.3, 0.7)).astype(int)
    labels[[0, 20]], labels[[1, 21]] = 0, 1
    x = draw.normal(size=(40, 3)) + 2 * strata[:, None]
    yield cf.permutation_test(x, labels, given=strata, **options)
    yield cf.permutation_test(x, labels, **options)


def by_pairs(draw, **options):
    slide, scanner = np.repeat(np.arange(12), 6), np.tile([0, 0, 0, 0, 1, 1], 12)
    scan = 2 * slide + scanner
    x = draw.normal(size=(72, 3)) + draw.normal(size=(12, 3))[slide] + draw.normal(size=(24, 3))[scan]
    x += draw.normal(size=(24, 3))[scan]
    yield cf.permutation_test(x, scanner, pairs=slide, **options)
    yield cf.permutation_test(x, scanner, **options)


def by_uneven_pairs(draw, **options):
    slide, scanner = np.repeat(np.arange(20), 20), np.tile([0] * 3 + [1] * 17, 20)
    x = draw.normal(size=(400, 200)) + draw.normal(size=(20, 200))[slide]
    yield cf.permutation_test(x, scanner, pairs=slide, **options)


def by_units_in_strata(draw, **options):
    unit, tissue = np.repeat(np.arange(16), 4), np.tile([0, 0, 1, 1], 16)
    tissue[:12] = 0
    site = draw.permutation(16)[unit] % 2
    x = draw.normal(size=(64, 3)) + draw.normal(size=(16, 3))[unit] + tissue[:, None]
    summary = cf.summarize(x, by={"site": site, "tissue": tissue, "unit": unit})
    yield summary.test("site", given="tissue", units="unit", **options)


SIMULATIONS = {
    "rows": by_rows,
    "units": by_units,
    "strata": by_strata,
    "pairs": by_pairs,
    "uneven pairs": by_uneven_pairs,
    "both": by_units_in_strata,
}


@pytest.mark.parametrize("name", SIMULATIONS)
def test_the_level_holds(name):
    number = 300
    low, high = band(number)
    found = rejections(SIMULATIONS[name], number)
    assert low <= found[0] <= high
    if name == "units":
        assert found[1] <= high  # of spread
    if name in ("units", "strata", "pairs"):
        assert found[-1] > 1.5 * high  # what ignores units, strata or pairs


@pytest.mark.parametrize("sizes", [(20, 20, 20), (15, 60)], ids=str)
@pytest.mark.parametrize("dim", [4, 200])
def test_spread_is_tested_at_its_level(sizes, dim):
    labels = np.repeat(np.arange(len(sizes)), sizes)

    def simulate(draw, **options):
        x = draw.normal(size=(len(labels), dim)) + 3 * draw.normal(size=(len(sizes), dim))[labels]
        yield cf.dispersion_test(x, labels, **options)

    low, high = band(300)
    assert low <= rejections(simulate, 300)[0] <= high


def test_a_clear_shift_is_found():
    draw = np.random.default_rng(0)
    unit = np.repeat(np.arange(20), 5)
    x = draw.normal(size=(100, 4)) + draw.normal(size=(20, 4))[unit]
    label = unit % 2
    shifted = x + 2 * label[:, None]
    assert cf.permutation_test(shifted, label).pvalue == 0.001
    assert cf.permutation_test(shifted, label, units=unit).pvalue == 0.001
    within = np.tile([0, 0, 0, 1, 1], 20)
    small = x + 0.8 * within[:, None]
    assert cf.permutation_test(small, within, pairs=unit).pvalue == 0.001
    assert cf.permutation_test(x, within, pairs=unit).pvalue > 0.05
    wide = np.where(label[:, None] == 1, 3 * x, x)
    assert cf.dispersion_test(wide, label, units=unit).pvalue == 0.001
    assert cf.permutation_test(wide, label, units=unit).pvalue > 0.05
