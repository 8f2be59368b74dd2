"""Run the steps of a composite action as a runner of GitHub Actions does, on this machine."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*([\w.-]+)\s*\}\}")
SHELL = ("bash", "--noprofile", "--norc", "-eo", "pipefail")  # as the runner starts `shell: bash`


@dataclass
class Run:
    """What became of the steps: the exit code of the last one, its output, and the outputs of the action."""

    code: int = 0
    log: str = ""
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def annotations(self) -> list[str]:
        """The workflow commands in the log."""
        return [line for line in self.log.splitlines() if line.startswith("::")]


def run_action(
    action: Path,
    workspace: Path,
    inputs: Mapping[str, str],
    *,
    environment: Mapping[str, str],
    skip: tuple[str, ...] = (),
) -> Run:
    """Run the steps of `action/action.yml` in a workspace; steps whose name is in `skip` are taken as done."""
    spec = yaml.safe_load((action / "action.yml").read_text())
    known = {f"github.{key}": str(value) for key, value in {"action_path": action, "workspace": workspace}.items()}
    known |= {f"inputs.{name}": _find_input(name, entry, inputs) for name, entry in spec["inputs"].items()}
    assert set(inputs) <= set(spec["inputs"]), "an input that the action does not have"
    result = Run()
    with tempfile.TemporaryDirectory() as temporary:
        shared = dict(environment) | {
            "RUNNER_TEMP": temporary,
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(workspace),
        }
        for number, step in enumerate(spec["runs"]["steps"]):
            if step["name"] in skip or result.code:
                continue
            found = _run_step(step, workspace, Path(temporary) / f"step{number}", known, shared)
            result.log += found.log
            result.code = found.code
            known |= {f"steps.{step.get('id')}.outputs.{name}": value for name, value in found.outputs.items()}
    result.outputs = {name: _expand(entry["value"], known) for name, entry in spec["outputs"].items()}
    return result


def _find_input(name: str, entry: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    assert name in inputs or not entry.get("required"), f"the action needs {name}"
    return str(inputs.get(name, entry.get("default", "")))


def _expand(text: str, known: Mapping[str, str]) -> str:
    return EXPRESSION.sub(lambda match: known.get(match[1], ""), str(text))


def _run_step(
    step: Mapping[str, Any], workspace: Path, folder: Path, known: Mapping[str, str], shared: dict[str, str]
) -> Run:
    """Run one step; folders that it adds to the path stay there for later steps."""
    folder.mkdir()
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.touch()
    script = folder / "script.sh"
    script.write_text(_expand(step["run"], known))
    own = {name: _expand(value, known) for name, value in step.get("env", {}).items()}
    assert step["shell"] == "bash"
    done = subprocess.run(
        [*SHELL, script],
        cwd=workspace,
        env=shared | own | {name: str(file) for name, file in files.items()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    added = files["GITHUB_PATH"].read_text().split()
    shared["PATH"] = os.pathsep.join([*reversed(added), shared["PATH"]])
    outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return Run(done.returncode, done.stdout, outputs)
