"""From a seed to a messy data set: the kind of its labels, the kind of its numbers, and how groups lie in strata."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.hunt import labels

Draw = np.random.Generator
Rows = NDArray[Any]


@dataclass(frozen=True)
class Recipe:
    """Everything that a data set is made of."""

    seed: int
    site: str  # the kind of labels
    tissue: str
    design: str
    values: str
    route: str  # how the rows reach the library

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.site} x {self.tissue}, {self.design}, {self.values}, by {self.route}"


@dataclass(frozen=True)
class Messy:
    """Rows and their factors as a user has them; a value may be written in several ways."""

    recipe: Recipe
    rows: Rows
    site: list[Any]
    tissue: list[Any]
    patient: list[Any]

    @property
    def factors(self) -> dict[str, list[Any]]:
        """Values of the factors by name."""
        return {"site": self.site, "tissue": self.tissue, "patient": self.patient}

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Rows without NaN and infinity."""
        return np.asarray(np.isfinite(self.rows.astype(np.float64)).all(axis=1))

    def draw(self, salt: int) -> Draw:
        """A generator for what is done to this data set."""
        return np.random.default_rng([self.recipe.seed, salt])

    def take(self, index: Any) -> "Messy":
        """Some of the rows."""
        columns = [[column[k] for k in index] for column in self.factors.values()]
        return Messy(self.recipe, self.rows[index], *columns)


def choose(options: Sequence[str], seed: int, salt: int) -> str:
    """One of the options; each occurs once before any occurs again."""
    turn, place = divmod(seed, len(options))
    return options[int(np.random.default_rng([salt, turn]).permutation(len(options))[place])]


def draw_recipe(seed: int, routes: Sequence[str]) -> Recipe:
    """What the data set of a seed is made of."""
    kinds = list(labels.KINDS)
    options = kinds, kinds, list(DESIGNS), list(VALUES), routes
    return Recipe(seed, *(choose(option, seed, salt) for salt, option in enumerate(options)))


def make(recipe: Recipe) -> Messy:
    """The data set of a recipe."""
    draw = np.random.default_rng(recipe.seed)
    group, stratum, unit = DESIGNS[recipe.design](draw)
    sites, tissues = (
        labels.draw_levels(kind, int(codes.max()) + 1, draw)
        for kind, codes in ((recipe.site, group), (recipe.tissue, stratum))
    )
    group, stratum = group % len(sites), stratum % len(tissues)
    features = int(draw.integers(1, 5))
    rows = draw.normal(size=(len(group), features)) + 0.7 * draw.normal(size=(9, features))[stratum]
    rows += draw.choice([0.0, 0.4, 3.0]) * draw.normal(size=(len(sites), features))[group]
    shuffled = draw.permutation(len(group))
    rows = VALUES[recipe.values](rows[shuffled], draw)
    site = [labels.write_otherwise(sites[k], draw) for k in group[shuffled]]
    tissue = [labels.write_otherwise(tissues[k], draw) for k in stratum[shuffled]]
    return Messy(recipe, rows, site, tissue, [f"p{k:02d}" for k in unit[shuffled]])


def _random(draw: Draw, rows: int, groups: int, strata: int, units: int = 4) -> tuple[Rows, Rows, Rows]:
    """Codes of groups, strata and units, with at least two groups."""
    group = np.concatenate([[0, 1], draw.integers(groups, size=rows - 2)])
    return group, draw.integers(strata, size=rows), draw.integers(units, size=rows)


def _one_row_groups(draw: Draw) -> tuple[Rows, Rows, Rows]:
    group = np.array([0] * 8 + [1] * 7 + [2, 3])
    return group, draw.integers(2, size=len(group)), draw.integers(3, size=len(group))


def _only_one_row_groups(draw: Draw) -> tuple[Rows, Rows, Rows]:
    return np.arange(3), np.zeros(3, int), draw.integers(2, size=3)


def _partial_overlap(draw: Draw) -> tuple[Rows, Rows, Rows]:
    group, stratum = (np.repeat(codes, 5) for codes in ([0, 1, 1, 2, 2, 3], [0, 0, 1, 1, 2, 2]))
    return group, stratum, draw.integers(3, size=len(group))


def _confounded(draw: Draw) -> tuple[Rows, Rows, Rows]:
    group = np.repeat([0, 1, 2], [6, 5, 1])
    return group, group.copy(), draw.integers(3, size=len(group))


def _one_shared_row(draw: Draw) -> tuple[Rows, Rows, Rows]:
    group, stratum = np.repeat([0, 1], 9), np.repeat([0, 1], 9)
    stratum[0] = 1
    return group, stratum, draw.integers(3, size=len(group))


def _nested_units(draw: Draw) -> tuple[Rows, Rows, Rows]:
    unit = np.repeat(np.arange(8), draw.integers(1, 6, size=8))
    return unit % 2, draw.integers(2, size=len(unit)), unit


def _crossed_units(draw: Draw) -> tuple[Rows, Rows, Rows]:
    unit = np.repeat(np.arange(6), 4)
    return np.tile([0, 1, 0, 2], 6), np.repeat([0, 1], 12), unit


DESIGNS: dict[str, Callable[[Draw], tuple[Rows, Rows, Rows]]] = {
    "random": lambda draw: _random(draw, 40, 3, 3),
    "small": lambda draw: _random(draw, int(draw.integers(3, 8)), 2, 2),
    "many groups": lambda draw: _random(draw, 30, 7, 2),
    "two groups": lambda draw: _random(draw, 25, 2, 4),
    "one-row groups": _one_row_groups,
    "only one-row groups": _only_one_row_groups,
    "partial overlap": _partial_overlap,
    "confounded": _confounded,
    "one shared row": _one_shared_row,
    "nested units": _nested_units,
    "crossed units": _crossed_units,
}


def _with_nan(rows: Rows, draw: Draw) -> Rows:
    rows = rows.copy()
    index = draw.permutation(len(rows))[: max(1, len(rows) // 6)]
    rows[index, draw.integers(rows.shape[1], size=len(index))] = draw.choice([np.nan, np.inf, -np.inf], len(index))
    return rows


def _duplicated(rows: Rows, draw: Draw) -> Rows:
    return rows[draw.integers(max(2, len(rows) // 4), size=len(rows))]


def _constant_feature(rows: Rows, draw: Draw) -> Rows:
    rows = np.column_stack([rows, np.full(len(rows), 0.1)])
    return rows[:, draw.permutation(rows.shape[1])]


def _scales(rows: Rows, draw: Draw) -> Rows:
    return rows * 10.0 ** draw.integers(-6, 7, size=rows.shape[1])


def _outlier(rows: Rows, draw: Draw) -> Rows:
    rows = rows.copy()
    rows[draw.integers(len(rows))] *= 1e6
    return rows


VALUES: dict[str, Callable[[Rows, Draw], Rows]] = {
    "plain": lambda rows, _: rows,
    "float32": lambda rows, _: rows.astype(np.float32),
    "float16": lambda rows, _: rows.astype(np.float16),
    "float32 far away": lambda rows, _: (rows + 4096).astype(np.float32),
    "int8": lambda rows, _: np.clip(20 * rows, -128, 127).astype(np.int8),
    "uint16": lambda rows, _: (3000 * np.abs(rows)).astype(np.uint16),
    "int64": lambda rows, _: (1000 * rows).astype(np.int64),
    "boolean": lambda rows, _: rows > 0,
    "huge offset": lambda rows, _: rows + 1e8,
    "tiny variance": lambda rows, _: 1.0 + 1e-7 * rows,
    "tiny": lambda rows, _: 1e-30 * rows,
    "big": lambda rows, _: 1e60 * rows,
    "constant": lambda rows, _: np.full(rows.shape, 0.1),
    "constant feature": _constant_feature,
    "duplicated rows": _duplicated,
    "several scales": _scales,
    "outlier": _outlier,
    "rows with NaN": _with_nan,
    "Fortran order": lambda rows, _: np.asfortranarray(rows),
    "reversed view": lambda rows, _: np.repeat(rows, 2, axis=0)[::-2, ::-1],
    "big-endian": lambda rows, _: rows.astype(">f8"),
}
