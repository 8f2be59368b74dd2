"""The study in tasks: each is computed by itself, and kept as one file that says what it was made with."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion import InputError, __version__
from crossfusion.study import write_table
from paper.synthetic.measures import NAMES, measure
from paper.synthetic.populations import draw_pairs, trial_seed
from paper.synthetic.settings import VARIANTS, Settings

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"crossfusion.synthetic"
DRAWS = 1  # number of the way in which populations are drawn: raise it when the same seed gives other rows
BLOCK = 5  # trials of a task, the same whatever the number of trials, so that more trials add tasks
KEYS = ("experiment", "variant", "dim", "size", "level", "trial", "seed")


@dataclass(frozen=True)
class Task:
    """Some trials of one experiment at one dimension and size."""

    experiment: str
    variant: str
    dim: int
    size: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Name of the file."""
        what = "-".join(filter(None, (self.experiment, self.variant)))
        return f"{what}-d{self.dim}-n{self.size}-t{self.start:03d}-{self.stop:03d}.parquet"

    def count(self, settings: Settings) -> int:
        """Number of pairs."""
        return len(settings.levels(self.experiment)) * (self.stop - self.start)

    def cost(self, settings: Settings) -> float:
        """How long it takes, in no unit."""
        return self.count(settings) * self.size**2 * (self.dim + 100.0)

    def made_with(self, settings: Settings) -> dict[str, Any]:
        """All that its numbers depend on: two parts go together if this is equal."""
        exact = self.size <= settings.exact_up_to
        transport: dict[str, Any] = {"transport": "exact"}
        if not exact:
            transport = {"transport": "sinkhorn", "epsilon": settings.epsilon, "tolerance": settings.tolerance}
        return {"version": __version__, "draws": DRAWS} | settings.choices(self.experiment) | transport


def list_tasks(settings: Settings) -> list[Task]:
    """All tasks that settings ask for, in the order of the results."""
    starts = range(0, settings.trials, BLOCK)
    return [
        Task(experiment, variant, dim, size, start, min(start + BLOCK, settings.trials))
        for experiment in settings.experiments
        for variant in VARIANTS.get(experiment, ("",))
        for dim in settings.dims
        for size in settings.sizes
        for start in starts
    ]


def compute(settings: Settings, task: Task) -> "pa.Table":
    """Draw and measure the pairs of a task."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(_rows(settings, task)), schema())


def _rows(settings: Settings, task: Task) -> Iterator[dict[str, Any]]:
    about = {name: getattr(task, name) for name in ("experiment", "variant", "dim", "size")}
    for trial in range(task.start, task.stop):
        drawn = draw_pairs(settings, task.experiment, task.dim, task.size, trial, variant=task.variant)
        for level, (a, b) in drawn:
            found = measure(settings, task.experiment, task.size, a, b)
            yield about | {"level": level, "trial": trial, "seed": trial_seed(trial)} | found


def schema() -> "pa.Schema":
    """Columns of the results: a row a trial and level."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    kinds = dict(zip(KEYS, (text, text, whole, whole, number, whole, whole), strict=True))
    return pa.schema([*kinds.items(), *((name, number) for name in NAMES)])


def write_result(folder: Path, task: Task, settings: Settings, table: "pa.Table") -> None:
    """Keep a finished task."""
    about = json.dumps(task.made_with(settings)).encode()
    write_table(folder / task.name, table.replace_schema_metadata({KEY: about}))


def read_result(folder: Path, task: Task, settings: Settings) -> "pa.Table | None":
    """A task that was kept, or None if it is missing or damaged; one of other settings is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(folder / task.name, page_checksum_verification=True).read()
        about = json.loads(table.schema.metadata[KEY])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        return None
    _check_same(folder.parent, task, about, task.made_with(settings))
    table = table.replace_schema_metadata(None)
    whole = table.schema.equals(schema()) and table.num_rows == task.count(settings)
    return table if whole else None


def _check_same(folder: Path, task: Task, there: Any, here: dict[str, Any]) -> None:
    if there == here:
        return
    there = there if isinstance(there, dict) else {}
    name = next((name for name in here if there.get(name) != here[name]), "other settings")
    raise InputError(
        problem=f"{folder} holds results of {task.experiment} made with other settings"
        f" ({name} {there.get(name)} there, {here.get(name)} here)",
        remedy="choose another folder, or delete that one",
    )
