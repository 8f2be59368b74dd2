"""Section 3 and appendix A: the propositions, on random clouds."""

from collections.abc import Iterator

import numpy as np

from crossfusion import Moments, cfd, distance
from paper.arrays import FloatArray
from paper.claims.evidence import Evidence
from paper.claims.model import CONDITIONS, FAILS, HOLDS, Finding, check, decide, decide_jointly

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
    return decide({"random clouds": worst <= ROUNDING}, f"largest relative difference {worst:.0e}")


@check(
    "score-bounds",
    "§3; prop. A.2",
    "The score lies above 0 and at most at 1, so the distance is finite.",
    f"{RANDOM}, and two groups of one repeated point each, where nothing varies within.",
)
def score_bounds(_: Evidence) -> Finding:
    """Random clouds, and clouds without spread."""
    scores = [cfd(a, b).score or 0.0 for a, b in _clouds()]
    bare = cfd(np.zeros((3, 2)), np.ones((3, 2)))
    score = bare.score or 0.0
    figure = f"random: {min(scores):.3g} to {max(scores):.3g}; without spread: score {score:g}, CFD {float(bare):g}"
    inside = all(0 < score <= 1 for score in scores)
    if inside and score > 0:
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
    apart = [float(cfd(a, b)) for a, b in _clouds()]
    same = [float(cfd(a - a.mean(axis=0), b - b.mean(axis=0))) for a, b in _clouds()]
    outcomes = {"different means": min(apart) > 0, "equal means": max(map(abs, same)) <= ROUNDING}
    return decide(outcomes, f"different means: at least {min(apart):.1e}; equal means: at most {max(same):.0e}")


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
        found = [float(cfd(a, centred + step * way)) for step in np.linspace(0, 10, 11)]
        rises.append(bool(np.all(np.diff(found) > 0)))
    return decide({"random clouds": all(rises)}, f"strictly increasing for {sum(rises)} of {len(rises)} pairs")


@check(
    "monotone-in-dispersion",
    "§3",
    "CFD is provably monotone in dispersion: with centroids fixed it falls strictly as the groups spread.",
    f"{RANDOM}, each row's deviation from its own group's centroid stretched in 10 steps from 1 to 11 times. Holds if"
    " every step lowers CFD.",
)
def monotone_in_dispersion(_: Evidence) -> Finding:
    """Steps of spread."""
    falls = []
    for a, b in _clouds():
        found = [float(cfd(*(_stretch(rows, factor) for rows in (a, b)))) for factor in np.linspace(1, 11, 11)]
        falls.append(bool(np.all(np.diff(found) < 0)))
    return decide({"random clouds": all(falls)}, f"strictly decreasing for {sum(falls)} of {len(falls)} pairs")


def _stretch(rows: FloatArray, factor: float) -> FloatArray:
    centre = rows.mean(axis=0)
    found: FloatArray = centre + factor * (rows - centre)
    return found


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
    found = [float(cfd(a, b + 10.0**power * way)) for power in (2, 4, 6, 8)]
    zero = float(cfd(a, b - b.mean(axis=0) + a.mean(axis=0)))
    gains = np.diff(found)
    outcomes = {"equal means": abs(zero) <= ROUNDING, "far apart": abs(gains[-1] - np.log(1e4)) <= 1e-3}
    return decide(outcomes, f"CFD {zero:.0e} at equal means, {found[0]:.1f} to {found[-1]:.1f}, by log of the square")


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
        base, factor = float(cfd(a, b)), 10 ** rng.uniform(-3, 3)
        common = max(common, abs(float(cfd(factor * a, factor * b)) / base - 1))
        weight = np.where(np.arange(a.shape[1]) == 0, 10.0, 1.0)
        if a.shape[1] > 1:
            single = max(single, abs(float(cfd(weight * a, weight * b)) / base - 1))
    outcomes = {"one factor for all features": common <= 1e-9, "a factor of one feature": single <= 1e-9}
    return decide(outcomes, f"one factor: differs by {common:.0e}; one feature times 10: by up to {single:.0%}")


@check(
    "metric",
    "title, abstract",
    "CFD is a metric, if the word is taken in its mathematical sense.",
    f"Symmetry on {RANDOM}; identity of indiscernibles on the same pairs, moved to one mean: violated where CFD is 0"
    " and the Wasserstein distance is not; the triangle inequality on 1,000 triples of Gaussian clouds of equal spread,"
    " whose centroids are drawn from N(0, 1). Holds if none of the three is ever violated.",
)
def metric(_: Evidence) -> Finding:
    """Three axioms, all of which are needed."""
    uneven = max(abs(float(cfd(a, b)) - float(cfd(b, a))) for a, b in _clouds())
    confused = sum(_is_confused(a - a.mean(axis=0), b - b.mean(axis=0)) for a, b in _clouds())
    broken, roots = _violations()
    outcomes = {
        "symmetry": uneven <= ROUNDING,
        "identity of indiscernibles": confused == 0,
        "the triangle inequality": broken == 0,
    }
    figure = (
        f"asymmetry {uneven:.0e}; CFD is 0 for {confused} of {PAIRS} pairs of different clouds on one mean;"
        f" {broken:.0%} of the triangles are violated"
    )
    root = f"√CFD violates {roots:.0%} of these triangles, of equal spread; with unequal spreads it can"
    return decide_jointly(outcomes, figure, root)


def _is_confused(a: FloatArray, b: FloatArray) -> bool:
    """Whether CFD does not tell two clouds apart that are."""
    return bool(abs(float(cfd(a, b))) <= ROUNDING and distance("wasserstein", a, b) > 1e-3)


def _violations() -> tuple[float, float]:
    """Shares of triangles that CFD and its root violate."""
    means = np.random.default_rng(5).normal(size=(1000, 3, 2))
    gaps = np.sum((means[:, [0, 1, 2]] - means[:, [1, 2, 0]]) ** 2, axis=2)  # CFD of equal groups: log1p(gap² / 4 tr)
    sides = np.sort(np.log1p(gaps / 8), axis=1)
    broken, roots = (np.mean(s[:, 2] > s[:, 0] + s[:, 1] + ROUNDING) for s in (sides, np.sqrt(sides)))
    return float(broken), float(roots)


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
        worst = max(worst, abs(np.log1p(between / within) / float(cfd(a, b)) - 1))
    return decide({"chunks": worst <= 1e-9}, f"largest relative difference {worst:.0e}")


@check(
    "parameter-free",
    "§1, §4.7",
    "CFD leaves nothing to choose: no parameters, kernels or matching.",
    "Whether two usual weightings of the groups, by rows and equal, give one value, for two Gaussian clouds (8"
    " features, shift 1 in each) of equal and of different size. Holds for a case if they agree to 1 %.",
)
def parameter_free(_: Evidence) -> Finding:
    """The choice of weights that the formula makes silently."""
    outcomes, parts = {}, []
    for case, rows in (("groups of equal size", 100), ("groups of different size", 25)):
        rng = np.random.default_rng(1)
        a, b = rng.normal(size=(100, 8)), rng.normal(1, 1, size=(rows, 8))
        pooled, balanced = (float(cfd(a, b, weights=weights)) for weights in ("pooled", "balanced"))
        outcomes[f"{case} (100 and {rows} rows)"] = abs(balanced / pooled - 1) <= 0.01
        parts.append(f"100 and {rows} rows: by rows {pooled:.3f}, equal {balanced:.3f}")
    return decide(outcomes, "; ".join(parts))


CHECKS = (
    variance_decomposition,
    score_bounds,
    zero_iff_means,
    monotone,
    monotone_in_dispersion,
    limits,
    scale_invariant,
    metric,
    single_pass,
    parameter_free,
)
