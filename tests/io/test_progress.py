"""A bar while rows are read: in notebooks by default, on a terminal if asked for, never in a pipe."""

import os
import pty
import subprocess
import sys

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers import PATIENCE

SUMMARIZE = "import numpy as np, crossfusion as cf; cf.summarize(np.ones((50, 2)), by={'g': [0, 1] * 25}%s)"


def run_on_terminal(code: str) -> str:
    """What a program writes to a terminal."""
    leader, follower = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=follower, stderr=follower, env=environment)
    os.close(follower)
    text = b""
    try:
        while part := os.read(leader, 65536):
            text += part
    except OSError:  # the program has ended
        pass
    os.close(leader)
    assert process.wait(PATIENCE) == 0
    return text.decode()


@pytest.mark.parametrize(("options", "shown"), [("", False), (", progress=False", False), (", progress=True", True)])
def test_a_terminal_shows_a_bar_if_asked_for(options, shown):
    text = run_on_terminal(SUMMARIZE % options)
    assert ("reading" in text) == shown
    assert ("of 50 rows" in text) == shown


@pytest.mark.parametrize("options", ["", ", progress=True"])
def test_a_pipe_stays_empty(options):
    done = subprocess.run([sys.executable, "-c", SUMMARIZE % options], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_the_bar_does_not_change_the_result():
    x, by = np.arange(40.0).reshape(20, 2), {"g": [0, 1] * 10}
    shown, quiet = (cf.summarize(x, by=by, progress=wanted) for wanted in (True, False))
    assert shown.moments == quiet.moments


NOTEBOOK = """
import numpy as np
import crossfusion as cf
from crossfusion._base import progress

progress.PAUSE = 0
seen = []
show = progress._make_bar

def keep(*state):
    seen.append(show(*state))
    return seen[-1]

progress._make_bar = keep
summary = cf.summarize(np.ones((50, 2)), by={"g": [0, 1] * 25}%s)
print(seen[-1] if seen else "no bar")
"""


@pytest.mark.parametrize(("options", "shown"), [("", True), (", progress=False", False)])
def test_a_notebook_shows_a_bar_by_default_and_clears_it(options, shown):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(NOTEBOOK % options), nbformat.v4.new_code_cell("summary.cfd('g', level=None)")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=PATIENCE, kernel_name="python3").execute()
    first, second = (cell.outputs for cell in notebook.cells)
    printed = "".join(output.text for output in first if output.output_type == "stream")
    assert ('<progress aria-label="reading" value="50" max="50">' in printed) == shown
    assert "50 of 50 rows" in printed if shown else "no bar" in printed
    left = [output.data["text/html"] for output in first if output.output_type == "display_data"]
    assert left == ([""] if shown else [])
    assert 'class="cf-result"' in second[0].data["text/html"]
    assert not [output for output in first if output.get("name") == "stderr"]
