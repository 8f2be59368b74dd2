"""Made-up evidence for the claims ledger: a study, timings and a decomposition whose answers are known."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from paper import synthetic
from paper.claims import Evidence, Trials

CHOICES = synthetic.Settings(dims=(32, 128), sizes=(100, 200), trials=4)
MEASURES = (
    "cfd", "cfd_unbiased", "cfd_balanced", "cfd_balanced_unbiased", "cfd_trimmed", "wasserstein", "sinkhorn", "mmd",
    "hausdorff", "chamfer", "energy", "gaussian_wasserstein", "sliced_wasserstein", "classifier",
)  # fmt: skip
CFD = MEASURES[:5]
FARAWAY = ("wasserstein", "sinkhorn", "hausdorff", "chamfer")
Response = Callable[..., float]


def as_claimed(experiment: str, measure: str) -> Response:
    """How a measure would respond if all that the paper says of the experiment were so."""
    of_cfd = {
        "displacement": lambda x: x**2 / 100,
        "dispersion": lambda x: 1 / x**2,
        "scaling": lambda x: 0.1,
        "topology": lambda x: 0.005,
        "outliers": lambda x: 0.1,
        "imbalance": lambda x: 0.1,
        "covariance": lambda x: 0.001,
    }
    of_far = {
        "displacement": lambda x: 4 + x,
        "dispersion": lambda x: 10,
        "scaling": lambda x: 5 * x,
        "topology": lambda x: 4 if x == 1 else 6,
        "outliers": lambda x: 5 + x,
    }
    of_mmd = {
        "displacement": lambda x: 1 + x / 10,
        "dispersion": lambda x: 1 / np.sqrt(x),
        "topology": lambda x: 0.5 if x == 1 else 0.6,
    }
    table: Mapping[str, Response] = of_cfd if measure in CFD else of_far if measure in FARAWAY else of_mmd
    return table.get(experiment, lambda x: 1.0)


def study(*, noise: Mapping[str, float] | None = None, **others: Response) -> pa.Table:
    """A made-up study; `others` replace responses, by experiment and measure, joined by "__".

    `noise`, named alike, is added to the last level, with one sign in even trials and the other in odd ones.
    """
    rows = []
    for experiment in synthetic.EXPERIMENTS:
        for variant in ("sigma", "dispersion") if experiment == "topology" else ("",):
            for dim in CHOICES.dims:
                for size in CHOICES.sizes:
                    for trial in range(CHOICES.trials):
                        about = {"experiment": experiment, "variant": variant, "dim": dim, "size": size}
                        about |= {"trial": trial, "seed": 42 + trial}
                        rows += [
                            about | {"level": x} | values(others, experiment, size, x, trial, noise or {})
                            for x in CHOICES.levels(experiment)
                        ]
    return pa.Table.from_pylist(rows)


def values(others, experiment, size, level, trial, noises):
    found = {}
    is_last = level == CHOICES.levels(experiment)[-1]
    for measure in MEASURES:
        response = others.get(f"{experiment}__{measure}", as_claimed(experiment, measure))
        noise = 1 + 0.01 * (trial - 1.5)  # the same at all levels, as in the study, whose trials are paired
        found[measure] = noise * float(response(level))
        found[measure] += is_last * (-1) ** trial * noises.get(f"{experiment}__{measure}", 0.0)
    found["sinkhorn" if size == CHOICES.sizes[0] else "wasserstein"] = None
    return found


def timings(
    *, features: Mapping[str, float] | None = None, points: Mapping[str, int] | None = None, **powers: float
) -> pa.Table:
    """Made-up timings that grow with powers of the rows, and of the features; `points` is of how many each has some."""
    base = {"cfd": 1.0, "wasserstein": 3.0, "sinkhorn": 2.0, "mmd": 2.0, "hausdorff": 2.0, "chamfer": 2.0} | powers
    sizes = (100, 316, 1000, 3162, 10_000)
    rows = [
        {"sweep": "rows", "measure": name, "rows": n, "dim": 128, "seconds": 1e-6 * n**power, "ratio": n ** (power - 1)}
        for name, power in base.items()
        for n in sizes[: (points or {}).get(name)]
    ]
    widths = [
        {"sweep": "dim", "measure": name, "rows": 1000, "dim": d, "seconds": 1e-5 * d**power, "ratio": None}
        for name, power in (dict.fromkeys(base, 1.0) | dict(features or {})).items()
        for d in (16, 64, 256, 1024)[: (points or {}).get(name)]
    ]
    return pa.Table.from_pylist(rows + widths)


def parts(power: float = 2.0):
    """A made-up decomposition in which the distances add up after being raised to a power."""
    pairs = [(1.0, 4.0), (4.0, 4.0), (9.0, 1.0)]
    steps = [
        {"translation": t, "deformation": d, "distance": (t ** (power / 2) + d ** (power / 2)) ** (1 / power)}
        for t, d in pairs
    ]
    return {"displacement": steps, "deformation": steps}


def evidence(*, timed=None, split=None, copied=None, noise=None, **others: Response) -> Evidence:
    """All evidence made up; unless told otherwise, moved copies say what two samples say."""
    trials = Trials(study(noise=noise, **others))
    return Evidence(trials, CHOICES, timed or timings(), split or parts(), copied or trials)
