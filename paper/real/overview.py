"""All data sets side by side: which distance goes with degradation, and which is small where nothing differs."""

from collections.abc import Sequence

import numpy as np

from crossfusion import Study
from crossfusion.study import Association, Evaluation, PageTable, number_text

NONE = "none"


def select_studies(found: Sequence[Evaluation]) -> dict[str, Study]:
    """Studies of enough domains for correlations over pairs."""
    return {result.name: result.study for result in found if result.study and len(result.study.domains) > 2}


def over_pairs(study: Study, correction: str = NONE) -> dict[str, Association]:
    """Correlations over pairs within one correction, by distance."""
    return {a.distance: a for a in study.associations if (a.over, a.correction) == ("pairs", correction)}


def correlation_table(found: Sequence[Evaluation]) -> PageTable:
    """Pearson's correlation with degradation over the pairs of each data set, and the place that it gives."""
    studies = select_studies(found)
    entries = {name: over_pairs(study) for name, study in studies.items()}
    distances = list(next(iter(entries.values()), {}))
    rows = []
    for distance in distances:
        own = [entries[name][distance] for name in entries]
        places = float(np.mean([entry.rank for entry in own]))
        rows.append([distance, *(_cell(entry) for entry in own), f"{places:.1f}"])
    rows.sort(key=lambda row: float(row[-1]))
    caption = (
        f"over the directed pairs as they are, and in brackets the place among {len(distances)} distances; sorted by"
        " mean place"
    )
    header = ["distance", *(f"{name} ({_points(entries[name])} pairs)" for name in entries), "mean place"]
    return PageTable("Correlation with CDDR, all data sets", caption, header, rows)


def _points(entries: dict[str, Association]) -> int:
    return max(entry.points for entry in entries.values())


def _cell(entry: Association) -> str:
    return f"{entry.pearson:.2f} ({entry.rank})" if np.isfinite(entry.pearson) else "–"


def ratio_table(found: Sequence[Evaluation]) -> PageTable:
    """Relative distance ratios as they are, averaged over the sides of all pairs, as roots and as they stand."""
    distances = next((result.rdr[NONE].distances for result in found), ())
    rows = []
    for distance in distances:
        row = [distance]
        for result in found:
            row += [number_text(mean_ratio(result, distance, what)) for what in ("ratio_of_means", "ratio_root")]
        rows.append(row)
    header = ["distance"]
    for result in found:
        header += [result.name, "as root"]
    caption = (
        "averages over the sides of all pairs of the rows as they are: as a distance stands (ratio of means), and with"
        " all distances brought to the first power"
    )
    return PageTable("RDR, all data sets", caption, header, rows)


def mean_ratio(result: Evaluation, distance: str, what: str) -> float:
    """A column of the ratios, averaged over the sides of all pairs."""
    return float(np.mean([getattr(r, what) for r in result.rdr[NONE].ratios if r.distance == distance]))


def rates(study: Study) -> dict[str, float]:
    """CDDR of each correction, averaged over pairs."""
    return {
        name: float(np.mean([o.cddr for o in study.outcomes if o.correction == name])) for name in study.corrections
    }
