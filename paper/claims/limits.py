"""Section 2: what the paper says of other distances."""

import numpy as np

from crossfusion import distance
from paper.claims.copies import SECOND
from paper.claims.curve import Curve, estimate
from paper.claims.evidence import POINTWISE, TITLES, Evidence, changes, span
from paper.claims.model import (
    CONDITIONS,
    FAILS,
    HOLDS,
    Finding,
    Outcomes,
    check,
    decide,
    decide_across,
    in_both_readings,
)
from paper.claims.outcomes import DOUBT, STABLE, STEADY, Outcome, above, all_of, small

EXACT = 1e-9  # relative
PROPORTIONAL = 0.01


@check(
    "wasserstein-adds-up",
    "§2.1, eq. 2",
    "The Wasserstein distance is the sum of a translation part and a deformation part.",
    "Two clouds in the plane, displaced and deformed in steps, each distance from a plan of its own. Holds if the parts"
    " as distances add up to 1 %; holds for squares if the squares of order 2 add up to 1e-9.",
)
def adds_up(evidence: Evidence) -> Finding:
    """Squares against roots."""
    steps = [*evidence.decomposition["displacement"], *evidence.decomposition["deformation"]]
    squares = max(abs(s["translation"] + s["deformation"] - s["distance"] ** 2) / s["distance"] ** 2 for s in steps)
    roots = max((s["translation"] ** 0.5 + s["deformation"] ** 0.5) / s["distance"] - 1 for s in steps)
    figure = f"the sum of the parts exceeds W₂ by up to {roots:.0%}; squares agree to {squares:.0e}"
    if roots <= 0.01:
        return Finding(figure, HOLDS)
    if squares <= EXACT:
        return Finding(figure, CONDITIONS, "for squares of order 2: W₂² = ‖Δμ‖² + W₂² of the centred clouds")
    return Finding(figure, FAILS)


@check(
    "deformation-comparable",
    "§2.1",
    "Differences of structure can cost as much as the translation between two groups of the same kind.",
    "Displacement experiment, two samples of one mixture: deformation is W² − δ². Holds in a setting if it exceeds δ²"
    f" at some displacement.{DOUBT}",
)
def comparable(evidence: Evidence) -> Finding:
    """What is left of W² after δ²."""
    curves = evidence.curves("displacement", "transport")
    outcomes = {setting: above(*estimate(_largest_excess, curve), 0) for setting, curve in curves.items()}
    shares = [1 - (curve.levels[-1] / curve.mean[-1]) ** 2 for curve in curves.values()]
    delta = evidence.choices.deltas[-1]
    return decide(outcomes, f"at δ = {delta:g}, the largest, {span(shares, '.0%')} of W² is deformation")


def _largest_excess(curve: Curve) -> float:
    """How far deformation exceeds translation, where it does most."""
    return float(np.max(curve.mean**2 - 2 * curve.levels**2))


@check(
    "homogeneous",
    "§2.2, §4.4",
    "Wasserstein, Hausdorff and Chamfer distances grow in proportion when all points are scaled.",
    f"Scaling experiment: mean at α over mean at 1, divided by α. Holds if within {PROPORTIONAL:.0%} of 1 at every α."
    + DOUBT,
)
def homogeneous(evidence: Evidence) -> Finding:
    """Ratio to α."""
    outcomes = evidence.test_curves("scaling", POINTWISE, _is_proportional)
    growth = [c.relative[-1] for name in POINTWISE for c in evidence.curves("scaling", name).values()]
    return decide_across(
        outcomes, f"at α = {evidence.choices.scales[-1]:g} they are {span(growth, '.4g')} times as large"
    )


def _is_proportional(curve: Curve) -> Outcome:
    factors = curve.levels / curve.levels[0]
    pairs = zip(curve.relative / factors - 1, curve.doubt / factors, strict=True)
    return all_of(small(off, doubt, PROPORTIONAL) for off, doubt in pairs)


@check(
    "mmd-scale",
    "§2.2, §4.4",
    "MMD does not depend on scale explicitly.",
    f"Scaling experiment, median heuristic. Holds if MMD changes by {STEADY}.",
)
def mmd_scale(evidence: Evidence) -> Finding:
    """Change over α."""
    outcomes = evidence.test_curves("scaling", ["mmd"], lambda c: c.is_stable)
    return decide_across(outcomes, f"largest change {changes(evidence.curves('scaling', 'mmd'))}")


@check(
    "mmd-bandwidth",
    "§2.2, §4.7",
    "Instead, MMD depends on the choice of the kernel's bandwidth.",
    "Two Gaussian clouds (200 rows, 32 features, shift 2), bandwidth at half and twice the median distance. Holds if"
    f" MMD changes by more than {STABLE:.0%} at one of them.",
)
def mmd_bandwidth(_: Evidence) -> Finding:
    """Half and double the median."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((200, 32)), rng.standard_normal((200, 32))
    b[:, 0] += 2
    rows = np.concatenate([a, b])
    squares = np.sum(rows**2, axis=1)
    gaps = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    median = float(np.median(gaps[np.triu_indices(len(rows), 1)]))
    half, middle, double = (distance("mmd", a, b, bandwidth=factor * median) for factor in (0.5, 1.0, 2.0))
    moved = max(abs(half / middle - 1), abs(double / middle - 1))
    return decide(
        {"bandwidth": moved > STABLE},
        f"{half:.3f} at half, {middle:.3f} at the median, {double:.3f} at twice the median",
    )


@check(
    "dispersion-flat",
    "§2.3, §4.3",
    "With centroids fixed, Wasserstein, Hausdorff and Chamfer distances stay nearly constant as dispersion grows.",
    f"Dispersion experiment: largest change from the smallest σ. Holds if {STEADY}.{SECOND}",
)
def dispersion_flat(evidence: Evidence) -> Finding:
    """Change over σ."""
    return in_both_readings(_dispersion_changes, evidence)


def _dispersion_changes(evidence: Evidence) -> tuple[Outcomes, str]:
    outcomes = evidence.test_curves("dispersion", POINTWISE, lambda c: c.is_stable)
    parts = [f"{TITLES[name]} {changes(evidence.curves('dispersion', name))}" for name in POINTWISE]
    sigmas = evidence.choices.sigmas
    return outcomes, f"σ from {sigmas[0]:g} to {sigmas[-1]:g}: {', '.join(parts)}"


CHECKS = (adds_up, comparable, homogeneous, mmd_scale, mmd_bandwidth, dispersion_flat)
