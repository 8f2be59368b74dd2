"""All checks, the evidence they need, and the ledger that they fill."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion import __version__
from crossfusion.study import make_folder
from paper import decomposition, runtime, synthetic
from paper.claims import copies, cost, histology, limits, response, robustness, sampling, theory
from paper.claims.evidence import Evidence, Trials
from paper.claims.files import write_ledger
from paper.claims.model import Check, Claim

if TYPE_CHECKING:
    import pyarrow as pa

Tell = Callable[[str], None]
PARTS: dict[str, tuple[Check, ...]] = {
    "Other distances": limits.CHECKS,
    "Propositions": theory.CHECKS,
    "Cost": cost.CHECKS,
    "What measures should respond to": response.CHECKS,
    "What they should not respond to": robustness.CHECKS,
    "Sampling, imbalance and shape": sampling.CHECKS,
    "Histopathology, from the printed tables": histology.CHECKS,
}
CHECKS = tuple(check for checks in PARTS.values() for check in checks)
HEADER = ("claim", "place", "verdict", "figure")


def run(out: Path, *, quick: bool = False, workers: int | None = None, progress: Tell | None = None) -> list[Claim]:
    """Check every claim against the studies in a folder, running those that are missing, and write the ledger.

    Parameters
    ----------
    out : path
        Folder of ``claims.md``, ``claims.html`` and ``claims.json``, and of the studies: ``synthetic``, ``runtime`` and
        ``decomposition``. Studies that are there are read, whatever their settings; the others are run.
    quick : bool
        Run what is missing with small settings.
    workers : int, optional
        Processes of the synthetic study, by default one a core.
    progress : function, optional
        Shown a line about each step.

    Returns
    -------
    list of Claim
        One a check, in the order of the paper's parts.
    """
    tell = progress or (lambda _: None)
    evidence = gather(make_folder(out), quick=quick, workers=workers, tell=tell)
    tell(f"claims: {len(CHECKS)} checks")
    found = judge(evidence)
    write_ledger(out, found, source(evidence))
    return found


def judge(evidence: Evidence) -> list[Claim]:
    """Every claim with its verdict.

    Parameters
    ----------
    evidence : Evidence
        What the studies found.

    Returns
    -------
    list of Claim
        One a check.
    """
    return [replace(check(evidence), part=part) for part, checks in PARTS.items() for check in checks]


def gather(out: Path, *, quick: bool, workers: int | None, tell: Tell) -> Evidence:
    """Read the studies of a folder, and run those that are missing.

    Parameters
    ----------
    out : path
        The folder.
    quick, workers, tell
        As in `run`.

    Returns
    -------
    Evidence
        What they found.
    """
    table, choices = _synthetic(out / "synthetic", quick, workers, tell)
    trials = Trials(table)
    if (out / "decomposition" / "decomposition.json").exists():
        parts = decomposition.read(out / "decomposition")
    else:
        parts = decomposition.run(out / "decomposition", progress=tell)
    if (out / "runtime" / "runtime.parquet").exists():
        timings = runtime.read(out / "runtime")
    else:
        timings = _runtime(out / "runtime", quick, tell)
    tell("claims: moved copies")
    moved = Trials(copies.run_copies(choices), copies.EXPERIMENTS)
    return Evidence(trials, choices, timings, parts, moved)


def _runtime(folder: Path, quick: bool, tell: Tell) -> "pa.Table":
    limits: Mapping[str, Any] = runtime.QUICK if quick else {}
    return runtime.run(folder, progress=tell, **limits)


def _synthetic(folder: Path, quick: bool, workers: int | None, tell: Tell) -> tuple["pa.Table", synthetic.Settings]:
    if (folder / "trials.parquet").exists():
        tell(f"synthetic: as found in {folder}")
        return synthetic.read(folder), synthetic.read_settings(folder)
    settings = synthetic.Settings.quick() if quick else synthetic.Settings()
    total, done = synthetic.count_pairs(settings), 0

    def count(finished: int) -> None:
        nonlocal done
        done += finished
        tell(f"synthetic: {done:,} of {total:,} pairs")

    table = synthetic.run(folder, settings, workers=workers, progress=count)
    tell("synthetic: tables and figures")
    synthetic.write_tables(folder)
    synthetic.write_figures(folder)
    return table, settings


def source(evidence: Evidence) -> dict[str, Any]:
    """From what the figures come.

    Parameters
    ----------
    evidence : Evidence
        What was looked at.

    Returns
    -------
    dict
        Version of the package; dimensions, sizes and trials of the synthetic study; rows and trials of that
        with moved copies; extent of the runtime study.
    """
    rows = [row for row in evidence.timings.to_pylist() if row["sweep"] == "rows"]
    return {
        "version": __version__,
        "dims": sorted({dim for dim, _ in evidence.trials.settings}),
        "sizes": sorted({size for _, size in evidence.trials.settings}),
        "trials": evidence.trials.trials,
        "copies_rows": evidence.copies.settings[0][1],
        "copies_trials": evidence.copies.trials,
        "runtime_rows": max(row["rows"] for row in rows),
        "runtime_dim": rows[0]["dim"],
    }


def rows(claims: Sequence[Claim]) -> list[list[str]]:
    """Cells of a table for a console, under HEADER.

    Parameters
    ----------
    claims : list of Claim
        The ledger.

    Returns
    -------
    list of list of str
        A row a claim.
    """
    return [[entry.id, entry.place, entry.verdict, entry.figure] for entry in claims]
