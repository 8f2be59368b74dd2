"""A summary: it adds up, keeps the types of its factors, and survives the disk or says why not."""

import dataclasses
import datetime as dt
import json
import os
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crossfusion as cf
from crossfusion._base import factors

draw = np.random.default_rng(0)
X = draw.normal(5, 1, (300, 4))
BY: dict[str, Any] = {
    "site": draw.choice(["A", "B", "C"], 300),
    "batch": draw.integers(0, 4, 300),
    "day": [dt.date(2024, 1, 1 + int(k)) for k in draw.integers(0, 2, 300)],
}


def part(index):
    return cf.summarize(X[index], by={name: np.asarray(values)[index] for name, values in BY.items()})


@pytest.fixture(scope="module")
def whole():
    return cf.summarize(X, by=BY)


def assert_equal(found, expected, rtol=0.0):
    assert found.keys.equals(expected.keys)
    assert (found.dtype, found.dropped) == (expected.dtype, expected.dropped)
    np.testing.assert_array_equal(found.moments.count, expected.moments.count)
    np.testing.assert_allclose(found.moments.mean, expected.moments.mean, rtol=rtol)
    np.testing.assert_allclose(found.moments.sumsq, expected.moments.sumsq, rtol=rtol, atol=rtol)


# ---- adding up


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_any_split_adds_up_to_the_whole(whole, seed, pieces):
    split = np.random.default_rng(seed)
    piece = split.integers(0, pieces, len(X))
    parts = [part(np.flatnonzero(piece == k)) for k in split.permutation(pieces) if (piece == k).any()]
    assert_equal(sum(parts), whole, rtol=1e-12)
    assert_equal(sum(reversed(parts[1:]), parts[0]), whole, rtol=1e-12)


def test_the_order_of_rows_does_not_matter(whole):
    assert_equal(part(np.random.default_rng(1).permutation(300)), whole, rtol=1e-12)


def test_adding_takes_factors_by_name_and_types_that_hold_both(whole):
    names = list(BY)[::-1]
    turned = cf.summarize(X.astype(np.float32), by={name: BY[name] for name in names})
    both = whole + turned
    assert both.factors == whole.factors
    assert both.dtype == "float64"
    assert both.keys.equals(whole.keys)
    np.testing.assert_array_equal(both.moments.count, 2 * whole.moments.count)
    few = cf.summarize([[1.0]], by={"g": np.array([3], np.int8)}) + cf.summarize([[2.0]], by={"g": [None]})
    assert (few + cf.summarize([[3.0]], by={"g": [10**12]})).keys["g"].to_pylist() == [3, 10**12, None]


def test_adding_counts_what_was_dropped():
    with pytest.warns(cf.CrossfusionWarning):
        one = cf.summarize([[1.0], [np.nan]], by={"g": [1, 1]}, nan="drop")
    assert (one.dropped, (one + one).dropped) == (1, 2)


@pytest.mark.parametrize(
    ("rows", "by", "pattern"),
    [
        ([[1.0, 2.0]], {"g": [1]}, "numbers of features differ"),
        ([[1.0]], {"h": [1]}, "one summary has g, another has h"),
        ([[1.0]], {"g": [1], "h": [1]}, "one summary has g, another has g and h"),
        ([[1.0]], {"g": ["one"]}, "values of different types"),
        ([[1.0]], {"g": [dt.date(2024, 1, 1)]}, "values of different types"),
        ([[1.0]], {"g": [True]}, "values of different types"),
    ],
)
def test_what_does_not_add_up_is_refused(rows, by, pattern, refuses):
    with refuses(pattern):
        cf.summarize([[1.0]], by={"g": [1]}) + cf.summarize(rows, by=by)
    with pytest.raises(TypeError):
        cf.summarize([[1.0]], by={"g": [1]}) + 1


# ---- fewer factors, fewer groups


@pytest.mark.parametrize("by", ["site", ["site"], ["batch", "site"], ["day", "batch"], list(BY)])
def test_rolling_up_is_summarising_by_less(whole, by):
    names = [by] if isinstance(by, str) else by
    assert_equal(whole.rollup(by), cf.summarize(X, by={name: BY[name] for name in names}), rtol=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        {"site": "B"},
        {"site": np.str_("B")},
        {"site": ["A", "C"], "batch": np.int8(2)},
        {"batch": np.array([0, 3])},
        {"batch": (0, 1), "day": dt.date(2024, 1, 2)},
        {"batch": {1, 2}},
    ],
)
def test_selecting_is_summarising_those_rows(whole, values):
    kept = np.ones(300, bool)
    for name, wanted in values.items():
        kept &= np.isin(np.asarray(BY[name]), list(wanted) if isinstance(wanted, list | tuple | set) else wanted)
    assert_equal(whole.select(**values), part(np.flatnonzero(kept)), rtol=1e-12)


def test_missing_values_are_groups_that_can_be_selected():
    summary = cf.summarize([[1.0], [2.0], [3.0]], by={"g": ["a", None, "a"], "f": [1.5, float("nan"), float("nan")]})
    assert summary.keys.to_pylist() == [{"g": "a", "f": 1.5}, {"g": "a", "f": None}, {"g": None, "f": None}]
    assert summary.select(g=None).moments.mean.tolist() == [[2.0]]
    assert len(summary.select(f=[None, 1.5], g="a")) == 2


@pytest.mark.parametrize(
    ("values", "pattern"),
    [
        ({"site": "D"}, "no group has site='D'"),
        ({"sites": "A"}, "did you mean 'site'"),
        ({"batch": [0, 9]}, "no group has batch=9"),
        ({"batch": []}, "batch"),
        ({"site": {"a": 1}}, "site"),
        ({"site": [["A"]]}, "site"),
    ],
)
def test_selecting_what_is_not_there_is_refused(whole, values, pattern, refuses):
    with refuses(pattern):
        whole.select(**values)


def test_selecting_an_empty_combination_is_refused(refuses):
    summary = cf.summarize([[1.0], [2.0]], by={"g": [1, 2], "h": [1, 2]})
    with refuses("no group has all of"):
        summary.select(g=1, h=2)


@pytest.mark.parametrize("name", ["count", "mean", "sumsq", "checksum", "features"])
def test_reserved_names_are_refused(name, refuses):
    with refuses(f"cannot be called '{name}'"):
        cf.summarize([[1.0]], by={name: [1]})


@pytest.mark.parametrize(
    ("by", "pattern"),
    [("sit", "did you mean 'site'"), ([], "by"), (["site", "site"], "twice"), ([1], "by="), (1, "by=")],
)
def test_rolling_up_to_no_factor_is_refused(whole, by, pattern, refuses):
    with refuses(pattern):
        whole.rollup(by)


# ---- tags

TAGS = {"preprocessing": "macenko", "encoder": "virchow"}


def test_tags_stay_with_a_summary(whole, tmp_path):
    tagged = dataclasses.replace(whole, tags=TAGS)
    tagged.write(tmp_path / "s.parquet")
    for found in (tagged, tagged.rollup("site"), tagged.select(site="A"), tagged + tagged, sum([tagged, tagged])):
        assert found.tags == TAGS
    read = cf.read_summary(tmp_path / "s.parquet")
    assert read.tags == TAGS
    assert repr(read).splitlines()[1] == "tags: encoder=virchow, preprocessing=macenko"
    assert "tags" not in repr(whole)
    assert_equal(pickle.loads(pickle.dumps(tagged)), tagged)


@pytest.mark.parametrize(
    ("left", "right", "pattern"),
    [
        ({"encoder": "uni"}, {"encoder": "v2"}, r"'encoder' differs \(one summary has 'uni', another has 'v2'\)"),
        ({"encoder": "uni"}, {}, r"'encoder' differs \(one summary has 'uni', another has none\)"),
        ({"a": "b"}, {"a": "b", "c": "d"}, r"'c' differs \(one summary has none, another has 'd'\)"),
    ],
)
def test_other_tags_do_not_add_up(left, right, pattern, whole, refuses):
    with refuses(pattern):
        dataclasses.replace(whole, tags=left) + dataclasses.replace(whole, tags=right)


@pytest.mark.parametrize("tags", [None, ["encoder"], {"encoder": 1}, {1: "uni"}, {"": "uni"}, "encoder=uni"])
def test_tags_that_are_none_are_refused(tags, whole, refuses):
    with refuses("tags="):
        dataclasses.replace(whole, tags=tags)


# ---- small groups


def test_small_groups_are_left_out_by_name():
    by = {"site": ["A"] * 5 + ["B"] * 2 + [None], "n": [1] * 8}
    with pytest.warns(
        cf.CrossfusionWarning, match=r"fewer than 3 rows are left out \(2 of \d+\): B / 1, \(missing\) / 1$"
    ):
        summary = cf.summarize(np.arange(8.0)[:, None], by=by, min_count=3)
    assert_equal(summary, cf.summarize(np.arange(5.0)[:, None], by={"site": ["A"] * 5, "n": [1] * 5}))


def test_many_small_groups_are_counted():
    with pytest.warns(cf.CrossfusionWarning, match=r"\(20 of 21\): 0, 1, 2, 3, 4, 5, 6, 7 and 12 more"):
        summary = cf.summarize(np.arange(22.0)[:, None], by={"g": [*range(20), 20, 20]}, min_count=2)
    assert len(summary) == 1


@pytest.mark.parametrize("min_count", [-1, 1.5, True, "3", None])
def test_a_min_count_that_makes_no_sense_is_refused(min_count, refuses):
    with refuses("min_count="):
        cf.summarize([[1.0]], by={"g": [1]}, min_count=min_count)


def test_a_min_count_that_leaves_nothing_is_refused(refuses):
    with refuses("min_count=5 is more rows than any group has"):
        cf.summarize([[1.0]], by={"g": [1]}, min_count=5)


def test_a_summary_is_read_without_threads_of_arrow(tmp_path, python):
    """One of them that lets go of Python's bytes while Python ends would abort the process."""
    cf.summarize(np.arange(12.0).reshape(6, 2), by={"g": [1, 1, 2, 2, 3, 3]}).write(tmp_path / "s.parquet")
    count = "len(os.listdir('/proc/self/task'))"
    code = (
        f"import os, crossfusion as cf, pyarrow.parquet; n = {count}; cf.read_summary('s.parquet'); print({count} - n)"
    )
    assert python(f"import os; os.chdir({str(tmp_path)!r}); {code}") == "0"


# ---- types of factors

VALUES: dict[str, list[Any]] = {
    "str": ["a", "ß", ""],
    "int": [-3, 0, 2**40],
    "bool": [False, True, True],
    "date": [dt.date(1960, 2, 29), dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
    "datetime": [dt.datetime(2024, 1, 1, 12, 30, 1, 5), dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 2)],
    "datetime with zone": [dt.datetime(2024, 1, k, tzinfo=dt.UTC) for k in (1, 2, 3)],
    "float": [0.1, -2.5, 1e15],
    "missing": ["a", None, "b"],
    "missing int": [1, None, 2],
    "missing date": [dt.date(2024, 1, 1), None, None],
    "only missing": [None, None, None],
}
MAKERS = {
    "list": list,
    "pandas": lambda values: pd.Series(values, dtype=object),
    "categorical": lambda values: pd.Series(pd.Categorical(values)),
    "polars": lambda values: pl.Series(values),
}
PAIRS = [(kind, maker) for kind in VALUES for maker in MAKERS if (kind, maker) != ("only missing", "categorical")]


@pytest.mark.parametrize(("kind", "maker"), PAIRS)
def test_values_keep_their_type_from_rows_to_disk_and_back(kind, maker, tmp_path):
    values, rows = VALUES[kind], np.arange(6.0)[:, None]
    summary = cf.summarize(rows, by={"g": MAKERS[maker](values + values), "h": [1, 1, 1, 2, 2, 2]})
    (summary + summary.select(h=1)).write(tmp_path / "s.parquet")
    read = cf.read_summary(tmp_path / "s.parquet")
    expected = sorted({v for v in values if v is not None}) + [None] * (None in values)
    for step in (summary.rollup("g"), (summary + summary).rollup("g"), read.rollup("g")):
        labels = factors.list_labels(step.keys)
        assert labels == expected
        assert [type(label) for label in labels] == [type(label) for label in expected]
        assert step.keys.schema.equals(summary.rollup("g").keys.schema)
    counts = {value: values.count(value) for value in expected}
    assert read.rollup("g").moments.count.tolist() == [3 * count for count in counts.values()]
    assert [len(read.select(g=value)) for value in expected] == [2] * len(expected)


def test_frames_keep_the_types_of_factors():
    by = {
        "text": ["a", "b"],
        "number": np.array([1, 2], np.int16),
        "flag": [True, False],
        "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
        "time": [dt.datetime(2024, 1, 1, 3), dt.datetime(2024, 1, 2)],
        "gap": [1, None],
    }
    frame = cf.summarize([[1.0, 2.0], [3.0, 4.0]], by=by).to_frame()
    assert list(frame.columns) == [*by, "count", "mean", "sumsq"]
    assert frame["text"].tolist() == ["a", "b"]
    assert (frame["number"].dtype, frame["number"].tolist()) == (np.int16, [1, 2])
    assert (frame["flag"].dtype, frame["flag"].tolist()) == (bool, [True, False])
    assert frame["day"].tolist() == by["day"]
    assert frame["time"].tolist() == by["time"]
    assert frame["gap"].tolist() == [1, None]
    assert (frame["count"].dtype, frame["count"].tolist()) == (np.float64, [1, 1])
    assert [mean.tolist() for mean in frame["mean"]] == [[1.0, 2.0], [3.0, 4.0]]


def test_representation(whole):
    lines = repr(whole).splitlines()
    assert lines[0] == f"Summary of {len(whole)} groups by site, batch, day: 300 rows × 4 features (float64)"
    assert lines[1].split() == ["site", "batch", "day", "count", "dispersion"]
    assert lines[2].split()[:3] == ["A", "0", "2024-01-01"]
    assert (len(lines), lines[-1]) == (11, f"... and {len(whole) - 8} more")


# ---- on disk


def test_what_is_read_is_what_was_written(whole, tmp_path):
    whole.write(tmp_path / "s.parquet")
    read = cf.read_summary(str(tmp_path / "s.parquet"))
    assert_equal(read, whole)
    assert read.moments == whole.moments
    assert read.cfd("site", given="day") == whole.cfd("site", given="day")


def test_the_file_is_plain_parquet(whole, tmp_path):
    whole.write(tmp_path / "s.parquet")
    schema = pq.read_schema(tmp_path / "s.parquet")
    assert schema.names == ["site", "batch", "day", "count", "mean", "sumsq", "checksum"]
    assert schema.field("mean").type == pa.list_(pa.float64(), 4)
    about = json.loads(schema.metadata[b"crossfusion"])
    assert (about["format"], about["dim"], about["dtype"]) == (3, 4, "float64")
    assert about["creator"] == f"crossfusion {cf.__version__}"
    frame = pl.read_parquet(tmp_path / "s.parquet")
    np.testing.assert_array_equal(np.stack(frame["mean"].to_list()), whole.moments.mean)


def test_a_hundred_thousand_groups(tmp_path):
    groups, dim = 100_000, 64
    rows = np.random.default_rng(2).normal(size=(2 * groups, dim)).astype(np.float32)
    unit = np.random.default_rng(3).permutation(2 * groups) % groups
    summary = cf.summarize(rows, by={"unit": unit, "site": unit % 100})
    assert len(summary) == groups
    summary.write(tmp_path / "s.parquet")
    read = cf.read_summary(tmp_path / "s.parquet")
    assert read.keys.equals(summary.keys)
    assert read.moments == summary.moments
    sites = read.rollup("site")
    np.testing.assert_array_equal(sites.moments.count, 2000)
    expected = np.stack([rows[unit % 100 == site].mean(axis=0, dtype=np.float64) for site in range(100)])
    np.testing.assert_allclose(sites.moments.mean, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("failure", [OSError("disk full"), pa.ArrowInvalid("no"), KeyboardInterrupt(), MemoryError()])
def test_a_failed_write_leaves_the_old_file_and_no_litter(failure, whole, tmp_path, monkeypatch):
    path = tmp_path / "s.parquet"
    whole.write(path)
    before = path.read_bytes()

    def fail(table, where, **options):
        where.write(b"half")
        raise failure

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises((cf.FileError, type(failure))):
        whole.rollup("site").write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["s.parquet"]


def test_writing_replaces_and_leaves_the_usual_permissions(whole, tmp_path):
    path = tmp_path / "s.parquet"
    path.write_text("something else")
    whole.write(path)
    (tmp_path / "plain").touch()
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert len(cf.read_summary(path)) == len(whole)


@pytest.mark.parametrize("place", ["missing/s.parquet", "folder.parquet"])
def test_places_that_cannot_be_written_to_are_refused(place, whole, tmp_path, refuses):
    (tmp_path / "folder.parquet").mkdir()
    with refuses("cannot be written", cf.FileError):
        whole.write(tmp_path / place)
    assert os.listdir(tmp_path) == ["folder.parquet"]


@pytest.mark.parametrize("name", ["s.csv", "s", "s.parquet.gz", "s.npz"])
def test_an_ending_that_says_something_else_is_refused(name, whole, tmp_path, refuses):
    for write in (whole.write, lambda path: cf.append_summary(whole, path)):
        with refuses("has an ending that does not fit a summary: use .parquet or .pq", cf.FileError):
            write(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_moments_that_no_rows_have_are_not_written(whole, tmp_path, refuses):
    moments = whole.moments
    for count, said in ((moments.count / 7, "a count is not a number of rows"), (1 + 0 * moments.count, "has spread")):
        odd = dataclasses.replace(whole, moments=cf.Moments(count, moments.mean, moments.sumsq))
        with refuses(f"cannot hold these moments: .*{said}", cf.FileError):
            odd.write(tmp_path / "s.parquet")
    assert os.listdir(tmp_path) == []


def test_a_group_of_one_row_far_from_the_origin_is_written_and_read(tmp_path):
    rows = np.random.default_rng(3).normal(1e8, 1, (50, 7))
    for kind in (np.float32, np.float64):
        single = cf.summarize(rows.astype(kind), by={"g": np.arange(50)}) + cf.summarize(
            rows, by={"g": np.arange(50, 100)}
        )
        single.write(tmp_path / "s.parquet")
        assert_equal(cf.read_summary(tmp_path / "s.parquet"), single)


def test_means_whose_squares_overflow_when_they_are_added_are_refused(refuses):
    one, other = (cf.summarize([[value]], by={"g": ["A"]}) for value in (1e200, -1e200))
    for add in (lambda: one + other, lambda: cf.merge_summaries([one, other])):
        with refuses("squares exceed the range of float64"):
            add()
    apart = cf.summarize([[1e200], [-1e200]], by={"g": [0, 1], "h": [0, 0]})
    with refuses("squares exceed the range of float64"):
        apart.rollup("h")


def test_small_groups_in_a_file_are_named_in_a_warning(tmp_path):
    by = {"site": ["A"] * 5 + ["B"] * 4 + [None]}
    small = cf.summarize(np.arange(10.0)[:, None], by=by)
    said = (
        r"s.parquet shows groups of fewer than 5 rows \(2 of 3\): B, \(missing\):"
        " the moments of a group of one row disclose that row"
    )
    for write in (small.write, lambda path: cf.append_summary(small, path)):
        with pytest.warns(cf.CrossfusionWarning, match=said) as caught:
            write(tmp_path / "s.parquet")
        assert len(caught) == 1
        (tmp_path / "s.parquet").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small.select(site="A").write(tmp_path / "s.parquet")
    with pytest.warns(cf.CrossfusionWarning, match=r"\(20 of 20\): 0, 1, 2, 3, 4, 5, 6, 7 and 12 more: the moments of"):
        cf.summarize(np.arange(20.0)[:, None], by={"g": np.arange(20)}).write(tmp_path / "s.parquet")


@pytest.mark.parametrize("by", ["", ["site", ""], {"": [1, 2]}])
def test_a_factor_without_a_name_is_refused(by, refuses):
    frame = pd.DataFrame({"": [1, 2], "site": ["A", "B"], "x": [1.0, 2.0]})
    with refuses("has an empty name"):
        cf.summarize(
            frame[["x"]] if isinstance(by, dict) else frame, by=by, vectors=None if isinstance(by, dict) else "x"
        )


def about(**changes):
    """Metadata of a summary of one feature, with changes; None leaves an entry out."""
    entries = {"format": 1, "dim": 1, "dtype": "float64", "dropped": 0} | changes
    return json.dumps({name: value for name, value in entries.items() if value is not None}).encode()


def table(metadata, **columns):
    """A table as a summary writes it, with changes; None leaves a column out."""
    vector = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0]), 1)
    plain = {"g": pa.array([1, 2]), "count": pa.array([2.0, 2.0]), "mean": vector, "sumsq": vector} | columns
    kept = {name: values for name, values in plain.items() if values is not None}
    return pa.table(kept).replace_schema_metadata({b"crossfusion": metadata} if metadata else None)


def vectors(values, dim):
    return pa.FixedSizeListArray.from_arrays(pa.array(values), dim)


STRANGE = {
    "of others": (table(None), "not a crossfusion summary"),
    "newer": (table(about(format=4)), "format 4, newer than"),
    "format in words": (table(about(format="one")), "format"),
    "older than all": (table(about(format=0)), "damaged"),
    "without its checksums": (table(about(format=2)), "damaged"),
    "of two formats": (table(about(checksum="0" * 32)), "damaged"),
    "without format": (table(about(format=None)), "format"),
    "not JSON": (table(b"{"), "damaged"),
    "a list": (table(b"[1]"), "format"),
    "without dim": (table(about(dim=None)), "damaged"),
    "another dim": (table(about(dim=2)), "damaged"),
    "dtype of nothing": (table(about(dtype="number")), "damaged"),
    "dropped in words": (table(about(dropped="few")), "damaged"),
    "without means": (table(about(), mean=None), "damaged"),
    "without counts": (table(about(), count=None), "damaged"),
    "without factors": (table(about(), g=None), "damaged"),
    "counts in words": (table(about(), count=pa.array(["one", "two"])), "damaged"),
    "no count": (table(about(), count=pa.array([1.0, None])), "damaged"),
    "count of zero": (table(about(), count=pa.array([1.0, 0.0])), "damaged"),
    "count of infinity": (table(about(), count=pa.array([1.0, np.inf])), "damaged"),
    "mean of NaN": (table(about(), mean=vectors([np.nan, 1.0], 1)), "damaged"),
    "missing mean": (table(about(), mean=vectors([None, 1.0], 1)), "damaged"),
    "negative sumsq": (table(about(), sumsq=vectors([-1.0, 1.0], 1)), "damaged"),
    "count of one with spread": (table(about(), count=pa.array([1.0, 2.0])), "a group of one row has spread"),
    "fractional count": (table(about(), count=pa.array([2.5, 2.0])), "a count is not a number of rows"),
    "count beyond counting": (table(about(), count=pa.array([1e308, 2.0])), "a count is not a number of rows"),
    "mean beyond squaring": (table(about(), mean=vectors([1e308, 1.0], 1)), "exceeds the range of float64"),
    "a group twice": (table(about(), g=pa.array([7, 7])), "the group 7 is there 2 times"),
    "dropped below zero": (table(about(dropped=-1)), "fewer than no rows"),
    "longer mean": (table(about(), mean=vectors([1.0] * 4, 2)), "damaged"),
    "lists of any length": (table(about(), mean=pa.array([[1.0], [2.0, 3.0]])), "damaged"),
}


def test_the_table_that_strange_ones_derive_from_is_fine(tmp_path):
    pq.write_table(table(about()), tmp_path / "s.parquet")
    assert len(cf.read_summary(tmp_path / "s.parquet")) == 2


@pytest.mark.parametrize("case", STRANGE)
def test_files_of_another_kind_are_refused(case, tmp_path, refuses):
    content, pattern = STRANGE[case]
    pq.write_table(content, tmp_path / "s.parquet")
    with refuses(pattern, cf.FileError):
        cf.read_summary(tmp_path / "s.parquet")


def test_files_that_are_no_parquet_are_refused(tmp_path, refuses):
    for content in (b"", b"PAR1", b"site,count\nA,1\n", bytes(range(256)) * 20):
        (tmp_path / "s.parquet").write_bytes(content)
        with refuses("not a readable Parquet file", cf.FileError):
            cf.read_summary(tmp_path / "s.parquet")
    with refuses("does not exist", cf.FileError):
        cf.read_summary(tmp_path / "t.parquet")
    with refuses(str(tmp_path), cf.FileError):
        cf.read_summary(tmp_path)


def small_file(tmp_path):
    path = tmp_path / "s.parquet"
    cf.summarize(X[:40], by={name: values[:40] for name, values in BY.items()}).write(path)
    return path, path.read_bytes()


def test_truncated_files_are_refused(tmp_path):
    path, content = small_file(tmp_path)
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(cf.FileError):
            cf.read_summary(path)


def test_flipped_bits_are_noticed_or_harmless_but_never_a_crash(tmp_path):
    path, content = small_file(tmp_path)
    expected, outcomes = cf.read_summary(path), set[str]()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            found = cf.read_summary(path)
            same = found.keys.equals(expected.keys) and found.moments == expected.moments
            outcomes.add("the same" if same and found.tags == expected.tags else "another")
        except cf.FileError:
            outcomes.add("refused")
    assert outcomes == {"the same", "refused"}
