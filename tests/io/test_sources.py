"""The same rows in every storage give the same summary, and bad files give one clear sentence."""

import contextlib
import datetime as dt
import gc
import gzip
import io
import pickle
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion._base import lazy_rows
from crossfusion._base.lazy_rows import LazyRows
from crossfusion.io import reduction, sources
from crossfusion.io.sources import arrays, chunk, csv, npy
from crossfusion.io.sources import paths as places
from crossfusion.io.summarization import reduce_sources
from tests.io import test_stores

ROWS, DIM = 257, 6
rng = np.random.default_rng(3)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "Ç"], ROWS)
DAY = [dt.date(2024, 1, 1 + int(k)) for k in rng.integers(0, 3, ROWS)]
BY = ["site", "day"]
EXPECTED = cf.summarize(X, by={"site": SITE, "day": DAY})


def wide_table():
    columns = {f"dim_{k}": X[:, k] for k in range(DIM)}
    return pa.table({"site": SITE, "note": ["-"] * ROWS, **columns, "day": pa.array(DAY)})


def list_table(kind):
    lists = pa.array(X.tolist(), kind)
    return pa.table({"site": SITE, "day": pa.array(DAY), "embedding": lists, "size": np.arange(ROWS)})


def save_npz(path):
    np.savez(path, x=X, site=SITE, day=np.array(DAY, "datetime64[D]"))


def save_columns(path):
    """Rows that lie by columns, as those of a pandas table often do."""
    np.savez_compressed(
        path, x=np.asfortranarray(X), site=SITE, day=np.array(DAY, "datetime64[D]"), y=np.array({"a": 1})
    )


def save_text(path):
    """The table as text, packed as the ending says."""
    table = wide_table().drop_columns(["note"])
    with pa.CompressedOutputStream(path, path.suffix[1:].replace("gz", "gzip").replace("zst", "zstd")) as sink:
        pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in path.name else ","))


def save_arrow(path, table=None, opened=pa.ipc.new_file, batch=60, **options):
    table = list_table(pa.list_(pa.float64(), DIM)) if table is None else table
    with opened(str(path), table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, batch)


STORAGES = {
    "npz": ("x.npz", save_npz, None),
    "npz-columns": ("x.npz", save_columns, "x"),
    **{f"text{ending}": (f"x{ending}", save_text, None) for ending in csv.ENDINGS if ending.count(".") == 2},
    "arrow": ("x.arrow", save_arrow, None),
    "arrow-wide": ("x.ipc", lambda path: save_arrow(path, wide_table()), "dim_*"),
    "arrow-packed": ("x.arrow", lambda path: save_arrow(path, compression="zstd"), None),
    "arrow-stream": ("x.arrow", lambda path: save_arrow(path, opened=pa.ipc.new_stream), None),
    "feather": ("x.feather", lambda path: feather.write_feather(list_table(pa.large_list(pa.float64())), path), None),
    "csv": ("x.csv", lambda path: pyarrow.csv.write_csv(wide_table().drop_columns(["note"]), path), None),
    "tsv": ("x.tsv", lambda path: wide_table().to_pandas().to_csv(path, sep="\t", index=False), "dim_*"),
    "parquet-list": ("x.parquet", lambda path: pq.write_table(list_table(pa.list_(pa.float64())), path), None),
    "parquet-large-list": (
        "x.parquet",
        lambda path: pq.write_table(list_table(pa.large_list(pa.float64())), path),
        "embedding",
    ),
    "parquet-fixed": (
        "x.parquet",
        lambda path: pq.write_table(list_table(pa.list_(pa.float64(), DIM)), path, row_group_size=50),
        None,
    ),
    "parquet-wide": ("x.parquet", lambda path: pq.write_table(wide_table(), path), "dim_*"),
    "parquet-named": ("x.pq", lambda path: pq.write_table(wide_table(), path), [f"dim_{k}" for k in range(DIM)]),
}
TABLES = {
    "arrow": lambda: (list_table(pa.list_(pa.float64(), DIM)), None),
    "pandas": lambda: (wide_table().to_pandas().astype({"site": "category"}), "dim_*"),
    "polars": lambda: (pl.from_arrow(list_table(pa.list_(pa.float64()))), None),
}


def assert_same(summary):
    assert summary.keys.to_pylist() == EXPECTED.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, EXPECTED.moments.count)
    np.testing.assert_allclose(summary.moments.mean, EXPECTED.moments.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(summary.moments.sumsq, EXPECTED.moments.sumsq, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("size", [1, 2**30], ids=["small blocks", "one block"])
def test_every_file_gives_the_same_summary(name, size, tmp_path, monkeypatch):
    file, save, vectors = STORAGES[name]
    save(tmp_path / file)
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    assert_same(cf.summarize(tmp_path / file, by=BY, vectors=vectors))


@pytest.mark.parametrize("name", STORAGES)
def test_parts_of_files_can_be_pickled_and_read_again(name, tmp_path, monkeypatch):
    file, save, vectors = STORAGES[name]
    save(tmp_path / file)
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2000)
    source = sources.open_file(tmp_path / file, BY, vectors)
    again = pickle.loads(pickle.dumps(source.partitions))
    for part, copy in zip(source.partitions, again, strict=True):
        for one, other in zip(part(), copy(), strict=True):
            np.testing.assert_array_equal(one.rows, other.rows)
            assert one.keys.equals(other.keys)
            assert one.first == other.first
    rows = np.concatenate([entry.rows for entry in source.chunks()])
    np.testing.assert_allclose(rows, X, rtol=1e-15)
    assert [entry.first for entry in source.chunks()] == [
        0, *np.cumsum([len(entry.rows) for entry in source.chunks()])[:-1]
    ]  # fmt: skip
    assert source.rows in (None, ROWS)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", ">f4", "float16", "int8", "bool"])
def test_npy_files_are_read_in_parts(order, dtype, tmp_path, monkeypatch):
    values = np.asarray(X * 10, dtype, order=order)
    np.save(tmp_path / "x.npy", values)
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 200)
    source = sources.open_file(tmp_path / "x.npy", [])
    assert len(source.partitions) > 2
    for parts in (source.partitions, pickle.loads(pickle.dumps(source.partitions))):
        np.testing.assert_array_equal(np.concatenate([entry.rows for part in parts for entry in part()]), values)


def test_large_row_groups_and_batches_are_read_a_block_at_a_time(tmp_path, monkeypatch):
    table = list_table(pa.list_(pa.float64(), DIM))
    pq.write_table(table, tmp_path / "x.parquet")
    save_arrow(tmp_path / "x.arrow", table, batch=ROWS)
    np.savez_compressed(tmp_path / "x.npz", x=X, site=SITE, day=np.array(DAY, "datetime64[D]"))
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 20 * DIM * 8)
    monkeypatch.setattr(lazy_rows, "CACHE_BYTES", 20 * DIM * 8)
    for name in ("x.parquet", "x.arrow", "x.npz"):
        rows = [entry.rows for entry in sources.open_file(tmp_path / name, BY).chunks()]
        sizes = [part.nbytes for entry in rows for part in (entry.chunks() if isinstance(entry, LazyRows) else [entry])]
        assert max(sizes) <= chunk.CHUNK_BYTES, name
        assert len(sizes) > 10


def test_row_groups_make_parts_of_about_a_block(tmp_path, monkeypatch):
    pq.write_table(list_table(pa.list_(pa.float64())), tmp_path / "x.parquet", row_group_size=10)
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 40 * DIM * 8)
    source = sources.open_file(tmp_path / "x.parquet", BY)
    sizes = [sum(len(entry.rows) for entry in part()) for part in source.partitions]
    assert sum(sizes) == ROWS
    assert set(sizes[:-1]) <= {40, 50}


def test_factor_values_of_text_are_not_kept_but_for_the_distinct_ones(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,v\n" + "".join(f'{k % 7},"x ""{k % 3}""",1.5\n' for k in range(50_000)))
    tracemalloc.start()
    source = sources.open_file(path, ["a", "b"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6
    assert source.rows == 50_000
    keys = next(source.chunks()).keys
    assert [str(kind) for kind in keys.schema.types] == ["int64", "string"]
    assert keys["b"][2].as_py() == 'x "2"'


@pytest.mark.parametrize("name", TABLES)
def test_every_table_in_memory_gives_the_same_summary(name):
    table, vectors = TABLES[name]()
    assert_same(cf.summarize(table, by=BY, vectors=vectors))


def test_several_files_add_up(tmp_path):
    table = list_table(pa.list_(pa.float64(), DIM))
    paths = [tmp_path / "a.parquet", str(tmp_path / "b.parquet")]
    pq.write_table(table.slice(0, 100), paths[0])
    pq.write_table(table.slice(100), paths[1])
    assert_same(cf.summarize(paths, by=BY))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_narrow_types_in_parquet_are_exact(dtype, tmp_path):
    values = (X * 10).astype(dtype)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIM)
    pq.write_table(pa.table({"site": SITE, "v": lists}), tmp_path / "x.parquet")
    summary = cf.summarize(tmp_path / "x.parquet", by="site")
    exact = cf.summarize(values.astype(float), by={"site": SITE})
    np.testing.assert_allclose(summary.moments.mean, exact.moments.mean, rtol=1e-12, atol=1e-14)
    assert summary.dtype == dtype


def test_pieces_of_many_blocks_merge_to_the_whole(monkeypatch):
    monkeypatch.setattr(reduction, "MAX_PENDING_BYTES", 1)
    cuts = [slice(k, k + 10) for k in range(0, ROWS, 10)]
    pieces = [arrays.from_rows(X[cut], {"site": SITE[cut], "day": DAY[cut]}) for cut in cuts]
    seen: list[int] = []
    assert_same(reduce_sources(pieces, progress=seen.append))
    assert sum(seen) == ROWS


def test_missing_vectors_are_not_finite_rows(tmp_path):
    lists = pa.array([None if k in (4, 9) else row for k, row in enumerate(X.tolist())], pa.list_(pa.float64(), DIM))
    try:
        pq.write_table(pa.table({"site": SITE, "v": lists}), tmp_path / "x.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip("older versions of PyArrow do not write these")
    with pytest.raises(cf.NonFiniteError, match=r"2 of 257 rows, the first in row 4, feature 0"):
        cf.summarize(tmp_path / "x.parquet", by="site")
    with pytest.warns(cf.CrossfusionWarning, match="2 of 257"):
        summary = cf.summarize(tmp_path / "x.parquet", by="site", nan="drop")
    assert summary.dropped == 2
    assert summary.moments.count.sum() == ROWS - 2


def test_rows_that_are_not_finite_are_counted_over_all_blocks(tmp_path, monkeypatch):
    values = X.copy()
    values[[70, 200], [1, 2]] = np.nan
    pq.write_table(pa.table({"site": SITE, "v": values.tolist()}), tmp_path / "x.parquet", row_group_size=50)
    with pytest.warns(cf.CrossfusionWarning, match=r"2 of 257 rows, the first in row 70, feature 1"):
        cf.summarize(tmp_path / "x.parquet", by="site", nan="drop")
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 1)
    with pytest.raises(cf.NonFiniteError, match=r"1 of the first \d\d+ rows, the first in row 70, feature 1"):
        cf.summarize(tmp_path / "x.parquet", by="site")  # does not read on


def test_csv_factor_types_come_from_the_whole_file(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    lines = ["batch,v0,v1", *(f"{k % 3},{k}.5,1" for k in range(4000)), "late,0.5,2"]
    path.write_text("\n".join(lines))
    summary = cf.summarize(path, by="batch")
    assert summary.keys.column("batch").to_pylist() == ["0", "1", "2", "late"]
    assert summary.dim == 2


def test_csv_integers_dates_booleans_and_missing_values_keep_their_types(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("n,d,b,s,v\n1,2024-01-05,true,x,0.5\n2,2024-01-06,false,,1.5\n")
    keys = cf.summarize(path, by=["n", "d", "b", "s"]).keys.to_pylist()
    assert keys == [
        {"n": 1, "d": dt.date(2024, 1, 5), "b": True, "s": "x"},
        {"n": 2, "d": dt.date(2024, 1, 6), "b": False, "s": None},
    ]


def test_csv_columns_that_are_not_numbers_throughout_are_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("site,x,y\nA,1,2\nA,2,5\nB,3,foo\nB,4,1\n")
    with pytest.warns(cf.CrossfusionWarning, match="y left out of the vectors"):
        assert cf.summarize(path, by="site").dim == 1
    with pytest.raises(cf.InputError, match=r"'y' .* not numbers"):
        cf.summarize(path, by="site", vectors=["x", "y"])


def test_csv_numbers_with_leading_zeros_stay_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("pid,n,x\n001,1,1\n1,2,2\n01,3,3\n")
    keys = cf.summarize(path, by=["pid", "n"]).keys
    assert keys.to_pylist() == [{"pid": "001", "n": 1}, {"pid": "01", "n": 3}, {"pid": "1", "n": 2}]


def test_columns_of_vectors_are_taken_in_the_order_named():
    table = pa.table({"site": ["a", "b"], "x[0]": [1.0, 2.0], "x0": [3.0, 4.0]})
    assert cf.summarize(table, by="site", vectors=["x0", "x[0]"]).moments.mean.tolist() == [[3, 1], [4, 2]]
    assert cf.summarize(table, by="site", vectors="x[0]").dim == 1
    assert cf.summarize(table, by="site", vectors="x*").dim == 2


def test_polars_categories_are_text():
    frame = pl.DataFrame({"site": ["a", "b"], "x": [1.0, 2.0]}, schema={"site": pl.Categorical, "x": pl.Float64})
    assert cf.summarize(frame, by="site", vectors="x").keys["site"].to_pylist() == ["a", "b"]


def test_columns_of_several_files_go_together_by_name(tmp_path):
    paths = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for path, text in zip(paths, ("s,p,q\nA,1,2\n", "s,q,p\nB,2,1\n", "s,p,r\nB,2,1\n"), strict=True):
        path.write_text(text)
    assert cf.summarize(paths[:2], by="s").moments.mean.tolist() == [[1, 2], [1, 2]]
    with pytest.raises(cf.InputError, match=r"c.csv does not have the features of .*a.csv: it lacks 'q' and has 'r'"):
        cf.summarize(paths, by="s")


def test_groups_without_a_finite_row_are_named():
    rows, sites = [[1.0], [np.nan], [2.0]], ["A", "B", "C"]
    for ask in (
        lambda: cf.summarize(rows, by={"site": sites}, nan="drop"),
        lambda: cf.cfd(rows, labels=sites, nan="drop"),
    ):
        with pytest.warns(cf.CrossfusionWarning) as caught:
            ask()
        assert any("without a finite row are left out (1): B" in str(warning.message) for warning in caught)


def test_a_summary_is_not_taken_for_rows(tmp_path):
    EXPECTED.write(tmp_path / "s.parquet")
    with pytest.raises(cf.InputError, match="is a summary already"):
        cf.summarize(tmp_path / "s.parquet", by="site", vectors="mean")


def broken(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def parquet_bytes(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def npy_bytes(array):
    sink = io.BytesIO()
    np.save(sink, array)
    return sink.getvalue()


def arrow_bytes(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def zip_bytes(arrays):
    """An archive of arrays, or of bytes that pretend to be one."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            content = array if isinstance(array, bytes) else npy_bytes(array)
            archive.writestr(f"{name}.npy", content)
    return sink.getvalue()


NO_FEATURES = pa.table({"site": ["a"], "v": pa.array([[]], pa.list_(pa.float64()))})
RAGGED = pa.table({"site": ["a", "b", "c"], "v": [[1.0, 2.0], [1.0, 2.0], [1.0]]})
BAD_FILES = {
    "no such ending": ("x.txt", b"", "ending"),
    "empty npz": ("x.npz", b"", "not a readable .npz"),
    "pickled npz": ("x.npz", npy_bytes(np.zeros(3)), "not a readable .npz"),
    "empty csv": ("x.csv", b"", "cannot be read"),
    "csv without rows": ("x.csv", b"site,a\n", "no rows|no numeric"),
    "csv with text in a vector": ("x.csv", b"site,v0\na,1\nb,x\n", "no numeric|no column"),
    "csv of ragged lines": ("x.csv", b"site,v0\na,1\nb,1,2\n", "cannot be read"),
    "csv that is not text": ("x.csv", b"site,v0\n\xff\xfe,1\n", "not UTF-8"),
    "csv without the column": ("x.csv", b"place,v0\na,1\n", "no column 'site'"),
    "not parquet": ("x.parquet", b"PAR1 but not really PAR1", "not a readable Parquet"),
    "truncated parquet": ("x.parquet", parquet_bytes(wide_table())[:-100], "not a readable Parquet"),
    "parquet without vectors": ("x.parquet", parquet_bytes(wide_table()), "no vector column"),
    "ragged parquet": ("x.parquet", parquet_bytes(RAGGED), "unequal length, first in row 2"),
    "vectors of no features": ("x.parquet", parquet_bytes(NO_FEATURES), "features"),
    "parquet without rows": ("x.parquet", parquet_bytes(RAGGED.slice(0, 0)), "no rows"),
    "not arrow": ("x.arrow", b"ARROW1 but not really ARROW1", "not a readable Arrow"),
    "empty arrow": ("x.feather", b"", "not a readable Arrow"),
    "truncated arrow": ("x.arrow", arrow_bytes(wide_table())[:-50], "not a readable Arrow"),
    "old feather": ("x.feather", b"FEA1" + bytes(100), "first version"),
    "arrow without rows": ("x.arrow", arrow_bytes(RAGGED.slice(0, 0)), "no rows"),
    "ragged arrow": ("x.arrow", arrow_bytes(RAGGED), "unequal length, first in row 2"),
    "not packed": ("x.csv.gz", b"site,v0\na,1\n", "cannot be read"),
    "cut off while packed": ("x.csv.gz", gzip.compress(b"site,v0\n" + b"a,1\nb,2\n" * 99)[:-20], "cannot be read"),
    "npz of a list": ("x.npz", zip_bytes({"x": np.ones((2, 3)), "site": np.arange(3)}), "3 entries for 2 rows"),
    "npz of objects": ("x.npz", zip_bytes({"x": np.array([[{}]]), "site": np.arange(1)}), "pickled objects"),
    "npz that says more than it holds": (
        "x.npz",
        zip_bytes({"x": npy_bytes(np.ones((3, 2))).replace(b"(3, 2)", b"(9, 2)"), "site": np.arange(9)}),
        "its shape needs 272 bytes, but it holds 176",
    ),
    "two vector columns": ("x.parquet", parquet_bytes(RAGGED.append_column("w", RAGGED["v"])), "2 vector columns"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files_get_one_clear_sentence(name, tmp_path):
    file, content, message = BAD_FILES[name]
    with pytest.raises(cf.CrossfusionError, match=message) as caught:
        cf.summarize(broken(tmp_path, file, content), by="site")
    assert "\n" not in str(caught.value)


def test_damage_inside_a_parquet_file_is_an_error_of_ours(tmp_path):
    content = parquet_bytes(list_table(pa.list_(pa.float64(), DIM)))
    for position in range(10, len(content) - 10, 97):
        flipped = content[:position] + bytes([content[position] ^ 0x55]) + content[position + 1 :]
        with contextlib.suppress(cf.CrossfusionError):
            cf.summarize(broken(tmp_path, "x.parquet", flipped), by="site", vectors="embedding")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": ["site", "site"]}, "twice"),
        ({"by": []}, "empty"),
        ({"by": "site", "vectors": "nothing_*"}, "no column for vectors"),
        ({"by": "site", "vectors": "embeding"}, "did you mean 'embedding'"),
        ({"by": "site", "vectors": "site*"}, "no column for vectors"),
        ({"by": "day", "vectors": "*"}, "not numbers"),
        ({"by": "embedding"}, "no vector column"),
        ({"by": "site", "vectors": ["embedding", "nothing"]}, "no column 'nothing'"),
        ({"by": "site", "vectors": ["site", "embedding"]}, "in vectors and is a factor too"),
        ({"by": "site", "vectors": [0, 1]}, "vectors="),
        ({"by": "site", "nan": "ignore"}, "choose 'raise' or 'drop'"),
        ({"by": "site", "min_count": -1}, "min_count"),
    ],
)
def test_bad_arguments_name_themselves(arguments, message):
    with pytest.raises(cf.InputError, match=message):
        cf.summarize(list_table(pa.list_(pa.float64(), DIM)), **arguments)


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        ("1.1 1.10", ["1.1", "1.10"]),
        ("1E5 100000", ["100000", "1E5"]),
        ("7 7.0", ["7", "7.0"]),
        ("0.50 1.00", ["0.50", "1.00"]),
        ("007 7.5", ["007", "7.5"]),
        ("0.5 1.0", [0.5, 1.0]),
        ("1 2.5", [1.0, 2.5]),
        ("-3 10", [-3, 10]),
    ],
)
def test_labels_in_text_are_numbers_only_if_they_read_back(written, labels, tmp_path):
    (tmp_path / "x.csv").write_text("\n".join(["version,v", *(f"{label},1.5" for label in written.split())]))
    assert cf.summarize(tmp_path / "x.csv", by="version", vectors="v").keys["version"].to_pylist() == labels


def test_a_factor_that_is_missing_throughout_a_text_file_is_one_group(tmp_path):
    (tmp_path / "x.csv").write_text("site,label,v\nA,,1.5\nB,,2.5\n")
    found = cf.summarize(tmp_path / "x.csv", by=["site", "label"], vectors="v")
    assert found.keys.to_pylist() == [{"site": "A", "label": None}, {"site": "B", "label": None}]


def test_factor_names_are_strings():
    with pytest.raises(cf.InputError, match="by="):
        cf.summarize(X, by={1: SITE})  # type: ignore[dict-item]


def test_factor_that_is_a_list_is_refused():
    table = list_table(pa.list_(pa.float64(), DIM)).append_column("tags", pa.array([["x"]] * ROWS))
    with pytest.raises(cf.InputError, match="one plain value per row"):
        cf.summarize(table, by="tags")


def test_npy_files_have_no_columns(tmp_path):
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(cf.InputError, match="without columns"):
        cf.summarize(tmp_path / "x.npy", by="site")


def test_files_of_different_width_do_not_mix(tmp_path):
    for name, dim in (("a.npz", 2), ("b.npz", 3)):
        np.savez(tmp_path / name, x=np.ones((4, dim)), site=np.arange(4))
    with pytest.raises(cf.InputError, match="features differ"):
        cf.summarize([tmp_path / "a.npz", tmp_path / "b.npz"], by="site")


def test_every_ending_has_a_reader_that_is_tested():
    known = [*STORAGES.values(), *test_stores.STORAGES.values()]
    tested = {places.find_ending(name) for name, _, _ in known} | {".npy"}
    assert tested == set(sources.READERS)
    assert csv.from_csv in sources.READERS.values()


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(cf.FileError, match="not a readable"):
        sources.open_file(tmp_path / "x.npy", [])
    frame = pd.DataFrame({"site": ["a"], "v": [1.0]})
    frame.to_pickle(tmp_path / "x.pkl")
    with pytest.raises(cf.FileError, match="ending"):
        cf.summarize(tmp_path / "x.pkl", by="site")


def test_headers_are_read_by_one_thread_at_a_time():
    """Parsers of Python 3.11 that are interrupted by another one, as when memory is collected, fail."""
    written = io.BytesIO()
    np.save(written, X)
    usual, pause = gc.get_threshold(), lambda *_: time.sleep(0)
    gc.set_threshold(20)
    gc.callbacks.append(pause)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: npy.read_header(io.BytesIO(written.getvalue())).shape, range(4000)))
    finally:
        gc.callbacks.remove(pause)
        gc.set_threshold(*usual)
    assert set(found) == {X.shape}
