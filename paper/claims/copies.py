"""Another reading of the paper's experiments: the second group is the first one's very sample, moved.

The paper writes B ~ P + Δ, two samples. Were B a moved copy of A, then Wasserstein, Hausdorff and Chamfer would all
equal δ as long as every point's nearest partner is its own copy: one straight line, and constant while the spread
varies, which is what the paper says of its figure. Claims that fail for two samples are looked at in this reading too.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import distance
from paper.arrays import FloatArray
from paper.synthetic import Settings

if TYPE_CHECKING:
    import pyarrow as pa

EXPERIMENTS = ("displacement", "dispersion", "outliers")
MEASURES = ("cfd", "wasserstein", "mmd", "hausdorff", "chamfer")
ROWS, TRIALS = 300, 5
SECOND = f" If not throughout, also with B a moved copy of A ({ROWS} rows, {TRIALS} trials)."


def run_copies(choices: Settings, *, rows: int = ROWS, trials: int = TRIALS) -> "pa.Table":
    """Three experiments with moved copies, in the columns of the synthetic study.

    Parameters
    ----------
    choices : Settings
        Dimensions, levels and mixture.
    rows, trials : int
        Rows of each group, and repetitions.

    Returns
    -------
    pyarrow.Table
        A row a trial and level.
    """
    import pyarrow as pa

    found = []
    for experiment in EXPERIMENTS:
        for dim in choices.dims:
            for trial in range(trials):
                about = {"experiment": experiment, "variant": "", "dim": dim, "size": rows, "trial": trial}
                for level, (a, b) in _pairs(choices, experiment, dim, rows, trial):
                    values = {name: distance(name, a, b) for name in MEASURES}
                    found.append(about | {"level": level, "sinkhorn": np.nan} | values)
    return pa.Table.from_pylist(found)


def _pairs(
    choices: Settings, experiment: str, dim: int, size: int, trial: int
) -> Iterator[tuple[float, tuple[FloatArray, FloatArray]]]:
    """The cloud and its moved copy, level by level, from one draw."""
    rng = np.random.default_rng([42 + trial, dim])
    centres = choices.spread * rng.standard_normal((choices.components, dim))
    centre, noise = centres[rng.integers(choices.components, size=size)], rng.standard_normal((size, dim))
    orders = [rng.permutation(size) for _ in range(2)]
    far = [choices.tau * rng.standard_normal((size, dim)) for _ in range(2)]
    for level in choices.levels(experiment):
        pair = _move(centre, noise, **_factors(choices, experiment, level))
        count = round(level * size / 100) if experiment == "outliers" else 0
        for rows, order, others in zip(pair, orders, far, strict=True):
            rows[order[:count]] = others[:count]
        yield level, pair


def _factors(choices: Settings, experiment: str, level: float) -> dict[str, Any]:
    if experiment == "displacement":
        return {"sigma": choices.sigma, "delta": level}
    if experiment == "dispersion":
        return {"sigma": level, "delta": choices.dispersion_delta}
    return {"sigma": choices.sigma, "delta": choices.base_delta}


def _move(centre: FloatArray, noise: FloatArray, *, sigma: float, delta: float) -> tuple[FloatArray, FloatArray]:
    a = centre + sigma * noise
    b = a.copy()
    b[:, 0] += delta
    return a, b
