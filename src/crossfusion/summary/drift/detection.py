"""Comparison of periods with the reference: distance, interval, alarm and attribution."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import (
    FloatArray,
    InputError,
    arg,
    as_names,
    check_level,
    check_option,
    check_rate,
    check_seed,
    count_text,
    factors,
    label_text,
    warn,
)
from crossfusion.fusion import (
    FEATURES,
    Attribution,
    Codes,
    Design,
    Exclusion,
    Fusion,
    attribute_to_features,
    attribute_to_units,
    check_min_units,
    check_scale,
    count_shared_rows,
    fuse,
    join_cautions,
    leave_out_cells,
    list_excluded,
    name_scale,
)
from crossfusion.inference import ADJUSTMENTS, add_unit_errors, adjusted_pvalues
from crossfusion.summary.drift.cautions import caution_about_few_rows, list_cautions_of_means
from crossfusion.summary.drift.change import locate_change
from crossfusion.summary.drift.null_distribution import NullDistribution
from crossfusion.summary.drift.periods import PREVIOUS, Window, choose_reference, make_windows
from crossfusion.summary.drift.result import Change, Drift, list_windows
from crossfusion.summary.drift.series import SIDES, Series, make_series
from crossfusion.summary.moment_table import Factors, MomentTable

Flags = NDArray[np.bool_]
MIN_PERIODS = 3  # periods needed to estimate their variation
MAX_PAST_PERIODS = 32  # periods before a window that are used, if it is compared with the one before
MAX_REFERENCE_PERIODS = 64  # latest reference periods whose variation is used; more would hardly help


@dataclass(frozen=True)
class Request:
    """Checked arguments of a drift query."""

    table: MomentTable
    time: str
    given: tuple[str, ...]
    weights: str
    level: float | None
    rate: float | None
    adjust: str | None
    over: tuple[str, ...]
    seed: int
    min_units: int


def compare_periods(
    table: MomentTable,
    time: str,
    *,
    reference: Any,
    given: Factors | None,
    units: Factors | None,
    weights: str,
    level: float | None,
    alarm: float | None,
    adjust: str | None,
    window: int,
    step: int,
    over: Factors,
    seed: int,
    min_units: int,
    scale: str | None = None,
) -> Drift:
    """Compare the periods of a table with a reference; `Queries.drift` documents the arguments."""
    check_level(level)
    check_rate(alarm, "alarm")
    check_seed(seed)
    check_min_units(min_units)
    check_scale(scale)
    if adjust is not None:
        check_option(adjust, ADJUSTMENTS, "adjust")
    chosen = as_names(over, "over")
    table._check_factors([name for name in chosen if name != FEATURES])
    for name in chosen:
        if name in (time, *as_names(given, "given")):
            raise InputError(
                "over", name, f"is the time, or in {arg('given')}", f"name another factor, or {FEATURES!r}"
            )
    given_names, own_level = as_names(given, "given"), level if units else None
    series = make_series(table, time, given, units)
    compared = choose_reference(reference, series.periods, time)
    used = None if scale is None else series.measure_scale(compared)
    if used is not None:
        table = replace(table, moments=table.moments.multiply(used.factor))
        series = make_series(table, time, given, units)
    request = Request(table, time, given_names, weights, own_level, alarm, adjust, chosen, seed, min_units)
    if alarm is not None and compared is not None and len(compared) < MIN_PERIODS:
        raise InputError(
            "reference",
            reference,
            f"has {count_text(len(compared), 'period')}, and an alarm needs {MIN_PERIODS} or more, to estimate how"
            " much periods vary without drift",
            f"name more, or pass {arg('alarm', None)} for distances alone",
        )
    found = _make_result(request, series, make_windows(len(series.periods), compared, window, step), compared)
    return replace(found, **name_scale(used))


def _make_result(request: Request, series: Series, windows: list[Window], reference: tuple[int, ...] | None) -> Drift:
    compared = _compare_windows(request, series, windows)
    designs, fusions = [entry.design for entry in compared], [entry.fusion for entry in compared]
    distance = np.array([np.nan if fusion.distance is None else fusion.distance for fusion in fusions])
    pvalue, threshold, alarm, incomparable = _find_alarms(request, series, windows, reference, fusions)
    jump = _find_jump(distance, pvalue, alarm)
    limits = [(np.nan, np.nan) if fusion.interval is None else fusion.interval for fusion in fusions]
    lower, upper = np.array(limits).T if request.level is not None else (None, None)
    found = Drift(
        time=request.time,
        reference=PREVIOUS if reference is None else _list_labels(series, reference),
        periods=_list_labels(series, [window.periods[-1] for window in windows]),
        starts=_list_labels(series, [window.periods[0] for window in windows]),
        count=np.array([float(count_shared_rows(entry.whole)[1][1]) for entry in compared]),
        distance=distance,
        unbiased=np.array([np.nan if fusion.unbiased is None else fusion.unbiased for fusion in fusions]),
        alarm=alarm,
        incomparable=incomparable,
        rate=request.rate,
        adjust=request.adjust,
        pvalue=pvalue,
        threshold=threshold,
        level=request.level,
        lower=lower,
        upper=upper,
        **_measure_label_shift(request, series, windows, designs),
        change=_find_change(request, series, reference),
        jump=None if jump is None else series.periods[windows[jump].periods[-1]],
        attributions={}
        if jump is None
        else {name: _attribute_window(request, name, windows[jump], compared[jump]) for name in request.over},
    )
    _warn_about_incomparable(found, request)
    excluded = _name_excluded(found, compared)
    if excluded:
        warn(f"strata are left out of the distances of windows: {list_excluded(excluded)}")
    few = caution_about_few_rows(found, compared)
    return replace(found, caution=join_cautions(few, *list_cautions_of_means(found, compared)), excluded=excluded)


def _warn_about_incomparable(found: Drift, request: Request) -> None:
    """Name the windows that cannot be compared."""
    number = int(found.incomparable.sum())
    if number:
        strata = ", ".join(request.given)
        warn(
            f"windows of {request.time} cannot be compared with the reference ({number} of {len(found.periods)}), for"
            f" lack of common strata of {strata}: {found.name_windows(found.incomparable)}",
            f"leave {arg('given')} out, pass coarser strata, or choose a reference with the same strata",
        )


def _name_excluded(found: Drift, compared: "list[Comparison]") -> tuple[Exclusion, ...]:
    """Name the strata of each window, or of the reference, that have too few units."""
    named = [
        replace(each, group=found.window(k) if each.group == SIDES[1] else each.group)
        for k, entry in enumerate(compared)
        for each in entry.excluded
        if each.units < entry.min_units
    ]
    return tuple(dict.fromkeys(named))


def _find_alarms(
    request: Request, series: Series, windows: list[Window], reference: tuple[int, ...] | None, fusions: list[Fusion]
) -> tuple[FloatArray | None, FloatArray | None, Flags, Flags]:
    """Compute the p-values of the windows, the alarm thresholds, the alarms, and which windows cannot be compared."""
    incomparable = np.array([fusion.distance is None for fusion in fusions])
    if request.rate is None:
        return None, None, np.zeros(len(windows), bool), incomparable
    bases = [_find_basis(series, window, reference) for window in windows]
    if reference is not None and not series.find_shared_strata(bases[0].history):
        raise _explain_no_common_stratum(request, series, bases[0].history)
    if all(len(basis.history) < MIN_PERIODS for basis in bases):
        raise _explain_short_history(request)
    known: dict[Any, NullDistribution] = {}
    judged = [_test_window(series, *each, request.rate, known) for each in zip(windows, fusions, bases, strict=True)]
    pvalue, threshold = (np.array(values) for values in zip(*judged, strict=True))
    incomparable |= np.array([len(basis.history) >= MIN_PERIODS and not basis.strata for basis in bases])
    tested = pvalue
    if request.adjust is not None and not np.isnan(pvalue).all():
        tested = adjusted_pvalues(pvalue, method=request.adjust)
    return pvalue, threshold, np.nan_to_num(tested, nan=1.0) <= request.rate, incomparable


@dataclass(frozen=True)
class Basis:
    """Periods without drift that a window is judged by, and the strata that all of them and the window have."""

    history: tuple[int, ...]
    strata: tuple[int, ...]


def _find_basis(series: Series, window: Window, reference: tuple[int, ...] | None) -> Basis:
    """Find the periods by which a window is judged; fewer than `MIN_PERIODS` are too few."""
    start = min(window.periods)
    past = max(MAX_PAST_PERIODS, len(window.periods))
    history = tuple(range(max(0, start - past), start)) if reference is None else reference[-MAX_REFERENCE_PERIODS:]
    return Basis(history, series.find_shared_strata(history, window.periods) if history else ())


def _list_labels(series: Series, numbers: Sequence[int]) -> tuple[Hashable, ...]:
    return tuple(series.periods[number] for number in numbers)


@dataclass(frozen=True)
class Comparison:
    """The distance of a window, the cells it rests on, and those left out for too few units."""

    fusion: Fusion
    whole: Design
    kept: Codes
    excluded: tuple[Exclusion, ...]
    min_units: int

    @cached_property
    def design(self) -> Design:
        """The cells that are compared."""
        return self.whole.select(self.kept)


def _compare_windows(request: Request, series: Series, windows: list[Window]) -> list[Comparison]:
    """Compute the distance of each window, with its interval from units; warn if some windows have too few."""
    found, problems = [], {}
    for window in windows:
        design = series.design(window.reference, window.periods)
        fusion = fuse(design, weights=request.weights, dropped=request.table.dropped, tell=False)
        entry = Comparison(fusion, design, np.arange(len(design.cells)), (), request.min_units)
        if series.unit is not None and fusion.distance is not None:
            try:
                entry = _count_units(request, series, window, entry)
            except InputError as problem:
                problems[label_text(series.periods[window.periods[-1]])] = problem
        found.append(entry)
    if problems and len(problems) == sum(entry.fusion.distance is not None for entry in found):
        raise next(iter(problems.values()))
    if problems:
        first = next(iter(problems.values()))
        named = list_windows(list(problems))
        warn(f"windows without an interval ({len(problems)} of {len(windows)}): {named}; {first.marked}")
    return found


def _count_units(request: Request, series: Series, window: Window, entry: Comparison) -> Comparison:
    """The same distance with errors from units, without strata of too few units."""
    unit_moments = series.unit_moments(window.reference, window.periods)
    number = unit_moments.count_units(len(entry.whole.cells))
    kept, excluded = leave_out_cells(entry.whole, number, request.min_units, tell=False)
    left = replace(entry, kept=kept, excluded=excluded)
    fusion = fuse(left.design, weights=request.weights, dropped=request.table.dropped, tell=False)
    weight = left.design.weights(request.weights)
    return replace(
        left, fusion=add_unit_errors(fusion, unit_moments.select_cells(kept), left.design, weight, request.level)
    )


def _test_window(
    series: Series,
    window: Window,
    fusion: Fusion,
    basis: Basis,
    rate: float,
    known: dict[Any, NullDistribution],
) -> tuple[float, float]:
    """Compute the p-value of a window and the distance at which it raises an alarm; NaN without enough periods."""
    history, strata = basis.history, basis.strata
    if len(history) < MIN_PERIODS or not strata or fusion.between is None:
        return np.nan, np.nan
    weight = series.weights(strata, history)
    if (history, strata) not in known:
        known[history, strata] = NullDistribution(series.history(history, strata, weight))
    null = known[history, strata]
    square = series.squared_gap(window.periods, window.reference, strata, weight)
    if null.error == 0:
        return float(square == 0), 0.0
    mixture = null.predict(series.make_target(window.periods, window.reference, history, strata, weight))
    scale = fusion.between / square / fusion.within if square > 0 and fusion.within > 0 else np.nan
    return mixture.tail_probability(square), float(np.log1p(scale * mixture.quantile(rate)))


def _explain_short_history(request: Request) -> InputError:
    return InputError(
        problem=f"no window of {request.time} has {MIN_PERIODS} periods before it, to estimate how much periods vary"
        " without drift",
        remedy=f"pass more periods, or {arg('alarm', None)} for distances alone",
    )


def _explain_no_common_stratum(request: Request, series: Series, history: tuple[int, ...]) -> InputError:
    """Name the reference periods that lack the most common stratum."""
    present = series.place[list(history)] >= 0
    lacking = [history[k] for k in np.flatnonzero(~present[:, present.sum(axis=0).argmax()])]
    named = list_windows([label_text(label) for label in _list_labels(series, lacking)])
    return InputError(
        problem=f"no stratum of {', '.join(request.given)} is in all periods of the reference, so alarms cannot"
        f" be computed; the most common one is missing in {named}",
        remedy=f"leave these out of {arg('reference')}, pass coarser strata, or {arg('alarm', None)} for distances"
        " alone",
    )


def _find_jump(distance: FloatArray, pvalue: FloatArray | None, alarm: Flags) -> int | None:
    """Find the first alarm or, without alarms, the window with the smallest p-value; None if none is compared."""
    if alarm.any():
        return int(alarm.argmax())
    if pvalue is None or np.isnan(pvalue).all():
        return None if np.isnan(distance).all() else int(np.nanargmax(distance))
    return int(np.nanargmin(pvalue))


def _measure_label_shift(
    request: Request, series: Series, windows: list[Window], designs: list[Design]
) -> dict[str, Any]:
    """Compute what the windows share with the reference, and how far a changed mix of strata moves them."""
    if not request.given:
        return {}
    plain, added, overlap = [], [], []
    for design in designs:
        sides = design.cells.merge(design.group, 2)
        whole = fuse(Design(sides, np.arange(2), np.zeros(2, int), SIDES), weights=request.weights)
        within = fuse(design, weights=request.weights, tell=False)
        overlap.append(within.overlap)
        plain.append(float(whole))
        known = whole.unbiased is not None and within.unbiased is not None
        added.append(whole.unbiased - within.unbiased if known else np.nan)  # type: ignore[operator]
    shares = [[series.merge_periods(side).count for side in (window.reference, window.periods)] for window in windows]
    composition = [float(np.abs(a / a.sum() - b / b.sum()).sum() / 2) for a, b in shares]
    compared = [float(count_shared_rows(design)[0][1]) for design in designs]
    return {
        "overlap": np.array(overlap),
        "compared": np.array(compared),
        "plain": np.array(plain),
        "label_shift": np.array(added),
        "composition": np.array(composition),
    }


def _find_change(request: Request, series: Series, reference: tuple[int, ...] | None) -> Change | None:
    """Find the change point of the series, in strata that all periods share."""
    every = tuple(range(len(series.periods)))
    strata = series.find_shared_strata(every)
    if not strata or len(every) < MIN_PERIODS:
        return None
    weight = series.weights(strata, every)
    null = None
    if reference is not None and len(reference) >= MIN_PERIODS:
        null = NullDistribution(series.history(reference[-MAX_REFERENCE_PERIODS:], strata, weight))
        null = None if null.error == 0 else null
    count = series.cells.count[series.place[:, list(strata)]].sum(axis=1)
    split = locate_change(series.history(every, strata, weight), count, null, request.seed)
    fusion = fuse(series.design(every[: split.period], every[split.period :]), weights=request.weights)
    return Change(series.periods[split.period], float(fusion), fusion.unbiased, split.pvalue)


def _attribute_window(request: Request, over: str, window: Window, compared: Comparison) -> Attribution:
    """Attribute the distance of a window to features or to the values of a factor."""
    design = compared.design
    if over == FEATURES:
        return attribute_to_features(design, weights=request.weights)
    series = make_series(request.table, request.time, request.given, over, independent=False)
    assert series.unit is not None
    here = np.isin(series.period, [*window.reference, *window.periods])
    values = factors.list_labels(factors.encode(request.table.keys.select([over]))[1])
    labels = [values[code] for code in np.unique(series.unit[here])]
    units = series.unit_moments(window.reference, window.periods)
    labels = [labels[k] for k in np.unique(units.unit[np.isin(units.cell, compared.kept)])]
    units = units.select_cells(compared.kept)
    return attribute_to_units(
        units.moments, units.cell, units.unit, design, over=over, units=labels, weights=request.weights
    )
