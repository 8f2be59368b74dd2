"""Section 5 and appendix C: what the paper's printed tables allow to be checked."""

from collections.abc import Sequence

import numpy as np

from paper import printed
from paper.claims.evidence import Evidence, span
from paper.claims.model import Finding, check, decide
from paper.claims.outcomes import STABLE, share
from paper.printed import ACROSS, CDDR, COLUMNS, CORRELATION, DISTANCES, F1, MEASURES, METHODS

BASELINES = MEASURES[1:]
MARGIN = 0.05
FOUR = "four points"


@check(
    "rdr-entries",
    "§5.1, table 2",
    "The relative distance ratios are those of the distances in appendix C.",
    "All 30 entries recomputed from the printed means. Holds for a measure if its six entries agree within what"
    " rounding of three numbers allows. (The paper averages ratios over splits, which may differ from this.)",
)
def rdr_entries(_: Evidence) -> Finding:
    """Printed against recomputed."""
    found = printed.ratios()
    off = {(m, c): abs(printed.RDR[m][k] - found[m, c]) for m in MEASURES for k, c in enumerate(COLUMNS)}
    inside = {key: gap <= printed.ratio_slack(*key) for key, gap in off.items()}
    outcomes = {m: all(inside[m, c] for c in COLUMNS) for m in MEASURES}
    worst = max(off, key=lambda key: off[key])
    figure = (
        f"{share(inside.values())} within rounding; largest difference {off[worst]:.1e}, {worst[0]} of {worst[1]}"
        f" ({printed.RDR[worst[0]][COLUMNS.index(worst[1])]:.4f} printed, {found[worst]:.4f} recomputed)"
    )
    return decide(outcomes, figure)


@check(
    "rdr-near-zero",
    "§5.1",
    "The ratios of CFD are of the order of 10⁻³.",
    "Table 2. Holds if all six lie between 0.5 and 5 thousandths.",
)
def rdr_near_zero(_: Evidence) -> Finding:
    """Printed entries."""
    own = printed.RDR["CFD"]
    outcomes = {column: 0.5e-3 <= ratio <= 5e-3 for column, ratio in zip(COLUMNS, own, strict=True)}
    rows = [1 / entry["CFD"].mean for entry in printed.WITHIN.values()]
    figure = f"{span(own, '.4f')}; the numerators would be the bias 1/N alone for N of {span(rows, '.0f')} rows"
    return decide(outcomes, figure)


@check(
    "rdr-orders",
    "§5.1",
    "They are smaller than those of all other measures by orders of magnitude.",
    "Table 2: smallest ratio of a measure's entry to CFD's in the same column. Holds for a measure if at least 100.",
)
def rdr_orders(_: Evidence) -> Finding:
    """Entry over CFD's entry."""
    times = {m: [r / own for r, own in zip(printed.RDR[m], printed.RDR["CFD"], strict=True)] for m in BASELINES}
    outcomes = {m: min(found) >= 100 for m, found in times.items()}
    return decide(outcomes, ", ".join(f"{m} {span(found, '.0f')} times" for m, found in times.items()))


@check(
    "rdr-not-scale",
    "app. C",
    "Differences between the measures' ratios do not come from trivial effects of scale.",
    "A ratio depends on the power to which a measure is taken; CFD is of second order, MMD of first. Holds if MMD²"
    " keeps ratios at least 10 times those of CFD in all six columns.",
)
def rdr_not_scale(_: Evidence) -> Finding:
    """MMD squared beside CFD, and the root of CFD beside MMD."""
    plain, squares, roots = printed.ratios(), printed.ratios(2), printed.ratios(0.5)
    outcomes = {c: squares["MMD", c] >= 10 * plain["CFD", c] for c in COLUMNS}
    figure = (
        f"MMD² {span((squares['MMD', c] for c in COLUMNS), '.4f')} beside CFD"
        f" {span((plain['CFD', c] for c in COLUMNS), '.4f')}; √CFD {span((roots['CFD', c] for c in COLUMNS), '.3f')}"
        f" beside MMD {span((plain['MMD', c] for c in COLUMNS), '.3f')}"
    )
    times = span((squares["MMD", c] / plain["CFD", c] for c in COLUMNS), ".1f")
    return decide(outcomes, figure, f"at equal order MMD's ratios are {times} times those of CFD")


@check(
    "averages",
    "§5.2, table 3",
    "The distances of table 3 are averages over the two MIDOG pairs.",
    "Unnormalised row against the averages of appendix C. Holds for a measure if equal to 0.1 %.",
)
def averages(_: Evidence) -> Finding:
    """First row against appendix C."""
    pairs = [pair for pair in ACROSS if pair.startswith("ACS")]
    mean = {m: sum(ACROSS[pair][m].mean for pair in pairs) / len(pairs) for m in MEASURES}
    outcomes = {m: abs(DISTANCES[m][0] / mean[m] - 1) <= 1e-3 for m in MEASURES}
    return decide(outcomes, ", ".join(f"{m} {DISTANCES[m][0]:.4f} (recomputed {mean[m]:.4f})" for m in MEASURES))


@check(
    "correlations",
    "§5.2, table 3",
    "The printed correlations with CDDR are those of the printed columns.",
    "Pearson correlation over the four rows. Holds for a measure if it agrees to 0.005; also with the Macenko entries"
    " of Hausdorff and Chamfer exchanged.",
)
def correlations(_: Evidence) -> Finding:
    """Printed against recomputed, as printed and exchanged."""
    as_printed = {m: printed.pearson(DISTANCES[m], CDDR) for m in MEASURES}
    other = {m: printed.pearson(values, CDDR) for m, values in printed.swap_macenko().items()}
    outcomes = {m: abs(as_printed[m] - CORRELATION[m]) <= 0.005 for m in MEASURES}
    figure = ", ".join(f"{m} {as_printed[m]:.4f} (printed {CORRELATION[m]:.4f})" for m in MEASURES)
    mend = f"with the two entries exchanged Hausdorff {other['Hausdorff']:.4f}, Chamfer {other['Chamfer']:.4f}"
    left = [m for m in MEASURES if abs(other[m] - CORRELATION[m]) > 0.005]
    return decide(outcomes, figure, f"{mend}, near what is printed; left unexplained: {', '.join(left) or 'none'}")


@check(
    "correlation-highest",
    "§5.2",
    "CFD correlates with CDDR substantially better than every other measure.",
    "Recomputed Pearson correlations, as printed and with the two Macenko entries exchanged. Holds for a reading if"
    f" CFD leads by at least {MARGIN}.",
)
def correlation_highest(_: Evidence) -> Finding:
    """Lead of CFD in both readings."""
    outcomes, parts = {}, []
    for reading, columns in (("entries as printed", DISTANCES), ("entries exchanged", printed.swap_macenko())):
        found = {m: printed.pearson(columns[m], CDDR) for m in MEASURES}
        second = max(BASELINES, key=lambda m: found[m])
        outcomes[reading] = found["CFD"] - found[second] >= MARGIN
        parts.append(f"{reading}: CFD {found['CFD']:.4f}, next {second} {found[second]:.4f}")
    return decide(outcomes, "; ".join(parts))


@check(
    "correlation-evidence",
    "§5.2",
    "The correlation shows that CFD predicts degradation in deployment.",
    "Exact one-sided permutation test of CFD's correlation over the four rows. Holds if p ≤ 0.05.",
)
def correlation_evidence(_: Evidence) -> Finding:
    """All orders of four points."""
    p = printed.exact_pvalue(DISTANCES["CFD"], CDDR)
    figure = f"p = {p:.3f}, {round(p * 24)} of the 24 orders of {FOUR} do as well; the least possible is 0.042"
    return decide({"CFD": p <= 0.05}, figure)


@check(
    "degradation-monotone",
    "§5.2",
    "From row to row of table 3, F1 rises monotonically, while CDDR falls substantially.",
    "Printed values. Holds for F1 if every step goes up, for CDDR if the last is at most half the first.",
)
def degradation_monotone(_: Evidence) -> Finding:
    """Steps of F1 and CDDR."""
    outcomes = {"F1": bool(np.all(np.diff(F1) > 0)), "CDDR": CDDR[-1] <= CDDR[0] / 2}
    breaks = [METHODS[k + 1] for k in range(3) if F1[k + 1] <= F1[k] or CDDR[k + 1] >= CDDR[k]]
    rows = ", ".join(f"{name} {f1:.3f} and {cddr:.4f}" for name, f1, cddr in zip(METHODS, F1, CDDR, strict=True))
    return decide(outcomes, f"F1 and CDDR: {rows}; steps the other way: {', '.join(breaks) or 'none'}")


@check(
    "distances-decrease",
    "§5.2",
    "From row to row of table 3, all distances have a decreasing trend.",
    f"Printed values. Holds for a measure if no step goes up by more than {STABLE:.0%}; also with the two Macenko"
    " entries exchanged.",
)
def distances_decrease(_: Evidence) -> Finding:
    """Steps of each column."""
    rises = {m: _largest_rise(values) for m, values in DISTANCES.items()}
    other = {m: _largest_rise(values) for m, values in printed.swap_macenko().items()}
    outcomes = {m: rise <= STABLE for m, rise in rises.items()}
    figure = f"largest step upwards: {', '.join(f'{m} {max(rise, 0):.0%}' for m, rise in rises.items())}"
    mend = ", ".join(f"{m} {max(other[m], 0):.0%}" for m in MEASURES if rises[m] > STABLE)
    return decide(outcomes, figure, f"with the entries exchanged {mend}")


def _largest_rise(values: Sequence[float]) -> float:
    return float(np.max(np.diff(values) / np.array(values[:-1])))


@check(
    "ordering",
    "§5.2",
    "CFD preserves the order in which the normalisations degrade performance.",
    "Spearman correlation of CFD with CDDR over the four rows. Holds if it is 1.",
)
def ordering(_: Evidence) -> Finding:
    """Ranks."""
    found = {m: printed.spearman(printed.swap_macenko()[m], CDDR) for m in MEASURES}
    figure = f"Spearman {', '.join(f'{m} {value:.1f}' for m, value in found.items())} (Macenko entries exchanged)"
    return decide({"CFD": found["CFD"] > 0.999}, f"{figure}; {FOUR}")


CHECKS = (
    rdr_entries,
    rdr_near_zero,
    rdr_orders,
    rdr_not_scale,
    averages,
    correlations,
    correlation_highest,
    correlation_evidence,
    degradation_monotone,
    distances_decrease,
    ordering,
)
