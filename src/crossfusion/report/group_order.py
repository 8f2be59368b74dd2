"""An order of groups in which those that lie close stand side by side."""

import numpy as np

from crossfusion._base import FloatArray


def order_by_clusters(distance: FloatArray) -> list[int]:
    """Leaves of an average-linkage tree, each joined to the side of the other cluster that it is closer to.

    Undefined distances count as the largest, so that groups which nothing compares stand apart.
    """
    finite = np.isfinite(distance)
    apart = np.where(finite, distance, distance[finite].max(initial=0.0) + 1.0)
    leaves = [[k] for k in range(len(apart))]
    linkage = apart.copy()
    np.fill_diagonal(linkage, np.inf)
    for _ in range(len(apart) - 1):
        a, b = sorted(int(k) for k in np.unravel_index(np.argmin(linkage), linkage.shape))
        sizes = len(leaves[a]), len(leaves[b])
        merged = (sizes[0] * linkage[a] + sizes[1] * linkage[b]) / sum(sizes)
        leaves[a], leaves[b] = _join_leaves(leaves[a], leaves[b], apart), []
        linkage[a], linkage[:, a] = merged, merged
        linkage[b] = linkage[:, b] = linkage[a, a] = np.inf
    return max(leaves, key=len)


def _join_leaves(first: list[int], second: list[int], apart: FloatArray) -> list[int]:
    """Two rows of leaves end to end, turned so that the ends which meet are the closest."""
    turned = [(a, b) for a in (first, first[::-1]) for b in (second, second[::-1])]
    a, b = min(turned, key=lambda pair: apart[pair[0][-1], pair[1][0]])
    return [*a, *b]
