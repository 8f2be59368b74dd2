"""Parquet files: vectors decoded while they are reduced, and wide files reduced column by column."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.io.engines import local
from crossfusion.io.sources import chunk, open_file, parquet_wide
from crossfusion.io.sources.chunk import concatenate_chunks
from crossfusion.moments import columnwise, kernel

ROWS, DIM = 3000, 19
rng = np.random.default_rng(8)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "C"], ROWS)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Small files are read as large ones are."""
    monkeypatch.setattr(parquet_wide, "MIN_COLUMNWISE_ROWS", 1)


def listed(rows, kind=None):
    entries = pa.array(rows.reshape(-1))
    if kind is None:
        return pa.FixedSizeListArray.from_arrays(entries, rows.shape[1])
    return pa.array(rows.tolist(), kind)


def save_lists(path, rows=X, kind=None, **options):
    pq.write_table(pa.table({"site": SITE[: len(rows)], "vector": listed(rows, kind)}), path, **options)
    return path, "vector"


def save_columns(path, rows=X, required=False, **options):
    kind = pa.from_numpy_dtype(rows.dtype)
    features = [pa.field(f"d{k}", kind, nullable=not required) for k in range(rows.shape[1])]
    columns = [pa.array(SITE[: len(rows)]), *(pa.array(np.ascontiguousarray(column)) for column in rows.T)]
    schema = pa.schema([pa.field("site", pa.string()), *features])
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, **options)
    return path, "d*"


def assert_same(found, rows=X, rtol=1e-12):
    expected = cf.summarize(np.asarray(rows, np.float64), by={"site": SITE[: len(rows)]}).moments
    np.testing.assert_array_equal(found.moments.count, expected.count)
    np.testing.assert_allclose(found.moments.mean, expected.mean, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(found.moments.sumsq, expected.sumsq, rtol=rtol)


WRITTEN = {
    "defaults": {},
    "short pages": {"data_page_size": 9000, "write_batch_size": 100},
    "page version 2": {"data_page_version": "2.0", "data_page_size": 9000, "write_batch_size": 64},
    "row groups": {"row_group_size": 701},
    "page index and checksums": {"write_page_index": True, "write_page_checksum": True},
    "no statistics": {"write_statistics": False},
    "format version 1": {"version": "1.0"},
    "plain": {"use_dictionary": False, "compression": "none"},
    "zstd": {"compression": "zstd"},
    "byte-stream split": {
        "use_dictionary": False,
        "use_byte_stream_split": ["vector.list.element", *(f"d{k}" for k in range(DIM))],
    },
}


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN.keys())
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("save", [save_lists, save_columns])
def test_every_encoding_gives_the_same_rows(save, dtype, options, tmp_path):
    rows = X.astype(dtype)
    path, vectors = save(tmp_path / "x.parquet", rows, **options)
    assert_same(cf.summarize(path, by="site", vectors=vectors), rows, 1e-12 if dtype == "float64" else 1e-5)
    np.testing.assert_array_equal(concatenate_chunks(list(open_file(path, ["site"], vectors).chunks())), rows)


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 64, 300])
@pytest.mark.parametrize("kind", [None, pa.list_(pa.float64()), pa.large_list(pa.float64())])
def test_lists_of_any_length(kind, dim, tmp_path):
    rows = rng.normal(size=(ROWS // 2, dim))
    path, _ = save_lists(tmp_path / "x.parquet", rows, kind, data_page_size=9000, write_batch_size=77)
    assert_same(cf.summarize(path, by="site"), rows)
    np.testing.assert_array_equal(concatenate_chunks(list(open_file(path, ["site"], "vector").chunks())), rows)


@pytest.mark.parametrize("dim", [columnwise.FEATURES_AT_ONCE + 1, 3 * columnwise.FEATURES_AT_ONCE, 50])
@pytest.mark.parametrize("required", [False, True])
def test_columns_of_any_number(dim, required, tmp_path):
    rows = rng.normal(size=(ROWS, dim))
    path, _ = save_columns(tmp_path / "x.parquet", rows, required=required, row_group_size=999)
    assert_same(cf.summarize(path, by="site", vectors="d*"), rows)
    backwards = [f"d{k}" for k in range(dim)][::-1]
    assert_same(cf.summarize(path, by="site", vectors=backwards), rows[:, ::-1])


@pytest.mark.parametrize("at", [0, 1700, ROWS - 1])
def test_missing_values_are_counted(at, tmp_path, refuses):
    there = np.arange(ROWS) != at
    columns = {f"d{k}": pa.array(X[:, k], mask=~there if k == 17 else None) for k in range(DIM)}
    pq.write_table(pa.table({"site": SITE, **columns}), tmp_path / "wide.parquet")
    lists = [[None, *row[1:]] if k == at else row for k, row in enumerate(X.tolist())]
    pq.write_table(pa.table({"site": SITE, "vector": pa.array(lists)}), tmp_path / "lists.parquet")
    for name, vectors in (("wide", "d*"), ("lists", "vector")):
        with refuses(f"in 1 of .*rows, the first in row {at}"):
            cf.summarize(tmp_path / f"{name}.parquet", by="site", vectors=vectors)
        with pytest.warns(cf.CrossfusionWarning, match="in 1 of 3000 rows"):
            found = cf.summarize(tmp_path / f"{name}.parquet", by="site", vectors=vectors, nan="drop")
        expected = cf.summarize(X[there], by={"site": SITE[there]}).moments
        np.testing.assert_allclose(found.moments.mean, expected.mean, rtol=1e-12, atol=1e-12)


def test_nan_is_located(tmp_path, refuses):
    rows = X.copy()
    rows[1234, 18] = np.nan
    for save in (save_lists, save_columns):
        path, vectors = save(tmp_path / "x.parquet", rows, row_group_size=800)
        with refuses("in 1 of .* rows, the first in row 1234, feature 18"):
            cf.summarize(path, by="site", vectors=vectors)


def test_lists_of_unequal_length_that_add_up(tmp_path, refuses):
    lists = X.tolist()
    lists[70], lists[71] = lists[70][:-1], [*lists[71], 0.5]
    pq.write_table(pa.table({"site": SITE, "vector": pa.array(lists)}), tmp_path / "x.parquet")
    with refuses("unequal length, first in row 70"):
        cf.summarize(tmp_path / "x.parquet", by="site")


def test_empty_lists_and_missing_ones_that_add_up(tmp_path, refuses):
    lists = [*X.tolist()]
    lists[5], lists[6] = [], lists[5] + lists[6]
    pq.write_table(pa.table({"site": SITE, "vector": pa.array(lists)}), tmp_path / "x.parquet")
    with refuses("unequal length"):
        cf.summarize(tmp_path / "x.parquet", by="site")


@pytest.mark.parametrize("vectors", ["vector", "d*"])
def test_files_of_other_writers(vectors, tmp_path):
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    columns = {"vector": X.tolist()} if vectors == "vector" else {f"d{k}": X[:, k] for k in range(DIM)}
    frame = polars.DataFrame({"site": SITE.tolist(), **columns})
    frame.write_parquet(tmp_path / "polars.parquet", compression="uncompressed", row_group_size=900)
    rows = frame.to_arrow()
    duckdb.from_arrow(rows).write_parquet(str(tmp_path / "duckdb.parquet"), compression="uncompressed")
    for name in ("polars", "duckdb"):
        assert_same(cf.summarize(tmp_path / f"{name}.parquet", by="site", vectors=vectors))


@pytest.mark.parametrize("name", ["vector", "v.w", "v"])
def test_other_columns_beside(name, tmp_path):
    others = {
        "v.x": X[:, 0],
        "a": pa.array([{"b": 1, "c": {"d": [1.5], "e": "t"}}] * ROWS),
        "m": pa.array([[("k", 1)]] * ROWS, pa.map_(pa.string(), pa.int8())),
        "tag": pa.array(SITE).dictionary_encode(),
        name: listed(X),
        "last": pa.array([[[1.0]]] * ROWS),
    }
    pq.write_table(pa.table({"site": SITE, **others}), tmp_path / "x.parquet")
    assert_same(cf.summarize(tmp_path / "x.parquet", by="site", vectors=name))


def test_many_threads_give_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2**15)
    for save in (save_lists, save_columns):
        path, vectors = save(tmp_path / "x.parquet", X.astype(np.float32), row_group_size=230)
        found = []
        for threads in (1, 2, 5):
            monkeypatch.setattr(local, "thread_count", lambda threads=threads: threads)
            found.append(cf.summarize(path, by="site", vectors=vectors).moments)
        assert found[0] == found[1] == found[2]


def test_rows_may_be_read_after_their_part_is_done(tmp_path):
    for save in (save_lists, save_columns):
        path, vectors = save(tmp_path / "x.parquet")
        ((entry,),) = (list(part()) for part in open_file(path, ["site"], vectors).partitions)
        kernel.reduce_rows(entry.rows, None, 1)
        assert str(path) not in Path("/proc/self/maps").read_text()


def test_one_row_group_read_ahead(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "thread_count", lambda: 2)
    for save in (save_lists, save_columns):
        path, vectors = save(tmp_path / "x.parquet")
        assert_same(cf.summarize(path, by="site", vectors=vectors))


def test_readers_are_taken_over(tmp_path, monkeypatch):
    made, plain_init = [], pq.ParquetFile.__init__

    def counted(self, *arguments, **options):
        made.append(1)
        plain_init(self, *arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "__init__", counted)
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2**14)
    monkeypatch.setattr(local, "thread_count", lambda: 1)
    path, _ = save_columns(tmp_path / "x.parquet", row_group_size=100)
    assert_same(cf.summarize(path, by="site", vectors="d*"))
    assert len(made) <= 6  # to look at the file, for factors, and for strips, each after its footer


def test_a_column_that_ends_early(tmp_path):
    rows = rng.normal(size=(ROWS, columnwise.FEATURES_AT_ONCE + 1))
    plain = {"use_dictionary": ["site"], "compression": "none", "data_page_size": 9000, "write_batch_size": 100}
    path, _ = save_columns(tmp_path / "x.parquet", rows, **plain)
    at = pq.ParquetFile(path).metadata.row_group(0).column(columnwise.FEATURES_AT_ONCE + 1).data_page_offset
    with path.open("r+b") as file:
        file.seek(at + 1)
        file.write(b"\x02")  # a page of an index, which PyArrow passes over
    for vectors in ("d*", [f"d{k}" for k in range(columnwise.FEATURES_AT_ONCE + 1)]):
        with pytest.raises(cf.FileError, match=r"x\.parquet is damaged"):
            cf.summarize(path, by="site", vectors=vectors)
    with pytest.raises(cf.FileError, match=r"x\.parquet is damaged"):
        concatenate_chunks(list(open_file(path, ["site"], "d*").chunks()))


def test_a_file_that_another_one_took_the_place_of(tmp_path):
    for save in (save_lists, save_columns):
        path, vectors = save(tmp_path / "x.parquet")
        source = open_file(path, ["site"], vectors)
        save(tmp_path / "y.parquet", X[:2000])[0].replace(path)
        with pytest.raises(cf.FileError, match=r"x\.parquet has changed since it was opened: start again"):
            concatenate_chunks(list(source.chunks()))


def test_long_texts_take_their_memory_once(tmp_path):
    """Two labels of a megabyte each, over rows that would take 4 GB if each row held its own."""
    number = 4000
    texts = pa.DictionaryArray.from_arrays(np.arange(number, dtype=np.int32) % 2, pa.array(["a" * 10**6, "b" * 10**6]))
    pq.write_table(
        pa.table({"site": texts, "vector": listed(np.zeros((number, 1)))}), tmp_path / "x.parquet", store_schema=False
    )
    before = pa.default_memory_pool().max_memory()
    summary = cf.summarize(tmp_path / "x.parquet", by="site", vectors="vector")
    np.testing.assert_array_equal(summary.moments.count, number / 2)
    assert pa.default_memory_pool().max_memory() < max(before, 10**9)
