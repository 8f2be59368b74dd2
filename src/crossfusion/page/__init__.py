"""One self-contained HTML page about a Summary: no network, no scripts."""

import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from crossfusion import storage
from crossfusion._version import __version__
from crossfusion.page import sections
from crossfusion.page.answers import Answers, ask
from crossfusion.page.markup import Table, element, escaped
from crossfusion.summary import Factors, Summary

__all__ = ["Table", "page", "write_page"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(
    summary: Summary,
    *,
    between: Factors,
    given: Factors,
    levels: Sequence[str],
    batches: Sequence[str] | None = None,
    title: str = "Cross-Fusion Distance",
    tables: Sequence[Table] = (),
) -> str:
    """HTML of the distances between groups: as they are, with labels held fixed, by level, and against the labels.

    Parameters
    ----------
    summary : Summary
        The groups.
    between : str or list of str
        The factors whose groups are compared, such as the site.
    given : str or list of str
        The factors that stand for biology, such as the tissue label, which are held fixed.
    levels : list of str
        Nested factors from the outermost to the innermost.
    batches : list of str, optional
        The factors to set against `given`; by default the levels.
    title : str
        What the page is called.
    tables : list of Table
        Shown at the end.

    Returns
    -------
    str
        A whole document.
    """
    answers = ask(summary, between=between, given=given, levels=levels, batches=batches)
    parts = [
        sections.headline(title, answers),
        sections.matrices(answers),
        sections.hierarchies(answers),
        sections.plane(answers),
        *(sections.extra(table) for table in tables),
        sections.limits(answers),
    ]
    return _document(title, parts, _footer(answers))


def write_page(
    path: str | os.PathLike[str],
    summary: Summary,
    *,
    between: Factors,
    given: Factors,
    levels: Sequence[str],
    batches: Sequence[str] | None = None,
    title: str = "Cross-Fusion Distance",
    tables: Sequence[Table] = (),
) -> None:
    """Write what `page` returns, whole or not at all.

    Parameters
    ----------
    path : path
        The file, which is replaced if it exists.
    summary, between, given, levels, batches, title, tables
        As in `page`.
    """
    text = page(summary, between=between, given=given, levels=levels, batches=batches, title=title, tables=tables)
    storage.write_whole(path, lambda temporary: _write_text(temporary, text))


def _write_text(path: str, text: str) -> None:
    Path(path).write_text(text, encoding="utf-8", newline="\n")


def _document(title: str, parts: Sequence[str], footer: str) -> str:
    style = files("crossfusion.page").joinpath("page.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<link rel="icon" href="data:,">',
            f"<title>{escaped(title)}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            "<main>",
            *parts,
            "</main>",
            footer,
            "</body>",
            "</html>\n",
        ]
    )


def _footer(answers: Answers) -> str:
    return element(
        "footer",
        f"{answers.rows:,} rows × {answers.dim:,} features in {answers.cells:,} groups. crossfusion {__version__}.",
    )
