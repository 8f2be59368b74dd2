"""Evaluating data sets: on all cores, and nothing computed twice."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossfusion._base import label_text, make_folder
from crossfusion.evaluation import Ratio, Rdr, Study, correlate_distances
from crossfusion.study.dataset import Dataset, Evaluation, Plan
from crossfusion.study.result_files import write_files
from crossfusion.study.resume import run_tasks
from crossfusion.study.tasks import RDR, STUDY, EvaluationTask, compute, list_tasks, parse_outcome, parse_ratio
from crossfusion.study.workers import count_workers

Found = Mapping[str, Any]


def evaluate(
    data: Dataset, out: Path, plan: Plan, *, workers: int | None = None, progress: Callable[[str], None] | None = None
) -> Evaluation:
    """Find ratios, degradation and correlations of one data set, and write them to a folder of its name.

    Parameters
    ----------
    data : Dataset
        Rows, domains, labels and versions.
    out : path
        Folder of the results. Finished tasks are kept there, and read instead of being computed again if the rows and
        the settings are the same.
    plan : Plan
        The settings.
    workers : int, optional
        Processes, by default one per core; 1 works in this one. The results do not depend on it.
    progress : function, optional
        Shown a line about each task.

    Returns
    -------
    Evaluation
        What was found, and the folder of its files.

    Notes
    -----
    Workers are fresh interpreters, so a script that calls this needs ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from crossfusion.study import Dataset, Plan, evaluate
    >>> rng = np.random.default_rng(0)
    >>> site, label = np.repeat(["A", "B"], 40), np.tile(["u", "v"], 40)
    >>> x = rng.normal(size=(80, 3)) + 2 * (label == "v")[:, None] + (site == "B")[:, None]
    >>> data = Dataset("small", {"center": "center"}, x, site.tolist(), label.tolist())
    >>> plan = Plan.quick(distances=["cfd", "mmd"], within_labels=[])
    >>> with tempfile.TemporaryDirectory() as out:
    ...     found = evaluate(data, Path(out), plan, workers=1)
    ...     print(*sorted(path.name for path in found.folder.iterdir()))
    appendix.md cddr.md correlations.md pieces rdr.md results.json scatter.png scatter.svg study.md
    """
    return evaluate_all([(data, plan)], out, workers=workers, progress=progress)[0]


def evaluate_all(
    datasets: Sequence[tuple[Dataset, Plan]],
    out: Path,
    *,
    workers: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Evaluation]:
    """Evaluate several data sets of different names, each with its plan; their tasks are computed together."""
    processes = count_workers(workers)
    for data, _ in datasets:
        make_folder(out / data.name / "pieces")
    tasks = [task for data, plan in datasets for task in list_tasks(data, plan)]
    found = run_tasks(out, tasks, compute, workers=processes, progress=progress or (lambda _: None))
    by_name = [[one for one in found if one[0].data is data] for data, _ in datasets]
    results = [_assemble(data, plan, own, out) for (data, plan), own in zip(datasets, by_name, strict=True)]
    for result in results:
        write_files(result)
    return results


def _assemble(data: Dataset, plan: Plan, found: Sequence[tuple[EvaluationTask, Found]], out: Path) -> Evaluation:
    ratios: dict[str, list[Ratio]] = {}
    for task, result in found:
        if task.kind == RDR:
            ratios.setdefault(task.version, []).extend(map(parse_ratio, result["ratios"]))
    studies = [result for task, result in found if task.kind == STUDY]
    return Evaluation(
        data.name,
        data.note,
        plan,
        dict(sorted(Counter(map(label_text, data.domain)).items())),
        {version: Rdr(_sort_ratios(entries), plan.halves) for version, entries in ratios.items()},
        _merge_studies(studies, plan) if studies else None,
        tuple(dict.fromkeys(said for _, result in found for said in result["cautions"])),
        data.printed,
        out / data.name,
    )


def _sort_ratios(entries: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """Ratios of several tasks as ``rdr`` would have given them: side by side, all distances of each."""
    sides = list(dict.fromkeys((entry.pair, entry.domain) for entry in entries))
    return tuple(sorted(entries, key=lambda entry: sides.index((entry.pair, entry.domain))))


def _merge_studies(studies: Sequence[Found], plan: Plan) -> Study:
    """One study of all versions, as ``degradation_study`` would have found it."""
    outcomes = tuple(parse_outcome(entry) for study in studies for entry in study["outcomes"])
    first = studies[0]
    domains = tuple(first["domains"])
    linked = correlate_distances(outcomes, domains, level=plan.level, permutations=plan.permutations, seed=plan.seed)
    return Study(outcomes, linked, domains, plan.metric, plan.level, first["rows"], first["repeats"])
