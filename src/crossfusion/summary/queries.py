"""Queries on a table of moments, which do not need the rows."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from crossfusion._base import (
    CodeArray,
    FloatArray,
    InputError,
    accept_old_names,
    arg,
    as_names,
    check_known,
    check_level,
    check_option,
    check_seed,
    check_whole,
    column_names,
    factors,
    match_features,
)
from crossfusion.fusion import (
    FEATURES,
    MIN_UNITS,
    Attribution,
    Fusion,
    Geometry,
    Hierarchy,
    Mixing,
    Pairwise,
    Projection,
    ScaledRows,
    attribute_to_features,
    attribute_to_units,
    check_projectable,
    check_scale,
    compare_each_with_rest,
    compare_pairs,
    fuse,
    measure_geometry,
    name_scale,
    project_groups,
    restore_labels,
    split_levels,
)
from crossfusion.inference import (
    ADJUSTMENTS,
    TestResult,
    add_limits,
    add_tests,
    add_unit_errors,
    check_test_options,
    compare_each_with_rest_by_units,
    compute_replicates,
    draw_multiplicities,
    run_unit_test,
)
from crossfusion.summary.crossed_units import warn_about_few_crossed
from crossfusion.summary.drift import Drift, compare_periods
from crossfusion.summary.mixing import measure_mixing
from crossfusion.summary.moment_table import Factors, MomentTable


class Queries(MomentTable):
    """A table of moments with queries; `Summary` is its public subclass."""

    def cfd(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        weights: str = "pooled",
        level: float | None = None,
        min_units: int = MIN_UNITS,
        scale: str | None = None,
    ) -> Fusion:
        """Compute the Cross-Fusion Distance between groups.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for: groups are compared within strata of these factors.
        units : str or list of str, optional
            The factors that identify independent units, such as the patient: `unbiased` and the interval then count
            units instead of rows. A unit may have rows in several groups.
        weights : {"pooled", "balanced"}
            "pooled" weights groups by their number of rows, "balanced" equally.
        level : float, optional
            Confidence level of the interval, such as 0.95; requires `units`.
        min_units : int
            Minimum number of units per group (and stratum), at least 2. Smaller groups are left out and named in
            `excluded`; all numbers describe the remaining groups.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within the compared groups (and strata), at these
            weights, so that features count the same: log(1 + mean_j B_j / W_j). Features that do not vary within groups
            are left out and named in `constant`. By default, features keep their units.

        Returns
        -------
        Fusion
            Plug-in and unbiased CFD with the variances they are computed from, and the interval if `level` is given.

        Notes
        -----
        With pooled weights, the chain rule is exact: CFD(P×Q) = CFD(Q) + CFD(P | Q). CFD compares means, not shapes.
        """
        check_level(level)
        check_scale(scale)
        if level is None and not as_names(units, "units"):
            return fuse(self._make_scaled_design(between, given, weights, scale), weights=weights, dropped=self.dropped)
        design, unit_moments, excluded = self._make_unit_design(between, given, units, f"{arg('level')}", min_units)
        if scale is not None:
            design = design.standardize(design.weights(weights))
            unit_moments = unit_moments.rescale(design)
        fusion = replace(fuse(design, weights=weights, dropped=self.dropped), excluded=excluded)
        return add_unit_errors(fusion, unit_moments, design, design.weights(weights), level)

    def pairwise(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
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
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for.
        units : str or list of str, optional
            The factors that identify independent units, such as the patient: `unbiased` and the limits then count
            units instead of rows. A unit may have rows in several groups.
        weights : {"balanced", "pooled"}
            "balanced" weights the two groups of a pair equally, so that the sizes of groups do not decide which pair is
            farthest apart; "pooled" weights them by their number of rows, as in the paper.
        level : float, optional
            Confidence level of the limits of each CFD, such as 0.95; requires `units`.
        permutations : int, optional
            Number of permutations in the test of each pair; requires `units`. By default, pairs are not tested. Pairs
            that are far apart get more permutations, up to 10 million for all pairs, so that their adjusted p-values
            can reach 0.01.
        seed : int
            Seed of the permutations.
        statistic : {"welch", "pseudo-f"}
            Statistic of the tests; see `permutation_test`.
        adjust : {"holm", "bh"}
            Method that adjusts the p-values for the number of pairs; see `adjusted_pvalues`.
        min_units : int
            Minimum number of units per group (and stratum), at least 2. Smaller groups are left out and named in
            `excluded`; all numbers describe the remaining groups, and a pair of which nothing remains is NaN.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within all compared groups (and strata), at these
            weights, so that features count the same in all pairs. Features that do not vary within groups
            are left out and named in `constant`. By default, features keep their units.

        Returns
        -------
        Pairwise
            Matrices of distances and, if requested, of limits and p-values.

        Notes
        -----
        A group with one row in a stratum borrows the variance pooled over all groups and strata, not of the pair alone.

        Limits and tests are computed pair by pair, and the limits of a pair take some milliseconds: with hundreds
        of groups, select some first. The limits hold for each CFD separately, not for all of them jointly.
        """
        check_level(level)
        check_scale(scale)
        check_option(adjust, ADJUSTMENTS, "adjust")
        if permutations is not None:
            check_test_options(permutations, seed, statistic)
        whole = self._make_scaled_design(between, given, weights, scale)
        if level is None and permutations is None and not as_names(units, "units"):
            return compare_pairs(whole, weights=weights)
        wanted = f"{arg('permutations' if level is None else 'level')}"
        design, unit_moments, excluded = self._make_unit_design(between, given, units, wanted, min_units)
        scaled = design if scale is None else design.standardize(design.weights(weights))
        result = replace(compare_pairs(scaled, weights=weights), excluded=excluded)
        result = add_limits(result, unit_moments.rescale(scaled), scaled, weights=weights, level=level)
        if permutations is not None:
            tests: dict[str, Any] = {"permutations": permutations, "seed": seed, "statistic": statistic, "scale": scale}
            result = add_tests(result, unit_moments, design, adjust=adjust, **tests)
        return restore_labels(result, whole.labels)

    def one_vs_rest(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        weights: str = "pooled",
        level: float | None = None,
        min_units: int = MIN_UNITS,
        scale: str | None = None,
    ) -> dict[Hashable, Fusion]:
        """Compute the Cross-Fusion Distance between each group and all other groups together.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for.
        units : str or list of str, optional
            The factors that identify independent units, such as the patient: `unbiased` and the interval then count
            units instead of rows. A unit may have rows in several groups.
        weights : {"pooled", "balanced"}
            "pooled" weights the two sides by their number of rows, "balanced" equally.
        level : float, optional
            Confidence level of the intervals, such as 0.95; requires `units`.
        min_units : int
            Minimum number of units per group (and stratum), at least 2. Smaller groups are left out, also of the rest,
            and named in `excluded`.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within the groups (and strata), at these weights,
            so that features count the same in each comparison. Features that do not vary within groups are left out and
            named in `constant`. By default, features keep their units.

        Returns
        -------
        dict
            A Fusion for each group.

        Notes
        -----
        The rest is a mixture of the other groups in proportion to their rows. Intervals hold for this mixture: they
        count the errors of each group's mean, and not that other groups might have been observed. They hold for each
        group separately, not for all of them jointly.
        """
        check_level(level)
        check_scale(scale)
        if level is None and not as_names(units, "units"):
            scaled = self._make_scaled_design(between, given, weights, scale)
            return compare_each_with_rest(scaled, weights=weights, dropped=self.dropped)
        design, unit_moments, excluded = self._make_unit_design(between, given, units, f"{arg('level')}", min_units)
        if scale is not None:
            design = design.standardize(design.weights(weights))
            unit_moments = unit_moments.rescale(design)
        options: dict[str, Any] = {"weights": weights, "level": level, "dropped": self.dropped}
        found = compare_each_with_rest_by_units(unit_moments, design, **options)
        return {label: replace(fusion, excluded=excluded) for label, fusion in found.items()}

    @accept_old_names(levels="factors")
    def hierarchy(
        self,
        factors: Sequence[str],
        *,
        weights: str = "pooled",
        balance: Factors | None = None,
        scale: str | None = None,
    ) -> Hierarchy:
        """Decompose the Cross-Fusion Distance between nested groups by level.

        Parameters
        ----------
        factors : list of str
            Factors from the outermost to the innermost. The groups of a level are the combinations of its factor with
            all factors above it.
        weights : {"pooled", "balanced"}
            "pooled" weights the finest groups by their number of rows, "balanced" equally.
        balance : str or list of str, optional
            If `weights` is "balanced", the levels whose groups have equal weights, while rows within each of these
            groups have equal weights; by default all levels. With the outermost level alone, its CFD equals that of
            `cfd` with balanced weights.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within the finest groups, so that features count
            the same and the levels still add up. Features that do not vary within groups
            are left out and named in `constant`. By default, features keep their units.

        Returns
        -------
        Hierarchy
            The CFD of each level, adjusted for the levels above; the sum is the CFD between the finest groups.
        """
        check_scale(scale)
        names = self._check_names(factors, "factors")
        leaves = self.rollup(names)
        partitions = [_encode_groups(leaves, names[: depth + 1]) for depth in range(len(names))]
        chosen = self._check_names(names if balance is None else balance, "balance")
        check_known(chosen, names, "factor", f"{arg('factors')}")
        groups = _encode_groups(leaves, chosen)
        options: dict[str, Any] = {"weights": weights, "balance": groups, "scale": scale, "features": self.features}
        return split_levels(leaves.moments, partitions, names, **options)

    def attribution(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        over: str = FEATURES,
        weights: str = "pooled",
        scale: str | None = None,
    ) -> Attribution:
        """Attribute the variance between groups to features or units.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for.
        over : str
            "features", or the factor whose values are the units, such as the patient.
        weights : {"pooled", "balanced"}
            "pooled" weights groups by their number of rows, "balanced" equally.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within the compared groups (and strata), at these
            weights, so that features count the same: log(1 + mean_j B_j / W_j). Features that do not vary within groups
            are left out and named in `constant`. By default, features keep their units.

        Returns
        -------
        Attribution
            Contribution, share, and the distance without each feature or unit.
        """
        design = self._make_scaled_design(between, given, weights, scale)
        if not isinstance(over, str):
            raise InputError("over", over, "must be the name of a factor, or 'features'")
        if over == FEATURES:
            return attribute_to_features(design, weights=weights)
        compared = [*as_names(between, "between"), *as_names(given, "given")]
        self._check_factors([over])
        if over in compared:
            raise InputError(
                "over", over, f"is in {arg('between')} or {arg('given')} itself", "name another factor, or 'features'"
            )
        fine = self.rollup([*compared, over])
        cell, _ = factors.encode(fine.keys.select(compared))
        unit, units = factors.encode(fine.keys.select([over]))
        moments = fine.moments if design.scale is None else fine.moments.multiply(design.scale.factor)
        return attribute_to_units(
            moments, cell, unit, design, over=over, units=factors.list_labels(units), weights=weights
        )

    def geometry(self, between: Factors, *, given: Factors | None = None, weights: str = "pooled") -> Geometry:
        """Measure how the variance within groups, to which CFD is relative, is spread over features.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for: the variance is that within groups and strata.
        weights : {"pooled", "balanced"}
            "pooled" weights groups by their number of rows, "balanced" equally.

        Returns
        -------
        Geometry
            Effective dimension, share of each feature, length of the rows, and a caution with its remedy.
        """
        return measure_geometry(self._make_design(between, given), weights)

    def mixing(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        level: float | None = None,
        permutations: int = 199,
        seed: int = 0,
        min_units: int = MIN_UNITS,
    ) -> Mixing:
        """Measure how groups mix in the regions of a codebook, whatever their means.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for: groups are compared within strata of these factors.
        units : str or list of str, optional
            The factors that identify independent units, such as the patient: the correction for chance, the test and
            the interval then count units instead of rows.
        level : float, optional
            Confidence level of the interval, such as 0.95; requires `units`.
        permutations : int
            Number of random permutations of units (or rows), which give the information expected by chance.
        seed : int
            Seed of the permutations.
        min_units : int
            With `units`, the minimum number of units per group (and stratum), at least 2. Smaller groups are left out
            and named in `excluded`.

        Returns
        -------
        Mixing
            Normalized mutual information of group and region, with a table of the regions.

        Notes
        -----
        The summary needs the integer factor "region", which a codebook adds: ``summarize(..., lens=cf.lens.codebook(
        rows))``. Any other factor of this name works as well, such as clusters from another method.
        """
        options: dict[str, Any] = {"given": given, "units": units, "level": level, "min_units": min_units}
        return measure_mixing(self, between, permutations=permutations, seed=seed, **options)

    def project(
        self, between: Factors, *, rows: Any = None, labels: Sequence[Any] | None = None, scale: str | None = None
    ) -> Projection:
        """Project groups onto the plane that shows the most variance between them.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        rows : array, optional
            Rows to project onto the same plane.
        labels : sequence, optional
            The group of each of these rows: a value of the factor, or a tuple of values of several factors.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within groups, so that features count the same.
            Features that do not vary within groups are left out and named in `constant`. By default, features keep
            their units.

        Returns
        -------
        Projection
            Coordinates of the group means and, if passed, of the rows.
        """
        groups = self.rollup(self._check_names(between, "between"))
        found = tuple(factors.list_labels(groups.keys))
        codes = None
        if rows is not None or labels is not None:
            names = column_names(rows) if self.features is not None else ()
            rows, codes = check_projectable(rows, labels, found, self.dim)
            order = match_features(self.features, names, "the summary", "rows") if self.features and names else None
            rows = rows if order is None else rows[:, order]
        if scale is None:
            return project_groups(groups.moments, found, self.moments.mean, rows, codes)
        used = self._make_scaled_design(between, None, "pooled", scale).scale
        assert used is not None
        moments, rows = groups.moments.multiply(used.factor), None if rows is None else ScaledRows(rows, used.factor)[:]
        seen = project_groups(moments, found, self.moments.mean * used.factor, rows, codes)
        return replace(seen, **name_scale(used))

    def test(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        permutations: int = 999,
        seed: int = 0,
        statistic: str = "welch",
        min_units: int = MIN_UNITS,
        scale: str | None = None,
    ) -> TestResult:
        """Test whether groups are separated more than expected by chance, by permuting labels of units.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for: groups are compared and labels permuted within strata of these factors.
        units : str or list of str
            The factors that identify independent units, such as the patient or the slide. If every unit is in one
            group, labels are permuted between units. If some units are in several groups (a slide on two scanners),
            labels are permuted within units only, with a warning if this leaves out most units.
        permutations : int
            Number of random permutations. If there are at most `permutations` + 1 in all, each is used once instead.
        seed : int
            Seed of the random permutations.
        statistic : {"welch", "pseudo-f"}
            "welch" allows for groups that differ in size and spread; "pseudo-f" is the statistic of PERMANOVA. See
            `permutation_test`.
        min_units : int
            Minimum number of units per group (and stratum). Smaller groups are left out and named in `excluded`, as in
            `cfd`. 1 keeps groups with a single unit, which have no interval.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within strata, whatever the group, which is the
            same for all permutations, so that features count the same and the test is exact. Features that do not vary
            are left out and named in `constant`. `distance` is that of `cfd`. By default, features keep their units.

        Returns
        -------
        TestResult
            Statistic, p-value, and the statistic under each permutation.

        Notes
        -----
        The result equals that of `permutation_test` on the rows with these units (or pairs) and strata.
        """
        check_test_options(permutations, seed, statistic)
        check_scale(scale)
        design, unit_moments, excluded = self._make_unit_design(between, given, units, "a test", min_units, least=1)
        warn_about_few_crossed(self, as_names(between, "between"), as_names(given, "given"), as_names(units, "units"))
        tested = run_unit_test(
            unit_moments, design, permutations=permutations, seed=seed, statistic=statistic, scale=scale
        )
        return replace(tested, excluded=excluded)

    def bootstrap(
        self,
        between: Factors,
        *,
        given: Factors | None = None,
        units: Factors | None = None,
        weights: str = "pooled",
        draws: int = 999,
        seed: int = 0,
        min_units: int = MIN_UNITS,
        scale: str | None = None,
    ) -> FloatArray:
        """Compute the CFD of resampled units, as an independent check of the interval.

        Parameters
        ----------
        between : str or list of str
            The factors that define the groups.
        given : str or list of str, optional
            The factors to adjust for.
        units : str or list of str
            The factors that identify independent units, such as the patient.
        weights : {"pooled", "balanced"}
            "pooled" weights groups by their number of rows, "balanced" equally.
        draws : int
            Number of resamples.
        seed : int
            Seed of the resamples.
        min_units : int
            Minimum number of units per group (and stratum), at least 2. Smaller groups are left out, with a warning
            that names them.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within the compared groups (and strata), at these
            weights, so that features count the same. The standard deviations are those of the full data, and features
            that do not vary within groups are left out. By default, features keep their units.

        Returns
        -------
        array of shape (draws,)
            CFD of each resample, corrected for the bias due to units and resampling, so that the values scatter around
            `unbiased`. Their standard deviation approximates its standard error; near zero, it is larger.

        Notes
        -----
        Units are drawn with replacement among units of the same groups. The weights are those of the full data.
        """
        check_whole(draws, "draws")
        check_seed(seed)
        check_scale(scale)
        design, unit_moments, _ = self._make_unit_design(between, given, units, "a bootstrap", min_units)
        if scale is not None:
            design = design.standardize(design.weights(weights))
            unit_moments = unit_moments.rescale(design)
        times = draw_multiplicities(unit_moments, design, draws, seed)
        return compute_replicates(unit_moments, design, design.weights(weights), times)

    def drift(
        self,
        time: str,
        *,
        reference: Any,
        given: Factors | None = None,
        units: Factors | None = None,
        alarm: float | None = 0.01,
        adjust: str | None = None,
        window: int = 1,
        step: int = 1,
        weights: str = "pooled",
        level: float | None = 0.95,
        over: Factors = FEATURES,
        seed: int = 0,
        min_units: int = MIN_UNITS,
        scale: str | None = None,
    ) -> Drift:
        """Compare each period with a reference, and raise alarms at a given false-alarm rate.

        Parameters
        ----------
        time : str
            The factor whose values are the periods, in sorted order. Numbers in text sort as numbers: "week 9" comes
            before "week 10". The order of an ordered categorical is not kept in a summary.
        reference : str, list or tuple
            The reference periods: "first:4" (the first four), a list of periods, a pair of the first and the last, or
            "previous" to compare each window with the one before it. An alarm needs at least three.
        given : str or list of str, optional
            The factors to adjust for, such as the label: the distance then measures the shift within strata, and the
            effect of a changed mix of strata is reported separately.
        units : str or list of str, optional
            The factors that identify independent units, such as the patient, for intervals.
        alarm : float, optional
            Rate of false alarms per window; None computes distances only.
        adjust : {"holm", "bh"}, optional
            Adjust p-values for the number of windows: with "holm", `alarm` is the probability of any false alarm.
        window, step : int
            Number of periods per window, and from one window's start to the next. With `step` = 1, windows slide; with
            `step` = `window`, they do not overlap, and the newest periods wait until a window is full.
        weights : {"pooled", "balanced"}
            "pooled" weights the two sides by their number of rows, "balanced" equally, which makes windows of different
            sizes comparable. Alarms do not depend on it.
        level : float, optional
            Confidence level of the intervals, which require `units`.
        over : str or list of str
            "features" or factors, to which the first alarm is attributed, or the largest deviation if there is none.
        seed : int
            Seed of the simulated series that give the p-value of the change.
        min_units : int
            With `units`, the minimum number of units per stratum, at least 2. Strata in which a window or the reference
            has fewer are left out of the CFD and interval of that window, and named in `excluded`. Alarms count periods
            and do not depend on it.
        scale : {"features"}, optional
            "features" divides each feature by its standard deviation within the reference periods (and strata), or
            within all periods if `reference` is "previous", so that features count the same. Features that do not vary
            there are left out and named in `constant`. By default, features keep their units.

        Returns
        -------
        Drift
            Distances, intervals, p-values and alarms of all windows, the change point, and the attribution of the first
            alarm.

        Notes
        -----
        The alarm counts periods, not rows: normal variation is estimated from the reference periods, and consecutive
        periods may be correlated. With few reference periods, the alarm is conservative. If consecutive periods are
        strongly correlated (0.8 or more), false alarms may be more frequent than `alarm`.
        """
        options: dict[str, Any] = {"weights": weights, "level": level, "alarm": alarm, "adjust": adjust, "seed": seed}
        options |= {"min_units": min_units, "scale": scale}
        return compare_periods(
            self, time, reference=reference, given=given, units=units, window=window, step=step, over=over, **options
        )


def _encode_groups(table: MomentTable, names: Sequence[str]) -> CodeArray:
    """Encode the group of each entry by some factors."""
    return factors.encode(table.keys.select(list(names)))[0]
