"""The points of the study: a fraction of all combinations, dense where drawing is cheap."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from benchmarks.coverage.populations import Patients, Population
from crossfusion import __version__

LARGE = 0.7  # the largest distance: half of the variance lies between the groups
STEPS = (0.0, 1.0, 3.0, 6.0)  # smaller ones, in standard errors
FAR = "far"
POWER = (0.0, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032)  # distances at which power is measured
DRAWN = 1  # number of the way in which populations are drawn: raise it when the same seed gives other rows
QUICK = 200  # draws


@dataclass(frozen=True)
class Task:
    """A population, and what is asked of it at several distances.

    Parameters
    ----------
    section : str
        Of the table: rows, units, lenses, beyond, upper (intervals); level, power, limits (tests).
    population : Population
        What is drawn.
    distances : tuple of float
        How far the groups are apart.
    columns : tuple of str
        Where the distances stand in a table of intervals: about how many standard errors they are, or "far".
    test : {"", "permutation", "dispersion"}
        What is tested; by default intervals are asked for.
    told : {"", "units", "pairs"}
        As what a test knows patients.
    lens : str
        The lens that rows are seen through, by its name in `crossfusion.lens`; none by default.
    fitted : {"same", "others"}
        Whether it is fitted on the rows themselves or on others of the same population, which are not apart.
    """

    section: str
    population: Population
    distances: tuple[float, ...]
    columns: tuple[str, ...] = ()
    test: str = ""
    told: str = ""
    lens: str = ""
    fitted: str = "same"

    def made_with(self, draws: int) -> dict[str, Any]:
        """All that its numbers depend on."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        if not self.lens:
            del plain["lens"], plain["fitted"]
        return plain | {"draws": self.draws(draws), "drawn": DRAWN, "version": __version__}

    def draws(self, draws: int) -> int:
        """How many of so many draws it takes: curves of power and upper limits do with a quarter."""
        return max(draws // 4, 1) if self.section in ("power", "upper") else draws

    def name(self, draws: int) -> str:
        """Name of its file."""
        return f"{self.section}-{sha256(json.dumps(self.made_with(draws)).encode()).hexdigest()[:16]}.json"

    @property
    def cost(self) -> float:
        """How long a draw takes, in no unit."""
        numbers = int(self.population.count.sum()) * self.population.dim
        return (1 + len(self.distances)) * (5e5 + numbers)


def intervals(section: str, population: Population, steps: Iterable[float] = STEPS) -> Task:
    """Intervals at distances of some standard errors, and at a large one."""
    near = {f"{step:g}": round(population.steps(step), 6) for step in steps}
    asked = {column: distance for column, distance in near.items() if distance < 0.8 * LARGE} | {FAR: LARGE}
    return Task(section, population, tuple(asked.values()), tuple(asked))


def two(rows: int, other: int = 0) -> tuple[tuple[int, ...], ...]:
    """Sizes of two groups."""
    return (rows,), (other or rows,)


UNEQUAL = two(50, 150)
FIVE = ((50,),) * 5
FIVE_UNEQUAL = ((30,), (50,), (50,), (80,), (120,))
STRATA = (20, 30, 50), (50, 30, 15)
STRATA_OF_FIVE = (30, 20), (20, 40), (25, 25), (60, 20), (20, 15)
SPREAD = (1.0, 2.0)
NARROW = (2.0, 1.0)  # the smaller group is the wider one
SPREAD_OF_FIVE = (1.0, 1.0, 1.5, 1.0, 2.0)


def rows() -> list[Task]:
    """Independent rows."""
    sizes = {
        "normal": ((50, 8), (50, 128), (50, 1024), (300, 128), (1000, 8)),
        "t5": ((50, 8), (50, 128), (50, 1024), (300, 8), (1000, 128)),
        "dominated": ((50, 8), (50, 1024), (300, 128)),
        "two modes": ((50, 8), (300, 128)),
    }
    plain = [Population(two(n), d, family) for family, shapes in sizes.items() for n, d in shapes]
    one = [
        Population(two(n), d, family, along="one")
        for n, d, family in (
            (50, 8, "t5"),
            (50, 128, "t5"),
            (50, 8, "three modes"),
            (300, 128, "three modes"),
        )
    ]
    unequal = [
        Population(UNEQUAL, 8, "normal", SPREAD),
        Population(UNEQUAL, 8, "t5", SPREAD),
        Population(UNEQUAL, 8, "t5", NARROW),
        Population(UNEQUAL, 8, "three modes", NARROW, "balanced", "one"),
        Population(UNEQUAL, 128, "normal", NARROW, "balanced"),
        Population(UNEQUAL, 128, "t5", NARROW, "balanced"),
        Population(UNEQUAL, 128, "dominated", SPREAD),
    ]
    five = [
        Population(FIVE, 8),
        Population(FIVE, 128, "two modes"),
        Population(FIVE_UNEQUAL, 8, "t5", SPREAD_OF_FIVE, "balanced"),
        Population(FIVE_UNEQUAL, 128, "t5", SPREAD_OF_FIVE),
    ]
    given = [
        Population(STRATA, 8),
        Population(STRATA, 8, "t5", SPREAD),
        Population(STRATA, 128, "dominated"),
        Population(STRATA, 128, "t5", SPREAD, "balanced"),
        Population(STRATA_OF_FIVE, 8, "three modes", SPREAD_OF_FIVE, along="one"),
        Population(STRATA_OF_FIVE, 128, "t5"),
    ]
    large = [Population(two(300), 1024), Population(two(1000), 1024, "two modes"), Population(two(1000), 1024, "t5")]
    drawn = [intervals("rows", population) for population in (*plain, *one, *unequal, *five, *given)]
    return drawn + [intervals("rows", population, (0.0, 3.0)) for population in large]


def units() -> list[Task]:
    """Rows of patients."""
    paired = Patients(paired=True)
    half = Patients(paired=True, shared=0.5)
    drawn = [
        Population(two(200), dim, patients=replace(kind, icc=icc))
        for kind, icc, dim in (
            (Patients(), 0.1, 8),
            (Patients(), 0.1, 128),
            (Patients(), 0.5, 8),
            (Patients(), 0.5, 128),
            (paired, 0.1, 8),
            (paired, 0.5, 8),
            (paired, 0.5, 128),
            (half, 0.1, 128),
            (half, 0.5, 8),
            (half, 0.5, 128),
            (Patients(uneven=True), 0.5, 8),
        )
    ]
    drawn += [
        Population(two(200), 128, patients=replace(half, uneven=True)),
        Population(two(200, 400), 8, "t5", SPREAD, patients=Patients()),
        Population(((100, 60), (60, 140)), 8, patients=Patients()),
    ]
    return [intervals("units", population, (0.0, 1.0, 3.0)) for population in drawn]


def beyond() -> list[Task]:
    """Where intervals need not hold: single rows decide the variance, or groups are apart across what does."""
    drawn = [Population(two(n), d, "elliptical t5") for n, d in ((50, 8), (50, 128), (300, 128))]
    across = [
        Population(two(50), 8, "two modes", along="one"),
        Population(two(50), 128, "two modes", along="one"),
        Population(two(50), 8, "three modes"),
        Population(two(300), 8, "three modes"),
        Population(UNEQUAL, 8, "three modes", NARROW, "balanced"),
        Population(STRATA_OF_FIVE, 8, "three modes", SPREAD_OF_FIVE),
        Population(two(50), 8, "dominated", along="one"),
        Population(two(50), 128, "dominated", along="one"),
        Population(two(300), 128, "dominated", along="one"),
    ]
    return [intervals("beyond", population) for population in (*drawn, *across)]


def upper() -> list[Task]:
    """Upper limits, on which a claim of equivalence rests."""
    few, many = Patients((5,)), Patients()
    drawn = [
        Population(two(50), 8),
        Population(two(50), 128, "dominated"),
        Population(FIVE_UNEQUAL, 8, "t5", SPREAD_OF_FIVE, "balanced"),
        Population(two(200), 8, patients=many),
        Population(two(200), 8, patients=replace(many, uneven=True)),
        Population(two(200), 8, patients=replace(many, paired=True)),
        Population(two(100), 8, patients=few),
        Population(two(100), 128, patients=replace(few, uneven=True)),
    ]
    return [intervals("upper", population, (1.0, 3.0, 6.0)) for population in drawn]


def level() -> list[Task]:
    """Tests of groups that are not apart."""
    exchanged = [
        (Population(two(50), 8), ""),
        (Population(two(50), 128, "t5"), ""),
        (Population(two(300), 128, "two modes"), ""),
        (Population(UNEQUAL, 8, "t5"), ""),
        (Population(two(10, 190), 8), ""),
        (Population(FIVE, 8), ""),
        (Population(FIVE_UNEQUAL, 128, "t5"), ""),
        (Population(STRATA, 8, "three modes"), ""),
        (Population(STRATA_OF_FIVE, 128), ""),
        (Population(two(200), 8, patients=Patients()), "units"),
        (Population(two(200), 128, patients=Patients(icc=0.1)), "units"),
        (Population(two(200), 8, patients=Patients(uneven=True)), "units"),
        (Population(two(100, 200), 8, patients=Patients((10, 20))), "units"),
        (Population(((120, 60), (120, 60)), 8, patients=Patients(uneven=True)), "units"),
        (Population(two(200), 8, patients=Patients(paired=True)), "pairs"),
        (Population(two(200), 8, patients=Patients(paired=True, shared=0.5, uneven=True)), "pairs"),
        (Population(two(60, 340), 128, patients=Patients(paired=True, shared=0.5)), "pairs"),
        (Population(((60,), (60,), (60,)), 8, "t5", patients=Patients(paired=True)), "pairs"),
    ]
    return [Task("level", population, (0.0,), test="permutation", told=told) for population, told in exchanged]


def lenses() -> list[Task]:
    """Intervals and tests of rows seen through a lens.

    Standardized or whitened, rows of a spherical population are as far apart as they were. Through other lenses, the
    distance is known where it is 0.
    """
    small, wide = Population(two(50), 8), Population(two(300), 128)
    patients = Population(two(200), 8, patients=Patients())
    ways = [("unit", "same"), *((lens, way) for lens in ("standardize", "kernel") for way in ("same", "others"))]
    drawn = [
        replace(intervals("lenses", population, (0.0,)), distances=(0.0,), columns=("0",), lens=lens, fitted=way)
        for population in (small, Population(UNEQUAL, 8, "t5"), wide, patients)
        for lens, way in (*ways, ("whiten", "same"))
    ]
    drawn += [
        replace(intervals("lenses", population, (1.0, 3.0)), lens="standardize", fitted=way)
        for population in (small, wide)
        for way in ("same", "others")
    ]
    tested = [
        Task("level", population, (0.0,), test="permutation", told=told, lens=lens, fitted=way)
        for population, told in ((small, ""), (patients, "units"))
        for lens, way in ways
    ]
    return drawn + tested


def limits() -> list[Task]:
    """Tests that are not promised to hold their level, and the test of spreads."""
    nested = Population(two(200), 8, patients=Patients())
    return [
        Task("limits", Population(UNEQUAL, 8, "normal", NARROW), (0.0,), test="permutation"),
        Task("limits", Population(UNEQUAL, 8, "normal", SPREAD), (0.0,), test="permutation"),
        Task("limits", nested, (0.0,), test="permutation"),
        Task("limits", replace(nested, sizes=two(100, 400)), (0.0,), test="permutation", told="units"),
        Task("limits", replace(nested, sizes=((100, 60), (60, 140))), (0.0,), test="permutation", told="units"),
        Task("limits", Population(two(50), 8), (LARGE,), test="dispersion"),
        Task("limits", Population(UNEQUAL, 128, "t5"), (LARGE,), test="dispersion"),
        Task("limits", nested, (LARGE,), test="dispersion", told="units"),
    ]


def power() -> list[Task]:
    """Tests of groups that are."""
    kinds: list[tuple[Patients | None, str]] = [
        (None, ""),
        (Patients(), "units"),
        (Patients(paired=True), "pairs"),
    ]
    return [
        Task("power", Population(two(200), dim, patients=patients), POWER, test="permutation", told=told)
        for patients, told in kinds
        for dim in (8, 128)
    ]


def full() -> list[Task]:
    """All points."""
    return [*rows(), *units(), *lenses(), *beyond(), *upper(), *level(), *limits(), *power()]


def quick() -> list[Task]:
    """A few points, for a first look."""
    return [
        intervals("rows", Population(two(50), 8), (0.0, 3.0)),
        intervals("rows", Population(UNEQUAL, 8, "t5", SPREAD), (0.0, 3.0)),
        intervals("rows", Population(STRATA, 128, "two modes"), (0.0,)),
        intervals("units", Population(two(200), 8, patients=Patients()), (0.0,)),
        Task("lenses", Population(two(50), 8), (0.0,), ("0",), lens="kernel"),
        intervals("upper", Population(two(100), 8, patients=Patients((5,))), (1.0,)),
        Task("level", Population(two(50), 8), (0.0,), test="permutation"),
        Task("level", Population(two(200), 8, patients=Patients()), (0.0,), test="permutation", told="units"),
        Task("power", Population(two(50), 8), (0.0, 0.008, 0.032), test="permutation"),
    ]
