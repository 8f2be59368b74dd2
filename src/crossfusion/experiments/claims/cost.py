"""Section 3: complexity and the runtime figure."""

import numpy as np

from crossfusion.experiments import runtime
from crossfusion.experiments.claims.evidence import Evidence
from crossfusion.experiments.claims.model import CONDITIONS, FAILS, HOLDS, Finding, check, verdict_of

SLACK = 0.3  # between a fitted exponent and a stated one
RATIO = 10.0


@check(
    "linear-time",
    "§3, table 1",
    "CFD takes time linear in rows and in features.",
    f"Runtime study: fitted exponents of rows and of features. Holds if both are within {SLACK} of 1.",
)
def linear_time(evidence: Evidence) -> Finding:
    """Exponents of CFD."""
    rows = evidence.exponents.get("cfd", np.nan)
    features = runtime.exponents(evidence.timings, "dim").get("cfd", np.nan)
    outcomes = {"rows": abs(rows - 1) <= SLACK, "features": abs(features - 1) <= SLACK}
    return verdict_of(outcomes, f"rows^{rows:.2f}, features^{features:.2f}")


@check(
    "cost-transport",
    "§3, table 1",
    "Wasserstein costs O(n³ log n), Sinkhorn O(K n²).",
    f"Fitted exponents of rows. A bound holds if the exponent is at most the stated one plus {SLACK}; it is named as"
    f" not reached if more than {SLACK} below.",
)
def cost_transport(evidence: Evidence) -> Finding:
    """Exponents against bounds."""
    return _bounds(evidence, ("wasserstein", "sinkhorn"))


@check(
    "cost-pairs",
    "§3, table 1",
    "MMD, Hausdorff and Chamfer cost O(n²).",
    f"Fitted exponents of rows. A bound holds if the exponent is at most the stated one plus {SLACK}; it is named as"
    f" not reached if more than {SLACK} below.",
)
def cost_pairs(evidence: Evidence) -> Finding:
    """Exponents against bounds."""
    return _bounds(evidence, ("mmd", "hausdorff", "chamfer"))


def _bounds(evidence: Evidence, names: tuple[str, ...]) -> Finding:
    fitted = {name: evidence.exponents[name] for name in names if name in evidence.exponents}
    stated = {name: runtime.MEASURES[name] for name in fitted}
    figure = ", ".join(f"{stated[name].title} n^{power:.2f}" for name, power in fitted.items())
    over = [stated[name].title for name, power in fitted.items() if power > stated[name].power + SLACK]
    under = [stated[name].title for name, power in fitted.items() if power < stated[name].power - SLACK]
    if over or not fitted:
        return Finding(figure or "no measure had points enough for a fit", FAILS)
    if under:
        return Finding(figure, CONDITIONS, f"as an upper bound; {', '.join(under)} stayed below it at the sizes timed")
    return Finding(figure, HOLDS)


@check(
    "scales-best",
    "§3, fig. 2",
    "CFD scales much more favourably with the number of rows than the other measures.",
    "Runtime study: time over CFD's at equal rows. Holds for a measure if that ratio is at least"
    f" {RATIO:g} times as large at the most rows that it was timed at as at the fewest.",
)
def scales_best(evidence: Evidence) -> Finding:
    """Ratios to CFD's time, first and last."""
    outcomes, parts = {}, []
    for name in ("wasserstein", "sinkhorn", "mmd", "hausdorff", "chamfer"):
        ratios = _ratios(evidence, name)
        title, (first, last) = runtime.MEASURES[name].title, (ratios[min(ratios)], ratios[max(ratios)])
        outcomes[title] = last >= RATIO * first
        parts.append(f"{title} {first:.2g} to {last:,.0f} (at {max(ratios):,} rows)")
    return verdict_of(outcomes, f"times CFD's: {', '.join(parts)}")


def _ratios(evidence: Evidence, measure: str) -> dict[int, float]:
    rows = (row for row in evidence.timings.to_pylist() if (row["measure"], row["sweep"]) == (measure, "rows"))
    return {row["rows"]: row["ratio"] for row in rows}


@check(
    "mmd-costs-more",
    "§4.7",
    "MMD costs substantially more than CFD.",
    f"Runtime study: time over CFD's at the most rows that both were timed at. Holds if at least {RATIO:g} times.",
)
def mmd_costs_more(evidence: Evidence) -> Finding:
    """Ratio at equal rows."""
    ratios = _ratios(evidence, "mmd")
    last = max(ratios)
    return verdict_of({"MMD": ratios[last] >= RATIO}, f"{ratios[last]:,.0f} times CFD's time at {last:,} rows a group")


CHECKS = (linear_time, cost_transport, cost_pairs, scales_best, mmd_costs_more)
