"""The Cross-Fusion Distance of weighted cells, and its result.

With weights w, means μ and dispersions σ² of the cells c in strata g::

    within   = Σ w_c σ_c²
    between  = Σ w_c ‖μ_c − μ_g‖²
    distance = log(1 + between / within)
"""

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from crossfusion import plots
from crossfusion._base import (
    MAX_LISTED_GROUPS,
    FloatArray,
    InputError,
    arg,
    check_level,
    check_positive,
    count_text,
    field_values,
    interval_text,
    label_text,
    level_text,
    number_text,
    p_text,
    percent,
    quantity_text,
    shorten,
    warn,
)
from crossfusion.fusion.cautions import (
    caution_about_equal_means,
    caution_about_overlap,
    caution_about_spread,
    has_equal_means,
    join_cautions,
    split_cautions,
)
from crossfusion.fusion.design import NO_VARIANCE, Codes, Design, between_by_feature, estimate_mean_errors
from crossfusion.fusion.display import STATISTIC_NAMES, Content, Facts
from crossfusion.fusion.exclusion import Exclusion, describe_excluded
from crossfusion.fusion.geometry import caution_about_geometry
from crossfusion.fusion.result import Result
from crossfusion.fusion.scaling import TOO_FEW_ROWS, caution_about_separating, describe_scale, name_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFOUNDED = "no stratum holds two of the compared groups"
CONFOUNDED_REMEDY = f"leave {arg('given')} out, or collect strata that groups share"
MIN_ALPHA, MAX_ALPHA = 1e-6, 0.25  # of equivalence tests
OPTIONAL_FIELDS = (  # set only on request
    "level",
    "interval",
    "stderr",
    "statistic",
    "statistic_name",
    "pvalue",
    "permutations",
    "scale",
    "constant",
)


class Limits(Protocol):
    """What an interval at any level is computed from."""

    def limits(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Lower and upper confidence limits."""


@dataclass(frozen=True, repr=False)
class Fusion(Result):
    """Cross-Fusion Distance between groups, with the variances it is computed from.

    Parameters
    ----------
    distance : float or None
        Plug-in CFD, ``log(total / within)``: 0 for equal means, inf if the means differ and rows do not vary within
        groups. None if nothing is compared, because no stratum holds two groups.
    unbiased : float or None
        CFD from unbiased variance estimates; may be slightly negative. A group with one row in its stratum borrows the
        variance pooled over the others. None if there is no variance to borrow, or if nothing is compared.
    score : float or None
        Cross-Fusion Score ``within / total``, the share of the variance within groups; None if nothing is compared.
    within, between, total : float
        Variance within groups, between groups, and their sum; each summed over features. `between` and `total` are None
        if nothing is compared.
    counts, weights : mapping
        Number of rows and weight of each group.
    overlap : float
        Share of the weight in strata with at least two groups; 1 without ``given``. If it is 0, nothing is compared.
    dropped : int
        Rows dropped because they contain NaN or infinity.
    caution : str or None
        Warning that only few rows are in strata that groups share, that the means agree by construction, that a few
        features of large variance hide a difference in the others, or that the groups differ more in spread or shape
        than in position, so that a distance between means is misleading. Means, scale and spread are checked from the
        moments; shape is checked by the energy distance between sampled rows, if `level` is given and rows are
        available.
    reason : str or None
        Why `distance` or `unbiased` is None.
    excluded : tuple of Exclusion
        Groups, or groups in single strata, that are left out because they have too few units for a standard error. All
        numbers in the result describe the remaining groups.
    level : float, optional
        Confidence level of `interval`, if requested.
    interval : tuple of float, optional
        Lower and upper confidence limits of CFD, around `unbiased`.
    stderr : float, optional
        Standard error of `unbiased`.
    statistic, statistic_name, pvalue, permutations : optional
        Statistic of a permutation test, its name, p-value and number of permutations, if requested.
    scale : str, optional
        "features" if each feature is in units of its standard deviation within groups; `within` is then the number of
        features that vary.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary within groups.
    errors : optional
        The errors of the estimate, from which `limits` and `fused_within` are computed; set if `level` or `units` is
        given, and not part of `to_dict`.

    Notes
    -----
    `to_frame` returns one row with all scalar fields, and `lower` and `upper` if there is an interval. `plot` draws the
    share of the variance between groups.

    Examples
    --------
    >>> import crossfusion as cf
    >>> fusion = cf.cfd([[0.0], [2.0]], [[2.0], [4.0]])
    >>> fusion.within, fusion.between, fusion.total
    (1.0, 1.0, 2.0)
    >>> round(fusion.distance, 6)
    0.693147
    """

    distance: float | None
    unbiased: float | None
    score: float | None
    within: float
    between: float | None
    total: float | None
    counts: Mapping[Hashable, float]
    weights: Mapping[Hashable, float]
    overlap: float = 1.0
    dropped: int = 0
    caution: str | None = None
    reason: str | None = None
    excluded: tuple[Exclusion, ...] = ()
    level: float | None = None
    interval: tuple[float, float] | None = None
    stderr: float | None = None
    statistic: float | None = None
    pvalue: float | None = None
    permutations: int | None = None
    statistic_name: str | None = None
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None
    errors: Limits | None = field(default=None, compare=False)

    def __float__(self) -> float:
        if self.distance is None:
            raise InputError(problem=f"there is no distance, because {self.reason}", remedy=CONFOUNDED_REMEDY)
        return self.distance

    def limits(self, level: float = 0.95) -> tuple[float, float] | None:
        """Compute confidence limits of CFD at any level.

        Parameters
        ----------
        level : float
            Confidence level.

        Returns
        -------
        tuple of float, or None
            Lower and upper limit; None if there is no estimate, for the reason in `reason`.
        """
        check_level(level, needed=True)
        if self.unbiased is None:
            return None
        if self.errors is None:
            raise InputError(
                problem="the errors of this distance are unknown, because no interval was requested",
                remedy=f"pass {arg('level', 0.95)}, with {arg('units')} if rows are not independent",
            )
        low, high = self.errors.limits(level)
        return float(low), float(high)

    def fused_within(self, margin: float, alpha: float = 0.05) -> bool | None:
        """Test equivalence: whether CFD is shown to be below a margin.

        Parameters
        ----------
        margin : float
            The largest CFD that does not matter, chosen before looking at the data.
        alpha : float
            Probability of claiming equivalence wrongly if the true CFD is at the margin, at most 0.25.

        Returns
        -------
        bool or None
            Whether the upper confidence limit at level 1 − 2 `alpha` is below the margin. None if the data cannot
            answer: there is no estimate, for the reason in `reason`, or the group means are equal by construction.

        Notes
        -----
        False means that equivalence is not shown, not that the groups differ. The answer is about means only, as CFD
        is: see `caution`.
        """
        check_positive(margin, "margin")
        check_positive(alpha, "alpha")
        if not MIN_ALPHA <= alpha <= MAX_ALPHA:
            raise InputError("alpha", alpha, f"must be at least {MIN_ALPHA:g} and at most {MAX_ALPHA:g}", "pass 0.05")
        limits = self.limits(1 - 2 * alpha)
        if limits is None or any(map(has_equal_means, split_cautions(self.caution))):
            return None
        return limits[1] < margin

    def _draw(self, axes: Any) -> "Figure":
        """Draw the share of the variance between groups, with its interval if there is one."""
        if self.distance is None:
            raise InputError(problem=f"there is nothing to draw, because {self.reason}", remedy=CONFOUNDED_REMEDY)
        limits = None if self.interval is None else [-math.expm1(-end) for end in self.interval]
        value = self.distance if limits is None or self.unbiased is None else self.unbiased
        between = -math.expm1(-max(value, 0.0))
        title = f"Cross-Fusion Distance {interval_text(value, self.interval)}"
        names = ("between groups", "within")
        return plots.parts(names, (between, 1 - between), title=title, limits=limits, axes=axes)

    def _values(self) -> dict[str, Any]:
        return {
            name: value
            for name, value in field_values(self).items()
            if name != "errors" and (value is not None or name not in OPTIONAL_FIELDS)
        }

    def _columns(self) -> dict[str, Any]:
        limits = {} if self.interval is None else dict(zip(("lower", "upper"), self.interval, strict=True))
        return super()._columns() | {name: [value] for name, value in limits.items()}

    def _contents(self) -> list[Content]:
        title = "Cross-Fusion Distance –, nothing is compared"
        if self.distance is not None:
            estimate = f"– ({self.reason})" if self.unbiased is None else interval_text(self.unbiased, self.interval)
            title = f"Cross-Fusion Distance {estimate}, plug-in {number_text(self.distance)}"
        names = [shorten(label_text(label)) for label in list(self.counts)[:MAX_LISTED_GROUPS]]
        shares = zip(names, self.counts.values(), self.weights.values(), strict=False)
        groups = [(name, f"{count:>10,} rows", f"{percent(weight):>6} of the weight") for name, count, weight in shares]
        more = len(self.counts) - len(names)
        return [
            title,
            Facts(list(self._facts()), gap=1),
            Facts(groups),
            *([f"  ... and {more:,} more groups"] if more else []),
        ]

    def _facts(self) -> Iterator[tuple[str, str]]:
        if self.distance is None:
            yield "reason", str(self.reason)
        else:
            yield "score", f"{number_text(self.score)} of the variance lies within the groups"
            within, between, total = map(quantity_text, (self.within, self.between, self.total))
            yield "variance", f"{within} within + {between} between = {total}"
        if self.scale is not None:
            yield "scale", describe_scale(self.constant or ())
        if self.interval is not None and self.level is not None:
            yield "interval", f"{level_text(self.level)} confidence, standard error {number_text(self.stderr)}"
        if self.pvalue is not None:
            name = STATISTIC_NAMES[self.statistic_name or "welch"]
            number = count_text(self.permutations or 0, "permutation")
            yield "test", f"{p_text(self.pvalue)}, {name} {number_text(self.statistic)}, {number}"
        if self.overlap < 1:
            yield "overlap", f"{percent(self.overlap)} of the weight lies in strata that hold several groups"
        if self.excluded:
            yield "excluded", describe_excluded(self.excluded)
        if self.dropped:
            yield "dropped", f"{count_text(self.dropped, 'row')} that were not finite"
        if self.caution:
            yield "caution", self.caution


def log_ratio(between: float, within: float) -> float:
    """Return log((within + between) / within), exact for small `between`; 0 if there is no variance at all."""
    if within == 0:
        return math.inf if between > 0 else 0.0
    return math.log1p(between / within)


def estimate_unbiased(design: Design, weight: FloatArray, between: float) -> float | None:
    """Compute the distance from unbiased estimates of between and within; None if all cells have one row."""
    error = estimate_mean_errors(design.cells, design.borrowed)
    if np.isnan(error).any():
        return None
    corrected = design.shrinkage * between - compute_bias(design, weight)
    if np.isnan(corrected):
        return None
    return log_ratio(corrected, float(np.sum(weight * error * design.cells.count)))


def compute_bias(design: Design, weight: FloatArray) -> float:
    """Compute the variance between means that their sampling error alone adds."""
    share = weight / np.bincount(design.stratum, weights=weight)[design.stratum]
    return float(np.sum(weight * (1 - share) * design.estimate_mean_errors()))


def measure_overlap(weight: FloatArray, stratum: Codes) -> float:
    """Compute the share of the weight in strata with at least two cells."""
    shared = np.bincount(stratum)[stratum] > 1
    return 1.0 if shared.all() else float(weight[shared].sum())


def check_overlap(weight: FloatArray, stratum: Codes, *, tell: bool = True) -> float:
    """Compute the share of the weight in strata with at least two cells; if `tell`, warn if there are none."""
    overlap = measure_overlap(weight, stratum)
    if overlap == 0 and tell:
        warn(
            f"the design is fully confounded: {CONFOUNDED} within {arg('given')}, so nothing is compared and there is"
            " no distance",
            CONFOUNDED_REMEDY,
        )
    return overlap


def fuse(design: Design, *, weights: str, dropped: int = 0, tell: bool = True) -> Fusion:
    """Compute the distance between groups within strata; if `tell`, warn if nothing is compared."""
    design.check_groups()
    weight = design.weights(weights)
    overlap = check_overlap(weight, design.stratum, tell=tell)
    within = float(np.sum(weight * design.cells.dispersion))
    found: dict[str, Any] = {
        "within": within,
        "counts": _sum_by_group(design, design.cells.count),
        "weights": _sum_by_group(design, weight),
        "overlap": overlap,
        "dropped": dropped,
        **name_scale(design.scale),
    }
    if overlap == 0:
        return Fusion(distance=None, unbiased=None, score=None, between=None, total=None, reason=CONFOUNDED, **found)
    between = float(between_by_feature(design.cells.mean, weight, design.stratum).sum())
    distance = log_ratio(between, within)
    unbiased = estimate_unbiased(design, weight, between)
    cautions = () if unbiased is None else _find_cautions(design, weight, between, within * math.expm1(unbiased))
    return Fusion(
        distance=distance,
        unbiased=unbiased,
        score=math.exp(-distance),
        between=between,
        total=within + between,
        reason=None if unbiased is not None else NO_VARIANCE if design.scale is None else TOO_FEW_ROWS,
        caution=join_cautions(caution_about_overlap(design), caution_about_separating(design.scale), *cautions),
        **found,
    )


def _find_cautions(
    design: Design, weight: FloatArray, between: float, corrected: float
) -> tuple[str | None, str | None]:
    """Find out why the variance between means, plug-in and corrected for its bias, may mislead."""
    # as if all features moved together, which moments cannot rule out: fewer degrees of freedom are more cautious
    freedom = float(len(design.cells) - len(np.unique(design.stratum)))
    equal = caution_about_equal_means(between, compute_bias(design, weight), freedom)
    spread = caution_about_spread(design, weight, corrected, design.cells.count)
    return equal or spread, caution_about_geometry(design, weight, names=design.features)


def _sum_by_group(design: Design, values: FloatArray) -> dict[Hashable, float]:
    totals = np.bincount(design.group, weights=values, minlength=len(design.labels)).tolist()
    return {label: int(t) if t.is_integer() else t for label, t in zip(design.labels, totals, strict=True)}
