"""The same summary through a lens from threads, Dask and Spark, of arrays, frames and files."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

import crossfusion as cf
from crossfusion.io.engines import local
from crossfusion.io.sources import chunk
from tests.helpers.spark_session import frame_of, started
from tests.lens.test_lenses import LENSES, SITE, X

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
CHOSEN = {name: LENSES[name] for name in ("whiten", "kernel", "composed")}
WIDE = pd.DataFrame(X, columns=list("abcdef")).assign(site=SITE)
TABLE = pa.table({"site": SITE, "vector": list(X)})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    for number, own in enumerate(np.array_split(np.arange(len(X)), 3)):
        pq.write_table(TABLE.take(own), folder / f"{number}.parquet", row_group_size=100)
    return folder


def assert_same(found, lens):
    expected = cf.summarize(X, by={"site": SITE}, lens=lens)
    assert found.keys.to_pylist() == expected.keys.to_pylist()
    assert (found.lens, found.factors) == (lens.digest, expected.factors)
    np.testing.assert_array_equal(found.moments.count, expected.moments.count)
    np.testing.assert_allclose(found.moments.mean, expected.moments.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.moments.sumsq, expected.moments.sumsq, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("lens", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("size", [chunk.CHUNK_BYTES, 2**12])
def test_files_and_arrays_here(lens, size, files, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    assert_same(cf.summarize(files, by="site", lens=lens), lens)
    assert_same(cf.summarize(TABLE, by="site", lens=lens), lens)
    assert_same(cf.summarize(X, by={"site": SITE}, lens=lens), lens)
    assert_same(cf.summarize(WIDE, by="site", vectors=list("abcdef"), lens=lens), lens)


@pytest.mark.parametrize("lens", CHOSEN.values(), ids=CHOSEN)
def test_any_number_of_threads_gives_the_same_bits(lens, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2**14)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(local, "thread_count", lambda threads=threads: threads)
        found.append(cf.summarize(X, by={"site": SITE}, lens=lens).moments)
    assert found[0] == found[1]


@pytest.mark.parametrize("lens", CHOSEN.values(), ids=CHOSEN)
def test_dask(lens, files):
    arrays = da.from_array(X, chunks=(400, 2))
    with dask.config.set(scheduler="threads"):
        assert_same(cf.summarize(arrays, by={"site": SITE}, lens=lens), lens)
        frame = dd.from_pandas(WIDE, npartitions=4)
        assert_same(cf.summarize(frame, by="site", vectors=list("abcdef"), lens=lens), lens)
        assert_same(cf.summarize(files, by="site", engine="dask", lens=lens), lens)


def test_workers_of_dask_get_the_lens(files):
    places = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    arrays = da.from_array(X, chunks=(400, 6))
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, memory_limit=0, **places) as workers,
        Client(workers) as client,
    ):
        for lens in CHOSEN.values():
            assert_same(cf.summarize(files, by="site", engine=client, lens=lens), lens)
            assert_same(cf.summarize(arrays, by={"site": SITE}, engine=client, lens=lens), lens)


def test_spark(files, tmp_path):
    with started(tmp_path) as session:
        frame = frame_of(session, TABLE)
        for lens in CHOSEN.values():
            assert_same(cf.summarize(frame, by="site", vectors="vector", lens=lens), lens)
            assert_same(cf.summarize(files, by="site", engine="spark", lens=lens), lens)


def test_lenses_are_fitted_on_arrays_of_dask():
    arrays, by = da.from_array(X, chunks=(400, 6)), {"site": SITE}
    with dask.config.set(scheduler="threads"):
        scale = cf.lens.standardize(arrays, by=by).steps[0].scale
        gains = cf.lens.whiten(arrays, by=by).steps[1].gains
        width = cf.lens.kernel(arrays).steps[0].bandwidth
        few = cf.lens.kernel(arrays, seed=2, after=cf.lens.unit()).steps[1].bandwidth
        points = cf.lens.codebook(arrays, regions=5).steps[0].points
    np.testing.assert_allclose(scale, LENSES["standardize"].steps[0].scale, rtol=1e-12)
    np.testing.assert_allclose(gains, LENSES["whiten"].steps[1].gains, rtol=1e-6)
    assert width == pytest.approx(LENSES["kernel"].steps[0].bandwidth, rel=0.05)
    assert few == pytest.approx(cf.lens.kernel(cf.lens.unit()(X)).steps[0].bandwidth, rel=0.1)
    assert points.shape == (6, 5)


def test_lenses_are_fitted_on_tables_of_spark(tmp_path, refuses):
    with started(tmp_path) as session:
        table = frame_of(session, TABLE)
        found = cf.lens.standardize(table, by="site", vectors="vector").steps[0]
        np.testing.assert_allclose(found.scale, LENSES["standardize"].steps[0].scale, rtol=1e-12)
        whitened = cf.lens.whiten(table, by="site", vectors="vector").steps[1]
        assert whitened.gains == pytest.approx(LENSES["whiten"].steps[1].gains, rel=1e-6)
        with refuses("source is a table of Dask or Spark, which is read by groups only: pass a sample of its rows"):
            cf.lens.kernel(table, vectors="vector")


def test_lenses_are_fitted_on_files_as_on_arrays(files):
    widths = [lens.steps[0].bandwidth for lens in (cf.lens.kernel(files, vectors="vector"), LENSES["kernel"])]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)  # of another sample of rows
    named = cf.lens.standardize(files, by="site").steps[0]
    np.testing.assert_allclose(named.scale, LENSES["standardize"].steps[0].scale, rtol=1e-12)
    whitened = cf.lens.whiten(files, by="site").steps[1]
    np.testing.assert_allclose(whitened.gains, LENSES["whiten"].steps[1].gains, rtol=1e-9)
    assert cf.lens.codebook(files, regions=5).steps[0].points.shape == (6, 5)
