"""The questions that can be put to a table of moments; every distance is answered from there, without the rows."""

from collections.abc import Hashable, Sequence
from typing import Any

from crossfusion._base import (
    FloatArray,
    InputError,
    arg,
    as_names,
    check_level,
    check_option,
    check_seed,
    check_whole,
    factors,
)
from crossfusion.fusion import (
    FEATURES,
    Attribution,
    Fusion,
    Hierarchy,
    Pairwise,
    Projection,
    attribute_to_features,
    attribute_to_units,
    check_projectable,
    compare_each_with_rest,
    compare_pairs,
    fuse,
    project_groups,
    split_levels,
)
from crossfusion.inference import (
    ADJUSTMENTS,
    TestResult,
    add_limits,
    add_tests,
    add_unit_errors,
    check_test_options,
    compute_replicates,
    draw_multiplicities,
    run_unit_test,
)
from crossfusion.summary.designs import make_design, make_unit_moments, warn_about_few_crossed
from crossfusion.summary.drift import Drift, compare_periods
from crossfusion.summary.moment_table import Factors, MomentTable


class Queries(MomentTable):
    """A table of moments that can be asked; `Summary` is what users meet."""

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
        design = make_design(self, between, given)
        fusion = fuse(design, weights=weights, dropped=self.dropped)
        if level is None and not as_names(units, "units"):
            return fusion
        unit_moments = make_unit_moments(self, between, given, units, f"{arg('level')}")
        return add_unit_errors(fusion, unit_moments, design, design.weights(weights), level)

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
        check_option(adjust, ADJUSTMENTS, "adjust")
        if permutations is not None:
            check_test_options(permutations, seed)
        design = make_design(self, between, given)
        result = compare_pairs(design, weights=weights)
        if level is None and permutations is None and not as_names(units, "units"):
            return result
        unit_moments = make_unit_moments(
            self, between, given, units, f"{arg('permutations' if level is None else 'level')}"
        )
        result = add_limits(result, unit_moments, design, weights=weights, level=level)
        if permutations is None:
            return result
        return add_tests(result, unit_moments, design, permutations=permutations, seed=seed, adjust=adjust)

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
        return compare_each_with_rest(make_design(self, between, given), weights=weights, dropped=self.dropped)

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
        names = self._check_names(levels, "levels")
        leaves = self.rollup(names)
        partitions = [factors.encode(leaves.keys.select(list(names[: depth + 1])))[0] for depth in range(len(names))]
        return split_levels(leaves.moments, partitions, names, weights=weights)

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
        design = make_design(self, between, given)
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
        return attribute_to_units(
            fine.moments, cell, unit, design, over=over, units=factors.list_labels(units), weights=weights
        )

    def project(self, between: Factors, *, rows: Any = None, labels: Sequence[Any] | None = None) -> Projection:
        """Groups on the plane that shows most of the variance between them.

        Parameters
        ----------
        between : str or list of str
            The factors whose observed combinations are compared.
        rows : array, optional
            Some of the rows, to be seen around the means of the groups.
        labels : sequence, optional
            The group of each of these rows: a value of the factor, or a tuple of those of several.

        Returns
        -------
        Projection
            Where the groups lie, and the rows if there are some.
        """
        groups = self.rollup(self._check_names(between, "between"))
        found = tuple(factors.list_labels(groups.keys))
        codes = None
        if rows is not None or labels is not None:
            rows, codes = check_projectable(rows, labels, found, self.dim)
        return project_groups(groups.moments, found, self.moments.mean, rows, codes)

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
            are exchanged within units only, with a warning if that leaves most units out.
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
        check_test_options(permutations, seed)
        design = make_design(self, between, given)
        unit_moments = make_unit_moments(self, between, given, units, "a test")
        warn_about_few_crossed(self, as_names(between, "between"), as_names(given, "given"), as_names(units, "units"))
        return run_unit_test(unit_moments, design, permutations=permutations, seed=seed)

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
        check_seed(seed)
        design = make_design(self, between, given)
        unit_moments = make_unit_moments(self, between, given, units, "a bootstrap")
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
    ) -> Drift:
        """Distance of each period to a reference, with an alarm of a stated rate.

        Parameters
        ----------
        time : str
            The factor whose values are the periods, in their order; numbers in text count as numbers, so that
            "week 9" comes before "week 10". The order of an ordered categorical is not known to a summary.
        reference : str, list or tuple
            "first:4" (the first four periods), a list of periods, the first and the last of them as a pair, or
            "previous": each window is compared with the one before. An alarm needs three periods or more.
        given : str or list of str, optional
            The factors to adjust for, such as the label: the distance is then the shift of the representation, and
            the shift of the labels stands beside it.
        units : str or list of str, optional
            The factors that tell apart what is independent, such as the patient, for intervals.
        alarm : float, optional
            Rate of false alarms of a single window; None for distances alone.
        adjust : {"holm", "bh"}, optional
            Adjust p-values for the number of windows: with "holm", `alarm` is the rate of any false alarm in all.
        window, step : int
            Periods that are judged together, and how many later the next window starts: with `step` 1 windows slide,
            with `step` = `window` they follow each other, and the newest periods wait until a window is full.
        weights : {"pooled", "balanced"}
            The two sides weigh as their rows do, or the same; balanced, windows of different sizes compare. The alarm
            is the same.
        level : float, optional
            Confidence level of the intervals that `units` give.
        over : str or list of str
            What the jump is split over: "features", and factors such as the site.
        seed : int
            Of the series that judge the change.

        Returns
        -------
        Drift
            Distances, intervals, p-values and alarms of all windows, where the series breaks, and what the first
            alarm is made of.

        Notes
        -----
        The alarm counts periods, not rows: what is usual is read off the scatter of the reference's periods, and
        periods that follow each other may be alike. Few reference periods make it cautious. Where neighboring periods
        are very alike (a correlation of 0.8 or more), false alarms may be more frequent than `alarm`.
        """
        options: dict[str, Any] = {"weights": weights, "level": level, "alarm": alarm, "adjust": adjust, "seed": seed}
        return compare_periods(
            self, time, reference=reference, given=given, units=units, window=window, step=step, over=over, **options
        )
