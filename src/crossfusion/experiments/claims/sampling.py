"""Abstract and sections 3 and 5: what sampling, imbalance and shape do to CFD."""

from collections.abc import Mapping

from crossfusion.experiments.claims.evidence import POINTWISE, STABLE, TITLES, Curve, Evidence, share, span
from crossfusion.experiments.claims.model import Finding, across, check, verdict_of

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
    "Covariance experiment: equal means and total dispersion, different covariance. One counterexample is"
    " enough: fails if in some setting unbiased CFD is within 2.5 standard errors of 0 while another measure rises"
    f" by more than {STABLE:.0%}.",
)
def zero_is_overlap(evidence: Evidence) -> Finding:
    """CFD at its zero, while others move."""
    blind = evidence.curves("covariance", "cfd_unbiased")
    moves = {name: evidence.curves("covariance", name) for name in SEEN}
    against = [
        s for s, c in blind.items() if _is_zero(c) and any(m[s].relative[-1] - 1 > STABLE for m in moves.values())
    ]
    contrast = evidence.choices.contrasts[-1]
    values = span((c.mean[-1] for c in blind.values()), ".1e")
    figure = f"variances 1 ± {contrast:g}: unbiased CFD {values}; {len(against)} of {len(blind)} settings against it"
    return verdict_of({"overlap": not against}, figure, _who_sees(evidence, moves))


def _who_sees(evidence: Evidence, moves: Mapping[str, Mapping[str, Curve]]) -> str:
    """Which measures rise; the A-distance, of at most 2 and 0 for what cannot be told apart, as a share of 2."""
    rises = {name: [c.relative[-1] - 1 for c in found.values()] for name, found in moves.items()}
    rises["classifier"] = [c.mean[-1] / 2 for c in evidence.curves("covariance", "classifier").values()]
    seen, unseen = (
        [f"{NAMES[name]} {span(found, '+.0%')}" for name, found in rises.items() if (max(found) > STABLE) == wanted]
        for wanted in (True, False)
    )
    return f"seen by {', '.join(seen) or 'none'}; hardly by {', '.join(unseen) or 'none'}"


def _is_zero(curve: Curve) -> bool:
    return bool(abs(curve.mean[-1]) <= 2.5 * curve.error[-1])


@check(
    "same-source-zero",
    "§5.1, app. C",
    "CFD assigns near zero to two samples of one source.",
    "Topology experiment at K = 1: two samples of one Gaussian. Holds in a setting if the mean is within 2.5 standard"
    " errors of 0.",
)
def same_source(evidence: Evidence) -> Finding:
    """Plug-in and unbiased at no shift."""
    found, unbiased = (evidence.curves("topology", name, "sigma") for name in ("cfd", "cfd_unbiased"))
    times = [c.mean[0] * 2 * size for (_, size), c in zip(evidence.trials.settings, found.values(), strict=True)]
    within = {setting: abs(c.mean[0]) <= 2.5 * c.error[0] for setting, c in unbiased.items()}
    outcomes = {("CFD", setting): abs(c.mean[0]) <= 2.5 * c.error[0] for setting, c in found.items()}
    figure = f"CFD · N is {span(times, '.2f')}: near zero is the bias 1/N of the plug-in, as near as N is large"
    mend = f"unbiased CFD: within 2.5 standard errors of 0 in {share(within.values())} settings"
    return across(outcomes, figure, f"{mend}, mean · N {_times(evidence, unbiased)}")


def _times(evidence: Evidence, curves: dict[str, Curve]) -> str:
    sizes = [size for _, size in evidence.trials.settings]
    return span((c.mean[0] * 2 * size for size, c in zip(sizes, curves.values(), strict=True)), ".2f")


@check(
    "same-source-others",
    "§5.1, app. C",
    "The other measures assign substantial distances to two samples of one source.",
    "Topology experiment at K = 1, over the mean at the largest displacement. Holds for a measure in a setting if more"
    f" than {STABLE:.0%}.",
)
def same_source_others(evidence: Evidence) -> Finding:
    """Floor over the farthest."""
    outcomes: dict[tuple[str, str], bool] = {}
    parts = []
    for name in (*POINTWISE, "mmd", "cfd"):
        far = evidence.curves("displacement", name)
        near = evidence.curves("topology", name, "sigma")
        ratios = {setting: near[setting].mean[0] / far[setting].mean[-1] for setting in far}
        parts.append(f"{TITLES[name]} {span(ratios.values(), '.0%')}")
        if name != "cfd":
            outcomes |= {(TITLES[name], setting): ratio > STABLE for setting, ratio in ratios.items()}
    delta = evidence.choices.deltas[-1]
    return across(outcomes, f"share of the value at δ = {delta:g}: {', '.join(parts)}")


@check(
    "sample-size",
    "abstract, §3",
    "CFD is robust to changes that come from sampling alone.",
    "Displacement experiment: share of CFD that is bias, (plug-in − unbiased) / plug-in. Holds at a displacement in a"
    f" setting if at most {STABLE:.0%}.",
)
def sample_size(evidence: Evidence) -> Finding:
    """Bias at each displacement."""
    plain, unbiased = (evidence.curves("displacement", name) for name in ("cfd", "cfd_unbiased"))
    outcomes: dict[tuple[str, str], bool] = {}
    shares = {}
    for k, delta in enumerate(evidence.choices.deltas):
        here = {s: float(1 - unbiased[s].mean[k] / plain[s].mean[k]) for s in plain}
        shares[delta] = here.values()
        outcomes |= {(f"δ = {delta:g}", setting): bias <= STABLE for setting, bias in here.items()}
    parts = [f"δ = {delta:g}: {span(found, '.0%')}" for delta, found in shares.items()]
    zero = evidence.curves("topology", "cfd_unbiased", "sigma")
    mend = f"unbiased CFD has none: without a shift its mean · N is {_times(evidence, zero)}, the plug-in's 1"
    return across(outcomes, f"share of CFD that is bias, {', '.join(parts)}", mend)


@check(
    "imbalance",
    "abstract, §3",
    "CFD does not change when one group is merely sampled less.",
    f"Imbalance experiment, n_B/n_A from 1 down: largest change of the mean. Holds if at most {STABLE:.0%} (and two"
    " standard errors).",
)
def imbalance(evidence: Evidence) -> Finding:
    """Pooled weights, and what mends them."""
    curves = evidence.curves("imbalance", "cfd")
    parts = []
    for name, title in (("cfd_balanced", "balanced"), ("cfd_balanced_unbiased", "balanced and unbiased")):
        found = evidence.curves("imbalance", name)
        kept = share(c.is_stable for c in found.values())
        ends, errors = zip(*(c.end for c in found.values()), strict=True)
        parts.append(
            f"{title} CFD stable in {kept} settings: at that ratio {span(ends, '+.0%')} (± {max(errors):.0%} at most)"
        )
    ratio = evidence.choices.ratios[-1]
    left = span((c.relative[-1] for c in curves.values()), ".0%")
    figure = f"at n_B/n_A = {ratio:g}, {left} of the value is left"
    return across({("CFD", s): c.is_stable for s, c in curves.items()}, figure, "; ".join(parts))


CHECKS = (zero_is_overlap, same_source, same_source_others, sample_size, imbalance)
