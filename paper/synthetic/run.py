"""Running the study: all cores, one process a task, and nothing computed twice."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion import FileError, InputError
from crossfusion.study import compute_all, count_workers, make_folder, write_table, write_text
from paper.synthetic.settings import Settings
from paper.synthetic.tasks import compute, list_tasks, read_result, schema, write_result

if TYPE_CHECKING:
    import pyarrow as pa

TABLE = "trials.parquet"
KEY = b"crossfusion.settings"
AGAIN = "run the study again, which only puts it together"

Progress = Callable[[int], None]


def run(out: Path, settings: Settings, *, workers: int | None = None, progress: Progress | None = None) -> "pa.Table":
    """Run the study, or what is left of it.

    Parameters
    ----------
    out : path
        Folder of the results; made if it does not exist. Finished tasks are kept in its folder ``parts``, and read
        instead of being computed again.
    settings : Settings
        Every choice.
    workers : int, optional
        Processes, by default one a core. The results do not depend on it.
    progress : function, optional
        Called with the number of pairs that have been finished since the last call.

    Returns
    -------
    pyarrow.Table
        A row a trial and level, with a column for each measure; also written to ``trials.parquet``,
        whose metadata hold the settings.

    Notes
    -----
    Workers are fresh interpreters, so a script that calls this needs ``if __name__ == "__main__":``.
    """
    import pyarrow as pa

    processes = count_workers(workers)
    folder = make_folder(out / "parts")
    tables = {task: read_result(folder, task, settings) for task in list_tasks(settings)}
    missing = [task for task, table in tables.items() if table is None]
    missing.sort(key=lambda task: task.cost(settings), reverse=True)
    report = progress or (lambda _: None)
    report(count_pairs(settings) - sum(task.count(settings) for task in missing))
    with closing(compute_all(partial(compute, settings), missing, processes)) as finished:
        for task, table in finished:
            write_result(folder, task, settings, table)
            tables[task] = table
            report(task.count(settings))
    result = pa.concat_tables(tables.values()).combine_chunks()
    made_with = json.dumps(asdict(settings), indent=2)
    # In one file with the trials, so that settings of one run never stand beside trials of another.
    write_table(out / TABLE, result.replace_schema_metadata({KEY: made_with.encode()}))
    write_text(out / "settings.json", made_with + "\n")
    return result


def read(out: Path) -> "pa.Table":
    """The results that the last run left in a folder.

    Parameters
    ----------
    out : path
        The folder.

    Returns
    -------
    pyarrow.Table
        What `run` returned.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = out / TABLE
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read()
    except FileNotFoundError as problem:
        raise FileError(path, "does not exist", "run 'python -m paper synthetic' to its end first") from problem
    except (pa.ArrowException, OSError) as problem:
        raise FileError(path, "is damaged", f"delete it, and {AGAIN}") from problem
    if not table.schema.equals(schema()):
        raise FileError(path, "is not a table of the synthetic study", "choose its folder")
    return table


def read_settings(out: Path) -> Settings:
    """The settings that the results in a folder were made with.

    Parameters
    ----------
    out : path
        The folder.

    Returns
    -------
    Settings
        As `run` was given them.
    """
    metadata = read(out).schema.metadata or {}
    try:
        stored: dict[str, Any] = json.loads(metadata[KEY])
        if set(stored) == {entry.name for entry in fields(Settings)}:
            values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
            return Settings(**values)
    except (KeyError, ValueError, TypeError, InputError):
        pass
    raise FileError(out / TABLE, "does not hold the settings that it was made with", AGAIN)


def count_pairs(settings: Settings) -> int:
    """Number of pairs that settings ask for.

    Parameters
    ----------
    settings : Settings
        Every choice.

    Returns
    -------
    int
        Over all experiments, levels and trials.
    """
    return sum(task.count(settings) for task in list_tasks(settings))
