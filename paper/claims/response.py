"""Sections 4.2 and 4.3: what the measures should respond to."""

from collections.abc import Sequence

import numpy as np

from paper.claims.copies import SECOND
from paper.claims.curve import SENSITIVITIES, Curve, estimate, overall
from paper.claims.evidence import PAPER, POINTWISE, TITLES, Evidence, span
from paper.claims.model import Finding, Outcomes, check, decide_across, in_both_readings
from paper.claims.outcomes import DOUBT, Outcome, above, all_of, small

LINEAR = 0.98
OVERLAP = 0.05
HALF = 0.5
BOTH = f"fractional change of the mean over that of the factor, {' and '.join(SENSITIVITIES)}, in size"


@check(
    "displacement-monotone",
    "§4.2",
    "All measures increase with displacement.",
    "Displacement experiment: means over trials. Holds for a measure in a setting if every step of δ raises its mean."
    + DOUBT,
)
def rises(evidence: Evidence) -> Finding:
    """Every step upwards."""
    outcomes = evidence.test_curves("displacement", PAPER, lambda c: c.goes(1))
    growth = [f"{TITLES[name]} ×{_growth(evidence, name)}" for name in PAPER]
    return decide_across(outcomes, f"from the smallest δ to the largest: {', '.join(growth)}")


def _growth(evidence: Evidence, measure: str) -> str:
    return span((curve.relative[-1] for curve in evidence.curves("displacement", measure).values()), ".3g")


@check(
    "displacement-linear",
    "§4.2",
    "Wasserstein, Hausdorff and Chamfer distances grow about linearly with displacement.",
    f"Displacement experiment: R² of the mean on δ. Holds if at least {LINEAR}.{DOUBT}{SECOND}",
)
def linear(evidence: Evidence) -> Finding:
    """Straightness."""
    return in_both_readings(_lines, evidence)


def _lines(evidence: Evidence) -> tuple[Outcomes, str]:
    outcomes = evidence.test_curves("displacement", POINTWISE, lambda c: above(*estimate(_straightness, c), LINEAR))
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
    f" first value.{DOUBT}{SECOND}",
)
def overlap(evidence: Evidence) -> Finding:
    """Gap between relative curves."""
    return in_both_readings(_gaps, evidence)


def _gaps(evidence: Evidence) -> tuple[Outcomes, str]:
    three = [evidence.curves("displacement", name) for name in POINTWISE]
    gaps = {setting: estimate(_gap, *(curves[setting] for curves in three)) for setting in three[0]}
    outcomes = {("the three", setting): small(*gap, OVERLAP) for setting, gap in gaps.items()}
    return outcomes, f"largest gap {span((gap for gap, _ in gaps.values()), '.1%')} of the first value"


def _gap(*curves: Curve) -> float:
    return float(np.ptp([curve.relative for curve in curves], axis=0).max())


@check(
    "displacement-mmd-weaker",
    "§4.2, §4.7",
    "MMD responds more weakly to displacement than Wasserstein, Hausdorff and Chamfer do.",
    f"Displacement experiment: {BOTH}. Holds against a measure in a setting if MMD's is smaller.{DOUBT}{SECOND}",
)
def mmd_weaker(evidence: Evidence) -> Finding:
    """Sensitivities against MMD's."""
    return in_both_readings(_against_mmd, evidence)


def _against_mmd(evidence: Evidence) -> tuple[Outcomes, str]:
    outcomes = _compare(evidence, "displacement", "mmd", POINTWISE, smaller=True)
    return outcomes, _sensitivities(evidence, "displacement", ("mmd", *POINTWISE))


def _compare(
    evidence: Evidence, experiment: str, own: str, others: Sequence[str], *, smaller: bool = False
) -> dict[tuple[str, str], Outcome]:
    """Whether one measure is more (or less) sensitive than others, by either definition, in each setting."""
    found: dict[tuple[str, str], Outcome] = {}
    curves = evidence.curves(experiment, own)
    order = f"{TITLES[own]} {'below' if smaller else 'above'}"
    for definition in SENSITIVITIES:
        for name in others:
            for setting, other in evidence.curves(experiment, name).items():
                pair = (other, curves[setting]) if smaller else (curves[setting], other)
                found[f"{order} {TITLES[name]} ({definition})", setting] = _exceeds(definition, *pair)
    return found


def _exceeds(definition: str, first: Curve, second: Curve) -> Outcome:
    """Whether the first curve is more sensitive than the second."""
    sensitivity = SENSITIVITIES[definition]
    return above(*estimate(lambda a, b: abs(sensitivity(a)) - abs(sensitivity(b)), first, second), 0)


def _sensitivities(evidence: Evidence, experiment: str, measures: Sequence[str]) -> str:
    lines = []
    for definition, sensitivity in SENSITIVITIES.items():
        curves = {name: evidence.curves(experiment, name).values() for name in measures}
        parts = [f"{TITLES[name]} {span(map(sensitivity, found), '+.2g')}" for name, found in curves.items()]
        lines.append(f"{definition}: {', '.join(parts)}")
    return f"sensitivity {'; '.join(lines)}"


@check(
    "displacement-steepest",
    "§4.2",
    "CFD is the measure most sensitive to displacement.",
    f"Displacement experiment: {BOTH}. Holds against a measure in a setting if CFD's is larger.{DOUBT}",
)
def steepest(evidence: Evidence) -> Finding:
    """CFD against each."""
    roots = span(map(_of_root, evidence.curves("displacement", "cfd").values()))
    figure = _sensitivities(evidence, "displacement", PAPER)
    figure += f"; CFD is of the order of a square, its root has {roots}, first level to last"
    return decide_across(_compare(evidence, "displacement", "cfd", PAPER[1:]), figure)


def _of_root(curve: Curve) -> float:
    """Sensitivity of the root of the means."""
    return overall(Curve(curve.levels, np.sqrt(np.maximum(curve.mean, 0))[:, None]))


@check(
    "dispersion-cfd-falls",
    "§4.3",
    "CFD falls sharply as dispersion grows with centroids fixed.",
    "Dispersion experiment. Holds in a setting if every step of σ lowers the mean, over all by half or more." + DOUBT,
)
def falls(evidence: Evidence) -> Finding:
    """Every step downwards, and by half."""
    outcomes = evidence.test_curves(
        "dispersion", ["cfd"], lambda c: all_of([c.goes(-1), small(c.relative[-1], c.doubt[-1], HALF)])
    )
    left = span((c.relative[-1] for c in evidence.curves("dispersion", "cfd").values()), ".1%")
    return decide_across(outcomes, f"at the largest σ {left} of the first value is left")


@check(
    "dispersion-mmd-falls",
    "§4.3",
    "MMD falls too, but more gradually than CFD.",
    f"Dispersion experiment: {BOTH}. Holds in a setting if every step lowers MMD's mean, and its sensitivity is smaller"
    f" than CFD's.{DOUBT}",
)
def mmd_falls(evidence: Evidence) -> Finding:
    """MMD downwards, and CFD more so."""
    own, found = (evidence.curves("dispersion", name) for name in ("cfd", "mmd"))
    outcomes = {
        (f"MMD ({definition})", setting): all_of([curve.goes(-1), _exceeds(definition, own[setting], curve)])
        for definition in SENSITIVITIES
        for setting, curve in found.items()
    }
    return decide_across(outcomes, _sensitivities(evidence, "dispersion", ("mmd", "cfd")))


@check(
    "dispersion-steepest",
    "§4.3",
    "CFD is the measure most sensitive to dispersion.",
    f"Dispersion experiment: {BOTH}. Holds against a measure in a setting if CFD's is larger.{DOUBT}",
)
def dispersion_steepest(evidence: Evidence) -> Finding:
    """CFD against each."""
    outcomes = _compare(evidence, "dispersion", "cfd", PAPER[1:])
    return decide_across(outcomes, _sensitivities(evidence, "dispersion", PAPER))


CHECKS = (rises, linear, overlap, mmd_weaker, steepest, falls, mmd_falls, dispersion_steepest)
