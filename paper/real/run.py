"""The whole study of real data: embeddings, ratios, degradation, matrices, and the page of it all."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import crossfusion as cf
from crossfusion.study import (
    Dataset,
    Evaluation,
    PageTable,
    Plan,
    evaluate_all,
    format_markdown_table,
    make_folder,
    make_main_tables,
    render_markdown,
    write_page,
    write_text,
)
from paper.real import figures, overview, questions
from paper.real.folder import NAMES, check_data, data_folder
from paper.real.reading import describe_results
from paper.real.tables import read_table_set
from paper.real.tissue import read_camelyon, read_mitos

TITLE = "Distances on real data"
ROWS, HALVES = 250, 50
CAPTIONS = {
    "correlations.svg": "Correlation of each distance with CDDR over the directed pairs of a data set; lines are 95 %"
    " intervals that leave out one domain at a time, and are missing where there can be none",
    "centres.svg": "camelyon17_he: unbiased CFD of the centres, a unit is a tile",
}
Tell = Callable[[str], None]


def choose_plan(quick: bool) -> Plan:
    """Settings of all data sets: every distance of the registry."""
    return Plan.quick() if quick else Plan(distances=tuple(cf.distances), rows=ROWS, halves=HALVES)


@dataclass
class Parts:
    """What is put together beside the evaluations."""

    tables: dict[str, list[PageTable]] = field(default_factory=dict)
    intervals: PageTable | None = None
    levels: PageTable | None = None
    figures: list[str] = field(default_factory=list)


def run(
    out: Path,
    data: Path | None = None,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    workers: int | None = None,
    progress: Tell | None = None,
) -> list[Evaluation]:
    """Evaluate distances on real data, or go on with it.

    Parameters
    ----------
    out : path
        Folder of the results. Embeddings and finished tasks are kept there, and read instead of being made again.
    data : path, optional
        Folder of the data; by default that of CROSSFUSION_DATA, or ``../shared/data``.
    only : sequence of str
        Data sets, all by default.
    quick : bool
        A first look: some rows, few distances.
    workers : int, optional
        Processes, by default one a core.
    progress : function, optional
        Shown what is being done.

    Returns
    -------
    list of Evaluation
        One each; ``real.html``, ``real.md``, ``reading.md``, ``summary.md`` and ``real.json`` are in `out`.
    """
    folder, names = data_folder(data), [name for name in NAMES if name in only] if only else list(NAMES)
    check_data(folder, only or names)
    make_folder(out)
    tell = progress or (lambda _: None)
    plan = choose_plan(quick)
    sets = [_read(name, folder, out, quick, workers, tell) for name in names]
    found = evaluate_all([(one, plan) for one in sets], out, workers=workers, progress=tell)
    tell("tables and figures")
    parts = _parts({one.name: one for one in sets}, plan, out, found)
    _write(out, found, parts, quick)
    return found


def _read(name: str, folder: Path, out: Path, quick: bool, workers: int | None, tell: Tell) -> Dataset:
    tell(f"reading {name}")
    if name == "mitos_he":
        return read_mitos(folder, out, quick, workers, tell)
    if name == "camelyon17_he":
        return read_camelyon(folder, out, quick, workers, tell)
    return read_table_set(folder, name, quick)


def _parts(sets: Mapping[str, Dataset], plan: Plan, out: Path, found: Sequence[Evaluation]) -> Parts:
    """Tables and figures beyond those of each evaluation."""
    parts = Parts({"": [overview.correlation_table(found)] if overview.select_studies(found) else []})
    parts.tables[""].append(overview.ratio_table(found))
    if "mitos_he" in sets:
        two = sets["mitos_he"]
        parts.intervals = questions.interval_table(two)
        parts.tables["mitos_he"] = [parts.intervals, questions.jackknife_table(two, plan.distances)]
    written = figures.write_correlations(out, found)
    if "camelyon17_he" in sets:
        five = sets["camelyon17_he"]
        matrices = questions.centre_matrices(five)
        parts.levels = questions.levels_table(five)
        shown = [questions.matrix_table(pairs, version) for version, pairs in matrices.items()]
        parts.tables["camelyon17_he"] = [*shown, questions.centre_table(matrices), parts.levels]
        written += figures.write_centres(out, matrices)
    parts.figures = [path.name for path in written if path.suffix == ".svg"]
    return parts


def _write(out: Path, found: Sequence[Evaluation], parts: Parts, quick: bool) -> None:
    said = describe_results(found, intervals=parts.intervals, levels=parts.levels)
    if quick:
        said.insert(0, "This is a first look at some of the rows; its numbers say nothing about the distances.")
    content: dict[str, Any] = {"reading": said, "data": [result.to_dict() for result in found]}
    content["tables"] = {name or "all": [vars(table) for table in own] for name, own in parts.tables.items()}
    write_text(out / "real.json", json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    write_text(out / "reading.md", "".join(f"- {text}\n" for text in said))
    _write_tables(make_folder(out / "tables"), found, parts)
    write_text(out / "real.md", _document(found, said, parts))
    command = f"python -m paper real{' --quick' if quick else ''}"
    captions = {name: CAPTIONS[name] for name in parts.figures}
    write_page(out, TITLE, found, command=command, file="real.html", points=said, figures=captions, extra=parts.tables)


def _write_tables(folder: Path, found: Sequence[Evaluation], parts: Parts) -> None:
    """Each table that the page shows at once as a file, named by data set and title, without a heading."""
    everywhere = {"": parts.tables[""]} | {r.name: [*parts.tables.get(r.name, []), *make_main_tables(r)] for r in found}
    for name, own in everywhere.items():
        for table in own:
            title = re.sub(r"\W+", "-", table.title.replace("RDR, none, ", "RDR ")).strip("-").lower()
            shown = format_markdown_table(table.header, table.rows)
            text = f"{table.caption[:1].upper()}{table.caption[1:]}.\n\n{shown}"
            write_text(folder / f"{name or 'all'}-{title}.md", text)


def _document(found: Sequence[Evaluation], said: Sequence[str], parts: Parts) -> str:
    """All of it as Markdown."""
    lines = [f"# {TITLE}", "", *(f"- {text}" for text in said), ""]
    lines += [f"![{CAPTIONS[name]}]({name.replace('.svg', '.png')})\n" for name in parts.figures]
    lines.append(render_markdown(parts.tables[""], 2))
    for result in found:
        lines += [f"## {result.name}", "", result.note, ""]
        lines.append(render_markdown([*parts.tables.get(result.name, []), *make_main_tables(result)], 3))
        if result.study is not None:
            lines.append(f"![{result.name}: distances against CDDR]({result.name}/scatter.png)\n")
    return "\n".join(lines)
