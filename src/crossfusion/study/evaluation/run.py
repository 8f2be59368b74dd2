"""Evaluating data sets: on all cores, and nothing computed twice."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossfusion._base import check_whole, label_text, thread_count
from crossfusion.evaluation import Ratio, Rdr, Study, associations
from crossfusion.study import output
from crossfusion.study.evaluation.files import write_files
from crossfusion.study.evaluation.model import Dataset, Evaluated, Plan
from crossfusion.study.evaluation.tasks import RDR, STUDY, Piece, as_outcome, as_ratio, compute, pieces_of
from crossfusion.study.resume import all_found

Found = Mapping[str, Any]


def evaluate(
    data: Dataset,
    out: Path,
    plan: Plan,
    *,
    workers: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Evaluated:
    """Ratios, degradation and correlations of one data set, as files in a folder of its name.

    Parameters
    ----------
    data : Dataset
        Rows, domains, labels and versions.
    out : path
        Folder of the results. Finished pieces are kept there, and read instead of being computed again if the rows and
        the settings are the same.
    plan : Plan
        The settings.
    workers : int, optional
        Processes, by default one a core; 1 works in this one. The results do not depend on it.
    progress : function, optional
        Shown a line about each piece.

    Returns
    -------
    Evaluated
        What was found, and the folder of its files.

    Notes
    -----
    Workers are fresh interpreters, so a script that calls this needs ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from crossfusion.experiments.evaluation import Dataset, Plan, evaluate
    >>> rng = np.random.default_rng(0)
    >>> site, label = np.repeat(["A", "B"], 40), np.tile(["u", "v"], 40)
    >>> x = rng.normal(size=(80, 3)) + 2 * (label == "v")[:, None] + (site == "B")[:, None]
    >>> data = Dataset("small", {"centre": "centre"}, x, site.tolist(), label.tolist())
    >>> plan = Plan.quick(distances=["cfd", "mmd"], within_labels=[])
    >>> with tempfile.TemporaryDirectory() as out:
    ...     found = evaluate(data, Path(out), plan, workers=1)
    ...     print(*sorted(path.name for path in found.folder.iterdir()))
    appendix.md cddr.md correlations.md pieces rdr.md results.json scatter.png scatter.svg study.md
    """
    return evaluate_all([(data, plan)], out, workers=workers, progress=progress)[0]


def evaluate_all(
    tasks: Sequence[tuple[Dataset, Plan]],
    out: Path,
    *,
    workers: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[Evaluated]:
    """The same of several data sets, whose pieces are worked on together.

    Parameters
    ----------
    tasks : sequence of pairs
        Data sets with their settings; names must differ.
    out, workers, progress
        As in `evaluate`.

    Returns
    -------
    list of Evaluated
        In the order given.
    """
    if workers is not None:
        check_whole(workers, "workers")
    for data, _ in tasks:
        output.make_folder(out / data.name / "pieces")
    pieces = [piece for data, plan in tasks for piece in pieces_of(data, plan)]
    found = all_found(out, pieces, compute, workers or thread_count(), progress or (lambda _: None))
    by_name = [[one for one in found if one[0].data is data] for data, _ in tasks]
    results = [_put_together(data, plan, own, out) for (data, plan), own in zip(tasks, by_name, strict=True)]
    for result in results:
        write_files(result)
    return results


def _put_together(data: Dataset, plan: Plan, found: Sequence[tuple[Piece, Found]], out: Path) -> Evaluated:
    ratios: dict[str, list[Ratio]] = {}
    for piece, result in found:
        if piece.kind == RDR:
            ratios.setdefault(piece.version, []).extend(map(as_ratio, result["ratios"]))
    studies = [result for piece, result in found if piece.kind == STUDY]
    return Evaluated(
        data.name,
        data.note,
        plan,
        dict(sorted(Counter(map(label_text, data.domain)).items())),
        {version: Rdr(_in_order(entries), plan.halves) for version, entries in ratios.items()},
        _joined(studies, plan) if studies else None,
        tuple(dict.fromkeys(said for _, result in found for said in result["cautions"])),
        out / data.name,
    )


def _in_order(entries: Sequence[Ratio]) -> tuple[Ratio, ...]:
    """Ratios of several pieces as ``rdr`` would have given them: side by side, all distances of each."""
    sides = list(dict.fromkeys((entry.pair, entry.domain) for entry in entries))
    return tuple(sorted(entries, key=lambda entry: sides.index((entry.pair, entry.domain))))


def _joined(studies: Sequence[Found], plan: Plan) -> Study:
    """One study of all versions, as ``degradation_study`` would have found it."""
    outcomes = tuple(as_outcome(entry) for study in studies for entry in study["outcomes"])
    first = studies[0]
    domains = tuple(first["domains"])
    linked = associations(outcomes, domains, level=plan.level, permutations=plan.permutations, seed=plan.seed)
    return Study(outcomes, linked, domains, plan.metric, plan.level, first["rows"], first["repeats"])
