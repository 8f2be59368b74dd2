"""Running the study: all cores, one process a task, and nothing computed twice."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.coverage import figures, plan, tables
from benchmarks.coverage.measure import measure
from benchmarks.coverage.plan import Task
from benchmarks.coverage.promises import FULL, judge
from crossfusion.study import compute_all, count_workers, figure, make_folder, write_text
from paper.checks import check_whole

LEAST = 20  # draws: with fewer, no share says anything


def run(
    out: Path,
    *,
    quick: bool = False,
    draws: int | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Run the study, or what is left of it, and write tables and figures.

    Parameters
    ----------
    out : path
        Folder of the results; made if it does not exist. Finished tasks are kept in its folder ``parts``, and read
        instead of being computed again.
    quick : bool
        A few points, of few draws.
    draws : int, optional
        Of each point, by default 2,000, or 200 if `quick`.
    workers : int, optional
        Processes, by default one a core. The results do not depend on it.
    progress : function, optional
        Called with the number of points that have been finished since the last call.

    Returns
    -------
    dict
        ``draws``, the ``designs`` with their ``points``: what was measured, what was promised (``least``, ``most``)
        and whether it ``holds``; and whether ``all_hold``. Also written, as ``coverage.json``.

    Notes
    -----
    Workers are fresh interpreters, so a script that calls this needs ``if __name__ == "__main__":``.
    """
    number = (plan.QUICK if quick else FULL) if draws is None else draws
    check_whole(number, "draws", LEAST)
    processes = count_workers(workers)
    figure(1, 1)  # a missing library is named before hours of work
    tasks = plan.quick() if quick else plan.full()
    folder = make_folder(out / "parts")
    found = {task: _read(folder, task, number) for task in tasks}
    report = progress or (lambda _: None)
    report(sum(len(points) for points in found.values()))
    missing = sorted((task for task in tasks if not found[task]), key=lambda task: task.cost, reverse=True)
    with closing(compute_all(partial(measure, draws=number), missing, processes)) as finished:
        for task, points in finished:
            _write(folder, task, number, points)
            found[task] = points
            report(len(points))
    return _conclude(out, found, number)


def count_points(*, quick: bool = False) -> int:
    """Number of points of the study."""
    return sum(len(task.distances) for task in (plan.quick() if quick else plan.full()))


def _conclude(out: Path, found: dict[Task, list[dict[str, Any]]], draws: int) -> dict[str, Any]:
    """Judge the points, and write what people look at."""
    designs = [
        {"section": task.section, "test": task.test, "told": task.told}
        | ({"lens": task.lens, "fitted": task.fitted} if task.lens else {})
        | asdict(task.population)
        | {"points": [point | judge(task.section, point) for point in points]}
        for task, points in found.items()
    ]
    holds = all(point.get("holds", True) for design in designs for point in design["points"])
    result = {"draws": draws, "all_hold": holds, "designs": designs}
    write_text(out / "coverage.json", json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    write_text(out / "coverage.md", tables.render_tables(result))
    figures.write(out, result)
    return result


def _write(folder: Path, task: Task, draws: int, points: list[dict[str, Any]]) -> None:
    about = {"made_with": task.made_with(draws), "points": points}
    write_text(folder / task.name(draws), json.dumps(about, indent=1) + "\n")


def _read(folder: Path, task: Task, draws: int) -> list[dict[str, Any]]:
    """What an earlier run has found; nothing if there is none, or it was made with something else."""
    try:
        about = json.loads((folder / task.name(draws)).read_text(encoding="utf-8"))
        points: list[dict[str, Any]] = about["points"] if about["made_with"] == task.made_with(draws) else []
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return points if len(points) == len(task.distances) else []
