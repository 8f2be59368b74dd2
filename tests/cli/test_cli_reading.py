"""What the command line reads: files, folders, patterns, URLs, queries and manifests, with every engine."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import LocalCluster

import crossfusion as cf
from crossfusion.cli import main, row_reader
from tests.helpers import PATIENCE

ROWS, DIM = 120, 4
rng = np.random.default_rng(9)
X = 1e3 + rng.normal(size=(ROWS, DIM)) + np.repeat([0, 1], 60)[:, None]
SITE = np.repeat(["A", "Ç"], 60)
TILE = np.array([f"t{k:03}" for k in range(ROWS)])
EXPECTED = cf.summarize(X, by={"site": SITE})
COMMAND = [sys.executable, "-c", "from crossfusion.cli import main; main()"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The same rows in a file, in two folders, and without their factors, which are in manifests."""
    folder = tmp_path_factory.mktemp("data")
    table = pa.table({"tile": TILE, "site": SITE, "v": pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), DIM)})
    pq.write_table(table, folder / "x.parquet")
    pq.write_table(table.drop_columns(["site"]), folder / "tiles.parquet")
    np.save(folder / "x.npy", X)
    for k, name in enumerate("ab"):
        (folder / name).mkdir()
        for half in range(2):
            start = 60 * k + 30 * half
            pq.write_table(table.slice(start, 30).drop_columns(["site"]), folder / name / f"{half}.parquet")
            np.save(folder / name / f"slide-{k}{half}.npy", X[start : start + 30])
    order = rng.permutation(ROWS)
    write_csv(folder / "by_order.csv", "site", SITE)
    write_csv(folder / "by_key.csv", "tile,site", TILE[order], SITE[order])
    write_csv(folder / "by_file.csv", "file,site", ["slide-00", "slide-01.npy", "b/slide-10", "slide-11"], "AAÇÇ")
    EXPECTED.write(folder / "s.parquet")
    return folder


def write_csv(path, header, *columns):
    path.write_text("\n".join([header, *(",".join(row) for row in zip(*columns, strict=True))]) + "\n")


@pytest.fixture
def run(capfd, monkeypatch, data):
    """Call the command line here, in the folder of the data; what it printed."""

    def call(*arguments, code=0, cwd=data):
        monkeypatch.chdir(cwd)
        with warnings.catch_warnings(), nullcontext() if code == 0 else pytest.raises(SystemExit, match=str(code)):
            main([*map(str, arguments)])
        return capfd.readouterr()

    return call


@pytest.fixture
def fails(run):
    """The one line that a bad call prints."""

    def call(*arguments):
        out, said = run(*arguments, code=2)
        assert (out, said.count("\n"), said[:13]) == ("", 1, "crossfusion: ")
        return said

    return call


def assert_same(target, expected=EXPECTED):
    summary = cf.read_summary(target)
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=1e-12)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=1e-12)


# --- files, folders, patterns, URLs, queries and manifests ------------------------------------------------------------

HALVES = ["--sql", "select * from 'x.parquet' where tile < 't050'", "--sql", "from 'x.parquet' where tile >= 't050'"]
READ = {
    "file": ["x.parquet"],
    "URL": ["file://{data}/x.parquet"],
    "query": ["--sql", "select * from 'x.parquet'"],
    "two queries": HALVES,
    "query in statements": ["--sql", "create temp table t as from 'x.parquet'; select site, v from t;"],
    "manifest by order": ["x.npy", "--manifest", "by_order.csv"],
    "manifest by order, pattern": ["[ab]/slide*.npy", "--manifest", "by_order.csv"],
    "manifest by order, several": ["a/slide-00.npy", "a/slide-01.npy", "b/*.npy", "--manifest", "by_order.csv"],
    "manifest by key": ["tiles.parquet", "--manifest", "by_key.csv", "--on", "tile"],
    "manifest by key, folders": ["a/*.parquet", "b/*.parquet", "--manifest", "by_key.csv", "--on", "tile"],
    "manifest by key, file and query": [
        "a/*.parquet", "--sql", "from 'b/*.parquet'", "--manifest", "by_key.csv", "--on", "tile",
    ],
    "manifest by file": ["[ab]/*.npy", "--manifest", "by_file.csv", "--on", "file"],
    "manifest by file, several": [
        "a/*.npy", "b/slide-10.npy", "b/slide-11.npy", "--manifest", "by_file.csv", "--on", "file",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("engine", ["auto", "local", "dask"])
def test_everything_that_can_be_read_gives_the_same_summary(name, engine, run, data, tmp_path):
    words = [word.format(data=data) for word in READ[name]]
    with dask.config.set(scheduler="threads"):
        out, said = run("summarize", *words, "--by", "site", "--engine", engine, "-o", tmp_path / "s.parquet")
    assert f"written to {tmp_path / 's.parquet'}" in out
    assert said == ""
    assert_same(tmp_path / "s.parquet")


@pytest.mark.parametrize("name", [name for name in READ if "several" not in name and "folders" not in name])
def test_a_matrix_of_everything_that_can_be_read(name, run, data):
    words = [word.format(data=data) for word in READ[name]]
    found = json.loads(run("matrix", *words, "--between", "site", "--json").out)
    expected = EXPECTED.pairwise("site").to_dict()
    assert found["labels"] == ["A", "Ç"]
    np.testing.assert_allclose(found["distance"], expected["distance"], rtol=1e-9)
    rows = json.loads(run("matrix", *words, "--between", "site", "--level", "0.9", "--json").out)
    np.testing.assert_allclose(rows["distance"], expected["distance"], rtol=1e-9)
    assert rows["lower"][0][1] < found["unbiased"][0][1] < rows["upper"][0][1]


A, B = "select v from 'x.parquet' where site = 'A'", "select v from 'x.parquet' where site = 'Ç'"


@pytest.mark.parametrize(
    "words",
    [
        ["--sql", A, "--sql", B],
        ["a/*.parquet", "--sql", B],
        ["a/*.parquet", "b/*.parquet"],
        ["a/*.npy", "file://{data}/b/*.npy"],
    ],
    ids=["two queries", "a pattern and a query", "two patterns", "a pattern and a URL"],
)
def test_compare_takes_files_and_queries(words, run, data):
    found = json.loads(run("compare", *(word.format(data=data) for word in words), "--json").out)
    assert found["distance"] == pytest.approx(cf.cfd(X[:60], X[60:]).distance, rel=1e-9)
    assert found["counts"] == {"a": 60, "b": 60}


def test_compare_of_two_folders(run, data, tmp_path):
    for name, rows in (("january", X[:60]), ("february", X[60:])):
        (tmp_path / name).mkdir()
        for k in range(3):
            np.save(tmp_path / name / f"{k}.npy", rows[20 * k : 20 * (k + 1)])
    out, _ = run("compare", "january", "february/", cwd=tmp_path)
    assert "a: january   b: february" in out
    for more in ([], ["--level", "0.9"]):
        found = json.loads(run("compare", "january", "february/", *more, "--json", cwd=tmp_path).out)
        assert found["distance"] == pytest.approx(cf.cfd(X[:60], X[60:]).distance, rel=1e-9)


def test_rows_of_queries_are_appended(run, data, tmp_path):
    target = tmp_path / "s.parquet"
    for k in range(0, 4, 2):
        out, _ = run("summarize", *HALVES[k : k + 2], "--by", "site", "--append", "-o", target)
    assert f"70 rows added to {target}" in out
    assert_same(target)


def test_keys_without_vectors_are_named_in_a_warning(run, data, tmp_path):
    words = ["--manifest", "by_key.csv", "--on", "tile", "--by", "site", "-o", tmp_path / "s.parquet"]
    _, said = run("summarize", "a/*.parquet", "b/1.parquet", *words)
    lacking = f"{', '.join(TILE[60:65])} and 25 more"
    assert said == f"crossfusion: warning: by_key.csv has 30 keys in 'tile' without vectors: {lacking}\n"
    words[1:4:2] = ["by_file.csv", "file"]
    _, said = run("summarize", "a/*.npy", *words)
    assert said == "crossfusion: warning: by_file.csv has 2 keys in 'file' without vectors: b/slide-10, slide-11\n"


# --- engines ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address():
    """Where a scheduler of two worker processes listens."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.xdist_group("dask")
@pytest.mark.parametrize("name", ["file", "query", "manifest by order", "manifest by key", "manifest by file"])
def test_a_dask_scheduler_is_named_by_its_address(name, address, run, data, tmp_path):
    words = [str(data / word) if "." in word and " " not in word else word for word in READ[name]]
    words = [word.replace("'x.parquet'", f"'{data}/x.parquet'") for word in words]  # workers are in another folder
    run("summarize", *words, "--by", "site", "--engine", address, "-o", tmp_path / "s.parquet")
    assert_same(tmp_path / "s.parquet")


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:port", "tcp://", "nonsense://127.0.0.1:8786", "tls://127.0.0.1:1", "tcp://127.0.0.1:1"]
)
def test_an_address_where_no_scheduler_is(address, fails, monkeypatch):
    monkeypatch.setattr(row_reader, "CONNECT_SECONDS", 0.5)
    with dask.config.set({"distributed.comm.timeouts.connect": f"{PATIENCE}s"}):  # which would be waited for
        said = fails("matrix", "x.parquet", "--between", "site", "--engine", address)
    assert f"--engine {address} is not a Dask scheduler that answers (" in said
    assert said.endswith("): write tcp://host:port of one\n")


# --- what is refused --------------------------------------------------------------------------------------------------

BY = ["--by", "site", "-o", "{out}"]
NO_ENGINE = (
    "--engine nonsense is not a known engine: choose auto, local, dask, spark, or write tcp://host:port of a Dask"
)
REFUSED = {
    "no engine": (["summarize", "x.parquet", *BY, "--engine", "nonsense"], NO_ENGINE),
    "no engine for a summary": (["matrix", "s.parquet", "--between", "site", "--engine", "nonsense"], NO_ENGINE),
    "no engine for rows": (
        ["matrix", "x.parquet", "--between", "site", "--level", "0.9", "--engine", "nonsense"],
        NO_ENGINE,
    ),
    "rows from another engine": (
        ["matrix", "x.parquet", "--between", "site", "--level", "0.9", "--engine", "dask"],
        "--engine cannot be used where all rows are needed at once: name --units, or leave out --level and"
        " --permutations",
    ),
    "nothing to summarize": (["summarize", *BY], "there is nothing to read: name a file, or give a query with --sql"),
    "nothing for a matrix": (["matrix", "--between", "site"], "there is nothing to read"),
    "vectors of arrays": (
        ["compare", "x.npy", "x.npy", "--vectors", "v"],
        "--vectors v names columns, but x.npy has none: leave it out",
    ),
    "vectors that are a factor": (
        ["matrix", "x.parquet", "--between", "site", "--vectors", "site"],
        "'site' is in --vectors and is a factor too: leave it out of --vectors",
    ),
    "an option that no distance has": (
        ["compare", "x.npy", "x.npy", "--distance", "mmd,energy", "--option", "bandwith=2"],
        "--distance mmd,energy has no option 'bandwith': did you mean 'bandwidth'?",
    ),
    "a page where nothing can be made": (
        ["report", "x.parquet", "--between", "site", "-o", "/proc/x.html"],
        "/proc/x.html cannot be written (No such file or directory): check the space and rights there",
    ),
    "a file as the folder of the demo": (["demo", "-o", "x.npy"], "x.npy is a file: name a folder"),
    "a folder that does not exist": (["matrix", "none/", "--between", "site"], "none/ does not exist: check the path"),
    "how a summary is read": (
        ["matrix", "s.parquet", "--between", "site", "--nan", "drop"],
        "s.parquet is a summary, whose rows have been read: leave out --nan and --engine",
    ),
    "points of a summary": (
        ["projection", "s.parquet", "--between", "site", "--points", "9"],
        "s.parquet is a summary, which has no rows to draw: leave out --points and --seed",
    ),
    "a seed that is none": (
        ["projection", "x.parquet", "--between", "site", "--seed", "-1"],
        "--seed -1 must be a whole number, 0 or more",
    ),
    "adjusted for nothing": (
        ["matrix", "x.parquet", "--between", "site", "--adjust", "bh"],
        "--adjust goes with --permutations: give both, or leave it out",
    ),
    "a seed of nothing": (["compare", "x.npy", "x.npy", "--seed", "3"], "--seed goes with --permutations"),
    "a seed of a distance": (
        ["compare", "x.npy", "x.npy", "--distance", "sliced_wasserstein", "--seed", "3"],
        "--seed goes with --permutations, and is an --option of distances",
    ),
    "a level without units": (
        ["drift", "x.parquet", "--time", "site", "--reference", "previous", "--level", "0.9"],
        "--level goes with --units",
    ),
    "trimmed and with an interval": (
        ["compare", "x.npy", "x.npy", "--trim", "0.1", "--level", "0.9"],
        "--trim cannot be combined with --level, --permutations or --fused-within",
    ),
    "all distances and one that is none": (
        ["compare", "x.npy", "x.npy", "--distance", "all,nosuch"],
        "crossfusion has no distance 'nosuch'",
    ),
    "an option twice": (
        ["compare", "x.npy", "x.npy", "--distance", "mmd", "--option", "bandwidth=1", "--option", "bandwidth=2"],
        "--option gives 'bandwidth' twice: give it once",
    ),
    "an option without a name": (
        ["compare", "x.npy", "x.npy", "--distance", "mmd", "--option", "=2"],
        "--option =2 is not NAME=NUMBER: write epsilon=0.5",
    ),
    "a tag that is a factor": (
        ["summarize", "x.parquet", *BY, "--tag", "site=3"],
        "--tag has 'site', which is a factor too: rename the tag",
    ),
    "data of a page, and the page where it cannot be": (
        ["report", "x.parquet", "--between", "site", "--json", "-o", "none/x.html"],
        "none/x.html cannot be written: there is no folder none",
    ),
    "one to compare": (["compare", "x.npy"], "two files or queries, not 1"),
    "three to compare": (["compare", "x.npy", "x.npy", "--sql", A], "two files or queries, not 3"),
    "summary and query": (["matrix", "s.parquet", "--between", "site", "--sql", A], "leave out --sql and --manifest"),
    "summary and manifest": (["matrix", "s.parquet", "--between", "site", "--manifest", "by_key.csv"], "leave out"),
    "summary as rows": (["summarize", "s.parquet", *BY], "s.parquet is a summary already"),
    "summary and query to summarize": (["summarize", "s.parquet", "--sql", A, *BY], "s.parquet is a summary already"),
    "summary to compare": (["compare", "s.parquet", "--sql", A], "s.parquet is a summary already"),
    "empty query": (["summarize", "--sql", " ", *BY], "--sql ' ' is not a query: pass a text that ends in a select"),
    "bad query": (["matrix", "--sql", "selec 1", "--between", "site"], "--sql cannot be run by DuckDB (Parser Error"),
    "unknown table": (["compare", "x.npy", "--sql", "from nowhere"], "nowhere does not exist"),
    "no rows": (["compare", "x.npy", "--sql", f"{A} and false"], "the query has no rows"),
    "a factor the query lacks": (["summarize", "--sql", A, *BY], "the query has no column 'site'"),
    "on alone": (["summarize", "x.parquet", *BY, "--on", "tile"], "--on tile names the key column of a manifest"),
    "on alone, query": (["summarize", "--sql", "from 'x.parquet'", *BY, "--on", "tile"], "give --manifest too"),
    "on alone, summary": (["matrix", "s.parquet", "--between", "site", "--on", "tile"], "give --manifest too"),
    "no manifest": (["summarize", "x.npy", *BY, "--manifest", "none.csv"], "none.csv does not exist"),
    "no such key": (
        ["summarize", "tiles.parquet", *BY, "--manifest", "by_key.csv", "--on", "til"],
        "by_key.csv has no column 'til': did you mean 'tile'?",
    ),
    "manifest of other length": (
        ["summarize", "a/slide-00.npy", *BY, "--manifest", "by_order.csv"],
        "by_order.csv has 120 rows for 30 vectors: without --on, they must be as many",
    ),
    "query longer than manifest": (
        ["summarize", "--sql", "select v from 'x.parquet' limit 100", *BY, "--manifest", "by_order.csv"],
        "by_order.csv has 120 rows for 100 vectors: without --on, they must be as many",
    ),
    "two queries by order": (["summarize", "--sql", A, "--sql", B, *BY, "--manifest", "by_order.csv"],
        "cannot be counted in by_order.csv: name a key in --on"),
    "query without the key": (
        ["summarize", "--sql", A, *BY, "--manifest", "by_key.csv", "--on", "tile"],
        "--on tile is not a column of the vectors' table, and there is no file to match",
    ),
    "keys that the manifest lacks": (
        ["summarize", "tiles.parquet", *BY, "--manifest", "short.csv", "--on", "tile"],
        "short.csv lacks 118 of the vectors' keys in 'tile' (t002, t003, ",
    ),
    "keys that the manifest lacks, query": (
        ["matrix", "--sql", "from 'tiles.parquet'", "--between", "site", "--manifest", "short.csv", "--on", "tile"],
        "short.csv lacks 118 of the vectors' keys in 'tile' (t002, t003, ",
    ),
    "files that the manifest lacks": (
        ["summarize", "[ab]/*.npy", "x.npy", *BY, "--manifest", "by_file.csv", "--on", "file"],
        "by_file.csv names 1 of the files in 'file' neither by path nor by name (x.npy)",
    ),
    "factor in neither": (["summarize", "x.npy", "--by", "lab", "-o", "{out}", "--manifest", "by_order.csv"],
        "--by lab is not a column of by_order.csv (there are site), nor of the vectors' own table"),
    "empty pattern": (["summarize", "none*.parquet", *BY], "none*.parquet has no file that it matches"),
    "folder that is not": (["compare", "a", "c"], "c does not exist"),
    "unknown URL": (["summarize", "nonsense://x.parquet", *BY], "nonsense://x.parquet cannot be read"),
    "other rows to append": (["summarize", "x.parquet", "--by", "tile", "--append", "-o", "s.parquet"], "s.parquet"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_said_in_one_line(name, fails, data, tmp_path):
    write_csv(data / "short.csv", "tile,site", TILE[:2], SITE[:2])
    words, message = REFUSED[name]
    said = fails(*(word.format(out=tmp_path / "out.parquet") for word in words))
    assert message in said
    assert not any(tmp_path.iterdir())


def test_the_command_itself_says_one_line_too(data, tmp_path):
    """In a process of its own, where nothing may be printed at the end either."""
    for name in ("no engine", "bad query", "keys that the manifest lacks"):
        words = [word.format(out=tmp_path / "out.parquet") for word in REFUSED[name][0]]
        done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=data, check=False)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    words = ["matrix", "x.parquet", "--between", "site", "--engine", "tcp://127.0.0.1:port"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=data, check=False, timeout=PATIENCE)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


# --- progress and interruption ----------------------------------------------------------------------------------------

ENDLESS = "select range % 3 as site, list_resize([range::double], 1024, 1.5) as v from range(1000000000000)"


def long_file(folder):
    """A file of 64 GB that takes no room, as it has never been written to."""
    (folder / "site=A").mkdir()
    np.lib.format.open_memmap(folder / "site=A" / "x.npy", "w+", np.float32, (2**30, 16))
    return "site=A/x.npy"


@pytest.mark.parametrize("known", [True, False], ids=["number known", "number unknown"])
def test_a_terminal_shows_the_rate_until_interrupted(known, tmp_path):
    words = [long_file(tmp_path)] if known else ["--sql", ENDLESS]
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "24"}
    process = subprocess.Popen(
        [*COMMAND, "summarize", *words, "--by", "site", "-o", "s.parquet"],
        stdin=follower, stdout=follower, stderr=follower, env=environment, cwd=tmp_path,
    )  # fmt: skip
    os.close(follower)
    try:
        text = read_until(leader, "rows/s")
        process.send_signal(signal.SIGINT)
        rest = read_until(leader, None)
        assert process.wait(60) == 130
    finally:
        process.kill()
        os.close(leader)
    assert (f" of {2**30:,} rows" in text) == known
    assert (" of " in text) == known
    assert ("-:--:--" in text or "0:" in text) == known  # time left
    assert rest.rstrip().splitlines()[-1].endswith("crossfusion: interrupted; no partial files are left behind")
    assert "Traceback" not in rest
    left = {path.suffix for path in tmp_path.iterdir() if path.name != "site=A"}
    assert left <= {".resume"}  # which a slow machine may have come to keep


def read_until(terminal, word):
    """What a terminal shows, up to a word or to the end."""
    text, deadline = b"", time.monotonic() + PATIENCE
    while time.monotonic() < deadline and (word is None or word not in text.decode("utf-8", "replace")):
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                text += os.read(terminal, 65536)
            except OSError:  # the last user of the terminal is gone
                break
    assert word is None or word in text.decode()
    return text.decode()


@pytest.mark.parametrize("engine", ["local", "dask"])
def test_an_interrupted_read_leaves_one_line_and_no_file(engine, tmp_path):
    query = f"copy (select 1) to '{tmp_path}/begun.csv'; {ENDLESS}"
    words = ["summarize", "--sql", query, "--by", "site", "--engine", engine, "--append", "-o", "s.parquet"]
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True
    )
    wait_for(tmp_path / "begun.csv")
    time.sleep(2)  # it reads now
    try:
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert said == "crossfusion: interrupted; no partial files are left behind\n"
    assert [path.name for path in tmp_path.iterdir()] == ["begun.csv"]


def wait_for(path: Path):
    deadline = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.exists()


def test_a_pipe_stays_quiet(data, tmp_path):
    words = ["summarize", "--sql", "from 'x.parquet'", "--by", "site", "-o", tmp_path / "s.parquet"]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, cwd=data, check=True)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.splitlines()[-1] == f"written to {tmp_path / 's.parquet'}"


def test_archives_without_factors(tmp_path, run):
    rows = np.random.default_rng(0).normal(size=(40, 3))
    for site, shift in (("A", 0), ("B", 2)):
        (tmp_path / f"site={site}").mkdir()
        np.savez(tmp_path / f"site={site}/x.npz", x=rows + shift)
    files = [str(tmp_path / f"site={site}/x.npz") for site in "AB"]
    expected = cf.cfd(rows, rows + 2).distance
    assert json.loads(run("compare", *files, "--json").out)["distance"] == pytest.approx(expected)
    found = json.loads(run("matrix", str(tmp_path), "--between", "site", "--json").out)
    assert found["distance"][0][1] == pytest.approx(expected)


def test_vectors_of_a_summary_are_chosen_already(tmp_path, fails):
    path = tmp_path / "s.parquet"
    cf.summarize(np.eye(4), by={"site": list("AABB")}).write(path)
    assert "leave out --vectors" in fails("matrix", str(path), "--between", "site", "--vectors", "d*")
