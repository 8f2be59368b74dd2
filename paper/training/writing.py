"""What the study leaves behind: a page, the same as Markdown, runs as CSV, all numbers as JSON."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from crossfusion.study import (
    PageTable,
    format_markdown_table,
    make_folder,
    plain_value,
    render_markdown,
    write_page,
    write_text,
)
from paper.training import tables
from paper.training.figures import CAPTIONS, write_figures
from paper.training.outcomes import Outcome, Run
from paper.training.reading import describe_results
from paper.training.settings import Settings

TITLE = "Training against a distance"
NAME = "training"
QUICK = "This is a first look at few seeds and steps; its numbers say nothing about the methods."


def write(
    out: Path,
    runs: Sequence[Run],
    found: Sequence[Outcome],
    ratios: Sequence[Mapping[str, Any]],
    settings: Settings,
    notes: Sequence[str],
) -> list[str]:
    """Write everything, each file whole or not at all, and return the reading.

    Parameters
    ----------
    out : path
        Folder of the study.
    runs : sequence of mappings
        Each a task, seed, method and strength.
    found : sequence of Outcome
        What they come to.
    ratios : sequence of mappings
        Cost of a step.
    settings : Settings
        Every choice.
    notes : sequence of str
        What to know first.

    Returns
    -------
    list of str
        The sentences of ``reading.md``.
    """
    said = [*notes, *describe_results(found, ratios, settings)]
    shown = _tables(runs, found, ratios, settings)
    figures = write_figures(out, found)
    _write_numbers(out, runs, found, ratios, settings, said)
    write_text(out / "reading.md", "".join(f"- {text}\n" for text in said))
    folder = make_folder(out / "tables")
    for name, table in _name_tables(shown):
        text = f"{table.caption[:1].upper()}{table.caption[1:]}.\n\n{format_markdown_table(table.header, table.rows)}"
        write_text(folder / f"{name}.md", text)
    write_text(out / f"{NAME}.md", _document(said, shown, figures))
    command = "python -m paper training" + ("" if settings.whole else " --quick")
    captions = {name: CAPTIONS[Path(name).stem] for name in figures}
    write_page(out, TITLE, [], command=command, file=f"{NAME}.html", points=said, figures=captions, extra=shown)
    return said


def _tables(
    runs: Sequence[Run], found: Sequence[Outcome], ratios: Sequence[Mapping[str, Any]], settings: Settings
) -> dict[str, list[PageTable]]:
    """Tables by section."""
    groups = list(dict.fromkeys(outcome.group for outcome in found))
    shown = {group: [tables.accuracy_table(found, group), tables.distance_table(found, group)] for group in groups}
    rest = [tables.task_table(runs, settings, found), tables.strength_table(found), tables.cost_table(ratios)]
    return shown | {"all data sets": rest}


def _name_tables(shown: Mapping[str, Sequence[PageTable]]) -> list[tuple[str, PageTable]]:
    """Tables with the names of their files."""
    named = []
    for section, own in shown.items():
        for table in own:
            short = re.sub(r"\W+", "-", table.title.partition(",")[0]).lower()
            named.append((short if section not in tables.GROUPS else f"{section}-{short}", table))
    return named


def _write_numbers(
    out: Path,
    runs: Sequence[Run],
    found: Sequence[Outcome],
    ratios: Sequence[Mapping[str, Any]],
    settings: Settings,
    said: Sequence[str],
) -> None:
    content = {
        "reading": list(said),
        "settings": asdict(settings),
        "outcomes": [outcome.to_dict() for outcome in found],
        "cost": list(ratios),
    }
    text = json.dumps(plain_value(content), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(out / f"{NAME}.json", text + "\n")
    lines = io.StringIO()
    writer = csv.DictWriter(lines, list(runs[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(runs)
    write_text(out / "runs.csv", lines.getvalue())


def _document(said: Sequence[str], shown: Mapping[str, Sequence[PageTable]], figures: Sequence[str]) -> str:
    """All of it as Markdown."""
    lines = [f"# {TITLE}", "", *(f"- {text}" for text in said), ""]
    lines += [f"![{CAPTIONS[Path(name).stem]}]({name.replace('.svg', '.png')})\n" for name in figures]
    for section, own in shown.items():
        lines += [f"## {section}", "", render_markdown(own, 3)]
    return "\n".join(lines)
