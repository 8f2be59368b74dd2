"""Runs put together: the strength that is chosen without a label of the target, means over seeds, intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from crossfusion.study import compute_half_width, plain_value
from paper.training.settings import LEVEL, METHODS, NONE, Settings

Run = Mapping[str, Any]
DISTANCES = ("cfd", "cfd_given_label", "energy", "energy_centred")


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds, and half of its interval.

    Parameters
    ----------
    mean : float
        Over seeds.
    half : float
        Half the width of the interval, by Student's t over seeds.
    """

    mean: float
    half: float

    @property
    def sign(self) -> int:
        """1 or -1 if the interval lies on one side of 0, else 0."""
        return int(np.sign(self.mean)) if abs(self.mean) > self.half else 0


@dataclass(frozen=True)
class Outcome:
    """One method on one data set, averaged over its tasks.

    Parameters
    ----------
    group : str
        The data set.
    method : str
        The method.
    strength : float
        Chosen by the sources' labels alone.
    target, source : Estimate
        Accuracies.
    difference : Estimate
        Of the target's accuracy from that without a regulariser, seed by seed.
    distances : dict
        Means of the distances of the features.
    confident, right : float
        Share of the target's rows with a confident prediction, and the accuracy of those.
    best : float
        The strength of the grid with the highest accuracy on the target, which nobody without its labels can know.
    best_target, best_difference : Estimate
        The same at that strength.
    by_strength : dict
        Mean accuracy on the target and the sources at each strength.
    """

    group: str
    method: str
    strength: float
    target: Estimate
    source: Estimate
    difference: Estimate
    distances: dict[str, float]
    confident: float
    right: float
    best: float
    best_target: Estimate
    best_difference: Estimate
    by_strength: dict[float, dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plain: dict[str, Any] = plain_value(asdict(self))
        return plain


def summarize_runs(runs: Sequence[Run], settings: Settings) -> list[Outcome]:
    """All data sets and methods.

    Parameters
    ----------
    runs : sequence of mappings
        Each a task, seed, method and strength.
    settings : Settings
        The grid, and what a strength may cost.

    Returns
    -------
    list of Outcome
        Data sets in their order, methods in theirs.
    """
    groups = list(dict.fromkeys(run["group"] for run in runs))
    return [_outcome(RunTable(runs, group), method, settings) for group in groups for method in METHODS]


class RunTable:
    """Runs of one data set by method, strength and seed, averaged over tasks."""

    def __init__(self, runs: Sequence[Run], group: str) -> None:
        self.group = group
        self._cells: dict[tuple[str, float], dict[int, list[Run]]] = {}
        for run in runs:
            if run["group"] == group:
                cell = self._cells.setdefault((run["method"], run["strength"]), {})
                cell.setdefault(run["seed"], []).append(run)

    def strengths(self, method: str) -> list[float]:
        """The grid of a method, the weakest first."""
        return sorted(strength for name, strength in self._cells if name == method)

    def values(self, method: str, strength: float, what: str) -> Any:
        """A value for each seed."""
        cell = self._cells[method, strength]
        return np.array([np.mean([_number(run[what]) for run in cell[seed]]) for seed in sorted(cell)])

    def mean(self, method: str, strength: float, what: str) -> float:
        """Over seeds."""
        return float(self.values(method, strength, what).mean())


def choose_strength(strengths: Sequence[float], source: Callable[[float], float], least: float) -> float:
    """The largest strength that keeps the accuracy on the sources at `least`; else the smallest of the grid.

    Parameters
    ----------
    strengths : sequence of float
        The grid.
    source : function
        Accuracy on held-out rows of the sources, at a strength.
    least : float
        What it has to be.

    Returns
    -------
    float
        A strength of the grid. No label of the target is asked for.
    """
    return max([strength for strength in strengths if source(strength) >= least], default=min(strengths))


def _outcome(table: RunTable, method: str, settings: Settings) -> Outcome:
    strengths = table.strengths(method)
    least = table.mean(NONE, 0.0, "source") - settings.tolerance
    strength = choose_strength(strengths, lambda s: table.mean(method, s, "source"), least)
    best = max(strengths, key=lambda s: table.mean(method, s, "target"))
    base = table.values(NONE, 0.0, "target")
    target, at_best = (table.values(method, s, "target") for s in (strength, best))
    return Outcome(
        table.group,
        method,
        strength,
        estimate_mean(target),
        estimate_mean(table.values(method, strength, "source")),
        estimate_mean(target - base),
        {name: table.mean(method, strength, name) for name in DISTANCES},
        table.mean(method, strength, "confident"),
        table.mean(method, strength, "right"),
        best,
        estimate_mean(at_best),
        estimate_mean(at_best - base),
        {s: {what: table.mean(method, s, what) for what in ("target", "source", *DISTANCES)} for s in strengths},
    )


def estimate_mean(values: Any) -> Estimate:
    """Mean of independent values, with the interval of Student's t."""
    error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
    return Estimate(float(np.mean(values)), float(compute_half_width(LEVEL, len(values) - 1) * error))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
