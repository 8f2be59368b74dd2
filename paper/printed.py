"""What can be recomputed from the paper's printed tables: ratios, correlations, and how far rounding reaches.

Zhang, Zhang and Song, *Cross-Fusion Distance* (2026): table 2 (ratios), table 3 (correlations), appendix C (distances).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from crossfusion.study import published

COLUMNS, RDR = published.COLUMNS, published.RDR


@dataclass(frozen=True)
class Printed:
    """A mean ± standard deviation, and the digits after the point in print."""

    mean: float
    spread: float
    digits: int

    @classmethod
    def of(cls, text: str) -> "Printed":
        """The numbers of a printed "mean±spread"."""
        mean, spread = text.split("±")
        return cls(float(mean), float(spread), len(mean.strip().split(".")[1]))


def _columns(values: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    return {measure: tuple(column) for measure, column in values.items()}


def _cells(values: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, Printed]]:
    return {name: {measure: Printed.of(text) for measure, text in row.items()} for name, row in values.items()}


_TABLES = published.tables()
MEASURES: tuple[str, ...] = tuple(_TABLES["measures"])
METHODS: tuple[str, ...] = tuple(_TABLES["degradation"]["methods"])
DISTANCES: Mapping[str, tuple[float, ...]] = _columns(_TABLES["degradation"]["distances"])
F1: tuple[float, ...] = tuple(_TABLES["degradation"]["f1"])
CDDR: tuple[float, ...] = tuple(_TABLES["degradation"]["cddr"])
CORRELATION: Mapping[str, float] = _TABLES["degradation"]["correlation"]
WITHIN: Mapping[str, Mapping[str, Printed]] = _cells(_TABLES["within"]["values"])
ACROSS: Mapping[str, Mapping[str, Printed]] = _cells(_TABLES["across"]["values"])


def ratios(power: float = 1.0) -> dict[tuple[str, str], float]:
    """Relative distance ratios from the means of appendix C, for each measure raised to a power."""
    found = {}
    for measure in MEASURES:
        for column in COLUMNS:
            source, pair = column.split(" in ")
            ratio = WITHIN[source][measure].mean / ACROSS[pair][measure].mean
            found[measure, column] = ratio**power
    return found


def ratio_slack(measure: str, column: str) -> float:
    """How far a printed ratio may lie from the recomputed one by rounding of all three numbers."""
    source, pair = column.split(" in ")
    low, high = WITHIN[source][measure], ACROSS[pair][measure]
    relative = 0.5 * 10.0**-low.digits / low.mean + 0.5 * 10.0**-high.digits / high.mean
    return 0.5e-4 + relative * low.mean / high.mean


def swap_macenko() -> dict[str, tuple[float, ...]]:
    """Distances of table 3 with the Macenko entries of Hausdorff and Chamfer in each other's place."""
    found = dict(DISTANCES)
    where = METHODS.index("Macenko")
    for measure, other in (("Hausdorff", "Chamfer"), ("Chamfer", "Hausdorff")):
        values = list(DISTANCES[measure])
        values[where] = DISTANCES[other][where]
        found[measure] = tuple(values)
    return found


def pearson(x: Sequence[float], y: Sequence[float]) -> float:
    """Correlation of two short lists."""
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Correlation of the ranks of two lists without ties."""
    return pearson(*(np.argsort(np.argsort(values)).tolist() for values in (x, y)))


def exact_pvalue(x: Sequence[float], y: Sequence[float]) -> float:
    """Share of all orders of `y` that correlate with `x` at least as strongly (one-sided)."""
    found = pearson(x, y)
    orders = [pearson(x, order) for order in permutations(y)]
    return float(np.mean(np.array(orders) >= found - 1e-12))
