"""Sections 4.4 to 4.6 and appendix B: what the measures should not respond to."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from paper.claims.copies import SECOND
from paper.claims.curve import Curve
from paper.claims.evidence import PAPER, POINTWISE, TITLES, Evidence, changes, describe_setting, span
from paper.claims.model import Finding, Outcomes, check, decide, decide_across, in_both_readings
from paper.claims.outcomes import DOUBT, STABLE, STEADY, WITHIN, Outcome, all_of, share
from paper.synthetic import Settings
from paper.synthetic.populations import symmetric_means

READINGS = {"sigma": "σ fixed", "dispersion": "total dispersion fixed"}


@check(
    "scaling-stable",
    "§4.4",
    "CFD stays constant when all points are scaled.",
    f"Scaling experiment: largest change of the mean. Holds if {STEADY}.",
)
def scaling(evidence: Evidence) -> Finding:
    """Change over α."""
    outcomes = evidence.test_curves("scaling", ["cfd"], lambda c: c.is_stable)
    worst = max(abs(c.change) for c in evidence.curves("scaling", "cfd").values())
    return decide_across(outcomes, f"largest change {worst:.0e}")


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
        curves = evidence.curves("topology", "cfd", variant)
        for setting in evidence.trials.settings:
            curve = curves[describe_setting(setting)]
            outcomes[reading, describe_setting(setting)] = curve.is_stable
            times.extend(curve.mean * 2 * setting[1])
            moved.append(curve.change)
    figure = f"largest change {span(moved, '+.1%')}; the constant is the bias 1/N: CFD · N is {span(times, '.2f')}"
    return decide_across(outcomes, figure)


@check(
    "topology-others",
    "§4.5",
    "Wasserstein, Hausdorff, Chamfer and MMD change noticeably from one mode to two.",
    f"Topology experiment, both readings: change of the mean from K = 1 to K = 2. Holds if more than {STABLE:.0%}."
    + DOUBT,
)
def topology_others(evidence: Evidence) -> Finding:
    """Change from the first level to the second."""
    outcomes: dict[tuple[str, str], Outcome] = {}
    parts = []
    for variant, reading in READINGS.items():
        for name in (*POINTWISE, "mmd"):
            found = evidence.curves("topology", name, variant)
            outcomes |= {(f"{TITLES[name]} ({reading})", s): c.moves_at(1) for s, c in found.items()}
            parts.append(f"{TITLES[name]} {span((c.relative[1] - 1 for c in found.values()), '+.0%')} ({reading})")
    return decide_across(outcomes, f"means at radius {evidence.choices.radius:g}: {', '.join(parts)}")


@check(
    "topology-dispersion",
    "§4.5, app. B",
    "Going from one mode to several around the origin keeps σ and the overall dispersion.",
    "Arithmetic, for every K of the study, σ fixed: the dispersion is dσ² plus the mean square of the modes' distances"
    f" from the origin. Holds for a step of K if the dispersion changes by {WITHIN}.",
)
def topology_dispersion(evidence: Evidence) -> Finding:
    """Dispersions of the second group, from K to the next K."""
    chosen = evidence.choices
    outcomes: dict[tuple[str, str], Outcome] = {}
    lines = []
    for dim in chosen.dims:
        steps = {f"K = {few} to {more}": _growth(chosen, few, more, dim) for few, more in pairwise(chosen.modes)}
        outcomes |= {(step, f"d={dim}"): abs(grown) <= STABLE for step, grown in steps.items()}
        lines.append(f"d={dim}: {', '.join(f'{grown:+.1%} ({step})' for step, grown in steps.items())}")
    return decide_across(outcomes, f"dispersion at radius {chosen.radius:g}, σ {chosen.sigma:g}: {'; '.join(lines)}")


def _growth(choices: Settings, few: int, more: int, dim: int) -> float:
    """Relative change of the dispersion from one number of modes to another."""
    before, after = (
        dim * choices.sigma**2 + np.sum(symmetric_means(modes, choices.radius, dim) ** 2) / modes
        for modes in (few, more)
    )
    return float(after / before - 1)


@check(
    "outliers-others",
    "§4.6",
    "Wasserstein, Hausdorff and Chamfer distances rise sharply even at small fractions of outliers.",
    f"Outlier experiment: change of the mean at the smallest fraction. Holds if it rises by more than {STABLE:.0%}."
    + DOUBT
    + SECOND,
)
def outliers_others(evidence: Evidence) -> Finding:
    """Change at the first fraction above zero."""
    return in_both_readings(_first_rises, evidence)


def _first_rises(evidence: Evidence) -> tuple[Outcomes, str]:
    outcomes = evidence.test_curves("outliers", POINTWISE, lambda c: c.rises_at(1))
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
    return decide_across({("CFD", s): c.is_stable for s, c in curves.items()}, figure, _describe_trimming(evidence))


def _describe_trimming(evidence: Evidence) -> str:
    found = evidence.curves("outliers", "cfd_trimmed")
    outcomes = [c.is_stable for c in found.values()]
    verb = "mends it in" if all(outcomes) else "stable in"
    kept = share(outcomes, "settings")
    return f"CFD trimmed by {evidence.choices.trim:.0%} {verb} {kept}: largest change {changes(found)}"


@check(
    "outliers-mmd",
    "§4.6",
    "MMD is stable under outliers.",
    f"Outlier experiment: largest change of the mean from none. Holds if {STEADY}.",
)
def outliers_mmd(evidence: Evidence) -> Finding:
    """Change over ε."""
    outcomes = evidence.test_curves("outliers", ["mmd"], lambda c: c.is_stable)
    return decide_across(outcomes, f"largest change {changes(evidence.curves('outliers', 'mmd'))}")


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
    return decide(outcomes, f"{figure}, so CFD × {(1 - epsilon) ** 2 / (mixed / own):.2f}")


@check(
    "consistent",
    "app. B",
    "All measures behave alike in all dimensions and sample sizes.",
    f"The paper's five experiments: whether a measure ends up more than {STABLE:.0%} and two standard errors above its"
    " first value, below, or neither; unknown if neither and two standard errors are more than that. Holds for a"
    " measure and experiment if the same in all settings.",
)
def consistent(evidence: Evidence) -> Finding:
    """Directions over settings."""
    kinds = [("displacement", ""), ("dispersion", ""), ("scaling", ""), ("outliers", "")]
    kinds += [("topology", variant) for variant in READINGS]
    outcomes: dict[str, Outcome] = {}
    for experiment, variant in kinds:
        reading = f" ({READINGS[variant]})" if variant else ""
        for name in PAPER:
            seen = [_direction(c) for c in evidence.curves(experiment, name, variant).values()]
            outcomes[f"{TITLES[name]} in {experiment}{reading}"] = _is_one(seen)
    kept = share(outcomes.values(), "pairs of measure and experiment")
    found = decide(outcomes, f"the same direction for {kept}")
    _, _, others = found.conditions.partition("; ")  # those for which it holds are many, and are those not named
    return replace(found, conditions=others) if found.conditions.startswith("holds for") else found


def _direction(curve: Curve) -> int | None:
    """Up, down, neither, or undecided."""
    stable = curve.is_stable_at(-1)
    return None if stable is None else 0 if stable else int(np.sign(curve.relative[-1] - 1))


def _is_one(directions: list[int | None]) -> Outcome:
    """Whether all are one: those that are undecided may only turn a yes."""
    known = {direction for direction in directions if direction is not None}
    return all_of([len(known) <= 1, None if None in directions else True])


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
