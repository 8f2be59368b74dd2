"""How well a linear classifier recognizes the group of rows from units that it was not fitted to."""

from collections.abc import Hashable
from itertools import combinations
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, align_index, check_level, check_seed, factors, warn
from crossfusion.arrays.accuracy import UNKNOWN, Share
from crossfusion.arrays.distance import label_finite_rows
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.arrays.held_out import HeldOut, hold_out, score_held_out
from crossfusion.arrays.recognition import Comparison
from crossfusion.arrays.separability_result import Recognition, Separability
from crossfusion.fusion import (
    CONFOUNDED,
    FEW_UNITS,
    MIN_UNITS,
    Codes,
    Design,
    Exclusion,
    caution_about_overlap,
    check_min_units,
    join_cautions,
    leave_out_cells,
)

MAX_GROUPS = 1_000  # scores of all rows for all groups are kept
MAX_PAIRED_GROUPS = 100  # of more, the pairs would take minutes
INDEPENDENT_CAUTION = (
    "rows were held out one by one, as if they were independent: if rows share patients or slides, the accuracy is too"
    " high, so name the units"
)


def separability(
    x: Any,
    labels: Any,
    *,
    given: Any = None,
    units: Any = None,
    level: float = 0.95,
    seed: int = 0,
    min_units: int = MIN_UNITS,
) -> Separability:
    """Measure how well a linear classifier recognizes groups of rows from units that it was not fitted to.

    CFD measures how far groups are apart; separability measures how recognizable they are. Many small differences
    between means, which hardly increase CFD, can make groups easy to recognize.

    Parameters
    ----------
    x : array of shape (rows, dim), or table
        The rows.
    labels : array of shape (rows,)
        The group of each row, or the name of a column if `x` is a pandas, Polars or PyArrow table; the same goes for
        `given` and `units`. Named columns are not features.
    given : array of shape (rows,), optional
        The stratum of each row, to adjust for: rows are classified among the groups of their stratum.
    units : array of shape (rows,), optional
        The unit of each row, such as the patient, if rows of the same unit are dependent. Whole units are held out.
    level : float
        Confidence level of the intervals.
    seed : int
        Seed of the sample and of the parts that units are split into.
    min_units : int
        Minimum number of units, or of rows without `units`, per group (and stratum), at least 2. Smaller groups are
        left out and named in `excluded`.

    Returns
    -------
    Separability
        Balanced accuracy and AUC of all groups together, of each group against all others and of each pair, with
        intervals.

    Notes
    -----
    The classifier is a linear discriminant analysis with equal prior probabilities: features are standardized and the
    covariance is shrunk [1]_, both estimated from the rows it is fitted to. It is cross-validated on five parts that
    are stratified by group and consist of whole units. All units of a group have the same weight.

    At most 20,000 rows are used (fewer with more than 650 features), sampled evenly from groups, strata and units.
    Adjusted for `given`, groups are classified with their own means in each stratum and one covariance, and strata are
    weighted as in CFD with balanced weights.

    Intervals are Wilson intervals for the variance between units, and describe classifiers fitted to about as many
    units as here. More units make a better classifier, so the accuracy increases with the size of the data.

    References
    ----------
    .. [1] O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices", Journal of
       Multivariate Analysis 88, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> site, patient = np.repeat(["A", "B"], 400), np.repeat(np.arange(40), 20)
    >>> x = rng.normal(size=(800, 8)) + 0.5 * rng.normal(size=(40, 8))[patient]
    >>> x[400:, :2] += 1
    >>> found = cf.separability(x, site, units=patient)
    >>> print(found.describe("site", "patient"))
    a linear classifier recognizes the site of a row of an unseen patient in 71% (62–79%); chance 50%
    """
    check_level(level, needed=True)
    check_seed(seed, below=2**32)
    check_min_units(min_units)
    x, labels, given, units = take_columns(x, labels=labels, given=given, units=units)
    labels, given, units = align_index("x", x, labels=labels, given=given, units=units)
    sample = label_finite_rows(x, labels, given, units)
    design, chunk = sample.design, sample.chunks[0]
    design.check_groups()
    unit: Codes = np.arange(len(chunk.codes)) if sample.units is None else sample.units[0]
    number = design.cells.count if sample.units is None else _count_units(chunk.codes, unit, len(design.cells))
    settings: dict[str, Any] = {"level": level, "seed": seed, "by": "rows" if sample.units is None else "units"}
    kept, excluded = leave_out_cells(design, number, min_units, of=settings["by"])
    place = np.full(len(design.cells), -1)
    place[kept] = np.arange(len(kept))
    return _separate(chunk.rows, place[chunk.codes], unit, design.select(kept), excluded, settings)


def _count_units(cell: Codes, unit: Codes, cells: int) -> FloatArray:
    """Count the units of each cell."""
    width = int(unit.max()) + 1
    _, pairs = factors.renumber(cell.astype(np.int64) * width + unit, cells * width)
    return np.bincount(pairs // width, minlength=cells).astype(np.float64)


def _separate(
    rows: Any, cell: Codes, unit: Codes, design: Design, excluded: tuple[Exclusion, ...], settings: dict[str, Any]
) -> Separability:
    """Classify the rows of a design whose cells have enough units."""
    if len(design.labels) > MAX_GROUPS:
        raise InputError(
            "labels",
            problem=f"has {len(design.labels):,} groups, at most {MAX_GROUPS:,} are classified",
            remedy="select some, or use coarser groups",
        )
    several = np.bincount(design.stratum)[design.stratum] > 1
    weight = design.weights("balanced")
    found: dict[str, Any] = {
        "groups": tuple(design.labels),
        "overlap": 1.0 if several.all() else float(weight[several].sum()),
        "excluded": excluded,
        **settings,
    }
    if not several.any():
        return _report_nothing(found)
    found["units"] = int(np.sum(np.bincount(unit[cell >= 0]) > 0))
    held = hold_out(rows, np.where(several[cell] & (cell >= 0), cell, -1), unit, design, settings["seed"])
    strata = np.bincount(design.stratum, weights=weight * several)
    comparison = Comparison(held, strata / strata.sum(), score_held_out(held))
    return _report(comparison, design, found)


def _report_nothing(found: dict[str, Any]) -> Separability:
    warn(f"the design is fully confounded: {CONFOUNDED}, so nothing is classified")
    nothing: dict[str, Any] = dict.fromkeys(("accuracy", "interval", "chance", "auc", "auc_interval"))
    return Separability(**nothing, one_vs_rest=(), pairs=(), units=0, rows=0, folds=0, reason=CONFOUNDED, **found)


def _report(comparison: Comparison, design: Design, found: dict[str, Any]) -> Separability:
    """Collect all shares with their intervals."""
    held, level = comparison.held, found["level"]
    accuracy = comparison.recognize_all()
    rest, auc = comparison.compare_with_rest()
    pairs = combinations(range(len(design.labels)), 2) if len(design.labels) <= MAX_PAIRED_GROUPS else ()
    return Separability(
        accuracy=accuracy.value,
        interval=accuracy.limits(level),
        chance=comparison.chance,
        **_name_auc(auc, level),
        one_vs_rest=tuple(
            _recognize(label, None, shares, level) for label, shares in zip(design.labels, rest, strict=True)
        ),
        pairs=tuple(
            _recognize(design.labels[a], design.labels[b], comparison.compare_pair(a, b), level) for a, b in pairs
        ),
        rows=len(held.rows),
        folds=held.folds,
        caution=_find_caution(held, design, found["by"]),
        **found,
    )


def _recognize(
    group: Hashable, other: Hashable | None, shares: tuple[Share, Share] | None, level: float
) -> Recognition:
    figures: list[float | None] = []
    for share in shares or (UNKNOWN, UNKNOWN):
        figures += [None] * 3 if np.isnan(share.value) else [share.value, *share.limits(level)]
    return Recognition(group, other, *figures)


def _name_auc(auc: Share, level: float) -> dict[str, Any]:
    known = not np.isnan(auc.value)
    return {"auc": auc.value if known else None, "auc_interval": auc.limits(level) if known else None}


def _find_caution(held: HeldOut, design: Design, by: str) -> str | None:
    """Find out why the accuracy may mislead."""
    if by == "rows":
        about_units: str | None = INDEPENDENT_CAUTION
    else:
        fewest = int(np.unique(held.entry_cell, return_counts=True)[1].min())
        place = "" if design.strata is None else " (in a stratum)"
        few = f"some group{place} has only {fewest} units, so the interval is rough"
        about_units = few if fewest < FEW_UNITS else None
    return join_cautions(about_units, caution_about_overlap(design))
