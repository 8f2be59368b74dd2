"""Permutation test of the separation of groups of rows."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    FiniteCheck,
    InputError,
    RowLens,
    accept_old_names,
    align_index,
    arg,
    as_lens_rows,
    check_length,
    check_lens,
    check_some_rows,
    factors,
)
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.fusion import (
    MIN_UNITS,
    Codes,
    Design,
    Exclusion,
    ScaledRows,
    check_min_units,
    check_scale,
    leave_out_cells,
)
from crossfusion.inference import (
    Entries,
    TestResult,
    add_cautions,
    check_test_options,
    find_exchangeable,
    name_test_scale,
    run_moment_test,
    run_test,
)
from crossfusion.moments import Moments, reduce_groups

if TYPE_CHECKING:
    import pyarrow as pa


@accept_old_names(strata="given")
def permutation_test(
    x: Any,
    labels: Any,
    *,
    units: Any = None,
    given: Any = None,
    pairs: Any = None,
    permutations: int = 999,
    seed: int = 0,
    statistic: str = "welch",
    min_units: int = MIN_UNITS,
    scale: str | None = None,
    lens: RowLens | None = None,
) -> TestResult:
    r"""Test whether groups are separated more than expected by chance.

    .. math:: W^*_d = \frac{\sum_k w_k \lVert\mu_k - \mu_w\rVert^2 / (K - 1)}
                         {1 + \frac{2 (K - 2)}{K^2 - 1} \sum_k (1 - w_k / \sum w)^2 / (n_k - 1)},
              \qquad w_k = \frac{n_k}{s_k^2},\quad \mu_w = \frac{\sum_k w_k \mu_k}{\sum_k w_k}

    for groups of :math:`n_k` rows with mean :math:`\mu_k` and variance :math:`s_k^2`, summed over features: the Welch
    statistic of Hamidi et al. [1]_. It uses the spread of each group, so that groups that differ only in size and
    spread are not mistaken for separated groups.

    Parameters
    ----------
    x : array of shape (rows, dim)
        The rows.
    labels : array of shape (rows,)
        The group of each row, or the name of a column if `x` is a pandas, Polars or PyArrow table; the same goes for
        `units`, `given` and `pairs`. Named columns are not features.
    units : array of shape (rows,), optional
        The unit of each row, such as the patient, if rows of the same unit are dependent. All rows of a unit are
        relabeled together. Each unit must have one label.
    given : array of shape (rows,), optional
        The stratum of each row: groups are compared and labels permuted within strata. Labels are permuted among units
        of the same strata.
    pairs : array of shape (rows,), optional
        The unit of each row if units were measured under several labels, such as a slide scanned on two scanners.
        Labels are permuted within units; all rows of a unit with the same label are relabeled together.
    permutations : int
        Number of random permutations. If there are at most `permutations` + 1 in all, each is used once instead.
    seed : int
        Seed of the random permutations.
    statistic : {"welch", "pseudo-f"}
        "welch", or "pseudo-f" for the statistic of PERMANOVA on Euclidean distances [3]_, which assumes that all groups
        have the same spread.
    min_units : int
        With `units` or `pairs`, the minimum number of units per label (and stratum). Labels with fewer are left out and
        named in `excluded`, as in `cfd`. 1 keeps labels with a single unit, which have no interval.
    scale : {"features"}, optional
        "features" divides each feature by its standard deviation within strata, whatever the label, which is the same
        for all permutations, so that features count the same and the test is exact. Features that do not vary are left
        out and named in `constant`. `distance` is that of `cfd`.
    lens : crossfusion.lens.Lens, optional
        A map that is applied to the rows first.

    Returns
    -------
    TestResult
        Statistic, p-value, and the statistic under each permutation.

    Notes
    -----
    If b of m random permutations give at least the observed statistic (up to rounding), the p-value is
    (b + 1) / (m + 1), which is never zero and keeps its level [2]_. If all permutations are used, it is their share.

    With `units` or `pairs`, :math:`s_k^2 / n_k` becomes the squared error of the group's mean, estimated from the means
    of its units, and :math:`n_k - 1` the number of units minus 1. A group with one row or unit borrows the pooled
    variance of the other groups. With `given`, the statistic is the mean over strata, weighted by the variance between
    groups that is expected by chance. For two groups with the same number of rows, it equals pseudo-F.

    Under equal means, the level of "welch" is exact if the groups have the same distribution, and approximate if they
    differ in spread. The level of "pseudo-f" is then wrong, unless the groups have the same size: with 20 rows of
    standard deviation 2 and 100 of standard deviation 1, it rejects most of the time. If units are spread over strata
    in very different proportions, "welch" rejects somewhat too often (in 8% of 300 draws at a level of 5%, with units
    of one group having 80% of their rows in a stratum, and units of the other 20%) and "pseudo-f" hardly ever.

    .. math:: F = \bigl(e^{\mathrm{CFD}} - 1\bigr)\,\frac{N - K}{K - 1}
              = \frac{\sum_k n_k \lVert\mu_k - \mu\rVert^2 / (K - 1)}
                     {\sum_k n_k \sigma_k^2 / (N - K)}

    is pseudo-F for N rows in K groups. With `given`, CFD is CFD(labels | strata), N − K becomes N − C, and K − 1
    becomes C − S, for S strata and C observed combinations of labels and strata.

    Rows of one patient or slide are not individually exchangeable: without `units` or `pairs`, the test rejects far too
    often. Pass independent units as `pairs`: the slide rather than positions on it, if its positions are dependent.

    The cost is permutations × rows × dim × (groups − 1) / 4 additions, with units instead of rows if there are any, or
    a matrix product where NumPy stands in for the kernel; "welch" takes two if units differ in their number of rows.
    With many groups, the rows are reduced once per permutation instead, whatever the number of groups. Memory beyond
    the data is 64 MB, or about 40 bytes per row and thread if that is more; no distances between rows are computed.
    Units take the memory of their moments.

    References
    ----------
    .. [1] B. Hamidi, K. Wallace, C. Vasu, A. V. Alekseyenko, "W*d-test: robust distance-based multivariate analysis of
       variance", Microbiome 7, 2019.
    .. [2] B. Phipson, G. K. Smyth, "Permutation p-values should never be zero", Statistical Applications in Genetics
       and Molecular Biology 9, 2010.
    .. [3] M. J. Anderson, "A new method for non-parametric multivariate analysis of variance", Austral Ecology 26,
       2001.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> patient = np.repeat(np.arange(20), 10)
    >>> x = rng.normal(size=(200, 8)) + rng.normal(size=(20, 8))[patient]  # patients differ, sites do not
    >>> site = np.where(patient < 10, "A", "B")
    >>> cf.permutation_test(x, site).pvalue
    0.001
    >>> cf.permutation_test(x, site, units=patient).pvalue
    0.726
    """
    check_test_options(permutations, seed, statistic)
    check_min_units(min_units, least=1)
    check_scale(scale)
    check_lens(lens, adds_factors=False)
    if units is not None and pairs is not None:
        raise InputError(
            problem=f"{arg('units')} and {arg('pairs')} cannot be combined",
            remedy=f"pass independent units, such as the slide, as {arg('pairs')}",
        )
    x, labels, units, given, pairs = take_columns(x, labels=labels, units=units, given=given, pairs=pairs)
    rows, features = as_lens_rows(x, "x", lens)
    labels, units, given, pairs = align_index("x", x, labels=labels, units=units, given=given, pairs=pairs)
    keys = make_keys(rows, labels=labels, given=given, units=units, pairs=pairs)
    options: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic}
    options |= {"features": features, "scale": scale}
    if units is None and pairs is None:
        return run_row_test(rows, keys, None, **options)
    rows, keys, excluded = leave_out_units(rows, keys, min_units)
    return replace(run_row_test(rows, keys, pairs is not None, **options), excluded=excluded)


def make_keys(rows: Any, **columns: Any) -> "pa.Table":
    """Make a table of the factors that were passed, one entry per row; pairs become units."""
    keys = factors.as_table(
        {name: values for name, values in columns.items() if name == "labels" or values is not None}
    )
    check_length(keys.num_rows, rows.shape[0], "labels", "x")
    check_some_rows(rows.shape[0], "x")
    factors.check_units(keys, [name for name in keys.column_names if name in ("units", "pairs")])
    return keys.rename_columns(["units" if name == "pairs" else name for name in keys.column_names])


def leave_out_units(rows: Any, keys: "pa.Table", least: int) -> tuple[Any, "pa.Table", tuple[Exclusion, ...]]:
    """Leave out labels (in a stratum) that have too few units, or rows if there are no units, and name them."""
    of = "units" if "units" in keys.column_names else "rows"
    cell, cells = factors.encode(drop_units(keys))
    _, entries = factors.encode(keys)
    number = np.bincount(cell if of == "rows" else factors.encode(drop_units(entries))[0])
    if number.min() >= least:
        return rows, keys, ()
    design = make_design(reduce_finite(rows, cell, cells.num_rows), cells)
    kept, excluded = leave_out_cells(design, number.astype(np.float64), least, of=of)
    own = np.flatnonzero(np.isin(cell, kept))
    return rows[own], keys.take(own), excluded


def run_row_test(
    rows: Any,
    keys: "pa.Table",
    crossed: bool | None,
    *,
    permutations: int,
    seed: int,
    statistic: str,
    features: Sequence[str] | None,
    scale: str | None = None,
) -> TestResult:
    """Test rows with the factors labels and, optionally, given and units; without `crossed`, rows are the units."""
    entry, entries = factors.encode(keys)
    reduced = _pays_to_reduce(rows.shape[0], entries.num_rows, crossed, statistic)
    if not reduced:
        entry, entries = factors.encode(drop_units(keys))
    moments = reduce_finite(rows, entry, entries.num_rows)
    cell, cells = factors.encode(drop_units(entries))
    plain = make_design(moments.merge(cell, cells.num_rows) if reduced else moments, cells, features)
    design = plain if scale is None else plain.standardize_in_total()
    if design.scale is not None:
        moments, rows = moments.multiply(design.scale.factor), ScaledRows(rows, design.scale.factor)
    label, stratum, unit = make_codes(entries if reduced else keys)
    if unit is not None and reduced:
        options: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic}
        found = run_moment_test(moments, label, stratum, unit, design, crossed=bool(crossed), **options)
        return found if scale is None else name_test_scale(found, design, plain)
    items = find_exchangeable(label, stratum, unit, crossed=crossed)
    found = run_test(design, Entries(rows, stratum), items, permutations=permutations, seed=seed, statistic=statistic)
    found = add_cautions(found, design)
    return found if scale is None else name_test_scale(found, design, plain)


def _pays_to_reduce(rows: int, entries: int, crossed: bool | None, statistic: str) -> bool:
    """Return whether to reduce rows to entries first: for pseudo-F only if it saves work, as parts of a unit add up."""
    if crossed is None:
        return False
    return entries < rows if crossed or statistic == "welch" else 2 * entries <= rows


def drop_units(keys: "pa.Table") -> "pa.Table":
    """Drop the units from a table of factors, which leaves those that define cells."""
    return keys.select([name for name in keys.column_names if name != "units"])


def reduce_finite(rows: Any, codes: Codes, groups: int) -> Moments:
    """Compute the moments of rows, which must be finite."""
    moments, finite = reduce_groups(rows, codes, groups, name="x")
    check = FiniteCheck("x")
    check.see(rows, finite)
    check.settle("raise", way_out="leave them out, with their labels")
    return moments


def make_design(moments: Moments, cells: "pa.Table", features: Sequence[str] | None = None) -> Design:
    """Make the design of labels within strata."""
    group, groups = factors.encode(cells.select(["labels"]))
    names = None
    if "given" in cells.column_names:
        names = factors.list_labels(factors.encode(cells.select(["given"]))[1])
    labels = factors.list_labels(groups)
    return Design(moments, group, _encode_strata(cells), labels, strata=names, features=features)


def _encode_strata(keys: "pa.Table") -> Codes:
    return factors.encode(keys.select(["given"]))[0] if "given" in keys.column_names else np.zeros(keys.num_rows, int)


def make_codes(keys: "pa.Table") -> tuple[Codes, Codes, Codes | None]:
    """Encode labels, strata and units."""
    unit = factors.encode(keys.select(["units"]))[0] if "units" in keys.column_names else None
    return factors.encode(keys.select(["labels"]))[0], _encode_strata(keys), unit
