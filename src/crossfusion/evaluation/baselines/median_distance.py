"""The median distance between rows, exact, without a list of all distances."""

import math
from typing import Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.evaluation.baselines.pair_distances import map_pairs

MAX_LISTED_PAIRS = 2**20  # pairs that are simply listed
PAIRS_PER_ROW = 8  # pairs looked at, for each row, to guess where the median lies
TIE_TOLERANCE = 1e-12  # relative difference of squared distances that is rounding
GATHER_SIZE = 2**19  # numbers of the sampled pairs in memory at a time

BracketCounts = tuple[
    int, int, int, FloatArray
]  # below the bracket, at its lower end, at its upper end, between the ends


def find_median_distance(a: FloatArray, b: FloatArray) -> float:
    """Median of the distances of all pairs i < j of the pooled rows.

    A sample of pairs brackets the median, one pass counts the pairs below the bracket and lists those inside. If the
    bracket missed, it grows: the result does not depend on the sample. Distances tied with an end of the bracket are
    counted rather than listed, so that data on a grid need no more memory than others.
    """
    number = len(a) + len(b)
    pairs = number * (number - 1) // 2
    ranks = (pairs - 1) // 2, pairs // 2
    sample = np.sort(_sample_pairs(np.concatenate([a, b]))) if pairs > MAX_LISTED_PAIRS else np.empty(0)
    spread = 2.5 / math.sqrt(max(len(sample), 1))  # five standard errors of the share of pairs below the median
    while True:
        low, high = _find_bracket(sample, spread)
        found = _count_bracket(a, b, low, high)
        if found[0] <= ranks[0] and ranks[1] < sum(found[:3]) + len(found[3]):
            return sum(math.sqrt(_select_rank(rank, found, low, high)) for rank in ranks) / 2
        spread *= 4


def _find_bracket(sample: FloatArray, spread: float) -> tuple[float, float]:
    first, last = (math.floor(len(sample) * (0.5 + side * spread)) for side in (-1, 1))
    low = float(sample[first]) if first > 0 else 0.0
    return low, float(sample[last]) if last < len(sample) else math.inf


def _count_bracket(a: FloatArray, b: FloatArray, low: float, high: float) -> BracketCounts:
    def classify(squares: FloatArray) -> BracketCounts:
        reached = squares >= low * (1 - TIE_TOLERANCE)
        near = squares[reached & (squares <= high * (1 + TIE_TOLERANCE))]
        at_low = near <= low * (1 + TIE_TOLERANCE)
        at_high = ~at_low & (near >= high * (1 - TIE_TOLERANCE))
        below, low_ties, high_ties = (int(np.count_nonzero(mask)) for mask in (~reached, at_low, at_high))
        return below, low_ties, high_ties, near[~(at_low | at_high)]

    parts = [part for side in map_pairs(classify, a, b) for part in side]
    below, at_low, at_high = (sum(part[k] for part in parts) for k in range(3))
    return below, at_low, at_high, np.concatenate([part[3] for part in parts])


def _select_rank(rank: int, found: BracketCounts, low: float, high: float) -> float:
    """Squared distance of a rank inside the bracket."""
    below, at_low, _, between = found
    place = rank - below - at_low
    if place < 0:
        return low
    return float(np.partition(between, place)[place]) if place < len(between) else high


def _sample_pairs(rows: FloatArray) -> FloatArray:
    """Squared distances of random pairs of different rows."""
    number, draw = len(rows), np.random.default_rng(0)
    i = draw.integers(number, size=PAIRS_PER_ROW * number)
    j = (i + draw.integers(1, number, size=len(i))) % number
    step = max(1, GATHER_SIZE // rows.shape[1])

    def squares(start: int) -> Any:
        gap = rows[i[start : start + step]] - rows[j[start : start + step]]
        return np.einsum("ij,ij->i", gap, gap)

    return np.concatenate([squares(start) for start in range(0, len(i), step)])
