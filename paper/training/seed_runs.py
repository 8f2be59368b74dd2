"""The study in runs: all methods and strengths on one task with one seed; each is kept as one file."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from crossfusion import __version__
from crossfusion.study import plain_value
from paper.training.loop import train_all
from paper.training.measures import measure_network
from paper.training.settings import METHODS, Settings
from paper.training.tasks import Pool, Task, split_rows

FORMAT = 1
FOLDER = "parts"
USED = ("strengths", "warm_up", "steps", "batch", "width", "rate", "confidence")  # what the numbers depend on


@dataclass(frozen=True)
class SeedRun:
    """One task with one seed.

    Parameters
    ----------
    task : Task
        From where to where.
    pool : Pool
        All rows of the data set.
    data : str
        A short name for them.
    settings : Settings
        Every choice.
    seed : int
        Of splits, weights and batches.
    """

    task: Task
    pool: Pool
    data: str
    settings: Settings
    seed: int

    @property
    def title(self) -> str:
        """What it is, for people."""
        return f"{self.task.group}, {self.task.name}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """How long it takes, in no unit."""
        return float(self.pool.x[0].size * (len(self.task.sources) + self.task.adapts))

    def path(self, out: Path) -> Path:
        """Its file."""
        name = re.sub(r"\W+", "-", f"{self.task.group} {self.task.name} {self.seed}").lower()
        return out / FOLDER / f"{name}.json"

    def made_with(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        settings = asdict(self.settings)
        return {
            "format": FORMAT,
            "version": __version__,
            "torch": torch.__version__,
            "data": self.data,
            "task": list(self.task),
            "seed": self.seed,
            "methods": list(METHODS),
            **{name: settings[name] for name in USED},
        }


def list_runs(tasks: list[tuple[Task, Pool]], settings: Settings) -> list[SeedRun]:
    """All runs of a seed."""
    names = {id(pool): pool.digest for _, pool in tasks}
    seeds = range(settings.seed, settings.seed + settings.seeds)
    return [SeedRun(task, pool, names[id(pool)], settings, seed) for task, pool in tasks for seed in seeds]


def compute(run: SeedRun) -> dict[str, Any]:
    """Train and measure: a run for each method and strength, ready for JSON."""
    split = split_rows(run.pool, run.task, run.seed)
    about = {"group": run.task.group, "task": run.task.name, "seed": run.seed}
    runs = [
        about
        | {"method": method, "strength": strength}
        | measure_network(network, split, run.settings, run.task.adapts)
        for method, strength, network in train_all(split, run.settings, run.seed)
    ]
    return {"runs": plain_value(runs)}
