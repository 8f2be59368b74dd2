"""Errors of a distance with independent rows, from a second pass over the rows.

The influence of a row z of cell c is v = ‖z − μ_g‖²/T − ‖z − μ_c‖²/W up to a constant, which is
(1/T − 1/W) r + (2/T) a with r = ‖z − μ_c‖² and a = ⟨z − μ_c, μ_c − μ_g⟩. So the variances of r and a in each cell, and
their covariance, are all that is needed from the rows, apart from a sample of them for the size of the quadratic term.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import CodeArray, FloatArray, InputError, arg, map_threads, split_rows
from crossfusion.fusion import Codes, Design, ScaledRows, estimate_mean_errors, split_by_stratum
from crossfusion.inference.intervals import Errors
from crossfusion.inference.scale_errors import ScaleErrors, weigh_features
from crossfusion.moments import PRODUCTS, Moments, sum_influences

MAX_SAMPLED_ROWS = 512  # in all cells together, to estimate traces of squared covariances
MAX_SAMPLED_NUMBERS = 2**17  # in the sample of one cell
MIN_SAMPLED_ROWS = 16  # in each sample, or all rows if there are fewer
MAX_SCANNED_CELLS = 64  # cells that are searched one by one; more are sorted
MIN_CELL_ROWS = 3  # two rows are equally far from their mean, so their spread would seem not to vary
BLOCK_BYTES = 2**16  # of rows that are centered at a time, in memory that is still in the cache
MAX_PAIRED_CELLS = 16  # cells of a stratum whose traces of products are estimated pair by pair


@dataclass(frozen=True)
class LabeledRows:
    """Rows and the cell of each (negative: left out). If all are of one cell, `only` is its code."""

    rows: Any
    codes: CodeArray
    only: int | None = None


def estimate_row_errors(
    chunks: Sequence[LabeledRows],
    sampled: Mapping[int, NDArray[np.float32]],
    design: Design,
    weight: FloatArray,
    taken: FloatArray | None = None,
) -> Errors:
    """Estimate the errors of the distance of a design from its rows in one or several arrays, and a sample of them.

    `taken` is the number of rows of each cell in these arrays, if they hold only some of them.
    """
    cells, stratum = design.cells, design.stratum
    error = estimate_mean_errors(cells, design.borrowed)  # s²/n
    noise = ScaleErrors() if design.scale is None else ScaleErrors(2 / design.scale.freedom)
    if cells.count.min() < MIN_CELL_ROWS:
        raise InputError(
            "level",
            problem=f"needs at least {MIN_CELL_ROWS} rows per group (in its stratum), to see how their spread varies",
            remedy="leave smaller ones out, or pass coarser strata",
        )
    sides = design.compute_sides(weight)
    between, within = sides.between, sides.within
    share = weight / np.bincount(stratum, weights=weight)[stratum]
    bias = float(np.sum(weight * (sides.share - share) * design.estimate_mean_errors()))
    total = within + between
    if not (within > 0 and bias > 0):
        raise InputError(
            "level",
            problem="needs rows that differ within the groups, and strata that groups share",
            remedy=f"without them the standard error is undefined, so leave {arg('level')} out",
        )
    direction, seen = sides.find_direction(cells.mean), cells
    if design.scale is not None:
        seen, direction, chunks = _stretch_features(design, weight, direction, chunks)
    scale = measure_spread(design) ** 2
    with ThreadPoolExecutor(1) as beside, map_threads(1):  # products meanwhile: reading all rows waits for memory
        sums = beside.submit(_sum_chunks, chunks, seen.mean, direction, seen.dispersion, within)
        quadratic = (scale / within) ** 2 * _estimate_quadratic(sampled, design, weight, error * cells.count / scale)
    more = np.ones(len(cells)) if taken is None else cells.count / taken
    second, fourth = (values * more for values in _combine_sums(sums.result(), within / total - 1, 2 * within / total))
    share_of_row = (weight / (cells.count - 1)) ** 2  # a little more than w²/n(n − 1), for cells of a few rows
    linear = share_of_row * second
    of_linear = share_of_row**2 * more * np.maximum(fourth - second**2 / cells.count, 0.0)  # variance of that estimate
    freedom = float(np.sum(cells.count - 1))
    if of_linear.sum() > 0:  # fewer where single rows decide
        freedom = min(freedom, 2 * linear.sum() ** 2 / of_linear.sum())
    return Errors(
        between=np.array((design.shrinkage * between - bias) / within),
        within=np.array(1 + np.sum(weight * sides.share * error) / within),
        total=np.array(total / within),
        linear=np.array(linear.sum()),
        bias=np.array(bias / within),
        quadratic=np.maximum(quadratic, bound_quadratic(bias / within, design.dim * design.rank))
        * noise.inflate(design.rank),
        freedom=np.array(freedom),
    )


def _stretch_features(
    design: Design, weight: FloatArray, direction: FloatArray, chunks: Sequence[LabeledRows]
) -> tuple[Moments, FloatArray, list[LabeledRows]]:
    """Stretch features so that squares count as `weigh_features` says, and products with `direction` as before."""
    stretch = np.sqrt(weigh_features(design, weight))
    back = np.divide(direction, stretch, out=np.zeros_like(direction), where=stretch > 0)
    stretched = [replace(chunk, rows=ScaledRows(chunk.rows, stretch)) for chunk in chunks]
    return design.cells.multiply(stretch), back, stretched


def _sum_chunks(
    chunks: Sequence[LabeledRows], mean: FloatArray, direction: FloatArray, dispersion: FloatArray, unit: float
) -> FloatArray:
    sums = [sum_influences(chunk.rows, chunk.codes, mean, direction, dispersion, unit) for chunk in chunks]
    return np.asarray(np.sum(sums, axis=0))


def bound_quadratic(bias: float, rank: int) -> float:
    """Compute the least variance of a quadratic form with this mean and at most this rank."""
    return 2 * bias**2 / rank


def _combine_sums(sums: FloatArray, of_square: float, of_along: float) -> tuple[FloatArray, FloatArray]:
    """Compute the sums of the second and fourth powers of the influence over the rows of each cell."""
    factor = np.array([comb(i + j, j) * of_square**i * of_along**j for i, j in PRODUCTS])
    power = np.array([i + j for i, j in PRODUCTS])
    terms = sums * factor
    return terms[:, power == 2].sum(axis=1), terms[:, power == 4].sum(axis=1)


def _estimate_quadratic(
    sampled: Mapping[int, NDArray[np.float32]],
    design: Design,
    weight: FloatArray,
    variance: FloatArray,
) -> float:
    """Estimate the variance of the quadratic form of the errors of the means, 2 Σ Q_cc'² tr(Σ_c Σ_c') / n_c n_c'.

    Q is diag(w) − w w'/w_g in each stratum g. Traces are estimated from products of sampled rows. In strata with many
    cells, where pairs of different cells hardly matter, they are bounded by the traces of the cells themselves.
    """
    count = design.cells.count
    own = np.array([_estimate_trace(sampled[c], count[c], variance[c], design.dim) for c in range(len(count))])
    share, of_side = weight / np.bincount(design.stratum, weights=weight)[design.stratum], design.compute_share(weight)
    total = float(np.sum((weight * (of_side - share) / count) ** 2 * own))
    side = np.arange(len(count)) if design.side is None else design.side
    for members in split_by_stratum(design.stratum):
        if len(members) > MAX_PAIRED_CELLS:
            total += _bound_products(
                weight[members], side[members], weight[members] * np.sqrt(own[members]) / count[members]
            )
            continue
        whole = weight[members].sum()
        for a, b in combinations(members, 2):
            products = sampled[a] @ sampled[b].T
            trace = np.mean(products * products) * count[a] * count[b] / (count[a] - 1) / (count[b] - 1)
            form = weight[b] / whole - (of_side[b] if side[a] == side[b] else 0.0)
            total += 2 * float((weight[a] * form) ** 2 / (count[a] * count[b]) * trace)
    return 2 * total


def _bound_products(weight: FloatArray, side: Codes, size: FloatArray) -> float:
    """Bound Σ Q_cc'² tr(Σ_c Σ_c') / n_c n_c' over different cells of a stratum, from w_c √tr(Σ_c²) / n_c of each."""
    product = weight * size
    sides = np.unique(side, return_inverse=True)[1]
    whole, own = (np.bincount(sides, weights=values) for values in (weight, product))
    squares = np.bincount(sides, weights=product**2)
    apart = (own.sum() ** 2 - np.sum(own**2)) / weight.sum() ** 2
    return float(apart + np.sum((1 / whole - 1 / weight.sum()) ** 2 * (own**2 - squares)))


def _estimate_trace(rows: NDArray[np.float32], count: float, variance: float, dim: int) -> float:
    """Estimate the trace of a cell's squared covariance from sampled centered rows; at least that of a sphere."""
    number = len(rows)
    products = rows @ rows.T
    different = float(np.sum(products * products) - np.sum(np.diagonal(products) ** 2)) / (number * (number - 1))
    centered = (variance / count) ** 2  # what centering adds to each
    return float(max((different - centered) * (count / (count - 1)) ** 2, variance**2 / dim))


def sample_rows(chunks: Sequence[LabeledRows], design: Design) -> dict[int, NDArray[np.float32]]:
    """Sample rows of each cell in single precision, centered and divided by the spread of all cells."""
    return {cell: rows for chunk in chunks for cell, rows in _sample_chunk(chunk, design)}


def measure_spread(design: Design) -> float:
    """Compute the root mean square distance of rows from the means of their cells; 1 if it is 0."""
    return float(np.sqrt(design.cells.dispersion.mean())) or 1.0


def _sample_chunk(chunk: LabeledRows, design: Design) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Sample centered rows of each cell; the choice depends only on the order of the cell's own rows."""
    each = max(MIN_SAMPLED_ROWS, min(MAX_SAMPLED_ROWS // len(design.cells), MAX_SAMPLED_NUMBERS // design.cells.dim))
    inverse = 1 / measure_spread(design)
    cells = range(len(design.cells)) if chunk.only is None else [chunk.only]
    positions = _locate_cells(chunk, len(cells))
    for cell in cells:
        own = positions(cell)
        if not len(own):
            continue  # it is in another array
        chosen = np.random.default_rng(0).choice(len(own), min(each, len(own)), replace=False)
        rows = chunk.rows[np.array([own[k] for k in np.sort(chosen).tolist()])]
        dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
        sampled = dense if dense.dtype == np.float32 else np.empty(dense.shape, np.float32)  # dense is a copy
        for start, some in split_rows(dense, BLOCK_BYTES):
            gap = np.subtract(some, design.cells.mean[cell], dtype=np.float64)
            sampled[start : start + len(some)] = np.multiply(gap, inverse, out=gap)
        yield cell, sampled


def _locate_cells(chunk: LabeledRows, cells: int) -> Callable[[int], Sequence[int] | NDArray[np.intp]]:
    """Return a function that gives the indices of the rows of a cell, in order."""
    if chunk.only is not None:
        return lambda _: range(len(chunk.codes))
    if cells <= MAX_SCANNED_CELLS:
        return lambda cell: np.flatnonzero(chunk.codes == cell)
    order = np.argsort(chunk.codes, kind="stable")
    edges = np.searchsorted(chunk.codes[order], np.arange(cells + 1))
    return lambda cell: order[edges[cell] : edges[cell + 1]]
