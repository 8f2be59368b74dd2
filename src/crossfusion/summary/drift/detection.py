"""Comparison of periods with the reference: distance, interval, alarm and attribution."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
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
    factors,
    warn,
)
from crossfusion.fusion import FEATURES, Attribution, Design, Fusion, attribute_to_features, attribute_to_units, fuse
from crossfusion.inference import ADJUSTMENTS, add_unit_errors, adjusted_pvalues
from crossfusion.summary.drift.change import locate_change
from crossfusion.summary.drift.null_distribution import NullDistribution
from crossfusion.summary.drift.periods import PREVIOUS, Window, choose_reference, make_windows
from crossfusion.summary.drift.result import Change, Drift
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
) -> Drift:
    """Compare the periods of a table with a reference; `Queries.drift` documents the arguments."""
    check_level(level)
    check_rate(alarm, "alarm")
    check_seed(seed)
    if adjust is not None:
        check_option(adjust, ADJUSTMENTS, "adjust")
    chosen = as_names(over, "over")
    table._check_factors([name for name in chosen if name != FEATURES])
    for name in chosen:
        if name in (time, *as_names(given, "given")):
            raise InputError(
                "over", name, f"is the time, or in {arg('given')}", f"name another factor, or {FEATURES!r}"
            )
    request = Request(
        table, time, as_names(given, "given"), weights, level if units else None, alarm, adjust, chosen, seed
    )
    series = make_series(table, time, given, units)
    compared = choose_reference(reference, series.periods, time)
    if alarm is not None and compared is not None and len(compared) < MIN_PERIODS:
        raise InputError(
            "reference",
            reference,
            f"has {len(compared)} periods, and an alarm needs {MIN_PERIODS} or more, to see how far periods"
            " differ without drift",
            f"name more, or pass {arg('alarm', None)} for distances alone",
        )
    return _make_result(request, series, make_windows(len(series.periods), compared, window, step), compared)


def _make_result(request: Request, series: Series, windows: list[Window], reference: tuple[int, ...] | None) -> Drift:
    designs = [series.design(window.reference, window.periods) for window in windows]
    fusions = _fuse_windows(request, series, windows, designs)
    distance = np.array([fusion.distance for fusion in fusions])
    pvalue, threshold, alarm = _find_alarms(request, series, windows, reference, fusions)
    jump = _find_jump(distance, pvalue, alarm)
    limits = [(np.nan, np.nan) if fusion.interval is None else fusion.interval for fusion in fusions]
    lower, upper = np.array(limits).T if request.level is not None else (None, None)
    return Drift(
        time=request.time,
        reference=PREVIOUS if reference is None else _list_labels(series, reference),
        periods=_list_labels(series, [window.periods[-1] for window in windows]),
        starts=_list_labels(series, [window.periods[0] for window in windows]),
        count=np.array([float(fusion.counts[SIDES[1]]) for fusion in fusions]),
        distance=distance,
        unbiased=np.array([np.nan if fusion.unbiased is None else fusion.unbiased for fusion in fusions]),
        alarm=alarm,
        rate=request.rate,
        adjust=request.adjust,
        pvalue=pvalue,
        threshold=threshold,
        level=request.level,
        lower=lower,
        upper=upper,
        **_measure_label_shift(request, series, windows, designs),
        change=_find_change(request, series, reference),
        jump=series.periods[windows[jump].periods[-1]],
        attributions={name: _attribute_window(request, name, windows[jump], designs[jump]) for name in request.over},
    )


def _find_alarms(
    request: Request, series: Series, windows: list[Window], reference: tuple[int, ...] | None, fusions: list[Fusion]
) -> tuple[FloatArray | None, FloatArray | None, Flags]:
    """Compute the p-values of the windows, the alarm thresholds, and the alarms."""
    if request.rate is None:
        return None, None, np.zeros(len(windows), bool)
    known: dict[Any, NullDistribution] = {}
    judged = [
        _test_window(series, *pair, reference, request.rate, known) for pair in zip(windows, fusions, strict=True)
    ]
    pvalue, threshold = (np.array(values) for values in zip(*judged, strict=True))
    if np.isnan(pvalue).all():
        raise _explain_no_alarm(request, reference)
    tested = pvalue if request.adjust is None else adjusted_pvalues(pvalue, method=request.adjust)
    return pvalue, threshold, np.nan_to_num(tested, nan=1.0) <= request.rate


def _list_labels(series: Series, numbers: Sequence[int]) -> tuple[Hashable, ...]:
    return tuple(series.periods[number] for number in numbers)


def _fuse_windows(request: Request, series: Series, windows: list[Window], designs: list[Design]) -> list[Fusion]:
    """Compute the distance of each window, with its interval from units; warn if some windows have too few."""
    found, problems = [], []
    for window, design in zip(windows, designs, strict=True):
        fusion = fuse(design, weights=request.weights, dropped=request.table.dropped)
        if series.unit is not None:
            unit_moments = series.unit_moments(window.reference, window.periods)
            try:
                fusion = add_unit_errors(fusion, unit_moments, design, design.weights(request.weights), request.level)
            except InputError as problem:
                problems.append(problem)
        found.append(fusion)
    if len(problems) == len(windows):
        raise problems[0]
    if problems:
        warn(f"windows without an interval ({len(problems)} of {len(windows)}): {problems[0].marked}")
    return found


def _test_window(
    series: Series,
    window: Window,
    fusion: Fusion,
    reference: tuple[int, ...] | None,
    rate: float,
    known: dict[Any, NullDistribution],
) -> tuple[float, float]:
    """Compute the p-value of a window and the distance at which it raises an alarm; NaN without enough periods."""
    start = min(window.periods)
    past = max(MAX_PAST_PERIODS, len(window.periods))
    history = tuple(range(max(0, start - past), start)) if reference is None else reference[-MAX_REFERENCE_PERIODS:]
    strata = series.find_shared_strata(history, window.periods) if len(history) >= MIN_PERIODS else ()
    if not strata:
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


def _explain_no_alarm(request: Request, reference: tuple[int, ...] | None) -> InputError:
    otherwise = f"or {arg('alarm', None)} for distances alone"
    if reference is None:
        return InputError(
            problem=f"no window of {request.time} has {MIN_PERIODS} periods before it, to see how far periods differ"
            " without drift",
            remedy=f"pass more periods, {otherwise}",
        )
    return InputError(
        problem=f"no stratum of {', '.join(request.given)} is in all periods of the reference and in one judged,"
        " so an alarm has nothing to go by",
        remedy=f"pass coarser strata, {otherwise}",
    )


def _find_jump(distance: FloatArray, pvalue: FloatArray | None, alarm: Flags) -> int:
    """Find the index of the first alarm or, without alarms, of the window with the smallest p-value."""
    if alarm.any():
        return int(alarm.argmax())
    return int(distance.argmax() if pvalue is None else np.nan_to_num(pvalue, nan=2.0).argmin())


def _measure_label_shift(
    request: Request, series: Series, windows: list[Window], designs: list[Design]
) -> dict[str, FloatArray]:
    """Compute the unadjusted distance, the contribution of changed strata to it, and the change of composition."""
    if not request.given:
        return {}
    plain, added = [], []
    for design in designs:
        sides = design.cells.merge(design.group, 2)
        whole = fuse(Design(sides, np.arange(2), np.zeros(2, int), SIDES), weights=request.weights)
        within = fuse(design, weights=request.weights)
        plain.append(whole.distance)
        known = whole.unbiased is not None and within.unbiased is not None
        added.append(whole.unbiased - within.unbiased if known else np.nan)  # type: ignore[operator]
    shares = [[series.merge_periods(side).count for side in (window.reference, window.periods)] for window in windows]
    composition = [float(np.abs(a / a.sum() - b / b.sum()).sum() / 2) for a, b in shares]
    return {"plain": np.array(plain), "label_shift": np.array(added), "composition": np.array(composition)}


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
    return Change(series.periods[split.period], fusion.distance, fusion.unbiased, split.pvalue)


def _attribute_window(request: Request, over: str, window: Window, design: Design) -> Attribution:
    """Attribute the distance of a window to features or to the values of a factor."""
    if over == FEATURES:
        return attribute_to_features(design, weights=request.weights)
    series = make_series(request.table, request.time, request.given, over, independent=False)
    assert series.unit is not None
    here = np.isin(series.period, [*window.reference, *window.periods])
    values = factors.list_labels(factors.encode(request.table.keys.select([over]))[1])
    labels = [values[code] for code in np.unique(series.unit[here])]
    units = series.unit_moments(window.reference, window.periods)
    return attribute_to_units(
        units.moments, units.cell, units.unit, design, over=over, units=labels, weights=request.weights
    )
