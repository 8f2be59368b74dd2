"""The relative distance ratio: the distance between halves of one domain over the distance between two domains."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from crossfusion._base import CodeArray, FloatArray, InputError, align_index, check_seed, check_whole
from crossfusion.evaluation.correctors.domains import Domains, as_codes, as_domains
from crossfusion.evaluation.protocols.halves import MIN_HALF_ROWS, check_splittable, split_halves
from crossfusion.evaluation.protocols.measures import LabeledRows, Measure, as_measures
from crossfusion.evaluation.protocols.ratio_result import Ratio, Rdr, pair_text


def rdr(
    x: Any,
    domain: Any,
    *,
    distances: Any = ("cfd",),
    units: Any = None,
    repeats: int = 50,
    rows: int | None = None,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Rdr:
    r"""Relative distance ratio: the distance within a domain divided by the distance across two domains.

    .. math:: \mathrm{RDR} = d(A_1, A_2) \,/\, d(A_1, B_2)

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row, such as its scanner.
    distances : str, sequence of str, or mapping of str to dict
        Names of ``crossfusion.distances``, or names with their options: ``{"cfd": {}, "mmd": {"bandwidth": 2.0}}``.
    units : array of shape (rows,), optional
        The unit of each row, such as its patient or slide. All rows of a unit go to the same half. Equal values are
        one unit in all domains: renumber patients if sites use the same numbers for different ones.
    repeats : int
        Number of random splits into halves.
    rows : int, optional
        Largest number of rows in a half; by default half of the smaller domain.
    pairs : sequence of pairs, optional
        The pairs of domains; all pairs by default.
    seed : int
        Seed of the halves.
    progress : function, optional
        Called with a line of text for each pair.

    Returns
    -------
    Rdr
        Numerators, denominators and ratios for each distance, pair and side of the pair.

    Notes
    -----
    All four halves of a repeat (two per domain) have the same number of rows, so numerator and denominator have the
    same bias. Both come from the same halves: one side is d(A₁, A₂) over d(A₁, B₂), the other d(B₁, B₂) over d(A₁, B₂).
    If domains share units, such as the same tissue on two scanners, a unit is in the same half of both domains. A₁
    then has no unit in common with B₂, and A₂ and B₂ differ only in the domain.

    The ratio depends on the scale of a distance: squaring a distance squares its ratio, so a distance of order 2, such
    as CFD, has a smaller ratio than its square root. Compare distances by ``ratio_root`` or ``ratio_squared``. If two
    domains are at distance zero in some halves, the mean ratio is not finite; use ``ratio_of_means``. A biased distance
    has a positive ratio even without a shift; an unbiased one may have a negative ratio, which is not clipped.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x, scanner = rng.normal(size=(400, 16)), np.repeat(["S1", "S2"], 200)
    >>> x[scanner == "S2"] += 0.5
    >>> cf.rdr(x, scanner, distances=["cfd", "cfd_unbiased", "mmd"], repeats=20)
    Relative distance ratio, mean ± sd of 20 random halves
                               cfd         cfd_unbiased               mmd
    S1 in S1–S2  0.05801 ± 0.02121  -0.005062 ± 0.02158  0.2786 ± 0.03678
    S2 in S1–S2  0.05747 ± 0.02102  -0.005647 ± 0.02196  0.2786 ± 0.03674
    """
    check_whole(repeats, "repeats", 2)
    check_seed(seed)
    if rows is not None:
        check_whole(rows, "rows", MIN_HALF_ROWS)
    measures = as_measures(distances)
    domain, units = align_index("x", x, domain=domain, units=units)
    found = as_domains(x, domain)
    unit = None if units is None else as_codes(units, len(found.x), "units")[0]
    every = combinations(range(len(found.names)), 2)
    asked = list(every) if pairs is None else found.pairs(pairs)
    for k in sorted({k for pair in asked for k in pair}):
        check_splittable(found.names[k], found.rows(k), unit)
    entries: list[Ratio] = []
    for number, pair in enumerate(asked):
        names = found.names[pair[0]], found.names[pair[1]]
        if progress is not None:
            progress(f"{pair_text(names)}: pair {number + 1} of {len(asked)}")
        draw = np.random.default_rng([seed, number])
        values, size = _measure_halves(found, pair, unit, measures, repeats, rows, draw)
        for side, name in enumerate(names):
            entries += [
                _make_ratio(names, name, m, values[k, side], values[k, 2], size) for k, m in enumerate(measures)
            ]
    return Rdr(tuple(entries), repeats)


def _measure_halves(
    found: Domains,
    pair: tuple[int, int],
    unit: CodeArray | None,
    measures: Sequence[Measure],
    repeats: int,
    most: int | None,
    draw: np.random.Generator,
) -> tuple[FloatArray, float]:
    """Distances within both sides and across, shape (measures, 3, repeats), and the mean size of a half."""
    values, sizes = np.empty((len(measures), 3, repeats)), []
    for repeat in range(repeats):
        halves = split_halves([found.rows(k) for k in pair], unit, most, draw)
        if len(halves.a[0]) < MIN_HALF_ROWS:
            raise InputError(
                problem=f"halves of {pair_text((found.names[pair[0]], found.names[pair[1]]))} by units have fewer"
                f" than {MIN_HALF_ROWS} rows",
                remedy="name smaller units, or leave a domain out",
            )
        a1, a2, b1, b2 = (LabeledRows(found.x[rows]) for rows in (*halves.a, *halves.b))
        sizes.append(len(a1.rows))
        for k, measure in enumerate(measures):
            values[k, :, repeat] = [measure.call(*two) for two in ((a1, a2), (b1, b2), (a1, b2))]
    return values, float(np.mean(sizes))


def _make_ratio(
    pair: tuple[Any, Any], domain: Any, measure: Measure, within: FloatArray, across: FloatArray, size: float
) -> Ratio:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = within / across
        of_means = float(np.divide(within.mean(), across.mean()))
        root = ratio if measure.order == 1 else np.sqrt(np.where((within >= 0) & (across > 0), ratio, np.nan))
        square = ratio if measure.order == 2 else ratio**2
    return Ratio(
        pair,
        domain,
        measure.name,
        measure.order,
        *_compute_mean_and_sd(within),
        *_compute_mean_and_sd(across),
        *_compute_mean_and_sd(ratio),
        of_means,
        _compute_mean_and_sd(root)[0],
        _compute_mean_and_sd(square)[0],
        size,
    )


def _compute_mean_and_sd(values: FloatArray) -> tuple[float, float]:
    with np.errstate(invalid="ignore"):
        return float(values.mean()), float(values.std(ddof=1))
