"""Section 3 and appendix A: the propositions, on random clouds."""

import inspect
from collections.abc import Iterator

import numpy as np

from crossfusion.baselines import distances
from crossfusion.compare import cfd
from crossfusion.experiments.claims.evidence import Evidence
from crossfusion.experiments.claims.model import CONDITIONS, FAILS, HOLDS, Finding, check, verdict_of
from crossfusion.kernels import FloatArray
from crossfusion.moments import Moments

PAIRS = 100
ROUNDING = 1e-12
RANDOM = f"{PAIRS} pairs of random clouds (2 to 40 rows, 1 to 8 features)"


def _clouds() -> Iterator[tuple[FloatArray, FloatArray]]:
    rng = np.random.default_rng(42)
    for _ in range(PAIRS):
        dim = int(rng.integers(1, 9))
        a, b = (rng.normal(rng.normal(size=dim), rng.uniform(0.1, 3), (rng.integers(2, 41), dim)) for _ in range(2))
        yield a, b


@check(
    "variance-decomposition",
    "§3, eq. 8; prop. A.1",
    "The dispersion of the union is the dispersion within both groups plus that of their centroids.",
    f"{RANDOM}, both sides computed apart. Holds if they agree to {ROUNDING:g}, relative.",
)
def variance_decomposition(_: Evidence) -> Finding:
    """Both sides of the identity."""
    worst = 0.0
    for a, b in _clouds():
        union, share = np.concatenate([a, b]), len(a) / (len(a) + len(b))
        centre = union.mean(axis=0)
        whole = np.mean(np.sum((union - centre) ** 2, axis=1))
        parts = [np.sum(rows.var(axis=0)) + np.sum((rows.mean(axis=0) - centre) ** 2) for rows in (a, b)]
        worst = max(worst, abs(share * parts[0] + (1 - share) * parts[1] - whole) / whole)
    return verdict_of({"random clouds": worst <= ROUNDING}, f"largest relative difference {worst:.0e}")


@check(
    "score-bounds",
    "§3; prop. A.2",
    "The score lies above 0 and at most at 1, so the distance is finite.",
    f"{RANDOM}, and two groups of one repeated point each, where nothing varies within.",
)
def score_bounds(_: Evidence) -> Finding:
    """Random clouds, and clouds without spread."""
    scores = [cfd(a, b).score for a, b in _clouds()]
    bare = cfd(np.zeros((3, 2)), np.ones((3, 2)))
    figure = (
        f"random: {min(scores):.3g} to {max(scores):.3g}; without spread: score {bare.score:g}, CFD {bare.distance:g}"
    )
    inside = all(0 < score <= 1 for score in scores)
    if inside and bare.score > 0:
        return Finding(figure, HOLDS)
    if inside:
        return Finding(
            figure, CONDITIONS, "if at least one group has some spread; that not all points coincide is not enough"
        )
    return Finding(figure, FAILS)


@check(
    "zero-iff-means",
    "§3; prop. A.3",
    "CFD is never negative, and 0 exactly where the centroids are equal.",
    f"{RANDOM}, as they are and with both moved to a mean of 0. Holds if always > 0, and ≤ {ROUNDING:g}.",
)
def zero_iff_means(_: Evidence) -> Finding:
    """Apart, and on one mean."""
    apart = [cfd(a, b).distance for a, b in _clouds()]
    same = [cfd(a - a.mean(axis=0), b - b.mean(axis=0)).distance for a, b in _clouds()]
    outcomes = {"different means": min(apart) > 0, "equal means": max(map(abs, same)) <= ROUNDING}
    return verdict_of(outcomes, f"different means: at least {min(apart):.1e}; equal means: at most {max(same):.0e}")


@check(
    "monotone-in-distance",
    "§3; prop. A.4",
    "With dispersions fixed, CFD grows strictly with the distance of the centroids.",
    f"{RANDOM}, the second moved away in 10 steps of random direction. Holds if every step increases CFD.",
)
def monotone(_: Evidence) -> Finding:
    """Steps outward."""
    rng = np.random.default_rng(7)
    rises = []
    for a, b in _clouds():
        way = rng.normal(size=a.shape[1])
        centred = b - b.mean(axis=0) + a.mean(axis=0)
        found = [cfd(a, centred + step * way).distance for step in np.linspace(0, 10, 11)]
        rises.append(bool(np.all(np.diff(found) > 0)))
    return verdict_of({"random clouds": all(rises)}, f"strictly increasing for {sum(rises)} of {len(rises)} pairs")


@check(
    "limits",
    "prop. A.5",
    "CFD is 0 at equal centroids and grows without bound as they move apart.",
    "The first pair of random clouds, displacement 10² to 10⁸: CFD should gain log 10⁴ = 9.2103 for each factor of 100"
    " once displacement dominates. Holds if the last gains agree to 1e-3.",
)
def limits(_: Evidence) -> Finding:
    """Logarithmic growth."""
    a, b = next(_clouds())
    way = np.eye(a.shape[1])[0]
    found = [cfd(a, b + 10.0**power * way).distance for power in (2, 4, 6, 8)]
    zero = cfd(a, b - b.mean(axis=0) + a.mean(axis=0)).distance
    gains = np.diff(found)
    outcomes = {"equal means": abs(zero) <= ROUNDING, "far apart": abs(gains[-1] - np.log(1e4)) <= 1e-3}
    return verdict_of(
        outcomes, f"CFD {zero:.0e} at equal means, {found[0]:.1f} to {found[-1]:.1f}, by log of the square"
    )


@check(
    "scale-invariant",
    "§1, §3, §4.1",
    "CFD does not change when both groups are scaled by one factor, so features need no normalisation.",
    f"{RANDOM}, scaled by 10⁻³ to 10³; then one feature alone scaled by 10. Holds if CFD agrees to 1e-9 in both.",
)
def scale_invariant(_: Evidence) -> Finding:
    """Isotropic, and one feature."""
    rng = np.random.default_rng(3)
    common = single = 0.0
    for a, b in _clouds():
        base, factor = cfd(a, b).distance, 10 ** rng.uniform(-3, 3)
        common = max(common, abs(cfd(factor * a, factor * b).distance / base - 1))
        weight = np.where(np.arange(a.shape[1]) == 0, 10.0, 1.0)
        if a.shape[1] > 1:
            single = max(single, abs(cfd(weight * a, weight * b).distance / base - 1))
    outcomes = {"one factor for all features": common <= 1e-9, "a factor of one feature": single <= 1e-9}
    return verdict_of(outcomes, f"one factor: differs by {common:.0e}; one feature times 10: by up to {single:.0%}")


@check(
    "metric",
    "title, abstract",
    "CFD is a metric, if the word is taken in its mathematical sense.",
    f"Symmetry on {RANDOM}; the triangle inequality on 1,000 triples of Gaussian clouds of equal spread, whose"
    " centroids are drawn from N(0, 1). Holds if neither is ever violated.",
)
def metric(_: Evidence) -> Finding:
    """Symmetry, and triangles of means."""
    uneven = max(abs(cfd(a, b).distance - cfd(b, a).distance) for a, b in _clouds())
    rng = np.random.default_rng(5)
    means = rng.normal(size=(1000, 3, 2))
    gaps = np.sum((means[:, [0, 1, 2]] - means[:, [1, 2, 0]]) ** 2, axis=2)  # CFD of equal groups: log1p(gap² / 4 tr)
    longest = np.sort(np.log1p(gaps / 8), axis=1)
    broken, roots = (np.mean(s[:, 2] > s[:, 0] + s[:, 1] + ROUNDING) for s in (longest, np.sqrt(longest)))
    outcomes = {"symmetry": uneven <= ROUNDING, "the triangle inequality": broken == 0}
    figure = f"asymmetry {uneven:.0e}; {broken:.0%} of the triangles are violated"
    return verdict_of(outcomes, figure, f"√CFD violates {roots:.0%} of them")


@check(
    "single-pass",
    "§3",
    "CFD needs a single pass over the data.",
    f"{RANDOM}: rows seen once, in chunks of 3, moments added up, CFD from the sum. Holds if equal to CFD to 1e-9.",
)
def single_pass(_: Evidence) -> Finding:
    """Moments of chunks, added."""
    worst = 0.0
    for a, b in _clouds():
        seen = [sum((Moments.of(r[k : k + 3]) for k in range(0, len(r), 3)), Moments.empty(r.shape[1])) for r in (a, b)]
        share = len(a) / (len(a) + len(b))
        within = share * float(seen[0].dispersion) + (1 - share) * float(seen[1].dispersion)
        between = share * (1 - share) * float(np.sum((seen[0].mean - seen[1].mean) ** 2))
        worst = max(worst, abs(np.log1p(between / within) / cfd(a, b).distance - 1))
    return verdict_of({"chunks": worst <= 1e-9}, f"largest relative difference {worst:.0e}")


@check(
    "parameter-free",
    "§1, §4.7",
    "CFD has no parameters, kernels or matching to choose.",
    "Options of each distance of the paper that change its value, apart from trimming, and whether CFD with pooled"
    " weights equals CFD with equal weights at 100 and 25 rows. Holds if there are none and both are equal to 1 %.",
)
def parameter_free(_: Evidence) -> Finding:
    """Options, and the choice of weights that the formula makes silently."""
    names = ("cfd", "sinkhorn", "mmd")
    options = {name: [o for o in [*inspect.signature(distances[name]).parameters][2:] if o != "trim"] for name in names}
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(100, 8)), rng.normal(1, 1, size=(25, 8))
    pooled, balanced = (cfd(a, b, weights=weights).distance for weights in ("pooled", "balanced"))
    outcomes = {
        "options": not options["cfd"],
        "weights (groups of different size weigh by their rows, which is a choice)": abs(balanced / pooled - 1) <= 0.01,
    }
    counts = ", ".join(f"{name} {len(found)}" for name, found in options.items())
    return verdict_of(
        outcomes, f"options: {counts}; pooled {pooled:.3f}, equal weights {balanced:.3f} for the same rows"
    )


CHECKS = (
    variance_decomposition,
    score_bounds,
    zero_iff_means,
    monotone,
    limits,
    scale_invariant,
    metric,
    single_pass,
    parameter_free,
)
