"""A report on groups of embeddings: one self-contained HTML page."""

import html
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossfusion._base import FileError, RowLens, accept_old_names, files
from crossfusion.fusion import MIN_UNITS, Content, DisplayMixin
from crossfusion.report.contents import build_contents
from crossfusion.report.data import ReportData, read_data
from crossfusion.report.methods_text import describe_environment
from crossfusion.report.name_text import format_plural, strip_marks
from crossfusion.report.page import render_page
from crossfusion.report.question import Question, make_question
from crossfusion.summary import Factors

__all__ = ["Report"]

PAGE_ENDINGS = (".html", ".htm")
SANDBOX = "allow-scripts allow-downloads"
FRAME = "width: 100%; height: 42rem; border: 1px solid #8884; border-radius: 6px"  # a screen of a notebook


class Report(DisplayMixin):
    """A self-contained HTML report on how far groups are separated, with figures and warnings.

    Parameters
    ----------
    source : array, path, list of paths, table, or Summary
        Rows in any form that `summarize` reads, a summary, or the file of a summary. With a summary, sections that need
        rows are left out, and the page lists them.
    between : str or list of str
        The factors whose groups are compared, such as the scanner.
    given : str or list of str, optional
        The factors to adjust for, such as the tissue: groups are compared within strata of these factors.
    units : str or list of str, optional
        The factors that identify units, such as the patient. Intervals and tests count units instead of rows.
    time : str, optional
        The factor of periods, such as the week. The report compares each period with the first third of the periods
        and raises alarms.
    method : str, optional
        A factor whose values are versions of the same rows, such as the outputs of corrections. They are compared with
        each other; the other sections describe the reference version.
    reference : str, optional
        The version that the others are compared with; by default the one called "none" or "raw".
    factors : list of str, optional
        Nested factors by which the variance is decomposed, from the outermost; by default `between`, then `units`.
    weights : {"balanced", "pooled"}
        "balanced" weights groups equally, "pooled" by their number of rows; the same on the whole page.
    level : float
        Confidence level of the intervals.
    permutations : int
        Number of permutations per test.
    seed : int
        Seed of the permutations and of the rows sampled for figures.
    min_units : int
        Minimum number of units per group (and stratum), at least 2. Smaller groups are left out, and the page names
        them.
    expect : {"fused", "apart"}, optional
        What the groups should do: "fused" if they should agree, such as batches, "apart" if they should separate, such
        as classes. The verdict then says whether they do; by default it says only whether and which groups differ.
    fused_within : float, optional
        The largest CFD that does not matter. The verdict then says whether the groups were shown to agree within it.
    title : str, optional
        Title of the page.
    by : mapping, optional
        Arrays of factor values by name, if `source` is an array.
    vectors, nan
        As in `summarize`.
    lens : crossfusion.lens.Lens, optional
        A map that is applied to the rows first, as in `summarize`; the whole page describes mapped rows.

    Notes
    -----
    Rows are read once and sampled in the same pass, so memory does not grow with the number of rows. The same source
    and seed give the same page.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(20), 10)
    >>> x = rng.normal(size=(200, 8)) + (patient >= 10)[:, None] + 0.3 * rng.normal(size=(20, 8))[patient]
    >>> by = {"site": np.where(patient < 10, "A", "B"), "patient": patient}
    >>> report = cf.Report(x, by=by, between="site", units="patient")
    >>> report
    A and B differ.
    Sites explain 18.5% of the variance (CFD 0.2047, 95% interval 0.1564 to 0.2652; p = 0.001).
    Unlikely by chance (p = 0.001, 999 random permutations of patient).
    Intervals and tests count 20 patient units, not 200 rows.
    >>> sorted(report.to_dict())[:4]
    ['about', 'batches', 'cards', 'distances']
    """

    @accept_old_names(levels="factors")
    def __init__(
        self,
        source: Any,
        *,
        between: Factors,
        given: Factors | None = None,
        units: Factors | None = None,
        time: str | None = None,
        method: str | None = None,
        reference: str | None = None,
        factors: Sequence[str] | None = None,
        weights: str = "balanced",
        level: float = 0.95,
        permutations: int = 999,
        seed: int = 0,
        min_units: int = MIN_UNITS,
        expect: str | None = None,
        fused_within: float | None = None,
        title: str | None = None,
        by: Mapping[str, Any] | None = None,
        vectors: str | Sequence[str] | None = None,
        nan: str = "raise",
        lens: RowLens | None = None,
    ) -> None:
        question = make_question(
            between,
            given,
            units,
            time,
            method,
            reference,
            factors,
            weights,
            level,
            permutations,
            seed,
            min_units,
            expect,
            fused_within,
        )
        data = read_data(source, question, by, vectors, nan, lens)
        self._finish(data, title, _format_call(question))

    @classmethod
    def _from_data(cls, data: ReportData, title: str | None, command: str) -> "Report":
        """Create a report from data that a command has already read."""
        report = cls.__new__(cls)
        report._finish(data, title, command)
        return report

    def _finish(self, data: ReportData, title: str | None, command: str) -> None:
        self._question = data.question
        between = strip_marks(format_plural(data.question.between))
        self._title = f"How far apart are the {between}?" if title is None else str(title)
        self._found = build_contents(data) | {"title": self._title, "made": describe_environment(command)}

    def to_dict(self) -> dict[str, Any]:
        """Return the contents of the page as plain Python values for JSON.

        Returns
        -------
        dict
            Plain Python values; infinity becomes "inf", undefined becomes None.
        """
        return dict(self._found)

    def to_html(self) -> str:
        """Return the page as HTML.

        Returns
        -------
        str
            A complete document that needs neither other files nor a network.
        """
        return render_page(self._found, self._title, self._question)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page atomically.

        Parameters
        ----------
        path : path
            The file, such as ``report.html``, which is replaced if it exists.
        """
        check_page(path)
        files.write_text(path, self.to_html())

    def _contents(self) -> list[Content]:
        return [strip_marks(sentence) for sentence in self._found["headline"]]

    def _repr_html_(self) -> str:
        """Return the page in a sandboxed frame for notebooks."""
        page, title = (html.escape(text, quote=True) for text in (self.to_html(), self._title))
        return f'<iframe srcdoc="{page}" title="{title}" sandbox="{SANDBOX}" style="{FRAME}"></iframe>'


def check_page(path: str | os.PathLike[str]) -> None:
    """Reject a file name without an HTML ending before any work, so that no data file is overwritten by a page."""
    if not os.fspath(path).lower().endswith(PAGE_ENDINGS):
        raise FileError(os.fspath(path), "has an ending that does not fit a page", f"use {' or '.join(PAGE_ENDINGS)}")
    files.check_folder(path)
    if Path(path).is_dir() or not os.access(Path(path).parent, os.W_OK):
        raise FileError(os.fspath(path), "cannot be written", "choose a file in a folder of your own")


def _format_call(question: Question) -> str:
    """Format the call that creates a report with this question."""
    default = make_question(question.between, None, None, None, None, None, None, "balanced", 0.95, 999, 0)
    found = question.to_dict()
    nested = found.pop("levels")
    if nested != [*question.between, *question.units]:
        found["factors"] = nested
    usual = default.to_dict()
    named = {name: entry for name, entry in found.items() if name == "between" or entry != usual.get(name)}
    plain = {name: entry[0] if isinstance(entry, list) and len(entry) == 1 else entry for name, entry in named.items()}
    given = ", ".join(f"{name}={entry!r}" for name, entry in plain.items())
    return f"crossfusion.Report(source, {given})"
