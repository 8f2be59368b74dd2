"""Rows that are scored by classifiers fitted to other units.

Rows are sampled, evenly from the units of each cell, and sorted by cell and unit, so that the rows of a unit in a cell
(an entry) and the entries of a cell are slices. Whole units are held out, stratified by the cells they are in.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, load, map_threads
from crossfusion.arrays.discriminant import fit_discriminants
from crossfusion.fusion import MIN_UNITS, Codes, Design

PURPOSE = "separability"
MAX_FOLDS = 5
MAX_SAMPLED_ROWS = 20_000  # rows, unless there are more than `MIN_CELL_ROWS` times that many cells
MIN_CELL_ROWS = 10  # sampled from each cell, however many cells there are
MAX_PRODUCTS = 2**33  # rows × features², that fitting costs in each fold
MAX_SHUFFLES = 50  # of units in several cells, until no cell has all of its units in one fold


@dataclass(frozen=True)
class HeldOut:
    """Sampled rows sorted by cell and unit, with the fold in which each is held out.

    `group` and `stratum` are those of the cells; `cell` and `unit` those of the rows.
    """

    rows: FloatArray
    cell: Codes
    unit: Codes
    fold: Codes
    group: Codes
    stratum: Codes
    folds: int

    @cached_property
    def starts(self) -> Codes:
        """First row of each entry."""
        new = (np.diff(self.cell, prepend=-1) != 0) | (np.diff(self.unit, prepend=-1) != 0)
        return np.flatnonzero(new)

    @cached_property
    def entry_cell(self) -> Codes:
        """Cell of each entry."""
        return self.cell[self.starts]

    @cached_property
    def entry_unit(self) -> Codes:
        """Unit of each entry."""
        return self.unit[self.starts]

    @cached_property
    def count(self) -> Codes:
        """Number of rows of each cell."""
        return np.bincount(self.cell, minlength=len(self.group))

    @cached_property
    def block(self) -> Codes:
        """Number of the fold in the stratum of each row."""
        return np.asarray(self.stratum[self.cell] * self.folds + self.fold)

    @cached_property
    def weight(self) -> FloatArray:
        """Weight of each row within its cell and fold: units weigh the same, and so do the rows of a unit."""
        count = np.diff(self.starts, append=len(self.cell))
        share = np.repeat(1 / count, count)
        part = self.cell * self.folds + self.fold
        return np.asarray(share / np.bincount(part, weights=share)[part])

    def average(self, values: FloatArray) -> FloatArray:
        """Average the values of the rows of each entry; NaN is left out."""
        known = ~np.isnan(values)
        sums = np.add.reduceat(np.where(known, values, 0.0), self.starts)
        number = np.add.reduceat(known.astype(np.float64), self.starts)
        return np.asarray(np.divide(sums, number, out=np.full(len(sums), np.nan), where=number > 0))

    def select(self, cells: Codes) -> tuple["HeldOut", Codes]:
        """Some cells alone, renumbered, and the positions of their rows."""
        edges = self.edges
        rows = np.concatenate([np.arange(edges[cell], edges[cell + 1]) for cell in cells.tolist()])
        own = np.repeat(np.arange(len(cells)), self.count[cells])
        unit, fold = self.unit[rows], self.fold[rows]
        return HeldOut(self.rows[:0], own, unit, fold, self.group[cells], self.stratum[cells], self.folds), rows

    @cached_property
    def edges(self) -> Codes:
        """First row of each cell, and the number of rows."""
        return np.searchsorted(self.cell, np.arange(len(self.group) + 1))


def hold_out(rows: Any, cell: Codes, unit: Codes, design: Design, seed: int) -> HeldOut:
    """Sample rows of cells (negative: left out) and split their units into folds."""
    rng = np.random.default_rng(seed)
    chosen = _sample(cell, unit, design, rng)
    chosen = chosen[np.lexsort((chosen, unit[chosen], cell[chosen]))]
    taken = rows[chosen]
    dense = np.asarray(taken if isinstance(taken, np.ndarray) else taken.toarray(), np.float64)
    own, units = cell[chosen].astype(np.int64), np.unique(unit[chosen], return_inverse=True)[1]
    fold = _split(own, units, seed)
    return HeldOut(dense, own, units, fold[units], design.group, design.stratum, int(fold.max()) + 1)


def score_held_out(held: HeldOut) -> FloatArray:
    """Score each row for each group of its stratum, by a classifier fitted to the other folds; NaN elsewhere."""
    scores = np.full((len(held.rows), int(held.group.max()) + 1), np.nan)

    def score(fold: int) -> None:
        out = held.fold == fold
        fitted = fit_discriminants(held.rows[~out], held.cell[~out], len(held.group))
        for stratum in np.unique(held.stratum):
            cells = np.flatnonzero(held.stratum == stratum)
            here = np.flatnonzero(out & (held.stratum[held.cell] == stratum))
            scores[np.ix_(here, held.group[cells])] = fitted.score(held.rows[here], cells)

    with map_threads(held.folds) as each:
        list(each(score, range(held.folds)))
    return scores


def _sample(cell: Codes, unit: Codes, design: Design, rng: np.random.Generator) -> Codes:
    """Sample rows: about as many of each cell, one after the other from each of its units."""
    cells, dim = len(design.cells), design.cells.dim
    most = max(min(MAX_SAMPLED_ROWS, MAX_PRODUCTS // dim**2), MIN_CELL_ROWS * cells)
    order = rng.permutation(np.flatnonzero(cell >= 0))
    if len(order) <= most:
        return order
    order = order[np.lexsort((unit[order], cell[order]))]  # stable: in random order within each entry
    own, turn = cell[order], _count_up(cell[order], unit[order])
    order = order[np.lexsort((rng.random(len(order)), turn, own))]
    own = cell[order]
    position = np.arange(len(order)) - np.searchsorted(own, own)
    return np.asarray(order[position < _find_quota(np.bincount(own, minlength=cells), most)])


def _count_up(*keys: Codes) -> Codes:
    """Count the entries of each run of equal keys from 0."""
    new = np.any([np.diff(key, prepend=-1) != 0 for key in keys], axis=0)
    starts = np.flatnonzero(new)
    return np.asarray(np.arange(len(new)) - starts[np.cumsum(new) - 1])


def _find_quota(count: Codes, most: int) -> int:
    """Find how many rows to take at most from each cell, to have about `most` in all."""
    size = np.sort(count)
    before = np.concatenate([[0], np.cumsum(size)[:-1]])
    left = len(size) - np.arange(len(size))
    fits = before + size * left >= most  # from this cell on, cells are cut
    first = int(np.argmax(fits))
    return max(int((most - before[first]) // left[first]), MIN_CELL_ROWS)


def _split(cell: Codes, unit: Codes, seed: int) -> Codes:
    """Fold of each unit, stratified by cell; for a unit in several cells, by the one with the fewest units."""
    selection: Any = load("sklearn.model_selection", "scikit-learn", "separability", PURPOSE)
    units, cells = np.unique(np.stack([unit, cell]), axis=1)
    number = np.bincount(cells)
    order = np.lexsort((cells, number[cells], units))
    kinds = cells[order][np.unique(units[order], return_index=True)[1]]
    if np.bincount(kinds).max() < MIN_UNITS:
        kinds = np.zeros_like(kinds)
    folds = min(MAX_FOLDS, int(np.bincount(kinds).max()))
    for shuffle in range(MAX_SHUFFLES):
        splitter = selection.StratifiedKFold(folds, shuffle=True, random_state=(seed + shuffle) % 2**32)
        found = np.empty(len(kinds), int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a cell with fewer units than folds is in some folds only
            for fold, (_, held) in enumerate(splitter.split(kinds, kinds)):
                found[held] = fold
        spread = np.unique(np.stack([cells, found[units]]), axis=1)[0]
        if np.bincount(spread)[cells].min() >= MIN_UNITS:
            return found
    raise InputError(
        "units",
        problem="cannot be split so that each group (in its stratum) has units to fit and units to classify",
        remedy="pass more units, or coarser strata",
    )
