"""Cross-Fusion Distance of all pairs of groups of an array."""

from typing import Any

from crossfusion._base import align_index, as_rows, check_level, check_option, column_names, factors
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.arrays.pair_inference import infer_pairs, leave_out_small_groups
from crossfusion.arrays.permutation import make_keys
from crossfusion.fusion import MIN_UNITS, Pairwise, check_scale
from crossfusion.inference import ADJUSTMENTS, check_test_options
from crossfusion.io import summarize


def pairwise(
    x: Any,
    labels: Any,
    *,
    given: Any = None,
    units: Any = None,
    weights: str = "balanced",
    level: float | None = None,
    permutations: int | None = None,
    seed: int = 0,
    statistic: str = "welch",
    adjust: str = "holm",
    min_units: int = MIN_UNITS,
    scale: str | None = None,
) -> Pairwise:
    """Compute the Cross-Fusion Distance of each pair of groups, as `cfd` of the two groups alone.

    Parameters
    ----------
    x : array of shape (rows, dim), or table
        The rows.
    labels : array of shape (rows,)
        The group of each row, or the name of a column if `x` is a pandas, Polars or PyArrow table; the same applies
        to `given` and `units`. Named columns are not used as features.
    given : array of shape (rows,), optional
        The stratum of each row, to adjust for: groups are compared within strata.
    units : array of shape (rows,), optional
        The unit of each row, such as the patient, if rows of the same unit are dependent: `unbiased`, limits and tests
        then count units instead of rows. A unit may have rows in several groups.
    weights : {"balanced", "pooled"}
        "balanced" weights the two groups of a pair equally, "pooled" by their number of rows, as in the paper.
    level : float, optional
        Confidence level of the limits of each CFD, such as 0.95. By default, no limits are computed.
    permutations : int, optional
        Number of permutations in the test of each pair. By default, pairs are not tested.
    seed : int
        Seed of the permutations.
    statistic : {"welch", "pseudo-f"}
        Statistic of the tests; see `permutation_test`.
    adjust : {"holm", "bh"}
        Method that adjusts the p-values for the number of pairs; see `adjusted_pvalues`.
    min_units : int
        With `units`, the minimum number of units per group (and stratum), at least 2. Smaller groups are left out and
        named in `excluded`.
    scale : {"features"}, optional
        "features" divides each feature by its standard deviation within all compared groups (and strata), so that
        features count the same in all pairs; a test divides by the one within the strata of its pair. Features that do
        not vary within groups are left out and named in `constant`.

    Returns
    -------
    Pairwise
        Matrices of distances and, if requested, of limits and p-values.

    See Also
    --------
    Summary.pairwise : The same from a summary, without the rows, with limits and tests that count units.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> site = np.repeat(["A", "B", "C"], 100)
    >>> x = rng.normal(size=(300, 16)) + 0.3 * (site == "C")[:, None]
    >>> cf.pairwise(x, site, level=0.95)
    Cross-Fusion Distance between 3 groups (balanced weights), the farthest first
    group_a  group_b         CFD   plug-in        95% interval
    B        C           0.03697   0.04220  0.02479 to 0.05226
    A        C           0.03079   0.03598  0.02005 to 0.04459
    A        B        -0.0008077  0.004226       0 to 0.004576
    """
    check_level(level)
    check_option(adjust, ADJUSTMENTS, "adjust")
    check_scale(scale)
    if permutations is not None:
        check_test_options(permutations, seed, statistic)
    x, labels, given, units = take_columns(x, labels=labels, given=given, units=units)
    rows = as_rows(x, "x")
    labels, given, units = align_index("x", x, labels=labels, given=given, units=units)
    keys = make_keys(rows, labels=labels, given=given, units=units)
    summary = summarize(rows, {name: keys.column(name) for name in keys.column_names}, progress=False)
    summary = summary.with_features(column_names(x) or None)
    adjusted = "given" if given is not None else None
    tests: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic, "adjust": adjust}
    if units is not None or (level is None and permutations is None):
        counted = None if units is None else "units"
        asked: dict[str, Any] = {"given": adjusted, "units": counted, "weights": weights, "level": level}
        asked |= {"scale": scale}
        return summary.pairwise("labels", **asked, **tests, min_units=min_units)
    group, _ = factors.encode(keys.select(["labels"]))
    stratum = None if given is None else factors.encode(keys.select(["given"]))[0]
    result, used = summary.pairwise("labels", given=adjusted, weights=weights, scale=scale), None
    if level is not None:
        result, group, used = leave_out_small_groups(summary, "labels", adjusted, group, stratum, weights, scale)
    return infer_pairs(result, rows, group, stratum, weights=weights, level=level, scale=used, **tests)
