"""What a step costs with each method, over a step without a regulariser; timed in turns, in one process."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from crossfusion import __version__
from paper.training.loop import batches, copy_state, learn, make_penalty, new_state, select_labeled
from paper.training.network import reproducible
from paper.training.seed_runs import FOLDER
from paper.training.settings import METHODS, NONE, Settings
from paper.training.tasks import Pool, Rows, Split, Task, split_rows

FORMAT = 2
SIZES = (1, 8)  # times the rows of a step of the study
WARM = 5  # rounds that are not counted
ALONE = "source alone"
USED = ("batch", "width", "rounds", "confidence")


@dataclass(frozen=True)
class Cost:
    """The cost of steps on one task.

    Parameters
    ----------
    task : Task
        Of which rows are taken.
    pool : Pool
        All rows of its data set.
    settings : Settings
        Every choice.
    """

    task: Task
    pool: Pool
    settings: Settings

    @property
    def title(self) -> str:
        """What it is, for people."""
        return f"cost of a step, {self.task.group}"

    @property
    def cost(self) -> float:
        """Nothing else runs beside it."""
        return 0.0

    def path(self, out: Path) -> Path:
        """Its file."""
        return out / FOLDER / re.sub(r"\W+", "-", f"cost {self.task.group}.json").replace("-json", ".json")

    def made_with(self) -> dict[str, Any]:
        """What was timed; the machine is not asked for."""
        settings = asdict(self.settings)
        about = {"format": FORMAT, "version": __version__, "torch": torch.__version__, "sizes": SIZES}
        return about | {"task": list(self.task), **{name: settings[name] for name in USED}}


def compute(cost: Cost) -> dict[str, Any]:
    """Ratios of the time of a step to that without a regulariser: median and quartiles over rounds.

    Every method passes the same rows of both domains through the network, so that a ratio is what the penalty adds;
    ``source alone`` is a step that leaves out the rows without labels.
    """
    split = split_rows(cost.pool, cost.task, cost.settings.seed)
    return {"ratios": [entry for size in SIZES for entry in _ratios(split, size * cost.settings.batch, cost)]}


def _ratios(split: Split, batch: int, cost: Cost) -> list[dict[str, Any]]:
    seconds = _seconds(split, batch, cost.settings)
    base = seconds[NONE]
    quartiles = {name: np.quantile(own / base, (0.25, 0.5, 0.75)).tolist() for name, own in seconds.items()}
    about = {"group": cost.task.group, "rows": batch, "rounds": cost.settings.rounds}
    return [
        about | {"method": name, "lower": low, "ratio": middle, "upper": high}
        for name, (low, middle, high) in quartiles.items()
    ]


def _seconds(split: Split, batch: int, settings: Settings) -> dict[str, Any]:
    """Seconds of the processor for a step of each method, round by round; what else the machine does hardly counts.

    The order changes from round to round, as who comes after whom decides what is in the caches.
    """
    with reproducible(settings.seed):
        rounds = WARM + settings.rounds
        drawn = batches(split.train, rounds, batch, settings.seed)
        start = new_state(split, settings)
        states = {name: copy_state(start, settings) for name in (*METHODS, ALONE)}
        penalties = {
            name: _penalize_nothing
            if name == NONE
            else make_penalty(states[name], name, len(split.train), split.classes, settings)
            for name in METHODS
        }
        order = np.random.default_rng(settings.seed)
        spent: dict[str, list[float]] = {name: [] for name in states}
        for k in range(rounds):
            rows = drawn.at(k)
            own = select_labeled(rows)
            for name in order.permutation(list(states)):
                begin = process_time()
                learn(states[name], own if name == ALONE else rows, penalties.get(name), 1.0)
                spent[name].append(process_time() - begin)
    return {name: np.array(times[WARM:]) for name, times in spent.items()}


def _penalize_nothing(features: torch.Tensor, _scores: Any, _rows: Rows, _strength: float) -> torch.Tensor:
    """A penalty of 0, with the rows of all domains in the graph."""
    return features.new_zeros(())
