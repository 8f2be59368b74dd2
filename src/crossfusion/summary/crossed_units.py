"""Units in several of the compared groups, whose labels a test permutes within units."""

from collections.abc import Sequence

import numpy as np

from crossfusion._base import factors, warn
from crossfusion.summary.moment_table import MomentTable

MIN_CROSSED_SHARE = 0.25  # of units in several groups; a smaller share looks like a mistake


def has_crossed_units(table: MomentTable, between: Sequence[str], units: Sequence[str]) -> bool:
    """Return whether some units are in several of the compared groups."""
    return len(table.rollup(units)) < len(table.rollup(list(dict.fromkeys([*units, *between]))))


def count_exchangeable_units(
    table: MomentTable, between: Sequence[str], given: Sequence[str], units: Sequence[str]
) -> int:
    """Count units whose labels a test can permute: in strata with several groups or, if crossed, in several groups."""
    fine = table.rollup(list(dict.fromkeys([*units, *between, *given])))
    unit, group = (factors.encode(fine.keys.select(list(names)))[0] for names in (units, between))
    held = [*given, *(units if has_crossed_units(table, between, units) else [])]
    place = factors.encode(fine.keys.select(list(dict.fromkeys(held))))[0] if held else np.zeros(len(fine), np.int32)
    present = np.unique(np.stack([place, group]), axis=1)
    return len(np.unique(unit[np.isin(place, np.flatnonzero(np.bincount(present[0]) > 1))]))


def warn_about_few_crossed(
    table: MomentTable, between: Sequence[str], given: Sequence[str], units: Sequence[str]
) -> None:
    """Warn if labels are permuted within units, but most units are in one group only."""
    number, total = count_exchangeable_units(table, between, given, units), len(table.rollup(units))
    if has_crossed_units(table, between, units) and number < MIN_CROSSED_SHARE * total:
        warn(
            f"{number:,} of {total:,} units are in several of the compared groups, so labels are permuted"
            " within these units only, and the test does not cover the others",
            "leave out rows that are in a group by accident",
        )


def describe_exchange(table: MomentTable, between: Sequence[str], units: Sequence[str]) -> str:
    """Describe what a test by units permutes: whole units, or labels within units."""
    wholes = " × ".join(units)
    return f"{' × '.join(between)} within {wholes}" if has_crossed_units(table, between, units) else wholes
