"""Counts are singular where they are one, and names are not empty."""

import numpy as np
import pyarrow as pa
import pytest

import crossfusion as cf
from crossfusion._base import count_text


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
