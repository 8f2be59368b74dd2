"""Wilks' Λ: the separation of groups by volume, which needs the covariances of rows and so the rows themselves."""

from typing import Any

import numpy as np

from crossfusion._base import (
    CodeArray,
    FloatArray,
    InputError,
    RowLens,
    align_index,
    as_lens_rows,
    check_lens,
    factors,
    split_rows,
)
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.arrays.permutation import make_keys, reduce_finite


def log_wilks(x: Any, labels: Any, *, given: Any = None, lens: RowLens | None = None) -> float:
    r"""Compute −log of Wilks' Λ, the form of CFD in which every direction counts, however little rows vary along it.

    .. math:: -\log\Lambda = \log\frac{\det T}{\det W}

    Parameters
    ----------
    x : array of shape (rows, dim)
        The rows.
    labels : array of shape (rows,)
        The group of each row.
    given : array of shape (rows,), optional
        The stratum of each row, to adjust for: groups are compared within strata.
    lens : crossfusion.lens.Lens, optional
        A map that is applied to the rows first.

    Returns
    -------
    float
        −log Λ for the scatter matrices T around the means of strata (or the overall mean) and W around the means of
        groups within them. 0 if the means are equal; no upper limit.

    Notes
    -----
    The chain rule holds, as for the plug-in CFD: for labels a and b, −log Λ of both together is that of a plus that of
    b given a. Invertible linear maps of the rows do not change it. Like the plug-in CFD, it is positive for
    samples of the same population, by about dim × (groups - 1) / rows, so it needs many more rows than features.

    It needs memory for two matrices of dim × dim, and time proportional to rows × dim².

    References
    ----------
    .. [1] S. S. Wilks, "Certain generalizations in the analysis of variance", Biometrika 24, 1932.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 1)) + 0.1 * rng.normal(size=(600, 4))  # all features vary together
    >>> site = np.repeat(["A", "B"], 300)
    >>> x[site == "B", 0] += 0.1
    >>> cf.cfd(x, labels=site).distance < 0.01 < 0.1 < cf.log_wilks(x, site)
    True
    """
    check_lens(lens, adds_factors=False)
    x, labels, given = take_columns(x, labels=labels, given=given)
    rows, _ = as_lens_rows(x, "x", lens)
    labels, given = align_index("x", x, labels=labels, given=given)
    keys = make_keys(rows, labels=labels, given=given)
    cell, cells = factors.encode(keys)
    stratum = np.zeros(len(cell), np.int32)
    if given is not None:
        stratum = factors.encode(keys.select(["given"]))[0]
    within, total = (_log_determinant(rows, codes, int(codes.max()) + 1) for codes in (cell, stratum))
    return max(0.0, total - within) if cells.num_rows > int(stratum.max()) + 1 else 0.0


def _log_determinant(rows: Any, codes: CodeArray, groups: int) -> float:
    """Log determinant of the scatter of rows around the means of their groups, as correlations would have it."""
    mean = reduce_finite(rows, codes, groups).mean
    dim = rows.shape[1]
    scatter: FloatArray = np.zeros((dim, dim))
    for start, block in split_rows(rows):
        dense = block if isinstance(block, np.ndarray) else block.toarray()
        gap = dense - mean[codes[start : start + len(dense)]]
        scatter += gap.T @ gap
    spread = np.sqrt(np.diagonal(scatter))
    if np.all(spread > 0):
        sign, found = np.linalg.slogdet(scatter / spread / spread[:, None])
        smallest = np.linalg.eigvalsh(scatter / spread / spread[:, None])[0]
        if sign > 0 and smallest > dim * np.finfo(np.float64).eps:
            return float(found + 2 * np.log(spread).sum())
    raise InputError(
        "x",
        problem="has a direction in which rows do not vary within groups, so that Λ is not defined",
        remedy="drop constant features and sums of others, or pass more rows than features",
    )
