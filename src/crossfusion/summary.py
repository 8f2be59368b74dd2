"""A table of moments, one row a group, and the questions that can be put to it."""

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import factors, storage
from crossfusion._version import __version__
from crossfusion.adjust import METHODS
from crossfusion.attribution import FEATURES, Attribution, by_feature, by_unit
from crossfusion.bootstrap import multiplicities, replicates
from crossfusion.design import Design
from crossfusion.errors import InputError
from crossfusion.frames import data_frame
from crossfusion.fusion import Fusion, fuse
from crossfusion.hierarchy import Hierarchy, levels_of
from crossfusion.inference import test_of_units, with_limits, with_tests, with_units
from crossfusion.judge import TestResult, check_options
from crossfusion.kernels import FloatArray
from crossfusion.moments import Moments, concat
from crossfusion.one_vs_rest import each_vs_rest
from crossfusion.pairwise import Pairwise, pairs
from crossfusion.text import SHOWN, label_text, number_text, plain_number, text_table
from crossfusion.unit_errors import UnitMoments
from crossfusion.validation import as_names, check_known, check_level, check_option, check_same_dim, check_whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Factors = str | Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """Moments of groups that named factors define; every distance is answered from here, without the rows.

    Made by `summarize` or `read_summary`. Summaries of disjoint sets of rows add up to the summary of all of them.

    Parameters
    ----------
    keys : pyarrow.Table
        A column for each factor, a row for each observed combination of their values, in order.
    moments : Moments
        Of those groups.
    dtype : str
        Type of the rows seen.
    dropped : int
        Rows left out because they were not finite.

    Examples
    --------
    >>> import crossfusion as cf
    >>> x = [[0.0], [2.0], [2.0], [4.0], [7.0], [9.0]]
    >>> summary = cf.summarize(x, by={"site": ["A", "A", "B", "B", "B", "B"], "label": [0, 0, 0, 0, 1, 1]})
    >>> summary
    Summary of 3 groups by site, label: 6 rows × 1 features (float64)
    site  label  count  dispersion
    A         0      2      1.0000
    B         0      2      1.0000
    B         1      2      1.0000
    >>> round(float(summary.cfd("site", given="label")), 6)
    0.510826
    """

    keys: "pa.Table"
    moments: Moments
    dtype: str = "float64"
    dropped: int = 0

    def __post_init__(self) -> None:
        """Refuse factor names that have a meaning of their own."""
        for name in (*storage.MOMENTS, FEATURES):
            if name in self.factors:
                raise InputError(f"a factor cannot be called {name!r}, which names something else here: rename it")

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(self.keys.column_names)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.moments.dim

    def __len__(self) -> int:
        return len(self.moments)

    def __add__(self, other: "Summary") -> "Summary":
        if not isinstance(other, Summary):
            return NotImplemented
        return combine([self, other])

    def __radd__(self, other: Any) -> "Summary":
        return self if isinstance(other, int) and other == 0 else NotImplemented  # the start of sum()

    def _with(self, keys: "pa.Table", moments: Moments) -> "Summary":
        return Summary(keys, moments, self.dtype, self.dropped)

    def rollup(self, by: Factors) -> "Summary":
        """Merge groups that differ only in factors that are not named.

        Parameters
        ----------
        by : str or list of str
            The factors to keep.

        Returns
        -------
        Summary
            With these factors, groups in the order of their values.
        """
        names = self._names(by, "by")
        if names == self.factors:
            return self
        return self._with(*_merge(self.keys.select(list(names)), self.moments))

    def select(self, /, **values: Any) -> "Summary":
        """Keep the groups whose factors have the given values.

        Parameters
        ----------
        **values : value or list of values
            For each named factor what to keep; None is the missing value.

        Returns
        -------
        Summary
            With the same factors.
        """
        self._check_factors(values)
        kept = np.ones(len(self), bool)
        for name, wanted in values.items():
            column = self.keys.column(name).to_pylist()
            several = isinstance(wanted, Iterable) and not isinstance(wanted, str | bytes)
            choice = [factors.plain_value(entry) for entry in wanted] if several else [factors.plain_value(wanted)]
            known = set(column)
            for value in (entry for entry in choice if not isinstance(entry, Hashable) or entry not in known):
                shown = ", ".join(map(repr, sorted(known, key=str)[:SHOWN]))
                raise InputError(f"no group has {name}={value!r}: {name} has {len(known)} values, such as {shown}")
            chosen = set(choice)
            kept &= np.array([value in chosen for value in column])
        index = np.flatnonzero(kept)
        if not len(index):
            raise InputError(f"no group has all of {values}: select fewer factors")
        import pyarrow as pa

        return self._with(self.keys.take(pa.array(index)), self.moments[index])

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to one Parquet file, whole or not at all.

        Parameters
        ----------
        path : path
            The file, which is replaced if it exists.
        """
        facts = {"dtype": self.dtype, "dropped": self.dropped, "creator": f"crossfusion {__version__}"}
        storage.write(path, self.keys, self.moments, facts)

    def to_frame(self) -> "pd.DataFrame":
        """One row a group: its factors, count, mean and sumsq.

        Returns
        -------
        pandas.DataFrame
            Factor values keep their types; mean and sumsq hold one array a row.
        """
        columns = {name: factors.values(self.keys.column(name)) for name in self.factors}
        moments = {"count": self.moments.count, "mean": list(self.moments.mean), "sumsq": list(self.moments.sumsq)}
        return data_frame(columns | moments)

    def cfd(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        weights: str = "pooled",
        level: float | None = None,
    ) -> Fusion:
        """Cross-Fusion Distance between the groups of a factor, or of several.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        given : str or list of str, optional
            The factors to adjust for: groups are compared within their strata.
        units : str or list of str, optional
            The factors that tell apart what is independent, such as the patient: `unbiased` and the interval count
            these and not rows. A unit may have rows in one group or in several.
        weights : {"pooled", "balanced"}
            Groups weigh as their rows do, or all the same.
        level : float, optional
            Confidence level, such as 0.95, of the interval to give with the distance; needs `units`.

        Returns
        -------
        Fusion
            Distance, plug-in and unbiased, with its parts; and with its interval if `level` is given.

        Notes
        -----
        For pooled weights the chain rule holds exactly: CFD(P×Q) = CFD(Q) + CFD(P | Q). CFD sees means, not shapes.
        """
        check_level(level)
        design = design_of(self, between, given)
        fusion = fuse(design, weights=weights, dropped=self.dropped)
        if level is None and not as_names(units, "units"):
            return fusion
        pieces = pieces_of(self, between, given, units, "level")
        return with_units(fusion, pieces, design, design.weights(weights), level)

    def pairwise(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        weights: str = "pooled",
        level: float | None = None,
        permutations: int | None = None,
        seed: int = 0,
        adjust: str = "holm",
    ) -> Pairwise:
        """Distances of all pairs of groups; each equals `cfd` of the two groups alone.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        given : str or list of str, optional
            The factors to adjust for.
        units : str or list of str, optional
            The factors that tell apart what is independent, such as the patient: `unbiased` and the interval count
            these and not rows. A unit may have rows in one group or in several.
        weights : {"pooled", "balanced"}
            Groups weigh as their rows do, or all the same.
        level : float, optional
            Confidence level, such as 0.95, of the limits to give with each distance; needs `units`.
        permutations : int, optional
            Rearrangements of a permutation test of each pair; needs `units`.
        seed : int
            Of the rearrangements.
        adjust : {"holm", "bh"}
            How `adjusted` accounts for the number of pairs; see `adjusted_pvalues`.

        Returns
        -------
        Pairwise
            Matrices of distances; and of limits and p-values where asked for.

        Notes
        -----
        Limits and tests take the pairs one by one, limits in a millisecond or two each: for hundreds of groups, select
        first. The limits are of single distances, each at the given level.
        """
        check_level(level)
        check_option(adjust, METHODS, "adjust")
        if permutations is not None:
            check_options(permutations, seed)
        design = design_of(self, between, given)
        result = pairs(design, weights=weights)
        if level is None and permutations is None and not as_names(units, "units"):
            return result
        pieces = pieces_of(self, between, given, units, "permutations" if level is None else "level")
        result = with_limits(result, pieces, design, weights=weights, level=level)
        if permutations is None:
            return result
        return with_tests(result, pieces, design, permutations=permutations, seed=seed, adjust=adjust)

    def one_vs_rest(
        self, between: Factors, *, given: Factors | None = None, weights: str = "pooled"
    ) -> dict[Hashable, Fusion]:
        """Distance of each group to all others taken together.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        given : str or list of str, optional
            The factors to adjust for.
        weights : {"pooled", "balanced"}
            The two sides weigh as their rows do, or the same.

        Returns
        -------
        dict
            A Fusion for each group.
        """
        return each_vs_rest(design_of(self, between, given), weights=weights, dropped=self.dropped)

    def hierarchy(self, levels: Sequence[str], *, weights: str = "pooled") -> Hierarchy:
        """Split the distance of nested groups over their levels.

        Parameters
        ----------
        levels : list of str
            Factors from the outermost to the innermost; each level's groups are combinations with all levels above.
        weights : {"pooled", "balanced"}
            The finest groups weigh as their rows do, or all the same.

        Returns
        -------
        Hierarchy
            A distance for each level, given those above; they add up to the distance between the finest groups.
        """
        names = self._names(levels, "levels")
        leaves = self.rollup(names)
        parts = [factors.encode(leaves.keys.select(list(names[: depth + 1])))[0] for depth in range(len(names))]
        return levels_of(leaves.moments, parts, names, weights=weights)

    def attribution(
        self, between: Factors, *, given: Factors | None = None, over: str = FEATURES, weights: str = "pooled"
    ) -> Attribution:
        """What the variance between groups is made of.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        given : str or list of str, optional
            The factors to adjust for.
        over : str
            "features", or a factor such as the patient, whose values contribute.
        weights : {"pooled", "balanced"}
            Groups weigh as their rows do, or all the same.

        Returns
        -------
        Attribution
            Contribution, share, and the distance without each feature or unit.
        """
        design = design_of(self, between, given)
        if over == FEATURES:
            return by_feature(design, weights=weights)
        compared = [*as_names(between, "between"), *as_names(given, "given")]
        self._check_factors([over])
        if over in compared:
            raise InputError(f"over={over!r} is in between or given itself: name another factor, or 'features'")
        fine = self.rollup([*compared, over])
        cell, _ = factors.encode(fine.keys.select(compared))
        unit, units = factors.encode(fine.keys.select([over]))
        return by_unit(fine.moments, cell, unit, design, over=over, units=factors.labels(units), weights=weights)

    def test(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        permutations: int = 999,
        seed: int = 0,
    ) -> TestResult:
        """Test whether groups are separated farther than chance would have it, by exchanging labels of units.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        given : str or list of str, optional
            The factors to adjust for: groups are compared, and labels exchanged, within their strata.
        units : str or list of str
            The factors that tell apart what is independent, such as the patient or the slide. Units of one group each
            exchange their labels as wholes; where some units have several groups (a slide on two scanners), labels
            are exchanged within units only.
        permutations : int
            Random rearrangements; where there are no more than this and one, each is looked at once instead.
        seed : int
            Of the random rearrangements.

        Returns
        -------
        TestResult
            Statistic, p-value, and the statistic under each rearrangement.

        Notes
        -----
        The same as `permutation_test` of the rows with these units (or pairs) and strata, without the rows.
        """
        check_options(permutations, seed)
        design = design_of(self, between, given)
        pieces = pieces_of(self, between, given, units, "a test")
        return test_of_units(pieces, design, permutations=permutations, seed=seed)

    def bootstrap(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        weights: str = "pooled",
        draws: int = 999,
        seed: int = 0,
    ) -> FloatArray:
        """Distances of resampled units: a check of the interval that owes nothing to its formula.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        given : str or list of str, optional
            The factors to adjust for.
        units : str or list of str
            The factors that tell apart what is independent, such as the patient.
        weights : {"pooled", "balanced"}
            Groups weigh as their rows do, or all the same.
        draws : int
            Number of resamples.
        seed : int
            Of the resamples.

        Returns
        -------
        array of shape (draws,)
            Distance of each resample, less the bias that units and their resampling add, so that they lie around
            `unbiased`. Their standard deviation is about its standard error; for distances near zero it is larger.

        Notes
        -----
        Units are drawn with replacement among those of the same groups, at the weights of the whole.
        """
        check_whole(draws, "draws")
        check_whole(seed, "seed", least=0)
        design, pieces = design_of(self, between, given), pieces_of(self, between, given, units, "a bootstrap")
        return replicates(pieces, design, design.weights(weights), multiplicities(pieces, design, draws, seed))

    def _names(self, value: Factors, name: str) -> tuple[str, ...]:
        """Names of factors, at least one."""
        names = as_names(value, name)
        if not names:
            raise InputError(f"{name} is empty: name at least one factor")
        self._check_factors(names)
        return names

    def _check_factors(self, names: Sequence[str] | Mapping[str, Any]) -> None:
        check_known(names, self.factors, "factor", "the summary")

    def __repr__(self) -> str:
        head = self.keys.slice(0, SHOWN).to_pylist()
        rows = [
            [*(label_text(value) for value in key.values()), f"{plain_number(count):,}", number_text(spread)]
            for key, count, spread in zip(head, self.moments.count, self.moments.dispersion, strict=False)
        ]
        table = text_table([*self.factors, "count", "dispersion"], rows, more=len(self) - len(rows))
        total = plain_number(float(self.moments.count.sum()))
        return (
            f"Summary of {len(self):,} groups by {', '.join(self.factors)}:"
            f" {total:,} rows × {self.dim:,} features ({self.dtype})\n{table}"
        )


def design_of(summary: Summary, between: Factors, given: Factors | None) -> Design:
    """Cells of `between` within `given`."""
    compared, strata = summary._names(between, "between"), as_names(given, "given")
    both = set(compared) & set(strata)
    if both:
        raise InputError(f"{both.pop()!r} is in between and in given: a factor can be compared or adjusted for")
    cells = summary.rollup([*compared, *strata])
    group, groups = factors.encode(cells.keys.select(list(compared)))
    part = factors.encode(cells.keys.select(list(strata)))[0] if strata else np.zeros(len(cells), int)
    return Design(cells.moments, group, part, factors.labels(groups))


def pieces_of(
    summary: Summary, between: Factors, given: Factors | None, units: Factors | None, wanted: str
) -> UnitMoments:
    """Moments of units in the cells of a design, which something that is wanted needs."""
    compared, names = [*as_names(between, "between"), *as_names(given, "given")], as_names(units, "units")
    if not names:
        raise InputError(
            f"a summary has no rows, so {wanted} needs units: name the factor of what is independent, such as the"
            " patient, or use cfd(x, labels=..., level=...) and permutation_test(x, labels) on the rows"
        )
    summary._check_factors(names)
    both = {*names} & {*compared}
    if both:
        raise InputError(f"{both.pop()!r} is in units and in between or given: units are what is repeated in them")
    fine = summary.rollup([*compared, *names])
    factors.check_units(fine.keys, names)
    cell, _ = factors.encode(fine.keys.select(compared))
    unit, _ = factors.encode(fine.keys.select(list(names)))
    return UnitMoments(fine.moments, cell, unit)


def combine(parts: Sequence[Summary]) -> Summary:
    """Summary of the rows of all parts, in one merge."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    for part in parts[1:]:
        check_same_dim({"one summary": first.dim, "another": part.dim})
        if set(first.factors) != set(part.factors):
            raise InputError(
                f"the summaries have factors {', '.join(first.factors)} and {', '.join(part.factors)}:"
                " roll both up to the same ones"
            )
    keys = factors.concat([part.keys.select(list(first.factors)) for part in parts], "the summaries")
    dtype = reduce(np.promote_types, (np.dtype(part.dtype) for part in parts)).name
    merged = _merge(keys, concat([part.moments for part in parts]))
    return Summary(*merged, dtype, sum(part.dropped for part in parts))


def _merge(keys: "pa.Table", moments: Moments) -> tuple["pa.Table", Moments]:
    """Each combination of keys once, in order, and the moments that belong to it."""
    codes, distinct = factors.encode(keys)
    if np.array_equal(codes, np.arange(len(codes))):
        return keys, moments
    return distinct, moments.merge(codes, distinct.num_rows)


def read_summary(path: str | os.PathLike[str]) -> Summary:
    """Read a summary that `Summary.write` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Summary
        As it was written.

    Raises
    ------
    FileError
        If the file is missing, damaged, not a summary, or of a newer format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0]], by={"site": ["A", "B"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     summary.write(Path(folder) / "summary.parquet")
    ...     again = cf.read_summary(Path(folder) / "summary.parquet")
    >>> again.moments == summary.moments
    True
    """
    keys, moments, facts = storage.read(path)
    return Summary(*_merge(keys, moments), facts["dtype"], facts["dropped"])
