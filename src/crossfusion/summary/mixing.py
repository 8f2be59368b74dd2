"""How groups mix in the regions of a codebook, from the moments of groups in regions."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import (
    FloatArray,
    InputError,
    arg,
    arrow,
    as_names,
    check_level,
    check_seed,
    check_whole,
    factors,
)
from crossfusion.fusion import (
    REGION,
    Codes,
    Design,
    Exclusion,
    Mixing,
    Region,
    center_strata,
    find_plane,
    fuse,
    measure_information,
)
from crossfusion.inference import RegionCounts
from crossfusion.moments import Moments
from crossfusion.summary.moment_table import Factors, MomentTable

LONELY_CAUTION = (
    "most rows lie in regions with rows of one unit only, so units differ as much as groups may: use fewer regions, or"
    " more units"
)
NOTHING: tuple[Exclusion, ...] = ()
MAX_LONELY = 0.5  # share of the rows in regions of one unit


@dataclass(frozen=True)
class Regions:
    """Moments of the cells of a design in regions, with the cell and the region of each entry."""

    moments: Moments
    cell: Codes
    region: Codes
    labels: Sequence[Hashable]

    def spread(self, values: FloatArray, rows: int, code: Codes) -> FloatArray:
        """Sum values over codes (rows) and regions (columns)."""
        total = np.zeros((rows, len(self.labels)))
        np.add.at(total, (code, self.region), values)
        return total


def measure_mixing(
    table: MomentTable,
    between: Factors,
    *,
    given: Factors | None,
    units: Factors | None,
    level: float | None,
    permutations: int,
    seed: int,
    min_units: int,
) -> Mixing:
    """Measure how groups mix in the regions of a table; `Queries.mixing` documents the arguments."""
    check_level(level)
    check_whole(permutations, "permutations")
    check_seed(seed)
    _check_region(table, between, given, units)
    if level is None and not as_names(units, "units"):
        design, excluded = table._make_design(between, given), NOTHING
        kept = np.arange(len(design.cells))
    else:
        design, kept, excluded = _leave_out_cells(table, between, given, units, min_units)
    design.check_groups()
    regions = _find_regions(table, between, given, kept)
    counts = _count_regions(table, between, given, units, kept, design)
    found = _estimate(counts, level, permutations, seed) | _split_distance(design, regions)
    return Mixing(
        **found,
        labels=tuple(design.labels),
        counts=_name(design, np.bincount(design.group, weights=design.cells.count).astype(np.float64)),
        regions=_describe_regions(design, regions),
        alone=_measure_alone(design, regions),
        excluded=excluded,
        caution=_caution_about_units(counts),
    )


def _check_region(table: MomentTable, between: Factors, given: Factors | None, units: Factors | None) -> None:
    """Reject a summary without regions."""
    if REGION not in table.factors:
        raise InputError(
            problem=f"the summary has no factor {REGION!r}, which mixing counts",
            remedy="summarize the rows through a codebook: summarize(..., lens=cf.lens.codebook(rows))",
        )
    for names, name in ((between, "between"), (given, "given"), (units, "units")):
        if REGION in as_names(names, name):
            raise InputError(name, REGION, "is what groups are compared over", "name other factors")


def _leave_out_cells(
    table: MomentTable, between: Factors, given: Factors | None, units: Factors | None, min_units: int
) -> tuple[Design, Codes, tuple[Exclusion, ...]]:
    """Make the design without cells of too few units, the cells that are left, and name the others."""
    whole = table._make_design(between, given)
    design, _, excluded = table._make_unit_design(between, given, units, f"{arg('level')}", min_units)
    if not excluded:
        return whole, np.arange(len(whole.cells)), excluded
    number = table._make_unit_moments(between, given, units, f"{arg('level')}").count_units(len(whole.cells))
    return design, np.flatnonzero(number >= min_units), excluded


def _find_regions(table: MomentTable, between: Factors, given: Factors | None, kept: Codes) -> Regions:
    """Find the moments of the cells in each region."""
    compared = [*as_names(between, "between"), *as_names(given, "given")]
    fine = table.rollup([*compared, REGION])
    cell, _ = factors.encode(fine.keys.select(compared))
    here = np.flatnonzero(np.isin(cell, kept))
    region, found = factors.encode(fine.keys.select([REGION]))
    present, codes = np.unique(region[here], return_inverse=True)
    if len(present) < 2:
        raise InputError(problem="all rows lie in one region, so mixing says nothing", remedy="use more regions")
    labels = factors.list_labels(found)
    return Regions(fine.moments[here], np.searchsorted(kept, cell[here]), codes, [labels[k] for k in present])


def _count_regions(
    table: MomentTable,
    between: Factors,
    given: Factors | None,
    units: Factors | None,
    kept: Codes,
    design: Design,
) -> RegionCounts:
    """Count the rows of each cell, or of each unit in a cell, in each region."""
    compared, names = [*as_names(between, "between"), *as_names(given, "given")], list(as_names(units, "units"))
    fine = table.rollup([*compared, *names, REGION])
    cell, _ = factors.encode(fine.keys.select(compared))
    here = np.flatnonzero(np.isin(cell, kept))
    keys = fine.keys.take(arrow.from_numbers(here))
    entry, entries = factors.encode(keys.select([*compared, *names]))
    region, regions = factors.encode(keys.select([REGION]))
    count = np.zeros((entries.num_rows, regions.num_rows))
    count[entry, region] = fine.moments.count[here]
    own, _ = factors.encode(entries.select(compared))
    unit = factors.encode(entries.select(names))[0] if names else None
    return RegionCounts(count, own, unit, design.group, design.stratum)


def _estimate(counts: RegionCounts, level: float | None, permutations: int, seed: int) -> dict[str, Any]:
    """Estimate the normalized information, its test and, at a level, its interval."""
    information, entropy = counts.information, counts.entropy
    if entropy == 0:
        raise InputError(problem="no stratum holds two of the compared groups", remedy="pass coarser ones")
    null = counts.permute(permutations, seed)
    chance = float(null.mean())
    room = entropy - chance
    reached = int(np.count_nonzero(null >= information * (1 - 1e-9)))
    found: dict[str, Any] = {
        "information": (information - chance) / room if room > 0 else 0.0,
        "plug_in": information / entropy,
        "pvalue": (reached + 1) / (permutations + 1),
        "permutations": permutations,
    }
    if level is None or not room > 0:
        return found
    low, high, stderr = counts.estimate_interval(level, chance)
    return found | {"level": level, "interval": (low / room, min(high / room, 1.0)), "stderr": stderr / room}


def _split_distance(design: Design, regions: Regions) -> dict[str, Any]:
    """Split the distance between groups into its part within regions, and what their composition adds."""
    whole = fuse(design, weights="pooled", tell=False).unbiased
    code = design.stratum[regions.cell] * len(regions.labels) + regions.region
    stratum = np.unique(code, return_inverse=True)[1]
    inside = Design(regions.moments, design.group[regions.cell], stratum, design.labels, features=design.features)
    shift = fuse(inside, weights="pooled", tell=False).unbiased
    both = None if whole is None or shift is None else whole - shift
    return {"cfd": whole, "shift": shift, "composition": both}


def _describe_regions(design: Design, regions: Regions) -> tuple[Region, ...]:
    """Describe each region, the largest contribution to the information first."""
    groups = design.group[regions.cell]
    count = regions.spread(regions.moments.count, len(design.labels), groups)
    part = measure_information(regions.spread(regions.moments.count, len(design.cells), regions.cell), design.stratum)
    whole = regions.moments.merge(regions.region, len(regions.labels))
    number = len(regions.labels)
    between = Design(whole, np.arange(number), np.zeros(number, int), regions.labels)
    gap = whole.mean - center_strata(between)
    place = gap @ find_plane(between, gap)[0].T
    share = count / count.sum(axis=1, keepdims=True)
    found = [
        Region(
            region=regions.labels[k],
            rows=float(count[:, k].sum()),
            shares=dict(zip(design.labels, share[:, k].tolist(), strict=True)),
            only=design.labels[int(count[:, k].argmax())] if np.count_nonzero(count[:, k]) == 1 else None,
            cfd=_measure_inside(design, regions, k),
            part=float(part[k] / part.sum()) if part.sum() > 0 else 0.0,
            place=(float(place[k, 0]), float(place[k, 1])),
        )
        for k in range(len(regions.labels))
    ]
    return tuple(sorted(found, key=lambda region: -region.part))


def _measure_inside(design: Design, regions: Regions, region: int) -> float | None:
    """Measure the distance between the groups within one region."""
    own = np.flatnonzero(regions.region == region)
    present, group = np.unique(design.group[regions.cell[own]], return_inverse=True)
    if len(present) < 2 or (regions.moments.count[own] == 1).all():
        return None
    stratum = np.unique(design.stratum[regions.cell[own]], return_inverse=True)[1]
    inside = Design(regions.moments[own], group, stratum, [design.labels[k] for k in present])
    return fuse(inside, weights="pooled", tell=False).unbiased


def _measure_alone(design: Design, regions: Regions) -> float:
    """Measure the share of the rows in regions of one group."""
    count = regions.spread(regions.moments.count, len(design.labels), design.group[regions.cell])
    lonely = np.count_nonzero(count, axis=0) == 1
    return float(count[:, lonely].sum() / count.sum())


def _caution_about_units(counts: RegionCounts) -> str | None:
    """Return a caution if most rows lie in regions of one unit."""
    if counts.unit is None:
        return None
    count = np.zeros((int(counts.unit.max()) + 1, counts.count.shape[1]))
    np.add.at(count, counts.unit, counts.count)
    lonely = np.count_nonzero(count, axis=0) == 1
    return LONELY_CAUTION if count[:, lonely].sum() > MAX_LONELY * count.sum() else None


def _name(design: Design, values: FloatArray) -> dict[Hashable, float]:
    return {label: int(v) if v.is_integer() else v for label, v in zip(design.labels, values.tolist(), strict=True)}
