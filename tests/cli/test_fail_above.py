"""`--fail-above`: an exit code for a pair of groups that is too far apart."""

import json
import subprocess

import numpy as np
import pytest

import crossfusion as cf
from crossfusion._base import number_text
from tests.helpers import PATIENCE
from tests.helpers.command_line import COMMAND, fails, run
from tests.helpers.policies import make_data

COMMANDS = {
    "matrix": ["--units", "patient"],
    "test": ["--units", "patient", "--permutations", "19"],
    "report": ["--units", "patient", "--permutations", "19", "--json"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("above")
    x, by = make_data()
    np.savez(folder / "x.npz", x=x, **by)
    cf.summarize(x, by=by).write(folder / "summary.parquet")
    for name in ("S1", "S3"):
        np.save(folder / f"{name}.npy", x[by["scanner"] == name])
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_the_farthest_pair_decides_and_is_named(folder, command):
    weights = "pooled" if command == "test" else "balanced"
    summary = cf.read_summary(folder / "summary.parquet")
    pairs = summary.pairwise("scanner", given="tissue", units="patient", weights=weights).to_frame()
    worst = pairs.loc[pairs["unbiased"].idxmax()]
    call = [command, "summary.parquet", "--between", "scanner", "--given", "tissue", *COMMANDS[command], "--fail-above"]
    below = run(*call, worst["unbiased"] * 0.999, code=1, cwd=folder)
    said = f"CFD of {worst['group_a']} and {worst['group_b']} is {number_text(worst['unbiased'])}, which is above"
    assert below.stderr.splitlines()[-1].startswith(f"crossfusion: {said}")
    above = run(*call, worst["unbiased"] * 1.001, cwd=folder)
    assert above.stdout.replace(str(worst["unbiased"] * 1.001), str(worst["unbiased"] * 0.999)) == below.stdout != ""
    assert "which is" not in above.stderr


def test_two_files(folder):
    fusion = cf.cfd(np.load(folder / "S1.npy"), np.load(folder / "S3.npy"))
    done = run("compare", "S1.npy", "S3.npy", "--fail-above", 0.001, "--json", code=1, cwd=folder)
    assert json.loads(done.stdout)["unbiased"] == pytest.approx(fusion.unbiased, rel=1e-12)
    assert (
        done.stderr
        == f"crossfusion: CFD of S1.npy and S3.npy is {number_text(fusion.unbiased)}, which is above 0.001\n"
    )
    assert run("compare", "S1.npy", "S3.npy", "--fail-above", 9, "--level", 0.9, cwd=folder).stderr == ""


def test_rows_without_units(folder):
    call = ["test", "x.npz", "--between", "scanner", "--permutations", 19, "--fail-above"]
    assert " other pair" in run(*call, 0.001, code=1, cwd=folder).stderr.splitlines()[-1]
    assert run(*call, 9, cwd=folder).stderr == ""


def test_pairs_that_cannot_be_compared_end_with_2(folder):
    done = run("matrix", "x.npz", "--between", "week", "--given", "patient", "--fail-above", 999, code=2, cwd=folder)
    assert "cannot be answered: 0 and 2, 0 and 3" in done.stderr.splitlines()[-1]
    once = run("matrix", "x.npz", "--between", "week", "--given", "patient", "--fail-above", 0, code=1, cwd=folder)
    assert "which is above 0" in once.stderr.splitlines()[-1]


def test_a_reader_that_stops_early_does_not_hide_it(folder):
    call = [*COMMAND, "matrix", "x.npz", "--between", "scanner", "--csv", "--fail-above", "0.001"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder) as process:
        process.stdout.close()
        assert process.wait(PATIENCE) == 1


def test_bad_calls(folder):
    assert "--fail-above -0.5 must be a finite number, 0 or more" in fails(
        "matrix", "x.npz", "--between", "scanner", "--fail-above", -0.5, cwd=folder
    )
    assert "--fail-above and --plot cannot be combined with --distance" in fails(
        "compare", "S1.npy", "S3.npy", "--distance", "mmd", "--fail-above", 1, cwd=folder
    )
    assert "--fail-above cannot be combined with --scale: standardize the features first" in fails(
        "matrix", "x.npz", "--between", "scanner", "--scale", "features", "--fail-above", 1, cwd=folder
    )
    assert "--fail-above cannot be combined with --method: pass the rows of one version" in fails(
        "report", "x.npz", "--between", "scanner", "--method", "tissue", "--fail-above", 1, cwd=folder
    )
