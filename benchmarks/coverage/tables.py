"""The study as Markdown: a row a design, a column a distance."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.coverage.plan import FAR, LARGE, STEPS
from benchmarks.coverage.promises import CLEAR, LEAST, MOST, SIZE, band

COLUMNS = [*(f"{step:g}" for step in STEPS), FAR]
DISTANCES = ["0", *(f"≈ {column} SE" for column in COLUMNS[1:-1]), f"CFD {LARGE}"]
NOISE = {"t5": "t₅", "elliptical t5": "t₅, elliptical"}

FITTED = {"same": "these rows", "others": "other rows"}

Design = Mapping[str, Any]


def render_tables(result: Mapping[str, Any]) -> str:
    """All tables.

    Parameters
    ----------
    result : mapping
        As `run` returns it.

    Returns
    -------
    str
        Markdown.
    """
    parts = [
        _rows(_of(result, "rows")),
        _units(_of(result, "units")),
        _lenses(_of(result, "lenses")),
        _beyond(_of(result, "beyond")),
        _upper(_of(result, "upper")),
        _level(_of(result, "level"), result["draws"]),
        _limits(_of(result, "limits")),
    ]
    return "\n".join(part for part in parts if part)


def summary(result: Mapping[str, Any]) -> list[list[str]]:
    """What is promised, and the worst that was found.

    Parameters
    ----------
    result : mapping
        As `run` returns it.

    Returns
    -------
    list of lists of str
        A row a promise: what, its bounds, the number of points, the lowest and the highest share, how many hold.
    """
    rows = list_points(result, "rows")
    clear = [point for point in rows if point["ratio"] > CLEAR]
    low, high = band(result["draws"], SIZE)
    found = [
        ("intervals, independent rows", f"≥ {LEAST['rows']:.0%}", rows, "coverage"),
        (f"the same, distance > {CLEAR:g} standard errors", f"{LEAST['rows']:.0%} to {MOST:.0%}", clear, "coverage"),
        ("intervals, rows of patients", f"≥ {LEAST['units']:.0%}", list_points(result, "units"), "coverage"),
        ("intervals, through lenses", f"≥ {LEAST['lenses']:.0%}", list_points(result, "lenses"), "coverage"),
        ("tests at 5 %", f"{100 * low:.1f} to {100 * high:.1f} %", list_points(result, "level"), "rejected"),
    ]
    return [
        [
            what,
            bounds,
            f"{len(points)}",
            f"{100 * min(point[share] for point in points):.1f} %",
            f"{100 * max(point[share] for point in points):.1f} %",
            f"{sum(point['holds'] for point in points)} of {len(points)}",
        ]
        for what, bounds, points, share in found
        if points
    ]


SUMMARY = ["promise", "share", "points", "lowest", "highest", "hold"]


def list_points(result: Mapping[str, Any], section: str) -> list[dict[str, Any]]:
    """The points of a section."""
    return [point for design in _of(result, section) for point in design["points"]]


def _of(result: Mapping[str, Any], section: str) -> list[Design]:
    return [design for design in result["designs"] if design["section"] == section]


def _rows(designs: Sequence[Design]) -> str:
    header = ["noise", "rows", "features", "", *DISTANCES]
    cells = [[*_population(design), *_shares(design)] for design in designs]
    return _section("Independent rows", "", header, cells, len(DISTANCES))


def _units(designs: Sequence[Design]) -> str:
    note = "In brackets the interval that takes the rows to be independent."
    header = ["patients", "ICC", "features", "", *DISTANCES]
    cells = [
        [patients_text(design), f"{design['patients']['icc']:g}", f"{design['dim']}", _rest(design), *_shares(design)]
        for design in designs
    ]
    return _section("Rows of 20 patients a group", note, header, cells, len(DISTANCES))


def _lenses(designs: Sequence[Design]) -> str:
    note = (
        "Of groups that are not apart and, for standardized rows, of groups that are. In brackets the interval that"
        " takes the rows of patients to be independent."
    )
    header = ["lens", "fitted on", "noise", "rows", "features", "", *DISTANCES]
    cells = [[design["lens"], FITTED[design["fitted"]], *_population(design), *_shares(design)] for design in designs]
    return _section("Through a lens", note, header, cells, len(DISTANCES))


def _beyond(designs: Sequence[Design]) -> str:
    note = (
        "Elliptical tails: all features of a row share one chi-square, so that a few rows decide how large the variance"
        " seems. Modes: the groups are apart across the directions in which the modes lie."
    )
    header = ["noise", "rows", "features", "", *DISTANCES]
    cells = [[*_population(design), *_shares(design)] for design in designs]
    return _section("Where intervals do not hold, or are wider than need be", note, header, cells, len(DISTANCES))


def _upper(designs: Sequence[Design]) -> str:
    note = (
        "Percentage of studies in which the upper limit is below the true distance: for the 90% interval, on which"
        " equivalence at 5% relies, and in parentheses for the 95% interval, whose nominal rate is 2.5."
    )
    header = ["noise", "rows", "features", "", *DISTANCES[1:]]
    cells = [[*_population(design)[:3], _count_patients(design), *_misses(design)] for design in designs]
    return _section("Upper limits that are missed", note, header, cells, len(DISTANCES) - 1)


def _count_patients(design: Design) -> str:
    """What else there is to say of a population, and how many patients a group has."""
    rest = _population(design)[3]
    return f"{design['patients']['number'][0]} patients, {rest}" if design["patients"] else rest


def _misses(design: Design) -> list[str]:
    points = {
        point["column"]: f"{100 * point['above_90']:.1f} ({100 * point['above']:.1f})" for point in design["points"]
    }
    return [points.get(column, "–") for column in COLUMNS[1:]]


def _level(designs: Sequence[Design], draws: int) -> str:
    low, high = band(draws, SIZE)
    note = f"Chance lets a test of 5 % reject in {100 * low:.1f} to {100 * high:.1f} % of {draws:,} draws (99.9 %)."
    header = ["noise", "rows", "features", "", "exchanged", "rejects"]
    cells = [[*_population(design), describe_test(design), *_list_rejections(design)] for design in designs]
    return _section("Tests of groups that are not apart", note, header, cells, 1)


def _limits(designs: Sequence[Design]) -> str:
    note = "Nothing is promised here. The test of dispersion is asked about groups that are apart, of equal spread."
    header = ["test", "noise", "rows", "features", "", "exchanged", "rejects"]
    cells = [
        [design["test"], *_population(design), describe_test(design), *_list_rejections(design)] for design in designs
    ]
    return _section("Where tests do not hold, and the test of dispersion", note, header, cells, 1)


def _section(title: str, note: str, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int) -> str:
    if not rows:
        return ""
    ruler = ["---"] * (len(header) - numbers) + ["---:"] * numbers
    lines = [f"## {title}", "", *([note, ""] if note else [])]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in (header, ruler, *rows)), ""])


def _population(design: Design) -> list[str]:
    """Noise, rows, features, and what else there is to say."""
    patients = [] if design["patients"] is None else [f"{patients_text(design)}, ICC {design['patients']['icc']:g}"]
    through = design["section"] == "level" and "lens" in design
    seen = [f"{design['lens']} lens, of {FITTED[design['fitted']]}"] if through else []
    rest = "; ".join(filter(None, [*patients, _rest(design), *seen]))
    return [noise_text(design), rows_text(design), f"{design['dim']}", rest]


def noise_text(design: Design) -> str:
    """Name of the noise."""
    family: str = design["family"]
    return NOISE.get(family, family)


def rows_text(design: Design) -> str:
    """Rows of the groups; of their strata, with strokes."""
    groups = ["/".join(map(str, group)) for group in design["sizes"]]
    if len(groups) > 2:
        return f"{len(groups)} × {groups[0]}" if len(set(groups)) == 1 else ", ".join(groups)
    return " + ".join(groups)


def patients_text(design: Design) -> str:
    """How patients lie in the groups."""
    patients = design["patients"]
    how = "nested" if not patients["paired"] else "paired" if patients["shared"] == 1 else "paired, half shared"
    return f"{how}, uneven" if patients["uneven"] else how


def _rest(design: Design) -> str:
    parts = [
        f"spreads {', '.join(f'{spread:g}' for spread in design['spreads'])}" if design["spreads"] else "",
        f"given {len(design['sizes'][0])} strata" if len(design["sizes"][0]) > 1 else "",
        "balanced" if design["weights"] == "balanced" else "",
        "shift of one feature" if design["along"] == "one" else "",
    ]
    return "; ".join(filter(None, parts))


def describe_test(design: Design) -> str:
    """What a test exchanges."""
    return {"": "rows", "units": "patients", "pairs": "within patients"}[design["told"]]


def _shares(design: Design) -> list[str]:
    points = {point["column"]: point for point in design["points"]}
    return [_share(points[column]) if column in points else "–" for column in COLUMNS]


def _share(point: Mapping[str, Any]) -> str:
    shown = _percent(point["coverage"], point)
    return f"{shown} ({100 * point['naive']:.0f})" if "naive" in point else shown


def _list_rejections(design: Design) -> list[str]:
    return [_percent(point["rejected"], point) for point in design["points"]]


def _percent(share: float, point: Mapping[str, Any]) -> str:
    """A share in percent; bold, and with one digit more, where it breaks a promise."""
    return f"{100 * share:.1f}" if point.get("holds", True) else f"**{100 * share:.2f}**"
