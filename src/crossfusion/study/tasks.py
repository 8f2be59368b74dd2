"""An evaluation in tasks: ratios of a version by some distances, study of a version; each is kept as one file."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from crossfusion._base import CrossfusionWarning
from crossfusion._version import __version__
from crossfusion.evaluation import Outcome, Ratio, degradation_study, rdr
from crossfusion.study.dataset import Dataset, Plan, Rows
from crossfusion.study.resume import digest

FORMAT = 1
RDR, STUDY = "rdr", "study"
TOGETHER = 4  # distances in a task of ratios
USED = {  # settings that the numbers of a task depend on
    RDR: ("halves", "rows", "seed"),
    STUDY: ("rows", "repeats", "folds", "draws", "level", "metric", "seed"),
}


@dataclass(frozen=True)
class EvaluationTask:
    """One version of a data set, to find ratios of or to study."""

    kind: str  # what to find
    version: str  # the version's name
    value: Rows | str  # its rows, or the correction that makes them
    data: Dataset  # domains, labels and units, and the rows as they are
    plan: Plan  # the settings
    first: int = 0  # of ratios, the first of the distances: halves do not depend on them, so each task draws the same

    def __reduce__(self) -> tuple[Any, ...]:
        """To a worker goes what it needs: of all versions, the rows of its own."""
        x = self.data.x if isinstance(self.value, str) else self.value
        alone = replace(self.data, versions={}, x=x)
        return EvaluationTask, (self.kind, self.version, self.value, alone, self.plan, self.first)

    @property
    def title(self) -> str:
        """What it is, for people."""
        return f"{self.data.name}, {'ratios' if self.kind == RDR else 'study'} of {self.version}"

    @property
    def distances(self) -> list[str]:
        """Names of its distances."""
        if self.kind == RDR:
            return list(self.plan.distances[self.first : self.first + TOGETHER])
        return [*self.plan.distances, *self.plan.within_labels]

    @property
    def cost(self) -> float:
        """How long it takes, in no unit."""
        domains = len(set(self.data.domain))
        rows = min(self.plan.rows, len(self.data.x) / domains)
        samples = self.plan.halves if self.kind == RDR else self.plan.repeats
        training = 0.0 if self.kind == RDR else 1e5 * self.plan.folds * len(self.data.x)
        return float(domains**2 * samples * rows**2 * (self.data.x.shape[1] + 100.0) + training)

    def path(self, out: Path) -> Path:
        """Its file."""
        plain = re.sub(r"[^A-Za-z0-9]+", "-", self.version).strip("-")[:40]
        name = f"{self.kind}{self.first or ''}-{plain}-{digest([self.version])[:8]}.json"
        return out / self.data.name / "pieces" / name

    def made_with(self) -> dict[str, Any]:
        """All that its numbers depend on."""
        settings = asdict(self.plan)
        is_rows = not isinstance(self.value, str)
        columns = [self.data.domain, self.data.units or ()]
        columns += [self.data.label or ()] if self.kind == STUDY else []
        return {
            "format": FORMAT,
            "version": __version__,
            "correction": None if is_rows else self.value,
            "data": digest([*columns, self.value if is_rows else self.data.x]),
            "distances": self.distances,
            **{name: settings[name] for name in USED[self.kind]},
        }


def list_tasks(data: Dataset, plan: Plan) -> list[EvaluationTask]:
    """All that a data set asks for: ratios of versions that are rows, and where there are labels a study of each."""
    versions = data.all_versions.items()
    found = [
        EvaluationTask(RDR, name, value, data, plan, first)
        for name, value in versions
        if not isinstance(value, str)
        for first in range(0, len(plan.distances), TOGETHER)
    ]
    if data.label is not None:
        found += [EvaluationTask(STUDY, name, value, data, plan) for name, value in versions]
    return found


def compute(task: EvaluationTask) -> dict[str, Any]:
    """What a task is to find, ready for JSON, and what was warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", CrossfusionWarning)
        found = _compute_ratios(task) if task.kind == RDR else _compute_outcomes(task)
    said = [str(entry.message) for entry in warned if issubclass(entry.category, CrossfusionWarning)]
    return found | {"cautions": list(dict.fromkeys(said))}


def _compute_ratios(task: EvaluationTask) -> dict[str, Any]:
    plan, data = task.plan, task.data
    assert not isinstance(task.value, str)
    return rdr(
        task.value,
        data.domain,
        distances=task.distances,
        units=data.units,
        repeats=plan.halves,
        rows=plan.rows,
        seed=plan.seed,
    ).to_dict()


def _compute_outcomes(task: EvaluationTask) -> dict[str, Any]:
    plan, data = task.plan, task.data
    found = degradation_study(
        data.x,
        data.label,
        data.domain,
        distances=task.distances,
        corrections={task.version: task.value},
        units=data.units,
        metric=plan.metric,
        folds=plan.folds,
        rows=plan.rows,
        repeats=plan.repeats,
        level=plan.level,
        draws=plan.draws,
        permutations=1,  # correlations are found over all versions at once
        seed=plan.seed,
    ).to_dict()
    return {name: found[name] for name in ("outcomes", "domains", "rows", "repeats")}


def parse_ratio(entry: Mapping[str, Any]) -> Ratio:
    """A ratio as it was before it was kept."""
    return Ratio(**_parse_fields(Ratio, entry) | {"pair": tuple(entry["pair"])})


def parse_outcome(entry: Mapping[str, Any]) -> Outcome:
    """An outcome as it was before it was kept."""
    distances = {name: _parse_number(value) for name, value in entry["distances"].items()}
    return Outcome(**_parse_fields(Outcome, entry) | {"distances": distances})


def _parse_fields(kind: type[Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """Fields, with null and "inf" as numbers again."""
    return {
        part.name: _parse_number(entry[part.name]) if part.type in (float, "float") else entry[part.name]
        for part in fields(kind)
    }


def _parse_number(value: float | str | None) -> float:
    return float("nan") if value is None else float(value)
