"""Permutation test of the separation of groups of rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import FiniteCheck, InputError, align_index, arg, as_rows, check_length, check_some_rows, factors
from crossfusion.fusion import Codes, Design
from crossfusion.inference import Entries, TestResult, check_test_options, find_exchangeable, run_moment_test, run_test
from crossfusion.moments import Moments, reduce_groups

if TYPE_CHECKING:
    import pyarrow as pa


def permutation_test(
    x: Any,
    labels: Any,
    *,
    units: Any = None,
    strata: Any = None,
    pairs: Any = None,
    permutations: int = 999,
    seed: int = 0,
) -> TestResult:
    r"""Test whether groups are separated more than expected by chance.

    .. math:: F = \bigl(e^{\mathrm{CFD}} - 1\bigr)\,\frac{N - K}{K - 1}
              = \frac{\sum_k n_k \lVert\mu_k - \mu\rVert^2 / (K - 1)}
                     {\sum_k n_k \sigma_k^2 / (N - K)}

    for N rows in K groups: the pseudo-F of PERMANOVA on Euclidean distances [1]_. With `strata`, CFD is
    CFD(labels | strata), N − K becomes N − C, and K − 1 becomes C − S, for S strata and C observed combinations of
    labels and strata.

    Parameters
    ----------
    x : array of shape (rows, dim)
        The rows.
    labels : array of shape (rows,)
        The group of each row.
    units : array of shape (rows,), optional
        The unit of each row, such as the patient, if rows of the same unit are dependent. All rows of a unit are
        relabeled together. Each unit must have one label.
    strata : array of shape (rows,), optional
        The stratum of each row: groups are compared and labels permuted within strata. Units exchange labels with units
        of the same strata.
    pairs : array of shape (rows,), optional
        The unit of each row if units were measured under several labels, such as a slide scanned on two scanners.
        Labels are permuted within units; all rows of a unit with the same label are relabeled together.
    permutations : int
        Number of random permutations. If there are at most `permutations` + 1 in all, each is used once instead.
    seed : int
        Seed of the random permutations.

    Returns
    -------
    TestResult
        Statistic, p-value, and the statistic under each permutation.

    Notes
    -----
    If b of m random permutations give at least the observed statistic (up to a relative 1e-12), the p-value is
    (b + 1) / (m + 1), which is never zero and keeps its level [2]_. If all permutations are used, it is their share.

    Rows of one patient or slide are not individually exchangeable: without `units` or `pairs`, the test rejects far too
    often. Pass independent units as `pairs`: the slide rather than positions on it, if its positions are dependent.

    The cost is one matrix product of permutations × rows × dim × (groups − 1) multiplications, with units instead of
    rows if units are given. Memory beyond the data is 64 MB, or about 40 bytes per row and thread if that is more; no
    distances between rows are computed. Units take the memory of their moments.

    References
    ----------
    .. [1] M. J. Anderson, "A new method for non-parametric multivariate analysis of variance", Austral Ecology 26,
       2001.
    .. [2] B. Phipson, G. K. Smyth, "Permutation p-values should never be zero", Statistical Applications in Genetics
       and Molecular Biology 9, 2010.

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
    check_test_options(permutations, seed)
    if units is not None and pairs is not None:
        raise InputError(
            problem=f"{arg('units')} and {arg('pairs')} exclude each other",
            remedy=f"pass as {arg('pairs')} what is independent, such as the slide",
        )
    rows = as_rows(x, "x")
    labels, units, strata, pairs = align_index("x", x, labels=labels, units=units, strata=strata, pairs=pairs)
    keys = make_keys(rows, labels=labels, strata=strata, units=units, pairs=pairs)
    crossed = None if units is None and pairs is None else pairs is not None
    return run_row_test(rows, keys, crossed, permutations=permutations, seed=seed)


def make_keys(rows: Any, **columns: Any) -> "pa.Table":
    """Make a table of the factors that were passed, one entry per row; pairs become units."""
    keys = factors.as_table(
        {name: values for name, values in columns.items() if name == "labels" or values is not None}
    )
    check_length(keys.num_rows, rows.shape[0], "labels", "x")
    check_some_rows(rows.shape[0], "x")
    factors.check_units(keys, [name for name in keys.column_names if name in ("units", "pairs")])
    return keys.rename_columns(["units" if name == "pairs" else name for name in keys.column_names])


def run_row_test(rows: Any, keys: "pa.Table", crossed: bool | None, *, permutations: int, seed: int) -> TestResult:
    """Test rows with the factors labels and, optionally, strata and units; without `crossed`, rows are the units."""
    entry, entries = factors.encode(keys)
    reduced = _pays_to_reduce(rows.shape[0], entries.num_rows, crossed)
    if not reduced:
        entry, entries = factors.encode(drop_units(keys))
    moments = reduce_finite(rows, entry, entries.num_rows)
    cell, cells = factors.encode(drop_units(entries))
    design = make_design(moments.merge(cell, cells.num_rows) if reduced else moments, cells)
    label, stratum, unit = make_codes(entries if reduced else keys)
    if unit is not None and reduced:
        options = {"permutations": permutations, "seed": seed}
        return run_moment_test(moments, label, stratum, unit, design, crossed=bool(crossed), **options)
    items = find_exchangeable(label, stratum, unit, crossed=crossed)
    return run_test(design, Entries(rows, stratum), items, permutations=permutations, seed=seed)


def _pays_to_reduce(rows: int, entries: int, crossed: bool | None) -> bool:
    """Return whether reducing rows to entries first saves work: not if there are nearly as many entries as rows."""
    if crossed:
        return entries < rows
    return crossed is not None and 2 * entries <= rows


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


def make_design(moments: Moments, cells: "pa.Table") -> Design:
    """Make the design of labels within strata."""
    group, groups = factors.encode(cells.select(["labels"]))
    return Design(moments, group, _encode_strata(cells), factors.list_labels(groups))


def _encode_strata(keys: "pa.Table") -> Codes:
    return factors.encode(keys.select(["strata"]))[0] if "strata" in keys.column_names else np.zeros(keys.num_rows, int)


def make_codes(keys: "pa.Table") -> tuple[Codes, Codes, Codes | None]:
    """Encode labels, strata and units."""
    unit = factors.encode(keys.select(["units"]))[0] if "units" in keys.column_names else None
    return factors.encode(keys.select(["labels"]))[0], _encode_strata(keys), unit
