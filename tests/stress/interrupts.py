"""Processes that are killed or interrupted at any moment: the old file or the new one, and the next call works."""

import signal
import time
from pathlib import Path

import numpy as np

from tests.stress import children, writing
from tests.stress.judging import Broken, outcome

TAKES: dict[str, float] = {}  # seconds of each call


def prepare(folder: Path) -> None:
    """The files, and how long each call takes."""
    writing.prepare(folder)
    for name, call in writing.WRITINGS.items():
        own = folder / "timing"
        own.mkdir(exist_ok=True)
        start = time.monotonic()
        children.fork(call.words, own, folder / "logs").wait()
        TAKES[name] = time.monotonic() - start


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """Send a signal at some moment, more often towards the end, when files are written."""
    name = list(TAKES)[number % len(TAKES)]
    call = writing.WRITINGS[name]
    old = call.begin(own, bool(draw.random() < 0.6))
    sent = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)[int(draw.integers(4))]
    child = children.fork(call.words, own, folder / "logs")
    time.sleep(TAKES[name] * float(draw.uniform(0, 1.2) if draw.random() < 0.4 else draw.uniform(0.7, 1.1)))
    child.kill(sent)
    ended = child.wait()
    state = call.state(own, old)
    if ended.code == children.NOT_BEGUN:
        return "not begun"
    if sent == signal.SIGINT and ended.code == 130:
        check_interrupted(ended, own)
    elif ended.code != -sent and outcome(ended) != "right":
        raise ended.broken(f"ended by itself while {sent.name} was sent")
    litter = [path.name for path in own.iterdir() if path.name.startswith(".") and not path.name.endswith(".lock")]
    writing.rerun(call, folder, own, old, state)
    if call.adds and litter and any((own / entry).exists() for entry in litter):
        raise Broken(f"{litter} is still there after the next append")
    if ended.code == 0:
        return "done before"
    return f"{sent.name} ({state} file{', litter' if litter else ''})"


def check_interrupted(ended, own: Path) -> None:
    """An interruption is said in one line and leaves nothing behind."""
    if ended.said != ["crossfusion: interrupted; no partial files are left behind"]:
        raise ended.broken("not the one line of an interruption")
    left = [path.name for path in own.iterdir() if path.name.startswith(".") and not path.name.endswith(".lock")]
    if left:
        raise ended.broken(f"{left} was left")
