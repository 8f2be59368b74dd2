"""The results as text: tables for a reader, in Markdown and HTML."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossfusion import __version__
from crossfusion.study import escape, html_table, make_document, make_element, write_table, write_text
from paper.synthetic.levels import levels
from paper.synthetic.measures import NAMES
from paper.synthetic.run import read

Row = dict[str, Any]
TITLE = "Synthetic study"
LEAD = (
    "Means over {trials} trials ± Monte Carlo standard error; relative: over the first level; sensitivity: fractional "
    "change of the measure over fractional change of the factor. A dash stands where a quantity is not measured, or "
    "would be divided by zero or by a mean less than three standard errors above it."
)
FACTORS = {
    "displacement": "shift δ",
    "dispersion": "component σ",
    "scaling": "scale α",
    "topology": "components K",
    "outliers": "outliers, %",
    "imbalance": "rows of B / rows of A",
    "covariance": "contrast of variances c",
}
OVERVIEW = {
    "relative": "last level over the first",
    "sensitivity_overall": "sensitivity from the first level to the last",
}
WIDE = "body { max-width: 86rem; } tbody th { white-space: nowrap; } .scroll { margin-bottom: 1.6rem; }"
ROUNDING = 1e-9  # relative
READINGS = {"": "", "sigma": ", component σ fixed", "dispersion": ", total dispersion fixed"}


@dataclass(frozen=True)
class Sheet:
    """A heading, and tables below it: caption, header, rows."""

    title: str
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]


def write_tables(out: Path) -> list[Path]:
    """Write ``levels.parquet``, ``tables.md`` and ``tables.html`` from the results in a folder.

    Parameters
    ----------
    out : path
        The folder that `run` filled.

    Returns
    -------
    list of path
        The files.
    """
    found = levels(read(out))
    paths = [out / name for name in ("levels.parquet", "tables.md", "tables.html")]
    write_table(paths[0], found)
    rows = found.to_pylist()
    sheets = [_overview(rows), *_sheets(rows)]
    lead = LEAD.format(trials=_trials(rows))
    write_text(paths[1], _markdown(lead, sheets))
    write_text(paths[2], _html(lead, sheets))
    return paths


def _trials(rows: Sequence[Row]) -> int:
    return max(int(row["trials"]) for row in rows)


def describe_experiment(experiment: str, variant: str = "") -> str:
    """What people call an experiment."""
    return f"{experiment.capitalize()}{READINGS[variant]}"


def describe_setting(dim: int, size: int) -> str:
    """Dimension and size as people write them."""
    return f"d = {dim}, n = {size}"


def _overview(rows: Sequence[Row]) -> Sheet:
    """Last against first level, measures by experiments."""
    tables = []
    for dim, size in dict.fromkeys((row["dim"], row["size"]) for row in rows):
        here = [row for row in rows if (row["dim"], row["size"]) == (dim, size)]
        for column, caption in OVERVIEW.items():
            tables.append((f"{describe_setting(dim, size)}: {caption}", *_last_levels(here, column)))
    return Sheet("Overview", tables)


def _last_levels(rows: Sequence[Row], column: str) -> tuple[list[str], list[list[str]]]:
    """Header and body: a row a measure, a column an experiment in which the quantity is defined."""
    every = {(_kind(row), row["measure"]): row[column] for row in rows}  # of several levels the last one stays
    last = {key: value for key, value in every.items() if value is not None}
    kinds = dict.fromkeys(kind for kind, _ in last)
    measures = [name for name in NAMES if any((kind, name) in last for kind in kinds)]
    body = [[NAMES[name], *(_cell(last.get((kind, name))) for kind in kinds)] for name in measures]
    names = [f"{experiment} ({variant})" if variant else experiment for experiment, variant in kinds]
    return ["measure", *names], body


def _key(row: Row) -> tuple[Any, ...]:
    return (*_kind(row), row["dim"], row["size"])


def _kind(row: Row) -> tuple[str, str]:
    return row["experiment"], row["variant"]


def _sheets(rows: Sequence[Row]) -> Iterator[Sheet]:
    """One for each experiment and reading; for each dimension and size values, ratios and sensitivities."""
    for kind in dict.fromkeys(map(_kind, rows)):
        tables = []
        for dim, size in dict.fromkeys((row["dim"], row["size"]) for row in rows if _kind(row) == kind):
            here = [row for row in rows if _key(row) == (*kind, dim, size)]
            setting = describe_setting(dim, size)
            tables.append((f"{setting}: value", *_grid(here, "mean", "stderr")))
            tables.append((f"{setting}: relative to the first level", *_grid(here, "relative", "relative_stderr")))
            tables.append((f"{setting}: sensitivity, from the level before", *_grid(here, "sensitivity")))
        yield Sheet(describe_experiment(*kind), tables)


def _grid(rows: Sequence[Row], name: str, error: str | None = None) -> tuple[list[str], list[list[str]]]:
    """Header and body: a row a measure, a column a level."""
    grid = list(dict.fromkeys(row["level"] for row in rows))
    cells = {(row["measure"], row["level"]): _cell(row[name], row[error] if error else None) for row in rows}
    measures = [measure for measure in NAMES if (measure, grid[0]) in cells]
    header = [FACTORS[rows[0]["experiment"]], *(f"{level:g}" for level in grid)]
    return header, [[NAMES[measure], *(cells[measure, level] for level in grid)] for measure in measures]


def _cell(value: float | None, error: float | None = None) -> str:
    """A number to four digits, with its error to one; rounding is no error."""
    if value is None:
        return "–"
    return f"{value:.4g}" if error is None or error < ROUNDING * abs(value) else f"{value:.4g} ± {error:.1g}"


def _markdown(lead: str, sheets: Sequence[Sheet]) -> str:
    lines = [f"# {TITLE}", "", lead]
    for sheet in sheets:
        lines += ["", f"## {sheet.title}"]
        for caption, header, rows in sheet.tables:
            rule = ["---", *["---:"] * (len(header) - 1)]
            lines += ["", f"### {caption}", "", *(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))]
    return "\n".join(lines) + "\n"


def _html(lead: str, sheets: Sequence[Sheet]) -> str:
    """A page that needs nothing else."""
    body = make_element("h1", TITLE) + make_element("p", escape(lead))
    for sheet in sheets:
        inner = "".join(
            html_table(escape(caption), *_escape_cells(header, rows)) for caption, header, rows in sheet.tables
        )
        body += make_element("section", make_element("h2", escape(sheet.title)) + inner)
    return make_document(TITLE, [body], make_element("footer", f"crossfusion {__version__}."), style=WIDE)


def _escape_cells(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    return [escape(cell) for cell in header], [[escape(cell) for cell in row] for row in rows]
