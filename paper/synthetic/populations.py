"""Pairs of groups for each experiment: one factor varies, everything else is the same draw.

All levels of a trial share their random numbers (mixture means, component of each row, noise, places and values of
outliers), so that what differs between two levels is the factor alone. Trial t of an experiment is drawn by a generator
of its own, seeded by (42 + t, experiment, dim, size): what is drawn does not depend on what else is asked for.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from paper.synthetic.settings import EXPERIMENTS, FIRST_SEED, Settings

Rows = NDArray[np.float64]
Pair = tuple[Rows, Rows]
Maker = Callable[[float], Pair]


def draw_pairs(
    settings: Settings, experiment: str, dim: int, size: int, trial: int, *, variant: str = ""
) -> Iterator[tuple[float, Pair]]:
    """The two groups of one trial, level by level.

    Parameters
    ----------
    settings : Settings
        Every choice.
    experiment : str
        One of ``EXPERIMENTS``.
    dim, size : int
        Features, and rows of the first group.
    trial : int
        From 0.
    variant : str
        For topology "sigma" or "dispersion", what is the same at all levels; else empty.

    Yields
    ------
    tuple
        Level, and the pair of arrays.
    """
    options = {"variant": variant} if variant else {}
    maker = MAKERS[experiment](settings, _generator(experiment, dim, size, trial), size, dim, **options)
    for level in settings.levels(experiment):
        yield level, maker(level)


def trial_seed(trial: int) -> int:
    """Seed of a trial, the paper's schedule."""
    return FIRST_SEED + trial


def _generator(experiment: str, dim: int, size: int, trial: int) -> np.random.Generator:
    return np.random.default_rng([trial_seed(trial), EXPERIMENTS.index(experiment), dim, size])


class _Mixture:
    """Both groups' draws of the mixture P, before shift and spread."""

    def __init__(self, settings: Settings, rng: np.random.Generator, size: int, dim: int) -> None:
        means = settings.spread * rng.standard_normal((settings.components, dim))
        self.centres = [means[rng.integers(settings.components, size=size)] for _ in range(2)]
        self.noise = [rng.standard_normal((size, dim)) for _ in range(2)]

    def pair(self, sigma: float, delta: float) -> Pair:
        a, b = (centre + sigma * noise for centre, noise in zip(self.centres, self.noise, strict=True))
        b[:, 0] += delta
        return a, b


def _displacement(settings: Settings, rng: np.random.Generator, size: int, dim: int) -> Maker:
    mixture = _Mixture(settings, rng, size, dim)
    return lambda delta: mixture.pair(settings.sigma, delta)


def _dispersion(settings: Settings, rng: np.random.Generator, size: int, dim: int) -> Maker:
    mixture = _Mixture(settings, rng, size, dim)
    return lambda sigma: mixture.pair(sigma, settings.dispersion_delta)


def _scaling(settings: Settings, rng: np.random.Generator, size: int, dim: int) -> Maker:
    a, b = _Mixture(settings, rng, size, dim).pair(settings.sigma, settings.base_delta)
    return lambda scale: (scale * a, scale * b)


def _topology(settings: Settings, rng: np.random.Generator, size: int, dim: int, *, variant: str = "sigma") -> Maker:
    """One cloud, and one whose rows go to one of several means by where a uniform number falls."""
    place = rng.random(size)
    a, b = (rng.standard_normal((size, dim)) for _ in range(2))

    def pair(modes: float) -> Pair:
        means = symmetric_means(int(modes), settings.radius, dim)
        taken = np.sum(means**2) / len(means) if variant == "dispersion" else 0.0
        sigma = np.sqrt(settings.sigma**2 - taken / dim)
        return settings.sigma * a, means[(place * len(means)).astype(int)] + sigma * b

    return pair


def symmetric_means(modes: int, radius: float, dim: int) -> Rows:
    """Means that sum to zero: the origin if there is one, else pairs on either side of it along the first features."""
    means = np.zeros((modes, dim))
    for k in range(modes // 2):
        means[2 * k, k], means[2 * k + 1, k] = radius, -radius
    return means


def _outliers(settings: Settings, rng: np.random.Generator, size: int, dim: int) -> Maker:
    """Rows in a random order become outliers, so that those of a level are among those of the next."""
    groups = _Mixture(settings, rng, size, dim).pair(settings.sigma, settings.base_delta)
    orders = [rng.permutation(size) for _ in groups]
    far = [settings.tau * rng.standard_normal((size, dim)) for _ in groups]

    def pair(percent: float) -> Pair:
        count = round(percent * size / 100)
        a, b = (rows.copy() for rows in groups)
        for rows, order, others in zip((a, b), orders, far, strict=True):
            rows[order[:count]] = others[:count]
        return a, b

    return pair


def _imbalance(settings: Settings, rng: np.random.Generator, size: int, dim: int) -> Maker:
    a, b = _Mixture(settings, rng, size, dim).pair(settings.sigma, settings.base_delta)
    return lambda ratio: (a, b[: round(size * ratio)])


def _covariance(settings: Settings, rng: np.random.Generator, size: int, dim: int) -> Maker:
    a, b = (settings.sigma * rng.standard_normal((size, dim)) for _ in range(2))
    sign = np.zeros(dim)  # of an odd number of features the middle one keeps its variance
    sign[: dim // 2], sign[dim - dim // 2 :] = 1, -1
    return lambda contrast: (a, b * np.sqrt(1 + contrast * sign))


MAKERS: dict[str, Callable[..., Maker]] = dict(
    zip(
        EXPERIMENTS,
        (_displacement, _dispersion, _scaling, _topology, _outliers, _imbalance, _covariance),
        strict=True,
    )
)
