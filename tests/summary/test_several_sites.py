"""Several sites that share no rows: merging, small groups, checksums, and files that many write to."""

import datetime as dt
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crossfusion as cf
from crossfusion._base import factors
from crossfusion.cli import main
from crossfusion.summary import checksums, storage
from crossfusion.summary.suppression import suppress_small
from tests.helpers import PATIENCE, ROOT

GOLDEN = ROOT / "tests/golden"
TAGS = {"encoder": "virchow", "preprocessing": "macenko"}


def rows_of(seed, number=200, offset=0.0):
    draw = np.random.default_rng(seed)
    x = draw.normal(offset, 1, (number, 5)) + draw.normal(size=5)
    return x, {"label": draw.choice(np.array(["a", "b", None]), number), "patient": draw.integers(0, 9, number)}


def summary_of(seed, number=200, offset=0.0):
    x, by = rows_of(seed, number, offset)
    return replace(cf.summarize(x, by=by), tags=TAGS)


def assert_close(found, expected, rtol=1e-12):
    assert found.keys.equals(expected.keys)
    assert (found.tags, found.dropped, found.dtype) == (expected.tags, expected.dropped, expected.dtype)
    np.testing.assert_array_equal(found.moments.count, expected.moments.count)
    np.testing.assert_allclose(found.moments.mean, expected.moments.mean, rtol=rtol)
    np.testing.assert_allclose(found.moments.sumsq, expected.moments.sumsq, rtol=rtol, atol=rtol)


@pytest.fixture
def run(capfd, monkeypatch):
    """Call the command line here, which is faster than in a process of its own; what it printed."""

    def call(*arguments, cwd=".", code=0):
        monkeypatch.chdir(cwd)
        with warnings.catch_warnings(), nullcontext() if code == 0 else pytest.raises(SystemExit, match=str(code)):
            main([*map(str, arguments)])
        return capfd.readouterr()

    return call


@pytest.fixture
def fails(run):
    """The one line that a bad call prints."""

    def call(*arguments, cwd="."):
        out, said = run(*arguments, cwd=cwd, code=2)
        assert (out, said.count("\n"), said[:13]) == ("", 1, "crossfusion: ")
        return said

    return call


@pytest.fixture
def quick(tmp_path):
    """A folder in memory, where there is one: many small writes, each of which waits for the disk."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@pytest.fixture
def sites(tmp_path):
    """Three files of the same tags and factors."""
    paths = [tmp_path / f"{name}.parquet" for name in ("north", "south", "east")]
    for seed, path in enumerate(paths):
        summary_of(seed).write(path)
    return paths


# ---- merging


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_merged_is_what_pooled_rows_give(offset, tmp_path, run):
    parts = [rows_of(seed, 100 + seed, offset) for seed in range(5)]
    for k, (x, by) in enumerate(parts):
        cf.summarize(x, by=by).write(tmp_path / f"{k}.parquet")
    files = [tmp_path / f"{k}.parquet" for k in range(5)]
    run("merge", *files, "-o", tmp_path / "all.parquet")
    by = {name: np.concatenate([part[name] for _, part in parts]) for name in ("label", "patient")}
    pooled = cf.summarize(np.concatenate([x for x, _ in parts]), by=by)
    rtol = max(1e-12, 1e-15 * abs(offset))  # beside an offset, float64 has that much of the spread
    added: Any = sum(map(cf.read_summary, files))
    for found in (cf.read_summary(tmp_path / "all.parquet"), cf.merge_summaries(files), added):
        assert_close(found, pooled, rtol)
        np.testing.assert_allclose(found.moments.mean, pooled.moments.mean, rtol=1e-12)
        assert found.cfd("label").distance == pytest.approx(pooled.cfd("label").distance, rel=rtol)


def test_merge_says_what_it_wrote(sites, tmp_path, run):
    found = json.loads(run("merge", *sites, "--json", "-o", tmp_path / "all.parquet").out)
    assert (found["rows"], found["dim"], found["tags"]) == (600, 5, TAGS)
    assert found["groups"] == len(cf.read_summary(found["output"]))
    assert run("merge", *sites, "-o", tmp_path / "all.parquet").out.endswith(f"written to {tmp_path}/all.parquet\n")


def other(**changes):
    x, by = rows_of(7)
    kind = changes.pop("kind", None)
    if kind == "features":
        x = x[:, :3]
    if kind == "factors":
        del by["patient"]
    if kind == "types":
        by["patient"] = [f"p{number}" for number in by["patient"]]
    return replace(cf.summarize(x, by=by), tags=changes.pop("tags", TAGS))


MISMATCHES = {
    "features": (other(kind="features"), "(north.parquet has 5, other.parquet has 3)"),
    "factors": (other(kind="factors"), "(north.parquet has label and patient, other.parquet has label)"),
    "types": (
        other(kind="types"),
        "different types in north.parquet and other.parquet (Unable to merge: Field p",
    ),
    "tag": (
        other(tags=TAGS | {"encoder": "uni"}),
        "the tag 'encoder' differs (north.parquet has 'virchow', other.parquet has 'uni')",
    ),
    "tag missing": (
        other(tags={"encoder": "virchow"}),
        "the tag 'preprocessing' differs (north.parquet has 'macenko', other.parquet has none)",
    ),
    "same rows": (summary_of(1), "other.parquet holds rows that south.parquet holds too"),
}


@pytest.mark.parametrize("name", MISMATCHES)
def test_what_does_not_go_together_is_refused_by_the_names_of_the_files(name, sites, tmp_path, fails):
    summary, message = MISMATCHES[name]
    summary.write(tmp_path / "other.parquet")
    files = ["north.parquet", "south.parquet", "other.parquet"]
    assert message in fails("merge", *files, "-o", "all.parquet", cwd=tmp_path)
    assert not (tmp_path / "all.parquet").exists()
    with pytest.raises(cf.InputError):
        cf.merge_summaries([tmp_path / file for file in files])


def test_the_same_rows_are_known_again_in_a_merged_file(sites, tmp_path, fails, run):
    run("merge", *sites[:2], "-o", "all.parquet", cwd=tmp_path)
    message = fails("merge", "all.parquet", "south.parquet", "-o", "more.parquet", cwd=tmp_path)
    assert "south.parquet holds rows that all.parquet holds too: leave one of them out" in message
    assert "south.parquet is named twice" in fails(
        "merge", "south.parquet", "south.parquet", "-o", "more.parquet", cwd=tmp_path
    )
    run("merge", "all.parquet", "east.parquet", "-o", "more.parquet", cwd=tmp_path)
    assert_close(cf.read_summary(tmp_path / "more.parquet"), cf.merge_summaries(sites))


BAD = {
    "missing": (["north.parquet", "west.parquet"], "west.parquet does not exist"),
    "rows": (["north.parquet", "rows.parquet"], "rows.parquet is not a crossfusion summary"),
    "text": (["north.parquet", "text.parquet"], "text.parquet is not a readable Parquet file"),
    "pipe": (["north.parquet", "pipe.parquet"], "pipe.parquet is not a plain file"),
    "nothing": ([], "Missing argument"),
    "output": (["all.parquet", "north.parquet"], "all.parquet is one of the inputs"),
    "negative": (["north.parquet", "--min-count", "-1"], "--min-count -1 must be"),
    "small": (["north.parquet", "--small", "keep"], "--small keep is not known"),
    "too many": (["north.parquet", "--min-count", "1000"], "--min-count 1000 is more rows than any group has"),
    "too many merged": (
        ["north.parquet", "--small", "merge", "--min-count", "1000"],
        "--min-count 1000 is more rows than all groups have together",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_merge_is_one_line(name, sites, tmp_path, fails):
    arguments, message = BAD[name]
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "rows.parquet")
    (tmp_path / "text.parquet").write_text("no Parquet")
    os.mkfifo(tmp_path / "pipe.parquet")  # whose reader would wait for a writer
    summary_of(9).write(tmp_path / "all.parquet")
    assert message in fails("merge", *arguments, "-o", "all.parquet", cwd=tmp_path)
    assert_close(cf.read_summary(tmp_path / "all.parquet"), summary_of(9), 0)


@pytest.mark.parametrize("parts", [[], "a.parquet", Path("a.parquet"), summary_of(1)])
def test_parts_that_are_no_list_are_refused(parts, refuses):
    with refuses("parts must be a list of paths or summaries, at least one, not "):
        cf.merge_summaries(parts)


# ---- small groups

COUNTS = {("A", "x"): 9, ("A", "y"): 2, ("A", "z"): 3, ("B", "x"): 9, ("B", "y"): 3, ("C", "y"): 2, ("D", None): 4}


def counted(counts):
    keys = [key for key, count in counts.items() for _ in range(count)]
    by = {name: [key[k] for key in keys] for k, name in enumerate(("site", "label"))}
    return cf.summarize(np.random.default_rng(0).normal(1e3, 1, (len(keys), 3)), by=by)


def labelled(summary):
    return dict(zip(factors.list_labels(summary.keys), summary.moments.count.tolist(), strict=True))


def test_small_groups_merge_from_the_last_factor_on():
    summary = counted(COUNTS)
    said = r"fewer than 5 rows are merged into 2 \(5 of 7\): A / y, A / z, B / y, C / y, D / \(missing\)$"
    with pytest.warns(cf.CrossfusionWarning, match=said):
        found = suppress_small(summary, 5, "merge")
    assert labelled(found) == {("A", "x"): 9, ("A", None): 5, ("B", "x"): 9, (None, None): 9}
    for site, label in (("A", ["y", "z"]), (["B", "C", "D"], ["y", None])):
        expected = summary.select(site=site, label=label).moments
        position = factors.list_labels(found.keys).index(("A", None) if site == "A" else (None, None))
        whole = expected.merge(np.zeros(len(expected), int), 1)
        np.testing.assert_allclose(found.moments.mean[position], whole.mean[0], rtol=1e-12)
        np.testing.assert_allclose(found.moments.sumsq[position], whole.sumsq[0], rtol=1e-9)


def test_what_stays_too_small_is_left_out_and_said():
    with pytest.warns(cf.CrossfusionWarning) as said:
        found = suppress_small(counted({("A", "x"): 9, ("A", "y"): 2, ("A", "z"): 4, ("B", "y"): 3}), 6, "merge")
    assert labelled(found) == {("A", "x"): 9, ("A", None): 6}
    assert [str(entry.message) for entry in said] == [
        "groups of fewer than 6 rows are merged into 1 (2 of 4): A / y, A / z",
        "groups of fewer than 6 rows are left out (1 of 4): B / y",
    ]


def test_small_groups_join_the_group_whose_last_factor_is_missing_already():
    with pytest.warns(cf.CrossfusionWarning, match=r"merged into 1 \(1 of 2\): A / x$"):
        found = suppress_small(counted({("A", "x"): 2, ("A", None): 9}), 5, "merge")
    assert labelled(found) == {("A", None): 11}


def test_many_merged_groups_are_counted():
    with pytest.warns(cf.CrossfusionWarning, match=r"\(12 of 12\): A / 0, A / 1, A / 2, .* and 4 more$"):
        found = suppress_small(counted({("A", k): 1 for k in range(12)}), 5, "merge")
    assert labelled(found) == {("A", None): 12}


@given(st.integers(0, 2**32 - 1), st.integers(0, 12), st.sampled_from(["drop", "merge"]))
def test_no_small_group_is_left_and_no_row_is_counted_twice(seed, least, small):
    draw = np.random.default_rng(seed)
    by = {name: draw.integers(0, size, 60) for name, size in (("p", 3), ("q", 4), ("u", 5))}
    summary = cf.summarize(draw.normal(size=(60, 2)), by=by)
    least = min(least, int(summary.moments.count.max()))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = suppress_small(summary, least, small)
    counts, before = found.moments.count, labelled(summary)
    assert counts.min() >= least
    large = {label: count for label, count in before.items() if count >= least}
    assert {label: count for label, count in labelled(found).items() if label in before} == large
    lost = sum("left out" in str(entry.message) for entry in said)
    assert (counts.sum() == 60) == (not lost)
    if small == "drop":
        assert labelled(found) == large
    else:
        assert 60 - counts.sum() < max(least, 1)


def test_min_count_on_the_command_line(sites, tmp_path, run):
    target = tmp_path / "all.parquet"
    least = 25
    for small, said in (("drop", "left out"), ("merge", "merged into")):
        done = run("merge", *sites, "--min-count", least, "--small", small, "-o", target)
        assert done.err.startswith(f"crossfusion: warning: groups of fewer than {least} rows are {said}")
        with pytest.warns(cf.CrossfusionWarning):
            assert_close(cf.read_summary(target), cf.merge_summaries(sites, min_count=least, small=small), 0)
    x, by = rows_of(3)
    np.savez(tmp_path / "rows.npz", x=x, label=by["label"].astype(str), patient=by["patient"])
    rows = ["summarize", tmp_path / "rows.npz", "--by", "label,patient", "-o", target]
    assert "merged into" in run(*rows, "--min-count", 8, "--small", "merge").err
    assert cf.read_summary(target).moments.count.min() >= 8
    assert cf.read_summary(target).moments.count.sum() == 200


# ---- checksums


def rewritten(path, change=lambda table: table, **facts):
    """The file again as another program would have left it."""
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"crossfusion"]) | facts
    pq.write_table(change(table).replace_schema_metadata({b"crossfusion": json.dumps(about).encode()}), path)


def changed(name, position, value):
    def change(table):
        values = table.column(name).to_pylist()
        values[position] = value(values[position])
        column = pa.array(values, table.schema.field(name).type)
        return table.set_column(table.column_names.index(name), name, column)

    return change


CHANGES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing": (lambda table: table, {}, ""),
    "the order": (lambda table: table.take([*range(1, table.num_rows), 0]), {}, ""),
    "a count": (changed("count", 2, lambda count: count + 1), {}, "the cell label=a, patient=2 is not"),
    "a mean": (changed("mean", 0, lambda m: [*m[:-1], np.nextafter(m[-1], 9)]), {}, "the cell label=a, patient=0 is"),
    "a mean to NaN": (changed("mean", 0, lambda m: [*m[:-1], np.nan]), {}, "the cell label=a, patient=0 is not"),
    "a sumsq": (changed("sumsq", -1, lambda s: [0.0, *s[1:]]), {}, "the cell label=(missing), patient=8 is not"),
    "a factor": (changed("label", 1, lambda label: "b"), {}, "the cell label=b, patient=1 is not"),
    "a missing factor": (changed("label", 1, lambda label: None), {}, "the cell label=(missing), patient=1 is not"),
    "a checksum": (changed("checksum", 1, lambda text: text[::-1]), {}, "the cell label=a, patient=1 is not"),
    "the type of a factor": (
        lambda table: table.set_column(1, "patient", table.column("patient").cast(pa.string())),
        {},
        "the cell label=a, patient=0 is not",
    ),
    "a cell less": (lambda table: table.slice(1), {}, "26 cells are there of the 27"),
    "a cell twice": (
        lambda table: pa.concat_tables([table, table.slice(3, 1)]),
        {},
        "the cell label=a, patient=3 is there 2 times",
    ),
    "a cell for another": (
        lambda table: pa.concat_tables([table.slice(1), table.slice(3, 1)]),
        {},
        "the cell label=a, patient=3 is there 2 times",
    ),
    "a tag": (lambda table: table, {"tags": TAGS | {"encoder": "uni"}}, "its tags"),
    "tags of another kind": (lambda table: table, {"tags": ["encoder"]}, "its tags"),
    "no tag": (lambda table: table, {"tags": {}}, "its tags"),
    "dropped rows": (lambda table: table, {"dropped": 3}, "other facts"),
    "dtype": (lambda table: table, {"dtype": "float32"}, "other facts"),
    "a factor's name": (
        lambda table: table.rename_columns(["class", *table.column_names[1:]]),
        {},
        "factors' names",
    ),
    "number of cells": (lambda table: table, {"cells": 3}, "27 cells are there of the 3"),
    "no checksums": (lambda table: table.drop_columns(["checksum"]), {}, "checksum"),
    "no checksum of the file": (lambda table: table, {"checksum": None}, "other facts"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_changed_is_noticed_and_named(name, tmp_path, refuses, fails):
    path = tmp_path / "s.parquet"
    change, facts, message = CHANGES[name]
    summary_of(0).write(path)
    rewritten(path, change, **facts)
    if not message:
        assert_close(cf.read_summary(path), summary_of(0), 0)
        return
    with pytest.raises(cf.FileError) as caught:
        cf.read_summary(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path} is a damaged summary (")
    assert message in fails("merge", path, "-o", tmp_path / "all.parquet")


def golden(version, tmp_path):
    return Path(shutil.copy(GOLDEN / f"format{version}" / "summary.parquet", tmp_path))


@pytest.mark.parametrize("version", [1, 2])
def test_files_of_every_format_are_still_read(version, tmp_path):
    x = np.arange(24.0).reshape(12, 2) ** 2 / 7
    days = [dt.date(2024, 1, 1)] * 6 + [dt.date(2024, 1, 2)] * 6
    expected = cf.summarize(x, by={"site": ["A", "B", None] * 4, "day": days, "label": [0, 1] * 6})
    path = golden(version, tmp_path)
    assert storage.read_header(path)["format"] == version
    found = cf.read_summary(path)
    assert_close(found, replace(expected, tags={} if version == 1 else {"encoder": "virchow"}), 0)
    assert found.batches == ()
    found.write(path)
    assert storage.read_header(path)["format"] == storage.FORMAT
    assert_close(cf.read_summary(path), found, 0)


def test_a_factor_of_an_old_file_that_is_called_checksum_gets_another_name(tmp_path):
    path = golden(1, tmp_path)
    table = pq.read_table(path)
    renamed = table.rename_columns(["checksum", "checksum_", *table.column_names[2:]])
    pq.write_table(renamed.replace_schema_metadata(table.schema.metadata), path)
    with pytest.warns(cf.CrossfusionWarning, match=r"the factor 'checksum' of .* is called 'checksum__' here"):
        found = cf.read_summary(path)
    assert found.factors == ("checksum__", "checksum_", "label")
    found.write(path)
    assert_close(cf.read_summary(path), found, 0)


def test_other_programs_read_the_file(tmp_path):
    path = tmp_path / "s.parquet"
    summary = summary_of(0)
    summary.write(path)
    expected = summary.moments.count.tolist()
    assert pl.read_parquet(path)["count"].to_list() == expected
    assert pl.read_parquet(path)["checksum"].to_list() == checksums.hash_cells(summary.keys, summary.moments)
    means = duckdb.connect().execute(f"select list_sum(mean[:]) from '{path}'").fetchall()
    np.testing.assert_allclose([mean for (mean,) in means], summary.moments.mean.sum(axis=1), rtol=1e-12)


def test_the_checksum_of_a_cell_is_what_the_page_says(tmp_path):
    from hashlib import blake2b

    path = tmp_path / "s.parquet"
    cf.summarize([[1.0, 2.0], [3.0, 5.0]], by={"g": ["ä", "ä"], "day": [None, None]}).write(path)
    said = b"\x06\0\0\0str:\xc3\xa4" + b"\x0d\0\0\0NoneType:None"
    numbers = np.array([2.0, 2.0, 3.5, 2.0, 4.5], "<f8").tobytes()
    assert pq.read_table(path)["checksum"].to_pylist() == [blake2b(said + numbers, digest_size=8).hexdigest()]


# ---- the same rows, however they were read


def digest(summary):
    return checksums.hash_batch(summary.keys, summary.moments, summary.tags)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("seed", range(15))
def test_a_batch_is_known_again_whatever_the_order(seed, offset, dtype):
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(5, 80))
    x, by = (
        draw.normal(offset, 1, (rows, 3)).astype(dtype),
        {"p": draw.integers(0, 3, rows), "q": draw.integers(0, 3, rows)},
    )
    summary = cf.summarize(x, by=by)
    order, cut = draw.permutation(rows), int(draw.integers(0, rows))
    pieces = [piece for piece in (order[:cut], order[cut:]) if len(piece)]
    again = sum(cf.summarize(x[piece], by={name: by[name][piece] for name in ("q", "p")}) for piece in pieces)
    assert digest(again) == digest(summary)
    elsewhere = x.copy()
    elsewhere[0] += 0.1
    assert digest(cf.summarize(elsewhere, by=by)) != digest(summary)
    assert digest(replace(summary, tags={"encoder": "uni"})) != digest(summary)


# ---- adding to a file


def test_appending_is_summarising_all(tmp_path):
    path = tmp_path / "s.parquet"
    parts = [summary_of(seed) for seed in range(3)]
    for k, part in enumerate(parts):
        total = cf.append_summary(part, path)
        assert_close(total, sum(parts[: k + 1]))
        assert_close(cf.read_summary(path), total, 0)
    assert sorted(os.listdir(tmp_path)) == [".s.parquet.lock", "s.parquet"]
    for part in parts:
        with pytest.raises(cf.FileError, match="already contains these rows: nothing was added"):
            cf.append_summary(part, path)
    assert_close(cf.read_summary(path), sum(parts))


def test_what_a_file_was_written_with_is_not_added_again(tmp_path, refuses):
    path = tmp_path / "s.parquet"
    summary_of(0).write(path)
    with refuses("already contains these rows", cf.FileError):
        cf.append_summary(summary_of(0), path)


@pytest.mark.parametrize("name", ["features", "factors", "types", "tag", "tag missing"])
def test_what_does_not_go_together_is_not_added(name, tmp_path, refuses):
    path = tmp_path / "north.parquet"
    summary_of(0).write(path)
    before = path.read_bytes()
    with refuses("north.parquet"):
        cf.append_summary(MISMATCHES[name][0], path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("wait", [-1, None, "1", True, float("nan"), float("inf")])
def test_a_wait_that_makes_no_sense_is_refused(wait, tmp_path, refuses):
    with refuses("wait="):
        cf.append_summary(summary_of(0), tmp_path / "s.parquet", wait=wait)


@pytest.fixture
def weeks(tmp_path):
    """Rows of two weeks as files."""
    for k in (1, 2):
        x, by = rows_of(k)
        table = pa.table({"label": by["label"], "patient": by["patient"], "x": list(x)})
        pq.write_table(table, tmp_path / f"week{k}.parquet")
    return tmp_path


TAG = [word for name, value in TAGS.items() for word in ("--tag", f"{name}={value}")]


def append(week, *more, by="label,patient", tags=TAG):
    return ["summarize", f"week{week}.parquet", "--by", by, *tags, "--append", "-o", "all.parquet", *more]


def test_append_on_the_command_line(weeks, fails, run):
    assert run(*append(1), cwd=weeks).out.endswith("200 rows added to all.parquet\n")
    lines = run(*append(2, "--wait", "5"), cwd=weeks).out.splitlines()
    assert lines[0].endswith("400 rows × 5 features (float64)")
    assert lines[1] == "tags: encoder=virchow, preprocessing=macenko"
    assert_close(cf.read_summary(weeks / "all.parquet"), summary_of(1) + summary_of(2))
    assert "all.parquet already contains these rows: nothing was added" in fails(*append(2), cwd=weeks)
    done = run(*append(2, "-o", "new.parquet", "--json", by="patient", tags=[]), cwd=weeks)
    assert (json.loads(done.out)["rows"], json.loads(done.out)["tags"]) == (200, {})


CALLS = {
    "factors": (append(2, by="label"), "(what is new has label, all.parquet has label and patient)"),
    "no tags": (append(2, tags=[]), "the tag 'encoder' differs (what is new has none, all.parquet has 'virchow')"),
    "tag": (append(2, tags=[*TAG[:2], "--tag", "preprocessing=none"]), "(what is new has 'none', all.parquet has 'mac"),
    "negative": (append(2, "--wait", "-1"), "--wait -1.0 must be a number of seconds"),
    "not a tag": (append(2, "--tag", "scanner"), "--tag scanner is not NAME=VALUE"),
    "tag without a name": (append(2, "--tag", "=a"), "--tag =a is not NAME=VALUE"),
    "tag twice": (append(2, "--tag", "encoder=uni"), "--tag encoder is given as 'virchow' and as 'uni'"),
    "wait for nobody": (
        ["summarize", "week2.parquet", "--by", "label", "--wait", "1", "-o", "x.parquet"],
        "--wait goes with --append",
    ),
    "rows": ([*append(2)[:-1], "week1.parquet"], "week1.parquet exists and is not a summary"),
    "folder": ([*append(2)[:-1], "no/all.parquet"], "there is no folder no"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_bad_append_is_one_line_and_changes_nothing(name, weeks, fails):
    summary_of(1).write(weeks / "all.parquet")
    before = (weeks / "all.parquet").read_bytes()
    arguments, message = CALLS[name]
    assert message in fails(*arguments, cwd=weeks)
    assert (weeks / "all.parquet").read_bytes() == before


# ---- many writers, and writers that die

WORKER = """
import os, signal, sys, time
import filelock, numpy as np, pandas, pyarrow as pa, pyarrow.parquet  # what would load in each fork otherwise
import crossfusion as cf
from crossfusion.summary import append_summary
from crossfusion.moments import Moments

def batch(number, cells=60, dim=200):
    values = np.random.default_rng(number).normal(size=(2, cells, dim)) ** 2
    return cf.Summary(pa.table({"cell": np.arange(cells)}), Moments(np.full(cells, 6.0), *values))

def forked(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as problem:
            print(problem, file=sys.stderr)
            os._exit(1)
    return pid
"""


def worker(code, *arguments):
    """Run code that has batches to append, and forks."""
    command = [sys.executable, "-c", WORKER + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_eight_processes_append_at_once_and_all_count(quick):
    code = """
def work(k):
    for number in range(k, 40, 8):
        append_summary(batch(number), sys.argv[1])

pids = [forked(lambda: work(k)) for k in range(8)]
print([os.waitpid(pid, 0)[1] for pid in pids])
"""
    path = quick / "s.parquet"
    assert worker(code, path).strip() == str([0] * 8)
    found = cf.read_summary(path)
    assert found.moments.count.tolist() == [240.0] * 60
    assert len(found.batches) == 40
    values = np.array([np.random.default_rng(number).normal(size=(2, 60, 200))[0] ** 2 for number in range(40)])
    np.testing.assert_allclose(found.moments.mean, values.mean(axis=0), rtol=1e-12)
    assert sorted(os.listdir(quick)) == [".s.parquet.lock", "s.parquet"]


def test_a_kill_at_any_point_leaves_the_old_file_or_the_new_one(quick, tmp_path):
    code = """
path, noted = sys.argv[1], sys.argv[2]
note = os.open(noted, os.O_CREAT | os.O_RDWR)
done = lambda: int.from_bytes(os.pread(note, 8, 0), "little")  # batches whose append has returned

def work(start):
    for number in range(start, start + 1000):
        append_summary(batch(number), path)
        os.pwrite(note, number.to_bytes(8, "little"), 0)

def check():
    rows = set(cf.read_summary(path).moments.count.tolist())
    if rows not in ({6.0 * done()}, {6.0 * done() + 6}):
        raise ValueError(f"{rows} rows after {done()} batches")
    os.pwrite(note, int(max(rows) / 6).to_bytes(8, "little"), 0)

draw = np.random.default_rng(0)
kills = litter = 0
while kills < 30 or (litter == 0 and kills < 300):  # until one was in the middle of writing
    kills += 1
    before = done()
    pid = forked(lambda: work(before + 1))
    while done() < before + 1:
        time.sleep(0.001)
    time.sleep(draw.uniform(0, 0.02))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    litter += any(".append-" in name for name in os.listdir(os.path.dirname(path)))
    assert os.waitpid(forked(check), 0)[1] == 0
assert os.waitpid(forked(lambda: append_summary(batch(0), path)), 0)[1] == 0
print(litter, done())
"""
    path = quick / "s.parquet"
    litter, batches = map(int, worker(code, path, tmp_path / "note").split())
    assert litter > 0, "no writer was killed in the middle of writing"
    assert cf.read_summary(path).moments.count.tolist() == [6.0 * (batches + 1)] * 60
    assert sorted(os.listdir(quick)) == [".s.parquet.lock", "s.parquet"]


def test_a_lock_that_is_held_is_waited_for_and_then_said(weeks, fails, run):
    path = weeks / "all.parquet"
    summary_of(1).write(path)
    before = path.read_bytes()
    holder = subprocess.Popen(
        [sys.executable, "-c", f"import fcntl, time; f = open({str(weeks / '.all.parquet.lock')!r}, 'w');"
         f"fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep({PATIENCE})"],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        started = time.monotonic()
        message = fails(*append(2, "--wait", "0.5"), cwd=weeks)
        assert "all.parquet is being written to by another process, and still was after --wait 0.5 seconds" in message
        assert time.monotonic() - started >= 0.5
        assert holder.poll() is None
        assert path.read_bytes() == before
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    run(*append(2, "--wait", "0"), cwd=weeks)  # the lock went with its holder
    assert cf.read_summary(path).moments.count.sum() == 400


def limited():
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


@pytest.mark.parametrize("exists", [True, False])
def test_a_full_disk_is_one_line_and_leaves_the_old_file(exists, weeks):
    path = weeks / "all.parquet"
    if exists:
        summary_of(1).write(path)
    before = path.read_bytes() if exists else None
    command = [str(Path(sys.executable).with_name("crossfusion")), *append(2)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=weeks, preexec_fn=limited, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "all.parquet cannot be written (" in done.stderr
    assert (path.read_bytes() if exists else None) == before
    assert not [name for name in os.listdir(weeks) if ".append-" in name]


def test_a_folder_that_denies_writing_is_one_line_and_leaves_the_old_file(quick):
    code = """
if os.geteuid() == 0:
    os.seteuid(65534)  # to root nothing is denied
try:
    append_summary(batch(1), sys.argv[1])
except cf.FileError as problem:
    print(problem)
"""
    path = quick / "s.parquet"
    summary_of(1).write(path)
    before = path.read_bytes()
    quick.chmod(0o555)
    try:
        assert worker(code, path) == f"{path} cannot be written (Permission denied): check the space and rights there\n"
        assert path.read_bytes() == before
    finally:
        quick.chmod(0o755)


def test_a_place_where_nothing_can_be_made_is_refused_at_once(refuses):
    with refuses("cannot be written", cf.FileError):
        cf.append_summary(summary_of(0), "/proc/s.parquet")


def test_the_same_rows_are_found_though_other_groups_are_left_out(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    label = np.repeat(["fat", "stroma"], [4, 36])
    whole = cf.summarize(x, by={"label": label})
    with pytest.warns(cf.CrossfusionWarning, match="left out"):
        some = cf.summarize(x, by={"label": label}, min_count=10)
    with pytest.raises(cf.InputError, match="summary 2 has the very same rows as summary 1 in the group stroma"):
        cf.merge_summaries([whole, some])
    some.write(tmp_path / "s.parquet")
    with pytest.raises(cf.InputError, match=r"the very same rows as .*s\.parquet in the group stroma"):
        cf.append_summary(whole, tmp_path / "s.parquet")
