"""The questions that can be asked of the files of a folder; each is a tool."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from crossfusion._base import InputError, factors, label_text
from crossfusion.arrays import cfd, separability
from crossfusion.fusion import FEATURES, Result
from crossfusion.gates import check
from crossfusion.io import Rows, open_file, open_sources, read_all, read_rows, summarize
from crossfusion.mcp.answers import answer, list_values
from crossfusion.mcp.folder import Folder
from crossfusion.report import Report
from crossfusion.summary import Summary, list_periods, parse_reference, read_summary, storage

MAX_VALUES = 20  # values of a column that are named
FileName = Annotated[str, Field(description="Relative path of a file of rows or of a summary, as list_files shows it.")]
Between = Annotated[list[str], Field(description="Columns that define the groups to compare.")]
Given = Annotated[list[str], Field(description="Columns to adjust for: groups are compared within their values.")]
Units = Annotated[list[str], Field(description="Columns that identify independent units, such as the patient.")]
Vectors = Annotated[
    str | None, Field(description="Column of the embeddings, or a pattern such as dim_*; usually detected.")
]
Level = Annotated[float | None, Field(description="Confidence level of intervals, such as 0.95; needs units.")]
Answer = dict[str, Any]


class Questions:
    """Tools on the files of one folder; `collect` gives the warnings of a question so far.

    Parameters
    ----------
    folder : Folder
        The folder.
    collect : callable
        Returns the warnings since the question was asked.
    """

    def __init__(self, folder: Folder, collect: Callable[[], list[str]]) -> None:
        self._folder, self._collect = folder, collect

    def list_files(self) -> Answer:
        """List the files of the folder with their sizes."""
        files, number = self._folder.list_files()
        return {"files": files, "number": number}

    def describe(self, path: FileName, vectors: Vectors = None) -> Answer:
        """Name the columns of a file and, for a summary, the values of its factors."""
        found = self._folder.find(path)
        if found.is_file() and storage.is_summary(found):
            summary = read_summary(found)
            columns = {name: _list_values(summary, name) for name in summary.factors}
            return self._answer(repr(summary), {"kind": "summary", "factors": columns, "features": summary.dim})
        source = open_file(found, [], vectors)
        values = {"kind": "rows", "columns": list(source.columns), "rows": source.rows, "vector_column": source.vector}
        return self._answer(f"{path}: {source.note or 'rows of embeddings'}", values)

    def compare(self, path_a: FileName, path_b: FileName, level: Level = None, vectors: Vectors = None) -> Answer:
        """Compute the Cross-Fusion Distance between the rows of two files; rows are taken to be independent."""
        a, b = (read_rows(open_file(self._folder.find(path), [], vectors)) for path in (path_a, path_b))
        return self._show(cfd(a, b, level=level))

    def matrix(
        self,
        path: FileName,
        between: Between,
        given: Given = [],  # noqa: B006 - never changed, and a default that a schema can show
        units: Units = [],  # noqa: B006
        level: Level = None,
        vectors: Vectors = None,
    ) -> Answer:
        """Compute the Cross-Fusion Distance of all pairs of groups, the farthest first."""
        summary = self._summarize(path, [*between, *given, *units], vectors)
        return self._show(summary.pairwise(between, given=given, units=units, level=level))

    def groups(
        self,
        path: FileName,
        between: Between,
        given: Given = [],  # noqa: B006
        units: Units = [],  # noqa: B006
        level: Level = None,
        vectors: Vectors = None,
    ) -> Answer:
        """Compute the Cross-Fusion Distance between all groups together, with balanced weights."""
        summary = self._summarize(path, [*between, *given, *units], vectors)
        return self._show(summary.cfd(between, given=given, units=units, level=level, weights="balanced"))

    def hierarchy(
        self,
        path: FileName,
        levels: Annotated[list[str], Field(description="Columns from the outermost to the innermost level.")],
        vectors: Vectors = None,
    ) -> Answer:
        """Decompose the distance between nested groups by level."""
        return self._show(self._summarize(path, levels, vectors).hierarchy(levels))

    def attribution(
        self,
        path: FileName,
        between: Between,
        given: Given = [],  # noqa: B006
        over: Annotated[str, Field(description="'features', or the column whose values contribute.")] = FEATURES,
        vectors: Vectors = None,
    ) -> Answer:
        """Attribute the variance between groups to features, or to units such as patients."""
        names = [*between, *given, *([] if over == FEATURES else [over])]
        result = self._summarize(path, names, vectors).attribution(between, given=given, over=over)
        order = result.top(len(result.labels))
        values = [{over: result.labels[k], "share": result.share[k], "without": result.without[k]} for k in order]
        return self._answer(repr(result), {"largest_first": values})

    def test(
        self,
        path: FileName,
        between: Between,
        units: Units,
        given: Given = [],  # noqa: B006
        permutations: Annotated[int, Field(ge=1, le=99_999, description="Number of random permutations.")] = 999,
        vectors: Vectors = None,
    ) -> Answer:
        """Test whether groups differ by more than chance, by permuting the labels of units."""
        summary = self._summarize(path, [*between, *given, *units], vectors)
        result = summary.test(between, given=given, units=units, permutations=permutations)
        names = ("statistic_name", "statistic", "pvalue", "permutations", "exact", "caution", "excluded")
        return self._answer(repr(result), {name: getattr(result, name) for name in names})

    def drift(
        self,
        path: FileName,
        time: Annotated[str, Field(description="Column of the periods, such as the week.")],
        reference: Annotated[str, Field(description="first:N, previous, a list A,B,... of periods, or a range A..B.")],
        given: Given = [],  # noqa: B006
        alarm: Annotated[float, Field(description="Rate of false alarms per window.")] = 0.01,
        window: Annotated[int, Field(ge=1, description="Periods per window.")] = 1,
        vectors: Vectors = None,
    ) -> Answer:
        """Compare periods with a reference, and raise alarms."""
        summary = self._summarize(path, [time, *given], vectors)
        parsed = parse_reference(reference, list_periods(summary, time)[1], time)
        return self._show(summary.drift(time, reference=parsed, given=given, alarm=alarm, window=window))

    def separability(
        self,
        path: FileName,
        between: Between,
        given: Given = [],  # noqa: B006
        units: Units = [],  # noqa: B006
        vectors: Vectors = None,
    ) -> Answer:
        """Measure how well a linear classifier recognizes the groups of unseen units; needs rows."""
        rows = self._read_rows(path, [*between, *given, *units], vectors)
        codes = factors.encode(rows.keys.select(units))[0] if units else None
        return self._show(separability(rows.x, rows.values(between), given=rows.values(given), units=codes))

    def check(
        self,
        path: FileName,
        policy: Annotated[str, Field(description="Relative path of a policy, a TOML file with rules.")],
        vectors: Vectors = None,
    ) -> Answer:
        """Check a file against a policy; a rule holds, is broken, or cannot be answered."""
        rules, data = self._folder.find(policy), self._folder.find(path)
        return self._show(check(rules, data, vectors=vectors))

    def report(
        self,
        path: FileName,
        between: Between,
        given: Given = [],  # noqa: B006
        units: Units = [],  # noqa: B006
        vectors: Vectors = None,
    ) -> Answer:
        """State the conclusions of a report on how far groups are separated."""
        report = Report(self._folder.find(path), between=between, given=given, units=units, vectors=vectors)
        return self._answer(repr(report), None)

    def _summarize(self, path: str, names: list[str], vectors: str | None) -> Summary:
        found = self._folder.find(path)
        if found.is_file() and storage.is_summary(found):
            return read_summary(found)
        return summarize(found, by=list(dict.fromkeys(names)), vectors=vectors)

    def _read_rows(self, path: str, names: list[str], vectors: str | None) -> Rows:
        found = self._folder.find(path)
        if found.is_file() and storage.is_summary(found):
            raise InputError(problem=f"{path} is a summary, which has no rows", remedy="name a file of rows")
        sources, joined = open_sources(found, list(dict.fromkeys(names)), vectors)
        return read_all(sources, joined)

    def _show(self, result: Result) -> Answer:
        return self._answer(repr(result), list_values(result))

    def _answer(self, text: str, values: Any) -> Answer:
        return answer(text, values, self._collect(), self._folder.shorten)


def _list_values(summary: Summary, name: str) -> dict[str, Any]:
    values = factors.list_labels(summary.rollup(name).keys)
    return {"number": len(values), "first": [label_text(value) for value in values[:MAX_VALUES]]}
