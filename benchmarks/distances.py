"""The baseline distances against the libraries that people use for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.timing import best_times, peak_memory
from crossfusion._base import thread_count
from crossfusion.evaluation import compute_squared_distances, distance, solve_sinkhorn
from paper.arrays import FloatArray
from paper.checks import check_whole, load_library

HEADER = ["distance", "against", "n", "d", "times as fast", "values differ by", "marginal errors", "aim"]
EPSILON, TOLERANCE = 0.1, 1e-2
SCALINGS = (0.5, 0.9, 0.97, 0.99, 0.995)  # of geomloss, coarse to fine
PATIENCE = 60.0  # seconds after which a peer is not asked for a finer result
ITERATIONS = 400  # of POT's Sinkhorn, about as many seconds as PATIENCE


@dataclass(frozen=True)
class Clouds:
    """Two clouds and what a row of the table says about them."""

    a: FloatArray
    b: FloatArray
    note: str = ""

    def row(self, name: str, peer: str, ratio: str, *, differ: str = "", errors: str = "", aim: str = "") -> list[str]:
        """A row of the table."""
        against = f"{peer}, {self.note}" if self.note else peer
        return [name, against, f"{len(self.a):,}", f"{self.a.shape[1]}", ratio, differ, errors, aim]


def run(*, repeats: int = 3) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    repeats : int
        Rounds, in which the sides alternate; the best of each side counts. What takes a minute runs once.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    check_whole(repeats, "repeats")
    sections = (_sinkhorn, _mmd, _chamfer, _hausdorff, _energy, _wasserstein)
    rows = [row for section in sections for row in section(repeats)]
    title = f"baseline distances, {thread_count()} threads, best of {repeats}"
    return {"title": title, "header": HEADER, "rows": rows}


def _clouds(number: int, dim: int, shift: float = 0.1, note: str = "") -> Clouds:
    draw = np.random.default_rng(0)
    return Clouds(draw.normal(size=(number, dim)), draw.normal(shift, size=(number, dim)), note)


def _peer(module: str, library: str) -> Any:
    return load_library(module, library, "bench", f"the comparison with {library}")


def _compare(
    name: str, peer: str, theirs: Callable[[FloatArray, FloatArray], float], clouds: Clouds, repeats: int, aim: str
) -> list[str]:
    """One row: the same value by both sides, and how much faster ours has it."""
    values: dict[str, float] = {}

    def keep(side: str, value: float) -> None:
        values[side] = value

    sides = {
        "ours": lambda: keep("ours", distance(name, clouds.a, clouds.b)),
        "theirs": lambda: keep("theirs", theirs(clouds.a, clouds.b)),
    }
    best = best_times(sides, repeats)
    differ = f"{abs(values['ours'] / values['theirs'] - 1):.0e}"
    return clouds.row(name, peer, f"{best['theirs'] / best['ours']:.2f}", differ=differ, aim=aim)


# Entropic transport: a speed says something at equal marginal errors only


@dataclass(frozen=True)
class Plan:
    """What a library made of the entropic problem, and in which time."""

    seconds: float
    cost: float
    error: float


def _sinkhorn(repeats: int) -> list[list[str]]:
    clouds = _clouds(1000, 128)
    squares = compute_squared_distances(clouds.a, clouds.b)
    rows = []
    for peer, plan, aim in [*_geomloss_plans(clouds, squares), _pot_plan(squares), _finer_plan(clouds, repeats)]:
        equal = max(TOLERANCE, plan.error)
        ours = _time(partial(_solve_plan, clouds, equal), repeats)
        rows.append(_sinkhorn_row(clouds, peer, ours, plan, aim))
    return rows


def _sinkhorn_row(clouds: Clouds, peer: str, ours: Plan, theirs: Plan, aim: str) -> list[str]:
    return clouds.row(
        "sinkhorn",
        peer,
        f"{theirs.seconds / ours.seconds:.2f}",
        differ=f"{abs(np.sqrt(ours.cost / theirs.cost) - 1):.0e}",
        errors=f"{ours.error:.1e} / {theirs.error:.1e}",
        aim=aim,
    )


def _time(work: Callable[[], tuple[float, float]], repeats: int) -> Plan:
    """Best time of a solver that returns cost and marginal error."""
    found: list[tuple[float, float]] = []
    seconds = best_times({"": lambda: found.append(work())}, repeats)[""]
    return Plan(seconds, *found[-1])


def _solve_plan(clouds: Clouds, tolerance: float) -> tuple[float, float]:
    solution = solve_sinkhorn(clouds.a, clouds.b, epsilon=EPSILON, tolerance=tolerance)
    return solution.cost, solution.marginal_error


def _finer_plan(clouds: Clouds, repeats: int) -> tuple[str, Plan, str]:
    plan = _time(lambda: _solve_plan(clouds, TOLERANCE / 10), repeats)
    return f"itself, tolerance {TOLERANCE / 10:g}", plan, "error ≤ 1e-3"


def _geomloss_plans(clouds: Clouds, squares: FloatArray) -> list[tuple[str, Plan, str]]:
    """Finer and finer descents, until the marginals are right or patience is at its end."""
    plans: list[tuple[str, Plan, str]] = []
    for scaling in SCALINGS:
        seconds, potentials = _geomloss(clouds, scaling)
        plan = Plan(seconds, *_quality(_plan(squares, *potentials), squares))
        aim = "≥ 1 at equal errors" if plan.error < 1 else "(half of the mass astray)"
        plans.append((f"geomloss, scaling {scaling}", plan, aim))
        if plan.error <= TOLERANCE or seconds > PATIENCE / 3:
            break
    return plans


def _geomloss(clouds: Clouds, scaling: float) -> tuple[float, Any]:
    """Time and dual potentials; the cost is ‖x − y‖²/2 there, so that blur² = epsilon/2."""
    torch, geomloss = _peer("torch", "torch"), _peer("geomloss", "geomloss")
    loss = geomloss.SamplesLoss(
        "sinkhorn", blur=np.sqrt(EPSILON / 2), scaling=scaling, debias=False, potentials=True, backend="tensorized"
    )
    a, b = torch.from_numpy(clouds.a), torch.from_numpy(clouds.b)
    found: list[Any] = []
    seconds = best_times({"": lambda: found.append(loss(a, b))}, 1)[""]
    return seconds, [2 * potential.numpy().reshape(-1) for potential in found[0]]


def _plan(squares: FloatArray, f: FloatArray, g: FloatArray) -> FloatArray:
    plan: FloatArray = np.exp((f[:, None] + g - squares) / EPSILON) / squares.size
    return plan


def _quality(plan: FloatArray, squares: FloatArray) -> tuple[float, float]:
    """Cost of a plan, and the sum of the absolute errors of both marginals."""
    errors = (np.abs(plan.sum(axis=axis) - 1 / plan.shape[1 - axis]).sum() for axis in (0, 1))
    return float(np.sum(plan * squares)), float(sum(errors))


def _pot_plan(squares: FloatArray) -> tuple[str, Plan, str]:
    bregman = _peer("ot.bregman", "POT")
    weights = [np.full(number, 1 / number) for number in squares.shape]

    def work() -> tuple[float, float]:
        plan = bregman.sinkhorn_log(
            *weights, squares, EPSILON, numItermax=ITERATIONS, stopThr=TOLERANCE / 10, warn=False
        )
        return _quality(plan, squares)

    return f"POT sinkhorn_log, {ITERATIONS} iterations", _time(work, 1), "≥ 50 at equal errors"


# The others compute the same number on both sides


def _mmd(repeats: int) -> list[list[str]]:
    spatial = _peer("scipy.spatial.distance", "SciPy")

    def three_matrices(a: FloatArray, b: FloatArray) -> float:
        h = np.median(spatial.pdist(np.concatenate([a, b])))
        parts = ((a, a, 1), (b, b, 1), (a, b, -2))
        means = (sign * np.exp(-spatial.cdist(x, y, "sqeuclidean") / (2 * h * h)).mean() for x, y, sign in parts)
        return float(np.sqrt(sum(means)))

    clouds = _clouds(5000, 128)
    extra = peak_memory(lambda: distance("mmd", clouds.a, clouds.b))  # before the peer leaves memory to reuse
    speed = _compare("mmd", "three kernel matrices (SciPy)", three_matrices, clouds, min(repeats, 2), "≥ 8")
    return [speed, clouds.row("mmd", "peak extra memory", f"{extra / 1e6:.0f} MB", aim="< 200 MB")]


def _chamfer(repeats: int) -> list[list[str]]:
    argmin_min = _peer("sklearn.metrics", "scikit-learn").pairwise_distances_argmin_min

    def both_ways(a: FloatArray, b: FloatArray) -> float:
        return float(argmin_min(a, b)[1].mean() + argmin_min(b, a)[1].mean()) / 2

    peer = "scikit-learn argmin_min, both ways"
    return [
        _compare("chamfer", peer, both_ways, _clouds(number, 128), repeats, "≥ 1") for number in (1000, 5000, 20_000)
    ]


def _hausdorff(repeats: int) -> list[list[str]]:
    directed = _peer("scipy.spatial.distance", "SciPy").directed_hausdorff

    def both_ways(a: FloatArray, b: FloatArray) -> float:
        return float(max(directed(a, b)[0], directed(b, a)[0]))

    cases = [
        _clouds(number, dim, shift, note)
        for number, dim in ((1000, 128), (20_000, 128), (20_000, 8))
        for shift, note in ((0.1, "overlapping"), (1.0, "shifted"))
    ]
    peer = "SciPy directed_hausdorff, both ways"
    return [_compare("hausdorff", peer, both_ways, clouds, 3 * repeats, "≥ 1") for clouds in cases]


def _energy(repeats: int) -> list[list[str]]:
    dcor = _peer("dcor", "dcor")

    def root(a: FloatArray, b: FloatArray) -> float:
        return float(np.sqrt(dcor.energy_distance(a, b)))

    return [_compare("energy", "dcor", root, _clouds(1000, 128), repeats, "(for information)")]


def _wasserstein(repeats: int) -> list[list[str]]:
    ot, spatial = _peer("ot", "POT"), _peer("scipy.spatial.distance", "SciPy")

    def root(a: FloatArray, b: FloatArray) -> float:
        return float(np.sqrt(ot.emd2([], [], spatial.cdist(a, b, "sqeuclidean"))))

    return [_compare("wasserstein", "POT emd2", root, _clouds(1000, 128), repeats, "about 1: the same routine")]
