"""Labels become the same codes and groups by a look at the distinct ones as by a look at all of them."""

import datetime
import math
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import crossfusion as cf
from crossfusion._base import factors, labels

needs_extension = pytest.mark.skipif(labels.compiled is None, reason="the extension is not built")
ROUTES = ["extension", "threads", "many distinct", "no extension"]
TEXTS = np.array(["b", "a", "", "a\0b", "ä", "日本", "long enough for several words", "a"])
NAN = float("nan")
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5)


def shift(values):
    """A buffer of integers at an odd address, where a file may have them."""
    return pa.py_buffer(b"-" + np.array(values, np.int32).tobytes()).slice(1)


KINDS = {
    "unicode": TEXTS,
    "unicode of the other byte order": TEXTS.astype(TEXTS.dtype.newbyteorder()),
    "every second": np.repeat(TEXTS, 2)[::2],
    "backwards": TEXTS[::-1],
    "bytes": np.array([b"b", b"a", b"", b"a", b"abcdefghi", b"abc"]),
    "text of NumPy 2": TEXTS.astype(np.dtypes.StringDType()),
    "booleans": np.array([True, False, True]),
    "one": np.array(["x"]),
    "none": np.array([], "U3"),
    "big-endian integers": np.array([3, -1, 3, 256], ">i4"),
    "floats": np.array([0.0, -0.0, NAN, -NAN, 1.5, math.inf, -math.inf, 1.5]),
    "float16": np.array([0.5, NAN, 0.5], np.float16),
    "dates": np.array(["2026-01-02", "NaT", "2025-01-02"], "M8[D]"),
    "weeks": np.array([5, 3, 5], "M8[W]"),
    "nanoseconds": np.array([5000, 3000, 5000], "M8[ns]"),
    "durations": np.array([5, "NaT", 5], "m8[s]"),
    "strings": ["b", "a", "".join(["long", "er"]), "".join(["lon", "ger"]), "b"],
    "a tuple": ("b", "a", "b"),
    "missing strings": np.array(["b", None, "a", NAN, pd.NA, "b"], object),
    "missing only": [None, None, NAN],
    "objects": np.array(TEXTS.tolist(), object),
    "whole numbers": [10**12, 3, 10**12 + 0],
    "numbers": [1, 2.5, None, 1.0],
    "decimals": [Decimal("1.50"), Decimal("1.5"), Decimal("20")],
    "times": [MOMENT, None, pd.NaT, MOMENT + datetime.timedelta(1)],
    "calendar dates": [MOMENT.date(), datetime.date(2020, 1, 1), None],
    "a Series": pd.Series(["b", "a", None, "b"]),
    "a Series of objects": pd.Series(["b", "a", None, "b"], dtype=object, index=[3, 1, 2, 0]),
    "a Series of Python strings": pd.Series(["b", "a", None, "b"], dtype="string[python]"),
    "a Series of Arrow strings": pd.Series(["b", "a", None, "b"], dtype="string[pyarrow]"),
    "a Series of nullable integers": pd.Series([3, None, 0, 3], dtype="Int64"),
    "a Series of zoned times": pd.Series(pd.to_datetime(["2026-01-02", None, "2025-01-02"]).tz_localize("UTC")),
    "an Index": pd.Index(["b", "a", "b"]),
    "categories": pd.Categorical(["b", None, "a", "b"], categories=["z", "b", "a"]),
    "a Series of categories": pd.Series(["b", None, "a"], dtype="category"),
    "categories that are numbers": pd.Categorical([3, 1, None, 3]),
    "categories that are times": pd.Categorical(pd.to_datetime(["2026-01-02", "2025-01-02"])),
    "categories of nested values": pd.Categorical([(1, 2), (3, 4)]),
    "Arrow text": pa.array(["x", "b", None, "", "a", "b"])[1:],
    "Arrow text, nothing missing": pa.array(["x", "b", "", "a", "b"])[1:],
    "large Arrow text": pa.array(["b", None, "a"], pa.large_string()),
    "Arrow text in chunks": pa.chunked_array([["b", "a"], [], [None, "b"]]),
    "Arrow text at an odd address": pa.Array.from_buffers(
        pa.string(), 3, [None, shift([0, 1, 2, 3]), pa.py_buffer(b"bab")]
    ),
    "an Arrow dictionary at an odd address": pa.DictionaryArray.from_arrays(
        pa.Array.from_buffers(pa.int32(), 3, [None, shift([0, 1, 0])]), ["b", "a"]
    ),
    "Arrow integers": pa.array([7, 3, None, 0, 3])[1:],
    "Arrow booleans": pa.array([True, None, False]),
    "Arrow times": pa.array([MOMENT, None, MOMENT]),
    "an Arrow dictionary": pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1, 3]), ["a", "b", "unused", "a"]),
    "a missing entry of a dictionary": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1]), pa.array(["a", None])),
    "a full dictionary": pa.DictionaryArray.from_arrays(
        pa.array([*range(128), None], pa.int8()), pa.array([f"{k:03}" for k in range(128)])
    ),
    "a dictionary in chunks": pa.chunked_array(
        [pa.array(["b"]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]
    ),
    "mixed": ["a", 1],
    "booleans among numbers": [True, 2.5],
    "dates among times": np.array([MOMENT, MOMENT.date(), MOMENT], object),
    "lists": [["a"], ["b"]],
    "two axes": np.zeros((2, 2)),
    "complex": np.array([1j, 2]),
    "records": np.array([(1, "a")], [("x", int), ("y", object)]),
    "bytes that are not text": np.array([b"\xff", b"a"]),
    "too fine times": np.array([1, 2], "M8[ns]"),
    "masked": np.ma.array([1, 2, 1], mask=[True, False, False]),
    "a string": "abc",
    "a set": {"a"},
}


@pytest.fixture(params=ROUTES)
def route(request, monkeypatch):
    """One way to the codes."""
    if request.param == "no extension":
        monkeypatch.setattr(labels, "compiled", None)
    elif request.param == "threads":
        monkeypatch.setattr(labels, "THREAD_ROWS", 1)
        monkeypatch.setattr(labels, "thread_count", lambda: 3)
    elif request.param == "many distinct":
        monkeypatch.setattr(labels, "LIMIT", 1)


def rank_plainly(values):
    """Codes and groups of all values, in Python."""
    every = factors.as_column(values, "g").to_pylist()
    groups = sorted({value for value in every if value is not None}) + [None] * (None in every)
    return [groups.index(value) for value in every], groups


def assert_same(values):
    try:
        expected = rank_plainly(values)
    except cf.InputError as problem:
        with pytest.raises(cf.InputError, match=f"^{re.escape(str(problem))}$"):
            factors.as_table({"g": values})
        return
    codes, groups = factors.encode(factors.as_table({"g": values}))
    assert codes.dtype == np.int32
    assert (codes.tolist(), groups.column("g").to_pylist()) == expected
    assert groups.schema.field("g").type == factors.as_column(values, "g").type


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_all_kinds_are_ranked_or_rejected_as_their_values_are(kind):
    assert_same(KINDS[kind])


texts = st.text(st.characters(codec="utf-8"), max_size=12)
elements = {
    "U": st.text(st.characters(codec="utf-8"), max_size=9).map(lambda text: text.rstrip("\0")),
    "S": st.text(st.characters(codec="ascii"), max_size=9).map(lambda text: text.rstrip("\0").encode()),
    "M": st.integers(0, 3000).map(lambda time: np.datetime64(time, "us")),
    "m": st.integers(0, 3000).map(lambda time: np.timedelta64(time, "s")),
}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        ["U9", "S9", "S10", "?", "i1", "u2", "<i4", ">i8", "u8", "f2", "f4", ">f8", "M8[us]", "m8[s]"]
    ).flatmap(
        lambda kind: arrays.arrays(
            kind,
            st.integers(0, 40),
            elements=elements.get(kind[0]),
        )
    )
)
def test_arrays_of_all_types(values):
    assert_same(values)
    assert_same(np.repeat(values, 3)[::2])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(texts | st.none() | st.just(NAN))
    | st.lists(st.integers(-(2**62), 2**62) | st.booleans() | st.none())
    | st.lists(st.floats() | st.integers(-5, 5) | st.booleans() | st.none())
)
def test_lists_of_objects(values):
    assert_same(values)
    assert_same(np.array([*values, None], object)[:-1])


@pytest.mark.usefixtures("route")
def test_several_factors():
    rng = np.random.default_rng(0)
    by = {
        "site": TEXTS[rng.integers(0, 8, 300)],
        "year": pd.Categorical(rng.integers(2000, 2005, 300)),
        "dose": np.where(rng.random(300) < 0.1, NAN, rng.integers(0, 3, 300)),
    }
    codes, groups = factors.encode(factors.as_table(by))
    places, levels = zip(*map(rank_plainly, by.values()), strict=True)
    rows = list(zip(*places, strict=True))
    expected = sorted(set(rows))
    assert codes.tolist() == [expected.index(row) for row in rows]
    named = [tuple(some[k] for some, k in zip(levels, row, strict=True)) for row in expected]
    assert factors.list_labels(groups) == named


@needs_extension
def test_labels_with_more_distinct_values_than_the_table_holds():
    number = labels.LIMIT + 1
    for values in (np.arange(number) * 7, np.arange(number).astype("U")):
        assert labels.find_distinct(values) is None
        assert factors.encode(factors.as_table({"g": values}))[1].num_rows == number
        assert labels.find_distinct(values[1:]).positions.tolist() == list(range(number - 1))


@needs_extension
def test_columns_of_few_values_stay_encoded():
    for values in (TEXTS, TEXTS.tolist(), pd.Categorical(TEXTS), pd.Series(TEXTS, dtype=object)):
        assert pa.types.is_dictionary(factors.as_table({"g": values}).column("g").type)


def test_units_of_two_arrays_match_by_value_whatever_their_types():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(60, 2)), rng.normal(size=(60, 2))
    units = np.arange(60) % 12
    expected = cf.cfd(a, b, units=(units, units))
    assert cf.cfd(a, b, units=(units.astype(np.int16), pd.Categorical(units))) == expected
    with pytest.raises(cf.InputError, match="different types"):
        cf.cfd(a, b, units=(units, units.astype("U")))


def test_missing_units_are_rejected():
    for units in (["a", None] * 5, pd.Categorical(["a", None] * 5), np.array([1.0, NAN] * 5)):
        with pytest.raises(cf.InputError, match="missing"):
            cf.cfd(np.eye(10), labels=["x", "y"] * 5, units=units)


def invert(hash_):
    """The eight bytes of this hash, as `hash_record` computes it."""
    word = hash_ * pow(0xD6E8FEB86659FD93, -1, 2**64) % 2**64
    return (((word ^ word >> 32) * pow(0x9E3779B97F4A7C15, -1, 2**64)) % 2**64) ^ 8


@needs_extension
def test_labels_made_to_collide_are_given_up():
    words = np.array([invert(k) for k in range(100)], np.uint64)
    records, codes = words.view(np.uint8).reshape(-1, 8), np.empty(100, np.int32)
    assert labels.compiled.find_distinct(records, codes, 1000) is None
    assert labels.compiled.find_distinct(records[:60], codes[:60], 1000) == list(range(60))
    assert_same(words)


@needs_extension
def test_wrong_arrays_are_refused():
    c, records, codes = labels.compiled, np.zeros((4, 3), np.uint8), np.zeros(4, np.int32)
    text, offsets = np.zeros(9, np.uint8), np.arange(5, dtype=np.int32)
    locked = codes.copy()
    locked.flags.writeable = False
    wrong = [
        lambda: c.find_distinct(records.astype(np.int8), codes, 9),
        lambda: c.find_distinct(records[:, ::2], codes, 9),
        lambda: c.find_distinct(records[0], codes, 9),
        lambda: c.find_distinct(records, codes[:3], 9),
        lambda: c.find_distinct(records, codes.astype(np.int64), 9),
        lambda: c.find_distinct(records, locked, 9),
        lambda: c.find_distinct(records, codes, -1),
        lambda: c.find_distinct(records, codes, 2**31),
        lambda: c.find_distinct_text(text, offsets, codes[:3], 9),
        lambda: c.find_distinct_text(text, offsets[:0], codes[:0], 9),
        lambda: c.find_distinct_text(text, offsets[::-1].copy(), codes, 9),
        lambda: c.find_distinct_text(text, offsets - 1, codes, 9),
        lambda: c.find_distinct_text(text, offsets + 6, codes, 9),
        lambda: c.find_distinct_text(text, offsets.astype(np.int64), codes, 9),
        lambda: c.mark(codes + 5, np.zeros(5, np.uint8)),
        lambda: c.mark(codes - 1, np.zeros(5, np.uint8)),
        lambda: c.mark(codes, np.zeros(5, np.int8)),
        lambda: c.relabel(codes + 2, codes[:2], codes.copy()),
        lambda: c.relabel(codes - 1, codes, codes.copy()),
        lambda: c.relabel(codes, codes, codes[:3]),
    ]
    for call in wrong:
        with pytest.raises((ValueError, BufferError)):
            call()
    assert c.find_distinct(records[:0], codes[:0], 0) == []
    assert c.find_distinct(records, codes, 0) is None
    assert c.find_distinct(records[:, :0], codes, 9) == [0]


def test_arrow_buffers_at_odd_addresses_are_taken():
    text = pa.array(["a", "bb", "c", "a"])
    odd = [pa.py_buffer(b"x" + data.to_pybytes()).slice(1) for data in text.buffers()[1:]]
    moved = pa.Array.from_buffers(text.type, len(text), [None, *odd])
    places = pa.array([0, 1, 2, 0], pa.int32()).buffers()[1]
    indices = pa.Array.from_buffers(pa.int32(), 4, [None, pa.py_buffer(b"x" + places.to_pybytes()).slice(1)])
    encoded = pa.DictionaryArray.from_arrays(indices, pa.array(["c", "bb", "a"]))
    assert factors.encode(pa.table({"g": moved}))[0].tolist() == [0, 1, 2, 0]
    assert factors.encode(pa.table({"g": encoded}))[0].tolist() == [2, 1, 0, 2]
