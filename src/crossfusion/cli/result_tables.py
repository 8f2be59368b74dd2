"""Results as tables for people."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import numpy as np

from crossfusion._base import (
    CrossfusionWarning,
    InputError,
    count_text,
    label_text,
    level_text,
    limits_text,
    number_text,
    percent,
    pvalue_text,
    quantity_text,
)
from crossfusion.cli import output
from crossfusion.fusion import (
    GEOMETRY_REMEDY,
    MIN_UNITS,
    STATISTIC_NAMES,
    Attribution,
    Exclusion,
    Fusion,
    Pairwise,
    Projection,
    describe_excluded,
    describe_scale,
    join_cautions,
    split_cautions,
)
from crossfusion.inference import TestResult
from crossfusion.summary import Summary

PAIRS_SHOWN = 20
GEOMETRY_OPTION = "pass --scale features"


def format_question(between: Sequence[str], given: Sequence[str]) -> str:
    """What was asked, in words."""
    return " × ".join(between) + (f" given {' × '.join(given)}" if given else "")


def list_pairs(number: int) -> list[tuple[int, int]]:
    """Positions above the diagonal of a matrix."""
    return [(i, j) for i in range(number) for j in range(i + 1, number)]


def show_fusion(title: str, fusion: Fusion) -> None:
    """A distance and its parts."""
    rows = [
        *make_estimate_rows(fusion),
        ["score", number_text(fusion.score), "share of the variance within the groups"],
        ["within", quantity_text(fusion.within), "variance within the groups"],
        ["between", quantity_text(fusion.between), "variance between their means"],
    ]
    rows += make_overlap_rows(fusion)
    if fusion.pvalue is not None:
        rows.append(["statistic", number_text(fusion.statistic), STATISTIC_NAMES[fusion.statistic_name or "welch"]])
        rows.append(
            ["pvalue", pvalue_text(fusion.pvalue), f"from {count_text(fusion.permutations or 0, 'permutation')}"]
        )
    for label, count in fusion.counts.items():
        rows.append([f"rows of {label_text(label)}", f"{count:,}", f"{percent(fusion.weights[label])} of the weight"])
    if fusion.dropped:
        rows.append(["dropped", f"{fusion.dropped:,}", "rows with NaN or infinite values"])
    color = "" if fusion.distance is None else output.choose_color(fusion.distance)
    styles = [["bold", color if name in ("unbiased", "distance") else "", "dim"] for name, *_ in rows]
    output.show_table(title, ["", "value", ""], rows, styles, left=(0, 2))
    show_scale(fusion)
    show_excluded(fusion.excluded)
    show_caution(fusion)


def make_estimate_rows(fusion: Fusion) -> list[list[str]]:
    """Rows of a table: the distance, its interval if it has one, and the plug-in distance."""
    return [
        ["unbiased", number_text(fusion.unbiased), "Cross-Fusion Distance, corrected for sampling error"],
        *make_interval_rows(fusion),
        ["distance", number_text(fusion.distance), "plug-in Cross-Fusion Distance of the paper"],
    ]


def make_interval_rows(fusion: Fusion) -> list[list[str]]:
    """Rows of a table: the interval of a distance, if it has one."""
    if fusion.interval is None or fusion.level is None:
        return []
    return [
        ["interval", limits_text(*fusion.interval), f"of unbiased, at {level_text(fusion.level)} confidence"],
        ["stderr", number_text(fusion.stderr), "standard error of unbiased"],
    ]


def make_overlap_rows(fusion: Fusion, given: Sequence[str] = ()) -> list[list[str]]:
    """Rows of a table: the overlap, if something is adjusted for, and why there is no distance."""
    rows = [["overlap", percent(fusion.overlap), "share of the weight in strata that groups share"]]
    rows = rows if given or fusion.overlap < 1 else []
    return rows + ([["reason", "–", str(fusion.reason)]] if fusion.distance is None else [])


def show_excluded(excluded: Sequence[Exclusion]) -> None:
    """What is left out for too few units, if something is."""
    if excluded:
        click.echo(f"excluded: {describe_excluded(excluded)}")


def show_scale(result: Fusion | Pairwise | Attribution | Projection, place: str = "within groups") -> None:
    """What features were divided by, if anything."""
    if result.scale:
        click.echo(f"scale: {describe_scale(result.constant or (), place)}")


def show_caution(result: Fusion | Pairwise | TestResult) -> None:
    """A word of caution, if there is one."""
    if result.caution:
        click.echo(f"caution: {result.caution.replace(GEOMETRY_REMEDY, GEOMETRY_OPTION)}")


def show_whole(
    summary: Summary,
    between: Sequence[str],
    given: Sequence[str],
    weights: str,
    pairwise: Pairwise | None = None,
    units: Sequence[str] = (),
    min_units: int = MIN_UNITS,
    scale: str | None = None,
) -> None:
    """One line on all groups taken together, and on how far strata are shared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossfusionWarning)  # said once already
        try:
            fusion = summary.cfd(between, given=given, weights=weights, units=units, min_units=min_units, scale=scale)
        except InputError:  # units of which the pairs say more
            fusion = summary.cfd(between, given=given, weights=weights, scale=scale)
    why = f" ({fusion.reason})" if fusion.reason else ""
    line = f"all groups: {number_text(fusion.unbiased)}{why}"
    line += "" if fusion.distance is None else f", plug-in {number_text(fusion.distance)}"
    if given:
        line += f"; overlap {percent(fusion.overlap)}"
        line += "" if pairwise is None else f", of the pairs at least {percent(np.nanmin(pairwise.overlap))}"
    click.echo(line)
    told = split_cautions(None if pairwise is None else pairwise.caution)
    new = [text for text in split_cautions(fusion.caution) if text not in told]
    show_caution(replace(fusion, caution=join_cautions(*new)))


def show_pairs(result: Pairwise, asked: str) -> None:
    """Each pair with its interval and p-value, the farthest first."""
    header, rows = result.table(PAIRS_SHOWN)
    pairs = list_pairs(len(result.labels))
    values = sorted((result.unbiased[pair] for pair in pairs), key=lambda value: -np.nan_to_num(value, nan=-np.inf))
    more = f", the {len(rows)} farthest of {len(pairs):,} pairs (--csv has all)" if len(rows) < len(pairs) else ""
    colors = [output.choose_color(value) for value in values[:PAIRS_SHOWN]]
    styles = [["", "", color, color, *[""] * (len(header) - 4)] for color in colors]
    title = f"Cross-Fusion Distance between {asked}{more}"
    output.show_table(title, header, rows, styles, left=(0, 1), bars=values[:PAIRS_SHOWN])


def show_matrix(labels: Sequence[Any], values: Any, asked: str) -> None:
    """A matrix where it fits, else the pairs farthest apart."""
    names = [label_text(label) for label in labels]
    width = max(map(len, names)) + len(names) * (max(6, *map(len, names)) + 2)
    title = f"Cross-Fusion Distance between {asked}"
    if width <= output.find_terminal_width():
        rows = [[name, *map(number_text, line)] for name, line in zip(names, values, strict=True)]
        styles = [["bold", *map(output.choose_color, line)] for line in values]
        output.show_table(title, ["", *names], rows, styles)
        return
    ranked = sorted(list_pairs(len(names)), key=lambda pair: -np.nan_to_num(values[pair], nan=-np.inf))
    shown = ranked[:PAIRS_SHOWN]
    rows = [[names[i], names[j], number_text(values[i, j])] for i, j in shown]
    styles = [["", "", output.choose_color(values[pair])] for pair in shown]
    output.show_table(
        f"{title}: the {len(shown)} farthest of {len(ranked):,} pairs (--csv has all)",
        ["group_a", "group_b", "CFD"],
        rows,
        styles,
        left=(0, 1),
        bars=[values[pair] for pair in shown],
    )
