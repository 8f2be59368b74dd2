"""Warnings: one for each thing that is easily misread, and on the line that asked for it."""

import numpy as np
import pytest

import crossfusion as cf

X = np.random.default_rng(0).normal(size=(12, 2))
BY = {"p": [0, 1, 2, 3] * 3, "q": [5, 6, 7, 8] * 3, "u": [0] * 6 + [1] * 6}
SUMMARY = cf.summarize(X, by=BY)
BAD = np.where(np.arange(24).reshape(12, 2) == 7, np.nan, X)

CASES = {
    "confounded": ("the design is fully confounded", lambda: SUMMARY.cfd("p", given="q")),
    "confounded rows": ("the design is fully confounded", lambda: cf.cfd(X, labels=BY["p"], given=BY["q"])),
    "confounded rests": ("fully confounded", lambda: SUMMARY.one_vs_rest("p", given="q")),
    "confounded pairs": (r"confounded with given \(6 of 6\)", lambda: SUMMARY.pairwise("p", given="q")),
    "confounded features": ("fully confounded", lambda: SUMMARY.attribution("p", given="q")),
    "confounded units": ("fully confounded", lambda: SUMMARY.attribution("p", given="q", over="u")),
    "dropped from one of two": ("a has .* 1 of 12 rows", lambda: cf.cfd(BAD, X, nan="drop")),
    "dropped from labelled": ("x has .* 1 of 12 rows", lambda: cf.cfd(BAD, labels=BY["u"], nan="drop")),
    "dropped from a summary": ("x has .* 1 of 12 rows", lambda: cf.summarize(BAD, by={"u": BY["u"]}, nan="drop")),
    "small groups": (
        r"groups of fewer than 6 rows are left out \(1 of 2\): 1",
        lambda: cf.summarize(X[:11], by={"u": BY["u"][:11]}, min_count=6),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_warnings_say_what_and_point_at_who_asked(case):
    pattern, ask = CASES[case]
    with pytest.warns(cf.CrossfusionWarning, match=pattern) as caught:
        ask()
    assert {warning.filename for warning in caught} == {__file__}
    assert all("\n" not in str(warning.message) for warning in caught)
