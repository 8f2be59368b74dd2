"""Studies as tasks: the result of each is kept in one file that says what it was made with, and computed once."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from crossfusion._base import write_text
from crossfusion.study.workers import compute_all


class Task(Protocol):
    """A part of a study that is computed by itself."""

    @property
    def title(self) -> str:
        """What it is, for people."""

    @property
    def cost(self) -> float:
        """How long it takes, in no unit."""

    def path(self, out: Path) -> Path:
        """Its file in the folder of the study."""

    def made_with(self) -> dict[str, Any]:
        """All that its numbers depend on."""


T = TypeVar("T", bound=Task)


def write_result(out: Path, task: Task, result: Mapping[str, Any]) -> None:
    """Keep the result of a finished task."""
    text = json.dumps({"made_with": task.made_with(), "found": result}, ensure_ascii=False, allow_nan=False)
    write_text(task.path(out), text + "\n")


def read_result(out: Path, task: Task) -> dict[str, Any] | None:
    """Result of an earlier run; None if it is missing, damaged, or of other rows or settings."""
    try:
        stored = json.loads(task.path(out).read_text(encoding="utf-8"))
        same = stored["made_with"] == json.loads(json.dumps(task.made_with()))
        result: dict[str, Any] = stored["found"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result if same else None


def run_tasks(
    out: Path,
    tasks: Sequence[T],
    compute: Callable[[T], dict[str, Any]],
    *,
    workers: int,
    progress: Callable[[str], None],
) -> list[tuple[T, Mapping[str, Any]]]:
    """Compute the tasks that have no result yet, the longest first, and read the others; 1 worker is this process."""
    results = [read_result(out, task) for task in tasks]
    missing = sorted((k for k, result in enumerate(results) if result is None), key=lambda k: -tasks[k].cost)
    positions = {id(tasks[k]): k for k in missing}
    todo = [tasks[k] for k in missing]
    progress(f"{len(tasks) - len(todo)} of {len(tasks)} tasks done")
    source = ((task, compute(task)) for task in todo) if workers == 1 else compute_all(compute, todo, workers)
    with closing(source) as finished:
        for task, result in finished:
            write_result(out, task, result)
            results[positions.pop(id(task))] = result
            progress(f"{len(tasks) - len(positions)} of {len(tasks)} tasks done, last {task.title}")
    return [(task, result) for task, result in zip(tasks, results, strict=True) if result is not None]


def digest(values: Sequence[Any]) -> str:
    """Compute a short checksum of arrays of floats, texts, and sequences of anything that has a text."""
    checksum = blake2b(digest_size=12)
    for value in values:
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            checksum.update(f"{value.dtype.str}{value.shape}".encode())
            checksum.update(np.ascontiguousarray(value).data)
        else:
            checksum.update(json.dumps(value if isinstance(value, str) else [str(entry) for entry in value]).encode())
    return checksum.hexdigest()
