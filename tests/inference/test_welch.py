"""The Welch statistic: its level under unequal spread, its power, and the permutations that pairs of groups need."""

import numpy as np
import pytest
from scipy.stats import binom

import crossfusion as cf
from tests.helpers.command_line import fails, run_json

DRAWS = 400
BOUNDS = binom.interval(0.999, DRAWS, 0.05)  # rejections at a level of 5%


def draw_groups(rng, sizes, spreads, *, shift=0.0, rows_per_unit=1, dim=16):
    """Rows of two groups of units; the rows of a unit vary a little around it."""
    units = np.vstack([rng.normal(0, sd, (size, dim)) for size, sd in zip(sizes, spreads, strict=True)])
    units[sizes[0] :] += shift
    unit = np.repeat(np.arange(sum(sizes)), rows_per_unit)
    noise = 0.3 * rng.normal(size=(len(unit), dim)) if rows_per_unit > 1 else 0.0
    return units[unit] + noise, unit >= sizes[0], unit


def count_rejections(sizes, spreads, statistic, *, rows_per_unit=1, shift=0.0, draws=DRAWS):
    rng, rejected = np.random.default_rng(11), 0
    for seed in range(draws):
        x, label, unit = draw_groups(rng, sizes, spreads, shift=shift, rows_per_unit=rows_per_unit)
        units = unit if rows_per_unit > 1 else None
        found = cf.permutation_test(x, label, units=units, permutations=199, seed=seed, statistic=statistic)
        rejected += found.pvalue <= 0.05
    return rejected


@pytest.mark.parametrize("rows_per_unit", [1, 4], ids=["rows", "units"])
@pytest.mark.parametrize("spreads", [(2, 1), (1, 2), (1, 1)])
def test_groups_of_equal_means_are_rejected_at_the_level_whatever_their_spread(spreads, rows_per_unit):
    rejected = count_rejections((20, 100), spreads, "welch", rows_per_unit=rows_per_unit)
    assert BOUNDS[0] <= rejected <= BOUNDS[1]


@pytest.mark.parametrize("rows_per_unit", [1, 4], ids=["rows", "units"])
def test_pseudo_f_takes_a_difference_in_spread_for_a_separation_and_says_so(rows_per_unit):
    draws = {"draws": 100, "rows_per_unit": rows_per_unit}
    assert count_rejections((20, 100), (2, 1), "pseudo-f", **draws) > 50
    assert count_rejections((20, 100), (1, 2), "pseudo-f", **draws) == 0
    for spreads, often in (((2, 1), "too often"), ((1, 2), "too seldom")):
        x, label, unit = draw_groups(np.random.default_rng(0), (20, 100), spreads, rows_per_unit=rows_per_unit)
        options = {"units": unit if rows_per_unit > 1 else None, "permutations": 99}
        assert often in cf.permutation_test(x, label, statistic="pseudo-f", **options).caution
        assert cf.permutation_test(x, label, **options).caution is None


def test_units_of_very_different_size_keep_the_level():
    rng, rejected = np.random.default_rng(5), 0
    for seed in range(DRAWS):
        units = np.vstack([2 * rng.normal(size=(15, 4)), rng.normal(size=(45, 4))])
        unit = np.repeat(np.arange(60), rng.integers(1, 12, 60))
        x = units[unit] + 0.3 * rng.normal(size=(len(unit), 4))
        rejected += cf.permutation_test(x, unit >= 15, units=unit, permutations=199, seed=seed).pvalue <= 0.05
    assert BOUNDS[0] <= rejected <= BOUNDS[1]


@pytest.mark.parametrize(("sizes", "shift"), [((60, 60), 0.14), ((20, 100), 0.2)])
def test_welch_finds_a_shift_of_groups_with_equal_spread_as_often_as_pseudo_f(sizes, shift):
    ours, theirs = (count_rejections(sizes, (1, 1), name, shift=shift, draws=200) for name in ("welch", "pseudo-f"))
    assert 60 < theirs < 180  # neither hopeless nor trivial
    assert ours >= theirs - 20


def test_the_statistics_agree_for_two_groups_of_the_same_size():
    x, label, _ = draw_groups(np.random.default_rng(3), (30, 30), (1, 1), shift=0.2)
    welch, pseudo_f = (cf.permutation_test(x, label, statistic=name) for name in ("welch", "pseudo-f"))
    assert welch.statistic == pytest.approx(pseudo_f.statistic, rel=1e-10)
    assert welch.pvalue == pseudo_f.pvalue


# ---- pairs of groups


def far_apart(groups, units=20, apart=10.0):
    """Groups of units of two rows each, far apart."""
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(groups * units), 2)
    group = unit // units
    x = rng.normal(size=(len(unit), 3)) + apart * group[:, None]
    return x, {"group": group, "unit": unit}


def test_pairs_of_many_groups_far_apart_are_significant():
    x, by = far_apart(15, units=10)
    found = cf.summarize(x, by=by).pairwise("group", units="unit", permutations=999)
    pairs = np.triu_indices(15, 1)
    assert found.adjusted[pairs].max() <= 0.01
    assert found.permutations >= len(pairs[0]) / 0.01 - 1
    assert found.statistic_name == "welch"
    assert found.caution is None


def test_pairs_that_do_not_differ_keep_the_requested_permutations():
    x, by = far_apart(15, units=6, apart=0.0)
    found = cf.summarize(x, by=by).pairwise("group", units="unit", permutations=99)
    assert found.adjusted[np.triu_indices(15, 1)].min() > 0.05
    assert (found.pvalue * 100 % 1 < 1e-9)[found.pvalue > 0.1].mean() > 0.9  # hundredths: 99 permutations


def test_pairs_with_too_few_units_have_a_caution_instead_of_a_silent_large_p():
    x, by = far_apart(4, units=4)
    found = cf.summarize(x, by=by).pairwise("group", units="unit", permutations=999)
    assert found.adjusted[np.triu_indices(4, 1)].min() == pytest.approx(6 * 2 / 70)
    assert "6 of 6 pairs cannot be below 0.171" in found.caution
    assert "more units are needed" in found.caution
    assert "caution: adjusted p-values of" in repr(found)
    assert found.to_dict()["caution"] == found.caution


def test_a_test_of_few_units_says_what_it_cannot_reach():
    x, label = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    found = cf.permutation_test(x, label)
    assert found.exact
    assert found.pvalue == 0.1
    assert "only 20 permutations" in found.caution
    assert "cannot be below 0.1" in found.caution
    few = cf.permutation_test(np.arange(40.0)[:, None] // 20, np.arange(40) // 20, permutations=9)
    assert "9 permutations cannot give a p-value below 0.1" in few.caution


def test_the_command_line_takes_the_statistic(tmp_path):
    x, by = far_apart(3, units=12, apart=0.5)
    path = tmp_path / "rows.npz"
    np.savez(path, x=x, **by)
    asked = [path, "--between", "group", "--units", "unit"]
    for command in (["test", *asked], ["matrix", *asked, "--permutations", "99"]):
        assert run_json(*command)["statistic_name"] == "welch"
        assert run_json(*command, "--statistic", "pseudo-f")["statistic_name"] == "pseudo-f"
        assert "--statistic" in fails(*command, "--statistic", "t")


def test_a_report_repeats_what_a_test_cannot_reach():
    x, by = far_apart(3, units=3)
    found = cf.Report(cf.summarize(x, by=by), between="group", units="unit").to_dict()
    assert found["test"]["statistic_label"] == "Welch W*d"
    assert any("cannot be below" in concern["text"] for concern in found["warnings"] if concern["kind"] == "test")


@pytest.mark.parametrize("scale", [1e-155, 1e-100, 1e-60, 1e60, 1e120])
@pytest.mark.parametrize("by_units", [False, True])
def test_the_statistic_does_not_depend_on_the_scale(scale, by_units):
    labels = np.arange(60) % 3
    x = np.random.default_rng(0).normal(size=(60, 4)) + 0.1 * labels[:, None]
    units = 3 * (np.arange(60) // 6) + labels if by_units else None
    plain, scaled = (cf.permutation_test(rows, labels, units=units, permutations=99) for rows in (x, scale * x))
    assert scaled.statistic == pytest.approx(plain.statistic, rel=1e-6)
    assert scaled.pvalue == plain.pvalue


def test_a_statistic_that_is_not_a_number_is_refused():
    labels = np.arange(60) % 3
    x = np.random.default_rng(0).normal(size=(60, 4)) * np.where(labels == 2, 1e-9, 1)[:, None] + 100 * labels[:, None]
    with pytest.raises(cf.InputError, match="range of float64"):
        cf.permutation_test(1e-158 * x, labels, permutations=99)
