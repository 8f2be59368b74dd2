"""Each group against all others taken together."""

from collections.abc import Hashable

import numpy as np

from crossfusion._base import label_text
from crossfusion.fusion.design import Codes, Design
from crossfusion.fusion.distance import Fusion, fuse
from crossfusion.moments import Moments, concat


def leave_one_out(moments: Moments, part: Codes) -> Moments:
    """For each entry the merge of all others of its part, without subtraction: what comes before plus what is after."""
    before, after = [Moments.empty(moments.dim)] * len(part), [Moments.empty(moments.dim)] * len(part)
    for others, order in ((before, range(len(part))), (after, reversed(range(len(part))))):
        running: dict[int, Moments] = {}
        for i in order:
            others[i] = running.get(int(part[i]), others[i])
            running[int(part[i])] = others[i] + moments[i]
    return concat(before) + concat(after)


def compare_each_with_rest(design: Design, *, weights: str, dropped: int = 0) -> dict[Hashable, Fusion]:
    """Distance of each group to the rest, within parts."""
    design.check_groups()
    cells, part = design.cells, design.part
    others = leave_one_out(cells, part)
    parts = cells.merge(part, int(part.max()) + 1)
    found: dict[Hashable, Fusion] = {}
    for code, label in enumerate(design.labels):
        own = np.flatnonzero(design.group == code)
        untouched = np.setdiff1d(np.arange(len(parts)), part[own])
        both = concat([cells[own], others[own], parts[untouched]])
        side = np.repeat([0, 1], [len(own), len(own) + len(untouched)])
        where = np.concatenate([part[own], part[own], untouched])
        kept = np.flatnonzero(both.count > 0)
        pair = Design(both[kept], side[kept], where[kept], [label, f"not {label_text(label)}"])
        found[label] = fuse(pair, weights=weights, dropped=dropped)
    return found
