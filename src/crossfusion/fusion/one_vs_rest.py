"""Distance of each group to all other groups together."""

from collections.abc import Hashable
from dataclasses import replace

import numpy as np

from crossfusion._base import label_text
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


def compare_each_with_rest(design: Design, *, weights: str, dropped: int = 0) -> dict[Hashable, Fusion]:
    """Compute the distance of each group to the rest, within strata."""
    design.check_groups()
    cells, stratum = design.cells, design.stratum
    others = leave_one_out(cells, stratum)
    strata = cells.merge(stratum, int(stratum.max()) + 1)
    borrowed = design.pooled_variance  # of the groups themselves: the rest as a whole varies between groups, too
    found: dict[Hashable, Fusion] = {}
    for code, label in enumerate(design.labels):
        own = np.flatnonzero(design.group == code)
        untouched = np.setdiff1d(np.arange(len(strata)), stratum[own])
        both = concat([cells[own], others[own], strata[untouched]])
        side = np.repeat([0, 1], [len(own), len(own) + len(untouched)])
        where = np.concatenate([stratum[own], stratum[own], untouched])
        kept = np.flatnonzero(both.count > 0)
        sides = [label, f"not {label_text(label)}"]
        pair = Design(both[kept], side[kept], where[kept], sides, borrowed, design.features)
        if design.scale is not None:
            pair = replace(pair, scale=design.scale.share_evenly(len(kept)))
        found[label] = fuse(pair, weights=weights, dropped=dropped)
    return found
