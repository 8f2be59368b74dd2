"""Dask: the same summary from arrays, frames and files, on threads and on a cluster whose workers may die."""

import os
import pickle
import signal
from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from dask.delayed import delayed
from distributed import Client, LocalCluster

import crossfusion as cf
from crossfusion.io import reduction
from crossfusion.io.engines import dask as engine
from crossfusion.io.engines.dask_collections import DaskTasks
from crossfusion.io.sources import chunk as block
from crossfusion.io.sources import open_file, open_files
from crossfusion.io.sources.chunk import Source, add_keys, merge_partitions
from crossfusion.io.summarization import reduce_sources

pytestmark = pytest.mark.xdist_group("dask")  # one cluster is enough
ROWS, DIM = 503, 5
rng = np.random.default_rng(11)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "Ç"], ROWS)
DAY = rng.integers(0, 3, ROWS)
BY = {"site": SITE, "day": DAY}
EXPECTED = cf.summarize(X, by=BY)
WIDE = pd.DataFrame(X, columns=[f"dim_{k}" for k in range(DIM)]).assign(site=SITE, day=DAY, note="-")


def make_cluster():
    return LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
    )


@pytest.fixture(scope="module")
def client():
    with make_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(params=["threads", "cluster"])
def engines(request):
    """What to pass as engine: Dask's threads, or the client of two worker processes."""
    if request.param == "threads":
        with dask.config.set(scheduler="threads"):
            yield "dask"
    else:
        yield request.getfixturevalue("client")


def assert_same(summary, expected=EXPECTED):
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=1e-12, atol=1e-14)


def lists():
    return pa.table({"site": SITE, "day": DAY, "v": pa.array(X.tolist(), pa.list_(pa.float64()))})


def from_parts(text):
    """A frame of object columns, which Dask would turn to text."""
    frame = pd.DataFrame({"site": SITE, "day": DAY, "v": text})
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(frame, npartitions=4)


def unknown(array):
    """The same array after a selection, so that Dask no longer knows the sizes of its chunks."""
    return array[da.from_array(np.ones(ROWS, bool), chunks=array.chunks[0])]


def frame_of_known(columns):
    return dd.from_pandas(WIDE, npartitions=5)[columns]


COLLECTIONS: dict[str, Callable[[], Any]] = {
    "array": lambda: (da.from_array(X, chunks=(100, DIM)), BY, None),
    "array in chunks of features": lambda: (da.from_array(X, chunks=(64, 2)), BY, None),
    "array, one chunk": lambda: (da.from_array(X), BY, None),
    "sparse chunks": lambda: (da.from_array(X, chunks=(100, DIM)).map_blocks(scipy.sparse.csr_matrix), BY, None),
    "lazy labels in other chunks": lambda: (
        da.from_array(X, chunks=(100, 2)),
        {"site": da.from_array(SITE, chunks=77), "day": DAY},
        None,
    ),
    "unknown sizes": lambda: (
        unknown(da.from_array(X, chunks=(100, 2))),
        {name: unknown(da.from_array(values, chunks=100)) for name, values in BY.items()},
        None,
    ),
    "frame and series": lambda: (
        frame_of_known([f"dim_{k}" for k in range(DIM)]),
        {"site": frame_of_known("site"), "day": frame_of_known("day")},
        None,
    ),
    "wide frame": lambda: (dd.from_pandas(WIDE, npartitions=5), ["site", "day"], "dim_*"),
    "frame with an empty partition": lambda: (
        dd.concat([dd.from_pandas(WIDE.iloc[:0], npartitions=1), dd.from_pandas(WIDE, npartitions=3)]),
        ["site", "day"],
        [f"dim_{k}" for k in range(DIM)],
    ),
    "frame of arrays": lambda: (from_parts(list(X)), ["site", "day"], "v"),
    "frame of lists": lambda: (from_parts(X.tolist()), ["site", "day"], "v"),
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_collection_gives_the_same_summary(name, engines):
    source, by, vectors = COLLECTIONS[name]()
    assert_same(cf.summarize(source, by=by, vectors=vectors, engine=engines))


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # Dask's own, with pandas 3.1
@pytest.mark.parametrize("backend", [None, "pyarrow"])
def test_parquet_read_by_dask(backend, engines, tmp_path):
    pq.write_table(lists(), tmp_path / "x.parquet", row_group_size=100)
    options = {} if backend is None else {"dtype_backend": backend}
    frame = dd.read_parquet(tmp_path / "x.parquet", split_row_groups=True, **options)
    assert frame.npartitions > 1
    assert_same(cf.summarize(frame, by=["site", "day"], engine=engines))


def npy_parts(folder, monkeypatch, rows=X, size=1024):
    """A .npy file in many parts, all rows of one group."""
    np.save(folder / "x.npy", rows)
    monkeypatch.setattr(block, "CHUNK_BYTES", size)
    return add_keys(open_file(folder / "x.npy", []), {"site": "A"})


def test_files_are_read_by_the_workers(engines, tmp_path, monkeypatch):
    table, paths = lists(), [tmp_path / f"{k}.parquet" for k in range(3)]
    for k, path in enumerate(paths):
        pq.write_table(table.slice(k * 200, 200), path)
    assert_same(reduce_sources(open_files(paths, ["site", "day"], "v"), engine=engines))
    source = npy_parts(tmp_path, monkeypatch)
    assert len(source.partitions) > engine.FAN_IN
    assert_same(reduce_sources([source], engine=engines), cf.summarize(X, by={"site": ["A"] * ROWS}))


def test_rows_in_memory_stay_here(engines):
    assert_same(cf.summarize(X, by=BY, engine=engines))


def test_the_active_client_is_used(client, tmp_path, monkeypatch):
    source = npy_parts(tmp_path, monkeypatch)
    scheduler = client.cluster.scheduler
    done = scheduler.transition_counter
    with client.as_current():
        with dask.config.set(scheduler="threads"):
            reduce_sources([source], engine="dask")
        assert scheduler.transition_counter == done
        reduce_sources([source], engine="dask")
    assert scheduler.transition_counter > done


@pytest.mark.parametrize("most", [1000, 3], ids=["every task", "sums of tasks"])
def test_progress_tells_every_row_once(most, engines, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "MAX_WATCHED", most)
    monkeypatch.setattr(engine, "thread_count", lambda: 2)
    source = npy_parts(tmp_path, monkeypatch, size=256)
    told: list[int] = []
    reduce_sources([source], engine=engines, progress=told.append)
    assert sum(told) == ROWS
    tasks = len(merge_partitions(source, engine.TASKS_PER_THREAD * 2).partitions)  # two workers, or two threads
    assert engine.FAN_IN < tasks < len(source.partitions)
    assert len(told) == tasks if most > tasks else 1 < len(told) <= most


def test_what_travels_is_moments():
    """The result of a task is as large as its moments, 16 bytes a group and feature, and comes back equal."""
    groups, dim = 50, 400
    rows, codes = rng.normal(size=(5000, dim)), np.arange(5000) % groups
    piece = engine.run([engine.open_collection(da.from_array(rows, chunks=(500, dim)), {"g": codes})])[0][1]
    assert piece.summary is not None
    sent = pickle.dumps(piece)
    assert 16 * groups * dim < len(sent) < 16.2 * groups * dim + 4000
    again = pickle.loads(sent)
    assert again.summary.moments == piece.summary.moments
    assert again.seen == piece.seen


def test_labels_travel_in_pieces():
    """A slice of an Arrow column is pickled as a whole, which must not happen for each chunk."""
    lazy = engine.open_collection(da.zeros((100_000, 2), chunks=(1000, 2)), {"g": np.array(["label"] * 100_000)})
    reduce = lazy.graph[lazy.leaves[3]][0]
    assert len(pickle.dumps(reduce)) < 8000


def bad_rows():
    rows = X.copy()
    rows[[317, 450], [2, 0]] = np.nan
    return rows


def test_rows_that_are_not_finite(engines, refuses, tmp_path, monkeypatch):
    rows = da.from_array(bad_rows(), chunks=(100, DIM))
    with refuses(r"x has NaN .*first in row 317, feature 2 \(from 0\)", cf.NonFiniteError):
        cf.summarize(rows, by=BY, engine=engines)
    with pytest.warns(cf.CrossfusionWarning, match="2 of 503 rows, the first in row 317, feature 2"):
        summary = cf.summarize(rows, by=BY, engine=engines, nan="drop")
    assert summary.dropped == 2
    source = npy_parts(tmp_path, monkeypatch, bad_rows())
    with refuses(r"row 317, feature 2 \(from 0\)", cf.NonFiniteError):
        reduce_sources([source], engine=engines)


def test_a_row_of_an_unknown_place_is_named_by_its_partition(engines, refuses):
    frame = dd.from_pandas(WIDE.assign(dim_2=bad_rows()[:, 2]), npartitions=5)
    row = 317 - len(frame.partitions[0]) * 3
    with refuses(f"row {row}, feature 2 of partition 3 of the table", cf.NonFiniteError):
        cf.summarize(frame, by="site", vectors="dim_*", engine=engines)


def test_ragged_vectors(engines, refuses):
    ragged = X.tolist()
    ragged[400] = [1.0]
    with refuses("column 'v' of partition 3 of the table holds vectors of unequal length", cf.InputError):
        cf.summarize(from_parts(ragged), by="site", vectors="v", engine=engines)
    halves = [row[:4] if k >= 378 else row for k, row in enumerate(X.tolist())]
    with refuses("numbers of features differ", cf.InputError):
        cf.summarize(from_parts(halves), by="site", vectors="v", engine=engines)


def test_a_file_that_workers_do_not_have(engines, refuses, tmp_path, monkeypatch):
    source = npy_parts(tmp_path, monkeypatch)
    (tmp_path / "x.npy").unlink()
    with refuses(r"x\.npy does not exist", cf.FileError):
        reduce_sources([source], engine=engines)

    def gone(chunk):
        raise FileNotFoundError(2, "No such file or directory", "/nowhere/x.bin")

    with refuses("Dask worker cannot read its part of x .*/nowhere/x.bin.*same path", cf.FileError):
        cf.summarize(da.from_array(X, chunks=100).map_blocks(gone, dtype=float), by=BY, engine=engines)


def test_errors_of_the_users_own_tasks_pass_as_they_are(engines):
    def divide(chunk):
        return 1 // 0

    with pytest.raises(ZeroDivisionError):
        cf.summarize(da.from_array(X, chunks=100).map_blocks(divide, dtype=float), by=BY, engine=engines)


def test_a_source_that_only_this_process_can_read(client, refuses):
    with open(os.devnull) as handle:
        source = Source("the connection", [partial(iter, handle)])
    with refuses("the connection can be read by this process only.*engine='local'"):
        engine.run([source], client=client)


def test_chunks_that_are_not_as_large_as_they_say(engines, refuses):
    rows = da.from_array(X, chunks=(100, DIM)).map_blocks(lambda chunk: chunk[:-1], dtype=float)
    with refuses(r"site has \d+ entries for \d+ rows of the chunk of x from row"):
        cf.summarize(rows, by={"site": SITE}, engine=engines)
    labels = da.from_array(SITE, chunks=100).map_blocks(lambda chunk: chunk[:-1])
    with refuses("x should have 503 rows, but 497 were read", cf.EngineError):
        cf.summarize(rows, by={"site": labels}, engine=engines)


def test_parts_that_change_between_reading_and_summing(refuses):
    """The sum must have the rows that the parts had; here a task that sees them otherwise than the sum does."""
    piece = reduction.reduce_chunk(block.Chunk(X, pa.table(BY)), "x")
    watch = engine._Watch(DaskTasks("x", {}, []), "raise", None)
    watch.see(0, reduction.RowCounts(ROWS - 1))
    with refuses("had 502 rows when they were read, but the sum has 503", cf.EngineError):
        watch.check_complete(piece)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "one dimension": (lambda: (da.zeros(5), {"g": range(5)}, None), "x must be two-dimensional"),
    "names for an array": (lambda: (da.zeros((5, 2)), "g", None), "a Dask array has no columns to find 'g' in"),
    "no factor": (lambda: (da.zeros((5, 2)), {}, None), "by is empty"),
    "too few labels": (lambda: (da.zeros((5, 2)), {"g": [1, 2]}, None), "g has 2 entries for 5 rows of x"),
    "too few lazy labels": (lambda: (da.zeros((5, 2)), {"g": da.zeros(4)}, None), "g has 4 entries for 5 rows of x"),
    "labels of two columns": (
        lambda: (da.zeros((5, 2)), {"g": da.zeros((5, 2))}, None),
        "g must hold one value per row",
    ),
    "labels for unknown chunks": (
        lambda: (unknown(da.from_array(X, chunks=100)), {"g": SITE}, None),
        "x has chunks of unknown size, and g is not in such chunks",
    ),
    "other chunks": (
        lambda: (unknown(da.from_array(X, chunks=100)), {"g": da.from_array(SITE, chunks=50)}, None),
        "g has 11 chunks for 6 of x",
    ),
    "vectors of an array": (lambda: (da.zeros((5, 2)), {"g": range(5)}, "v"), "leave it out where by holds arrays"),
    "a single task": (lambda: (delayed(1), ["g"], None), "a Dask Delayed.* has no rows"),
    "unknown factor": (lambda: (frame_of_known(["dim_1", "site"]), "sites", None), "no column 'sites': did you mean"),
    "unknown vectors": (lambda: (frame_of_known(["dim_1", "site"]), "site", "v_*"), "no column for vectors='v_\\*'"),
    "no list column": (lambda: (frame_of_known(["dim_1", "site"]), "site", None), "the table has no vector column"),
    "text for vectors": (lambda: (frame_of_known(["note", "site"]), "site", "note"), "dataframe.convert-string"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_used_is_refused(name, refuses):
    make, message = REFUSED[name]
    source, by, vectors = make()
    with refuses(message), dask.config.set(scheduler="threads"):
        cf.summarize(source, by=by, vectors=vectors)


def test_engines_that_are_none(refuses):
    with refuses("engine='cluster' is not a Dask client"):
        engine.run([], client="cluster")
    with refuses("use engine='dask'"):
        cf.summarize(da.zeros((5, 2)), by={"g": range(5)}, engine="local")


class Killer:
    """Progress that kills workers once the first parts are done."""

    def __init__(self, cluster, number):
        self.pids = [worker.pid for worker in cluster.workers.values() if worker.pid][:number]
        self.told: list[int] = []

    def __call__(self, rows):
        self.told.append(rows)
        if len(self.told) == 3:
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def long_work(tmp_path, monkeypatch):
    """A source of many parts, each of some milliseconds, and its summary."""
    rows = np.random.default_rng(5).normal(size=(50_000, 64))
    source = npy_parts(tmp_path, monkeypatch, rows, 2**17)
    monkeypatch.setattr(engine, "TASKS_PER_THREAD", len(source.partitions))
    assert len(source.partitions) > 90
    return source, cf.summarize(rows, by={"site": ["A"] * len(rows)})


def test_a_killed_worker_costs_time_but_no_row(client, long_work):
    source, expected = long_work
    killer = Killer(client.cluster, 1)
    summary = reduce_sources([source], engine=client, progress=killer)
    with pytest.raises(ProcessLookupError):
        os.kill(killer.pids[0], 0)
    assert_same(summary, expected)
    assert sum(killer.told) == source.rows


def test_workers_that_stay_dead_are_an_error(long_work, refuses, monkeypatch):
    source, expected = long_work
    monkeypatch.setattr(engine, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(engine, "LOOK_SECONDS", 0.2)
    with make_cluster() as cluster, Client(cluster, set_as_default=False) as client:
        for nanny in cluster.workers.values():
            nanny.close_gracefully()  # it starts no worker again
        cluster.scheduler.allowed_failures = 0
        with refuses("workers died repeatedly while they read a part of .*x.npy", cf.EngineError):
            reduce_sources([source], engine=client, progress=Killer(cluster, 1))
        cluster.scheduler.allowed_failures = 9
        assert_same(reduce_sources([source], engine=client), expected)  # the other one does it
        with refuses("there has been no Dask worker", cf.EngineError):
            reduce_sources([source], engine=client, progress=Killer(cluster, 2))
