"""The paper's printed tables as numbers, as they stand in print, and what can be recomputed from them.

Zhang, Zhang and Song, *Cross-Fusion Distance* (2026): table 2 (ratios), table 3 (correlations), appendix C (distances).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

MEASURES = ("CFD", "Wasserstein", "MMD", "Hausdorff", "Chamfer")
COLUMNS = ("RAD in RAD–UNI", "UNI in RAD–UNI", "ACS in ACS–HS", "HS in ACS–HS", "ACS in ACS–HX", "HX in ACS–HX")

# Table 2, section 5: relative distance ratio; columns in the order of COLUMNS.
RDR: Mapping[str, tuple[float, ...]] = {
    "CFD": (0.0021, 0.0019, 0.0020, 0.0013, 0.0030, 0.0033),
    "Wasserstein": (0.5356, 0.5692, 0.3467, 0.2709, 0.3617, 0.4543),
    "MMD": (0.0551, 0.0529, 0.0521, 0.0470, 0.0626, 0.0676),
    "Hausdorff": (0.9208, 0.9769, 0.8007, 0.6975, 0.7319, 0.7759),
    "Chamfer": (0.6236, 0.6404, 0.6039, 0.4628, 0.4359, 0.5229),
}

# Table 3, section 5: average distances of the two MIDOG pairs, and what they are correlated with.
METHODS = ("Unnormalized", "Macenko", "StainFuser", "LMC")
DISTANCES: Mapping[str, tuple[float, ...]] = {
    "CFD": (0.4282, 0.2243, 0.0459, 0.0254),
    "Wasserstein": (36.9427, 30.9044, 20.2304, 13.0406),
    "MMD": (0.6585, 0.4981, 0.2385, 0.1787),
    "Hausdorff": (37.9457, 23.1042, 32.4889, 18.6270),
    "Chamfer": (22.5876, 35.3897, 16.6811, 7.9630),
}
F1 = (0.369, 0.482, 0.439, 0.626)
CDDR = (0.3469, 0.1204, 0.1459, 0.0726)
CORRELATION: Mapping[str, float] = {
    "CFD": 0.8868,
    "Wasserstein": 0.7418,
    "MMD": 0.8142,
    "Hausdorff": 0.6972,
    "Chamfer": 0.6130,
}


@dataclass(frozen=True)
class Printed:
    """A mean ± standard deviation, and the digits after the point in print."""

    mean: float
    spread: float
    digits: int


def _row(text: str) -> dict[str, Printed]:
    """A printed line of "mean ± spread" in the order of MEASURES."""
    cells = [cell.split("±") for cell in text.split("|")]
    values = (Printed(float(mean), float(spread), len(mean.strip().split(".")[1])) for mean, spread in cells)
    return dict(zip(MEASURES, values, strict=True))


# Appendix C, tables 1 and 3: two random halves of one source.
WITHIN: Mapping[str, Mapping[str, Printed]] = {
    "RAD": _row("0.00027±0.00005|16.8032±0.16108|0.02011±0.00281|40.8993±1.84970|14.8684±0.05756"),
    "UNI": _row("0.00025±0.00006|17.8574±0.14284|0.01929±0.00193|43.38930±2.25711|15.2671±0.09466"),
    "ACS": _row("0.00101±0.00028|13.0811±0.10889|0.03747±0.00917|29.0148±1.59810|11.4366±0.03994"),
    "HS": _row("0.00067±0.00016|10.2180±0.08144|0.03377±0.00453|25.2751±1.89270|8.76662±0.02203"),
    "HX": _row("0.00112±0.00033|16.4262±0.19541|0.04046±0.00772|30.7773±1.12900|13.7220±0.04921"),
}

# Appendix C, tables 2 and 4: two sources.
ACROSS: Mapping[str, Mapping[str, Printed]] = {
    "RAD–UNI": _row("0.1295±0.0022|31.3701±0.0679|0.3649±0.0031|44.4162±0.7032|23.8412±0.1632"),
    "ACS–HS": _row("0.517±0.003|37.721±0.031|0.719±0.001|36.242±0.456|18.938±0.069"),
    "ACS–HX": _row("0.340±0.003|36.164±0.100|0.598±0.002|39.649±0.209|26.238±0.064"),
}


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


def exchanged() -> dict[str, tuple[float, ...]]:
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
