"""Rows that are decoded while they are reduced: the same summary, the same words about what is wrong with them."""

import pickle
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion._base import lazy_rows
from crossfusion._base.lazy_rows import LazyRows
from crossfusion.io import reduction
from crossfusion.io.engines import local
from crossfusion.io.sources import open_file, parquet
from crossfusion.io.sources.chunk import Chunk, Source, concatenate_chunks
from crossfusion.io.sources.parquet_file import ParquetFile

ROWS, DIM = 500, 19  # features that fill no square
rng = np.random.default_rng(5)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "C"], ROWS)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Chunks of thirty rows."""
    monkeypatch.setattr(lazy_rows, "CACHE_BYTES", 30 * DIM * 8)


def save(path, rows=X, kind=None, **options):
    kind = kind or pa.list_(pa.float64())
    lists = pa.array([None if row is None else list(row) for row in rows], kind)
    pq.write_table(pa.table({"site": SITE[: len(rows)], "vector": lists}), path, **options)
    return path


def save_wide(path, rows=X, **options):
    columns = {f"d{k}": rows[:, k] for k in range(rows.shape[1])}
    pq.write_table(pa.table({"site": SITE, **columns}), path, **options)
    return path


def assert_same(found, rows=X, rtol=1e-12):
    expected = cf.summarize(rows, by={"site": SITE[: len(rows)]}, nan="drop").moments
    np.testing.assert_array_equal(found.moments.count, expected.count)
    np.testing.assert_allclose(found.moments.mean, expected.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.moments.sumsq, expected.sumsq, rtol=rtol)


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float64(), DIM), pa.large_list(pa.float64())])
@pytest.mark.parametrize("size", [ROWS, 70], ids=["one row group", "several"])
@pytest.mark.parametrize("keys", [parquet.MAX_LAZY_ROWS, 10], ids=["decoded late", "in blocks"])
def test_lists(kind, size, keys, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "MAX_LAZY_ROWS", keys)
    path = save(tmp_path / "x.parquet", kind=kind, row_group_size=size)
    assert_same(cf.summarize(path, by="site"))
    late = [isinstance(entry.rows, LazyRows) for entry in open_file(path, ["site"]).chunks()]
    assert all(late) == (keys > ROWS)


@pytest.mark.parametrize("kind", ["float64", "float32", "int16", "float16"])
@pytest.mark.parametrize("number", [1, 3, 8, 16, DIM])
def test_columns(kind, number, tmp_path):
    rows = (10 * X[:, :number]).astype(kind)
    path = save_wide(tmp_path / "x.parquet", rows, row_group_size=203)
    found = cf.summarize(path, by="site", vectors="d*")
    assert_same(found, rows, 1e-12 if kind == "float64" else 1e-5)
    np.testing.assert_array_equal(concatenate_chunks(list(open_file(path, ["site"], "d*").chunks())), rows)


@pytest.mark.parametrize("saved", [save, save_wide])
def test_rows_that_are_not_finite(saved, tmp_path, refuses):
    rows = X.copy()
    rows[333, 4] = np.inf
    rows[[40, 350], 2] = np.nan
    path = saved(tmp_path / "x.parquet", rows, row_group_size=300)
    vectors = "vector" if saved is save else "d*"
    with refuses("the first in row 40, feature 2"):
        cf.summarize(path, by="site", vectors=vectors)
    with pytest.warns(cf.CrossfusionWarning, match="in 3 of 500 rows"):
        assert_same(cf.summarize(path, by="site", vectors=vectors, nan="drop"), rows)


def test_squares_too_small_for_single_precision(tmp_path):
    rows = (X * 1e-30).astype(np.float32)
    path = save(tmp_path / "x.parquet", rows, pa.list_(pa.float32()))
    found = cf.summarize(path, by="site")
    assert_same(found, rows.astype(np.float64), 1e-5)
    assert found.moments.sumsq.min() > 0


def test_vectors_of_another_length_from_some_row_on(tmp_path, refuses, monkeypatch):
    monkeypatch.setattr(lazy_rows, "CACHE_BYTES", 1)
    rows = [row[:-1] if k >= 120 else row for k, row in enumerate(X)]
    path = save(tmp_path / "x.parquet", rows)
    with refuses("unequal length, 19 entries before row 120 and 18"):
        cf.summarize(path, by="site")
    monkeypatch.setattr(lazy_rows, "CACHE_BYTES", 10**6)
    path = save(tmp_path / "y.parquet", [row[:-1] if k == 125 else row for k, row in enumerate(X)])
    with refuses("unequal length, first in row 125"):
        cf.summarize(path, by="site")


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float64(), DIM)])
@pytest.mark.parametrize("gone", [slice(0, 100), slice(100, 200), slice(0, ROWS)], ids=["first", "later", "all"])
def test_missing_vectors_are_rows_that_are_not_finite(kind, gone, tmp_path, refuses):
    rows, expected = list(X), X.copy()
    rows[gone], expected[gone] = [None] * len(rows[gone]), np.nan
    try:
        path = save(tmp_path / "x.parquet", rows, kind)
        list(pq.ParquetFile(path).iter_batches(10))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pytest.skip("older versions of PyArrow do not know missing lists of fixed size in files")
    if len(rows[gone]) == ROWS:
        with refuses("NaN or infinite values in 500 of"):
            cf.summarize(path, by="site")
        return
    with pytest.warns(cf.CrossfusionWarning, match="in 100 of 500 rows"):
        assert_same(cf.summarize(path, by="site", nan="drop"), expected)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("gone", ["vector", "entry"])
def test_missing_whole_numbers(kind, gone, tmp_path, refuses):
    values = (10 * np.abs(X)).astype(kind)
    rows: list[Any] = values.tolist()
    for k in range(200, 300):
        if gone == "vector":
            rows[k] = None
        else:
            rows[k][3] = None
    path = save(tmp_path / "x.parquet", rows, pa.list_(getattr(pa, kind if kind != "bool" else "bool_")()))
    with refuses("in 100 of .* the first in row 200"):
        cf.summarize(path, by="site")
    expected = values.astype(float)
    expected[200:300] = np.nan
    with pytest.warns(cf.CrossfusionWarning, match="in 100 of 500 rows"):
        assert_same(cf.summarize(path, by="site", nan="drop"), expected, 1e-5)
    found = concatenate_chunks(list(open_file(path, ["site"]).chunks()))
    assert np.isnan(found[200:300]).any(axis=1).all()


@pytest.mark.parametrize("name", ["a.vector", "vector"])
@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), DIM)])
@pytest.mark.parametrize("empty", [0, 20], ids=["all there", "an empty row group first"])
def test_the_width_of_a_row_is_known(name, kind, empty, tmp_path):
    path = tmp_path / "x.parquet"
    lists = [None] * empty + X.tolist()
    table = pa.table({"site": ["A"] * len(lists), name: pa.array(lists, kind)})
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        if empty:
            writer.write_table(table.slice(0, empty))
        writer.write_table(table.slice(empty))
    with ParquetFile(str(path)).file() as file:
        assert parquet._measure_row(file, [name], "x") == 4 * DIM


def mapped(path):
    return str(path) in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("saved", [save, save_wide])
def test_parts_share_one_map_of_the_file_and_let_go_of_it(saved, tmp_path, monkeypatch):
    monkeypatch.setattr("crossfusion.io.sources.chunk.CHUNK_BYTES", 2**10)
    path = saved(tmp_path / "x.parquet", row_group_size=50)
    maps, plain = [], pa.memory_map

    def counted(*arguments):
        maps.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(pa, "memory_map", counted)
    source = open_file(path, ["site"], None if saved is save else "d*")
    assert len(source.partitions) > 2
    assert not mapped(path)
    maps.clear()
    parts = [[np.asarray(block.rows) for block in part()] for part in source.partitions[:-1]]
    assert len(maps) == 1
    assert mapped(path)
    parts.append([np.asarray(block.rows) for block in pickle.loads(pickle.dumps(source.partitions[-1]))()])
    parts.append([np.asarray(block.rows) for block in source.partitions[-1]()])
    assert not mapped(path)
    np.testing.assert_array_equal(np.concatenate(parts[-1]), np.concatenate(parts[-2]))
    np.testing.assert_array_equal(np.concatenate([rows for part in parts[:-1] for rows in part]), X)


FLIPS = """
import os, warnings
import crossfusion as cf
warnings.simplefilter("ignore")
with open(os.environ["WHOLE"], "rb") as file:
    data = file.read()
path = os.environ["WHOLE"].replace("x.", "y.")
for at in range(8 * (len(data) - 600), 8 * len(data), 7):
    flipped = bytearray(data)
    flipped[at // 8] ^= 1 << at % 8
    with open(path, "wb") as file:
        file.write(flipped)
    try:
        cf.summarize(path, by="site")
    except cf.CrossfusionError:
        pass
print("all read")
"""


def test_no_bit_of_a_footer_ends_the_process(tmp_path, python):
    path = save(tmp_path / "x.parquet", X[:40, :2])
    assert python(FLIPS, WHOLE=str(path)) == "all read"


@pytest.mark.parametrize("stable", [True, False])
def test_chunks_may_be_read_ahead(stable):
    rows = LazyRows(X.shape, X.dtype, lambda: iter(np.array_split(X, 10)), stable=stable)
    rows.read_ahead = True
    np.testing.assert_array_equal(np.concatenate(list(rows.chunks())), X)
    before = threading.active_count()
    next(rows.chunks())  # and no more: the thread ends
    assert threading.active_count() == before

    def broken():
        yield X[:5]
        raise cf.FileError("x", "is damaged", "write it again")

    rows = LazyRows(X.shape, X.dtype, broken, stable=stable)
    rows.read_ahead = True
    with pytest.raises(cf.FileError, match="x is damaged"):
        list(rows.chunks())


def test_one_long_part_is_read_ahead(tmp_path, monkeypatch):
    used = []
    made = lazy_rows.prefetch

    def counted(found):
        used.append(1)
        return made(found)

    monkeypatch.setattr(lazy_rows, "prefetch", counted)
    monkeypatch.setattr(local, "thread_count", lambda: 2)
    path = save(tmp_path / "x.parquet")
    assert_same(cf.summarize(path, by="site"))
    assert used


def test_a_file_that_breaks_in_the_middle(tmp_path, refuses):
    path = save(tmp_path / "x.parquet", write_page_checksum=True, use_dictionary=False, compression="none")
    data = bytearray(path.read_bytes())
    at = data.find(X[400].tobytes())
    data[at : at + 64] = b"\xff" * 64
    path.write_bytes(data)
    with pytest.raises(cf.CrossfusionError, match=r"x\.parquet"):
        cf.summarize(path, by="site")


def test_progress_is_told_while_a_block_is_read():
    told: list[int] = []
    rows = LazyRows(X.shape, X.dtype, lambda: iter(np.array_split(X, 10)))
    made = Source("made up", [lambda: iter([Chunk(rows, pa.table({"site": SITE}))])], ROWS)
    found = local.run([made], progress=told.append)
    assert told == [50] * 10
    assert_same(reduction.finish_summary(found, "raise"))


def test_a_long_block_ends_when_another_part_fails(monkeypatch):
    monkeypatch.setattr(local, "thread_count", lambda: 2)
    used, begun = [], threading.Event()

    def long():
        for k in range(10**6):
            used.append(k)
            begun.set()
            yield X[:1]

    def failing():
        yield Chunk(X[:1], pa.table({"site": ["A"]}))
        begun.wait(10)
        raise cf.FileError("the other part", "is damaged", "write it again")

    block = Chunk(LazyRows((10**6, DIM), X.dtype, long), pa.table({"site": ["A"] * 10**6}))
    made = Source("made up", [partial(iter, [block]), failing], None)
    with pytest.raises(cf.FileError, match="the other part"):
        local.run([made])
    assert len(used) < 10**6
