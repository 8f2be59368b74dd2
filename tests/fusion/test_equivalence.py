"""Equivalence: whether the upper limit lies below a margin."""

import pickle

import numpy as np
import pytest

import crossfusion as cf

DRAWN = np.random.default_rng(0).normal(size=(2, 400, 8))
EQUAL = cf.cfd(*DRAWN, level=0.95)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_the_margin_is_compared_with_the_upper_limit_at_one_minus_two_alpha(alpha):
    lower, upper = cf.cfd(*DRAWN, level=1 - 2 * alpha).interval or (None, 0.0)
    assert EQUAL.limits(1 - 2 * alpha) == (lower, upper)
    assert EQUAL.fused_within(upper * 1.0001, alpha) is True
    assert EQUAL.fused_within(upper, alpha) is False


def test_any_distance_with_errors_answers():
    x, site, patient = DRAWN.reshape(800, 8), np.repeat(["A", "B"], 400), np.arange(800) // 10
    summary = cf.summarize(x, by={"site": site, "patient": patient})
    for fusion in (
        summary.cfd("site", units="patient"),
        summary.one_vs_rest("site", units="patient")["A"],
        cf.cfd(x, labels=site, units=patient),
        pickle.loads(pickle.dumps(EQUAL)),
    ):
        assert fusion.fused_within(0.05) is True
        assert fusion.fused_within(1e-6) is False
    assert "errors" not in EQUAL.to_dict()
    assert pickle.loads(pickle.dumps(EQUAL)) == EQUAL


def test_groups_that_are_apart_are_not_equivalent():
    assert cf.cfd(DRAWN[0], DRAWN[1] + 1, level=0.95).fused_within(0.05) is False


@pytest.mark.filterwarnings("ignore:the design is fully confounded")
def test_there_is_no_answer_where_the_data_have_none():
    x, site = DRAWN.reshape(800, 8), np.repeat([0, 1], 400)
    confounded = cf.cfd(x, labels=site, given=site)
    assert (confounded.fused_within(0.1), confounded.limits(0.9)) == (None, None)
    centered = x - np.array([rows.mean(axis=0) for rows in DRAWN])[site]
    fusion = cf.cfd(centered, labels=site, level=0.95)
    assert fusion.interval[1] < 0.01
    assert fusion.fused_within(0.1) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0.0,), "margin=0.0 must be a finite number above 0"),
        ((np.inf,), "margin=inf must be"),
        ((0.1, 0.5), "alpha=0.5 must be at least 1e-06 and at most 0.25"),
        ((0.1, 0), "alpha=0 must be"),
    ],
)
def test_bad_arguments_are_named(arguments, said):
    with pytest.raises(cf.InputError, match=said):
        EQUAL.fused_within(*arguments)


def test_a_distance_without_errors_says_what_to_pass():
    with pytest.raises(cf.InputError, match=r"no interval was requested: pass level=0\.95"):
        cf.cfd(*DRAWN).fused_within(0.1)
    with pytest.raises(cf.InputError, match="level=2 must be"):
        EQUAL.limits(2)
