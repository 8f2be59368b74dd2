"""Drift: exact windows, every form of reference, an alarm that keeps its rate, and what is refused."""

import datetime
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import crossfusion as cf
from benchmarks import drift as bench
from benchmarks.drift.side_by_side import _delay
from benchmarks.drift.streams import Stream
from crossfusion.plots import saving
from crossfusion.summary.drift.null_distribution import History, NullDistribution, Target
from crossfusion.summary.drift.periods import choose_reference, make_sort_key, parse_reference

WEEKS, ROWS, DIM = 12, 40, 6
summarize: Any = cf.summarize  # fields that are there where asked for are not looked at for None
cfd: Any = cf.cfd


def stream(seed=0, shift=0.0, onset=9, effect=0.2):
    """Rows and their factors; labels, patients of one week each, and two sites."""
    draw = np.random.default_rng(seed)
    week = np.repeat(np.arange(1, WEEKS + 1), ROWS)
    rows = draw.normal(size=(len(week), DIM)) + effect * draw.normal(size=(WEEKS, DIM))[week - 1]
    rows[:, 2] += np.where(week >= onset, shift, 0.0)
    by = {"week": week, "label": draw.integers(0, 2, len(week)), "patient": week * 100 + np.arange(len(week)) % 8}
    return rows, by | {"site": np.arange(len(week)) % 2}


@pytest.fixture(scope="module")
def steady():
    rows, by = stream()
    return summarize(rows, by=by)


@pytest.fixture(scope="module")
def shifted():
    rows, by = stream(shift=5.0)
    return summarize(rows, by=by)


@pytest.mark.parametrize(("window", "step"), [(1, 1), (3, 1), (3, 3), (2, 3)])
def test_windows_are_the_distance_of_their_rows(steady, window, step):
    rows, by = stream()
    found = steady.drift("week", reference="first:4", window=window, step=step, given="label")
    starts = [*range(5, WEEKS - window + 2, step)]
    assert found.starts == tuple(starts)
    assert found.periods == tuple(start + window - 1 for start in starts)
    for k, start in enumerate(starts):
        side = np.select([by["week"] <= 4, (by["week"] >= start) & (by["week"] < start + window)], [0, 1], -1)
        kept = side >= 0
        direct = cfd(rows[kept], labels=side[kept], given=by["label"][kept])
        assert found.distance[k] == pytest.approx(direct.distance, rel=1e-12)
        assert found.unbiased[k] == pytest.approx(direct.unbiased, rel=1e-9)
        plain = cfd(rows[kept], labels=side[kept])
        assert found.plain[k] == pytest.approx(plain.distance, rel=1e-12)
        assert found.label_shift[k] == pytest.approx(plain.unbiased - direct.unbiased, abs=1e-12)
        labels = cfd(rows[kept], labels=by["label"][kept]).distance
        adjusted = cfd(rows[kept], labels=by["label"][kept], given=side[kept]).distance
        assert found.plain[k] - found.distance[k] == pytest.approx(labels - adjusted, abs=1e-12)  # the chain rule
        assert found.count[k] == np.sum(side == 1)


def test_windows_far_from_the_origin_lose_nothing():
    rows, by = stream(shift=5.0)
    near, far = (summarize(rows + off, by={"week": by["week"]}) for off in (0.0, 1e7))
    a, b = (summary.drift("week", reference="first:4", window=3) for summary in (near, far))
    np.testing.assert_allclose(a.distance, b.distance, rtol=1e-6)  # what float64 keeps of the rows themselves
    np.testing.assert_allclose(a.pvalue, b.pvalue, rtol=1e-4)


def test_units_give_the_interval_of_a_comparison(steady):
    found = steady.drift("week", reference="first:4", units="patient", level=0.9)
    rows, by = stream()
    kept = (by["week"] <= 4) | (by["week"] == 7)
    side = (by["week"][kept] == 7).astype(int)
    direct = cfd(rows[kept], labels=side, units=by["patient"][kept], level=0.9)
    assert (found.lower[2], found.upper[2]) == pytest.approx(direct.interval, rel=1e-9)
    assert found.unbiased[2] == pytest.approx(direct.unbiased, rel=1e-9)
    assert steady.drift("week", reference="first:4").lower is None


def test_every_form_of_reference_means_the_same(steady):
    forms = ["first:4", [1, 2, 3, 4], (1, 4), (-3, 4), np.array([4, 3, 2, 1])]
    found = [steady.drift("week", reference=form) for form in forms]
    for other in found[1:]:
        assert other.reference == (1, 2, 3, 4)
        np.testing.assert_array_equal(other.pvalue, found[0].pvalue)


def test_previous_compares_neighbours(shifted):
    found = shifted.drift("week", reference="previous")
    assert found.reference == "previous"
    assert found.periods == tuple(range(2, WEEKS + 1))
    direct = [float(shifted.select(week=[week - 1, week]).cfd("week")) for week in found.periods]
    np.testing.assert_allclose(found.distance, direct, rtol=1e-12)
    assert np.isnan(found.pvalue[:2]).all()
    assert [week for week, alarm in zip(found.periods, found.alarm, strict=True) if alarm] == [9]
    pairs = shifted.drift("week", reference="previous", window=2, step=2)
    assert pairs.starts == (3, 5, 7, 9, 11)
    assert pairs.alarm.tolist() == [False, False, False, True, False]


def test_periods_of_a_list_leave_windows_on_both_sides(steady):
    found = steady.drift("week", reference=[4, 5, 6, 7], window=2)
    assert found.starts == (1, 2, 8, 9, 10, 11)  # none from 3 to 8, across the reference


@pytest.mark.parametrize(
    "make",
    [
        lambda week: f"week {week}",
        lambda week: f"2024-W{week:02}",
        lambda week: datetime.date(2024, 1, 1) + datetime.timedelta(weeks=week),
        lambda week: datetime.datetime(2024, 1, 1, 7) + datetime.timedelta(weeks=week),
        lambda week: week / 4,
    ],
)
def test_periods_of_any_type_come_in_order(steady, make):
    rows, by = stream()
    names = [make(week) for week in range(1, WEEKS + 1)]
    found = summarize(rows, by={"when": [names[week - 1] for week in by["week"]]}).drift("when", reference="first:4")
    assert found.periods == tuple(names[4:])
    np.testing.assert_allclose(found.distance, steady.drift("week", reference="first:4").distance, rtol=1e-12)
    assert summarize(rows, by={"when": [names[week - 1] for week in by["week"]]}).drift(
        "when", reference=(names[0], names[3])
    ).reference == tuple(names[:4])


def test_numbers_in_text_may_be_long():
    names = ["9" * 5000, "10", "1" + "0" * 5000, "09", "٣"]
    assert sorted(names, key=make_sort_key) == ["٣", "09", "10", "9" * 5000, "1" + "0" * 5000]


def test_a_reference_is_typed_as_periods_read():
    zone = datetime.timezone(datetime.timedelta(hours=1))
    hours = [datetime.datetime(2024, 1, day, hour) for day in (1, 2, 3) for hour in (0, 10)]
    assert parse_reference("2024-01-01,2024-01-03 10:00:00", hours, "when") == [hours[0], hours[-1]]
    ends = parse_reference("2024-01-01..2024-01-02", hours, "when")
    assert choose_reference(ends, hours, "when") == (0, 1, 2, 3)
    there = [hour.replace(tzinfo=zone) for hour in hours]
    assert choose_reference(parse_reference("2024-01-01..2024-01-02", there, "when"), there, "when") == (0, 1, 2, 3)
    assert parse_reference("0,1", [0.0, 1.0, 2.0], "when") == [0.0, 1.0]
    assert parse_reference("a..b,c", ["a..b", "c", "d"], "when") == ["a..b", "c"]
    assert parse_reference("1, of 3", ["1, of 3", "2, of 3"], "when") == ["1, of 3"]


def test_a_period_that_is_none_is_named_as_people_read(refuses):
    days = [datetime.datetime(2024, 1, day) for day in (1, 2, 3)]
    with refuses("such as 2024-01-01 00:00:00, 2024-01-02"):
        choose_reference([datetime.datetime(2025, 1, 1)], days, "day")
    with refuses("'last' is not a value of day, such as 2024-01-01.*first:4"):
        parse_reference("last", days, "day")


def test_a_jump_is_found_and_told(shifted):
    found = shifted.drift("week", reference="first:6", over=["features", "site"])
    assert found.periods[int(found.alarm.argmax())] == found.jump == 9
    assert found.alarm.tolist() == [False, False, True, True, True, True]
    assert found.change.period == 9
    assert found.change.pvalue <= 0.05
    rows, by = stream(shift=5.0)
    assert found.change.distance == pytest.approx(float(cfd(rows, labels=by["week"] >= 9)), rel=1e-12)
    assert found.attributions["features"].top(1) == [2]
    assert found.attributions["site"].labels == (0, 1)
    kept = (by["week"] <= 6) | (by["week"] == 9)
    direct = summarize(rows[kept], by={"side": by["week"][kept] == 9, "site": by["site"][kept]})
    np.testing.assert_allclose(
        found.attributions["site"].contribution, direct.attribution("side", over="site").contribution, rtol=1e-9
    )
    assert ((found.pvalue <= 0.01) == (found.distance >= found.threshold)).all()


@pytest.mark.parametrize("seed", range(4))
def test_the_change_is_the_split_with_most_between(seed):
    rows, by = stream(seed)
    kept = np.random.default_rng(seed).random(len(rows)) < 0.1 * by["week"]  # periods of different sizes
    rows, week = rows[kept], by["week"][kept]
    splits = {first: cfd(rows, labels=week >= first).between for first in range(2, WEEKS + 1)}
    found = summarize(rows, by={"week": week}).drift("week", reference="first:4").change
    assert found.period == max(splits, key=lambda first: splits[first])
    assert found.pvalue > 0.05


def test_labels_that_shift_are_told_from_rows_that_do():
    draw = np.random.default_rng(3)
    week = np.repeat(np.arange(10), 200)
    label = (draw.random(len(week)) < np.where(week < 8, 0.3, 0.8)).astype(int)
    rows = draw.normal(size=(len(week), 4)) + 3.0 * label[:, None]
    summary = summarize(rows, by={"week": week, "label": label})
    plain = summary.drift("week", reference="first:6")
    given = summary.drift("week", reference="first:6", given="label")
    assert plain.alarm.tolist() == [False, False, True, True]
    assert not given.alarm.any()
    assert (given.label_shift[2:] > 20 * np.abs(given.unbiased[2:])).all()
    assert (given.composition[2:] > 0.4).all()
    assert (given.composition[:2] < 0.1).all()


def test_strata_that_some_periods_miss_are_left_out_of_the_alarm():
    rows, by = stream(shift=5.0)
    label = np.where((by["week"] == 2) | (by["week"] == 11), 0, by["label"])  # no rows of label 1 in these weeks
    summary = summarize(rows, by={"week": by["week"], "label": label})
    found = summary.drift("week", reference="first:6", given="label", alarm=0.05)
    assert np.isfinite(found.pvalue).all()
    assert found.alarm[2:].all()
    assert not found.alarm[:2].any()


def new_label(last="fish", kept=0):
    """Ten weeks of cats and dogs, the last of which holds another label only, far away, except for some cats."""
    week = np.repeat(np.arange(1, 11), 40)
    label = np.tile(["cat", "dog"], 200).astype(object)
    label[week == 10] = [last] * (40 - kept) + ["cat"] * kept
    rows = np.random.default_rng(0).normal(size=(400, 4)) + 100.0 * (label == "fish")[:, None]
    return summarize(rows, by={"week": week, "label": label})


@pytest.mark.parametrize("reference", ["first:7", "previous"])
@pytest.mark.parametrize("alarm", [0.01, None])
def test_a_window_without_a_common_stratum_has_no_distance(reference, alarm):
    with pytest.warns(cf.CrossfusionWarning, match=r"cannot be compared .*common strata of label: 10") as told:
        found = new_label().drift("week", reference=reference, given="label", alarm=alarm)
    assert len(told) == 1
    assert np.flatnonzero(found.incomparable).tolist() == [len(found.periods) - 1]
    for values in (found.distance, found.unbiased, found.label_shift):
        assert np.flatnonzero(np.isnan(values)).tolist() == [len(found.periods) - 1]
    assert (found.overlap[-1], found.compared[-1], found.alarm.any(), found.jump) == (0, 0, False, found.jump)
    assert found.jump != 10
    assert found.sparkline()[-1] == "·"
    assert found.to_dict()["distance"][-1] is None
    assert found.table()[1][-1][-1] == "incomparable"
    assert "cannot be compared, for lack of common strata: 10" in repr(found)
    found.plot()


def test_no_window_at_all_may_be_comparable():
    with pytest.warns(cf.CrossfusionWarning, match=r"cannot be compared with the reference \(1 of 1\)"):
        found = new_label().drift("week", reference="first:9", given="label", adjust="holm")
    assert (found.incomparable.tolist(), found.jump, found.attributions) == ([True], None, {})
    assert np.isnan(found.pvalue).all()
    assert not found.alarm.any()
    found.plot()


def test_a_window_that_cannot_be_judged_is_named(refuses):
    summary = new_label(last="cat")
    other = summarize(np.zeros((4, 4)) + np.arange(4)[:, None], by={"week": [3, 3, 10, 10], "label": ["fish"] * 4})
    rare = summary.select(week=[*range(1, 10)]) + other  # week 10 has fish only, as only week 3 of the reference
    with pytest.warns(cf.CrossfusionWarning, match="common strata of label: 10"):
        found = rare.drift("week", reference="first:7", given="label")
    assert np.isfinite(found.distance).all()
    assert found.incomparable.tolist() == [False, False, True]
    assert "few rows are in strata shared with the reference: 10 (2 of 2 rows, 2 of the reference)" in found.caution


def test_a_reference_without_a_common_stratum_is_named(refuses):
    week, label = np.repeat(np.arange(1, 8), 20), np.tile(["cat", "dog"], 70).astype(object)
    label[week == 3] = "fish"
    summary = summarize(np.random.default_rng(0).normal(size=(140, 3)), by={"week": week, "label": label})
    with refuses("no stratum of label is in all periods of the reference.*the most common one is missing in 3"):
        summary.drift("week", reference="first:5", given="label")
    with pytest.warns(cf.CrossfusionWarning, match="common strata of label: 3"):
        found = summary.drift("week", reference=[1, 2, 4, 5], given="label")
    assert found.incomparable.tolist() == [True, False, False]


def test_a_window_that_few_rows_carry_is_named():
    found = new_label(kept=3).drift("week", reference="first:7", given="label")
    assert not found.incomparable.any()
    assert found.compared.tolist() == [40, 40, 3]
    assert found.caution == (
        "few rows are in strata shared with the reference: 10 (3 of 40 rows, 140 of the reference)"
    )
    assert f"caution: {found.caution}" in repr(found)
    assert new_label(last="cat").drift("week", reference="first:7", given="label").caution is None


def test_the_alarm_keeps_its_rate_and_misses_little():
    """A broad band: exact rates are measured by `python -m benchmarks drift`."""
    false: list[Any] = []
    late: list[Any] = []
    for seed in range(40):
        kind = Stream(reference=8, ahead=6, rows=20, dim=8, effect=4.0, directions=4, rho=0.5)
        week = np.repeat(np.arange(kind.periods), kind.rows)
        for found, shift in ((false, 0.0), (late, 12.0)):
            rows = Stream(**(vars(kind) | {"shift": shift, "onset": 1})).draw([seed]).reshape(len(week), -1)
            found.append(summarize(rows, by={"week": week}).drift("week", reference="first:8", alarm=0.05).alarm)
    assert np.mean(false) <= 0.1
    assert np.mean(np.any(late, axis=1)) > 0.9


def test_rows_that_are_many_do_not_make_an_alarm():
    """Periods that differ as usual are no drift, however many rows say that they differ."""
    draw = np.random.default_rng(5)
    week = np.repeat(np.arange(14), 2000)
    rows = draw.normal(size=(len(week), 4)) + 0.3 * draw.normal(size=(14, 4))[week]
    found = summarize(rows, by={"week": week}).drift("week", reference="first:8")
    assert not found.alarm.any()
    tested = cf.permutation_test(rows[week >= 12], week[week >= 12], permutations=199)
    assert tested.pvalue <= 0.01


def test_without_autocorrelation_the_chance_is_that_of_an_f_test(monkeypatch):
    stats = pytest.importorskip("scipy.stats")
    monkeypatch.setattr("crossfusion.summary.drift.null_distribution.RHO", (0.0,))
    number, dim = 12, 3
    means = 100 * np.random.default_rng(0).normal(size=(number, dim))  # the rows' own error is small beside it
    gap = means - means.mean(axis=0)
    null = NullDistribution(History(np.arange(number), gap @ gap.T, np.full(number, 1e-3), dim))
    null.__dict__["directions"] = np.full(10, float(dim))
    mixture = null.predict(Target(np.array([20]), np.ones(1), 1e-3, np.full(number, 1 / number)))
    scatter = np.sum(gap**2) / (number - 1)
    for ratio in (0.5, 2.0, 4.0, 6.0):
        exact = stats.f.sf(ratio, dim, dim * (number - 1) / 2)
        assert mixture.tail_probability(ratio * scatter * (1 + 1 / number)) == pytest.approx(exact, rel=0.05)
    assert mixture.tail_probability(mixture.quantile(0.01)) == pytest.approx(0.01, rel=1e-6)


def test_a_long_reference_is_as_good_as_its_last_periods():
    draw = np.random.default_rng(0)
    week = np.repeat(np.arange(100), 10)
    rows = draw.normal(size=(len(week), 4)) + 0.5 * draw.normal(size=(100, 4))[week] + 5.0 * (week >= 98)[:, None]
    found = summarize(rows, by={"week": week}).drift("week", reference="first:90")
    assert found.alarm.tolist() == [False] * 8 + [True] * 2


def test_holm_asks_for_more(shifted):
    plain = shifted.drift("week", reference="first:6", alarm=0.05)
    holm = shifted.drift("week", reference="first:6", alarm=0.05, adjust="holm")
    assert holm.alarm.tolist() == (cf.adjusted_pvalues(plain.pvalue) <= 0.05).tolist()


def test_without_an_alarm_two_periods_do(steady):
    found = steady.select(week=[1, 2]).drift("week", reference=[1], alarm=None)
    assert found.pvalue is None
    assert not found.alarm.any()
    assert found.distance[0] == pytest.approx(float(steady.select(week=[1, 2]).cfd("week")), rel=1e-12)


def test_the_jump_is_split_over_what_may_be_missing():
    rows, by = stream(shift=5.0, onset=8)
    site = np.array(["A", "B", None], object)[np.arange(len(rows)) % 3]
    found = cf.summarize(rows, by={"week": by["week"], "site": site}).drift("week", reference="first:4", over="site")
    assert list(found.attributions["site"].labels) == ["A", "B", None]


def test_rows_without_any_spread():
    week = np.repeat(np.arange(6), 5)
    same = summarize(np.ones((30, 2)), by={"week": week}).drift("week", reference="first:4")
    assert same.pvalue.tolist() == [1.0, 1.0]
    moved = summarize(np.where(week[:, None] < 5, 1.0, 2.0), by={"week": week}).drift("week", reference="first:4")
    assert moved.alarm.tolist() == [False, True]
    json.dumps(moved.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"reference": "first:0"}, "not known.*first:4"),
        ({"reference": "last:3"}, "not known.*first:4"),
        ({"reference": 7}, "not known"),
        ({"reference": [1, 2, 77]}, "no period of week is 77"),
        ({"reference": []}, "holds no period"),
        ({"reference": (70, 80)}, "holds no period"),
        ({"reference": ("a", "b")}, "cannot be compared"),
        ({"reference": "first:12"}, "holds all 12"),
        ({"reference": "first:2"}, "an alarm needs 3 or more"),
        ({"reference": "first:4", "alarm": 2}, "alarm=2 must be a rate of false alarms from .*, or alarm=None for"),
        ({"reference": "first:4", "alarm": 0.0}, "alarm=0.0"),
        ({"reference": "first:4", "alarm": True}, "alarm=True"),
        ({"reference": "first:4", "window": 9}, "window=9"),
        ({"reference": "first:4", "window": 0}, "window=0"),
        ({"reference": "first:4", "step": 1.5}, "step=1.5"),
        ({"reference": "first:4", "adjust": "bonferroni"}, "adjust='bonferroni'"),
        ({"reference": "first:4", "weights": "heavy"}, "weights='heavy'"),
        ({"reference": "first:4", "given": "week"}, "'week' is used twice"),
        ({"reference": "first:4", "units": "week"}, "'week' is used twice"),
        ({"reference": "first:4", "given": "label", "units": "label"}, "'label' is used twice"),
        ({"reference": "first:4", "given": "tissue"}, "tissue"),
        ({"reference": "first:4", "over": "tissue"}, "tissue"),
        ({"reference": "first:4", "over": "week"}, "over='week' is the time, or in given"),
        ({"reference": "first:4", "given": "label", "over": "label"}, "over='label' is the time, or in given"),
        ({"reference": "first:4", "level": 2.0, "units": "patient"}, "level=2.0"),
        ({"reference": "first:4", "seed": -1}, "seed=-1"),
    ],
)
def test_what_cannot_be_asked(steady, refuses, options, pattern):
    with refuses(pattern):
        steady.drift("week", **options)


@pytest.mark.parametrize(
    "names",
    [["January", "February", "March", "April", "May"], ["Jan", "feb", "MAR", "apr"], ["Mon", "Tue", "Wed", "Fri"]],
)
def test_names_of_the_calendar_are_in_its_order(names):
    x = np.random.default_rng(0).normal(size=(20 * len(names), 2))
    drift = summarize(x, by={"when": np.repeat(names, 20)}).drift("when", reference=(names[0], names[1]), alarm=None)
    assert list(drift.reference) == names[:2]
    assert list(drift.periods) == names[2:]


def test_periods_that_are_none(steady, refuses):
    with refuses("month"):
        steady.drift("month", reference="first:4")
    with refuses("one factor"):
        steady.drift(["week"], reference="first:4")
    with refuses("one period only"):
        steady.select(week=3).drift("week", reference="first:1")
    with refuses("3 periods before"):
        steady.select(week=[1, 2, 3]).drift("week", reference="previous")
    with refuses("missing values"):
        summarize(np.eye(4), by={"week": [1, 2, 3, None]}).drift("week", reference="first:2")
    with refuses("no stratum of label is in all"):
        by = {"week": np.repeat(np.arange(6), 4), "label": np.repeat([0, 1, 2, 3, 0, 1], 4)}
        summarize(np.arange(24.0)[:, None], by=by).drift("week", reference="first:4", given="label")


def test_some_windows_may_lack_units():
    rows, by = stream()
    patient = np.where(by["week"] == 8, 0, by["patient"])
    summary = summarize(rows, by={"week": by["week"], "patient": patient})
    with pytest.warns(cf.CrossfusionWarning, match=r"windows without an interval \(1 of 8\): 8; .* fewer than 2 units"):
        found = summary.drift("week", reference="first:4", units="patient")
    assert np.isnan(found.lower).tolist() == [week == 8 for week in found.periods]
    assert np.isfinite(found.pvalue).all()


def test_results_read_well_and_travel(shifted):
    found = shifted.drift("week", reference="first:6", given="label", units="patient")
    told = repr(found)
    assert "reference: 6 periods, alarm at 0.01" in told
    assert told.count("ALARM") == found.alarm.sum()
    assert "change: largest before and from 9 on" in told
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["change"]["period"] == 9
    frame = found.to_frame()
    assert list(frame["period"]) == list(found.periods)
    assert {"lower", "upper", "plain", "label_shift", "composition", "threshold"} <= set(frame)


def run(*arguments, cwd):
    code = "from crossfusion.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=os.environ.copy())


def write_week(folder, week, shift=0.0):
    rows, by = stream(shift=shift)
    kept = by["week"] == week
    np.savez(folder / f"week{week}.npz", x=rows[kept], week=by["week"][kept], label=by["label"][kept])
    return folder / f"week{week}.npz"


def test_files_that_arrive_are_folded_in_once_and_watched(tmp_path):
    """As a pipeline runs it: append what is new, then ask; exit code 0, 1 or 2."""
    add = ("--by", "week,label", "-o", "all.parquet", "--append")
    for week in range(1, 8):
        by = dict(np.load(write_week(tmp_path, week, 5.0)))
        cf.append_summary(summarize(by.pop("x"), by=by), tmp_path / "all.parquet")
    assert run("summarize", write_week(tmp_path, 8, 5.0).name, *add, cwd=tmp_path).returncode == 0
    again = run("summarize", "week8.npz", *add, cwd=tmp_path)
    assert again.returncode == 2
    assert "already contains these rows" in again.stderr
    ask = ("drift", "all.parquet", "--time", "week", "--reference", "first:6")
    calm = run(*ask, "--json", cwd=tmp_path)
    assert calm.returncode == 0, calm.stderr
    assert json.loads(calm.stdout)["alarm"] == [False, False]
    run("summarize", write_week(tmp_path, 9, 5.0).name, *add, cwd=tmp_path)
    alarm = run(*ask, "--given", "label", "--plot", "f.svg", cwd=tmp_path)
    assert alarm.returncode == 1
    assert "Traceback" not in alarm.stderr
    assert "1 alarm at 0.01" in alarm.stdout
    assert "█" in alarm.stdout
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("reference", "options", "code"),
    [
        ("first:7", (), 2),
        ("first:7", ("--latest",), 2),
        ("first:7", ("--latest", "--incomparable", "alarm"), 1),
        ("first:7", ("--latest", "--incomparable", "ignore"), 0),
        ("first:7", ("--alarm", "0", "--latest"), 2),
        ("first:9", ("--json",), 2),
        ("first:9", ("--incomparable", "alarm"), 1),
        ("1,2,3,10", ("--latest", "--alarm", "0"), 0),
        ("first:7", ("--incomparable", "never"), 2),
    ],
)
def test_the_exit_code_tells_of_windows_that_cannot_be_compared(tmp_path, reference, options, code):
    new_label().write(tmp_path / "all.parquet")
    ask = ("drift", "all.parquet", "--time", "week", "--given", "label", "--reference", reference, *options)
    done = run(*ask, cwd=tmp_path)
    assert done.returncode == code, done.stderr + done.stdout
    if "never" in options:
        assert "--incomparable never" in done.stderr
    elif reference != "1,2,3,10":
        assert "lack of common strata of label: 10" in done.stderr
        assert "0.0000" not in done.stdout


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--reference", "1..6"), 1),
        (("--reference", "1,2,3,4,5,6", "--latest"), 0),
        (("--reference", "first:6", "--alarm", "0"), 0),
        (("--reference", "previous", "--window", "2", "--step", "2", "--alarm", "0.001"), 0),
        (("--reference", "1,2,99"), 2),
        (("--reference", "a..b"), 2),
        (("--reference", "first:6", "--over", "week"), 2),
        (("--reference", "first:6", "--over", "features"), 1),
        (("--reference", "first:6", "--alarm", "2"), 2),
        (("--reference", "first:6", "--plot", "f.txt"), 2),
        (("--reference", "first:6", "--time", "month"), 2),
    ],
)
def test_the_command_reads_rows_too(tmp_path, options, code):
    rows, by = stream(shift=5.0, onset=8)
    rows[by["week"] > 8, 2] -= 5.0  # week 8 alone
    np.savez(tmp_path / "rows.npz", x=rows, week=by["week"])
    time = () if "--time" in options else ("--time", "week")
    done = run("drift", "rows.npz", *time, *options, cwd=tmp_path)
    assert done.returncode == code, done.stderr + done.stdout
    assert done.stderr.count("\n") == (code == 2)


def test_rates_are_measured():
    found = bench.rates(quick=True, draws=2)
    assert all(len(row) == len(found["header"]) for row in found["rows"])
    assert [row[3] for row in found["rows"]] == ["none", "4 in 4 directions", "4 in 4 directions"]


def test_a_peer_that_cannot_be_installed_says_why(tmp_path, monkeypatch):
    monkeypatch.setitem(bench.side_by_side.__globals__["PACKAGES"], "evidently", ("no-such-package-here>=99",))
    found = bench.side_by_side(tmp_path / "peers", streams=1, peers=("evidently",))
    assert [row[0] for row in found["rows"]] == ["crossfusion, alarm=0.01"]
    assert found["rows"][0][-2:] == ["1", "1"]
    assert "evidently is left out: pip install 'no-such-package-here>=99' says: " in found["missing"][0]


def test_delays_count_from_the_onset():
    alarms = np.array([[True, False, False, True], [False, False, True, False], [False, True, False, False]])
    assert _delay(alarms, 3) == "2 (1 of 3 never)"
    assert _delay(alarms[:, :2], 2) == "> 1 (2 of 3 never)"


def test_the_figure_is_the_same_each_time(shifted, tmp_path):
    found = shifted.drift("week", reference="first:6", units="patient")
    for name in ("a.png", "b.png"):
        saving.write_figure(found.plot(), tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


# ---- strata of too few units


def rare_label(*, seen_twice=False):
    """Weeks of six patients with labels cat and dog; in week 7, one patient has the only dogs, unless another has."""
    rng = np.random.default_rng(3)
    week, patient, label = (each.ravel() for each in np.meshgrid(range(1, 9), range(6), ("cat", "dog"), indexing="ij"))
    kept = (week != 7) | (label == "cat") | (patient < 1 + seen_twice)
    by = {name: np.repeat(values[kept], 4) for name, values in (("week", week), ("patient", patient), ("label", label))}
    x = rng.normal(size=(len(by["week"]), 3)) + 5 * ((by["week"] == 7) & (by["label"] == "dog"))[:, None]
    return x, by


def test_a_stratum_of_one_unit_is_left_out_of_its_window():
    x, by = rare_label()
    options = {"reference": "first:4", "given": "label", "units": "patient", "over": ["features", "patient"]}
    with pytest.warns(cf.CrossfusionWarning, match=r"strata are left out .*: 7 in dog \(1\): fewer than 2 units"):
        found = summarize(x, by=by).drift("week", **options)
    assert found.excluded == (cf.Exclusion("7", "dog", 1, "fewer than 2 units in a stratum"),)
    assert "excluded: 7 in dog (1): fewer than 2 units" in repr(found)
    kept = (by["week"] != 7) | (by["label"] == "cat")
    cats = (by["label"] == "cat") & ((by["week"] <= 4) | (by["week"] == 7))
    side = np.where(by["week"][cats] == 7, "new", "old")
    expected = summarize(x[cats], by={"side": side, "patient": by["patient"][cats]}).cfd(
        "side", units="patient", level=0.95
    )
    assert found.distance[2] == pytest.approx(expected.distance)
    assert (found.lower[2], found.upper[2]) == pytest.approx(expected.interval)
    assert found.count[2] == np.sum(by["week"] == 7)
    others = summarize(x[kept], by={name: values[kept] for name, values in by.items()}).drift("week", **options)
    np.testing.assert_allclose(np.delete(found.distance, 2), np.delete(others.distance, 2))
    x, by = rare_label(seen_twice=True)
    assert summarize(x, by=by).drift("week", **options).excluded == ()
    with pytest.warns(cf.CrossfusionWarning, match="7 in dog"):
        assert len(summarize(x, by=by).drift("week", min_units=3, **options).excluded) == 1
