"""Counts are singular where they are one, names are not empty, and numbers have four significant digits."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crossfusion as cf
from crossfusion._base import count_text, interval_text, number_text, p_text, percent, pvalue_text, quantity_text


def test_one_is_singular():
    assert [count_text(number, "row") for number in (0, 1, 2, 1200)] == ["0 rows", "1 row", "2 rows", "1,200 rows"]
    summary = cf.summarize(np.zeros((1, 1)), by={"site": ["A"]})
    assert repr(summary).startswith("Summary of 1 group by site: 1 row × 1 feature (float64)")
    with pytest.raises(cf.InputError, match="has 2 entries for 1 row of"):
        cf.summarize(np.zeros((1, 1)), by={"site": ["A", "B"]})


def test_empty_names_of_factors_are_refused():
    with pytest.raises(cf.InputError, match="has an empty name"):
        cf.summarize(np.zeros((2, 1)), by={"": ["A", "B"]})
    moments = cf.Moments.of(np.zeros((2, 1)), np.array([0, 1]))
    with pytest.raises(cf.InputError, match="a factor has an empty name"):
        cf.Summary(pa.table({"": ["A", "B"]}), moments)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0055123, "0.005512"),
        (4.4392e-4, "0.0004439"),
        (1e-4, "0.0001000"),
        (9.9e-5, "< 0.0001"),
        (5e-324, "< 0.0001"),
        (-8e-5, "> -0.0001"),
        (-0.0038, "-0.003800"),
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1.000"),
        (0.99996, "1.000"),
        (999.94, "999.9"),
        (999.96, "1,000"),
        (12345.6, "12,346"),
        (1234567.0, "1.235e+06"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
        (np.nan, "–"),
        (None, "–"),
    ],
)
def test_numbers_have_four_significant_digits(value, text):
    assert number_text(value) == text


def test_quantities_of_any_scale_keep_their_digits():
    assert [*map(quantity_text, (8.3104e-5, -2e-9, 0.5, 0.0))] == ["8.310e-05", "-2.000e-09", "0.5000", "0"]


def test_pvalues_have_no_trailing_zeros():
    assert [*map(pvalue_text, (0.001, 0.05, 1.0, 0.99999, 1e-5, 10 / 300))] == [
        "0.001", "0.05", "1", "1", "< 0.0001", "0.03333",
    ]  # fmt: skip
    assert [*map(p_text, (0.001, 1e-9))] == ["p = 0.001", "p < 0.0001"]


def test_only_exact_shares_are_whole():
    shares = (0, 1, 0.9999, 0.9994, 0.0004, 0.014, -0.0004, -0.2, None, np.nan)
    texts = ["0%", "100%", "> 99.9%", "99.9%", "< 0.1%", "1.4%", "> -0.1%", "-20.0%", "–", "–"]
    assert [*map(percent, shares)] == texts


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e12, max_value=1e12))
def test_what_is_printed_is_the_number_to_four_digits(value):
    text = number_text(value)
    if text[0] in "<>":
        assert 0 < abs(value) < 1e-4
        assert (text[0] == "<") == (value > 0)
    else:
        assert float(text.replace(",", "")) == pytest.approx(value, rel=5.01e-4)


def test_an_interval_of_noise_does_not_read_as_zeros():
    assert interval_text(3e-9, (0.0, 4e-5)) == "< 0.0001 (0 to < 0.0001)"
