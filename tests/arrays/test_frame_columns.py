"""Columns of pandas, Polars and PyArrow tables named as labels, strata or units; all pairs of an array's groups."""

import numpy as np
import pyarrow as pa
import pytest

import crossfusion as cf

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(120, 3))
BY = {
    "site": np.repeat(["A", "B", "C"], 40),
    "tissue": np.tile(["t", "u"], 60),
    "patient": np.char.add(np.repeat(["a", "b", "c"], 40), (np.arange(120) // 4 % 10).astype(str)),
}
COLUMNS = {f"dim_{k}": X[:, k] for k in range(3)}


def frame(kind, columns):
    return pytest.importorskip(kind).DataFrame(columns) if kind != "pyarrow" else pa.table(columns)


def assert_same(found, expected):
    """The same values, up to the order of sums."""
    found, expected = found.to_dict(), expected.to_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, list) and np.array(value).dtype.kind == "f":
            np.testing.assert_allclose(found[name], value, rtol=1e-9, atol=1e-12)
        else:
            assert found[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float | dict) else value), name


KINDS = ["pandas", "polars", "pyarrow"]
QUESTIONS = {
    "cfd": lambda x, site, **more: cf.cfd(x, labels=site, level=0.9, **more),
    "pairwise": lambda x, site, **more: cf.pairwise(x, site, level=0.9, permutations=19, **more),
    "permutation_test": lambda x, site, **more: cf.permutation_test(x, site, permutations=19, **more),
    "dispersion_test": lambda x, site, **more: cf.dispersion_test(x, site, permutations=19, **more),
    "one_vs_rest": lambda x, site, **more: cf.one_vs_rest(x, site, level=0.9, **more)["B"],
    "separability": lambda x, site, **more: cf.separability(x, site, **more),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", QUESTIONS)
def test_named_columns_are_values_and_not_features(name, kind):
    ask = QUESTIONS[name]
    rows = {**BY, **COLUMNS}  # the named columns come first
    expected = ask(X, BY["site"], given=BY["tissue"], units=BY["patient"])
    found = ask(frame(kind, rows), "site", given="tissue", units="patient")
    assert_same(found, expected)
    del rows["tissue"], rows["patient"]
    found = ask(frame(kind, rows), "site", given=BY["tissue"], units=BY["patient"])
    assert_same(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_paired_test_takes_the_names_of_columns(kind):
    by = {"scanner": np.tile(["S1", "S2"], 60), "slide": np.arange(120) // 2}
    expected = cf.permutation_test(X, by["scanner"], pairs=by["slide"], permutations=19)
    found = cf.permutation_test(frame(kind, {**COLUMNS, **by}), "scanner", pairs="slide", permutations=19)
    assert_same(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_vectors_holds_the_rows(kind):
    vectors = pa.array(list(X)) if kind == "pyarrow" else list(X)
    found = cf.cfd(frame(kind, {"site": BY["site"], "embedding": vectors}), labels="site")
    assert_same(found, cf.cfd(X, labels=BY["site"]))


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_vectors_of_unequal_length_are_refused(kind):
    table = frame(kind, {"site": ["A", "A", "B"], "embedding": [[1.0, 2.0], [1.0], [3.0, 4.0]]})
    with pytest.raises(cf.InputError, match="vectors of unequal length, or none, in column 'embedding'"):
        cf.cfd(table, labels="site")


@pytest.mark.parametrize("kind", KINDS)
def test_other_columns_that_hold_no_numbers_are_named(kind):
    with pytest.raises(cf.InputError) as raised:
        cf.cfd(frame(kind, {**BY, **COLUMNS}), labels="site")
    assert str(raised.value) == (
        "x has columns that do not hold numbers ('tissue', 'patient'): drop them, or name them as labels, given or"
        " units"
    )
    with pytest.raises(cf.InputError, match="x has no column 'sit': did you mean 'site'"):
        cf.cfd(frame(kind, {**BY, **COLUMNS}), labels="sit")
    with pytest.raises(cf.InputError, match="has no columns left that could be features"):
        cf.cfd(frame(kind, {"site": BY["site"]}), labels="site")


def test_a_name_without_columns_says_what_to_pass():
    expected = (
        "labels='site' names a column, but x is not a pandas, Polars or PyArrow table: pass such a table, or labels"
    )
    with pytest.raises(cf.InputError, match=expected):
        cf.cfd(X, labels="site")
    with pytest.raises(cf.InputError, match=r"^units='patient' names a column"):
        cf.pairwise(X, BY["site"], units="patient")


def test_numeric_columns_stay_features_unless_they_are_named():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({**COLUMNS, "batch": np.arange(120) % 2})
    assert cf.pairwise(table, "batch").labels == (0, 1)
    with_batch = cf.cfd(np.column_stack([X, np.arange(120) % 2]), labels=BY["site"])
    assert_same(cf.cfd(table, labels=BY["site"]), with_batch)


@pytest.mark.parametrize("weights", ["balanced", "pooled"])
@pytest.mark.parametrize("adjusted", [False, True])
def test_pairwise_is_cfd_of_the_two_groups_alone(weights, adjusted):
    given = BY["tissue"] if adjusted else None
    found = cf.pairwise(X, BY["site"], given=given, weights=weights, level=0.9, permutations=19)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        own = np.isin(BY["site"], [found.labels[i], found.labels[j]])
        stratum = None if given is None else given[own]
        expected = cf.cfd(X[own], labels=BY["site"][own], given=stratum, weights=weights, level=0.9)
        assert found.distance[i, j] == pytest.approx(expected.distance, rel=1e-9)
        assert (found.lower[i, j], found.upper[i, j]) == pytest.approx(expected.interval, rel=1e-9)
        assert 0 < found.pvalue[i, j] <= found.adjusted[i, j] <= 1


def test_pairwise_with_units_is_that_of_the_summary():
    found = cf.pairwise(X, BY["site"], units=BY["patient"], level=0.9, permutations=19, adjust="bh")
    expected = cf.summarize(X, by=BY).pairwise("site", units="patient", level=0.9, permutations=19, adjust="bh")
    assert_same(found, expected)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"level": 2}, "level=2"),
        ({"adjust": "no"}, "adjust='no'"),
        ({"permutations": 0}, "permutations=0"),
        ({"weights": "even"}, "weights='even'"),
        ({"units": ["a"]}, "units"),
    ],
)
def test_pairwise_refuses_what_cfd_refuses(options, problem):
    with pytest.raises(cf.InputError, match=problem):
        cf.pairwise(X, BY["site"], **options)


@pytest.mark.parametrize("name", ["one_vs_rest", "separability", "permutation_test", "dispersion_test"])
def test_no_remedy_names_an_option_that_the_function_does_not_have(name):
    rows = np.where(np.arange(360).reshape(120, 3) == 7, np.nan, X)
    with pytest.raises(
        cf.InputError, match=r"in row 2, feature 1 \(from 0\): fix them, or leave them out, with their lab"
    ):
        QUESTIONS[name](rows, BY["site"])
