"""Designs and moments of units, from the names of factors."""

from collections.abc import Sequence

import numpy as np

from crossfusion._base import InputError, arg, as_names, factors, warn
from crossfusion.fusion import Design
from crossfusion.inference import UnitMoments
from crossfusion.summary.moment_table import Factors, MomentTable

MIN_CROSSED_SHARE = (
    0.25  # of units in several groups; a smaller share looks like a mistake, and the test leaves out the rest
)


def make_design(table: MomentTable, between: Factors, given: Factors | None) -> Design:
    """Make the design of the groups of `between` within the strata of `given`."""
    compared, strata = table._check_names(between, "between"), as_names(given, "given")
    both = set(compared) & set(strata)
    if both:
        raise InputError(
            problem=f"{both.pop()!r} is in {arg('between')} and in {arg('given')}",
            remedy="a factor can be compared or adjusted for",
        )
    cells = table.rollup([*compared, *strata])
    group, groups = factors.encode(cells.keys.select(list(compared)))
    stratum = factors.encode(cells.keys.select(list(strata)))[0] if strata else np.zeros(len(cells), int)
    return Design(cells.moments, group, stratum, factors.list_labels(groups))


def make_unit_moments(
    table: MomentTable, between: Factors, given: Factors | None, units: Factors | None, wanted: str
) -> UnitMoments:
    """Compute the moments of units in the cells of a design; `wanted` names what needs them in messages."""
    compared, names = [*as_names(between, "between"), *as_names(given, "given")], as_names(units, "units")
    if not names:
        raise InputError(
            problem=f"a summary has no rows, so {wanted} needs {arg('units')}",
            remedy="name the factor of what is independent, such as the patient, or use cfd(x, labels=...,"
            " level=...) and permutation_test(x, labels) on the rows",
        )
    table._check_factors(names)
    both = {*names} & {*compared}
    if both:
        raise InputError(
            problem=f"{both.pop()!r} is in {arg('units')} and in {arg('between')} or {arg('given')}",
            remedy="units are what is repeated in them",
        )
    fine = table.rollup([*compared, *names])
    factors.check_units(fine.keys, names)
    cell, _ = factors.encode(fine.keys.select(compared))
    unit, _ = factors.encode(fine.keys.select(list(names)))
    return UnitMoments(fine.moments, cell, unit)


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
            f"{number:,} of {total:,} units have several of the compared groups, so that labels are"
            " exchanged within these only, and the test says nothing of the others",
            "leave out rows that are in a group by accident",
        )


def describe_exchange(table: MomentTable, between: Sequence[str], units: Sequence[str]) -> str:
    """Describe what a test by units permutes: whole units, or labels within units."""
    wholes = " × ".join(units)
    return f"{' × '.join(between)} within {wholes}" if has_crossed_units(table, between, units) else wholes
