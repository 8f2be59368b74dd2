"""Cross-Fusion Distance of arrays, computed from the moments of their groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossfusion._base import (
    NAN_OPTIONS,
    CodeArray,
    FiniteCheck,
    FloatArray,
    InputError,
    NonFiniteError,
    RowLens,
    align_index,
    apply_lens,
    arg,
    as_lens_rows,
    as_rows,
    check_fraction,
    check_length,
    check_lens,
    check_level,
    check_no_labels,
    check_option,
    check_same_dim,
    check_some_rows,
    factors,
    find_finite_rows,
    match_columns,
    warn_about_lost_groups,
)
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.fusion import (
    MIN_UNITS,
    SPREAD_CAUTION,
    Codes,
    Design,
    Exclusion,
    FeatureScale,
    Fusion,
    ScaledRows,
    caution_about_shape,
    check_min_units,
    check_scale,
    fuse,
    join_cautions,
    leave_out_cells,
)
from crossfusion.inference import (
    MIN_CELL_ROWS,
    LabeledRows,
    UnitMoments,
    add_interval,
    add_unit_errors,
    estimate_row_errors,
    measure_spread,
    sample_rows,
)
from crossfusion.moments import Moments, concat, reduce_groups, squared_distance_to_mean


def cfd(
    a: Any,
    b: Any = None,
    *,
    labels: Any = None,
    given: Any = None,
    weights: str = "pooled",
    trim: float = 0.0,
    nan: str = "raise",
    level: float | None = None,
    units: Any = None,
    min_units: int = MIN_UNITS,
    scale: str | None = None,
    lens: RowLens | None = None,
) -> Fusion:
    r"""Compute the Cross-Fusion Distance between two arrays, or between the labeled groups of one array.

    .. math:: \mathrm{CFD} = -\log\frac{\sum_c w_c\,\sigma_c^2}{\sigma^2}
              = \log\Bigl(1 + \frac{\sum_c w_c\,\lVert\mu_c-\mu\rVert^2}{\sum_c w_c\,\sigma_c^2}\Bigr)

    Parameters
    ----------
    a : array of shape (rows, dim)
        Rows of the first group, or of all groups if `labels` is given.
    b : array of shape (rows, dim), optional
        Rows of the second group.
    labels : array of shape (rows,), optional
        The group of each row of `a`, or the name of a column if `a` is a pandas, Polars or PyArrow table; the same goes
        for `given` and `units`. Named columns are not features.
    given : array of shape (rows,), optional
        The stratum of each row of `a`, to adjust for: groups are compared within strata.
    weights : {"pooled", "balanced"}
        "pooled" weights groups by their number of rows, as in the paper; "balanced" weights them equally.
    trim : float
        Share of rows to drop from each group (and stratum): those farthest from its mean.
    nan : {"raise", "drop"}
        Whether rows with NaN or infinite values raise an error or are dropped.
    level : float, optional
        Confidence level of the interval, such as 0.95. By default, no interval is computed.
    units : array of shape (rows,), or a pair of arrays for `a` and `b`, optional
        The unit of each row, such as the patient, if rows of the same unit are dependent: `unbiased` and the interval
        then count units instead of rows. A unit may have rows in several groups.
    min_units : int
        With `units` or `level`, the minimum number of units per group (and stratum), at least 2. Smaller groups are
        left out and named in `excluded`; all numbers describe the remaining groups. An interval from rows needs at
        least 3 rows per group.
    scale : {"features"}, optional
        "features" divides each feature by its standard deviation within the compared groups (and strata), at these
        weights, so that features count the same: log(1 + mean_j B_j / W_j). Features that do not vary within groups
        are left out and named in `constant`. By default, features keep their units.
    lens : crossfusion.lens.Lens, optional
        A map that is applied to the rows first. The mapped rows are held in memory; `summarize` needs only a chunk.

    Returns
    -------
    Fusion
        Plug-in and unbiased CFD with the variances they are computed from, and the interval if `level` is given.

    Notes
    -----
    The rows are read once. CFD compares means relative to the spread within groups; it does not detect differences in
    shape. Without any shift, the plug-in CFD is still about (groups - 1) / rows; ``unbiased`` is about 0.

    The interval reads the rows once more. It inverts a test of each possible CFD, so it stays valid near zero, where
    its lower limit is 0. Without `units`, it assumes independent rows; for tiles of a few slides, it is then far too
    narrow. It holds for the CFD at the observed group weights. Units take about five times the memory of their moments:
    40 bytes × units × dim for each group they are in.

    Trimming reads the rows three times. It removes spread as well as outliers, so the CFD of groups without outliers
    grows: slightly with many features, more with few. Compare trimmed values only with trimmed values.

    References
    ----------
    .. [1] X. Zhang, J. Zhang, X. Song, "Cross-Fusion Distance: a novel metric for measuring fusion and separability
       between data groups in representation space", 2026.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(500, 64)), rng.normal(0.5, size=(500, 64))
    >>> fusion = cf.cfd(a, b)
    >>> f"{fusion.distance:.4f} {fusion.unbiased:.4f}"
    '0.0615 0.0605'
    >>> cf.cfd(np.concatenate([a, b]), labels=["a"] * 500 + ["b"] * 500).distance == fusion.distance
    True
    """
    check_fraction(trim, "trim")
    check_option(nan, NAN_OPTIONS, "nan")
    check_level(level)
    check_min_units(min_units)
    check_scale(scale)
    if trim and scale is not None:
        raise InputError(
            "trim",
            problem=f"does not go with {arg('scale')}: the farthest rows depend on the scale of the features",
            remedy="divide the features by their standard deviations first, or leave it out",
        )
    check_lens(lens, adds_factors=False)
    if trim and not (level is None and units is None):
        raise InputError(
            "trim",
            problem=f"cannot be combined with {arg('level')} or {arg('units')}, as it hides how far the means err",
            remedy="leave it out",
        )
    if (b is None) == (labels is None):
        raise InputError(
            problem="there is nothing to compare" if b is None else "b and labels do not go together",
            remedy="pass two arrays, cfd(a, b), or one array with labels, cfd(x, labels=...)",
        )
    if b is None:
        a, labels, given, units = take_columns(a, labels=labels, given=given, units=units)
        labels, given, units = align_index("x", a, labels=labels, given=given, units=units)
        rows, features = as_lens_rows(a, "x", lens)
        return _compare_labels(rows, labels, given, units, weights, trim, nan, level, features, min_units, scale)
    if given is not None:
        raise InputError("given", problem="goes with labels", remedy="call cfd(x, labels=..., given=...)")
    if isinstance(units, tuple | list) and len(units) == 2:
        units = [align_index(name, x, units=unit)[0] for name, x, unit in zip("ab", (a, b), units, strict=True)]
    first = as_rows(a, "a")
    check_no_labels(b, first.shape[0])
    arrays = {"a": first, "b": as_rows(b, "b")}
    check_same_dim({name: values.shape[1] for name, values in arrays.items()})
    arrays["b"] = match_columns(a, b, arrays["b"])
    named = {name: apply_lens(lens, a, values, name) for name, values in arrays.items()}
    rows, features = {name: mapped for name, (mapped, _) in named.items()}, named["a"][1]
    reduced = [_reduce_trimmed(values, None, 1, trim, nan, name) for name, values in rows.items()]
    for name, (moments, _) in zip(rows, reduced, strict=True):
        check_some_rows(float(moments.count[0]), name)
    design = Design(
        concat([moments for moments, _ in reduced]),
        np.arange(2),
        np.zeros(2, int),
        list(rows),
        features=features,
    )
    every_dropped = sum(dropped for _, dropped in reduced)
    if level is None and units is None:
        return fuse(rescale(design, weights, scale), weights=weights, dropped=every_dropped)
    chunks = [
        _label_group(values, cell, bool(dropped))
        for cell, (values, (_, dropped)) in enumerate(zip(rows.values(), reduced, strict=True))
    ]
    sample = Sample(design, chunks, _encode_units(units, rows))
    asked: dict[str, Any] = {"level": level, "min_units": min_units, "scale": scale}
    return _compare_sample(sample, weights=weights, dropped=every_dropped, **asked)


def _compare_labels(
    rows: Any,
    labels: Any,
    given: Any,
    units: Any,
    weights: str,
    trim: float,
    nan: str,
    level: float | None,
    features: Sequence[str] | None,
    min_units: int,
    scale: str | None,
) -> Fusion:
    """Compute the distance between the groups of one array."""
    sample, dropped = label_rows(rows, labels, given, units, trim, nan, features)
    if level is None and units is None:
        return fuse(rescale(sample.design, weights, scale), weights=weights, dropped=dropped)
    asked: dict[str, Any] = {"level": level, "min_units": min_units, "scale": scale}
    return _compare_sample(sample, weights=weights, dropped=dropped, **asked)


def compare_in_scale(x: Any, labels: Any, given: Any, *, weights: str, level: float, scale: FeatureScale) -> Fusion:
    """Compute the distance between groups with its interval, in the scale of a design with more groups."""
    sample, _ = label_rows(x, labels, given, None, 0.0, "raise", None)
    return _compare_sample(sample, weights=weights, dropped=0, level=level, min_units=MIN_UNITS, scale=scale)


def rescale(design: Design, weights: str, scale: str | FeatureScale | None) -> Design:
    """Standardize the features of a design, or put them in a given scale, if requested."""
    if isinstance(scale, FeatureScale):
        return design.rescale(scale.share_evenly(len(design.cells)))
    return design if scale is None else design.standardize(design.weights(weights))


def _rescale_rows(chunks: Sequence[LabeledRows], design: Design) -> list[LabeledRows]:
    """Put rows in the scale of a design."""
    if design.scale is None:
        return list(chunks)
    return [replace(chunk, rows=ScaledRows(chunk.rows, design.scale.factor)) for chunk in chunks]


def find_shape_caution(x: Any, labels: Any, *, given: Any, units: Any, weights: str, min_units: int) -> str | None:
    """Return the caution of `cfd` about the shape of groups, without the interval."""
    sample, _ = label_rows(as_rows(x, "x"), labels, given, units, 0.0, "raise", None)
    design, chunks, number, of = sample.design, sample.chunks, sample.design.cells.count, "rows"
    if sample.units is not None and not _has_one_row_each(sample.units):
        entries = [_encode_entries(chunk, unit, design) for chunk, unit in zip(chunks, sample.units, strict=True)]
        chunks, of = [entry.firsts for entry in entries], "units"
        owned = np.concatenate([entry.cell for entry in entries])
        number = np.bincount(owned, minlength=len(design.cells)).astype(np.float64)
    kept, _ = leave_out_cells(design, number, min_units if of == "units" else max(min_units, MIN_CELL_ROWS), of=of)
    cells, design = len(design.cells), design.select(kept)
    sampled = sample_rows(_select_rows(chunks, kept, cells), design)
    return caution_about_shape(sampled, measure_spread(design), design, design.weights(weights))


def label_finite_rows(x: Any, labels: Any, given: Any, units: Any, features: Sequence[str] | None = None) -> "Sample":
    """Make the design of the groups of one array, for callers without an option that drops rows."""
    try:
        return label_rows(as_rows(x, "x"), labels, given, units, 0.0, "raise", features)[0]
    except NonFiniteError as error:
        raise NonFiniteError(
            "x", problem=error.problem, remedy="fix them, or leave them out, with their labels"
        ) from None


def label_rows(
    rows: Any, labels: Any, given: Any, units: Any, trim: float, nan: str, features: Sequence[str] | None
) -> tuple["Sample", int]:
    """Make the design of the groups of one array, with its rows, and count the rows that were dropped."""
    by = {"labels": labels} if given is None else {"labels": labels, "given": given}
    keys = factors.as_table(by)
    check_length(keys.num_rows, rows.shape[0], "labels", "x")
    check_some_rows(rows.shape[0], "x")
    cell, combinations = factors.encode(keys)
    moments, dropped = _reduce_trimmed(rows, cell, combinations.num_rows, trim, nan, "x")
    kept = np.flatnonzero(moments.count > 0)
    left = combinations.take(kept)
    gone = factors.list_labels(combinations.take(np.flatnonzero(moments.count == 0)))
    warn_about_lost_groups(gone)
    group, groups = factors.encode(left.select(["labels"]))
    design = Design(moments[kept], group, np.zeros(len(kept), int), factors.list_labels(groups), features=features)
    if given is not None:
        stratum, strata = factors.encode(left.select(["given"]))
        design = replace(design, stratum=stratum, strata=factors.list_labels(strata))
    if len(kept) < len(moments):
        place = np.full(len(moments), -1, np.int32)
        place[kept] = np.arange(len(kept))
        cell = place[cell]
    chunks = [LabeledRows(rows, _drop_nonfinite(cell, rows if dropped else None))]
    return Sample(design, chunks, _encode_units(units, {"x": rows})), dropped


def _label_group(rows: Any, cell: int, dropped: bool) -> LabeledRows:
    """Rows of one cell, without those that are not finite."""
    codes = np.broadcast_to(np.int32(cell), rows.shape[:1])  # which takes no memory
    return LabeledRows(rows, _drop_nonfinite(codes, rows)) if dropped else LabeledRows(rows, codes, cell)


def _drop_nonfinite(codes: CodeArray, rows: Any) -> CodeArray:
    """Set the codes of rows that are not finite to -1; without rows, all are finite."""
    return codes if rows is None else np.where(find_finite_rows(rows), codes, np.int32(-1))


def _encode_units(units: Any, rows: Mapping[str, Any]) -> list[CodeArray] | None:
    """Encode the unit of each row of each array, with common codes for all arrays."""
    if units is None:
        return None
    several = units if len(rows) > 1 else (units,)
    if not (isinstance(several, tuple | list) and len(several) == len(rows)):
        raise InputError(
            "units", problem="of two arrays must be a pair", remedy="call cfd(a, b, units=(units_of_a, units_of_b))"
        )
    tables = [factors.as_table({"units": values}) for values in several]
    for table, (name, values) in zip(tables, rows.items(), strict=True):
        check_length(table.num_rows, values.shape[0], "units", name)
        factors.check_units(table, ["units"])
    codes, _ = factors.encode(factors.concat_tables(tables, "the units of a and b"))
    return np.split(codes, np.cumsum([table.num_rows for table in tables])[:-1])


@dataclass(frozen=True)
class Sample:
    """A design, the rows of its cells, and the codes of their units, unless rows are the units."""

    design: Design
    chunks: Sequence[LabeledRows]
    units: Sequence[CodeArray] | None


@dataclass(frozen=True)
class KeptCells:
    """A design without cells of too few rows or units, with its rows and, if units are named, the moments of these.

    With units, `chunks` selects one row of each unit and cell.
    """

    design: Design
    chunks: Sequence[LabeledRows]
    units: UnitMoments | None
    excluded: tuple[Exclusion, ...]

    def rescale(self, weights: str, scale: str | FeatureScale | None) -> "KeptCells":
        """Standardize the features, if requested."""
        if scale is None:
            return self
        design = rescale(self.design, weights, scale)
        units = None if self.units is None else self.units.rescale(design)
        return replace(self, design=design, chunks=_rescale_rows(self.chunks, design), units=units)

    def fuse(self, weights: str, dropped: int) -> Fusion:
        """Compute the distance between all groups."""
        return replace(fuse(self.design, weights=weights, dropped=dropped), excluded=self.excluded)


def keep_cells(sample: Sample, level: float | None, min_units: int) -> KeptCells:
    """Leave out cells of too few rows or units."""
    design, chunks = sample.design, sample.chunks
    if sample.units is None or _has_one_row_each(sample.units):
        least = min_units if level is None else max(min_units, MIN_CELL_ROWS)
        kept, excluded = leave_out_cells(design, design.cells.count, least, of="rows")
        return KeptCells(design.select(kept), _select_rows(chunks, kept, len(design.cells)), None, excluded)
    unit_moments, firsts = _reduce_units(chunks, sample.units, design)
    kept, excluded = leave_out_cells(design, unit_moments.count_units(len(design.cells)), min_units)
    firsts = _select_rows(firsts, kept, len(design.cells))
    return KeptCells(design.select(kept), firsts, unit_moments.select_cells(kept), excluded)


def _compare_sample(
    sample: Sample, *, weights: str, dropped: int, level: float | None, min_units: int, scale: str | FeatureScale | None
) -> Fusion:
    """Compute the distance with its interval, from independent rows or from units, and a caution about shape."""
    cells = keep_cells(sample, level, min_units).rescale(weights, scale)
    fusion, design = cells.fuse(weights, dropped), cells.design
    weight = design.weights(weights)
    if level is None:
        return fusion if cells.units is None else add_unit_errors(fusion, cells.units, design, weight, level)
    sampled = sample_rows(cells.chunks, design)
    if cells.units is None:
        found = add_interval(fusion, estimate_row_errors(cells.chunks, sampled, design, weight), level)
    else:
        found = add_unit_errors(fusion, cells.units, design, weight, level)
    if SPREAD_CAUTION in (found.caution or ""):
        return found
    shape = caution_about_shape(sampled, measure_spread(design), design, weight)
    return replace(found, caution=join_cautions(found.caution, shape))


def _select_rows(chunks: Sequence[LabeledRows], kept: Codes, cells: int) -> list[LabeledRows]:
    """Rows of some cells, with the cells renumbered."""
    if len(kept) == cells:
        return list(chunks)
    place = np.full(cells + 1, -1, np.int32)  # rows of no cell, with code -1, find the last entry
    place[kept] = np.arange(len(kept))
    return [LabeledRows(chunk.rows, place[chunk.codes]) for chunk in chunks]


def _has_one_row_each(units: Sequence[CodeArray]) -> bool:
    """Return whether every unit has one row, so that rows are independent."""
    codes = np.concatenate(units)
    return len(codes) == int(codes.max()) + 1


@dataclass(frozen=True)
class Entries:
    """Units in cells: the entry of each row, the cell and the unit of each entry, and one row of each."""

    codes: CodeArray
    cell: Codes
    owner: Codes
    firsts: LabeledRows


def _encode_entries(chunk: LabeledRows, unit: CodeArray, design: Design) -> Entries:
    """Encode the combinations of cell and unit, and select one row of each."""
    width, kept = int(unit.max()) + 1, chunk.codes >= 0
    key = chunk.codes[kept].astype(np.int64) * width + unit[kept]
    codes = np.full(len(kept), -1, np.int32)
    codes[kept], present = factors.renumber(key, len(design.cells) * width)
    first = np.zeros(len(present), int)
    first[codes[kept][::-1]] = np.flatnonzero(kept)[::-1]  # the last one written is the first one
    firsts = LabeledRows(chunk.rows, np.full(len(kept), -1, np.int32))
    firsts.codes[first] = present // width
    return Entries(codes, present // width, present % width, firsts)


def _reduce_units(
    chunks: Sequence[LabeledRows], units: Sequence[CodeArray], design: Design
) -> tuple[UnitMoments, list[LabeledRows]]:
    """Compute the moments of the units in each cell, and select one row of each unit and cell."""
    entries = [_encode_entries(chunk, unit, design) for chunk, unit in zip(chunks, units, strict=True)]
    moments = [
        reduce_groups(chunk.rows, entry.codes, len(entry.cell), name="x")[0]
        for chunk, entry in zip(chunks, entries, strict=True)
    ]
    owner = np.unique(np.concatenate([entry.owner for entry in entries]), return_inverse=True)[1]
    cell = np.concatenate([entry.cell for entry in entries])
    return UnitMoments(concat(moments), cell, owner), [entry.firsts for entry in entries]


def _reduce_trimmed(
    rows: Any, codes: CodeArray | None, groups: int, trim: float, nan: str, name: str
) -> tuple[Moments, int]:
    """Compute the moments of each group after trimming, and the number of rows that were not finite."""
    moments, finite = reduce_groups(rows, codes, groups, name=name)
    check = FiniteCheck(name)
    check.see(rows, finite)
    dropped = check.settle(nan)
    if trim == 0 or rows.shape[0] == 0:
        return moments, dropped
    codes = np.zeros(rows.shape[0], np.int32) if codes is None else codes
    if finite is not None:
        codes = np.where(finite, codes, np.int32(-1))
    distance = squared_distance_to_mean(rows, codes, moments.mean)
    return reduce_groups(rows, _trim_farthest(codes, distance, moments.count, trim), groups, name=name)[0], dropped


def _trim_farthest(codes: CodeArray, distance: FloatArray, count: FloatArray, trim: float) -> CodeArray:
    """Set the codes of the farthest share of each group's rows, rounded down, to -1; among ties, the later rows."""
    order = np.lexsort((distance, codes))
    order = order[codes[order] >= 0]
    sorted_codes = codes[order]
    size = count.astype(int)
    position = np.arange(len(order)) - (np.cumsum(size) - size)[sorted_codes]
    out = position >= (size - np.floor(np.round(trim * size, 9)).astype(int))[sorted_codes]
    trimmed = codes.copy()
    trimmed[order[out]] = -1
    return trimmed
