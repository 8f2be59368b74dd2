"""Distances between all pairs of groups."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion import plots
from crossfusion._base import (
    MAX_LISTED_GROUPS,
    FloatArray,
    InputError,
    arg,
    check_option,
    count_text,
    label_text,
    level_text,
    limits_text,
    number_text,
    percent,
    pvalue_text,
    warn,
)
from crossfusion.fusion.cautions import bound_lower_tail, caution_about_close_means, join_cautions
from crossfusion.fusion.design import WEIGHTS, Codes, Design, check_range, estimate_mean_errors, split_by_stratum
from crossfusion.fusion.display import Content, TextTable
from crossfusion.fusion.exclusion import Exclusion, describe_excluded
from crossfusion.fusion.geometry import caution_about_geometry
from crossfusion.fusion.result import Result
from crossfusion.fusion.scaling import caution_about_separating, describe_scale, name_scale
from crossfusion.moments import kernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MATRIX_FIELDS = ("unbiased", "distance", "overlap", "lower", "upper", "stderr", "statistic", "pvalue", "adjusted")
PAIR_COLUMNS = {"CFD": "unbiased", "plug-in": "distance"}  # of a table of pairs
PLOTTED_VALUES = ("unbiased", "distance")
MAX_GROUPS = 5_000  # their matrices take one or two gigabytes


@dataclass(frozen=True, eq=False, repr=False)
class Pairwise(Result):
    """Cross-Fusion Distances between all pairs of groups.

    Parameters
    ----------
    labels : tuple
        The groups, in the order of rows and columns.
    distance, unbiased : array of shape (groups, groups)
        Plug-in and unbiased CFD of each pair, NaN if the two groups share no stratum. A group with one row in a stratum
        borrows the variance pooled over all groups and strata; `unbiased` is NaN if there is no variance to borrow.
    overlap : array of shape (groups, groups)
        Share of a pair's weight in strata that contain both groups; 1 without ``given``. If it is 0, nothing is
        compared.
    level : float, optional
        Confidence level of the limits, if requested.
    lower, upper : array of shape (groups, groups), optional
        Confidence limits of each CFD; NaN for a pair with too few rows or units.
    stderr : array of shape (groups, groups), optional
        Standard error of each unbiased CFD.
    statistic, pvalue, adjusted : array of shape (groups, groups), optional
        Statistic and p-value of the permutation test of each pair, and the p-value adjusted for the number of pairs, if
        requested.
    statistic_name : {"welch", "pseudo-f"}, optional
        Which statistic was used.
    permutations : int, optional
        Number of random permutations for pairs that are far apart: the requested number, or more so that adjusted
        p-values can reach 0.01. Pairs that are clearly not significant have the requested number; pairs with few units
        have all possible permutations.
    adjust : str, optional
        Method that adjusted the p-values.
    caution : str, optional
        Warning that a few features of large variance hide a difference between groups in the others, or that adjusted
        p-values cannot be small because there are too few permutations.
    weights : str, optional
        How the two groups of a pair are weighted: "balanced" or "pooled".
    excluded : tuple of Exclusion
        Groups, or groups in single strata, that are left out because they have too few units for a standard error. All
        numbers in the result describe the remaining groups; a pair of which nothing remains is NaN.
    scale : str, optional
        "features" if each feature is in units of its standard deviation within all compared groups.
    constant : tuple, optional
        With `scale`: the features left out because they do not vary within groups.

    Notes
    -----
    `to_frame` returns one row per pair with group_a, group_b, unbiased, distance, overlap and, if requested, lower,
    upper, stderr, statistic, pvalue, adjusted.

    Examples
    --------
    >>> import crossfusion as cf
    >>> summary = cf.summarize([[0.0], [2.0], [2.0], [4.0]], by={"site": ["A", "A", "B", "B"], "n": [1, 2, 1, 2]})
    >>> summary.pairwise("site")
    Cross-Fusion Distance between 2 groups (balanced weights)
            A       B
    A       0  0.2231
    B  0.2231       0
    """

    labels: tuple[Hashable, ...]
    distance: FloatArray
    unbiased: FloatArray
    overlap: FloatArray
    level: float | None = None
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    stderr: FloatArray | None = None
    statistic: FloatArray | None = None
    pvalue: FloatArray | None = None
    adjusted: FloatArray | None = None
    permutations: int | None = None
    adjust: str | None = None
    caution: str | None = None
    weights: str | None = None
    excluded: tuple[Exclusion, ...] = ()
    statistic_name: str | None = None
    scale: str | None = None
    constant: tuple[Hashable, ...] | None = None

    @property
    def columns(self) -> dict[str, FloatArray]:
        """Matrices by name, without those that were not requested."""
        found = {name: getattr(self, name) for name in MATRIX_FIELDS}
        return {name: values for name, values in found.items() if values is not None}

    def _columns(self) -> dict[str, Any]:
        """Return one row per pair."""
        first, second = np.triu_indices(len(self.labels), 1)
        groups = {"group_a": [self.labels[i] for i in first], "group_b": [self.labels[i] for i in second]}
        return groups | {name: values[first, second] for name, values in self.columns.items()}

    def plot(self, values: str = "unbiased", *, axes: Any = None) -> "Figure":
        """Draw the matrix of distances.

        Parameters
        ----------
        values : {"unbiased", "distance"}
            Which CFD to draw: unbiased or plug-in.
        axes : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure, one column wide.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; save it with ``savefig``.
        """
        check_option(values, PLOTTED_VALUES, "values")
        found: FloatArray = getattr(self, values)
        what = "Cross-Fusion Distance" if values == "unbiased" else "Plug-in Cross-Fusion Distance"
        return plots.matrix(self.labels, found, what=what, axes=axes)

    def plot_forest(self, *, axes: Any = None) -> "Figure":
        """Draw the unbiased CFD of each pair, farthest first, with its interval if there is one.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure, one column wide.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; save it with ``savefig``.
        """
        first, second = np.triu_indices(len(self.labels), 1)
        columns = {name: values[first, second] for name, values in self.columns.items()}
        unbiased = columns["unbiased"]
        order = np.argsort(-np.nan_to_num(unbiased, nan=-np.inf), kind="stable")
        names = [(self.labels[first[k]], self.labels[second[k]]) for k in order]
        limits = [columns[name][order] if name in columns else None for name in ("lower", "upper")]
        what = (
            "Cross-Fusion Distance"
            if self.level is None
            else f"Cross-Fusion Distance, {level_text(self.level)} interval"
        )
        some = f"the {plots.LINES} farthest of {len(order):,} pairs" if len(order) > plots.LINES else ""
        return plots.forest(names, unbiased[order], *limits, what=what, title=some, axes=axes)

    def _values(self) -> dict[str, Any]:
        names = ("level", "statistic_name", "permutations", "adjust", "caution", "weights", "scale", "constant")
        asked = {name: getattr(self, name) for name in names}
        found = {"labels": self.labels} | self.columns | asked
        found |= {"excluded": self.excluded}
        return {name: value for name, value in found.items() if value is not None}

    def _contents(self) -> list[Content]:
        named = "" if self.weights is None else f" ({self.weights} weights)"
        title = f"Cross-Fusion Distance between {count_text(len(self.labels), 'group')}{named}"
        said = [f"caution: {self.caution}"] if self.caution else []
        if self.lower is not None or self.pvalue is not None:
            header, rows = self.table(MAX_LISTED_GROUPS)
            more = len(self.labels) * (len(self.labels) - 1) // 2 - len(rows)
            table = TextTable(header, rows, more=more, left=(0, 1))
            return [f"{title}, the farthest first", table, *self._describe_coverage(), *said]
        names = [label_text(label) for label in self.labels[:MAX_LISTED_GROUPS]]
        rows = [
            [name, *(number_text(value) for value in values[:MAX_LISTED_GROUPS])]
            for name, values in zip(names, self.unbiased, strict=False)
        ]
        table = TextTable(["", *names], rows, more=len(self.labels) - len(names))
        return [title, table, *self._describe_coverage(), *said]

    def _describe_coverage(self) -> list[str]:
        """Say what is left out, and how far the groups share strata, unless they all do."""
        excluded = [f"scale: {describe_scale(self.constant or ())}"] if self.scale else []
        excluded += [f"excluded: {describe_excluded(self.excluded)}"] if self.excluded else []
        overlap = self.overlap[np.triu_indices(len(self.labels), 1)]
        overlap = overlap[~np.isnan(overlap)]
        if (overlap == 1).all():
            return excluded
        none = int(np.sum(overlap == 0))
        least = f"overlap of the pairs: at least {percent(overlap[overlap > 0].min())}" if none < len(overlap) else ""
        missing = f"{none} of {len(overlap)} pairs share no stratum and have no distance" if none else ""
        return [*excluded, "; ".join(filter(None, [least, missing]))]

    def table(self, number: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return the pairs as a table of text, the farthest first.

        Parameters
        ----------
        number : int, optional
            How many pairs; by default all.

        Returns
        -------
        tuple
            Column names, and a list of rows, each a list of strings.
        """
        first, second = np.triu_indices(len(self.labels), 1)
        found = {name: values[first, second] for name, values in self.columns.items()}
        order = np.argsort(-np.nan_to_num(found["unbiased"], nan=-np.inf), kind="stable")[:number].tolist()
        columns = {
            "group_a": [label_text(self.labels[k]) for k in first],
            "group_b": [label_text(self.labels[k]) for k in second],
        } | self._describe_values(found)
        return list(columns), [[texts[k] for texts in columns.values()] for k in order]

    def _describe_values(self, found: Mapping[str, FloatArray]) -> dict[str, list[str]]:
        """Format the values of pairs, by column."""
        columns = {name: [*map(number_text, found[column])] for name, column in PAIR_COLUMNS.items()}
        if self.level is not None:
            limits = zip(found["lower"], found["upper"], strict=True)
            columns[f"{level_text(self.level)} interval"] = [limits_text(*pair) for pair in limits]
        if self.pvalue is not None:
            columns["p"] = [*map(pvalue_text, found["pvalue"])]
            columns[f"adjusted p ({self.adjust})"] = [*map(pvalue_text, found["adjusted"])]
        if not (self.overlap == 1).all():
            columns["overlap"] = [*map(percent, found["overlap"])]
        return columns


def restore_labels(result: Pairwise, labels: Sequence[Hashable]) -> Pairwise:
    """Add groups that are left out to a result, with NaN for their pairs."""
    if len(result.labels) == len(labels):
        return result
    own = [list(labels).index(label) for label in result.labels]
    matrices = {}
    for name, values in result.columns.items():
        matrices[name] = np.full((len(labels), len(labels)), np.nan)
        np.fill_diagonal(matrices[name], values[0, 0])
        matrices[name][np.ix_(own, own)] = values
    return replace(result, labels=tuple(labels), **matrices)  # type: ignore[arg-type]


def compare_pairs(design: Design, *, weights: str) -> Pairwise:
    """Compute the distances of all pairs of groups within strata.

    In one stratum the cells of groups i and j weigh w_i and w_j and their means are ‖μ_i − μ_j‖ apart, so the stratum
    adds w_i w_j / (w_i + w_j) ‖μ_i − μ_j‖² to the variance between them.
    """
    check_option(weights, WEIGHTS, "weights")
    design.check_groups()
    cells, group, number = design.cells, design.group, len(design.labels)
    if number > MAX_GROUPS:
        raise InputError(
            problem=f"{number:,} groups have too many pairs, at most {MAX_GROUPS:,} are taken",
            remedy="select or roll up first",
        )
    rows_of_group = np.bincount(group, weights=cells.count, minlength=number).astype(np.float64)
    error, noise = estimate_mean_errors(cells, design.borrowed), design.estimate_mean_errors()
    between, correction, within, within_unbiased, overlap = np.zeros((5, number, number))
    for members in split_by_stratum(design.stratum):
        own = group[members]
        weight = _compute_pair_weights(cells.count[members], own, rows_of_group, weights)
        everyone = np.array_equal(own, np.arange(number))  # all groups, in order: no copies
        rows: Any = ... if everyone else own
        within[rows] += weight * cells.dispersion[members][:, None]
        within_unbiased[rows] += weight * (error * cells.count)[members][:, None]
        here: Any = ... if everyone else np.ix_(own, own)
        both = weight if everyone else weight[:, own]
        sums = both + both.T
        overlap[here] += sums
        harmonic = np.divide(both * both.T, sums, out=sums)
        with np.errstate(over="ignore"):
            squared = kernel.squared_distances(np.ascontiguousarray(cells.mean[members]))
        check_range(squared.max())
        between[here] += np.multiply(harmonic, squared, out=squared)
        errors = noise[members][:, None] + noise[members]
        correction[here] += np.multiply(harmonic, errors, out=errors)
    overlap[overlap > 1 - 1e-12] = 1.0  # a sum of weights that is 1 but for rounding
    between[_fill_diagonal(overlap, 1.0) == 0] = np.nan  # nothing is compared
    result = Pairwise(
        labels=tuple(design.labels),
        unbiased=_log_ratio(design.shrinkage * between - correction, within_unbiased + within_unbiased.T),
        distance=_log_ratio(between, within + within.T),
        overlap=overlap,
        caution=join_cautions(
            _caution_about_equal_means(between, correction),
            caution_about_geometry(design, design.weights(weights), names=design.features),
            caution_about_separating(design.scale),
        ),
        weights=weights,
        **name_scale(design.scale),
    )
    _warn_about_confounded(result)
    return result


def _compute_pair_weights(count: FloatArray, group: Codes, rows_of_group: FloatArray, scheme: str) -> FloatArray:
    """Compute the weight of each cell of a stratum (rows) in the pair of its group with every group (columns)."""
    if scheme == "pooled":
        return np.asarray(count[:, None] / (rows_of_group[group][:, None] + rows_of_group))
    share = np.zeros(len(rows_of_group))
    share[group] = count / rows_of_group[group]
    return np.asarray(np.where(share > 0, (share[group][:, None] + share) / 4, share[group][:, None] / 2))


def _log_ratio(between: FloatArray, within: FloatArray) -> FloatArray:
    """`fusion.log_ratio` for matrices, with zeros on the diagonal; uses up `between`."""
    spread = within != 0
    ratio = np.divide(between, within, out=between, where=spread)
    if not spread.all():
        ratio[~spread & (ratio > 0)] = np.inf
    return _fill_diagonal(np.log1p(ratio, out=ratio), 0.0)


def _fill_diagonal(matrix: FloatArray, value: float) -> FloatArray:
    np.fill_diagonal(matrix, value)
    return matrix


def _caution_about_equal_means(between: FloatArray, error: FloatArray) -> str | None:
    """Return a caution if the means of some pair agree so closely that they must have been set equal."""
    first, second = np.triu_indices(len(between), 1)
    between, error = between[first, second], error[first, second]
    known = error > 0
    closest = float(np.nanmin(between[known] / error[known], initial=1.0))
    return caution_about_close_means(len(first) * bound_lower_tail(closest, 1, np.inf))  # as if features moved together


def _warn_about_confounded(result: Pairwise) -> None:
    number = len(result.labels)
    confounded = int(np.sum(result.overlap == 0)) // 2
    if confounded:
        warn(
            f"pairs of groups are fully confounded with {arg('given')} ({confounded} of {number * (number - 1) // 2}):"
            " no stratum holds both, so they have no distance"
        )
