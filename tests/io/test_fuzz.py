"""Every reader gets broken files: an error of ours in one line, no traceback, no hang, no crash, memory bounded."""

import signal
import subprocess
import sys

import pytest

from crossfusion.io.sources import READERS
from tests.fuzz.formats import FORMATS
from tests.helpers import PATIENCE, ROOT

CASES = 100  # of each format: more than 2,000 in all
ALIKE = {".pq": ".parquet", ".ipc": ".arrow", ".hdf5": ".h5", ".pth": ".pt"}  # read by the same code


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python beside the tests, in a process that may die of it."""
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, errors="replace", timeout=2 * PATIENCE, cwd=ROOT
    )


@pytest.mark.parametrize("name", FORMATS)
def test_broken_files_are_refused_in_one_line(name):
    found = run("-m", "tests.fuzz", name, str(CASES), "0")
    assert found.returncode == 0, f"{found.stdout}\nlast of standard error:\n{found.stderr[-3000:]}"


def test_there_are_thousands_of_cases():
    assert CASES * len(FORMATS) >= 2000


def test_every_ending_is_broken():
    names = [name for made in FORMATS.values() for name in (made.file, *made.inside)]
    assert [kind for kind in READERS if not any(name.endswith(ALIKE.get(kind, kind)) for name in names)] == []


JUDGED = """
import os, sys
import crossfusion as cf
from tests.fuzz import judging

class Torn(cf.FileError):
    def __str__(self):
        return "two\\nlines"

class Silent(cf.FileError):
    def __str__(self):
        return ""

def refuse(problem):
    raise problem

print(judging.judge(lambda: 1 / 0))
print(judging.judge(lambda: os.write(2, b"Exception ignored")))
print(judging.judge(lambda: print("Traceback", file=sys.stderr)))
print(judging.judge(lambda: refuse(Torn('x', 'is torn'))))
print(judging.judge(lambda: refuse(Silent('x', 'is silent'))))
print(judging.judge(lambda: refuse(cf.FileError('x', 'is damaged'))) or "right")
print(judging.judge(lambda: judging.run_command(["matrix"])) or "right")
judging.SECONDS = 1
print("waiting", flush=True)
judging.judge(lambda: sum(range(10**12)))  # nothing else runs meanwhile, not even what handles a signal
"""


def test_what_is_wrong_is_found():
    found = run("-c", JUDGED)
    error, written, printed, torn, silent, line, command, waiting = found.stdout.splitlines()
    assert "ZeroDivisionError" in error
    assert "Exception ignored" in written
    assert "Traceback" in printed
    assert torn.startswith("not one line")
    assert silent.startswith("not one line")
    assert line == command == "right"
    assert waiting == "waiting"
    assert found.returncode == 1
    assert "Timeout" in found.stderr


ISOLATED = """
import os, signal
from tests.fuzz import judging

judging.CPU_SECONDS = 1

def hang():
    while True:
        pass

print(judging.judge_isolated(lambda: None) or "right")
print(judging.judge_isolated(lambda: 1 / 0))
print(judging.judge_isolated(hang).splitlines()[0])
print(judging.judge_isolated(lambda: os.kill(os.getpid(), signal.SIGSEGV)).splitlines()[0])
trace = 'Current thread 0x1 (most recent call first):\\n  File "/lib/h5py/_hl/group.py", line 1 in get'
print(judging.is_in_h5py(trace))
"""


def test_only_h5py_may_hang_or_crash_in_a_process_of_its_own():
    fine, error, hung, crashed, excused = run("-c", ISOLATED).stdout.splitlines()
    assert fine == "right"
    assert "ZeroDivisionError" in error
    assert hung.startswith(f"the process ended with status {signal.SIGXCPU}")
    assert crashed.startswith(f"the process ended with status {signal.SIGSEGV}")
    assert excused == "True"


GREEDY = """
from dataclasses import replace
import crossfusion as cf
from tests.fuzz import __main__ as fuzz
from tests.fuzz.judging import MEGABYTES

def read(path, _target):
    if path.name == "x.npz":  # not the whole ones
        b"x" * (MEGABYTES + 50 << 20)
    return cf.summarize(path, by="site")

fuzz.FORMATS["greedy"] = replace(fuzz.FORMATS["npz"], read=read)
print(fuzz.run("greedy", 3, 0))
"""


def test_a_reader_that_fills_the_memory_is_found():
    found = run("-c", GREEDY).stdout
    assert "memory grew by" in found
    assert found.endswith("\n1\n")
