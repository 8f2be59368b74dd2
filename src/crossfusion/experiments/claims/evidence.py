"""What the verdicts rest on: trials of the synthetic study, timings, and the decomposition of the first figure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion.errors import InputError
from crossfusion.experiments import runtime
from crossfusion.experiments.synthetic import EXPERIMENTS, Settings
from crossfusion.kernels import FloatArray

if TYPE_CHECKING:
    import pyarrow as pa

Setting = tuple[int, int]  # features, rows a group
TITLES = {"transport": "Wasserstein", "hausdorff": "Hausdorff", "chamfer": "Chamfer", "mmd": "MMD", "cfd": "CFD"}
PAPER = ("cfd", "transport", "mmd", "hausdorff", "chamfer")  # the measures of the paper
STABLE = 0.10  # largest relative change of what is called stable, constant or robust
STEADY = f"at most {STABLE:.0%} (and two standard errors)"
SECOND = " If not, the same with B a moved copy of A."
POINTWISE = ("transport", "hausdorff", "chamfer")  # those that it treats alike


@dataclass(frozen=True)
class Curve:
    """A measure over the levels of an experiment: values by level and trial."""

    levels: FloatArray
    values: FloatArray

    @cached_property
    def mean(self) -> FloatArray:
        """Means over trials."""
        found: FloatArray = self.values.mean(axis=1)
        return found

    @cached_property
    def error(self) -> FloatArray:
        """Their standard errors."""
        return self._error(self.values)

    @property
    def relative(self) -> FloatArray:
        """Means over the first one."""
        ratio: FloatArray = self.mean / self.mean[0]
        return ratio

    @property
    def is_stable(self) -> bool:
        """No level's relative change is beyond STABLE by more than two standard errors."""
        return bool(np.all(self._least_change <= STABLE))

    @property
    def is_stable_at_end(self) -> bool:
        """The last level's is not."""
        return bool(self._least_change[-1] <= STABLE)

    @property
    def end(self) -> tuple[float, float]:
        """Relative change at the last level, and two standard errors of it."""
        return float(self.relative[-1] - 1), float(self._doubt[-1])

    @property
    def _least_change(self) -> FloatArray:
        """Relative changes, less two standard errors."""
        found: FloatArray = np.abs(self.relative - 1) - self._doubt
        return found

    @property
    def _doubt(self) -> FloatArray:
        """Two standard errors of the relative changes; trials are paired, as they share random numbers."""
        rest = self.values - self.relative[:, None] * self.values[0]
        return 2 * self._error(rest / self.mean[0])

    def _error(self, values: FloatArray) -> FloatArray:
        trials = values.shape[1]
        if trials < 2:
            return np.full(len(values), np.inf)
        found: FloatArray = values.std(axis=1, ddof=1) / np.sqrt(trials)
        return found

    @property
    def change(self) -> float:
        """The largest relative change from the first level, with its sign."""
        off = self.relative - 1
        return float(off[np.argmax(np.abs(off))])

    @property
    def sensitivity(self) -> float:
        """Fractional change of the mean over that of the factor, from the first level to the last."""
        return float((self.relative[-1] - 1) / (self.levels[-1] / self.levels[0] - 1))

    @property
    def steps(self) -> FloatArray:
        """The same from each level to the next."""
        fractional = np.diff(self.mean) / self.mean[:-1]
        found: FloatArray = fractional / (np.diff(self.levels) / self.levels[:-1])
        return found


class Trials:
    """The synthetic study's table, by setting."""

    def __init__(self, table: "pa.Table", experiments: Sequence[str] = EXPERIMENTS) -> None:
        self.columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
        missing = [name for name in experiments if name not in set(self.columns["experiment"])]
        if missing:
            raise InputError(f"the synthetic study has no {', '.join(missing)}: run it with --experiment all")

    @cached_property
    def settings(self) -> list[Setting]:
        """Features and rows of every setting."""
        return sorted({(int(d), int(n)) for d, n in zip(self.columns["dim"], self.columns["size"], strict=True)})

    @property
    def trials(self) -> int:
        """Trials of a setting."""
        return int(self.columns["trial"].max()) + 1

    def curve(self, experiment: str, measure: str, setting: Setting, variant: str = "") -> Curve:
        """A measure over levels; "transport" is exact Wasserstein where the study has it, else Sinkhorn."""
        chosen = self._chosen(experiment, setting, variant)
        level, value = self.columns["level"][chosen], self._values(measure)[chosen]
        order = np.argsort(self.columns["trial"][chosen], kind="stable")
        level, value = level[order], value[order]
        grid = np.array(list(dict.fromkeys(level.tolist())))
        return Curve(grid, np.stack([value[level == each] for each in grid]))

    def _chosen(self, experiment: str, setting: Setting, variant: str) -> Any:
        wanted = {"experiment": experiment, "variant": variant, "dim": setting[0], "size": setting[1]}
        return np.logical_and.reduce([self.columns[name] == value for name, value in wanted.items()])

    def _values(self, measure: str) -> FloatArray:
        if measure != "transport":
            return np.asarray(self.columns[measure], dtype=float)
        exact, entropic = self._values("wasserstein"), self._values("sinkhorn")
        return np.where(np.isnan(exact), entropic, exact)


@dataclass(frozen=True)
class Evidence:
    """All that the checks look at."""

    trials: Trials
    choices: Settings
    timings: "pa.Table"
    decomposition: Mapping[str, Any]
    copies: Trials

    @cached_property
    def exponents(self) -> dict[str, float]:
        """Fitted power of the rows, by measure."""
        return runtime.exponents(self.timings)

    @property
    def of_copies(self) -> "Evidence":
        """The same with trials in which the second group is the first one moved."""
        return replace(self, trials=self.copies)

    def curves(self, experiment: str, measure: str, variant: str = "") -> dict[str, Curve]:
        """A measure in every setting, by the setting's name."""
        return {
            name_of(setting): self.trials.curve(experiment, measure, setting, variant)
            for setting in self.trials.settings
        }

    def tested(
        self, experiment: str, measures: Sequence[str], test: Callable[[Curve], Any], variant: str = ""
    ) -> dict[tuple[str, str], bool]:
        """Outcome of a test of each measure's curve in each setting."""
        return {
            (TITLES.get(measure, measure), setting): bool(test(curve))
            for measure in measures
            for setting, curve in self.curves(experiment, measure, variant).items()
        }


def name_of(setting: Setting) -> str:
    """A setting in words."""
    return f"d={setting[0]}, n={setting[1]}"


def span(values: Iterable[float], form: str = ".3g") -> str:
    """Smallest to largest of some numbers."""
    found = [float(value) for value in values]
    low, high = (format(value, form).replace("-", "−") for value in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def changes(curves: Mapping[str, Curve]) -> str:
    """Largest relative changes, over settings."""
    return span((curve.change for curve in curves.values()), "+.1%")


def share(outcomes: Iterable[bool]) -> str:
    """How many of how many."""
    found = [*outcomes]
    return f"{sum(found)} of {len(found)}"
