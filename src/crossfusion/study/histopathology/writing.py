"""What a study of tissue leaves behind: a page, the same tables as Markdown, and all numbers as JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crossfusion._base import files as storage
from crossfusion._base import plain_value
from crossfusion.evaluation import Study, correlate_distances
from crossfusion.report import PageTable
from crossfusion.study import published_tables, tables
from crossfusion.study.dataset import Evaluation
from crossfusion.study.histopathology.choices import Choices
from crossfusion.study.histopathology.run import Embeddings
from crossfusion.study.page import write_page

TITLE = "Histopathology: distances between domains, and what a model loses"
NAME = "histopathology"
PIVOT = {"midog": "Aperio CS2"}  # the paper averages over the pairs of this scanner
ENCODER = "virchow"  # of the paper
PRINTED = "Rows and columns named “paper” are printed in {source} for this data set"
SAME = (
    f"{PRINTED} and the same encoder. The paper does not state which tiles it took or how it trained its models, so"
    " values will differ."
)
OTHER = f"{PRINTED} through Virchow. This study used another encoder, so compare order and size, not values."
SAMPLES = "The most ordinary tile of each domain, after each normalization of the images."


def write(out: Path, choices: Choices, encoded: Embeddings, found: Sequence[Evaluation], *, command: str) -> list[Path]:
    """Write the page, the tables and the numbers, each whole or not at all."""
    lead = _write_lead(choices, encoded)
    about = [_make_version_table(encoded), _make_tile_table(encoded)]
    own = _make_printed_tables(found[0])
    extra = {"": about, found[0].name: own}
    figures = {encoded.ready.pictures.name: SAMPLES}
    options: dict[str, Any] = {"lead": lead, "figures": figures, "extra": extra}
    if found[0].printed is not None:
        options["paper"] = SAME if choices.encoder.partition(":")[0] == ENCODER else OTHER
    page = write_page(out, TITLE, found, command=command, file=f"{NAME}.html", **options)
    text = out / f"{NAME}.md"
    storage.write_text(text, _render_markdown(lead, about, own, found, encoded.ready.pictures.name))
    numbers = out / f"{NAME}.json"
    facts = _collect_facts(choices, encoded) | {"found": [result.to_dict() for result in found]}
    storage.write_text(numbers, json.dumps(plain_value(facts), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return [page, text, numbers]


def _write_lead(choices: Choices, encoded: Embeddings) -> list[str]:
    files = len({tile.file for tile in encoded.ready.tiles})
    said = [f"{len(encoded.ready.tiles):,} tiles of {files:,} files ({choices.layout}) through {choices.encoder}."]
    if encoded.ready.reference is not None:
        said[0] += f" Reinhard and Macenko match every domain with {encoded.ready.reference}."
    names = [name for name in encoded.versions if name != "none"]
    if names:
        said.append(f"Compared with the tiles as they are: {', '.join(names)}.")
    return said


def _make_version_table(encoded: Embeddings) -> PageTable:
    rows = [
        [
            entry.name,
            str(entry.facts.get("normalizer", "–")),
            f"{entry.facts.get('dim', 0):,}",
            _count_unchanged(entry.facts),
        ]
        for entry in encoded.made
    ]
    made = {entry.name for entry in encoded.made}
    for name, value in encoded.versions.items():
        if name not in made:
            what = "a correction of the vectors" if isinstance(value, str) else "ready-made"
            dim = encoded.versions["none"] if isinstance(value, str) else value
            rows.append([name, what, f"{dim.shape[1] if not isinstance(dim, str) else 0:,}", "–"])
    header = ["version", "normalizer", "features", "tiles left as they are"]
    return PageTable("Versions", "tiles in which a normalizer finds no tissue are left as they are", header, rows)


def _count_unchanged(facts: Any) -> str:
    return "–" if facts.get("normalizer") == "none" else f"{facts.get('unchanged', 0):,}"


def _make_tile_table(encoded: Embeddings) -> PageTable:
    """A row a domain: its tiles by label, and its units."""
    design = encoded.ready.design
    values = design.values(encoded.ready.tiles)
    domain = values["domain"] or []
    label = values["label"] or ["tiles"] * len(domain)
    counts = Counter(zip(domain, label, strict=True))
    names = sorted(set(label))
    header, rows = [" and ".join(design.between), *names], []
    units = set(zip(domain, values["units"] or [], strict=False))
    header += [f"units ({' and '.join(design.units)})"] if units else []
    for name in sorted(set(domain)):
        row = [name, *(f"{counts[name, own]:,}" for own in names)]
        rows.append([*row, f"{sum(name == of for of, _ in units):,}"] if units else row)
    return PageTable("Tiles", "by domain and label" if design.label else "by domain", header, rows)


def select_paper_pairs(study: Study, pivot: str) -> Study | None:
    """A study over the pairs of one domain only, as the paper averages them; None if there are no such pairs."""
    own = tuple(outcome for outcome in study.outcomes if pivot in (outcome.train, outcome.test))
    if not own:
        return None
    linked = correlate_distances(own, study.domains, level=study.level, permutations=1, seed=0)
    return replace(study, outcomes=own, associations=linked)


def _make_printed_tables(found: Evaluation) -> list[PageTable]:
    pivot = PIVOT.get(found.printed or "")
    study = None if pivot is None or found.study is None else select_paper_pairs(found.study, pivot)
    if study is None:
        return []
    others = " and ".join(str(name) for name in study.domains if name != pivot)
    caption = f"averages over the pairs of {pivot} with {others}, in both directions, as the paper's table 3 has them"
    cells = published_tables.format_study(study, printed=found.printed)
    return [PageTable("Distances and degradation, pairs of the paper", caption, *cells)]


def _render_markdown(
    lead: Sequence[str], about: Sequence[PageTable], own: Sequence[PageTable], found: Sequence[Evaluation], picture: str
) -> str:
    parts = [
        f"# {TITLE}\n",
        *(f"{text}\n" for text in lead),
        f"![{SAMPLES}]({picture})\n",
        tables.render_markdown(about),
    ]
    for number, result in enumerate(found):
        parts.append(f"## {result.name}\n\n{result.note}\n")
        parts += [f"Caution: {said}.\n" for said in result.cautions]
        shown = [*(own if not number else ()), *tables.make_main_tables(result), *tables.make_other_tables(result)]
        parts.append(tables.render_markdown(shown, level=3))
        if result.study is not None:
            parts.append(f"![Distance against CDDR]({result.folder.name}/scatter.png)\n")
    return "\n".join(parts)


def _collect_facts(choices: Choices, encoded: Embeddings) -> dict[str, Any]:
    return {
        "layout": choices.layout,
        "encoder": choices.encoder,
        "tiles": len(encoded.ready.tiles),
        "between": encoded.ready.design.between,
        "label": encoded.ready.design.label,
        "units": encoded.ready.design.units,
        "reference": encoded.ready.reference,
        "versions": {
            name: value if isinstance(value, str) else [int(side) for side in value.shape]
            for name, value in encoded.versions.items()
        },
        "embeddings": [
            {"name": entry.name, "file": f"embeddings/{entry.path.name}", **entry.facts} for entry in encoded.made
        ],
    }
