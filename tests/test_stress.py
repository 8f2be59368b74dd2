"""The search for faults finds them, says how to repeat them, and leaves no command out."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from crossfusion.cli.commands import LISTED
from tests.stress import __main__ as stress
from tests.stress import judging, part, parts
from tests.stress.calls import CALLS, LONG

ROOT = Path(__file__).parents[1]


def test_every_command_is_given_wrong_words():
    served = {"mcp"}  # whose calls come from a client
    assert set(LISTED) - served == {call.split()[0] for call in (*CALLS.values(), *LONG.values())}


def test_summaries_cut_at_every_byte():
    command = [sys.executable, "-m", "tests.stress.part", "summaries", "0", "--case", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ended times 100 refused or the same\nover\n"


def break_down(_folder, own, _draw, number):
    if number == 1:
        raise judging.Broken("two\nhalves")
    (own / "left").touch()
    return "right"


def test_a_finding_names_the_command_that_repeats_it(monkeypatch, capfd):
    module = SimpleNamespace(prepare=lambda folder: None, case=break_down)
    monkeypatch.setitem(parts.PARTS, "summaries", SimpleNamespace(load=lambda: module))
    assert part.run("summaries", 5, 0, 3, 60) == 1
    found = "found python -m tests.stress.part summaries 5 --case 1: two\\nhalves"
    assert capfd.readouterr().out.splitlines() == ["ended right", found, "ended right", "over"]


def test_a_process_that_dies_is_a_finding(monkeypatch):
    code = "import os, sys; print('case 7', file=sys.stderr, flush=True); os.abort()"
    monkeypatch.setattr(stress, "command", lambda *_: [sys.executable, "-c", code])
    lines, died = stress.run_once("disk", 5, 0, 60)
    assert lines == []
    assert died.startswith("python -m tests.stress.part disk 5 --case 7\n  the process ended with -6")
