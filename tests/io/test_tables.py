"""The same rows in every table, stream or query give the same summary, and what cannot be read says so."""

import decimal
import pickle
import sys
from itertools import pairwise

import datasets as hf
import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.io.sources import arrow_streams, chunk, data_frames, sql, vector_columns
from crossfusion.io.summarization import reduce_sources

ROWS, DIM = 211, 5
rng = np.random.default_rng(5)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "Ç"], ROWS)
EXPECTED = cf.summarize(X, by={"site": SITE})
FIXED = pa.list_(pa.float64(), DIM)


def arrow(kind=FIXED):
    return pa.table({"n": np.arange(ROWS), "site": SITE, "v": pa.array(X.tolist(), kind)})


def wide():
    return pa.table({"site": SITE, **{f"d{k}": X[:, k] for k in range(DIM)}})


def chunked(table, *cuts):
    edges = [0, *cuts, ROWS]
    return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(edges)])


def tensor():
    kind = pa.fixed_shape_tensor(pa.float64(), [DIM])
    return arrow().set_column(2, "v", pa.ExtensionArray.from_storage(kind, arrow()["v"].combine_chunks()))


def text():
    return pa.table({"site": SITE, "v": [str(row) for row in X.tolist()]})


def objects(entries):
    return pd.DataFrame({"site": SITE, "v": pd.Series(entries, dtype=object)})


class Exported:
    """What any library may pass: an object that exports an Arrow stream, and nothing else."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def executed(query):
    connection = duckdb.connect()
    connection.register("t", arrow())
    return connection.execute(query)


T = arrow()  # DuckDB finds it by its name
TABLES = {
    "arrow list": lambda: arrow(pa.list_(pa.float64())),
    "arrow large list": lambda: arrow(pa.large_list(pa.float64())),
    "arrow list view": lambda: arrow(pa.list_view(pa.float64())),
    "arrow tensor": tensor,
    "arrow in chunks": lambda: chunked(arrow(), 1, 17, 17, 90),
    "arrow wide": lambda: (wide(), "d*"),
    "arrow wide in chunks": lambda: (chunked(wide(), 30, 31), "d*"),
    "arrow text": lambda: (text(), "v"),
    "arrow categories": lambda: arrow().set_column(1, "site", arrow()["site"].dictionary_encode()),
    "record batch": lambda: arrow().to_batches()[0],
    "pandas wide": lambda: (wide().to_pandas(), "d*"),
    "pandas arrays": lambda: objects(list(X)),
    "pandas lists": lambda: objects(X.tolist()),
    "pandas index": lambda: (wide().to_pandas().set_index("site"), "d*"),
    "pandas numbered columns": lambda: (
        pd.concat([pd.Series(SITE, name="site"), pd.DataFrame(X)], axis=1),
        list("01234"),
    ),
    "pandas beside odd objects": lambda: objects(list(X)).assign(odd=[object()] * ROWS),
    "pandas nullable": lambda: (wide().to_pandas().convert_dtypes(), "d*"),
    "polars list": lambda: pl.from_arrow(arrow(pa.list_(pa.float64()))),
    "polars array": lambda: pl.from_arrow(arrow()),
    "polars wide": lambda: (pl.from_arrow(wide()), "d*"),
    "polars beside objects": lambda: pl.from_arrow(arrow()).with_columns(odd=pl.Series([object()] * ROWS)),
    "polars lazy": lambda: pl.from_arrow(arrow()).lazy(),
    "polars lazy wide": lambda: (pl.from_arrow(wide()).lazy().filter(pl.col("d0") < 100), "d*"),
    "narwhals": lambda: nw.from_native(pl.from_arrow(arrow())),
    "narwhals lazy": lambda: nw.from_native(pl.from_arrow(arrow()).lazy()),
    "reader": lambda: chunked(arrow(), 3, 100).to_reader(),
    "reader of small batches": lambda: arrow().to_reader(max_chunksize=2),
    "data set": lambda: ds.dataset(arrow()),
    "scanner": lambda: ds.dataset(arrow()).scanner(),
    "duckdb relation": lambda: duckdb.sql("select site, v from T"),
    "duckdb relation of lists": lambda: duckdb.sql("select site, v::double[] as v from T"),
    "duckdb wide": lambda: (duckdb.sql("select site, v[1] as d0, v[2] as d1, v[3] d2, v[4] d3, v[5] d4 from T"), "d*"),
    "duckdb result": lambda: executed("select * from t"),
    "arrow stream": lambda: Exported(chunked(arrow(), 50)),
    "hugging face": lambda: hf.Dataset(chunked(arrow(), 3, 100)),
    "hugging face wide": lambda: (hf.Dataset(wide()).with_format("torch"), "d*"),
    "hugging face selected": lambda: hf.Dataset(arrow().take(np.arange(ROWS)[::-1])).select(range(ROWS)[::-1]),
    "hugging face stream": lambda: hf.Dataset(arrow()).to_iterable_dataset(),
}


def opened(table, by="site"):
    table, vectors = table if isinstance(table, tuple) else (table, None)
    return data_frames.from_table(table, [by], vectors)


def assert_same(summary, expected=EXPECTED, tolerance=1e-12):
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=tolerance, atol=1e-14)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=tolerance, atol=1e-14)


@pytest.mark.parametrize("size", [1000, 2**30], ids=["small blocks", "one block"])
@pytest.mark.parametrize("name", TABLES)
def test_every_table_gives_the_same_summary(name, size, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    table = TABLES[name]()
    source, vectors = table if isinstance(table, tuple) else (table, None)
    assert_same(cf.summarize(source, by="site", vectors=vectors))


@pytest.mark.parametrize("name", TABLES)
def test_blocks_are_of_the_size_asked_for_and_know_their_place(name, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2000)
    found = list(opened(TABLES[name]()).chunks())
    assert len(found) > 3
    assert max(one.rows.nbytes for one in found) <= 4000
    assert [one.first for one in found] == [0, *np.cumsum([len(one.rows) for one in found])[:-1]]
    np.testing.assert_array_equal(np.concatenate([one.rows for one in found]), X)


IN_MEMORY = [name for name in TABLES if name.startswith(("arrow", "pandas", "polars array")) and "stream" not in name]


@pytest.mark.parametrize("name", IN_MEMORY)
def test_what_is_in_memory_can_be_read_again_and_elsewhere(name, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2000)
    source = opened(TABLES[name]())
    assert source.rows == ROWS
    first = np.concatenate([one.rows for one in source.chunks()])
    again = [one for part in source.partitions for one in pickle.loads(pickle.dumps(part))()]
    np.testing.assert_array_equal(first, np.concatenate([one.rows for one in again]))


def address(rows):
    return rows.__array_interface__["data"][0]


@pytest.mark.parametrize("kind", [FIXED, pa.list_(pa.float64()), pa.large_list(pa.float64())])
@pytest.mark.parametrize("size", [1000, 2**30])
def test_lists_are_not_copied(kind, size, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    table = arrow(kind).slice(7, 150)
    start = table["v"].chunk(0).flatten().buffers()[1].address + 7 * DIM * 8
    blocks = list(opened(table).chunks())
    assert [address(one.rows) for one in blocks] == [start + one.first * DIM * 8 for one in blocks]
    assert opened(table).whole is (size == 2**30)


@pytest.mark.parametrize("kind", [FIXED, pa.list_(pa.float64()), pa.large_list(pa.float64())])
def test_slices_hold_their_own_rows(kind):
    gone = [None if k % 10 == 0 else row for k, row in enumerate(X.tolist())]
    table = pa.table({"site": SITE, "v": pa.array(gone, kind)}).slice(21, 100)
    (one,) = opened(table).chunks()
    expected = X[21:121].copy()
    expected[[k for k in range(100) if (k + 21) % 10 == 0]] = np.nan
    np.testing.assert_array_equal(one.rows, expected)


@pytest.mark.parametrize("size", [1, 400, 2**30])
@pytest.mark.parametrize("make", ["arrow", "pandas", "reader", "text"])
def test_missing_vectors_are_rows_that_are_not_finite(make, size, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    lists = [None if k in (0, 40, 41) else row for k, row in enumerate(X.tolist())]
    table = pa.table({"site": SITE, "v": pa.array(lists, FIXED)})
    words = pa.table({"site": SITE, "v": pa.array([None if row is None else str(row) for row in lists])})
    source = {"arrow": table, "pandas": table.to_pandas(), "reader": table.to_reader(7), "text": words}[make]
    with pytest.warns(cf.CrossfusionWarning, match=r"3 of 211 rows, the first in row 0, feature 0"):
        summary = cf.summarize(source, by="site", vectors="v", nan="drop")
    kept = np.array([row is not None for row in lists])
    assert_same(summary, cf.summarize(X[kept], by={"site": SITE[kept]}))


def test_missing_entries_and_missing_numbers_are_nan():
    lists = pa.table({"s": ["a", "a"], "v": [[1.0, None], [2.0, 3.0]]})
    with pytest.raises(cf.NonFiniteError, match="row 0, feature 1"):
        cf.summarize(lists, by="s")
    columns = pa.table({"s": ["a", "a"], "p": [1, 2], "q": [None, 1]})
    with pytest.raises(cf.NonFiniteError, match="row 0, feature 1"):
        cf.summarize(columns, by="s", vectors=["p", "q"])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64", "bool"])
@pytest.mark.parametrize("form", ["lists", "columns", "polars", "pandas"])
def test_types_of_numbers_are_exact(dtype, form):
    values = (X > 0) if dtype == "bool" else np.abs(X * 10).astype(dtype)
    expected = cf.summarize(values.astype(float), by={"site": SITE})
    if form == "columns":
        table, vectors = pa.table({"site": SITE, **{f"d{k}": values[:, k] for k in range(DIM)}}), "d*"
    else:
        flat = pa.array(values.reshape(-1))
        table, vectors = pa.table({"site": SITE, "v": pa.FixedSizeListArray.from_arrays(flat, DIM)}), "v"
    source = {"polars": pl.from_arrow, "pandas": lambda t: objects(list(values))}.get(form, lambda t: t)(table)
    assert_same(cf.summarize(source, by="site", vectors=vectors), expected)


@pytest.mark.parametrize(
    ("make", "again"),
    [
        (lambda: arrow().to_reader(), "only once"),
        (lambda: executed("select * from t"), "only once"),
        (lambda: ds.Scanner.from_batches(arrow().to_reader()), "cannot be read"),
        (lambda: Exported(Exported(arrow().to_reader())), "cannot be read|no rows"),
    ],
)
def test_streams_that_give_their_rows_once_say_so(make, again):
    source = opened(make())
    assert source.rows is None
    assert_same(reduce_sources([source]))
    with pytest.raises(cf.InputError, match=again):
        reduce_sources([source])


@pytest.mark.parametrize("name", ["data set", "scanner", "polars lazy", "duckdb relation", "arrow stream"])
def test_other_streams_can_be_read_again(name):
    source = opened(TABLES[name]())
    assert_same(reduce_sources([source]))
    assert_same(reduce_sources([source]))


def test_lazy_sources_compute_only_what_is_needed():
    def fail(_):
        raise AssertionError

    frame = pl.from_arrow(arrow()).lazy().with_columns(slow=pl.col("n").map_batches(fail, return_dtype=pl.Int64))
    assert_same(cf.summarize(frame, by="site"))
    assert_same(cf.summarize(duckdb.sql("select site, v, error('no')::int as slow from T"), by="site"))


def test_frames_of_other_libraries_go_through_narwhals():
    dask = pytest.importorskip("dask.dataframe").from_pandas(wide().to_pandas(), npartitions=2)
    for frame in (dask, pl.from_arrow(wide()), wide()):
        stream = arrow_streams.open_narwhals(frame)
        assert_same(reduce_sources([arrow_streams.from_stream(stream, ["site"], "d*", "the frame")]))


class Lookalike:
    columns = ("site", "v")


def test_what_is_no_table_is_named(refuses):
    with refuses("Lookalike is not a table that can be read"):
        cf.summarize(Lookalike(), by="site")
    with refuses(r"ndarray has no columns to find"):
        cf.summarize(X, by="site")
    with refuses("DuckDB connection has no result"):
        cf.summarize(duckdb.connect(), by="site")


def test_narwhals_loads_only_when_nothing_else_fits(python):
    code = """
import sys, pyarrow as pa, pandas as pd, crossfusion as cf
table = pa.table({"s": ["a", "b"], "v": [[1.0], [2.0]]})
for source in (table, table.to_pandas(), table.to_reader()):
    cf.summarize(source, by="s")
print([name for name in ("narwhals", "duckdb", "polars") if name in sys.modules])
"""
    assert python(code) == "[]"


def test_without_narwhals_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(cf.MissingDependencyError, match=r"Lookalike .* needs narwhals.*crossfusion\[frames\]"):
        cf.summarize(Lookalike(), by="site")


RAGGED = pa.table({"site": ["a"] * 6, "v": [[1.0, 2.0]] * 4 + [[1.0]] * 2})
DECIMALS = pa.array([[decimal.Decimal("1.5")]], pa.list_(pa.decimal128(5, 2)))


@pytest.mark.parametrize(
    ("table", "vectors", "message"),
    [
        (RAGGED, None, "column 'v' of the table holds vectors of unequal length, first in row 4"),
        (RAGGED.to_pandas(), None, "unequal length, first in row 4"),
        (RAGGED.slice(1), None, "unequal length, first in row 3"),
        (pa.table({"site": ["a"], "v": DECIMALS}), None, r"decimals \(list.*cast it to float"),
        (pa.table({"site": ["a"], "v": DECIMALS}), "v", r"decimals \(list.*cast it to float"),
        (pa.table({"site": ["a"], "v": [decimal.Decimal("1.5")]}), "v", "decimals"),
        (pa.table({"site": ["a"], "v": [["x"]]}), None, "holds list<.*>, not numbers"),
        (pa.table({"site": ["a"], "v": [[[1.0]]]}), "v", "not numbers"),
        (pa.table({"site": ["a", "b"], "v": ["[1, 2]", "[1 2]"]}), "v", r"not a vector .* row 1 \('\[1 2\]'\)"),
        (pa.table({"site": ["a", "b"], "v": ["[1, 2]", "1, 2"]}), "v", "not a vector .* row 1"),
        (pa.table({"site": ["a", "b"], "v": ["[1, 2]", "[1, ]"]}), "v", "not a vector .* row 1"),
        (pa.table({"site": ["a", "b"], "v": ["[1, 2]", "[]"]}), "v", "not a vector .* row 1"),
        (pa.table({"site": ["a", None, "b"], "v": ["[1]", None, "[x]"]}), "v", "not a vector .* row 2"),
        (pa.table({"site": ["a", "b"], "v": ["[1, 2]", "[1]"]}), "v", "unequal length, first in row 1"),
        (objects([*X[:-1].tolist(), "x"]), "v", "column 'v' of the table cannot be read"),
        (pa.table({"site": ["a"], "x": [1.0]}), None, "no vector column"),
    ],
)
def test_bad_tables_get_one_sentence(table, vectors, message, refuses):
    with refuses(message):
        cf.summarize(table, by="site", vectors=vectors)


@pytest.mark.parametrize("size", [1, 2**30])
def test_unequal_vectors_in_a_stream_are_found_across_batches(size, monkeypatch, refuses):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    with refuses("unequal length.*row 4"):
        cf.summarize(RAGGED.to_reader(2), by="site")
    gone = pa.table({"site": ["a"] * 4, "v": pa.array([None, None, [1.0, 2.0], [2.0, 1.0]])})
    with pytest.warns(cf.CrossfusionWarning, match="2 of 4"):
        assert cf.summarize(gone.to_reader(1), by="site", nan="drop").dim == 2


def test_text_vectors_are_exact_and_only_read_when_named(refuses):
    words = pa.table({"site": ["a", "b"], "v": [" [ 1e-3 ,-2.5,+3]", "[nan,inf,0.1]"]})
    (one,) = data_frames.from_table(words, ["site"], "v").chunks()
    np.testing.assert_array_equal(one.rows, [[1e-3, -2.5, 3], [np.nan, np.inf, 0.1]])
    with refuses("no vector column"):
        cf.summarize(words, by="site")
    assert vector_columns.find_vectors(words.schema, ["site"], "v", "the table") == ["v"]


def test_text_files_may_hold_vectors_as_text(tmp_path, refuses):
    path = tmp_path / "x.csv"
    text().to_pandas().to_csv(path, index=False)
    assert_same(cf.summarize(path, by="site", vectors="v"))
    path.write_text('site,v\na,"[1, 2]"\nb,"[1; 2]"\n')
    with refuses("column 'v' of .*x.csv holds text that is not a vector .* row 1"):
        cf.summarize(path, by="site", vectors="v")


# --- queries ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "it's.parquet"
    pq.write_table(arrow(), path)
    return str(path).replace("'", "''")


@pytest.mark.parametrize("size", [1, 2**30])
@pytest.mark.parametrize(
    "query",
    [
        "select * from '{}'",
        "from '{}'",
        "select site, v::float8[] as v from '{}'; ",
        "create temp table t as from '{}'; set threads = 1; select site, v from t",
        "with t as (from '{}') select site, v, error('not needed') as \"a \"\"b\" from t",
        "values (1); select site, v::varchar as v from '{}'",
    ],
)
def test_queries_give_the_same_summary(query, size, parquet, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    source = sql.from_sql(query.format(parquet), ["site"], "v")
    assert source.rows is None
    assert_same(reduce_sources([source]), tolerance=1e-12)
    assert_same(reduce_sources([source]))
    (part,) = pickle.loads(pickle.dumps(source.partitions))
    np.testing.assert_array_equal(np.concatenate([one.rows for one in part()]), X)


def test_statements_before_the_last_run_once(tmp_path, parquet):
    database = tmp_path / "d.duckdb"
    prepare = f"attach '{database}' as d; create table if not exists d.log (n int); insert into d.log values (1); "
    reduce_sources([sql.from_sql(prepare + f"select * from '{parquet}'", ["site"])])
    with duckdb.connect(str(database)) as connection:
        assert connection.sql("select count(*) from log").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "is not a query"),
        ("select '\udcff'", "is not UTF-8"),
        (" ; ", "gives no rows"),
        ("select 1; create table t (a int)", "gives no rows"),
        ("selec 1", "cannot be run by DuckDB .Parser Error"),
        ("select * from nowhere", r"cannot be run by DuckDB \(Catalog Error: Table with name nowhere does not exist"),
        ("select 1 as a, [1.5::float] as v", "the query has no column 'site'"),
        ("select 'a' as site, [1.5] as v", "column 'v' of the query holds decimals"),
        ("select 'a' as site, [error('broken')::float] as v from range(9)", r"cannot be read \(.*broken"),
        ("select 'a' as site, [1::float] as v where false", "the query has no rows"),
        ("select * from X", "Table with name X does not exist"),
        ("select * from 's3://bucket/x.parquet'", "httpfs"),
    ],
)
def test_bad_queries_get_one_sentence(query, message, refuses):
    with refuses(message):
        reduce_sources([sql.from_sql(query, ["site"])])


def test_without_duckdb_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(cf.MissingDependencyError, match=r"crossfusion\[sql\]"):
        sql.from_sql("select 1", [])


def test_memory_of_a_query_is_that_of_its_blocks(python):
    code = """
import threading, time
from crossfusion.io.sources import chunk, sql
from crossfusion.io.summarization import reduce_sources

def anonymous():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) // 1024

chunk.CHUNK_BYTES = 2**20
vectors = "list_resize([range::float], 1024, 1.5)"
def ask(rows):
    peak = [0]
    def progress(_):
        peak[0] = max(peak[0], anonymous())
    query = f"select range % 3 as s, {vectors} as v from range({rows})"
    reduce_sources([sql.from_sql(query, ["s"])], progress=progress)
    return peak[0]
few = ask(10_000)
print(ask(80_000) - few)
"""
    if sys.platform == "linux":
        assert int(python(code)) < 120  # of 320 MB
