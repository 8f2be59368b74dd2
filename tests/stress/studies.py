"""A study of the paper that is killed, and goes on where it was: in the end the same results."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from tests.helpers.module_commands import ENVIRONMENT, module_command
from tests.stress import children
from tests.stress.judging import Broken, outcome

STUDY = "--quick --experiment displacement --trials 2 --dims 8 --sizes 60,90 --workers 1"
COMMAND, WORDS = module_command("paper", "synthetic"), STUDY.split()
EXPECTED: dict[str, object] = {}
TAKES: list[float] = []
LONGEST = 30.0  # seconds until it is stopped, on a machine under load


def prepare(folder: Path) -> None:
    """The study without a fault."""
    start = time.monotonic()
    ended = children.spawn([*WORDS, "--out", "whole"], folder, ENVIRONMENT, command=COMMAND)
    if outcome(ended) != "right":
        raise ended.broken("the study does not run")
    TAKES.append(time.monotonic() - start)
    EXPECTED.update(results(folder / "whole"))


def results(folder: Path) -> dict[str, object]:
    """What a study computed, but for pictures."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".json", ".md", ".parquet") and path.is_file())
    return {str(path.relative_to(folder)): _content(path) for path in files if not path.name.startswith(".")}


def _content(path: Path) -> object:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pydict()
    text = path.read_text(encoding="utf-8")
    return json.loads(text) if path.suffix == ".json" else text


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """Kill it once or twice, then let it end."""
    sent = (signal.SIGKILL, signal.SIGINT)[number % 2]
    ends = [
        stopped(own, sent, min(TAKES[0], LONGEST) * float(draw.uniform(0.2, 1.0)))
        for _ in range(int(draw.integers(1, 3)))
    ]
    ended = children.spawn([*WORDS, "--out", "again"], own, ENVIRONMENT, command=COMMAND)
    if outcome(ended) != "right":
        raise ended.broken("a study that was killed does not go on")
    found = results(own / "again")
    if found.keys() != EXPECTED.keys():
        raise ended.broken(f"other files: {found.keys() ^ EXPECTED.keys()}")
    for name, content in EXPECTED.items():
        if found[name] != content:
            raise ended.broken(f"{name} has other results")
    return f"{sent.name}, then the same" if any(ends) else "done before"


def stopped(own: Path, sent: int, after: float) -> bool:
    """Begin the study and stop all of its processes."""
    process = subprocess.Popen(
        [*COMMAND, *WORDS, "--out", "again"], cwd=own, env=ENVIRONMENT, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(after)
    running = process.poll() is None
    if running:
        os.killpg(process.pid, sent)  # the group that was made for it
    _, said = process.communicate(timeout=children.SECONDS)
    if "Traceback" in said:
        raise Broken(f"a traceback after {signal.Signals(sent).name}: {said[-900:]}")
    return running
