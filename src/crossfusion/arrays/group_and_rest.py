"""Distance of each group to all others together, with intervals from rows or units."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FloatArray, align_index, check_level, column_names
from crossfusion.arrays.distance import KeptCells, keep_cells, label_finite_rows, rescale
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.fusion import (
    MIN_UNITS,
    Fusion,
    GroupAndRest,
    check_min_units,
    check_scale,
    compare_each_with_rest,
    fuse,
    split_each_from_rest,
)
from crossfusion.inference import (
    LabeledRows,
    add_interval,
    compare_each_with_rest_by_units,
    estimate_row_errors,
    sample_rows,
)

MAX_NUMBERS = 2**31  # groups × rows × features that the errors of rows are computed from; of more, some rows
MIN_TAKEN_ROWS = 1_000  # of each group (in a stratum), or all rows if there are fewer


def one_vs_rest(
    x: Any,
    labels: Any,
    *,
    given: Any = None,
    weights: str = "pooled",
    level: float | None = None,
    units: Any = None,
    min_units: int = MIN_UNITS,
    scale: str | None = None,
) -> dict[Hashable, Fusion]:
    """Compute the Cross-Fusion Distance between each group of an array and all other groups together.

    Parameters
    ----------
    x : array of shape (rows, dim), or table
        The rows.
    labels : array of shape (rows,)
        The group of each row, or the name of a column if `x` is a pandas, Polars or PyArrow table; the same goes for
        `given` and `units`. Named columns are not features.
    given : array of shape (rows,), optional
        The stratum of each row, to adjust for: groups are compared within strata.
    weights : {"pooled", "balanced"}
        "pooled" weights the two sides by their number of rows, "balanced" equally.
    level : float, optional
        Confidence level of the intervals, such as 0.95. By default, no intervals are computed.
    units : array of shape (rows,), optional
        The unit of each row, such as the patient, if rows of the same unit are dependent: `unbiased` and the intervals
        then count units instead of rows.
    min_units : int
        With `units` or `level`, the minimum number of units per group (and stratum), at least 2. Smaller groups are
        left out, also from the rest, and named in `excluded`. An interval from rows needs at least 3 rows per group.
    scale : {"features"}, optional
        "features" divides each feature by its standard deviation within the groups (and strata), so that features count
        the same in each comparison. Features that do not vary within groups are left out and named in `constant`.

    Returns
    -------
    dict
        A Fusion for each group.

    Notes
    -----
    The rest is a mixture of the other groups in proportion to their rows. Intervals describe this mixture: they include
    the error of each group's mean, but not the variation from having observed these groups rather than others. They
    hold for each group separately, not for all of them jointly.

    Without `units`, each interval takes one pass over the rows, or over a sample of them if there are many groups: all
    other numbers come from all rows.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> x, labels = np.random.default_rng(0).normal(size=(900, 16)), np.repeat(["A", "B", "C"], 300)
    >>> x[600:] += 0.5
    >>> found = cf.one_vs_rest(x, labels, level=0.95)
    >>> {group: f"{fusion.unbiased:.3f}" for group, fusion in found.items()}
    {'A': '0.015', 'B': '0.011', 'C': '0.053'}
    """
    check_level(level)
    check_min_units(min_units)
    check_scale(scale)
    x, labels, given, units = take_columns(x, labels=labels, given=given, units=units)
    labels, given, units = align_index("x", x, labels=labels, given=given, units=units)
    sample = label_finite_rows(x, labels, given, units, column_names(x) or None)
    if level is None and units is None:
        return compare_each_with_rest(rescale(sample.design, weights, scale), weights=weights)
    cells = keep_cells(sample, level, min_units).rescale(weights, scale)
    if cells.units is not None:
        found = compare_each_with_rest_by_units(cells.units, cells.design, weights=weights, level=level)
    else:
        found = _compare_rows(cells, weights, level)
    return {label: replace(fusion, excluded=cells.excluded) for label, fusion in found.items()}


def _compare_rows(cells: KeptCells, weights: str, level: float | None) -> dict[Hashable, Fusion]:
    """Compute the distances with errors of independent rows."""
    sampled = sample_rows(cells.chunks, cells.design)
    chunks, taken = _take_rows(cells)
    return {
        pair.merged.labels[0]: _add_row_errors(pair, chunks, sampled, taken, weights, level)
        for pair in split_each_from_rest(cells.design)
    }


def _add_row_errors(
    pair: GroupAndRest,
    chunks: Sequence[LabeledRows],
    sampled: Mapping[int, NDArray[np.float32]],
    taken: FloatArray,
    weights: str,
    level: float | None,
) -> Fusion:
    fusion = fuse(pair.merged, weights=weights)
    if fusion.distance is None:
        return fusion
    errors = estimate_row_errors(chunks, sampled, pair.cells, pair.weigh(weights), taken)
    return add_interval(fusion, errors, level)


def _take_rows(cells: KeptCells) -> tuple[list[LabeledRows], FloatArray]:
    """Take all rows, or some of each cell if every group would read too many; count those of each cell."""
    design, (chunk,) = cells.design, cells.chunks
    size = len(design.labels) * design.cells.dim
    most = max(MAX_NUMBERS // (size * len(design.cells)), MIN_TAKEN_ROWS)
    if len(chunk.codes) * size <= MAX_NUMBERS or design.cells.count.max() <= most:
        return [chunk], design.cells.count
    order = np.random.default_rng(0).permutation(np.flatnonzero(chunk.codes >= 0))
    order = order[np.argsort(chunk.codes[order], kind="stable")]
    codes = chunk.codes[order]
    position = np.arange(len(order)) - np.searchsorted(codes, codes)
    chosen = np.sort(order[position < most])
    return [LabeledRows(chunk.rows[chosen], chunk.codes[chosen])], np.minimum(design.cells.count, most)
