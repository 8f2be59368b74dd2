"""The command as a user runs it: a process of its own."""

import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion._base import limits_text, number_text, pvalue_text
from crossfusion.cli import NO_COMMAND
from crossfusion.moments import kernel
from tests.helpers import PATIENCE
from tests.helpers.command_line import COMMAND, fails, on_terminal, run, run_json


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two arrays, a table of both, and its summary."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(120, 8)), rng.normal(0.7, size=(80, 8))
    x = np.concatenate([a, b])
    np.save(folder / "a.npy", a)
    np.save(folder / "b.npy", b)
    factors = {
        "site": np.repeat(["A", "B"], [120, 80]),
        "scanner": rng.choice(["s1", "s2", "s3"], 200),
        "label": rng.integers(0, 2, 200),
        "patient": rng.integers(0, 9, 200),
    }
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 8)
    pq.write_table(pa.table(factors | {"embedding": vectors}), folder / "x.parquet")
    header = [*factors, *(f"dim_{k}" for k in range(8))]
    lines = [",".join(map(str, [*(v[i] for v in factors.values()), *x[i]])) for i in range(200)]
    (folder / "x.csv").write_text("\n".join([",".join(header), *lines]))
    cf.summarize(x, by=factors).write(folder / "s.parquet")
    return folder


def test_compare_prints_the_fields_of_a_fusion(data):
    a, b = np.load(data / "a.npy"), np.load(data / "b.npy")
    for options, expected in {
        (): cf.cfd(a, b),
        ("--weights", "balanced"): cf.cfd(a, b, weights="balanced"),
        ("--trim", "0.05"): cf.cfd(a, b, trim=0.05),
    }.items():
        found = run_json("compare", data / "a.npy", data / "b.npy", *options)
        assert list(found) == list(expected.to_dict())
        assert found["distance"] == pytest.approx(expected.distance, rel=1e-12)
        assert found["unbiased"] == pytest.approx(expected.unbiased, rel=1e-12)
        assert found["counts"] == expected.counts


def test_compare_takes_any_known_file(data):
    same = run_json("compare", data / "x.parquet", data / "x.parquet")
    assert same["distance"] == 0.0
    text = run_json("compare", data / "x.csv", data / "x.parquet", "--vectors", "[de][im]*", "--by-position")
    assert text["distance"] == pytest.approx(0, abs=1e-25)


def test_csv_does_not_run_names_as_formulas(tmp_path):
    names = ["=1+1", "+1", "-1", "@a", "\tb", "\rc", "tumor", "a=b"]
    x = np.arange(32.0).reshape(16, 2) ** 2
    np.savez(tmp_path / "x.npz", x=x, site=np.repeat(names, 2))
    text = run("matrix", tmp_path / "x.npz", "--between", "site", "--csv").stdout
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    shown = {name for row in rows for name in row[:2]}
    assert shown == {"'=1+1", "'+1", "'-1", "'@a", r"\tb", r"\rc", "tumor", "a=b"}
    assert header[:2] == ["group_a", "group_b"]
    assert all(float(row[2]) >= 0 for row in rows)


def test_compare_by_other_distances(data):
    a, b = np.load(data / "a.npy"), np.load(data / "b.npy")
    files = data / "a.npy", data / "b.npy"
    found = run_json("compare", *files, "--distance", "cfd,mmd", "--distance", "wasserstein")
    assert found["counts"] == {"a": 120, "b": 80}
    assert list(found["distances"]) == ["cfd", "mmd", "wasserstein"]
    for name, value in found["distances"].items():
        assert value == pytest.approx(cf.distance(name, a, b), rel=1e-9)
    lines = run("compare", *files, "--distance", "all").stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == list(cf.distances)


def test_options_go_to_the_distances_that_have_them(data):
    a, b = np.load(data / "a.npy"), np.load(data / "b.npy")
    options = ("--option", "epsilon=5", "--option", "bandwidth=1.5", "--option", "seed=3")
    found = run_json(
        "compare", data / "a.npy", data / "b.npy", "--distance", "mmd,sinkhorn,sliced_wasserstein", *options
    )
    assert found["distances"]["mmd"] == pytest.approx(cf.distance("mmd", a, b, bandwidth=1.5), rel=1e-9)
    assert found["distances"]["sinkhorn"] == pytest.approx(cf.distance("sinkhorn", a, b, epsilon=5), rel=1e-9)
    sliced = cf.distance("sliced_wasserstein", a, b, seed=3)
    assert found["distances"]["sliced_wasserstein"] == pytest.approx(sliced, rel=1e-9)


def test_all_distances_of_one_row_are_those_that_are_defined(data, tmp_path):
    np.save(tmp_path / "one.npy", np.zeros((1, 8)))
    done = run("compare", data / "a.npy", tmp_path / "one.npy", "--distance", "all", "--json")
    found = json.loads(done.stdout)["distances"]
    assert [name for name, value in found.items() if value is None] == ["mmd2_unbiased", "classifier"]
    assert done.stderr.count("warning: ") == 2
    one = tmp_path / "one.npy"
    assert "cfd_unbiased is undefined" in fails("compare", one, one, "--distance", "cfd_unbiased")


def test_compare_by_other_distances_can_drop_rows(bad):
    rows = np.load(bad / "nan.npy")
    done = run("compare", bad / "nan.npy", bad / "b.npy", "--distance", "energy", "--nan", "drop", "--json")
    expected = cf.distance("energy", rows[np.isfinite(rows).all(axis=1)], np.load(bad / "b.npy"))
    assert json.loads(done.stdout)["distances"]["energy"] == pytest.approx(expected, rel=1e-12)
    assert "warning: " in done.stderr


def test_infinity_is_a_string_in_json(tmp_path):
    for name, value in (("a.npy", 0.0), ("b.npy", 1.0)):
        np.save(tmp_path / name, np.full((3, 2), value))
    found = run_json("compare", tmp_path / "a.npy", tmp_path / "b.npy")
    assert found["distance"] == "inf"
    assert found["score"] == 0.0


def test_summarize_writes_what_the_library_writes(data, tmp_path):
    for file in ("x.parquet", "x.csv"):
        target = tmp_path / f"{file}.parquet"
        done = run("summarize", data / file, "--by", "site,scanner", "--by", "label,patient", "-o", target)
        assert f"written to {target}" in done.stdout
        written, expected = cf.read_summary(target), cf.read_summary(data / "s.parquet")
        assert written.keys.to_pylist() == expected.keys.to_pylist()
        np.testing.assert_allclose(written.moments.mean, expected.moments.mean, rtol=1e-10, atol=1e-12)


def test_summarize_of_several_files_and_small_groups(data, tmp_path):
    target, copy = tmp_path / "s.parquet", tmp_path / "copy.parquet"
    shutil.copy(data / "x.parquet", copy)
    done = run("summarize", data / "x.parquet", copy, "--by", "site,patient", "--min-count", "20", "-o", target)
    summary = cf.read_summary(target)
    assert summary.moments.count.min() >= 20
    assert "groups of fewer than 20 rows are left out" in done.stderr
    facts = run_json("summarize", data / "x.parquet", "--by", "site", "-o", target)
    assert facts == {
        "groups": 2,
        "rows": 200.0,
        "dim": 8,
        "features": None,
        "factors": ["site"],
        "lens": None,
        "tags": {},
        "dropped": 0,
        "output": str(target),
    }


@pytest.mark.parametrize("file", ["s.parquet", "x.parquet", "x.csv"])
def test_matrix_of_files_and_summaries(data, file):
    summary = cf.read_summary(data / "s.parquet")
    expected = summary.pairwise("scanner", given="label")
    vectors = ["--vectors", "dim_*"] if file == "x.csv" else []
    call = ["matrix", data / file, "--between", "scanner", "--given", "label", *vectors]
    found = run_json(*call)
    assert found["labels"] == ["s1", "s2", "s3"]
    np.testing.assert_allclose(found["distance"], expected.distance, rtol=1e-9)
    lines = run(*call, "--csv").stdout.splitlines()
    assert lines[0] == "group_a,group_b,unbiased,distance,overlap"
    assert float(lines[1].split(",")[2]) == pytest.approx(expected.unbiased[0, 1], rel=1e-9)
    assert len(lines) == 4


@pytest.mark.parametrize("level", [(), ("--level", "0.99")])
@pytest.mark.parametrize("units", [(), ("--units", "patient")])
def test_matrix_says_which_pairs_are_fused_within_a_margin(tmp_path, units, level):
    """As `Fusion.fused_within` of each pair alone, at any level of the intervals that are shown."""
    draw, patient = np.random.default_rng(1), np.arange(480) // 8
    site = np.array(["A", "B", "C"])[patient // 20]
    x = draw.normal(size=(480, 4)) + 0.1 * draw.normal(size=(60, 4))[patient] + 0.8 * (site == "C")[:, None]
    np.savez(tmp_path / "x.npz", x=x, site=site, patient=patient)
    call = ["matrix", tmp_path / "x.npz", "--between", "site", "--fused-within", "0.03", *units, *level]
    found = run_json(*call)
    two = site != "C"
    alone = cf.cfd(x[two], labels=site[two], units=patient[two] if units else None, weights="balanced", level=0.95)
    assert found["level"] == (float(level[1]) if level else 0.9)
    assert found["fused_within"][0][1] is alone.fused_within(0.03) is True
    assert found["fused_within"][0][2] is found["fused_within"][1][2] is False
    assert "shown for 1 of 3 pairs, by" in run(*call).stdout
    assert [line.rpartition(",")[2] for line in run(*call, "--csv").stdout.splitlines()] == [
        "fused_within", "True", "False", "False",
    ]  # fmt: skip


def test_pairs_of_centered_groups_are_not_said_to_be_fused(tmp_path):
    x, site = np.random.default_rng(1).normal(size=(300, 4)), np.arange(300) % 3
    x -= np.array([x[site == k].mean(axis=0) for k in range(3)])[site]
    np.savez(tmp_path / "x.npz", x=x, site=site)
    call = ["matrix", tmp_path / "x.npz", "--between", "site", "--fused-within", "0.5"]
    assert run_json(*call)["fused_within"] == [[None] * 3] * 3
    assert "shown for 0 of 3 pairs (no answer for 3)" in run(*call).stdout


def test_hierarchy_and_attribution(data):
    summary = cf.read_summary(data / "s.parquet")
    levels = run_json("hierarchy", data / "s.parquet", "--factors", "site,scanner")
    assert levels == json.loads(json.dumps(summary.hierarchy(["site", "scanner"]).to_dict()))
    for over in ("features", "patient"):
        found = run_json("attribution", data / "s.parquet", "--between", "site", "--over", over)
        assert sum(found["share"]) == pytest.approx(1)
        assert found["labels"] == list(summary.attribution("site", over=over).labels)
    table = run("attribution", data / "s.parquet", "--between", "site", "--given", "label", "--top", "3").stdout
    assert "largest first, 3 of 8" in table
    assert len(table.splitlines()) == 7
    assert table.splitlines()[-2].startswith("variance within groups: effective dimension ")
    assert table.splitlines()[-1].startswith("all groups: ")


def test_many_groups_show_the_pairs_farthest_apart_on_a_narrow_terminal(data):
    text = on_terminal("matrix", data / "s.parquet", "--between", "patient,scanner")
    assert "farthest of" in text


@pytest.mark.parametrize("given", [(), ("--given", "label")])
def test_matrix_cautions_once_about_features_that_hide_others(tmp_path, given):
    draw, site = np.random.default_rng(0), np.arange(400) % 2
    x = draw.normal(size=(400, 64)) + 0.8 * site[:, None] * (np.arange(64) < 16)
    np.savez(tmp_path / "x.npz", x=x * np.where(np.arange(64) == 63, 60, 1), site=site, label=np.arange(400) // 2 % 2)
    shown = run("matrix", tmp_path / "x.npz", "--between", "site", *given).stdout
    assert shown.count("caution: feature 63 holds") == 1


def test_tables_are_plain_in_a_pipe(data):
    done = run("matrix", data / "s.parquet", "--between", "site")
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.splitlines()[0] == "Cross-Fusion Distance between site (balanced weights, unbiased)"


def test_tables_are_coloured_on_a_terminal_and_progress_shows(data):
    text = on_terminal("matrix", data / "x.parquet", "--between", "site")
    assert "\x1b[" in text
    assert "reading" in text
    assert "rows" in text


def test_numbers_are_never_cut_on_a_terminal(tmp_path):
    """Long names give way, and bars go first."""
    draw = np.random.default_rng(0)
    site = np.array(["Hamamatsu NanoZoomer XR", "Leica Aperio CS2 (north)", "Philips Ultra Fast Scanner"])
    where = np.repeat(site, 40)
    np.savez(tmp_path / "x.npz", x=draw.normal(size=(120, 3)), site=where, week=np.tile(np.arange(10), 12))
    call = ["matrix", tmp_path / "x.npz", "--between", "site", "--level", "0.95", "--permutations", "99"]
    text = re.sub(r"\x1b\[[\d;]*m", "", on_terminal(*call))
    found = run_json(*call)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for name in ("distance", "unbiased"):
            assert number_text(found[name][i][j]) in text
        assert limits_text(found["lower"][i][j], found["upper"][i][j]) in text
        assert pvalue_text(found["pvalue"][i][j]) in text
    assert "Hamamatsu NanoZoomer XR" not in text
    assert "…" in text
    call = ["drift", tmp_path / "x.npz", "--time", "week", "--reference", "first:4", "--given", "site"]
    text = re.sub(r"\x1b\[[\d;]*m", "", on_terminal(*call))
    assert all(number_text(value) in text for value in run_json(*call)["distance"])
    assert "label shift" in text


def test_wide_characters_take_two_places_on_a_terminal(tmp_path):
    site = np.repeat(["東京大学医学部附属病院第一", "東京大学医学部附属病院第二", "大阪"], 10)
    cf.summarize(np.random.default_rng(0).normal(size=(30, 3)), by={"site": site}).write(tmp_path / "s.parquet")
    text = on_terminal("projection", tmp_path / "s.parquet", "--between", "site")
    assert all(name in text for name in set(site.tolist()))


def test_the_columns_taken_from_a_text_file_are_named_on_a_terminal(data):
    call = ["matrix", data / "x.csv", "--between", "site"]
    assert "vectors are its 10 numeric columns, label, patient, dim_0, ..., dim_7" in on_terminal(*call)
    piped = run(*call).stderr
    assert piped.count("\n") == 2
    assert "label, patient in the vectors although they hold whole numbers" in piped
    assert "scanner left out of the vectors" in piped


HOSTILE = ["[red]x[/red]", "\x1b[31mred", "a\nb", "<b>", "\u202ertl"]


def test_hostile_names_stay_text(tmp_path):
    x = np.random.default_rng(0).normal(size=(20, 3))
    cf.summarize(x, by={"g": HOSTILE * 4}).write(tmp_path / "s.parquet")
    plain = run("matrix", tmp_path / "s.parquet", "--between", "g").stdout
    assert "\x1b" not in plain
    assert "[red]x[/red]" in plain
    assert "a\\nb" in plain
    assert "\\x1b[31mred" in plain
    assert "\u202e" not in plain
    coloured = on_terminal("matrix", tmp_path / "s.parquet", "--between", "g")
    assert "\x1b[31mred" not in coloured
    assert "red]x[/red]" in coloured
    assert run_json("matrix", tmp_path / "s.parquet", "--between", "g")["labels"] == sorted(HOSTILE)


BAD_CALLS = {
    "missing file": (["compare", "a.npy", "nothing.npy"], "nothing.npy does not exist"),
    "folder": (["compare", "a.npy", "hollow"], "no file below it"),
    "one file": (["compare", "a.npy"], "takes two files or queries, not 1"),
    "unknown option": (["compare", "a.npy", "b.npy", "--distnace", "x"], "No such option"),
    "unknown command": (["compar"], "No such command"),
    "unknown weights": (["compare", "a.npy", "b.npy", "--weights", "equal"], "--weights equal"),
    "trim out of range": (["compare", "a.npy", "b.npy", "--trim", "0.7"], "--trim 0.7"),
    "trim not a number": (["compare", "a.npy", "b.npy", "--trim", "lots"], "not a valid float"),
    "mismatched": (["compare", "a.npy", "wide.npy"], "features differ"),
    "one dimension": (["compare", "flat.npy", "b.npy"], "two-dimensional"),
    "NaN": (
        ["compare", "nan.npy", "b.npy"],
        "1 of 120 rows, the first in row 3, feature 2 (from 0): fix them, or leave those rows out with --nan drop",
    ),
    "NaN and the way out": (["compare", "nan.npy", "b.npy"], "leave those rows out with --nan drop"),
    "empty": (["compare", "empty.npy", "b.npy"], "no rows"),
    "truncated": (["compare", "cut.npy", "b.npy"], "not a readable .npy"),
    "missing column": (["matrix", "x.parquet", "--between", "sites"], "did you mean 'site'"),
    "missing factor": (["matrix", "s.parquet", "--between", "sites"], "did you mean 'site'"),
    "single group": (["matrix", "x.parquet", "--between", "one"], "only one group"),
    "factor twice": (["matrix", "s.parquet", "--between", "site", "--given", "site"], "in --between and in --given"),
    "two formats": (["matrix", "s.parquet", "--between", "site", "--json", "--csv"], "cannot be combined"),
    "not Parquet": (["matrix", "bad.parquet", "--between", "site"], "not a readable Parquet"),
    "not writable": (["summarize", "x.parquet", "--by", "site", "-o", "no/such/folder/s.parquet"], "cannot be written"),
    "no --by": (["summarize", "x.parquet", "-o", "y.parquet"], "Missing option '--by'"),
    "top": (["attribution", "s.parquet", "--between", "site", "--top", "0"], "--top 0"),
    "over": (["attribution", "s.parquet", "--between", "site", "--over", "site"], "--over site"),
    "empty name": (["summarize", "x.parquet", "--by", ",", "-o", "y.parquet"], "--by has an empty name"),
    "name twice": (["summarize", "x.parquet", "--by", "site,site", "-o", "y.parquet"], "names 'site' twice"),
    "name twice, of rows": (["test", "x.parquet", "--between", "site,site"], "--between names 'site' twice"),
    "column twice": (["matrix", "twice.csv", "--between", "site"], "2 columns called 'v'"),
    "too many pairs": (["matrix", "many.npz", "--between", "g"], "too many pairs"),
    "unknown distance": (["compare", "a.npy", "b.npy", "--distance", "wassserstein"], "did you mean 'wasserstein'"),
    "distance and trim": (
        ["compare", "a.npy", "b.npy", "--distance", "cfd", "--trim", "0.1"],
        "cannot be combined with --distance",
    ),
    "distance of NaN": (["compare", "nan.npy", "b.npy", "--distance", "mmd"], "leave those rows out with --nan drop"),
    "distance mismatched": (["compare", "a.npy", "wide.npy", "--distance", "mmd"], "features differ"),
    "distance of nothing": (["compare", "empty.npy", "b.npy", "--distance", "mmd"], "no rows"),
    "option of no distance": (["compare", "a.npy", "b.npy", "--distance", "mmd", "--option", "epsilon=1"], "no option"),
    "option without value": (
        ["compare", "a.npy", "b.npy", "--distance", "mmd", "--option", "bandwidth"],
        "NAME=NUMBER",
    ),
    "option without distance": (["compare", "a.npy", "b.npy", "--option", "epsilon=1"], "goes with --distance"),
    "option out of range": (
        ["compare", "a.npy", "b.npy", "--distance", "mmd", "--option", "bandwidth=0"],
        "bandwidth=0",
    ),
    "level": (["hierarchy", "s.parquet", "--factors", "site,site"], "twice"),
    "no text": (["hierarchy", "s.parquet", "\x1b[31m\u202e\udcff", "--factors", "site"], r"(\x1b[31m\u202e\xff)"),
    "cells of a summary": (
        ["integration", "s.parquet", "--batch", "site", "--obsm", "a"],
        "s.parquet is a summary, without embeddings to choose from",
    ),
}


@pytest.fixture(scope="module")
def bad(data):
    """The data beside files that cannot be used."""
    a = np.load(data / "a.npy")
    (data / "hollow").mkdir()
    np.save(data / "wide.npy", np.ones((5, 9)))
    np.save(data / "flat.npy", np.ones(5))
    np.save(data / "empty.npy", np.ones((0, 8)))
    with_nan = a.copy()
    with_nan[3, 2] = np.nan
    np.save(data / "nan.npy", with_nan)
    (data / "twice.csv").write_text("site,v,v\na,1,2\nb,2,3\n")
    np.savez(data / "many.npz", x=np.zeros((5_001, 1)), g=np.arange(5_001))
    (data / "cut.npy").write_bytes((data / "a.npy").read_bytes()[:-9])
    (data / "bad.parquet").write_text("this is not Parquet at all")
    table = pq.read_table(data / "x.parquet")
    pq.write_table(table.append_column("one", pa.array(["x"] * 200)), data / "x.parquet")
    return data


@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_input_is_one_line_and_exit_code_2(name, bad):
    arguments, message = BAD_CALLS[name]
    assert message in fails(*arguments, cwd=bad)


def test_rows_that_are_not_finite_can_be_dropped(bad):
    done = run("compare", bad / "nan.npy", bad / "b.npy", "--nan", "drop", "--json")
    assert json.loads(done.stdout)["dropped"] == 1
    assert "warning: " in done.stderr


def test_output_is_whole_or_not_there(data, tmp_path):
    target = tmp_path / "s.parquet"
    fails("summarize", data / "x.parquet", "--by", "nothing", "-o", target)
    assert list(tmp_path.iterdir()) == []


def test_output_replaces_a_summary_but_nothing_else(data, tmp_path):
    source = tmp_path / "rows.parquet"
    source.write_bytes((data / "x.parquet").read_bytes())
    other = tmp_path / "other.parquet"
    other.write_bytes(source.read_bytes())
    os.mkfifo(tmp_path / "pipe.parquet")
    for target in ("rows.parquet", "other.parquet", "pipe.parquet", "rows.csv", "no/folder.parquet"):
        fails("summarize", source, "--by", "site", "-o", tmp_path / target)
    assert source.read_bytes() == other.read_bytes() == (data / "x.parquet").read_bytes()
    (tmp_path / "link.parquet").symlink_to(tmp_path / "s.parquet")
    for _ in range(2):
        run("summarize", source, "--by", "site", "-o", tmp_path / "link.parquet")
    assert (tmp_path / "link.parquet").is_symlink()
    assert len(cf.read_summary(tmp_path / "s.parquet")) == 2


def test_output_that_cannot_be_written_is_one_line(data):
    command = f"{COMMAND[0]} compare {data / 'a.npy'} {data / 'b.npy'}"
    for redirected in ("> /dev/full", ">&-"):
        done = subprocess.run(f"{command} {redirected}", shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("crossfusion: ")


def test_no_command_shows_the_help():
    done = run(code=2 if NO_COMMAND else 0)
    assert "Compare groups:\n  compare " in done.stdout


@pytest.mark.parametrize(
    ("words", "replacement"),
    [("reproduce synthetic --quick", "paper"), ("reproduce --help", "paper"), ("bench moments", "benchmarks")],
)
def test_moved_commands_name_their_replacement(words, replacement):
    assert f"python -m {replacement} NAME" in fails(*words.split())


def test_module_runs_as_the_command_does():
    done = subprocess.run(
        [sys.executable, "-m", "crossfusion", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == run("--version").stdout
    assert done.stdout == f"crossfusion {cf.__version__}, kernel {kernel.describe_kernel()}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_and_its_answers(shell):
    assert "_CROSSFUSION_COMPLETE" in run("completion", shell).stdout
    environment = os.environ | {
        "_CROSSFUSION_COMPLETE": "bash_complete",
        "COMP_WORDS": "crossfusion hier",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=environment, check=True)
    assert "hierarchy" in done.stdout


def test_a_reader_that_stops_early_is_no_error(data):
    command = f"{COMMAND[0]} matrix {data / 's.parquet'} --between patient,scanner --csv | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("group_a")
    assert done.stderr == ""


@pytest.mark.parametrize(("alarm", "code"), [("0", 0), ("0.01", 1)])
@pytest.mark.parametrize("buffered", ["", "1"])
def test_a_reader_that_is_gone_is_no_alarm_and_hides_none(alarm, code, buffered, tmp_path):
    week = np.arange(480) // 40
    x = np.random.default_rng(0).normal(size=(480, 4)) + 5 * (week[:, None] == 11)
    cf.summarize(x, by={"week": week}).write(tmp_path / "s.parquet")
    read, write = os.pipe()
    os.close(read)
    words = ["drift", tmp_path / "s.parquet", "--time", "week", "--reference", "first:8", "--alarm", alarm]
    environment = os.environ | {"PYTHONUNBUFFERED": buffered}
    done = subprocess.run([*COMMAND, *words], stdout=write, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_terminal_of_another_encoding_shows_what_it_can(data):
    leader, follower = pty.openpty()
    environment = os.environ | {"PYTHONIOENCODING": "latin-1", "TERM": "xterm", "COLUMNS": "100"}
    words = ["hierarchy", "s.parquet", "--factors", "site,scanner"]
    done = subprocess.run([*COMMAND, *words], stdout=follower, stderr=follower, cwd=data, env=environment, check=False)
    os.close(follower)
    shown = os.read(leader, 65536).decode("latin-1")
    os.close(leader)
    assert done.returncode == 0
    assert "scanner" in shown
    assert "Traceback" not in shown


def test_json_is_read_whatever_the_encoding(data, tmp_path):
    names = np.array(["é", "×", "מכון"])[np.arange(60) % 3]
    cf.summarize(np.random.default_rng(0).normal(size=(60, 2)), by={"site": names}).write(tmp_path / "s.parquet")
    words = [*COMMAND, "matrix", tmp_path / "s.parquet", "--between", "site", "--json"]
    for encoding in ("ascii", "latin-1", "utf-8"):
        environment = os.environ | {"PYTHONIOENCODING": encoding}
        done = subprocess.run(words, capture_output=True, env=environment, check=True)
        assert set(json.loads(done.stdout.decode(encoding))["labels"]) == set(names)


def test_closed_standard_error_is_no_error(data, tmp_path):
    words = ["summarize", data / "x.csv", "--by", "site", "--vectors", "dim_*", "-o", tmp_path / "s.parquet"]
    done = subprocess.run([*COMMAND, *words], stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2), check=False)
    assert done.returncode == 0
    assert len(cf.read_summary(tmp_path / "s.parquet")) == 2


FEW_FILES = """
import resource, sys
import crossfusion.cli.commands, crossfusion.cli.matrix
from crossfusion.cli import main

resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
main(sys.argv[1:])
"""


@pytest.mark.parametrize("more", [[], ["--plot", "m.png"]], ids=["to read", "to draw"])
def test_no_more_open_files_is_one_line(more, data, tmp_path):
    words = ["matrix", data / "s.parquet", "--between", "site", *more]
    command = [sys.executable, "-c", FEW_FILES, *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "Too many open files" in done.stderr
    assert not list(tmp_path.iterdir())


FEW_FILES_LATER = """
import resource
import click
from crossfusion import InputError
from crossfusion.cli import run

@click.group()
def group(): pass

@group.command()
def ask():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    raise InputError("min_units", 1, "is too small")

run(group, "crossfusion", ["ask"])
"""


def test_an_error_is_worded_without_opening_a_file():
    done = subprocess.run([sys.executable, "-c", FEW_FILES_LATER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "crossfusion: min_units=1 is too small\n")


SMALL_MEMORY = """
import re, resource, sys
import crossfusion.cli.commands, crossfusion.cli.matrix
from crossfusion.cli import main

size = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + 2**20, size + 2**20))
main(sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_library_that_does_not_fit_into_memory_is_one_line(data, tmp_path):
    words = ["matrix", data / "s.parquet", "--between", "site", "--plot", tmp_path / "m.png"]
    done = subprocess.run([sys.executable, "-c", SMALL_MEMORY, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "memory" in done.stderr
    assert not list(tmp_path.iterdir())


FAILING = """
import sys
from crossfusion.cli import commands, main

def failing(*_, **__):
    {0}

commands.cli.main = failing
main([])
"""


@pytest.mark.parametrize(
    ("failure", "code", "line"),
    [
        ("raise MemoryError", 2, "there is not enough memory for this: summarize to fewer groups, or select some"),
        ('raise RuntimeError("can\'t start new thread")', 2, "there is not enough memory for this: summarize to fewer"),
        ("raise RuntimeError('FT_Open_Face failed with error 0x40: out of memory')", 2, "there is not enough memory"),
        ("raise ImportError('no') from KeyboardInterrupt()", 130, "interrupted; no partial files are left behind"),
        ("raise ImportError('no')", 2, "a library cannot be loaded (no): there is too little memory, or it must be"),
    ],
)
def test_what_ran_out_or_was_interrupted_is_one_line(failure, code, line):
    done = failed(failure)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"crossfusion: {line}")
    assert done.stderr.count("\n") == 1


def failed(how):
    return subprocess.run([sys.executable, "-c", FAILING.format(how)], capture_output=True, text=True, timeout=PATIENCE)


def test_what_a_library_had_to_ignore_is_not_shown_or_raised_again():
    dropped = "class Bad:\n        def __del__(self): raise {0}\n    Bad()"
    assert failed(dropped.format("MemoryError")).stderr == ""
    assert "ValueError" in failed(dropped.format("ValueError")).stderr
    interrupted = failed(dropped.format("KeyboardInterrupt") + "\n    import time; time.sleep(60)")
    assert interrupted.returncode == 130
    assert interrupted.stderr == "crossfusion: interrupted; no partial files are left behind\n"
