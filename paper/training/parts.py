"""The study in pieces: all methods and strengths on one task with one seed; each piece is kept as one file."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from crossfusion import __version__
from crossfusion.study import plain_value
from paper.training.loop import trained
from paper.training.measures import measured
from paper.training.settings import METHODS, Settings
from paper.training.tasks import Pool, Task, ready

FORMAT = 1
FOLDER = "parts"
USED = ("strengths", "warm_up", "steps", "batch", "width", "rate", "confidence")  # what the numbers depend on


@dataclass(frozen=True)
class Part:
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


def parts_of(tasks: list[tuple[Task, Pool]], settings: Settings) -> list[Part]:
    """All pieces."""
    names = {id(pool): pool.digest for _, pool in tasks}
    seeds = range(settings.seed, settings.seed + settings.seeds)
    return [Part(task, pool, names[id(pool)], settings, seed) for task, pool in tasks for seed in seeds]


def compute(part: Part) -> dict[str, Any]:
    """Train and measure: a run for each method and strength, ready for JSON."""
    split = ready(part.pool, part.task, part.seed)
    about = {"group": part.task.group, "task": part.task.name, "seed": part.seed}
    runs = [
        about | {"method": method, "strength": strength} | measured(network, split, part.settings, part.task.adapts)
        for method, strength, network in trained(split, part.settings, part.seed)
    ]
    return {"runs": plain_value(runs)}
