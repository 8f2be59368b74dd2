"""The same rows give the same summary in every storage and with every engine, whatever the blocks they are read in."""

import datetime as dt
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import anndata as ad
import dask
import dask.array as da
import dask.dataframe as dd
import duckdb
import fsspec
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pyspark
import pytest
import scipy.sparse as sp
import torch
import zarr
from distributed import Client, LocalCluster

import crossfusion as cf
from crossfusion.cli import main
from crossfusion.cli.row_reader import RowReader
from crossfusion.io.engines import local
from crossfusion.io.sources import chunk
from tests.helpers.spark_session import frame_of, started
from tests.io import test_stores

ROWS, DIM = 600, 6
BY = ["site", "day", "plate"]
rng = np.random.default_rng(7)
DRAWN = rng.normal(size=(ROWS, DIM)) * [1, 2, 3, 4, 5, 6]
SITES = np.array(["A", "Köln", "東京", None], object)
DAYS = np.array([dt.date(2023, 12, 31), dt.date(2024, 2, 29)])
KEYS = pa.table(
    {
        "site": pa.array(rng.choice(SITES, ROWS).tolist()),
        "day": pa.array(rng.choice(DAYS, ROWS).tolist()),
        "plate": rng.integers(-1, 2, ROWS),
    }
)
DATES_AS_TEXT = KEYS.set_column(1, "day", KEYS["day"].cast(pa.string()))
NOTHING_MISSING = KEYS.set_column(0, "site", pc.fill_null(KEYS["site"], ""))
PLAIN = DATES_AS_TEXT.set_column(0, "site", NOTHING_MISSING["site"])
# What storages keep of the factors: some have no dates, or no way to say that a text is missing.
FACTORS = {"all": KEYS, "dates as text": DATES_AS_TEXT, "nothing missing": NOTHING_MISSING, "plain": PLAIN}
NARROW = ["float32", "float16", "int8"]
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-3, "int8": 1e-12}  # sums over a block are in float32
NORMAL = chunk.CHUNK_BYTES  # bytes
SMALL = {"spark": 6000}  # whose tasks take their time; others get a few rows at a time


@cache
def rows_of(dtype: str) -> Any:
    """Rows far from zero, but for bytes, which have no room for that."""
    return np.rint(DRAWN * 5).astype(dtype) if dtype == "int8" else (1e3 + DRAWN).astype(dtype)


@dataclass(frozen=True)
class Given:
    """What to pass to `summarize`, and the factors that it then holds."""

    source: Any
    by: Any = None
    vectors: Any = None
    manifest: Any = None
    factors: str = "all"

    def summary(self, engine: Any) -> cf.Summary:
        by = BY if self.by is None else self.by
        return cf.summarize(self.source, by, vectors=self.vectors, manifest=self.manifest, engine=engine)


@dataclass(frozen=True)
class Query(Given):
    """A query, as the command line reads it."""

    def summary(self, engine: Any) -> cf.Summary:
        name = engine if isinstance(engine, str) else engine.scheduler.address
        read = RowReader(sql=(self.source,), vectors=self.vectors, engine=name)
        return read.summarize(*read.open_sources([], BY))


Save = Callable[[Path, Any], Given]


def columns(keys: pa.Table = KEYS) -> dict[str, Any]:
    return {name: keys[name].to_pylist() for name in BY}


def flat(rows: Any) -> pa.Array:
    return pa.array(np.ascontiguousarray(rows).reshape(-1))


def lists(rows: Any, kind: str = "fixed") -> pa.Table:
    if kind == "fixed":
        found = pa.FixedSizeListArray.from_arrays(flat(rows), DIM)
    else:
        make, size = (pa.ListArray, np.int32) if kind == "list" else (pa.LargeListArray, np.int64)
        found = make.from_arrays(np.arange(0, rows.size + 1, DIM, dtype=size), flat(rows))
    return KEYS.append_column("embedding", found)


def wide(rows: Any) -> pa.Table:
    table = KEYS
    for k in range(DIM):
        table = table.append_column(f"dim_{k}", flat(rows[:, k]))
    return table


# --- one function for each storage ------------------------------------------------------------------------------------


def array(folder, rows):
    return Given(rows, columns())


def memmap(folder, rows):
    np.save(folder / "x.npy", rows)
    return Given(np.load(folder / "x.npy", mmap_mode="r"), columns())


def npy(folder, rows):
    np.save(folder / "x.npy", rows)
    pq.write_table(KEYS, folder / "manifest.parquet")
    return Given(folder / "x.npy", manifest=folder / "manifest.parquet")


def npz(folder, rows):
    site, day, plate = (NOTHING_MISSING[name].to_pylist() for name in BY)
    np.savez(folder / "x.npz", x=rows, site=site, day=np.array(day, "datetime64[D]"), plate=plate)
    return Given(folder / "x.npz", factors="nothing missing")


def text(ending: str) -> Save:
    def save(folder, rows):
        options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in ending else ",")
        with pa.output_stream(folder / f"x{ending}", compression="gzip" if ".gz" in ending else None) as sink:
            pyarrow.csv.write_csv(wide(rows), sink, options)
        return Given(folder / f"x{ending}")

    return save


def parquet(kind: str) -> Save:
    def save(folder, rows):
        table = wide(rows) if kind == "wide" else lists(rows, kind)
        pq.write_table(table, folder / "x.parquet", row_group_size=130)
        return Given(folder / "x.parquet", vectors="dim_*" if kind == "wide" else None)

    return save


def file_url(folder, rows):
    return replace(parquet("list")(folder, rows), source=f"file://{folder}/x.parquet")


def remote(folder, rows):
    with fsspec.open("memory://test_engines/x.parquet", "wb") as file:
        pq.write_table(lists(rows), file, row_group_size=130)
    return Given("memory://test_engines/x.parquet")


def hive(folder, rows):
    """Factors that are the names of folders are text, or whole numbers."""
    parts = ds.partitioning(pa.schema([("site", pa.string()), ("plate", pa.int64())]), flavor="hive")
    ds.write_dataset(lists(rows), folder / "lake", format="parquet", partitioning=parts)
    return Given(folder / "lake")


def pattern(folder, rows):
    table = lists(rows, "list")
    for k in range(4):
        pq.write_table(table.slice(150 * k, 150), folder / f"part-{k}.parquet")
    return Given(str(folder / "part-*.parquet"))


def several(folder, rows):
    feather.write_feather(lists(rows).slice(0, 250), folder / "a.arrow")
    pq.write_table(lists(rows).slice(250), folder / "b.parquet")
    return Given([folder / "a.arrow", folder / "b.parquet"])


def arrow(opened: Any, ending: str) -> Save:
    def save(folder, rows):
        table = lists(rows)
        with opened(str(folder / f"x{ending}"), table.schema) as writer:
            writer.write_table(table, 100)
        return Given(folder / f"x{ending}")

    return save


def feather_file(folder, rows):
    feather.write_feather(lists(rows, "large"), folder / "x.feather", compression="zstd", chunksize=100)
    return Given(folder / "x.feather")


def hdf5(folder, rows):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("features", data=rows, chunks=(70, DIM), compression="gzip")
        for name in BY:
            file[name] = PLAIN[name].to_pylist()
    return Given(folder / "x.h5", factors="plain")


def h5ad(place: str) -> Save:
    def save(folder, rows):
        with test_stores.quiet():
            obs = pd.DataFrame({"plate": DATES_AS_TEXT["plate"].to_numpy()})
            for name in ("site", "day"):
                values = DATES_AS_TEXT[name].to_pylist()
                kept = pd.Index(sorted({*values} - {None}), dtype=object)
                obs[name] = pd.Categorical(values, kept)
            obs.index = pd.Index([f"c{k}" for k in range(ROWS)], dtype=object)
            held = {"X": rows, "csr": sp.csr_matrix(rows) if place == "csr" else None}.get(place, np.zeros((ROWS, 2)))
            var = pd.DataFrame(index=pd.Index([f"g{k}" for k in range(held.shape[1])], dtype=object))
            data = ad.AnnData(held, obs=obs, var=var, obsm={"X_pca": rows} if place == "obsm" else None)
            data.write_h5ad(folder / "x.h5ad")
        return Given(folder / "x.h5ad", vectors="X_pca" if place == "obsm" else None, factors="dates as text")

    return save


def zarr_of(version: int) -> Save:
    def save(folder, rows):
        with test_stores.quiet():
            group = zarr.open_group(folder / "x.zarr", mode="w", zarr_format=version)
            group.create_array("x", data=rows, chunks=(70, DIM))
            for name in BY:
                kind = np.int64 if name == "plate" else np.dtypes.StringDType()
                group.create_array(name, data=np.array(PLAIN[name].to_pylist(), kind))
        return Given(folder / "x.zarr", factors="plain")

    return save


def tensors(folder, rows):
    torch.save({"x": torch.tensor(rows), **columns(DATES_AS_TEXT)}, folder / "x.pt")
    return Given(folder / "x.pt", factors="dates as text")


def pandas_frame(folder, rows):
    return Given(wide(rows).to_pandas(), vectors="dim_*")


def polars_frame(folder, rows):
    return Given(pl.from_arrow(lists(rows)))


def lazy_frame(folder, rows):
    return Given(pl.from_arrow(lists(rows, "list")).lazy())


def arrow_table(folder, rows):
    return Given(lists(rows, "large"))


def reader(folder, rows):
    return Given(lists(rows).to_reader(90))


def relation(folder, rows):
    connection = duckdb.connect()
    connection.register("t", lists(rows))
    return Given(connection.sql("select * from t"))


def query(folder, rows):
    parquet("list")(folder, rows)
    return Query(f"set threads = 1; select * from '{folder}/x.parquet'", vectors="embedding")


def dask_array(folder, rows):
    labels = {name: da.from_array(np.array(values, object), chunks=90) for name, values in columns().items()}
    return Given(da.from_array(rows, chunks=(90, 4)), labels)


def dask_frame(folder, rows):
    with dask.config.set({"dataframe.convert-string": False}):
        frame = pd.DataFrame(rows, columns=[f"dim_{k}" for k in range(DIM)]).assign(**columns())
        return Given(dd.from_pandas(frame, npartitions=5), vectors="dim_*")


def spark_frame(folder, rows):
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    kind = {"float64": "double", "float32": "float", "int8": "tinyint"}[rows.dtype.name]
    schema = f"site string, day date, plate long, embedding array<{kind}>"
    return Given(frame_of(session, lists(rows, "list"), schema).repartition(3))


NO_HALF = ["float32", "int8"]
STORAGES: dict[str, tuple[Save, list[str]]] = {
    "array": (array, NARROW),
    "memmap": (memmap, NARROW),
    "npy with a manifest": (npy, NARROW),
    "npz": (npz, NARROW),
    "csv": (text(".csv"), []),
    "tsv": (text(".tsv"), []),
    "csv.gz": (text(".csv.gz"), []),
    "parquet list": (parquet("list"), NARROW),
    "parquet large list": (parquet("large"), []),
    "parquet fixed list": (parquet("fixed"), NARROW),
    "parquet wide": (parquet("wide"), NARROW),
    "hive folder": (hive, []),
    "glob": (pattern, []),
    "several files": (several, []),
    "file URL": (file_url, []),
    "remote": (remote, []),
    "arrow": (arrow(pa.ipc.new_file, ".arrow"), NARROW),
    "arrow stream": (arrow(pa.ipc.new_stream, ".ipc"), []),
    "feather": (feather_file, NARROW),
    "hdf5": (hdf5, NARROW),
    "h5ad": (h5ad("X"), NARROW),
    "h5ad csr": (h5ad("csr"), NO_HALF),
    "h5ad obsm": (h5ad("obsm"), []),
    "zarr 2": (zarr_of(2), []),
    "zarr 3": (zarr_of(3), NARROW),
    "pt": (tensors, NARROW),
    "pandas": (pandas_frame, NARROW),
    "polars": (polars_frame, NO_HALF),
    "polars lazy": (lazy_frame, NO_HALF),
    "pyarrow": (arrow_table, NARROW),
    "reader": (reader, []),
    "duckdb relation": (relation, NO_HALF),
    "sql": (query, NO_HALF),
    "dask array": (dask_array, NARROW),
    "dask frame": (dask_frame, NO_HALF),
    "spark frame": (spark_frame, NO_HALF),
}
OF_DASK = "a Dask collection, which only its own engine can make: use engine='dask'"
OF_SPARK = "a Spark DataFrame, which only its own engine can make: use engine='spark'"
REFUSED = {
    **{(name, engine): OF_DASK for name in ("dask array", "dask frame") for engine in ("local", "spark")},
    **{("spark frame", engine): OF_SPARK for engine in ("local", "dask")},
    ("reader", "dask"): "the table can be read by this process only, not by Dask workers: use engine='local'",
    ("duckdb relation", "dask"): "the table can be read by this process only, not by Dask workers: use engine='local'",
    ("reader", "spark"): "the table cannot be sent to Spark's executors .*: use engine='local'",
    ("duckdb relation", "spark"): "the table cannot be sent to Spark's executors .*: use engine='local'",
    ("remote", "dask"): "memory://test_engines/x.parquet cannot be reached",  # it is in another memory
    ("remote", "spark"): 'No FileSystem for scheme "memory"',
}
THREADS = {"one thread": 1, "three threads": 3}


def cases() -> Iterator[Any]:
    """All storages with all engines, in small blocks and in normal ones; narrow types in normal ones."""
    for storage, (_, narrow) in STORAGES.items():
        for engine in [*THREADS, "dask", "spark"]:
            started_by = "spark" if "spark" in storage else engine
            marks = [pytest.mark.xdist_group(started_by)] if started_by in ("dask", "spark") else []
            for dtype, size in [("float64", "small"), *((dtype, "normal") for dtype in ["float64", *narrow])]:
                yield pytest.param(storage, engine, dtype, size, marks=marks, id=f"{storage}-{engine}-{dtype}-{size}")


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    )
    with cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with started(tmp_path_factory.mktemp("spark")) as session:
        yield session


def prepared(engine: str, size: int, request, monkeypatch) -> Any:
    """What to pass as engine; blocks have that many bytes here, and on workers that can be told."""

    def tell() -> None:
        from crossfusion.io.sources import chunk

        chunk.CHUNK_BYTES = size

    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    if engine in THREADS:
        monkeypatch.setattr(local, "thread_count", lambda: THREADS[engine])
        return "local"
    if engine == "spark":
        request.getfixturevalue("spark")
        return engine
    client = request.getfixturevalue("client")
    client.run(tell)
    return client


# --- the test ---------------------------------------------------------------------------------------------------------


@cache
def reference(dtype: str, name: str) -> tuple[list[tuple[Any, ...]], Any, Any, Any]:
    """Keys in order, counts, means and centred sums of squares, in more digits than any route has."""
    keys = list(zip(*FACTORS[name].select(BY).to_pydict().values(), strict=True))
    found = sorted(set(keys), key=lambda key: [(value is None, value) for value in key])
    own = [rows_of(dtype)[[key == one for key in keys]].astype(np.longdouble) for one in found]
    sums = [((rows - rows.mean(axis=0)) ** 2).sum(axis=0) for rows in own]
    means = [rows.mean(axis=0) for rows in own]
    return found, [len(rows) for rows in own], np.array(means, float), np.array(sums, float)


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize(("storage", "engine", "dtype", "size"), list(cases()))
def test_every_storage_and_engine_gives_the_same_summary(
    storage, engine, dtype, size, tmp_path, request, monkeypatch, refuses
):
    save, _ = STORAGES[storage]
    if (engine, dtype, storage[:7]) == ("spark", "float16", "parquet") and int(
        pyspark.__version__.partition(".")[0]
    ) < 4:
        pytest.skip("Spark reads these since version 4")
    if storage == "spark frame":
        request.getfixturevalue("spark")
    given = save(tmp_path, rows_of(dtype))
    chosen = prepared(engine, NORMAL if size == "normal" else SMALL.get(engine, 1000), request, monkeypatch)
    refusal = REFUSED.get((storage, "local" if engine in THREADS else engine))
    if refusal is not None:
        with refuses(refusal, cf.CrossfusionError):
            given.summary(chosen)
        return
    found = given.summary(chosen)
    keys, counts, means, sums = reference(dtype, given.factors)
    assert list(zip(*found.keys.to_pydict().values(), strict=True)) == keys
    assert list(found.factors) == BY
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.moments.count, counts)
    np.testing.assert_allclose(found.moments.mean, means, rtol=TOLERANCE[dtype], atol=1e-12)
    np.testing.assert_allclose(found.moments.sumsq, sums, rtol=TOLERANCE[dtype])


def test_what_no_engine_can_take_is_said_before_anything_is_read(refuses):
    with refuses(
        "engine='nonsense' is not a known engine: choose auto, local, dask, spark, or pass a distributed.Client"
    ):
        cf.summarize("nowhere.parquet", BY, engine="nonsense")
    with refuses("is not a known engine: choose auto, local, dask, spark, or pass a distributed.Client"):
        cf.summarize("nowhere.parquet", BY, engine=3)


@pytest.mark.xdist_group("spark")
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("storage", ["parquet list", "npy with a manifest", "csv"])
def test_the_command_line_takes_spark(storage, spark, tmp_path, capfd):
    given = STORAGES[storage][0](tmp_path, rows_of("float64"))
    manifest = [] if given.manifest is None else ["--manifest", str(given.manifest)]
    target = tmp_path / "s" / "s.parquet"
    target.parent.mkdir()
    with warnings.catch_warnings():
        main(["summarize", str(given.source), *manifest, "--by", ",".join(BY), "--engine", "spark", "-o", str(target)])
    assert f"written to {target}" in capfd.readouterr().out
    assert cf.read_summary(target).moments.count.tolist() == reference("float64", given.factors)[1]
