"""`crossfusion check` as a pipeline runs it: exit codes, and the files that it leaves."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers.command_line import fails, run, run_json
from tests.helpers.policies import BROKEN, HOLDS, UNKNOWN, make_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    x, by = make_data()
    np.savez(folder / "x.npz", x=x, **by)
    cf.summarize(x, by=by).write(folder / "summary.parquet")
    for name, text in {"holds": HOLDS, "broken": HOLDS + BROKEN, "unknown": HOLDS + UNKNOWN}.items():
        (folder / f"{name}.toml").write_text(text)
    (folder / "typo.toml").write_text(HOLDS + "maxx = 1\n")
    return folder


@pytest.mark.parametrize("data", ["x.npz", "summary.parquet"])
@pytest.mark.parametrize(("policy", "code"), [("holds", 0), ("broken", 1), ("unknown", 2)])
def test_exit_codes_and_files(folder, tmp_path, policy, code, data):
    found = run(
        "check", folder / f"{policy}.toml", folder / data,
        "--junit", tmp_path / "check.xml", "--multiqc", tmp_path / "check_mqc.json", "--plot", tmp_path / "check.svg",
        code=code,
    )  # fmt: skip
    expected = cf.check(folder / f"{policy}.toml", folder / data)
    assert expected.exit_code == code
    assert found.stdout.splitlines()[0].endswith(expected.summarize())
    assert ElementTree.parse(tmp_path / "check.xml").getroot().get("tests") == str(len(expected.outcomes))
    assert json.loads((tmp_path / "check_mqc.json").read_text()) == json.loads(json.dumps(expected.to_multiqc()))
    assert (tmp_path / "check.svg").stat().st_size > 1000


def test_json_and_annotations(folder):
    found = json.loads(run("check", "broken.toml", "x.npz", "--json", code=1, cwd=folder).stdout)
    assert (found["passed"], found["exit_code"]) == (False, 1)
    assert [rule["status"] for rule in found["rules"]] == ["holds", "broken"]
    lines = run("check", "broken.toml", "x.npz", "--github", code=1, cwd=folder).stdout.splitlines()
    assert lines[1].startswith("::error file=broken.toml,line=8,title=tissues (broken)::CFD at most 0.01: ")
    assert run_json("check", folder / "holds.toml", folder / "x.npz")["passed"] is True


def test_bad_calls_are_one_line(folder, tmp_path):
    assert "has no key 'maxx': did you mean 'max'?" in fails("check", folder / "typo.toml", folder / "x.npz")
    assert "there is nothing to read: name a file, or give a query with --sql" in fails("check", folder / "holds.toml")
    assert "none.toml does not exist" in fails("check", tmp_path / "none.toml", folder / "x.npz")
    assert "none.npz" in fails("check", folder / "holds.toml", tmp_path / "none.npz")
    arguments = "check", folder / "holds.toml", folder / "x.npz"
    assert "--github and --json exclude each other" in fails(*arguments, "--json", "--github")
    assert "does not end in _mqc.json, by which MultiQC finds it" in fails(*arguments, "--multiqc", tmp_path / "a.json")
    assert "there is no folder" in fails(*arguments, "--junit", tmp_path / "none" / "a.xml")
    assert "x.npz cannot be read as text" in fails("check", folder / "x.npz", folder / "holds.toml")
