"""Sections 4.4 to 4.6 and appendix B: what the measures should not respond to."""

import numpy as np

from crossfusion.experiments.claims.evidence import (
    PAPER,
    POINTWISE,
    SECOND,
    STABLE,
    STEADY,
    TITLES,
    Curve,
    Evidence,
    changes,
    share,
    span,
)
from crossfusion.experiments.claims.model import Finding, Outcomes, across, check, in_both_readings, verdict_of

READINGS = {"sigma": "σ fixed", "dispersion": "total dispersion fixed"}


@check(
    "scaling-stable",
    "§4.4",
    "CFD and MMD stay constant when all points are scaled.",
    f"Scaling experiment: largest change of the mean. Holds if {STEADY}.",
)
def scaling(evidence: Evidence) -> Finding:
    """Change over α."""
    outcomes = evidence.tested("scaling", ["cfd", "mmd"], lambda c: c.is_stable)
    worst = {name: max(abs(c.change) for c in evidence.curves("scaling", name).values()) for name in ("cfd", "mmd")}
    return across(outcomes, f"largest change: CFD {worst['cfd']:.0e}, MMD {worst['mmd']:.0e}")


@check(
    "topology-cfd",
    "§4.5",
    "CFD is nearly constant when one group is split into more and more modes around a fixed centroid.",
    f"Topology experiment, both readings: largest change of the mean from K = 1. Holds if {STEADY}.",
)
def topology_cfd(evidence: Evidence) -> Finding:
    """Change over K, and what the constant is."""
    outcomes, moved = {}, []
    times: list[float] = []
    for variant, reading in READINGS.items():
        for (dim, size), curve in zip(
            evidence.trials.settings, evidence.curves("topology", "cfd", variant).values(), strict=True
        ):
            outcomes[reading, f"d={dim}, n={size}"] = curve.is_stable
            times.extend(curve.mean * 2 * size)
            moved.append(curve.change)
    figure = f"largest change {span(moved, '+.1%')}; the constant is the bias 1/N: CFD · N is {span(times, '.2f')}"
    return across(outcomes, figure)


@check(
    "topology-others",
    "§4.5",
    "Wasserstein, Hausdorff, Chamfer and MMD change noticeably from one mode to two.",
    f"Topology experiment, both readings: change of the mean from K = 1 to K = 2. Holds if more than {STABLE:.0%}.",
)
def topology_others(evidence: Evidence) -> Finding:
    """Change from the first level to the second."""
    outcomes: dict[tuple[str, str], bool] = {}
    parts = []
    for variant, reading in READINGS.items():
        for name in (*POINTWISE, "mmd"):
            found = {s: c.relative[1] - 1 for s, c in evidence.curves("topology", name, variant).items()}
            outcomes |= {(f"{TITLES[name]} ({reading})", s): abs(off) > STABLE for s, off in found.items()}
            parts.append(f"{TITLES[name]} {span(found.values(), '+.0%')} ({reading})")
    return across(outcomes, f"means at radius {evidence.choices.radius:g}: {', '.join(parts)}")


@check(
    "topology-dispersion",
    "§4.5, app. B",
    "Going from one mode to several around the origin keeps σ and the overall dispersion.",
    "Arithmetic: with means at distance r from the origin the dispersion is dσ² at K = 1 and dσ² + r² from K = 2 on."
    f" Holds for a step if the dispersion changes by at most {STABLE:.0%}.",
)
def topology_dispersion(evidence: Evidence) -> Finding:
    """Dispersions of both."""
    radius, sigma = evidence.choices.radius, evidence.choices.sigma
    grown = {dim: radius**2 / (dim * sigma**2) for dim in evidence.choices.dims}
    outcomes = {f"K = 1 to K ≥ 2 at d={dim}": more <= STABLE for dim, more in grown.items()}
    outcomes["steps between K ≥ 2"] = True
    figure = ", ".join(f"d={dim}: {more:+.1%}" for dim, more in grown.items())
    return verdict_of(outcomes, f"dispersion from K = 1 to K ≥ 2 at radius {radius:g}, σ {sigma:g}: {figure}")


@check(
    "outliers-others",
    "§4.6",
    "Wasserstein, Hausdorff and Chamfer distances rise sharply even at small fractions of outliers.",
    f"Outlier experiment: change of the mean at the smallest fraction. Holds if it rises by more than {STABLE:.0%}."
    + SECOND,
)
def outliers_others(evidence: Evidence) -> Finding:
    """Change at the first fraction above zero."""
    return in_both_readings(_first_rises, evidence)


def _first_rises(evidence: Evidence) -> tuple[Outcomes, str]:
    outcomes = evidence.tested("outliers", POINTWISE, lambda c: c.relative[1] - 1 > STABLE)
    first, last = evidence.choices.outlier_percents[1], evidence.choices.outlier_percents[-1]
    parts = []
    for name in POINTWISE:
        curves = evidence.curves("outliers", name).values()
        low, high = (span((c.relative[k] - 1 for c in curves), "+.0%") for k in (1, -1))
        parts.append(f"{TITLES[name]} {low}, then {high}")
    return outcomes, f"at {first:g} %, then at {last:g} %: {'; '.join(parts)}"


@check(
    "outliers-cfd",
    "§4.6, §4.7",
    "CFD is stable under outliers.",
    f"Outlier experiment: largest change of the mean from none. Holds if {STEADY}.",
)
def outliers_cfd(evidence: Evidence) -> Finding:
    """Change over ε, and that of trimmed CFD."""
    curves = evidence.curves("outliers", "cfd")
    first = span((c.relative[1] - 1 for c in curves.values()), "+.1%")
    figure = f"at {evidence.choices.outlier_percents[1]:g} %: {first}; largest change {changes(curves)}"
    return across({("CFD", s): c.is_stable for s, c in curves.items()}, figure, _trimmed(evidence))


def _trimmed(evidence: Evidence) -> str:
    found = evidence.curves("outliers", "cfd_trimmed")
    verb = "mends it in" if all(c.is_stable for c in found.values()) else "stable in"
    kept = share(c.is_stable for c in found.values())
    return f"CFD trimmed by {evidence.choices.trim:.0%} {verb} {kept} settings: largest change {changes(found)}"


@check(
    "outliers-mmd",
    "§4.6",
    "MMD is stable under outliers.",
    f"Outlier experiment: largest change of the mean from none. Holds if {STEADY}.",
)
def outliers_mmd(evidence: Evidence) -> Finding:
    """Change over ε."""
    outcomes = evidence.tested("outliers", ["mmd"], lambda c: c.is_stable)
    return across(outcomes, f"largest change {changes(evidence.curves('outliers', 'mmd'))}")


@check(
    "outliers-preserve",
    "§4.6, app. B",
    "Replacing a few per cent of the rows by wide noise keeps centroids and overlap of the two groups.",
    "Arithmetic, at the largest fraction ε: the centroids' distance is multiplied by 1 − ε, a group's variance becomes"
    f" that of the mixture with the noise. Holds for each if it changes by at most {STABLE:.0%}.",
)
def outliers_preserve(evidence: Evidence) -> Finding:
    """Population values with and without outliers."""
    chosen = evidence.choices
    epsilon = max(chosen.outlier_percents) / 100
    own = chosen.sigma**2 + chosen.spread**2 * (1 - 1 / chosen.components)  # a feature, means drawn at random
    mixed = (1 - epsilon) * own + epsilon * chosen.tau**2
    mixed += epsilon * (1 - epsilon) * chosen.spread**2 / chosen.components  # the noise lies around the origin
    outcomes = {"centroids": epsilon <= STABLE, "dispersion, and so overlap": mixed / own - 1 <= STABLE}
    figure = f"ε = {epsilon:.0%}: distance of the centroids −{epsilon:.0%}, dispersion {mixed / own - 1:+.0%}"
    return verdict_of(outcomes, f"{figure}, so CFD × {(1 - epsilon) ** 2 / (mixed / own):.2f}")


@check(
    "consistent",
    "app. B",
    "All measures behave alike in all dimensions and sample sizes.",
    f"The paper's five experiments: whether a measure ends up more than {STABLE:.0%} (and two standard errors) above"
    " its first value, below, or neither. Holds for a measure and experiment if the same in all settings.",
)
def consistent(evidence: Evidence) -> Finding:
    """Directions over settings."""
    kinds = [("displacement", ""), ("dispersion", ""), ("scaling", ""), ("outliers", "")]
    kinds += [("topology", variant) for variant in READINGS]
    outcomes = {}
    for experiment, variant in kinds:
        reading = f" ({READINGS[variant]})" if variant else ""
        for name in PAPER:
            seen = {_direction(c) for c in evidence.curves(experiment, name, variant).values()}
            outcomes[f"{TITLES[name]} in {experiment}{reading}"] = len(seen) == 1
    found = verdict_of(outcomes, f"the same direction for {share(outcomes.values())} pairs of measure and experiment")
    different = [name for name, same in outcomes.items() if not same]
    terms = f"not for {'; '.join(different)}" if different and len(different) < len(outcomes) else found.conditions
    return Finding(found.figure, found.verdict, terms)


def _direction(curve: Curve) -> int:
    return 0 if curve.is_stable_at_end else int(np.sign(curve.relative[-1] - 1))


CHECKS = (
    scaling,
    topology_cfd,
    topology_others,
    topology_dispersion,
    outliers_others,
    outliers_cfd,
    outliers_mmd,
    outliers_preserve,
    consistent,
)
