"""Questions to the images of tissue beyond ratios and degradation: intervals by slides, centres before and after."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import crossfusion as cf
from crossfusion.study import Dataset, PageTable, compute_half_width, number_text

LEVEL = 0.95
CENTRES = "Distances of centres"


def interval_table(data: Dataset) -> PageTable:
    """CFD of the scanners after each normalisation: slides are pairs, then places on a slide are, slides held fixed."""
    assert data.label is not None
    assert data.units is not None
    factors = {"scanner": data.domain, "slide": data.label, "place": data.units}
    rows = []
    for version, x in data.all_versions.items():
        summary = cf.summarize(x, by=factors)
        plain = summary.rollup(["scanner", "slide"]).cfd("scanner", units="slide", level=LEVEL)
        fixed = summary.cfd("scanner", given="slide", units="place", level=LEVEL)
        rows.append([version, *_with_interval(plain), *_with_interval(fixed)])
    interval = f"{LEVEL} interval"
    header = ["version", "CFD", "unbiased by slide", interval, "CFD given slide", "unbiased by place", interval]
    caption = (
        f"both scanners of a slide are a pair, {len(set(data.label))} of them; with slides held fixed, both scanners of"
        f" a place are, {len(set(data.units))} of them. Intervals lie around the unbiased value"
    )
    return PageTable("CFD of the scanners with intervals", caption, header, rows)


def _with_interval(found: Any) -> list[str]:
    low, high = found.interval
    return [number_text(found.distance), number_text(found.unbiased), f"{number_text(low)} to {number_text(high)}"]


def jackknife_table(data: Dataset, distances: Sequence[str]) -> PageTable:
    """Every distance of the scanners after each normalisation, with an interval that leaves out one slide at a time."""
    assert data.label is not None
    slide, scanner = np.array(data.label), np.array(data.domain)
    first, second = np.unique(scanner)
    kept = [np.full(len(slide), True), *(slide != name for name in np.unique(slide))]
    half = compute_half_width(LEVEL, len(kept) - 2)
    columns = []
    for x in map(np.asarray, data.all_versions.values()):
        clouds = [(x[keep & (scanner == first)], x[keep & (scanner == second)]) for keep in kept]
        columns.append([_spread([cf.distance(name, a, b) for a, b in clouds], half) for name in distances])
    rows = [[name, *cells] for name, cells in zip(distances, zip(*columns, strict=True), strict=True)]
    caption = (
        f"± half the width of a {LEVEL} interval that leaves out one of {len(kept) - 1} slides at a time, both scanners"
        " at once; rough for Hausdorff, which one tile decides, and for the classifier, which sits at its limit"
    )
    return PageTable("All distances of the scanners with intervals", caption, ["distance", *data.all_versions], rows)


def _spread(values: Sequence[float], half: float) -> str:
    whole, left = values[0], np.array(values[1:])
    error = np.sqrt((len(left) - 1) / len(left) * np.sum((left - left.mean()) ** 2))
    return f"{number_text(whole)} ± {number_text(float(half * error))}"


def centre_matrices(data: Dataset) -> dict[str, Any]:
    """Distances of all pairs of centres, of each version; units are tiles."""
    factors = {"centre": data.domain, "tile": data.units}
    return {
        version: cf.summarize(x, by=factors).pairwise("centre", units="tile", weights="pooled", level=LEVEL)
        for version, x in data.all_versions.items()
    }


def centre_table(found: dict[str, Any]) -> PageTable:
    """A row a pair of centres: plug-in, unbiased by tile, interval, before and after."""
    header, rows = ["pair"], []
    labels = next(iter(found.values())).labels
    for version in found:
        header += [f"{version}: CFD", "unbiased by tile", f"{LEVEL} interval"]
    for i, j in zip(*np.triu_indices(len(labels), 1), strict=True):
        row = [f"{labels[i]}–{labels[j]}"]
        for pairs in found.values():
            limits = f"{number_text(pairs.lower[i, j])} to {number_text(pairs.upper[i, j])}"
            row += [number_text(pairs.distance[i, j]), number_text(pairs.unbiased[i, j]), limits]
        rows.append(row)
    return PageTable(CENTRES, "every pair of centres, a unit is a tile", header, rows)


def matrix_table(pairs: Any, version: str) -> PageTable:
    """Centres by centres: plug-in above the diagonal, unbiased by tile below."""
    size = len(pairs.labels)
    cells = np.where(np.triu(np.ones((size, size), bool)), pairs.distance, pairs.unbiased)
    rows = [
        [str(name), *("–" if i == j else number_text(cells[i, j]) for j in range(size))]
        for i, name in enumerate(pairs.labels)
    ]
    caption = "plug-in above the diagonal, unbiased by tile below"
    return PageTable(f"Matrix of centres, {version}", caption, ["centre", *map(str, pairs.labels)], rows)


def levels_table(data: Dataset) -> PageTable:
    """What of the distance between tiles lies between centres, and what between tiles of a centre."""
    assert data.units is not None
    centres, tiles = len(set(data.domain)), len(set(zip(data.domain, data.units, strict=True)))
    chance = (centres - 1) / (tiles - 1)
    rows = []
    for version, x in data.all_versions.items():
        found = cf.summarize(x, by={"centre": data.domain, "tile": data.units}).hierarchy(["centre", "tile"])
        rows += [
            [version, entry.level, number_text(entry.distance), number_text(entry.unbiased), _share(entry.share), usual]
            for entry, usual in zip(found.levels, map(_share, (chance, 1 - chance)), strict=True)
        ]
    caption = (
        "distance of centres, and of tiles within a centre, which add up; “by chance” is about the share if tiles were"
        " dealt to centres at random"
    )
    header = ["version", "level", "CFD", "unbiased", "share", "by chance"]
    return PageTable("Centre against tissue", caption, header, rows)


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"
