"""Abstract and sections 3 and 5: what sampling, imbalance and shape do to CFD."""

from collections.abc import Mapping
from functools import partial

from paper.claims.curve import Curve, estimate
from paper.claims.evidence import POINTWISE, TITLES, Evidence, span
from paper.claims.model import Finding, check, decide_across, decide_jointly
from paper.claims.outcomes import DOUBT, STABLE, STEADY, WITHIN, Outcome, above, all_of, any_of, opposite, share, small

SEEN = ("gaussian_wasserstein", "sliced_wasserstein", "energy", "mmd", "transport", "hausdorff", "chamfer")
NAMES = TITLES | {
    "gaussian_wasserstein": "Gaussian Wasserstein",
    "sliced_wasserstein": "sliced Wasserstein",
    "energy": "energy distance",
    "classifier": "classifier (A-distance over 2)",
}


@check(
    "zero-is-overlap",
    "§3",
    "A CFD of 0 means that the two clouds overlap perfectly.",
    "Covariance experiment: equal means and total dispersion, different covariance. One counterexample is enough: fails"
    f" if in some setting unbiased CFD is {WITHIN} of its mean at the largest displacement while another measure rises"
    f" by more than {STABLE:.0%}.{DOUBT}",
)
def zero_is_overlap(evidence: Evidence) -> Finding:
    """CFD at its zero, while others move."""
    blind, far = evidence.curves("covariance", "cfd_unbiased"), evidence.curves("displacement", "cfd_unbiased")
    moves = {name: evidence.curves("covariance", name) for name in SEEN}
    against = {
        s: all_of(
            [small(*estimate(_last_over_last, c, far[s]), STABLE), any_of(m[s].rises_at(-1) for m in moves.values())]
        )
        for s, c in blind.items()
    }
    contrast = evidence.choices.contrasts[-1]
    values = span((c.mean[-1] for c in blind.values()), ".1e")
    counted = share(against.values(), "settings")
    figure = f"variances 1 ± {contrast:g}: unbiased CFD {values}; against the claim {counted}"
    return decide_jointly({s: opposite(found) for s, found in against.items()}, figure, _who_sees(evidence, moves))


def _last_over_last(near: Curve, far: Curve) -> float:
    return float(near.mean[-1] / far.mean[-1])


def _first_over_last(near: Curve, far: Curve) -> float:
    return float(near.mean[0] / far.mean[-1])


def _who_sees(evidence: Evidence, moves: Mapping[str, Mapping[str, Curve]]) -> str:
    """Which measures rise; the A-distance, of at most 2 and 0 for what cannot be told apart, as a share of 2."""
    rises = {name: [c.relative[-1] - 1 for c in found.values()] for name, found in moves.items()}
    rises["classifier"] = [c.mean[-1] / 2 for c in evidence.curves("covariance", "classifier").values()]
    seen, unseen = (
        [f"{NAMES[name]} {span(found, '+.0%')}" for name, found in rises.items() if (max(found) > STABLE) == wanted]
        for wanted in (True, False)
    )
    return f"seen by {', '.join(seen) or 'none'}; hardly by {', '.join(unseen) or 'none'}"


NEAR = "Topology experiment at K = 1, two samples of one Gaussian, over the mean at the largest displacement."


@check(
    "same-source-zero",
    "§5.1, app. C",
    "CFD assigns near zero to two samples of one source.",
    f"{NEAR} Holds in a setting if {WITHIN}.{DOUBT}",
)
def same_source(evidence: Evidence) -> Finding:
    """Share of the farthest, and what it is."""
    shares, unbiased = (_floors(evidence, name) for name in ("cfd", "cfd_unbiased"))
    outcomes = {("CFD", setting): small(*found, STABLE) for setting, found in shares.items()}
    figure = (
        f"share of the value at δ = {evidence.choices.deltas[-1]:g}: {_format_span(shares)}; it is the bias 1/N of the"
        f" plug-in, CFD · N is {_times(evidence, evidence.curves('topology', 'cfd', 'sigma'))}"
    )
    kept = share((small(*found, STABLE) for found in unbiased.values()), "settings")
    return decide_across(outcomes, figure, f"unbiased CFD near zero in {kept}: {_format_span(unbiased)}")


def _floors(evidence: Evidence, measure: str) -> dict[str, tuple[float, float]]:
    """A measure of two samples of one source as a share of that at the largest displacement, with its doubt."""
    near, far = evidence.curves("topology", measure, "sigma"), evidence.curves("displacement", measure)
    return {setting: estimate(_first_over_last, near[setting], far[setting]) for setting in far}


def _format_span(shares: Mapping[str, tuple[float, float]]) -> str:
    return span((value for value, _ in shares.values()), ".0%")


def _times(evidence: Evidence, curves: dict[str, Curve]) -> str:
    sizes = [size for _, size in evidence.trials.settings]
    return span((c.mean[0] * 2 * size for size, c in zip(sizes, curves.values(), strict=True)), ".2f")


@check(
    "same-source-others",
    "§5.1, app. C",
    "The other measures assign substantial distances to two samples of one source.",
    f"{NEAR} Holds for a measure in a setting if more than {STABLE:.0%}.{DOUBT}",
)
def same_source_others(evidence: Evidence) -> Finding:
    """Share of the farthest."""
    outcomes: dict[tuple[str, str], Outcome] = {}
    parts = []
    for name in (*POINTWISE, "mmd"):
        shares = _floors(evidence, name)
        parts.append(f"{TITLES[name]} {_format_span(shares)}")
        outcomes |= {(TITLES[name], setting): above(*found, STABLE) for setting, found in shares.items()}
    delta = evidence.choices.deltas[-1]
    return decide_across(outcomes, f"share of the value at δ = {delta:g}: {', '.join(parts)}")


@check(
    "sample-size",
    "abstract, §3",
    "CFD is robust to changes that come from sampling alone.",
    "Displacement experiment: share of CFD that is bias, (plug-in − unbiased) / plug-in. Holds at a displacement in a"
    f" setting if {WITHIN}.{DOUBT}",
)
def sample_size(evidence: Evidence) -> Finding:
    """Bias at each displacement."""
    plain, unbiased = (evidence.curves("displacement", name) for name in ("cfd", "cfd_unbiased"))
    outcomes: dict[tuple[str, str], Outcome] = {}
    parts = []
    for k, delta in enumerate(evidence.choices.deltas):
        here = {s: estimate(partial(_bias, k), plain[s], unbiased[s]) for s in plain}
        parts.append(f"δ = {delta:g}: {_format_span(here)}")
        outcomes |= {(f"δ = {delta:g}", setting): small(*bias, STABLE) for setting, bias in here.items()}
    zero = evidence.curves("topology", "cfd_unbiased", "sigma")
    mend = f"unbiased CFD has none: without a shift its mean · N is {_times(evidence, zero)}, the plug-in's 1"
    return decide_across(outcomes, f"share of CFD that is bias, {', '.join(parts)}", mend)


def _bias(k: int, plain: Curve, unbiased: Curve) -> float:
    return float(1 - unbiased.mean[k] / plain.mean[k])


@check(
    "imbalance",
    "abstract, §3",
    "CFD does not change when one group is merely sampled less.",
    f"Imbalance experiment, n_B/n_A from 1 down: largest change of the mean. Holds if {STEADY}.",
)
def imbalance(evidence: Evidence) -> Finding:
    """Pooled weights, and what mends them."""
    curves = evidence.curves("imbalance", "cfd")
    parts = []
    for name, title in (("cfd_balanced", "balanced"), ("cfd_balanced_unbiased", "balanced and unbiased")):
        found = evidence.curves("imbalance", name)
        kept = share((c.is_stable for c in found.values()), "settings")
        ends, doubts = zip(*(c.end for c in found.values()), strict=True)
        parts.append(f"{title} CFD stable in {kept}: at that ratio {span(ends, '+.0%')} (± {max(doubts):.0%} at most)")
    ratio = evidence.choices.ratios[-1]
    left = span((c.relative[-1] for c in curves.values()), ".0%")
    figure = f"at n_B/n_A = {ratio:g}, {left} of the value is left"
    return decide_across({("CFD", s): c.is_stable for s, c in curves.items()}, figure, "; ".join(parts))


CHECKS = (zero_is_overlap, same_source, same_source_others, sample_size, imbalance)
