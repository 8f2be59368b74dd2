"""Moments: the laws of a commutative monoid, and every kind of rows that people pass."""

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import crossfusion as cf
from crossfusion.moments.moments import concat
from tests.helpers import reference

EPS = np.finfo(np.float64).eps


def assert_same(found, expected):
    """Bit for bit."""
    for name in ("count", "mean", "sumsq"):
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def assert_moments_of(found, rows):
    """To rounding of the values and their deviations, which is far less than rounding of their squares."""
    rows = np.asarray(rows).astype(np.float64)
    exact = reference.moments(rows)
    mean, sumsq = (np.array(values, np.float64) for values in (exact.mean, exact.sumsq))
    unit = 64 * EPS * np.abs(rows).max(axis=0, initial=0)
    assert found.count == len(rows)
    assert np.all(np.abs(found.mean - mean) <= unit)
    assert np.all(
        np.abs(found.sumsq - sumsq) <= 64 * EPS * sumsq + unit * np.sqrt(len(rows) * sumsq) + len(rows) * unit**2
    )


@st.composite
def some_rows(draw):
    """Rows at some offset and scale, some features constant."""
    shape = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    values = draw(hnp.arrays(np.float64, shape, elements=st.floats(-1, 1, width=32)))
    scale = draw(hnp.arrays(np.float64, shape[1:], elements=st.sampled_from([0.0, 1e-3, 1.0, 1e5])))
    return values * scale + draw(st.sampled_from([0.0, 1.0, -1e6, 1e9]))


@given(some_rows())
def test_empty_is_the_identity_bit_for_bit(rows):
    moments, empty = cf.Moments.of(rows), cf.Moments.empty(rows.shape[1])
    assert_same(moments + empty, moments)
    assert_same(empty + moments, moments)
    assert_same(empty + empty, empty)


@given(some_rows(), st.data())
def test_addition_commutes_and_associates_to_rounding(rows, data):
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, len(rows))] * 2)))
    a, b, c = (cf.Moments.of(part) for part in (rows[:first], rows[first:second], rows[second:]))
    for total in ((a + b) + c, a + (b + c), c + (b + a), (c + a) + b):
        assert_moments_of(total, rows)


@given(some_rows(), st.data())
def test_any_split_in_any_order_sums_to_the_whole(rows, data):
    piece = data.draw(hnp.arrays(np.int8, len(rows), elements=st.integers(0, 4)))
    parts = [cf.Moments.of(rows[piece == k]) for k in data.draw(st.permutations(range(5)))]
    assert_moments_of(sum(parts), rows)
    assert_moments_of(concat(parts).merge(np.zeros(5, int), 1)[0], rows)
    assert_moments_of(cf.Moments.of(rows), rows)


@given(some_rows(), st.data())
def test_frequency_is_repetition(rows, data):
    times = data.draw(hnp.arrays(np.int8, len(rows), elements=st.integers(0, 3)))
    found = cf.Moments.of(rows, frequency=times)
    repeated = np.repeat(rows, times, axis=0)
    if len(repeated):
        assert_moments_of(found, repeated)
    else:
        assert_same(found, cf.Moments.empty(rows.shape[1]))


def test_frequency_need_not_be_whole():
    moments = cf.Moments.of([[0.0], [4.0]], frequency=[0.5, 1.5])
    assert (float(moments.count), moments.mean[0], moments.sumsq[0]) == (2.0, 3.0, 6.0)


@pytest.mark.parametrize("offset", [0, 1e6, 1e9, -1e12])
@pytest.mark.parametrize("number", [2, 100, 5000])
def test_offsets_cost_no_digits(offset, number):
    rows = offset + np.random.default_rng(1).normal(size=(number, 3))
    assert_moments_of(cf.Moments.of(rows), rows)
    assert_moments_of(sum(cf.Moments.of(part) for part in np.array_split(rows, 7)), rows)


def test_one_row_is_its_mean():
    moments = cf.Moments.of([[0.1, -3.0]])
    assert (float(moments.count), moments.mean.tolist(), moments.sumsq.tolist()) == (1.0, [0.1, -3.0], [0.0, 0.0])
    assert moments.dispersion == 0


@pytest.mark.parametrize("rows", [np.empty((0, 3)), np.empty((0, 3), np.int8), sparse.csr_array((0, 3))])
def test_no_rows_are_empty(rows):
    assert_same(cf.Moments.of(rows), cf.Moments.empty(3))


# ---- kinds of rows: whole numbers from 0 to 100, which every type holds exactly

X = np.random.default_rng(2).integers(0, 101, (37, 6)).astype(np.float64)


class OnlyArray:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class OnlyInterface:
    def __init__(self, values):
        self.values, self.__array_interface__ = values, values.__array_interface__


class OnlyDlpack:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


def of_type(name, tmp_path):
    return X.astype(name)


def memmap(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def read_only(tmp_path):
    rows = X.copy()
    rows.flags.writeable = False
    return rows


def torch_tensor(**options):
    return lambda tmp_path: pytest.importorskip("torch").tensor(X, **options)


def torch_bfloat16(tmp_path):
    return pytest.importorskip("torch").tensor(X).bfloat16().requires_grad_()


def jax_array(dtype):
    return lambda tmp_path: pytest.importorskip("jax.numpy").asarray(X, dtype)


TYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">f2", ">f4", ">f8", ">i2", ">i8"]
KINDS: dict[str, Callable[[Path], Any]] = {
    **{name: partial(of_type, name) for name in TYPES},
    "Fortran order": lambda tmp_path: np.asfortranarray(X, np.float32),
    "every other row": lambda tmp_path: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda tmp_path: np.repeat(X, 2, axis=1).astype(np.float32)[:, ::2],
    "backwards": lambda tmp_path: X[::-1, ::-1].copy()[::-1, ::-1],
    "memmap": memmap,
    "read-only": read_only,
    "list": lambda tmp_path: X.tolist(),
    "np.matrix": lambda tmp_path: X.view(np.matrix),
    "masked array without masked entries": lambda tmp_path: np.ma.masked_array(X, np.zeros_like(X, bool)),
    "pandas": lambda tmp_path: pd.DataFrame(X),
    "Polars": lambda tmp_path: pl.DataFrame(X),
    "__array__": lambda tmp_path: OnlyArray(X),
    "__array_interface__": lambda tmp_path: OnlyInterface(X),
    "__dlpack__": lambda tmp_path: OnlyDlpack(X),
    "torch": torch_tensor(),
    "torch with gradient": torch_tensor(requires_grad=True),
    "torch bfloat16": torch_bfloat16,
    "JAX": jax_array("float32"),
    "JAX bfloat16": jax_array("bfloat16"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_rows_gives_the_same_moments(kind, route, tmp_path):
    rows = KINDS[kind](tmp_path)
    expected = reference.moments(X)
    for found in (cf.Moments.of(rows), cf.Moments.of(rows, frequency=np.ones(len(X)))):
        np.testing.assert_allclose(found.mean, np.array(expected.mean, float), rtol=1e-7)
        np.testing.assert_allclose(found.sumsq, np.array(expected.sumsq, float), rtol=1e-6)


def test_booleans_count_as_zero_and_one(route):
    moments = cf.Moments.of(np.array([[True, False], [True, True]]))
    assert (moments.mean.tolist(), moments.sumsq.tolist()) == ([1.0, 0.5], [0.0, 0.5])


# ---- sparse rows


def with_oddities(kind):
    """Explicit zeros, entries stored twice, empty rows; and what they amount to."""
    number, dim = 5000, 7  # more rows than one block of the sparse route
    draw = np.random.default_rng(3)
    row, column = draw.integers(0, number - 3, 9000), draw.integers(0, dim, 9000)
    value = np.where(draw.random(9000) < 0.1, 0.0, draw.normal(5, 1, 9000))
    stored = sparse.coo_array((value, (row, column)), (number, dim))
    if kind is sparse.csr_array:  # keep what a conversion would sum up
        order = np.argsort(row, kind="stable")
        starts = np.searchsorted(row[order], np.arange(number + 1))
        return sparse.csr_array((value[order], column[order], starts), (number, dim)), stored.toarray()
    return kind(stored), stored.toarray()


SPARSE = [
    getattr(sparse, f"{layout}_{kind}")
    for layout in ("csr", "csc", "coo", "lil", "bsr")
    for kind in ("array", "matrix")
]


@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: kind.__name__)
def test_sparse_rows_are_their_dense_ones(kind):
    rows, dense = with_oddities(kind)
    frequency = np.arange(len(dense)) % 4
    assert_moments_of(cf.Moments.of(rows), dense)
    assert_moments_of(cf.Moments.of(rows, frequency=frequency), np.repeat(dense, frequency, axis=0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_sparse_rows_of_any_type_and_group(dtype):
    dense = (np.random.default_rng(4).random((60, 5)) < 0.3).astype(dtype)
    labels = np.arange(60) % 3
    found, expected = (cf.summarize(x, by={"g": labels}).moments for x in (sparse.csr_array(dense), dense))
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-14)
    np.testing.assert_allclose(found.sumsq, expected.sumsq, rtol=1e-13)


QUESTIONS = {
    "moments": lambda rows: cf.Moments.of(rows),
    "frequency": lambda rows: cf.Moments.of(rows, frequency=np.ones(rows.shape[0])),
    "labels": lambda rows: cf.cfd(rows, labels=np.arange(rows.shape[0]) % 2),
    "trim": lambda rows: cf.cfd(rows, labels=np.arange(rows.shape[0]) % 2, trim=0.1),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_sparse_rows_are_never_made_dense_as_a_whole(question):
    draw, stored = np.random.default_rng(5), 4000
    places = draw.integers(2000, size=stored), draw.integers(20_000, size=stored)
    rows = sparse.csr_array((draw.random(stored), places), (2000, 20_000))
    dense = rows.shape[0] * rows.shape[1] * 8
    tracemalloc.start()
    try:
        QUESTIONS[question](rows)
        assert tracemalloc.get_traced_memory()[1] < dense / 8
    finally:
        tracemalloc.stop()


# ---- what is refused, and what cannot be changed

BAD = {
    "vector": (np.ones(3), r"rows must be two-dimensional.*\(3,\)"),
    "number": (3.0, "rows must be two-dimensional"),
    "cube": (np.ones((2, 3, 4)), r"rows must be two-dimensional.*\(2, 3, 4\)"),
    "sparse vector": (sparse.coo_array(np.ones(3)), "rows must be two-dimensional"),
    "no features": (np.ones((3, 0)), "rows has rows without features"),
    "objects": (np.array([[1, "a"]], object), "rows must hold numbers.*object"),
    "complex": (np.ones((2, 2)) * 1j, "rows must hold numbers.*complex128"),
    "sparse complex": (sparse.csr_array(np.ones((2, 2)) * 1j), "rows must hold numbers.*complex128"),
    "strings": (np.array([["a"]]), "rows must hold numbers"),
    "dates": (np.array([["2024-01-01"]], "datetime64[D]"), "rows must hold numbers.*datetime64"),
    "more than 64 bits": (np.ones((2, 2), np.longdouble), "rows must hold numbers of up to 64 bits"),
    "records": (np.zeros((2, 2), [("a", float)]), "rows must hold numbers"),
    "None": (None, "rows"),
    "ragged": ([[1.0], [1.0, 2.0]], "rows cannot be read"),
    "masked": (np.ma.masked_array(np.ones((2, 2)), [[True, False], [False, False]]), "rows is a masked array"),
}
with suppress(TypeError, ValueError):  # SciPy before 1.15 has none
    BAD["sparse cube"] = (sparse.coo_array(np.ones((2, 2, 2))), "rows must be two-dimensional")


@pytest.mark.parametrize("case", BAD)
def test_what_are_no_rows_is_refused(case, refuses):
    rows, pattern = BAD[case]
    with refuses(pattern):
        cf.Moments.of(rows)


@pytest.mark.parametrize("make", ["to_sparse", "meta"])
def test_tensors_without_plain_memory_are_refused(make, refuses):
    torch = pytest.importorskip("torch")
    with refuses("rows"):
        cf.Moments.of(torch.tensor(X).to_sparse() if make == "to_sparse" else torch.empty(3, 3, device="meta"))


@pytest.mark.parametrize(
    ("frequency", "pattern"),
    [
        ([1.0], "frequency has shape"),
        ([[1.0], [1.0]], "frequency has shape"),
        ([1.0, -1.0], "frequency must be"),
        ([1.0, np.nan], "frequency must be"),
        (["a", "b"], "frequency"),
    ],
)
def test_bad_frequency_is_refused(frequency, pattern, refuses):
    with refuses(pattern):
        cf.Moments.of([[1.0], [2.0]], frequency=frequency)


def test_rows_that_do_not_count_may_be_anything(refuses):
    rows = [[np.inf], [1.0], [np.nan]]
    assert cf.Moments.of(rows, frequency=[0, 2, 0]).mean == 1
    with refuses("row 2, feature 0", cf.NonFiniteError):
        cf.Moments.of(rows, frequency=[0, 1, 1])


def test_moments_of_other_shape_do_not_add(refuses):
    many = cf.Moments(np.ones(2), np.ones((2, 3)), np.ones((2, 3)))
    with refuses("numbers of features differ"):
        cf.Moments.of([[1.0]]) + cf.Moments.of([[1.0, 2.0]])
    with refuses("groups"):
        many + cf.Moments(np.ones(3), np.ones((3, 3)), np.ones((3, 3)))
    with refuses("shape"):
        cf.Moments(np.ones(2), np.ones((3, 3)), np.ones((3, 3)))
    with pytest.raises(TypeError):
        many + 1


def test_moments_are_frozen():
    moments = cf.Moments.of([[1.0, 2.0], [3.0, 4.0]])
    ones: list[Any] = [moments, moments + moments, sum([moments]), concat([moments, moments]), concat([moments])[0]]
    for one in ones:
        with pytest.raises(FrozenInstanceError):
            one.count = 3
        for array in (one.mean, one.sumsq):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        with pytest.raises(TypeError):
            hash(one)


def test_moments_compare_by_value():
    moments = cf.Moments.of([[1.0, 2.0], [3.0, 4.0]])
    assert moments == cf.Moments.of([[1.0, 2.0], [3.0, 4.0]])
    assert moments != cf.Moments.of([[1.0, 2.0], [3.0, 5.0]])
    assert moments != cf.Moments.of([[1.0], [3.0]])
    assert moments != "moments"


def test_the_dispersion_of_nothing_is_undefined():
    assert np.isnan(cf.Moments.empty(2).dispersion)
