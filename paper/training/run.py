"""The whole study: training on all cores, then timing with nothing beside it, then tables and figures."""

from collections.abc import Callable
from pathlib import Path

from crossfusion import FileError
from crossfusion.study import count_workers, make_folder, run_tasks
from paper.real.folder import PLACES, VARIABLE, data_folder
from paper.training import cost, seed_runs
from paper.training.outcomes import Outcome, summarize_runs
from paper.training.settings import Settings
from paper.training.tasks import TABLES, Pool, Task, find_pool, list_tasks, read_pools
from paper.training.writing import QUICK, write

Tell = Callable[[str], None]


def run(
    out: Path,
    data: Path | None = None,
    *,
    settings: Settings | None = None,
    workers: int | None = None,
    cost_again: bool = False,
    progress: Tell | None = None,
) -> list[Outcome]:
    """Train with every method on every task, or go on with it.

    Parameters
    ----------
    out : path
        Folder of the results. Finished runs are kept there, and read instead of being made again.
    data : path, optional
        Folder of the embeddings; by default that of CROSSFUSION_DATA, or ``../shared/data``. Where the default is not
        there, the digits alone are studied, and the reading says so.
    settings : Settings, optional
        Every choice.
    workers : int, optional
        Processes, by default one a core. The results do not depend on it.
    cost_again : bool
        Time the steps again, whatever was kept.
    progress : function, optional
        Shown what is being done.

    Returns
    -------
    list of Outcome
        A data set and method each; ``training.html``, ``training.md``, ``training.json``, ``reading.md``, ``runs.csv``,
        tables and figures are in `out`.

    Notes
    -----
    Workers are fresh interpreters, so a script that calls this needs ``if __name__ == "__main__":``.
    """
    processes = count_workers(workers)
    settings = settings or Settings()
    tell = progress or (lambda _: None)
    folder = _find_folder(data)
    tell("reading")
    pools = read_pools(folder)
    make_folder(out / seed_runs.FOLDER)
    tasks = [(task, find_pool(pools, task)) for task in list_tasks(pools, settings.whole)]
    planned = seed_runs.list_runs(tasks, settings)
    finished = run_tasks(out, planned, seed_runs.compute, workers=processes, progress=tell)
    runs = [entry for _, found in finished for entry in found["runs"]]
    ratios = _time_steps(out, tasks, settings, cost_again, tell)
    tell("tables and figures")
    found = summarize_runs(runs, settings)
    write(out, runs, found, ratios, settings, _notes(pools, folder, settings))
    return found


def _find_folder(data: Path | None) -> Path:
    if data is not None and not data.is_dir():
        raise FileError(data, "does not exist", "pass --data with the folder that holds the data, or leave it out")
    return data_folder(data)


def _time_steps(
    out: Path, tasks: list[tuple[Task, Pool]], settings: Settings, again: bool, tell: Tell
) -> list[dict[str, object]]:
    """Ratios of the first task of each kind of network; timed here, when no worker is left."""
    first: dict[int, cost.Cost] = {}
    for task, pool in tasks:
        first.setdefault(pool.x.ndim, cost.Cost(task, pool, settings))
    if again:
        for entry in first.values():
            entry.path(out).unlink(missing_ok=True)
    finished = run_tasks(
        out, list(first.values()), cost.compute, workers=1, progress=lambda text: tell(f"cost of a step: {text}")
    )
    return [entry for _, found in finished for entry in found["ratios"]]


def _notes(pools: dict[str, Pool], folder: Path, settings: Settings) -> list[str]:
    """What was left out."""
    missing = [PLACES[name] for name in TABLES if name not in pools]
    notes = [] if settings.whole else [QUICK]
    if missing:
        what = " and ".join(missing)
        notes.append(f"Left out, as not in the folder {folder}: {what}. {VARIABLE} or --data names another.")
    return notes
