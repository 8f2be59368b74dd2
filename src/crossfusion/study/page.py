"""One self-contained page of evaluations: tables, and figures inside of it; no network, no scripts."""

import base64
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from crossfusion._base import files as storage
from crossfusion._version import __version__
from crossfusion.report import PageTable, escape, make_document, make_element, make_table
from crossfusion.study import published, tables
from crossfusion.study.dataset import Evaluation


def write_page(
    out: Path,
    title: str,
    found: Sequence[Evaluation],
    *,
    command: str,
    file: str = "index.html",
    lead: Sequence[str] = (),
    points: Sequence[str] = (),
    figures: Mapping[str, str] | None = None,
    extra: Mapping[str, Sequence[PageTable]] | None = None,
    paper: str = "",
) -> Path:
    """Write a page of what was found, a section per evaluation, and return it.

    `command` makes this page again. Paragraphs (`lead`), a list (`points`) and `figures` (files in `out` with captions)
    stand below the title. `extra` has further tables for the section of a data set, by its name; other names are
    sections of their own, and "" stands before all. `paper` says what to know of the paper's numbers, with ``{source}``
    where they are printed.
    """
    more = extra or {}
    names = [result.name for result in found]
    header = make_element("h1", escape(title)) + "".join(make_element("p", escape(text)) for text in lead)
    header += make_element("ul", "".join(make_element("li", escape(text)) for text in points)) if points else ""
    header += "".join(_make_figure(out / name, caption) for name, caption in (figures or {}).items())
    header += _make_tables(more.get("", ()))
    parts = [make_element("header", header), *(_make_section(result, more.get(result.name, ())) for result in found)]
    parts += [_make_plain_section(name, own) for name, own in more.items() if name and name not in names]
    source = paper.format(source=published.tables()["source"])
    footer = make_element(
        "footer",
        f"{escape(source)} Made by {make_element('code', escape(command))}, crossfusion {__version__}.".lstrip(),
    )
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    path = out / file
    storage.write_text(path, make_document(title, parts, footer, style=style))
    return path


def _make_section(result: Evaluation, own: Sequence[PageTable]) -> str:
    rows = ", ".join(f"{name} {count:,}" for name, count in result.counts.items())
    text = make_element("p", escape(f"{result.note} Rows: {rows}.".strip()))
    text += "".join(make_element("p", escape(f"Caution: {said}."), class_="note") for said in result.cautions)
    text += _make_tables([*own, *tables.make_main_tables(result)])
    if result.study is not None:
        caption = "Distance against CDDR: a point a directed pair, a color a correction, bars 95 % intervals"
        text += _make_figure(result.folder / "scatter.svg", caption.replace("95", f"{100 * result.study.level:g}"))
    rest = tables.make_other_tables(result)
    if rest:
        text += make_element("details", make_element("summary", f"{len(rest)} further tables") + _make_tables(rest))
    return make_element("section", make_element("h2", escape(result.name)) + text, id=result.name)


def _make_plain_section(name: str, own: Sequence[PageTable]) -> str:
    return make_element("section", make_element("h2", escape(name)) + _make_tables(own))


def _make_tables(entries: Sequence[PageTable]) -> str:
    found = []
    for entry in entries:
        header, *rows = [[escape(cell) for cell in row] for row in (entry.header, *entry.rows)]
        shown = make_table(escape(entry.caption), header, rows)
        found.append(make_element("h3", escape(entry.title)) + shown)
    return "".join(found)


def _make_figure(path: Path, caption: str) -> str:
    """A picture inside of the page, so that its names and styles are its own."""
    kind = "svg+xml" if path.suffix == ".svg" else "png"
    content = base64.b64encode(path.read_bytes()).decode("ascii")
    picture = f'<img src="data:image/{kind};base64,{content}" alt="{escape(caption)}">'
    return make_element("figure", picture + make_element("figcaption", escape(caption)))
