"""Sections 4.2 and 4.3: what the measures should respond to."""

import numpy as np

from crossfusion.experiments.claims.evidence import PAPER, POINTWISE, SECOND, TITLES, Curve, Evidence, span
from crossfusion.experiments.claims.model import Finding, Outcomes, across, check, in_both_readings

LINEAR = 0.98
OVERLAP = 0.05


@check(
    "displacement-monotone",
    "§4.2",
    "All measures increase with displacement.",
    "Displacement experiment: means over trials. Holds for a measure in a setting if every step of δ raises its mean.",
)
def rises(evidence: Evidence) -> Finding:
    """Every step upwards."""
    outcomes = evidence.tested("displacement", PAPER, lambda c: bool(np.all(np.diff(c.mean) > 0)))
    growth = [f"{TITLES[name]} ×{_growth(evidence, name)}" for name in PAPER]
    return across(outcomes, f"from the smallest δ to the largest: {', '.join(growth)}")


def _growth(evidence: Evidence, measure: str) -> str:
    return span((curve.relative[-1] for curve in evidence.curves("displacement", measure).values()), ".3g")


@check(
    "displacement-linear",
    "§4.2",
    "Wasserstein, Hausdorff and Chamfer distances grow about linearly with displacement.",
    f"Displacement experiment: R² of the mean on δ. Holds if at least {LINEAR}.{SECOND}",
)
def linear(evidence: Evidence) -> Finding:
    """Straightness."""
    return in_both_readings(_lines, evidence)


def _lines(evidence: Evidence) -> tuple[Outcomes, str]:
    outcomes = evidence.tested("displacement", POINTWISE, lambda c: _straightness(c) >= LINEAR)
    curves = [curve for name in POINTWISE for curve in evidence.curves("displacement", name).values()]
    bend = span((_bend(curve) for curve in curves), ".0f")
    return (
        outcomes,
        f"R² {span(map(_straightness, curves), '.3f')}; the last step is {bend} times as steep as the first",
    )


def _straightness(curve: Curve) -> float:
    return float(np.corrcoef(curve.levels, curve.mean)[0, 1] ** 2)


def _bend(curve: Curve) -> float:
    slopes = np.diff(curve.mean) / np.diff(curve.levels)
    return float(slopes[-1] / slopes[0])


@check(
    "displacement-overlap",
    "§4.2",
    "Relative to their first value, the three are one line.",
    f"Displacement experiment: largest gap between any two of the three at any δ. Holds if at most {OVERLAP:.0%} of the"
    f" first value.{SECOND}",
)
def overlap(evidence: Evidence) -> Finding:
    """Gap between relative curves."""
    return in_both_readings(_gaps, evidence)


def _gaps(evidence: Evidence) -> tuple[Outcomes, str]:
    gaps = {}
    for setting, curve in evidence.curves("displacement", "transport").items():
        lines = [curve.relative, *(evidence.curves("displacement", name)[setting].relative for name in POINTWISE[1:])]
        gaps[setting] = float(np.ptp(lines, axis=0).max())
    outcomes = {("the three", setting): gap <= OVERLAP for setting, gap in gaps.items()}
    return outcomes, f"largest gap {span(gaps.values(), '.1%')} of the first value"


@check(
    "displacement-mmd-weaker",
    "§4.2, §4.7",
    "MMD responds more weakly to displacement than Wasserstein, Hausdorff and Chamfer do.",
    "Displacement experiment: fractional change of the mean over that of δ, first level to last. Holds against a"
    f" measure in a setting if MMD's is smaller.{SECOND}",
)
def mmd_weaker(evidence: Evidence) -> Finding:
    """Sensitivities against MMD's."""
    return in_both_readings(_against_mmd, evidence)


def _against_mmd(evidence: Evidence) -> tuple[Outcomes, str]:
    own = {setting: c.sensitivity for setting, c in evidence.curves("displacement", "mmd").items()}
    outcomes = {
        (f"against {TITLES[name]}", setting): own[setting] < curve.sensitivity
        for name in POINTWISE
        for setting, curve in evidence.curves("displacement", name).items()
    }
    others = [c.sensitivity for name in POINTWISE for c in evidence.curves("displacement", name).values()]
    return outcomes, f"sensitivity of MMD {span(own.values())}, of the three {span(others)}"


@check(
    "displacement-steepest",
    "§4.2",
    "CFD is the measure most sensitive to displacement.",
    "Displacement experiment: fractional change of the mean over that of δ, first level to last. Holds against a"
    " measure in a setting if CFD's is larger.",
)
def steepest(evidence: Evidence) -> Finding:
    """CFD against each."""
    own = evidence.curves("displacement", "cfd")
    outcomes, others = {}, []
    for name in PAPER[1:]:
        for setting, curve in evidence.curves("displacement", name).items():
            outcomes[f"against {TITLES[name]}", setting] = own[setting].sensitivity > curve.sensitivity
            others.append(curve.sensitivity)
    roots = [(np.sqrt(c.relative[-1]) - 1) / (c.levels[-1] / c.levels[0] - 1) for c in own.values()]
    figure = (
        f"sensitivity of CFD {span(c.sensitivity for c in own.values())}, of the others {span(others)};"
        f" CFD is of the order of a square, its root has {span(roots)}"
    )
    return across(outcomes, figure)


@check(
    "dispersion-cfd-falls",
    "§4.3",
    "CFD falls sharply as dispersion grows with centroids fixed.",
    "Dispersion experiment. Holds in a setting if every step of σ lowers the mean, over all by half or more.",
)
def falls(evidence: Evidence) -> Finding:
    """Every step downwards, and by half."""
    outcomes = evidence.tested("dispersion", ["cfd"], lambda c: np.all(np.diff(c.mean) < 0) and c.relative[-1] <= 0.5)
    left = span((c.relative[-1] for c in evidence.curves("dispersion", "cfd").values()), ".1%")
    return across(outcomes, f"at the largest σ {left} of the first value is left")


@check(
    "dispersion-mmd-falls",
    "§4.3",
    "MMD falls too, but more gradually than CFD.",
    "Dispersion experiment: fractional change over that of σ, averaged over steps. Holds in a setting if every step"
    " lowers MMD's mean, and its average is smaller in size than CFD's.",
)
def mmd_falls(evidence: Evidence) -> Finding:
    """MMD against CFD, by steps."""
    own = evidence.curves("dispersion", "cfd")
    found = evidence.curves("dispersion", "mmd")
    outcomes = {
        ("MMD", setting): bool(np.all(np.diff(c.mean) < 0) and _pace(c) < _pace(own[setting]))
        for setting, c in found.items()
    }
    figure = f"average sensitivity: MMD {span(map(_signed, found.values()))}, CFD {span(map(_signed, own.values()))}"
    return across(outcomes, figure)


@check(
    "dispersion-steepest",
    "§4.3",
    "CFD is the measure most sensitive to dispersion.",
    "Dispersion experiment: fractional change over that of σ, averaged over steps, in size. Holds against a measure in"
    " a setting if CFD's is larger.",
)
def dispersion_steepest(evidence: Evidence) -> Finding:
    """CFD against each, by steps."""
    own = evidence.curves("dispersion", "cfd")
    outcomes: dict[tuple[str, str], bool] = {}
    parts = []
    for name in PAPER[1:]:
        found = evidence.curves("dispersion", name)
        parts.append(f"{TITLES[name]} {span(map(_signed, found.values()), '+.2f')}")
        outcomes |= {(f"against {TITLES[name]}", s): _pace(own[s]) > _pace(c) for s, c in found.items()}
    return across(outcomes, f"CFD {span(map(_signed, own.values()), '+.2f')}, {', '.join(parts)}")


def _signed(curve: Curve) -> float:
    return float(np.mean(curve.steps))


def _pace(curve: Curve) -> float:
    return abs(_signed(curve))


CHECKS = (rises, linear, overlap, mmd_weaker, steepest, falls, mmd_falls, dispersion_steepest)
