"""Section 3: complexity and the runtime figure."""

import math
from dataclasses import replace

from paper import runtime
from paper.claims.evidence import Evidence
from paper.claims.model import CONDITIONS, FAILS, HOLDS, Finding, check, decide
from paper.claims.outcomes import Outcome, above, opposite, small

SLACK = 0.3  # between a fitted exponent and a stated one
RATIO = 10.0
BASELINES = ("wasserstein", "sinkhorn", "mmd", "hausdorff", "chamfer")
FEW = " Undecided for what was timed at too few points."
RULE = (
    f"A bound holds if the exponent is at most the stated one plus {SLACK}; it is named as not reached if more than"
    f" {SLACK} below.{FEW}"
)
BOUND = f"Runtime study: fitted exponents of rows. {RULE}"


@check(
    "linear-time",
    "§3, table 1",
    "CFD takes time linear in rows and in features.",
    f"Runtime study: fitted exponents of rows and of features. Holds for each if within {SLACK} of 1.{FEW}",
)
def linear_time(evidence: Evidence) -> Finding:
    """Exponents of CFD."""
    powers = {"rows": _power(evidence, "cfd"), "features": _power(evidence, "cfd", "dim")}
    outcomes = {name: small(power - 1, 0, SLACK) for name, power in powers.items()}
    return decide(outcomes, ", ".join(f"{name}{_format_power(power)}" for name, power in powers.items()))


def _power(evidence: Evidence, measure: str, sweep: str = "rows") -> float:
    """A fitted exponent, not a number if there were too few points."""
    fitted = evidence.exponents if sweep == "rows" else evidence.feature_exponents
    return fitted.get(measure, math.nan)


def _format_power(power: float) -> str:
    return f"^{power:.2f}" if math.isfinite(power) else " unknown"


@check("cost-transport", "§3, table 1", "Wasserstein costs O(n³ log n), Sinkhorn O(K n²).", BOUND)
def cost_transport(evidence: Evidence) -> Finding:
    """Exponents against bounds."""
    return _bounds(evidence, ("wasserstein", "sinkhorn"))


@check("cost-pairs", "§3, table 1", "MMD, Hausdorff and Chamfer cost O(n²).", BOUND)
def cost_pairs(evidence: Evidence) -> Finding:
    """Exponents against bounds."""
    return _bounds(evidence, ("mmd", "hausdorff", "chamfer"))


def _bounds(evidence: Evidence, names: tuple[str, ...], sweep: str = "rows") -> Finding:
    """One bound that is exceeded is enough against the claim; bounds that are not reached are named."""
    powers = {runtime.MEASURES[name].title: _power(evidence, name, sweep) for name in names}
    stated = {runtime.MEASURES[name].title: runtime.MEASURES[name].power if sweep == "rows" else 1 for name in names}
    letter = "n" if sweep == "rows" else "d"
    figure = ", ".join(f"{title} {letter}{_format_power(power)}" for title, power in powers.items())
    outcomes = {title: opposite(above(power, 0, stated[title] + SLACK)) for title, power in powers.items()}
    if any(outcome is False for outcome in outcomes.values()):
        return Finding(figure, FAILS)
    found = decide(outcomes, figure)
    under = [title for title, power in powers.items() if power < stated[title] - SLACK]
    if not under:
        return found
    terms = f"as an upper bound; {', '.join(under)} stayed below it at the sizes timed"
    verdict = CONDITIONS if found.verdict == HOLDS else found.verdict
    return replace(found, verdict=verdict, conditions="; ".join(filter(None, [found.conditions, terms])))


@check(
    "cost-features",
    "§3, table 1",
    "The time of every measure has the number of features as one factor.",
    f"Runtime study: fitted exponents of features, 1 being stated. {RULE}",
)
def cost_features(evidence: Evidence) -> Finding:
    """Exponents of features against 1."""
    return _bounds(evidence, ("cfd", *BASELINES), "dim")


@check(
    "scales-best",
    "§3, fig. 2",
    "CFD scales much more favourably with the number of rows than the other measures.",
    "Runtime study: time over CFD's at equal rows. Holds for a measure if that ratio is at least"
    f" {RATIO:g} times as large at the most rows that it was timed at as at the fewest.{FEW}",
)
def scales_best(evidence: Evidence) -> Finding:
    """Ratios to CFD's time, first and last."""
    outcomes: dict[str, Outcome] = {}
    parts = []
    for name in BASELINES:
        ratios, title = _ratios(evidence, name), runtime.MEASURES[name].title
        if len(ratios) < 2:
            outcomes[title] = None
            parts.append(f"{title} timed at {len(ratios)} number{'s' * (len(ratios) != 1)} of rows")
            continue
        first, last = ratios[min(ratios)], ratios[max(ratios)]
        outcomes[title] = last >= RATIO * first
        parts.append(f"{title} {first:.2g} to {last:,.0f} (at {max(ratios):,} rows)")
    return decide(outcomes, f"times CFD's: {', '.join(parts)}")


def _ratios(evidence: Evidence, measure: str) -> dict[int, float]:
    """Times over CFD's by rows, where both are known."""
    rows = (row for row in evidence.timings.to_pylist() if (row["measure"], row["sweep"]) == (measure, "rows"))
    return {row["rows"]: row["ratio"] for row in rows if row["ratio"] is not None and math.isfinite(row["ratio"])}


@check(
    "mmd-costs-more",
    "§4.7",
    "MMD costs substantially more than CFD.",
    f"Runtime study: time over CFD's at the most rows that both were timed at. Holds if at least {RATIO:g} times.{FEW}",
)
def mmd_costs_more(evidence: Evidence) -> Finding:
    """Ratio at equal rows."""
    ratios = _ratios(evidence, "mmd")
    if not ratios:
        return decide({"MMD": None}, "MMD was not timed")
    last = max(ratios)
    return decide({"MMD": ratios[last] >= RATIO}, f"{ratios[last]:,.0f} times CFD's time at {last:,} rows a group")


CHECKS = (linear_time, cost_transport, cost_pairs, cost_features, scales_best, mmd_costs_more)
