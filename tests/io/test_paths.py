"""Files, folders, globs and URLs: which files a path stands for, and the factors that folders name."""

import errno
import http.server
import os
import re
import shutil
import threading
import zipfile
from functools import partial
from pathlib import Path

import fsspec
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.io import sources
from crossfusion.io.sources import chunk
from crossfusion.io.sources import paths as places

rng = np.random.default_rng(5)
X = rng.normal(size=(60, 4))
SITE = np.repeat(["A", "B/C", "ü"], 20)
DAY = np.tile([1, 2], 30)
EXPECTED = cf.summarize(X, by={"site": SITE, "day": DAY})


def lists(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows).reshape(-1)), rows.shape[1])


def write(path, rows, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        pq.write_table(pa.table({"v": lists(rows), **columns}), file)


@pytest.fixture
def hive(tmp_path):
    """A data set in folders named after its factors, with what Spark leaves beside the files."""
    for site, folder in (("A", "A"), ("B/C", "B%2FC"), ("ü", "ü")):
        for day in (1, 2):
            write(
                tmp_path / f"site={folder}" / f"day={day}" / "part-0.parquet",
                X[np.equal(SITE, site) & np.equal(DAY, day)],
            )
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / "site=A" / ".part-0.parquet.crc").write_bytes(b"crc")
    write(tmp_path / "_temporary" / "site=A" / "day=1" / "part-0.parquet", X)
    (tmp_path / "README.md").write_text("not data")
    return tmp_path


def assert_same(summary, expected=EXPECTED):
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=1e-12, atol=1e-14)


def test_folders_name_factors(hive):
    assert_same(cf.summarize(hive, by=["site", "day"]))
    source = sources.open_file(hive, ["day", "site"])
    assert source.rows == 60
    assert len(source.partitions) == 6
    assert next(source.chunks()).keys.column_names == ["day", "site"]
    assert next(source.chunks()).file.endswith("part-0.parquet")


@pytest.mark.parametrize("pattern", ["**/*.parquet", "site=*/day=*", "site=*/day=?/part-[0-9].parquet", "*/*/*"])
def test_globs_are_one_source(hive, pattern):
    assert_same(cf.summarize(str(hive / pattern), by=["site", "day"]))


def test_lists_of_files_folders_and_globs_mix(hive):
    paths = [hive / "site=A", str(hive / "site=B*" / "*" / "*.parquet")]
    found = sources.open_files([*paths, *sorted((hive / "site=ü").rglob("*.parquet"))], ["site", "day"])
    assert [source.rows for source in found] == [20, 20, 10, 10]
    assert_same(cf.summarize([*paths, hive / "site=ü"], by=["site", "day"]))


def test_values_in_paths_are_integers_only_if_all_are_plain_ones(tmp_path):
    for name in ("k=1/m=01/n=-3", "k=20/m=2/n=0", "k=__HIVE_DEFAULT_PARTITION__/m=3/n=7"):
        write(tmp_path / name / "x.parquet", X[:2])
    keys = cf.summarize(tmp_path, by=["k", "m", "n"]).keys
    assert keys.to_pylist() == [
        {"k": 1, "m": "01", "n": -3},
        {"k": 20, "m": "2", "n": 0},
        {"k": None, "m": "3", "n": 7},
    ]


def test_a_column_goes_before_a_folder_of_its_name(tmp_path):
    write(tmp_path / "site=7" / "x.parquet", X, site=SITE)
    assert cf.summarize(tmp_path, by="site").keys["site"].to_pylist() == ["A", "B/C", "ü"]


def test_a_factor_in_some_paths_only_is_refused(hive, refuses):
    write(hive / "site=A" / "x.parquet", X)
    with refuses(r"x\.parquet has no folder day=\.\.\. in its path, but .*part-0"):
        cf.summarize(hive, by=["site", "day"])
    assert cf.summarize(hive, by="site").moments.count.sum() == 120


def test_files_without_rows_may_be_among_others(tmp_path, refuses):
    write(tmp_path / "a.parquet", X[:0])
    with refuses("no rows", cf.CrossfusionError):
        sources.open_file(tmp_path / "a.parquet", [])
    with refuses("no rows", cf.CrossfusionError):
        sources.open_file(tmp_path, [])
    write(tmp_path / "b.parquet", X)
    np.save(tmp_path / "c.npy", X)
    assert sum(len(entry.rows) for entry in sources.open_file(tmp_path, []).chunks()) == 120


def test_columns_go_together_by_name_within_a_folder(tmp_path, refuses):
    (tmp_path / "a.csv").write_text("s,p,q\nA,1,2\n")
    (tmp_path / "b.csv").write_text("s,q,p\nB,2,1\n")
    assert cf.summarize(tmp_path, by="s").moments.mean.tolist() == [[1, 2], [1, 2]]
    (tmp_path / "c.csv").write_text("s,p,r\nB,2,1\n")
    with refuses("lacks 'q' and has 'r'"):
        cf.summarize(tmp_path, by="s")


def test_what_all_files_warn_of_is_said_once(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("s,p,note\nA,1,x\n")
    with pytest.warns(cf.CrossfusionWarning, match=r"note left out .*likewise in 2 of the other files") as caught:
        cf.summarize(tmp_path, by="s")
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_paths_that_lead_nowhere(tmp_path, refuses):
    (tmp_path / "README.md").write_text("not data")
    for path, message in (
        (tmp_path, "no file below it with an ending that is known: use one of .npy"),
        (tmp_path / "*.csv", "no file that it matches"),
        (tmp_path / "x.csv", "does not exist"),
        (tmp_path / "README.md", r"ending that is not known: use one of \.npy, .*\.csv\.gz"),
        ("", "not a path"),
        ("x\0.csv", "not a path"),
    ):
        with refuses(message, cf.FileError):
            sources.open_file(path, ["site"])


def test_a_pipe_in_a_folder_is_not_waited_for(tmp_path, refuses):
    np.save(tmp_path / "a.npy", X)
    os.mkfifo(tmp_path / "b.npy")
    for path in (tmp_path, tmp_path / "*.npy"):
        with refuses(r"b\.npy is not a file", cf.FileError):
            sources.open_source(path, ["site"])


def test_a_file_that_looks_like_a_glob_is_a_file(tmp_path):
    write(tmp_path / "x[1].parquet", X, site=SITE)
    assert len(cf.summarize(tmp_path / "x[1].parquet", by="site")) == 3


def test_home_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "x.parquet", X, site=SITE)
    assert len(cf.summarize("~/x.parquet", by="site")) == 3


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are text there")
@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet", ".arrow"])
def test_names_that_are_not_text_can_be_read_and_shown(ending, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path / "site=") + b"\xff")
    os.mkdir(folder)
    for path in (Path(folder) / f"x{ending}", Path(folder) / f"y{ending}"):
        path.write_bytes(b"")
        with pytest.raises(cf.CrossfusionError) as caught:
            sources.open_file(path, ["site"])
        str(caught.value).encode()
    write(Path(folder) / "z.parquet", X)
    os.remove(f"{folder}/x{ending}")
    os.remove(f"{folder}/y{ending}")
    assert cf.summarize(tmp_path, by="site").keys["site"].to_pylist() == [r"\xff"]


def test_zarr_stores_are_one_file_whatever_they_are_called(tmp_path):
    for name, mark in (("a.zarr", ".zgroup"), ("b", "zarr.json")):
        (tmp_path / name / "0").mkdir(parents=True)
        (tmp_path / name / mark).write_text("{}")
        np.save(tmp_path / name / "0" / "x.npy", X)
        assert places.find_files(tmp_path / name, [".npy"]).files == (places.FoundFile(str(tmp_path / name), ".zarr"),)
    np.save(tmp_path / "c.npy", X)
    found = places.find_files(tmp_path, [".npy", ".zarr"]).files
    assert [(Path(file.path).name, file.ending) for file in found] == [
        ("a.zarr", ".zarr"),
        ("b", ".zarr"),
        ("c.npy", ".npy"),
    ]


def test_memory_is_a_remote_place(hive):
    memory = fsspec.filesystem("memory")
    memory.put(str(hive), "/lake", recursive=True)
    try:
        assert_same(cf.summarize("memory://lake", by=["site", "day"]))
        assert_same(cf.summarize("memory://lake/site=*/*/*.parquet", by=["site", "day"]))
        with pytest.raises(cf.FileError, match=r"memory://lake/none\.csv cannot be reached or does not exist"):
            cf.summarize("memory://lake/none.csv", by="site")
        memory.pipe("/lake/empty/README.md", b"not data")
        with pytest.raises(cf.FileError, match="no file below it"):
            sources.open_file("memory://lake/empty", [])
    finally:
        memory.rm("/lake", recursive=True)


class Ranges(http.server.SimpleHTTPRequestHandler):
    """A server that can send a part of a file."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if span is None:
            super().do_GET()
            return
        content = Path(self.translate_path(self.path)).read_bytes()
        low, high = int(span[1]), min(int(span[2]) + 1, len(content))
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {low}-{high - 1}/{len(content)}")
        self.send_header("Content-Length", str(high - low))
        self.end_headers()
        self.wfile.write(content[low:high])

    def end_headers(self):
        self.send_header("Accept-Ranges", "bytes")
        super().end_headers()


@pytest.fixture
def server(tmp_path):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(tmp_path))) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def save_all(folder):
    write(folder / "x.parquet", X, site=SITE, day=DAY)
    np.savez(folder / "x.npz", x=X, site=SITE, day=DAY)
    table = pa.table({"site": SITE, "day": DAY, **{f"d{k}": X[:, k] for k in range(4)}})
    table.to_pandas().to_csv(folder / "x.csv", index=False)
    table.to_pandas().to_csv(folder / "x.csv.gz", index=False)
    with pa.ipc.new_file(str(folder / "x.arrow"), table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("name", ["x.parquet", "x.npz", "x.csv", "x.csv.gz", "x.arrow"])
def test_every_file_can_come_from_a_server_or_an_archive(name, server, tmp_path):
    save_all(tmp_path)
    vectors = "d[0-9]" if name == "x.arrow" else None
    assert_same(cf.summarize(f"{server}/{name}?token=secret", by=["site", "day"], vectors=vectors))
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / name, f"inner/{name}")
    for inside in (f"inner/{name}", "inner", "*/x*"):
        path = f"zip://{inside}::{tmp_path / 'all.zip'}"
        assert_same(cf.summarize(path, by=["site", "day"], vectors=vectors))


@pytest.mark.parametrize("order", ["C", "F"])
def test_remote_arrays_are_read_by_ranges(order, server, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.asarray(X, order=order))
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 500)
    source = sources.open_file(f"{server}/x.npy", [])
    assert len(source.partitions) > 2
    np.testing.assert_array_equal(np.concatenate([entry.rows for entry in source.chunks()]), X)


def test_remote_trouble_is_one_sentence(server, tmp_path, refuses):
    for path, message in (
        (f"{server}/none.csv", "does not exist"),
        ("nowhere://x.csv", "cannot be read .*nowhere"),
        ("http://127.0.0.1:1/x.csv?token=secret", r"x\.csv\?\.\.\. "),
    ):
        with refuses(message, cf.FileError) as _:
            sources.open_file(path, ["site"])


def test_access_is_not_shown():
    assert places.show_path("https://me:word@host/x.csv?token=1") == "https://...@host/x.csv?..."
    assert places.show_path("zip://a.csv::s3://b/c.zip") == "zip://a.csv::s3://b/c.zip"


def test_fsspec_is_asked_for_only_where_a_path_is_remote(python, tmp_path):
    write(tmp_path / "x.parquet", X, site=SITE)
    code = f"""
import sys
sys.modules["fsspec"] = None
import crossfusion as cf
print(len(cf.summarize({str(tmp_path)!r}, by="site")))
try:
    cf.summarize("s3://bucket/x.parquet", by="site")
except cf.MissingDependencyError as problem:
    print(problem)
"""
    assert python(code).splitlines() == [
        "3",
        "reading s3://bucket/x.parquet needs fsspec, which is not installed: pip install 'crossfusion[remote]'",
    ]


def test_a_file_is_not_read_twice(tmp_path, refuses):
    np.savez(tmp_path / "x.npz", x=np.ones((3, 2)), g=[1, 2, 3])
    with refuses("x.npz would be read twice"):
        cf.summarize([tmp_path / "x.npz", tmp_path], by="g")


def test_vectors_of_files_are_in_one_column(tmp_path, refuses):
    for name in "vw":
        table = pa.table({"g": [1, 2], name: [[1.0, 2.0], [2.0, 3.0]]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with refuses("the vectors are in 'v' of .*v.parquet, but in 'w' of .*w.parquet: name a column in vectors"):
        cf.summarize(tmp_path, by="g")


def test_what_does_not_exist_is_not_an_unknown_format(tmp_path, refuses):
    with refuses("nothing does not exist", cf.FileError):
        cf.summarize(tmp_path / "nothing", by="g")


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError("Unable to allocate 3.00 TiB"),
        OSError(errno.EMFILE, "Too many open files"),
        RuntimeError("can't start new thread"),
        RuntimeError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
    ],
    ids=["memory", "files", "thread", "Arrow"],
)
def test_what_ran_out_is_not_called_damage_alone(problem, refuses):
    said = r"x\.npy cannot be read: too little memory, threads or open files"
    with refuses(said, cf.FileError), places.translate_errors("x.npy", "is damaged: write it again"):
        raise problem


def write_lake_table(folder, log):
    """A table whose first two files were replaced by the third, as its log says."""
    for number in range(3):
        write(folder / "data" / "site=A" / f"part-{number}.parquet", X[:20], site=["A"] * 20)
    (folder / log).parent.mkdir(parents=True)
    (folder / log).write_text("{}")


LOGS = {
    "Delta Lake": "_delta_log/00000000000000000000.json",
    "Iceberg": "metadata/00002-9c12d441-03fe-4693-9a96-a0705ddf69c1.metadata.json",
    "Hudi": ".hoodie/hoodie.properties",
}
PATTERNS = ("lake", "", "lake/data/site=A", "lake/data/*/*.parquet", "*/data", "lake/data/site=A/part-0.parquet")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("kind", LOGS)
def test_tables_with_a_log_are_refused_however_they_are_reached(kind, pattern, tmp_path, refuses):
    write_lake_table(tmp_path / "lake", LOGS[kind])
    write(tmp_path / "plain" / "x.parquet", X, site=SITE)
    with refuses(f"lake is a table of {kind}, .* no longer part of it: pass", cf.FileError):
        cf.summarize(f"{tmp_path}/{pattern}", by="site")
    assert len(cf.summarize(tmp_path / "plain", by="site")) == 3


@pytest.mark.parametrize("kind", LOGS)
def test_remote_tables_with_a_log_are_refused(kind, tmp_path, refuses):
    write_lake_table(tmp_path / "lake", LOGS[kind])
    system = fsspec.filesystem("memory")
    system.put(str(tmp_path / "lake"), f"/{kind}", recursive=True)
    for pattern in (kind, f"{kind}/data", f"{kind}/data/*/*.parquet"):
        with refuses(f"memory:/+{kind} is a table of {kind}", cf.FileError):
            cf.summarize(f"memory://{pattern}", by="site")


def test_tables_with_a_log_are_refused_behind_links_and_in_archives(tmp_path, refuses):
    write_lake_table(tmp_path / "lake", LOGS["Delta Lake"])
    (tmp_path / "files").symlink_to(tmp_path / "lake" / "data")
    (tmp_path / "copy").mkdir()
    for name in ("data", "_delta_log"):
        (tmp_path / "copy" / name).symlink_to(tmp_path / "lake" / name)
    shutil.make_archive(str(tmp_path / "lake"), "zip", tmp_path / "lake")
    for path in (f"{tmp_path}/files", f"{tmp_path}/files/*/*.parquet", f"zip://**/*.parquet::{tmp_path}/lake.zip"):
        with refuses("is a table of Delta Lake", cf.FileError):
            cf.summarize(path, by="site")
    with refuses("copy is a table of Delta Lake", cf.FileError):
        cf.summarize(tmp_path / "copy", by="site")


def test_the_command_line_names_a_query_for_tables_with_a_log(tmp_path):
    write_lake_table(tmp_path / "lake", LOGS["Delta Lake"])
    with pytest.raises(cf.FileError) as caught:
        cf.summarize(tmp_path / "lake", by="site")
    assert "delta_scan" in caught.value.render(lambda part: getattr(part, "typed", str(part)))


def test_other_metadata_does_not_make_a_folder_a_table(tmp_path):
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "study.metadata.json").write_text("{}")  # not what Iceberg writes
    write(tmp_path / "x.parquet", X, site=SITE)
    assert len(cf.summarize(tmp_path / "x.parquet", by="site")) == 3


# ---- folders of features


def save_slides(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        np.save(folder / f"{name}.npy", X)


def count_rows(path):
    return sum(len(entry.rows) for entry in sources.open_file(path, []).chunks())


def test_folders_behind_links_are_read_once(tmp_path):
    save_slides(tmp_path / "elsewhere" / "deep", "s1")
    save_slides(tmp_path / "lab", "s2")
    (tmp_path / "lab" / "more").symlink_to(tmp_path / "elsewhere")
    assert count_rows(tmp_path / "lab") == 2 * len(X)
    (tmp_path / "lab" / "again").symlink_to(tmp_path / "elsewhere" / "deep")
    (tmp_path / "lab" / "itself").symlink_to(tmp_path / "lab")
    (tmp_path / "elsewhere" / "up").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "lab", tmp_path / "lab" / "**" / "*.npy"):
        assert count_rows(path) == 2 * len(X)


def test_a_table_beside_arrays_is_left_out_by_name(tmp_path):
    save_slides(tmp_path, "s1", "s2")
    (tmp_path / "process_list_autogen.csv").write_text("slide_id,status\ns1,processed\ns2,processed\n")
    with pytest.warns(cf.CrossfusionWarning, match="process_list_autogen.csv") as caught:
        assert count_rows(tmp_path) == 2 * len(X)
    assert len(caught) == 1
    (tmp_path / "slides.csv").write_text("slide,site\ns1,A\ns2,B\n")
    with pytest.warns(cf.CrossfusionWarning, match="not read") as caught:
        found = cf.summarize(tmp_path, by="site", manifest=tmp_path / "slides.csv", on="slide")
    assert len(caught) == 1
    assert found.moments.count.tolist() == [len(X)] * 2


def test_the_same_slides_in_two_formats_are_not_read_twice(tmp_path, refuses):
    save_slides(tmp_path / "npy_files", "s1", "s2")
    (tmp_path / "h5_files").mkdir()
    for name in ("s1", "s2"):
        with h5py.File(tmp_path / "h5_files" / f"{name}.h5", "w") as file:
            file["features"] = X
    with refuses("the same vectors in two formats", cf.CrossfusionError):
        count_rows(tmp_path)
    assert count_rows(tmp_path / "h5_files") == count_rows(tmp_path / "**" / "*.npy") == 2 * len(X)
    for site, kind in (("A", "npy"), ("B", "h5")):
        (tmp_path / f"{kind}_files").rename(tmp_path / f"site={site}")
    assert count_rows(tmp_path) == 4 * len(X)
