"""The action and the pre-commit hook of the repository; `python -m tools.check_gates` also installs them."""

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import pytest
import yaml

from crossfusion.cli.commands import cli
from tests.helpers import ROOT
from tests.helpers.policies import BROKEN, HOLDS, UNKNOWN, make_data
from tools.runner import run_action


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workspace with spaces")
    x, by = make_data()
    np.savez(folder / "my data.npz", x=x, **by)
    for name, text in {
        "holds": HOLDS,
        "broken": HOLDS + BROKEN,
        "unknown": UNKNOWN,
        "bad": "[[rule]]\nmaxx = 1\n",
    }.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


def run(workspace, policy, **inputs):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ} | {"PATH": path}
    inputs = {"policy": f"{policy}.toml", "data": "my data.npz", "output": "out", **inputs}
    return run_action(ROOT, workspace, inputs, environment=environment, skip=("Install crossfusion",))


@pytest.mark.parametrize(("policy", "code"), [("holds", 0), ("broken", 1), ("unknown", 2), ("bad", 2)])
def test_the_action_ends_with_the_code_of_the_check(workspace, policy, code):
    done = run(workspace, policy)
    assert done.code == code, done.log
    assert done.outputs == {"exit-code": str(code), "junit": "out/check.xml", "multiqc": "out/check_mqc.json"}
    kinds = [line.split(" ", 1)[0] for line in done.annotations]
    if policy in ("unknown", "bad"):  # nothing could be read, so that there is no file of an earlier run either
        assert len(kinds) == 1
        assert done.annotations[0].startswith("::error::")
        assert "did you mean" in done.log or "there are" in done.log
        assert not list((workspace / "out").iterdir())
    else:
        assert kinds == ["::notice", "::error"][: code + 1]
        suite = ElementTree.parse(workspace / done.outputs["junit"]).getroot()
        assert suite.get("failures") == str(code)
        assert (workspace / done.outputs["multiqc"]).is_file()


def test_inputs_are_never_run(workspace):
    done = run(workspace, "holds", data='$(touch "stolen"); `touch stolen`', arguments="--vectors $(touch stolen)")
    assert done.code == 2
    assert not (workspace / "stolen").exists()


def test_more_options_are_passed_on(workspace):
    assert run(workspace, "holds", arguments="--vectors x --nan drop").code == 0
    assert "--nan never is not known" in run(workspace, "holds", arguments="--nan never").log


def test_the_hook_is_a_command():
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    program, *words = hook["entry"].split()
    assert (program, hook["language"], hook["pass_filenames"]) == ("crossfusion", "python", False)
    assert isinstance(cli.commands[words[0]], click.Command)
