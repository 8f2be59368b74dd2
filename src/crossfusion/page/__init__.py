"""One self-contained HTML page about a Summary: no network, no scripts."""

import os
from collections.abc import Sequence

from crossfusion import storage
from crossfusion._version import __version__
from crossfusion.page import sections
from crossfusion.page.answers import Answers, ask
from crossfusion.page.document import document
from crossfusion.page.markup import Table, element
from crossfusion.summary import Summary
from crossfusion.table import Factors

__all__ = ["Table", "page", "write_page"]


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
    return document(title, parts, _footer(answers))


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
    storage.write_text(path, text)


def _footer(answers: Answers) -> str:
    return element(
        "footer",
        f"{answers.rows:,} rows × {answers.dim:,} features in {answers.cells:,} groups. crossfusion {__version__}.",
    )
