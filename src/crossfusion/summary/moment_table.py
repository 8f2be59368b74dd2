"""The table of moments: groups defined by factors, with their moments; roll-up and selection."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from crossfusion._base import (
    MAX_LISTED_GROUPS,
    CodeArray,
    InputError,
    arg,
    arrow,
    as_features,
    as_names,
    as_tags,
    check_known,
    count_text,
    factors,
    label_text,
    plain_number,
    quantity_text,
    shorten,
)
from crossfusion.fusion import (
    FEATURES,
    MIN_UNITS,
    Content,
    Design,
    DisplayMixin,
    Exclusion,
    TextTable,
    check_min_units,
    check_scale,
    data_frame,
    leave_out_cells,
)
from crossfusion.inference import UnitMoments
from crossfusion.moments import Moments, reduce_groups
from crossfusion.summary import storage

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Factors = str | Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class MomentTable(DisplayMixin):
    """A table of moments; `Summary` documents the fields."""

    keys: "pa.Table"
    moments: Moments
    dtype: str = "float64"
    dropped: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)
    batches: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    lens: str | None = None

    def __post_init__(self) -> None:
        """Refuse factor names that have a meaning of their own, and tags and features that are not named by text."""
        if "" in self.factors:
            raise InputError(problem="a factor has an empty name", remedy="rename it")
        for name in (*storage.RESERVED_COLUMNS, FEATURES):
            if name in self.factors:
                raise InputError(
                    problem=f"a factor cannot be called {name!r}, which names something else here", remedy="rename it"
                )
        object.__setattr__(self, "tags", as_tags(self.tags))
        object.__setattr__(self, "features", as_features(self.features, self.dim))

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

    def _replace_cells(self, keys: "pa.Table", moments: Moments) -> Self:
        """Replace the groups, and forget the batches, which no longer describe them."""
        return replace(self, keys=keys, moments=moments, batches=())

    def rollup(self, by: Factors) -> Self:
        """Merge groups that differ only in other factors.

        Parameters
        ----------
        by : str or list of str
            The factors to keep.

        Returns
        -------
        Summary
            Summary by these factors, sorted by their values.
        """
        names = self._check_names(by, "by")
        if names == self.factors:
            return self
        return self._replace_cells(*merge_cells(self.keys.select(list(names)), self.moments))

    def select(self, /, **values: Any) -> Self:
        """Keep the groups whose factors have the given values.

        Parameters
        ----------
        **values : value or list of values
            The values to keep of each named factor; None is the missing value.

        Returns
        -------
        Summary
            Summary of the selected groups, by the same factors.
        """
        self._check_factors(values)
        kept = np.ones(len(self), bool)
        for name, wanted in values.items():
            column = self.keys.column(name).to_pylist()
            several = isinstance(wanted, Iterable) and not isinstance(wanted, str | bytes)
            choice = [factors.python_value(entry) for entry in wanted] if several else [factors.python_value(wanted)]
            known = set(column)
            for value in (entry for entry in choice if not isinstance(entry, Hashable) or entry not in known):
                shown = ", ".join(map(repr, sorted(known, key=str)[:MAX_LISTED_GROUPS]))
                raise InputError(
                    problem=f"no group has {name}={value!r}",
                    remedy=f"{name} has {count_text(len(known), 'value')}, such as {shown}",
                )
            chosen = set(choice)
            kept &= np.array([value in chosen for value in column])
        index = np.flatnonzero(kept)
        if not len(index):
            raise InputError(problem=f"no group has all of {values}", remedy="select fewer factors")
        return self._replace_cells(self.keys.take(arrow.from_numbers(index)), self.moments[index])

    def to_frame(self) -> "pd.DataFrame":
        """Return one row per group, with its factors, count, mean and sumsq.

        Returns
        -------
        pandas.DataFrame
            Factor values keep their types; mean and sumsq hold one array per row.
        """
        columns = {name: factors.to_array(self.keys.column(name)) for name in self.factors}
        moments = {"count": self.moments.count, "mean": list(self.moments.mean), "sumsq": list(self.moments.sumsq)}
        return data_frame(columns | moments)

    def _make_design(self, between: Factors, given: Factors | None) -> Design:
        """Make the design of the groups of `between` within the strata of `given`."""
        compared, strata = self._check_names(between, "between"), as_names(given, "given")
        both = set(compared) & set(strata)
        if both:
            raise InputError(
                problem=f"{both.pop()!r} is in {arg('between')} and in {arg('given')}",
                remedy="a factor can be compared or adjusted for",
            )
        cells = self.rollup([*compared, *strata])
        group, groups = factors.encode(cells.keys.select(list(compared)))
        labels = factors.list_labels(groups)
        if not strata:
            return Design(cells.moments, group, np.zeros(len(cells), int), labels, features=self.features)
        stratum, places = factors.encode(cells.keys.select(list(strata)))
        names = factors.list_labels(places)
        return Design(cells.moments, group, stratum, labels, features=self.features, strata=names)

    def _make_scaled_design(self, between: Factors, given: Factors | None, weights: str, scale: str | None) -> Design:
        """Make the design of a comparison, with its features standardized if requested."""
        check_scale(scale)
        design = self._make_design(between, given)
        return design if scale is None else design.standardize(design.weights(weights))

    def _make_unit_design(
        self,
        between: Factors,
        given: Factors | None,
        units: Factors | None,
        wanted: str,
        min_units: int,
        *,
        least: int = MIN_UNITS,
    ) -> tuple[Design, UnitMoments, tuple[Exclusion, ...]]:
        """Make a design and the moments of its units, without cells of too few units, which are named."""
        check_min_units(min_units, least)
        design = self._make_design(between, given)
        units_found = self._make_unit_moments(between, given, units, wanted)
        number = units_found.count_units(len(design.cells))
        kept, excluded = leave_out_cells(design, number, min_units)
        return design.select(kept), units_found.select_cells(kept), excluded

    def _make_unit_moments(
        self, between: Factors, given: Factors | None, units: Factors | None, wanted: str
    ) -> UnitMoments:
        """Compute the moments of units in the cells of a design; `wanted` names what needs them in messages."""
        compared, names = [*as_names(between, "between"), *as_names(given, "given")], as_names(units, "units")
        if not names:
            raise InputError(
                problem=f"a summary has no rows, so {wanted} needs {arg('units')}",
                remedy="name the factor of independent units, such as the patient, or use cfd(x, labels=...,"
                " level=...) and permutation_test(x, labels) on the rows",
            )
        self._check_factors(names)
        both = {*names} & {*compared}
        if both:
            raise InputError(
                problem=f"{both.pop()!r} is in {arg('units')} and in {arg('between')} or {arg('given')}",
                remedy="units are what is repeated in them",
            )
        fine = self.rollup([*compared, *names])
        factors.check_units(fine.keys, names)
        cell, _ = factors.encode(fine.keys.select(compared))
        unit, _ = factors.encode(fine.keys.select(list(names)))
        return UnitMoments(fine.moments, cell, unit)

    def _check_names(self, value: Factors, name: str) -> tuple[str, ...]:
        """Names of factors, at least one."""
        names = as_names(value, name, needed=True)
        self._check_factors(names)
        return names

    def _check_factors(self, names: Sequence[str] | Mapping[str, Any]) -> None:
        check_known(names, self.factors, "factor", "the summary")

    def _contents(self) -> list[Content]:
        head = self.keys.slice(0, MAX_LISTED_GROUPS).to_pylist()
        rows = [
            [*(label_text(value) for value in key.values()), f"{plain_number(count):,}", quantity_text(spread)]
            for key, count, spread in zip(head, self.moments.count, self.moments.dispersion, strict=False)
        ]
        total = plain_number(float(self.moments.count.sum()))
        tags = ", ".join(f"{label_text(name)}={label_text(value)}" for name, value in self.tags.items())
        return [
            f"Summary of {count_text(len(self), 'group')} by {', '.join(self.factors)}:"
            f" {count_text(total, 'row')} × {count_text(self.dim, 'feature')} ({self.dtype})",
            *([f"rows seen through the lens {self.lens}"] if self.lens is not None else []),
            *([f"tags: {shorten(tags)}"] if tags else []),
            TextTable([*self.factors, "count", "dispersion"], rows, len(self) - len(rows), range(len(self.factors))),
        ]


def merge_cells(keys: "pa.Table", moments: Moments) -> tuple["pa.Table", Moments]:
    """Merge moments with equal keys, and sort them by key."""
    codes, distinct = factors.encode(keys)
    if np.array_equal(codes, np.arange(len(codes))):
        return keys, moments
    if not (moments.count == 1).all():
        return distinct, moments.merge(codes, distinct.num_rows)
    if distinct.num_rows == len(codes):
        return distinct, arrange_rows(moments.mean, codes)
    return distinct, reduce_groups(moments.mean, codes, distinct.num_rows, name="the sum")[0]  # they are rows


def arrange_rows(rows: Any, codes: CodeArray) -> Moments:
    """Moments of groups of one row each, in the order of the codes."""
    mean = np.empty(rows.shape)
    mean[codes] = rows
    return Moments(np.ones(len(codes)), mean, np.zeros(rows.shape))  # zeros that nobody writes to take no memory
