"""Run the action, the pre-commit hook and MultiQC for real, each in an environment of its own.

python -m tools.check_gates [FOLDER]

The action and the hook install the last commit from a clone, as a runner and pre-commit do. MultiQC (GPL) and
pre-commit are installed into environments in FOLDER only; the default is a temporary folder.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tools.runner import run_action

ROOT = Path(__file__).parents[1]
HOSTILE = '<b>bold</b> & "quoted"/<script>alert(1)</script>'
SCANNERS = (
    '[[rule]]\nname = "scanners"\nbetween = "scanner"\ngiven = "tissue"\nunits = "patient"\nmax = 0.5\non = "upper"\n'
)
TISSUES = f'[[rule]]\nname = {json.dumps(HOSTILE)}\nbetween = "tissue"\nmax = 0.01\n'
SITES = '[[rule]]\nname = "sites"\nbetween = "site"\nmax = 0.01\n'
POLICIES = {"holds": (SCANNERS, 0), "broken": (SCANNERS + TISSUES, 1), "unanswered": (SCANNERS + SITES, 2)}
DATA = """
import numpy as np
rng, order = np.random.default_rng(3), np.arange(480)
tissue = order // 3 % 2
x = rng.normal(size=(480, 6)) + 3.0 * tissue[:, None]
np.savez("data.npz", x=x, scanner=order % 3, tissue=tissue, patient=order // 12)
"""


def run(*command: str | Path, cwd: Path, codes: Sequence[int] = (0,)) -> str:
    """What a command prints; ends the check where it ends with another code."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, env=plain_environment())
    if done.returncode not in codes:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def plain_environment() -> dict[str, str]:
    """The environment without what belongs to this checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def make_environment(folder: Path, package: str) -> Path:
    """A new environment with one package; returns the folder of its programs."""
    run(sys.executable, "-m", "venv", folder, cwd=ROOT)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", package, cwd=ROOT)
    return folder / "bin"


def check_action(clone: Path, workspace: Path) -> None:
    """Every step of the action, from installing to the exit code."""
    for name, (policy, code) in POLICIES.items():
        (workspace / f"{name}.toml").write_text(policy)
        inputs = {"policy": f"{name}.toml", "data": "data.npz", "output": f"out-{name}", "python": sys.executable}
        done = run_action(clone, workspace, inputs, environment=plain_environment())
        found = ElementTree.parse(workspace / done.outputs["junit"]).getroot()
        assert (done.code, done.outputs["exit-code"]) == (code, str(code)), done.log
        assert len(done.annotations) == int(found.get("tests", 0)) == policy.count("[[rule]]"), done.log
        assert (workspace / done.outputs["multiqc"]).is_file()
        print(f"ok: the action ends with {code} where a rule {'holds' if code == 0 else 'is ' + name}")
        print("".join(f"    {line}\n" for line in done.annotations), end="")


def check_hook(clone: Path, workspace: Path, programs: Path) -> None:
    """The hook, installed by pre-commit from the clone."""
    commit = run("git", "rev-parse", "HEAD", cwd=clone).strip()
    run("git", "init", "-q", cwd=workspace)
    run("git", "add", "data.npz", cwd=workspace)
    for name, (_, code) in POLICIES.items():
        hook = {"id": "crossfusion-check", "args": [f"{name}.toml", "data.npz"]}
        config = {"repos": [{"repo": str(clone), "rev": commit, "hooks": [hook]}]}
        (workspace / ".pre-commit-config.yaml").write_text(json.dumps(config))
        said = run(programs / "pre-commit", "run", "--all-files", cwd=workspace, codes=(min(code, 1),))
        assert ("Passed" in said) == (code == 0), said
        assert code == 0 or f"exit code: {code}" in said, said
        print(f"ok: the hook {'passes' if code == 0 else f'fails with {code}'} where a rule {name}")


def check_multiqc(workspace: Path, programs: Path) -> None:
    """A report of MultiQC with all rules, in which names are text."""
    said = run(programs / "multiqc", "--force", "--outdir", "report", "out-broken", cwd=workspace)
    assert "crossfusion_check: Found 2 samples" in said, said
    page = (workspace / "report" / "multiqc_report.html").read_text()
    assert "Cross-Fusion check" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert(1)</script>" not in page
    table = (workspace / "report" / "multiqc_data" / "multiqc_crossfusion_check_table.txt").read_text()
    assert [line.split("\t")[2] for line in table.splitlines()] == ["status", "holds", "broken"], table
    print(f"ok: {run(programs / 'multiqc', '--version', cwd=workspace).strip()} shows both rules")


def main() -> None:
    """Clone, install, run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary).resolve()
        workspace = folder / "workspace"
        workspace.mkdir(parents=True)
        run("git", "clone", "-q", ROOT, folder / "clone", cwd=ROOT)
        run(sys.executable, "-c", DATA, cwd=workspace)
        check_action(folder / "clone", workspace)
        check_multiqc(workspace, make_environment(folder / "multiqc", "multiqc"))
        os.environ["PRE_COMMIT_HOME"] = str(folder / "hooks")
        check_hook(folder / "clone", workspace, make_environment(folder / "pre-commit", "pre-commit"))


if __name__ == "__main__":
    main()
