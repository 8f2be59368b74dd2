"""The main job on made-up data: what a user would type, and what is measured beside what is true."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, check_seed, number_text, text_table
from crossfusion._base import files as storage
from crossfusion.demo.population import FACTORS, Truth, make_population
from crossfusion.fusion import Pairwise
from crossfusion.summary import Factors, Summary, read_summary

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Answer", "Truth", "make_population", "measure_answers", "run"]

MIN_ROWS = 1000  # rows, below which some groups would have none
LEVELS = ("site", "scanner", "patient")
COMPARED_ROOM = {"site": "Delft", "label": "stroma"}  # where two scanners are compared, all else being equal
COMPARED_SCANNERS = ("Lumen", "Opal")
TITLE = "Four hospitals, three scanners, five tissues"
HEADER = ("question", "plug-in", "unbiased", "true")
QUESTIONS: tuple[tuple[str, Factors, Factors | None, str], ...] = (
    ("CFD(site)", "site", None, "pooled"),
    ("CFD(site), balanced", "site", None, "balanced"),
    ("CFD(site | label)", "site", "label", "pooled"),
    ("CFD(site | label), balanced", "site", "label", "balanced"),
    ("CFD(scanner | site, label)", "scanner", ("site", "label"), "pooled"),
    ("CFD(label | site)", "label", "site", "pooled"),
)


@dataclass(frozen=True)
class Answer:
    """A question, the distance measured, and the true one."""

    question: str
    distance: float
    unbiased: float | None
    truth: float


def run(
    folder: Path,
    *,
    rows: int = 40_000,
    seed: int = 0,
    echo: Callable[[str], None] = print,
    command: Callable[[list[str]], None],
) -> None:
    """Make a data set, ask about it on the command line, up to a report, show what is true, and leave the files."""
    if rows < MIN_ROWS:
        raise InputError("rows", rows, "is too few for the groups of the demo", f"take {MIN_ROWS:,} or more")
    check_seed(seed)
    table, truth = make_population(seed, rows=rows)
    _write_data(folder, table)
    echo(_describe_data(table))
    for arguments in _list_commands(folder):
        echo(f"\n$ {shlex.join(['crossfusion', *arguments])}")
        command(arguments)
    summary = read_summary(folder / "summary.parquet")
    found = measure_answers(summary, truth)
    echo(f"\nMeasured beside true\n{text_table(HEADER, _format_rows(found))}")
    echo(f"\n{_explain_answers(found, summary, truth)}")
    echo(_list_files(folder))


def measure_answers(summary: Summary, truth: Truth) -> list[Answer]:
    """Distances measured from a summary, beside those of the population."""
    true = truth.population
    found = []
    for text, between, given, weights in QUESTIONS:
        measured = summary.cfd(between, given=given, weights=weights)
        expected = true.cfd(between, given=given, weights=weights)
        found.append(Answer(text, float(measured), measured.unbiased, float(expected)))
    for level, expected_level in zip(summary.hierarchy(LEVELS).levels, true.hierarchy(LEVELS).levels, strict=True):
        assert level.distance is not None  # every level divides the one above
        assert expected_level.distance is not None
        found.append(Answer(f"hierarchy, level {level.level}", level.distance, level.unbiased, expected_level.distance))
    here, there = (each.select(**COMPARED_ROOM, scanner=COMPARED_SCANNERS).cfd("scanner") for each in (summary, true))
    text = f"{' and '.join(COMPARED_SCANNERS)}, {COMPARED_ROOM['label']} of {COMPARED_ROOM['site']}"
    return [*found, Answer(text, float(here), here.unbiased, float(there))]


def _write_data(folder: Path, table: "pa.Table") -> None:
    """The rows as Parquet, and those of two scanners as arrays."""
    import pyarrow.parquet as pq

    storage.make_folder(folder)
    storage.write_whole(
        folder / "embeddings.parquet", lambda path: pq.write_table(table, path, use_dictionary=[*FACTORS])
    )
    columns = {name: np.asarray(table.column(name).to_pylist()) for name in (*COMPARED_ROOM, "scanner")}
    here = np.logical_and.reduce([columns[name] == wanted for name, wanted in COMPARED_ROOM.items()])
    for scanner in COMPARED_SCANNERS:
        chosen = table.column("embedding").take(np.flatnonzero(here & (columns["scanner"] == scanner)))
        vectors = chosen.combine_chunks().flatten().to_numpy().reshape(len(chosen), -1)
        storage.write_whole(folder / f"{scanner}.npy", partial(_save, vectors))


def _save(vectors: NDArray[np.float32], path: str) -> None:
    with open(path, "wb") as file:  # given a name, NumPy would put another ending to it
        np.save(file, vectors)


def _describe_data(table: "pa.Table") -> str:
    sizes = ", ".join(f"{len(table.column(name).unique())} {name}s" for name in FACTORS)
    dim = table.schema.field("embedding").type.list_size
    return (
        f"{table.num_rows:,} embeddings of {dim} features: {sizes}.\n"
        "Simulated, so the true distances are known: tissues differ a lot, and each site sees a different mix.\n"
        "Only one site, Cork, really differs; scanners change a few features."
    )


def _list_commands(folder: Path) -> list[list[str]]:
    """What a user would type."""
    rows, summary = str(folder / "embeddings.parquet"), str(folder / "summary.parquet")
    return [
        ["summarize", rows, "--by", ",".join(FACTORS), "-o", summary],
        ["matrix", summary, "--between", "site"],
        ["matrix", summary, "--between", "site", "--given", "label"],
        ["hierarchy", summary, "--factors", ",".join(LEVELS)],
        ["attribution", summary, "--between", "scanner", "--given", "site,label", "--top", "7"],
        ["compare", *(str(folder / f"{scanner}.npy") for scanner in COMPARED_SCANNERS)],
        [
            *("report", rows, "--between", "site", "--given", "label", "--units", "patient"),
            *("--factors", ",".join(LEVELS), "--title", TITLE, "-o", str(folder / "report.html")),
        ],
    ]


def _format_rows(found: Sequence[Answer]) -> list[list[str]]:
    return [[entry.question, *map(number_text, (entry.distance, entry.unbiased, entry.truth))] for entry in found]


def _explain_answers(found: Sequence[Answer], summary: Summary, truth: Truth) -> str:
    by_name = {entry.question: entry.unbiased for entry in found if entry.unbiased is not None}
    times = by_name["CFD(site)"] / by_name["CFD(site | label)"]
    looks, lies = _find_farthest(summary.pairwise("site")), _find_farthest(summary.pairwise("site", given="label"))
    top = summary.attribution("scanner", given=["site", "label"]).top(len(truth.scanner_features))
    hit = len(set(top) & set(truth.scanner_features))
    return (
        f"- The sites look {times:.1f} times farther apart than they are, {looks} most of all:\n"
        "  CFD(site) mainly reflects their mix of tissues. Adjusted for the tissue, CFD(site | label),\n"
        f"  {lies} are the farthest apart.\n"
        "- Unbiased and true differ by sampling error. The plug-in adds a bias that grows as groups get smaller.\n"
        "- These numbers describe these patients. The report treats patients as a sample: it also subtracts the\n"
        "  separation that differences between patients cause by chance, so its distances are smaller.\n"
        f"- {hit} of the {len(top)} features with the largest shares are among those that the scanners change."
    )


def _find_farthest(pairs: Pairwise) -> str:
    first, second = divmod(int(np.argmax(pairs.unbiased)), len(pairs.labels))
    return f"{pairs.labels[first]} and {pairs.labels[second]}"


def _list_files(folder: Path) -> str:
    files = {
        "embeddings.parquet": "the rows",
        "summary.parquet": "their moments, which answer all of the above",
        "report.html": "a page to open in a browser",
    }
    width = max(len(str(folder / name)) for name in files)
    lines = [f"  {folder / name!s:<{width}}  {text}" for name, text in files.items()]
    return "\n".join(["\nFiles written:", *lines])
