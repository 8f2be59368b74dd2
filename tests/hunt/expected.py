"""What the reference says of a data set, and where a summary says something else."""

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tests.helpers import reference
from tests.hunt.labels import as_key
from tests.hunt.recipes import Messy

SCHEMES = ("pooled", "balanced")
PRECISION = 1e-11
EPSILON = float(np.finfo(np.float64).eps)
LEVELS = ["tissue", "site", "patient"]


class Expected:
    """The data set once more, by the formula, in fractions.

    Parameters
    ----------
    data : Messy
        The data set.
    read : callable
        What the route makes of a label.
    """

    def __init__(self, data: Messy, read: Callable[[Any], Any] = as_key) -> None:
        kept = data.take(np.flatnonzero(data.finite))
        self.dropped = len(data.rows) - len(kept.rows)
        self.keys = [[read(as_key(value)) for value in column] for column in (kept.site, kept.tissue, kept.patient)]
        self.fine = reference.cells(kept.rows, *self.keys)
        self.sites = set(self.keys[0])

    def cells(self, given: str | None) -> dict[reference.Key, reference.Cell]:
        """Cells of sites within tissues, or in one stratum."""
        return self.adjusted if given else self.unadjusted

    @cached_property
    def adjusted(self) -> dict[reference.Key, reference.Cell]:
        """Cells of sites within tissues."""
        return reference.roll_up(self.fine, lambda key: key[:2])

    @cached_property
    def unadjusted(self) -> dict[reference.Key, reference.Cell]:
        """Cells of sites."""
        return reference.roll_up(self.fine, lambda key: (key[0], 0))

    @cached_property
    def noise(self) -> float:
        """Error that rounding to float64 makes in the means of all features together."""
        size = max(abs(float(mean)) for c in self.fine.values() for mean in c.mean)
        return 8 * EPSILON * size * math.sqrt(len(next(iter(self.fine.values())).mean))

    def slack(self, between: Fraction, within: Fraction) -> float:
        """How far a distance may be off."""
        if within == 0:
            return 0.0
        spread = math.sqrt(abs(between) / within)
        error = self.noise / math.sqrt(within)
        return 2 * spread * error + error**2 + PRECISION * (1 + reference.log_ratio(abs(between), within))


Differences = Iterator[str]


def differ(found: float | None, expected: float | None, slack: float) -> bool:
    """Whether two numbers are not the same; NaN and None both mean that there is none."""
    none = [value is None or math.isnan(value) for value in (found, expected)]
    if any(none):
        return not all(none)
    assert found is not None
    assert expected is not None
    return found != expected and not abs(found - expected) <= slack


def check_distance(name: str, found: Any, fused: reference.Distance, expected: Expected) -> Differences:
    """Differences of plug-in and unbiased distance, given two numbers by name."""
    compared = fused.overlap > 0
    plug_in, unbiased = (fused.distance, fused.unbiased) if compared else (None, None)
    for field, number, within in (("distance", plug_in, fused.within), ("unbiased", unbiased, fused.within_unbiased)):
        slack = expected.slack(fused.between, within)
        if differ(found[field], number, slack):
            yield f"{name}.{field} is {found[field]!r} instead of {number!r} (within {slack:.1e})"


def check_fusion(name: str, found: Any, fused: reference.Distance, expected: Expected) -> Differences:
    """Differences of all numbers of a Fusion."""
    yield from check_distance(name, vars(found), fused, expected)
    score = math.exp(-fused.distance) if fused.overlap else None
    if differ(found.score, score, expected.slack(fused.between, fused.within)):
        yield f"{name}.score is {found.score!r} instead of {score!r}"
    if differ(found.overlap, float(fused.overlap), PRECISION):
        yield f"{name}.overlap is {found.overlap!r} instead of {float(fused.overlap)!r}"
    if (found.reason is None) != (fused.overlap > 0 and fused.defined):
        yield f"{name}.reason is {found.reason!r}"
    if found.distance is not None and differ(found.total, found.within + found.between, PRECISION * found.total):
        yield f"{name}.total is not within + between"


def check_groups(name: str, found: Any, given: str | None, scheme: str, expected: Expected) -> Differences:
    """Differences of the counts and weights of the groups of a Fusion."""
    cell = expected.cells(given)
    weight = reference.weights(cell, scheme)
    for field, of_cell in (("counts", {key: Fraction(c.count) for key, c in cell.items()}), ("weights", weight)):
        values = by_key(getattr(found, field))
        wanted = {site: float(sum(v for key, v in of_cell.items() if key[0] == site)) for site in expected.sites}
        if values.keys() != wanted.keys() or any(differ(values[site], wanted[site], PRECISION) for site in wanted):
            yield f"{name}.{field} is {values} instead of {wanted}"
    if found.dropped != expected.dropped:
        yield f"{name}.dropped is {found.dropped} instead of {expected.dropped}"


def by_key(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """A mapping under comparable labels."""
    found = {as_key(label): value for label, value in values.items()}
    assert len(found) == len(values), f"labels that should be one: {list(values)}"
    return found


def check_cfd(found: Any, given: str | None, scheme: str, expected: Expected) -> Differences:
    """Differences of a Fusion of the sites."""
    cell = expected.cells(given)
    fused = reference.fuse(cell, reference.weights(cell, scheme), lambda key: key[1])
    name = f"cfd(given={given}, weights={scheme})"
    yield from check_fusion(name, found, fused, expected)
    yield from check_groups(name, found, given, scheme, expected)


def check_pairwise(found: Any, given: str | None, scheme: str, expected: Expected) -> Differences:
    """Differences of the matrices of all pairs."""
    cell = expected.cells(given)
    names = [as_key(label) for label in found.labels]
    if set(names) != expected.sites:
        yield f"pairwise.labels are {names} instead of {expected.sites}"
        return
    for i, first in enumerate(names):
        for j, second in enumerate(names[:i]):
            fused = reference.pair(cell, first, second, scheme)
            name = f"pairwise(given={given}, weights={scheme})[{first!r}, {second!r}]"
            numbers = {field: float(getattr(found, field)[i, j]) for field in ("distance", "unbiased", "overlap")}
            yield from check_distance(name, numbers, fused, expected)
            if differ(numbers["overlap"], float(fused.overlap), PRECISION):
                yield f"{name}.overlap is {numbers['overlap']} instead of {float(fused.overlap)}"


def check_rest(found: Any, given: str | None, scheme: str, expected: Expected) -> Differences:
    """Differences of the distances of each group from the rest."""
    for site, fusion in by_key(found).items():
        fused = reference.one_vs_rest(expected.cells(given), site, scheme)
        yield from check_fusion(f"one_vs_rest(given={given}, weights={scheme})[{site!r}]", fusion, fused, expected)


def check_hierarchy(found: Any, scheme: str, expected: Expected) -> Differences:
    """Differences of the levels tissue, site, patient."""
    leaf = {(tissue, site, patient): c for (site, tissue, patient), c in expected.fine.items()}
    levels = reference.hierarchy(leaf, scheme)
    for level, fused in zip(found.levels, levels, strict=True):
        yield from check_distance(f"hierarchy({scheme}).{level.level}", vars(level), fused, expected)
    flat = {(key, 0): c for key, c in leaf.items()}
    whole = reference.fuse(flat, reference.weights(flat, scheme), lambda _: 0)
    yield from check_distance(f"hierarchy({scheme}).whole", vars(found), whole, expected)


def check_features(found: Any, given: str | None, scheme: str, expected: Expected) -> Differences:
    """Differences of the attribution to features."""
    parts = reference.by_feature(expected.cells(given), scheme)
    between, within = (sum(values, Fraction(0)) for values in zip(*parts, strict=True))
    compared = found.overlap > 0
    size = math.sqrt(between) * 2 * expected.noise + expected.noise**2 + PRECISION * float(between)
    for position, label in enumerate(found.labels):
        own, own_within = parts[int(str(label).removeprefix("e"))]
        name = f"attribution(given={given}, weights={scheme})[{label!r}]"
        if differ(found.contribution[position], float(own) if compared else None, size):
            yield f"{name}.contribution is {found.contribution[position]!r} instead of {float(own)!r}"
        share = float(own / between) if between and compared else None
        if differ(found.share[position], share, 2 * size / float(between) if between else 0.0):
            yield f"{name}.share is {found.share[position]!r} instead of {share!r}"
        rest = between - own, within - own_within
        without = reference.log_ratio(*rest) if compared else None
        if differ(found.without[position], without, expected.slack(*rest)):
            yield f"{name}.without is {found.without[position]!r} instead of {without!r}"


def check_units(found: Any, given: str | None, scheme: str, expected: Expected) -> Differences:
    """Differences of the attribution to patients."""
    fine = expected.fine if given else reference.roll_up(expected.fine, lambda key: (key[0], 0, key[2]))
    units = reference.by_unit(fine, scheme)
    between = sum((own for own, _ in units.values()), Fraction(0))
    size = math.sqrt(abs(between)) * 2 * expected.noise + expected.noise**2 + PRECISION * float(between)
    for position, label in enumerate(found.labels):
        own, rest = units[as_key(label)]
        name = f"attribution(over=patient, given={given}, weights={scheme})[{label!r}]"
        spread = math.sqrt(max(float(c.mean[f]) ** 2 for c in fine.values() for f in range(len(c.mean))))
        loose = size + 64 * EPSILON * spread * (spread + expected.noise)
        if differ(found.contribution[position], float(own) if found.overlap > 0 else None, loose):
            yield f"{name}.contribution is {found.contribution[position]!r} instead of {float(own)!r}"
        slack = 0.0 if rest is None else expected.slack(rest.between, rest.within)
        if differ(found.without[position], None if rest is None else rest.distance, slack):
            yield f"{name}.without is {found.without[position]!r} instead of {rest and rest.distance!r}"


def check_summary(summary: Any, expected: Expected) -> Differences:
    """All differences between a summary and the reference."""
    for scheme in SCHEMES:
        for given in (None, "tissue"):
            asked: dict[str, Any] = {"given": given, "weights": scheme}
            yield from check_cfd(summary.cfd("site", **asked), given, scheme, expected)
            yield from check_pairwise(summary.pairwise("site", **asked), given, scheme, expected)
            yield from check_rest(summary.one_vs_rest("site", **asked), given, scheme, expected)
            yield from check_features(summary.attribution("site", **asked), given, scheme, expected)
            yield from check_units(summary.attribution("site", over="patient", **asked), given, scheme, expected)
        yield from check_hierarchy(summary.hierarchy(LEVELS, weights=scheme), scheme, expected)
