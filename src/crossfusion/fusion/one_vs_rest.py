"""Distance of each group to all other groups together."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from crossfusion._base import FloatArray, label_text
from crossfusion.fusion.design import Codes, Design
from crossfusion.fusion.distance import Fusion, fuse
from crossfusion.moments import Moments, concat


def leave_one_out(moments: Moments, stratum: Codes) -> Moments:
    """Merge, for each entry, all others of its stratum, without subtraction: those before it plus those after it."""
    before, after = [Moments.empty(moments.dim)] * len(stratum), [Moments.empty(moments.dim)] * len(stratum)
    for others, order in ((before, range(len(stratum))), (after, reversed(range(len(stratum))))):
        running: dict[int, Moments] = {}
        for i in order:
            others[i] = running.get(int(stratum[i]), others[i])
            running[int(stratum[i])] = others[i] + moments[i]
    return concat(before) + concat(after)


@dataclass(frozen=True)
class GroupAndRest:
    """A group and the rest: two groups whose cells are merged, and the cells themselves with their sides.

    `place` holds the merged cell of each cell.
    """

    merged: Design
    cells: Design
    place: Codes

    def weigh(self, scheme: str) -> FloatArray:
        """Weigh the cells: the merged ones by the scheme, and their parts by their rows."""
        count = self.cells.cells.count / self.merged.cells.count[self.place]
        return np.asarray(self.merged.weights(scheme)[self.place] * count)


def split_each_from_rest(design: Design) -> Iterator[GroupAndRest]:
    """Merge, for each group, all other groups within strata."""
    design.check_groups()
    cells, stratum = design.cells, design.stratum
    others = leave_one_out(cells, stratum)
    strata = cells.merge(stratum, int(stratum.max()) + 1)
    borrowed = design.pooled_variance  # of the groups themselves: the rest as a whole varies between groups, too
    for code, label in enumerate(design.labels):
        own = np.flatnonzero(design.group == code)
        untouched = np.setdiff1d(np.arange(len(strata)), stratum[own])
        both = concat([cells[own], others[own], strata[untouched]])
        side = np.repeat([0, 1], [len(own), len(own) + len(untouched)])
        where = np.concatenate([stratum[own], stratum[own], untouched])
        kept = np.flatnonzero(both.count > 0)
        labels = [label, f"not {label_text(label)}"]
        merged = Design(both[kept], side[kept], where[kept], labels, borrowed, design.features)
        if design.scale is not None:
            merged = replace(merged, scale=design.scale.share_evenly(len(kept)))
        table = np.zeros((2, len(strata)), int)
        table[merged.group, merged.stratum] = np.arange(len(kept))
        place = table[(design.group != code).astype(int), stratum]
        yield GroupAndRest(merged, replace(design, side=place), place)


def compare_each_with_rest(design: Design, *, weights: str, dropped: int = 0) -> dict[Hashable, Fusion]:
    """Compute the distance of each group to the rest, within strata."""
    return {
        pair.merged.labels[0]: fuse(pair.merged, weights=weights, dropped=dropped)
        for pair in split_each_from_rest(design)
    }
