"""Our tables as Markdown: ratios (table 2 and appendix C of the paper), degradation (its table 3).

The paper's numbers stand beside ours only for the data set that they were printed for, `printed`: Camelyon16 or
MIDOG 2021.
"""

from collections.abc import Sequence
from html import escape

import numpy as np

from crossfusion._base import label_text, number_text
from crossfusion.evaluation import Rdr, Study, pair_text
from crossfusion.study import published

TableText = tuple[list[str], list[list[str]]]
POWERS = {"ratio": None, "ratio_root": 1, "ratio_squared": 2}  # that ratios are brought to; None: as they stand
IN_PRINT = {"cfd": "CFD", "wasserstein": "Wasserstein", "mmd": "MMD", "hausdorff": "Hausdorff", "chamfer": "Chamfer"}


def format_ratios(found: Rdr, what: str = "ratio", *, printed: str | None = None) -> TableText:
    """Header and rows: relative distance ratios, ours and those of the paper's table 2."""
    header, rows = found.table(what)
    theirs = [_find_printed_ratios(found, row[0], what, printed) for row in rows]
    both = [[*row, *ratios.values()] for row, ratios in zip(rows, theirs, strict=True)]
    return [*header, *(f"paper: {side}" for side in theirs[0])], both


def format_ratios_by_side(found: Rdr, what: str = "ratio", *, printed: str | None = None) -> TableText:
    """The same with one column per distance and one row per side, for many pairs."""
    header, rows = found.table(what)
    own = [[side, *(row[k] for row in rows)] for k, side in enumerate(header) if k]
    columns = [_find_printed_ratios(found, name, what, printed) for name in found.distances]
    theirs = [[f"paper: {side}", *(column[side] for column in columns)] for side in columns[0]]
    return ["side", *found.distances], [*own, *theirs]


def format_distances(found: Rdr, *, printed: str | None = None) -> TableText:
    """Header and rows: distances within and across domains, ours and those of the paper's appendix C."""
    header = ["", *found.distances]
    rows = []
    for pair, domain in found.sides:
        own = {e.distance: e for e in found.ratios if (e.pair, e.domain) == (pair, domain)}
        title = f"within {label_text(domain)}, as many rows as in {pair_text(pair)}"
        rows.append([title, *(_format_spread(own[d].within, own[d].within_sd) for d in found.distances)])
    for pair in dict.fromkeys(entry.pair for entry in found.ratios):
        own = {e.distance: e for e in found.ratios if e.pair == pair}
        title = f"across {pair_text(pair)}"
        rows.append([title, *(_format_spread(own[d].across, own[d].across_sd) for d in found.distances)])
    for kind in ("within", "across"):
        for name, values in published.tables()[kind]["values"].items():
            if not published.belongs(name, printed):
                continue
            cells = [values.get(IN_PRINT.get(d, ""), "–").replace("±", " ± ") for d in found.distances]
            rows.append([f"paper: {kind} {name}", *cells])
    return header, rows


def format_study(found: Study, *, printed: str | None = None) -> TableText:
    """Header and rows: distances, scores, degradation and correlation, ours and those of the paper's table 3."""
    header, rows = found.table()
    paper = published.tables()["degradation"]
    if printed != paper["dataset"]:
        return header, rows
    cross = [paper["f1"] if found.metric == "f1_macro" else None, paper["cddr"]]
    columns = [paper["distances"].get(IN_PRINT.get(name, "")) for name in found.distances]
    for k, method in enumerate(paper["methods"]):
        values = [None if column is None else column[k] for column in [*columns, *cross]]
        rows.append([f"paper: {method}", *map(_format_printed, values)])
    last = [paper["correlation"].get(IN_PRINT.get(name, "")) for name in found.distances]
    rows.append(["paper: correlation with CDDR, four points", *map(_format_printed, last), "–", "–"])
    return header, rows


def format_markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table; vertical bars in cells are escaped."""
    lines = [[escape(cell, quote=False).replace("|", "\\|") for cell in row] for row in (header, *rows)]
    lines.insert(1, ["---"] * len(header))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _find_printed_ratios(found: Rdr, distance: str, what: str, printed: str | None) -> dict[str, str]:
    """The paper's ratios of a distance by side, on the scale that ours are brought to."""
    sides = [side for side in published.COLUMNS if published.belongs(side, printed)]
    values = published.RDR.get(IN_PRINT.get(distance, ""))
    if values is None or what not in POWERS:
        return dict.fromkeys(sides, "–")
    order = next(entry.order for entry in found.ratios if entry.distance == distance)
    wanted = POWERS[what] or order
    return {side: _format_printed(values[published.COLUMNS.index(side)] ** (wanted / order)) for side in sides}


def _format_spread(mean: float, spread: float) -> str:
    return "–" if np.isnan(mean) else f"{number_text(mean)} ± {number_text(spread)}"


def _format_printed(value: float | None) -> str:
    """Format a number with the four decimals that the paper prints; a dash for None."""
    return "–" if value is None else f"{value:.4f}"
