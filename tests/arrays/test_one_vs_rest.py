"""One group against the rest: intervals from rows and from units, at the observed mixture of the rest."""

import importlib

import numpy as np
import pytest

import crossfusion as cf


def made(groups=4, patients=12, rows=8, dim=6, seed=0, spread=0.4, shifts=(0.0, 0.2, 0.6, 3.0)):
    """Rows of patients of sites, of which the last is far away."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(groups * patients), rows)
    site = patient // patients
    x = rng.normal(size=(len(patient), dim)) + spread * rng.normal(size=(groups * patients, dim))[patient]
    x[:, 0] += np.array(shifts)[site]
    return x, site, patient


def true_distance(weights, shifts, variance):
    """CFD of the first group and the others from its formula, with rows of this variance around the shifts."""
    weights, shifts = np.array(weights) / np.sum(weights), np.array(shifts)
    total = variance + weights @ (shifts - weights @ shifts) ** 2
    rest = weights[1:] / weights[1:].sum()
    apart = weights[0] * weights[1:].sum() * (shifts[0] - rest @ shifts[1:]) ** 2
    return -np.log(1 - apart / total)


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("given", [None, "tissue"])
def test_two_groups_are_cfd(weights, given):
    x, site, patient = made(2, shifts=(0.0, 0.5))
    tissue = np.arange(len(x)) % 3
    strata = None if given is None else tissue
    for units in (patient, None):
        options = {"given": strata, "weights": weights, "level": 0.9, "units": units}
        expected = cf.cfd(x, labels=site, **options)
        for fusion in cf.one_vs_rest(x, site, **options).values():
            np.testing.assert_allclose(fusion.interval, expected.interval, rtol=1e-9)
            assert fusion.unbiased == pytest.approx(expected.unbiased, rel=1e-9)
            assert fusion.stderr == pytest.approx(expected.stderr, rel=1e-9)
            assert fusion.distance == pytest.approx(expected.distance)
            assert fusion.level == 0.9


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
def test_rows_and_summary_agree(weights):
    x, site, patient = made()
    tissue = np.arange(len(x)) % 2
    summary = cf.summarize(x, by={"site": site, "patient": patient, "tissue": tissue})
    expected = summary.one_vs_rest("site", given="tissue", units="patient", weights=weights, level=0.95)
    found = cf.one_vs_rest(x, site, given=tissue, units=patient, weights=weights, level=0.95)
    for label, fusion in summary.one_vs_rest("site", given="tissue", weights=weights).items():
        for other in (found[label], expected[label]):
            assert other.distance == pytest.approx(fusion.distance)
            assert other.counts == fusion.counts
        np.testing.assert_allclose(found[label].interval, expected[label].interval, rtol=1e-9)
    plain = cf.one_vs_rest(x, site, given=tissue, weights=weights)
    assert {k: f.unbiased for k, f in plain.items()} == pytest.approx(
        {k: f.unbiased for k, f in summary.one_vs_rest("site", given="tissue", weights=weights).items()}
    )


def test_other_groups_far_apart_are_not_an_error_of_the_rest():
    """Relabelled as one group, the far site would make the mean of the rest seem uncertain."""
    x, site, patient = made()
    relabelled = cf.cfd(x, labels=site == 0, units=patient, level=0.95)
    fusion = cf.one_vs_rest(x, site, units=patient, level=0.95)[0]
    assert fusion.distance == pytest.approx(relabelled.distance)
    assert fusion.stderr < 0.8 * relabelled.stderr


@pytest.mark.parametrize("by", ["units", "rows"])
def test_intervals_hold_the_distance_at_the_observed_weights(by):
    shifts, held = (0.0, 0.2, 0.6, 3.0), []
    variance = 6 * (1 + 0.4**2) if by == "units" else 6.0
    expected = true_distance([1] * 4, shifts, variance)
    for seed in range(120):
        x, site, patient = made(seed=seed, spread=0.4 if by == "units" else 0.0)
        fusion = cf.one_vs_rest(x, site, units=patient if by == "units" else None, level=0.9)[0]
        held.append(fusion.interval[0] <= expected <= fusion.interval[1])
    assert 0.82 <= np.mean(held) <= 0.97


def test_some_rows_give_nearly_the_same_intervals(monkeypatch):
    module = importlib.import_module("crossfusion.arrays.group_and_rest")
    x, site, _ = made(patients=200, spread=0.0)
    expected = cf.one_vs_rest(x, site, level=0.95)
    monkeypatch.setattr(module, "MAX_NUMBERS", 1)
    for label, fusion in cf.one_vs_rest(x, site, level=0.95).items():
        assert fusion.unbiased == expected[label].unbiased
        assert fusion.stderr != expected[label].stderr
        assert fusion.stderr == pytest.approx(expected[label].stderr, rel=0.1)


def test_many_groups_of_rows_have_intervals():
    """More cells of a stratum than are compared pair by pair."""
    x, site, _ = made(30, patients=1, rows=20, spread=0.0, shifts=[0.0] * 29 + [2.0])
    found = cf.one_vs_rest(x, site, level=0.95, weights="balanced")
    assert found[29].interval[0] > 0
    assert np.mean([fusion.interval[0] == 0 for label, fusion in found.items() if label != 29]) > 0.8


def test_small_groups_are_left_out_of_the_rest_too():
    x, site, patient = made()
    few = (site != 1) | (patient == 12)
    with pytest.warns(cf.CrossfusionWarning, match="left out"):
        found = cf.one_vs_rest(x[few], site[few], units=patient[few], level=0.95)
    assert list(found) == [0, 2, 3]
    without = site[few] != 1
    alone = cf.one_vs_rest(x[few][without], site[few][without], units=patient[few][without], level=0.95)
    for label, fusion in found.items():
        assert [entry.group for entry in fusion.excluded] == [1]
        assert fusion.interval == pytest.approx(alone[label].interval)


@pytest.mark.filterwarnings("ignore:the design is fully confounded")
def test_a_group_alone_in_its_stratum_has_no_distance_and_a_reason():
    x, site, patient = made()
    found = cf.one_vs_rest(x, site, given=site == 3, units=patient, level=0.95)
    assert (found[3].distance, found[3].interval) == (None, None)
    assert found[3].reason == "no stratum holds two of the compared groups"
    assert found[0].interval is not None


def test_bad_arguments_are_named():
    x, site, _ = made()
    summary = cf.summarize(x, by={"site": site})
    with pytest.raises(cf.InputError, match="level=7"):
        cf.one_vs_rest(x, site, level=7)
    with pytest.raises(cf.InputError, match="needs units"):
        summary.one_vs_rest("site", level=0.95)
