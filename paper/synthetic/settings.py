"""Every choice of the synthetic study, those of the paper and those that it leaves open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from crossfusion import InputError
from paper.checks import check_fraction, check_known, check_positive, check_whole

FIRST_SEED = 42
EXPERIMENTS = ("displacement", "dispersion", "scaling", "topology", "outliers", "imbalance", "covariance")
"""Names of the experiments: five of the paper, then two beyond it."""

VARIANTS = {"topology": ("sigma", "dispersion")}
GRIDS = dict(
    zip(
        EXPERIMENTS,
        ("deltas", "sigmas", "scales", "modes", "outlier_percents", "ratios", "contrasts"),
        strict=True,
    )
)
MOST_MODES = 8
RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {
    "deltas": ("0 or more", lambda x: 0 <= x < inf),
    "sigmas": ("above 0", lambda x: 0 < x < inf),
    "scales": ("above 0", lambda x: 0 < x < inf),
    "modes": (f"1 or an even number up to {MOST_MODES}", lambda x: x == 1 or x in range(2, MOST_MODES + 1, 2)),
    "outlier_percents": ("from 0 to 100", lambda x: 0 <= x <= 100),
    "ratios": ("above 0 and up to 1", lambda x: 0 < x <= 1),
    "contrasts": ("from 0 up to, but not including, 1", lambda x: 0 <= x < 1),
}


@dataclass(frozen=True)
class Settings:
    """What the synthetic study draws and measures.

    Parameters
    ----------
    experiments : tuple of str
        Which of ``EXPERIMENTS`` to run.
    dims, sizes : tuple of int
        Numbers of features, and of rows a group.
    trials : int
        Monte Carlo repetitions; trial t has the seed 42 + t.
    components : int
        Equally weighted components of the mixture P.
    spread : float
        The means of its components are drawn from N(0, spread² I), once a trial.
    sigma : float
        Standard deviation of a component, where it is not what varies.
    deltas : tuple of float
        Shifts along the first feature (displacement).
    base_delta : float
        The shift where something else varies (scaling, outliers, imbalance).
    sigmas : tuple of float
        Standard deviations of a component (dispersion).
    dispersion_delta : float
        The shift while they vary.
    scales : tuple of float
        Common factors of both groups (scaling).
    modes : tuple of int
        Numbers of components, each 1 or even, up to 8 (topology).
    radius : float
        Distance of their means from the origin, where there are two or more.
    outlier_percents : tuple of float
        Percentages of each group's rows that are replaced (outliers).
    tau : float
        Standard deviation of what they are replaced by.
    ratios : tuple of float
        Rows of the second group over those of the first (imbalance).
    contrasts : tuple of float
        What is added to the variance of half of the features and taken from that of the others (covariance).
    trim : float
        Share of each group's rows that the trimmed distance leaves out.
    epsilon : float
        Entropic regularisation of Sinkhorn, in units of the squared cost.
    tolerance : float
        Marginal error to which its plan is found.
    exact_up_to : int
        Largest size at which transport is exact; beyond it is Sinkhorn's.
    """

    experiments: tuple[str, ...] = EXPERIMENTS
    dims: tuple[int, ...] = (32, 128)
    sizes: tuple[int, ...] = (300, 1000)
    trials: int = 50
    components: int = 4
    spread: float = 1.0
    sigma: float = 1.0
    deltas: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
    base_delta: float = 2.0
    sigmas: tuple[float, ...] = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
    dispersion_delta: float = 10.0
    scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0)
    modes: tuple[int, ...] = (1, 2, 4, 8)
    radius: float = 4.0
    outlier_percents: tuple[float, ...] = (0.0, 1.0, 2.0, 5.0)
    tau: float = 5.0
    ratios: tuple[float, ...] = (1.0, 1 / 2, 1 / 4, 1 / 10, 1 / 50)
    contrasts: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9)
    trim: float = 0.05
    epsilon: float = 0.1
    tolerance: float = 1e-3
    exact_up_to: int = 300

    def __post_init__(self) -> None:
        check_known(self.experiments, EXPERIMENTS, "experiment", "the synthetic study")
        for name in ("experiments", "dims", "sizes"):
            _check_distinct(getattr(self, name), name)
        for name in ("trials", "components", "exact_up_to"):
            check_whole(getattr(self, name), name, 0 if name == "exact_up_to" else 1)
        for name in ("sigma", "radius", "tau", "epsilon", "tolerance"):
            check_positive(getattr(self, name), name)
        check_fraction(self.trim, "trim")
        for name in ("spread", "base_delta", "dispersion_delta"):
            if not 0 <= getattr(self, name) < 1e100:
                raise InputError(name, getattr(self, name), "must be a finite number, 0 or more")
        self._check_levels()
        self._check_shapes()

    @classmethod
    def quick(cls, **others: Any) -> "Settings":
        """Small settings for a first look, in which both routes of transport are taken.

        Parameters
        ----------
        **others
            Settings that are to differ from the small ones.

        Returns
        -------
        Settings
            Few trials of small groups.
        """
        small: dict[str, Any] = {"dims": (32,), "sizes": (100, 200), "trials": 5, "exact_up_to": 100}
        return cls(**(small | others))

    def levels(self, experiment: str) -> tuple[float, ...]:
        """Values of the factor that an experiment varies.

        Parameters
        ----------
        experiment : str
            One of ``EXPERIMENTS``.

        Returns
        -------
        tuple of float
            In the order in which results are compared; the first is what others are relative to.
        """
        return tuple(map(float, getattr(self, GRIDS[experiment])))

    def choices(self, experiment: str) -> dict[str, Any]:
        """What the numbers of an experiment depend on, apart from dimension, size and trial.

        Parameters
        ----------
        experiment : str
            One of ``EXPERIMENTS``.

        Returns
        -------
        dict
            Values by the name of the setting.
        """
        mixture = ("components", "spread")
        own = {
            "displacement": (*mixture, "sigma"),
            "dispersion": (*mixture, "dispersion_delta"),
            "scaling": (*mixture, "sigma", "base_delta"),
            "topology": ("sigma", "radius"),
            "outliers": (*mixture, "sigma", "base_delta", "tau"),
            "imbalance": (*mixture, "sigma", "base_delta"),
            "covariance": ("sigma",),
        }
        names = (*own[experiment], "trim")
        return {"levels": list(self.levels(experiment))} | {name: getattr(self, name) for name in names}

    def _check_levels(self) -> None:
        for name, (text, fits) in RANGES.items():
            values = getattr(self, name)
            _check_distinct(values, name)
            if not all(map(fits, values)):
                raise InputError(name, tuple(values), f"must each be {text}")

    def _check_shapes(self) -> None:
        """Refuse dimensions and sizes at which an experiment does not exist."""
        for name in ("dims", "sizes"):
            for number in getattr(self, name):
                check_whole(number, name, 2)
        limit = max(self.radius**2 / self.sigma**2, MOST_MODES / 2 - 1)
        if "topology" in self.experiments and min(self.dims) <= limit:
            raise InputError(
                "dims",
                min(self.dims),
                f"has no room for means at a radius of {self.radius} at equal total dispersion",
                f"take more than {limit:g} features, a smaller radius, or leave out the experiment 'topology'",
            )
        if "imbalance" in self.experiments and round(min(self.sizes) * min(self.ratios)) < 2:
            raise InputError(
                "sizes",
                min(self.sizes),
                f"leaves fewer than two rows at a ratio of {min(self.ratios):g}",
                "take larger sizes, or leave out the experiment 'imbalance'",
            )


def _check_distinct(values: Sequence[Any], name: str) -> None:
    if not values or len(set(values)) < len(values):
        raise InputError(name, tuple(values), "must name at least one value, and each once")
