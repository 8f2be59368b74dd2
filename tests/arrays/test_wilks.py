"""Wilks' Λ equals that of statsmodels, obeys the chain rule, and is refused where it is not defined."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.multivariate.manova import MANOVA

import crossfusion as cf

RNG = np.random.default_rng(12)
X = RNG.normal(size=(300, 5)) @ RNG.normal(size=(5, 5))
A, B = RNG.choice(["a", "b", "c"], 300), RNG.integers(0, 2, 300)
X[A == "a"] += 0.3


def test_it_is_that_of_statsmodels():
    frame = pd.DataFrame(X, columns=list("vwxyz")).assign(a=A)
    found = MANOVA.from_formula("v + w + x + y + z ~ a", frame).mv_test().results["a"]["stat"]["Value"]
    assert cf.log_wilks(X, A) == pytest.approx(-np.log(float(found["Wilks' lambda"])), abs=1e-10)


def test_the_chain_rule_holds():
    both = [f"{a} {b}" for a, b in zip(A, B, strict=True)]
    assert cf.log_wilks(X, both) == pytest.approx(cf.log_wilks(X, A) + cf.log_wilks(X, B, given=A), rel=1e-10)


def test_no_invertible_linear_map_changes_it():
    turned = X @ RNG.normal(size=(5, 5)) * 1e6
    assert cf.log_wilks(turned, A) == pytest.approx(cf.log_wilks(X, A), rel=1e-8)
    lens = cf.lens.whiten(X, by={"a": A}, shrinkage=0.0)
    assert cf.log_wilks(X, A, lens=lens) == pytest.approx(cf.log_wilks(X, A), rel=1e-8)


def test_one_group_per_stratum_is_not_separated():
    assert cf.log_wilks(X, ["one"] * 300) == 0
    assert cf.log_wilks(X, A, given=A) == 0


def test_where_it_is_not_defined_it_is_refused(refuses):
    for rows in (np.insert(X, 0, 1.0, axis=1), np.insert(X, 0, X.sum(axis=1), axis=1), X[:6]):
        with refuses("x has a direction in which rows do not vary within groups, so that Λ is not defined"):
            cf.log_wilks(rows, A[: len(rows)])
    with refuses("NaN or infinite values", cf.NonFiniteError):
        cf.log_wilks(np.where(X > 2, np.nan, X), A)
