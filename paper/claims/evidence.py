"""What the verdicts rest on: trials of the synthetic study, timings, and the decomposition of the first figure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import InputError
from paper import runtime
from paper.arrays import FloatArray
from paper.claims.curve import Curve
from paper.claims.outcomes import Outcome
from paper.synthetic import EXPERIMENTS, Settings

if TYPE_CHECKING:
    import pyarrow as pa

Setting = tuple[int, int]  # features, rows a group
TITLES = {"transport": "Wasserstein", "hausdorff": "Hausdorff", "chamfer": "Chamfer", "mmd": "MMD", "cfd": "CFD"}
PAPER = ("cfd", "transport", "mmd", "hausdorff", "chamfer")  # the measures of the paper
POINTWISE = ("transport", "hausdorff", "chamfer")  # those that it treats alike


class Trials:
    """The synthetic study's table, by setting."""

    def __init__(self, table: "pa.Table", experiments: Sequence[str] = EXPERIMENTS) -> None:
        self.columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
        missing = [name for name in experiments if name not in set(self.columns["experiment"])]
        if missing:
            raise InputError(
                problem=f"the synthetic study has no {', '.join(missing)}", remedy="run it with --experiment all"
            )
        for name in experiments:
            self._check_enough(name)

    def _check_enough(self, experiment: str) -> None:
        """Refuse what has no standard error, or nothing to compare."""
        chosen = self.columns["experiment"] == experiment
        for what, column in (("trials", "trial"), ("levels", "level")):
            if len(set(self.columns[column][chosen])) < 2:
                raise InputError(
                    problem=f"the synthetic study has fewer than two {what} of {experiment}, which decides nothing",
                    remedy=f"run it again with more {what}",
                )

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
        chosen = self._choose_trials(experiment, setting, variant)
        level, value = self.columns["level"][chosen], self._values(measure)[chosen]
        order = np.argsort(self.columns["trial"][chosen], kind="stable")
        level, value = level[order], value[order]
        grid = np.array(list(dict.fromkeys(level.tolist())))
        return Curve(grid, np.stack([value[level == each] for each in grid]))

    def _choose_trials(self, experiment: str, setting: Setting, variant: str) -> Any:
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
        return runtime.fit_exponents(self.timings)

    @cached_property
    def feature_exponents(self) -> dict[str, float]:
        """Fitted power of the features, by measure."""
        return runtime.fit_exponents(self.timings, "dim")

    @property
    def of_copies(self) -> "Evidence":
        """The same with trials in which the second group is the first one moved."""
        return replace(self, trials=self.copies)

    def curves(self, experiment: str, measure: str, variant: str = "") -> dict[str, Curve]:
        """A measure in every setting, by the setting's name."""
        return {
            describe_setting(setting): self.trials.curve(experiment, measure, setting, variant)
            for setting in self.trials.settings
        }

    def test_curves(
        self, experiment: str, measures: Sequence[str], test: Callable[[Curve], Outcome], variant: str = ""
    ) -> dict[tuple[str, str], Outcome]:
        """Outcome of a test of each measure's curve in each setting."""
        return {
            (TITLES.get(measure, measure), setting): test(curve)
            for measure in measures
            for setting, curve in self.curves(experiment, measure, variant).items()
        }


def describe_setting(setting: Setting) -> str:
    """A setting in words."""
    return f"d={setting[0]}, n={setting[1]}"


def span(values: Iterable[float], form: str = ".3g") -> str:
    """Smallest to largest of those numbers that there are."""
    found = [float(value) for value in values if np.isfinite(value)]
    if not found:
        return "unknown"
    low, high = (format(value, form).replace("-", "−") for value in (min(found), max(found)))
    return low if low == high else f"{low} to {high}"


def changes(curves: Mapping[str, Curve]) -> str:
    """Largest relative changes, over settings."""
    return span((curve.change for curve in curves.values()), "+.1%")
