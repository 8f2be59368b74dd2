"""A check never says that a rule holds if its question was not answered."""

import numpy as np
import pandas as pd
import pytest

import crossfusion as cf
from tests.helpers.policies import ROWS, make_data

DRIFT = {"drift": "week", "reference": "first:6", "given": "tissue"}


@pytest.fixture(scope="module")
def summary():
    x, by = make_data()
    return cf.summarize(x, by=by)


def ends(estimate, interval):
    return (estimate, *interval)


def run(source, *rules, by=None):
    return cf.check({"rule": list(rules)}, source, by=by)


def only(source, by=None, **rule):
    (outcome,) = run(source, rule, by=by).outcomes
    return outcome


@pytest.mark.parametrize("on", ["estimate", "lower", "upper"])
@pytest.mark.parametrize("kind", ["max", "min"])
def test_the_limit_is_compared_with_the_chosen_end(summary, kind, on):
    fusion = summary.cfd("scanner", given="tissue", units="patient", weights="balanced", level=0.9)
    value = dict(zip(("estimate", "lower", "upper"), ends(fusion.unbiased, fusion.interval), strict=True))[on]
    rule = {"between": "scanner", "given": "tissue", "units": "patient", "on": on, "level": 0.9}
    above, below = (only(summary, **rule, **{kind: limit}) for limit in (value * 1.001, value * 0.999))
    assert [above.status, below.status] == (["holds", "broken"] if kind == "max" else ["broken", "holds"])
    assert (above.estimate, above.lower, above.upper) == ends(fusion.unbiased, fusion.interval)


def test_rows_without_units_are_independent():
    x, by = make_data()
    fusion = cf.cfd(x, labels=by["scanner"], given=by["tissue"], weights="balanced", level=0.95)
    found = only(x, by, between="scanner", given="tissue", max=0.02, on="upper")
    assert (found.estimate, found.lower, found.upper) == ends(fusion.unbiased, fusion.interval)
    assert found.status == "broken"


@pytest.mark.parametrize("units", ["patient", []])
def test_each_pair_names_the_worst(units):
    x, by = make_data()
    rule = {"between": "scanner", "given": "tissue", "units": units, "each_pair": True, "level": 0.9}
    apart = only(x, by, max=0.01, on="lower", **rule)
    pairs = cf.summarize(x, by=by).pairwise("scanner", given="tissue").to_frame().sort_values("unbiased")
    assert apart.status == "broken"
    assert apart.where == f"{pairs['group_a'].iloc[-1]} and {pairs['group_b'].iloc[-1]}"
    assert "as for 1 other pair" in apart.message
    close = only(x, by, min=0.001, **{key: value for key, value in rule.items() if key != "level"})
    assert (close.status, close.where) == ("broken", "S1 and S2")


def test_fused_within_is_the_upper_limit_at_1_minus_2_alpha(summary):
    rule = {"between": "scanner", "given": "tissue", "units": "patient"}
    fusion = summary.cfd("scanner", given="tissue", units="patient", weights="balanced", level=0.8)
    within, beyond = (only(summary, fused_within=fusion.interval[1] + d, alpha=0.1, **rule) for d in (1e-9, 0.0))
    assert (within.status, beyond.status) == ("holds", "broken")
    assert fusion.fused_within(fusion.interval[1] + 1e-9, alpha=0.1)
    assert not fusion.fused_within(fusion.interval[1], alpha=0.1)
    pairs = summary.pairwise("scanner", given="tissue", units="patient", level=0.8)
    found = only(summary, fused_within=0.5, alpha=0.1, each_pair=True, **rule)
    assert found.upper == np.max(pairs.upper)


def test_exit_codes(summary):
    holds, broken = {"between": "scanner", "max": 9}, {"between": "scanner", "max": 0.001}
    unanswered = {"between": "scaner", "max": 9}
    assert [run(summary, rule).exit_code for rule in (holds, broken, unanswered)] == [0, 1, 2]
    both = run(summary, holds, broken, unanswered)
    assert (both.exit_code, both.passed) == (1, False)
    assert [each.status for each in both.outcomes] == ["holds", "broken", "unanswered"]
    assert both.outcomes[2].message == (
        "cannot be answered: the summary has no factor 'scaner': did you mean 'scanner'?"
    )
    assert "policy: 3 rules, 1 held, 1 broken, 1 unanswered" in repr(both)


def test_a_missing_column_leaves_the_other_rules(tmp_path):
    x, by = make_data()
    frame = pd.DataFrame(x, columns=[f"dim_{k}" for k in range(6)]).assign(**by)
    frame.to_csv(tmp_path / "x.csv", index=False)
    rules = [{"between": "scanner", "max": 9}, {"between": "scaner", "given": "week", "max": 9}]
    for source in (frame, tmp_path / "x.csv"):
        found = cf.check({"rule": rules}, source, vectors="dim_*")
        assert [each.status for each in found.outcomes] == ["holds", "unanswered"]
        assert "did you mean 'scanner'" in found.outcomes[1].message
    assert "by has no column 'scaner'" in run(x, *rules, by=by).outcomes[1].message
    with pytest.raises(cf.InputError, match="did you mean 'scanner'"):
        cf.check({"rule": rules[1:]}, frame.drop(columns="week"), vectors="dim_*")


def test_columns_of_an_unanswered_rule_do_not_become_features(tmp_path):
    x, by = make_data()
    frame = pd.DataFrame(x).assign(scanner=by["scanner"], week=by["week"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    found = cf.check(
        {"rule": [{"between": "scanner", "max": 9}, {"between": "site", "given": "week", "max": 9}]}, tmp_path / "x.csv"
    )
    expected = only(x, by, between="scanner", max=9).estimate
    assert found.outcomes[0].estimate == pytest.approx(expected, rel=1e-12)  # sums in another order


@pytest.mark.filterwarnings("ignore::crossfusion.CrossfusionWarning")
class TestWhatCannotBeAnswered:
    def test_confounded_groups(self):
        x, by = make_data()
        by["tissue"] = np.where(by["scanner"] == "S1", "a", np.where(by["scanner"] == "S2", "b", "c"))
        found = only(x, by, between="scanner", given="tissue", max=9)
        assert (found.status, found.estimate) == ("unanswered", None)
        assert "no stratum holds two of the compared groups" in found.message

    @pytest.mark.parametrize("each_pair", [False, True])
    def test_one_group_that_shares_no_stratum(self, each_pair):
        x, by = make_data()
        by["tissue"] = np.where(by["scanner"] == "S3", "bone", by["tissue"])
        rule = {"between": "scanner", "given": "tissue", "max": 9, "each_pair": each_pair}
        found = only(x, by, **rule)
        assert found.status == "unanswered"
        assert "S3" in found.message
        ignored = only(x, by, **rule, incomparable="ignore")
        assert ignored.status == "holds"
        assert "S3" in ignored.caution
        broken = only(x, by, **rule | {"max": 0.0, "incomparable": "ignore", "given": []})
        assert broken.status == "broken"

    @pytest.mark.parametrize("each_pair", [False, True])
    def test_one_group_of_too_few_units(self, each_pair):
        x, by = make_data()
        by["patient"] = np.where(by["scanner"] == "S3", 999, by["patient"])
        rule = {"between": "scanner", "units": "patient", "max": 9, "each_pair": each_pair}
        found = only(x, by, **rule)
        assert found.status == "unanswered"
        assert "S3" in found.message
        assert only(x, by, **rule, incomparable="ignore").status == "holds"

    def test_means_that_are_equal_by_construction(self):
        x, by = make_data()
        for name in np.unique(by["scanner"]):
            x[by["scanner"] == name] -= x[by["scanner"] == name].mean(axis=0)
        for rule in ({"max": 9}, {"fused_within": 9}, {"max": 9, "each_pair": True}):
            found = only(x, by, between="scanner", units="patient", **rule)
            assert found.status == "unanswered"
            assert "agree far more closely" in found.message
        assert only(x, by, between="scanner", min=0.1).status == "broken"

    def test_one_group(self):
        x, by = make_data()
        found = only(x, by | {"site": ["A"] * ROWS}, between="site", max=9)
        assert found.message.startswith("cannot be answered: there is only one group to compare ('A')")

    def test_one_row_per_group(self):
        found = only(np.eye(3), {"site": ["A", "B", "C"]}, between="site", max=9)
        assert found.status == "unanswered"
        assert "every group has one row" in found.message

    def test_limits_of_a_summary_without_units(self, summary):
        for rule in ({"max": 9, "on": "upper"}, {"fused_within": 9}):
            found = only(summary, between="scanner", **rule)
            assert found.message.startswith(
                "cannot be answered: the rule needs rows, and a summary has none: name the independent units"
            )

    def test_infinite_distances_break_a_maximum(self):
        x, by = np.repeat([[0.0], [1.0]], 4, axis=0), {"site": ["A"] * 4 + ["B"] * 4}
        assert only(x, by, between="site", max=1e300).status == "broken"


class TestSeparability:
    def test_it_is_the_balanced_accuracy_on_unseen_units(self):
        x, by = make_data()
        expected = cf.separability(x, by["scanner"], given=by["tissue"], units=by["patient"], level=0.9)
        rule = {"between": "scanner", "given": "tissue", "units": "patient", "level": 0.9}
        for on, value in zip(("estimate", "lower", "upper"), ends(expected.accuracy, expected.interval), strict=True):
            holds, broken = (only(x, by, **rule, on=on, max_separability=value + d) for d in (1e-9, -1e-9))
            assert [holds.status, broken.status] == ["holds", "broken"]
            assert (holds.estimate, holds.lower, holds.upper) == ends(expected.accuracy, expected.interval)
        assert broken.where == "3 groups (chance 0.33)"

    def test_each_pair(self):
        x, by = make_data()
        found = only(x, by, between="scanner", given="tissue", units="patient", max_separability=0.55, each_pair=True)
        pairs = cf.separability(x, by["scanner"], given=by["tissue"], units=by["patient"]).pairs
        worst = max(pairs, key=lambda pair: pair.accuracy or 0.0)
        assert (found.status, found.estimate) == ("broken", worst.accuracy)
        assert found.where == f"{worst.group_a} and {worst.group_b}"
        assert found.message.startswith(f"separability of {found.where} is ")

    @pytest.mark.filterwarnings("ignore::crossfusion.CrossfusionWarning")
    @pytest.mark.parametrize("each_pair", [False, True])
    def test_a_group_of_too_few_units_is_not_answered(self, each_pair):
        x, by = make_data()
        by["patient"] = np.where(by["scanner"] == "S3", 999, by["patient"])
        rule = {"between": "scanner", "units": "patient", "max_separability": 1, "each_pair": each_pair}
        assert only(x, by, **rule).status == "unanswered"
        assert "S3 is compared with no other group" in only(x, by, **rule).message
        assert only(x, by, **rule, incomparable="ignore").status == "holds"

    def test_a_summary_has_no_rows(self, summary):
        found = only(summary, between="scanner", max_separability=0.9)
        assert found.message == "cannot be answered: the rule needs rows, and a summary has none: check the rows"


class TestDrift:
    def test_no_alarm(self, summary):
        found = only(summary, **DRIFT)
        assert found.status == "holds"
        assert found.message.startswith("no alarm in 6 windows; the most unusual is ")

    def test_an_alarm(self):
        x, by = make_data()
        x[by["week"] == 9] += 2.0
        found = only(x, by, **DRIFT)
        assert (found.status, found.where) == ("broken", "9")
        assert found.message.startswith("alarm at 9 (CFD ")
        assert only(x, by, **DRIFT, latest=True).status == "holds"
        x[by["week"] == 11] += 2.0
        assert only(x, by, **DRIFT, latest=True).where == "11"
        assert "first of 2 alarms" in only(x, by, **DRIFT).message

    @pytest.mark.filterwarnings("ignore::crossfusion.CrossfusionWarning")
    def test_a_window_without_common_strata(self):
        x, by = make_data()
        by["tissue"] = np.where(by["week"] == 8, "bone", by["tissue"])
        found = only(x, by, **DRIFT)
        assert (found.status, found.message) == ("unanswered", "cannot be answered: windows without common strata: 8")
        assert only(x, by, **DRIFT, incomparable="ignore").status == "holds"

    def test_questions_that_are_refused(self, summary):
        found = only(summary, **DRIFT | {"reference": "first:2"})
        assert "has 2 periods, and an alarm needs 3 or more" in found.message
        assert "no period of week is" in only(summary, **DRIFT | {"reference": ["x"]}).message
        assert only(summary, drift="week", reference=[0, 1, 2, 3]).status == "holds"


def test_a_summary_file_is_read(summary, tmp_path):
    summary.write(tmp_path / "summary.parquet")
    rule = {"between": "scanner", "given": "tissue", "units": "patient", "max": 0.02, "on": "upper"}
    assert run(tmp_path / "summary.parquet", rule) == run(summary, rule)
    with pytest.raises(cf.InputError, match="by and vectors apply only to rows"):
        cf.check({"rule": [rule]}, summary, vectors="x")
