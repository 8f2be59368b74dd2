"""What a report says: the library's own numbers, in words that fit them."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.io.sources import open_file
from crossfusion.io.sources.sampling import Sample
from crossfusion.report.group_order import order_by_clusters
from crossfusion.report.html.markup import format_number
from crossfusion.report.name_text import strip_marks

COMMAND = Path(sys.executable).with_name("crossfusion")


def study(rows=1500, sites=3, shift=0.8, seed=0):
    """Vectors that site, label and patient move, and their factors."""
    rng = np.random.default_rng(seed)
    site, label = rng.integers(0, sites, rows), rng.integers(0, 2, rows)
    patient = site * 8 + rng.integers(0, 8, rows)
    x = rng.normal(size=(rows, 6)) + 0.2 * rng.normal(size=(sites * 8, 6))[patient]
    x[:, 0] += shift * site
    x[:, 1] += label
    return x.astype(np.float32), {
        "site": np.array([f"S{k}" for k in site]),
        "label": np.array([f"L{k}" for k in label]),
        "patient": np.array([f"P{k:02d}" for k in patient]),
    }


def as_file(path, x, by):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])
    pq.write_table(pa.table({"embedding": vectors} | {name: pa.array(values) for name, values in by.items()}), path)
    return path


@pytest.fixture(scope="module")
def whole():
    x, by = study()
    asked: dict[str, Any] = {"between": "site", "given": "label", "units": "patient"}
    return cf.Report(x, by=by, **asked), cf.summarize(x, by=by)


def test_the_numbers_are_those_of_the_summary(whole):
    report, summary = whole
    found = report.to_dict()
    options: dict[str, Any] = {"units": "patient", "level": 0.95, "weights": "balanced"}
    for name, (between, given) in {"plain": ("site", None), "adjusted": ("site", "label")}.items():
        expected = summary.cfd(between, given=given, **options).to_dict()
        for field in ("distance", "unbiased", "interval", "stderr", "within", "between", "overlap"):
            assert found["distances"][name][field] == pytest.approx(expected[field], rel=1e-9)
    pairs = summary.pairwise("site", given="label", permutations=999, **options)
    upper = np.triu_indices(3, 1)
    for field in ("distance", "unbiased", "lower", "upper", "pvalue", "adjusted"):
        assert found["pairs"]["adjusted"][field] == pytest.approx(getattr(pairs, field)[upper], rel=1e-5)
    test = summary.test("site", given="label", units="patient")
    assert found["test"]["pvalue"] == test.pvalue
    assert found["test"]["null"] == pytest.approx(test.null, rel=1e-5)
    levels = summary.hierarchy(["label", "site", "patient"], weights="balanced", balance="site")
    assert found["levels"][1] == levels.to_dict()
    features = summary.attribution("site", given="label", weights="balanced")
    assert found["features"]["labels"][0] == str(features.top(1)[0])
    assert sum(found["features"]["share"]) == pytest.approx(1, abs=1e-4)


def test_the_headline_says_what_the_numbers_say(whole):
    report, _ = whole
    found, said = report.to_dict(), repr(report)
    main = found["distances"]["adjusted"]
    share = (
        f"Adjusted for label, sites explain {-100 * np.expm1(-main['unbiased']):.1f}% of the variance within a label"
    )
    limits = " to ".join(map(format_number, main["interval"]))
    assert f"{share} (CFD {format_number(main['unbiased'])}, 95% interval {limits}; p = 0.001)." in said
    assert "Unlikely by chance (p = 0.001, 999 random permutations of patient)." in said
    assert "Intervals and tests count 24 patient units, not 1,500 rows." in said
    assert said == "\n".join(strip_marks(text) for text in found["headline"])


def test_one_rare_row_does_not_switch_the_headline_to_the_plug_in():
    draw = np.random.default_rng(0)
    x, site, label = draw.normal(size=(241, 64)), np.arange(241) % 6, np.arange(241) // 6 % 4
    site[-1], label[-1] = 0, 9
    site[-2], label[-2] = 1, 9  # two groups of one row share a label
    found = cf.Report(cf.summarize(x, by={"site": site, "label": label}), between="site", given="label").to_dict()
    main = found["distances"]["adjusted"]
    assert main["distance"] > 0.08
    assert abs(main["unbiased"]) < 0.02
    assert f"is {format_number(main['unbiased'])};" in found["headline"][0]
    assert all(card["value"] != format_number(main["distance"]) for card in found["cards"])
    assert None not in found["pairs"]["adjusted"]["unbiased"]


def test_what_was_not_judged_is_not_said_to_be_counted():
    x, by = study()
    bare = repr(cf.Report(cf.summarize(x, by=by), between="site"))
    assert "Neither an interval nor a test could be computed, so chance cannot be ruled out" in bare
    assert "treated as independent" not in bare
    patient = [None if k % 9 == 0 else name for k, name in enumerate(by["patient"])]
    assert "Intervals and tests count" not in repr(
        cf.Report(x, by=by | {"patient": patient}, between="site", units="patient")
    )


def test_rows_without_a_value_are_told():
    x, by = study()
    site = [None if k % 10 == 0 else name for k, name in enumerate(by["site"])]
    found = cf.Report(x, by=by | {"site": site}, between="site", units="patient").to_dict()["warnings"]
    assert [entry["title"] for entry in found if entry["kind"] == "missing"] == [
        "150 of 1,500 rows have no \u2068site\u2069"
    ]
    assert "missing" not in [entry["kind"] for entry in cf.Report(x, by=by, between="site").to_dict()["warnings"]]


def test_groups_that_chance_would_separate_as_far_are_not_called_apart():
    x, by = study(shift=0.0)
    report = cf.Report(x, by=by, between="site", units="patient")
    assert report.to_dict()["test"]["pvalue"] > 0.05
    assert "No significant separation" in repr(report)
    assert "Compatible with chance" in repr(report)


def crossed(stray=0):
    """Two sites of twelve patients each, apart; the first rows of some patients are of the other site."""
    draw, patient = np.random.default_rng(0), np.arange(240) // 10
    site = np.where(patient < 12, "A", "B")
    x = draw.normal(size=(240, 5)) + 0.3 * draw.normal(size=(24, 5))[patient] + (site == "B")[:, None]
    site[: 10 * stray : 10] = "B"
    return x, {"site": site, "patient": patient}


def test_a_test_that_sees_one_unit_only_decides_nothing():
    x, by = crossed(stray=1)
    found = cf.Report(x, by=by, between="site", units="patient").to_dict()
    said = [strip_marks(sentence) for sentence in found["headline"]]
    assert found["verdict"]["sentence"] == "\u2068A\u2069 and \u2068B\u2069 differ."
    assert any(entry.startswith("The test uses only the 1 of 24 patient units that occur in several") for entry in said)
    assert "Intervals and tests count 24 patient units, not 240 rows." in said
    assert found["warnings"][0]["kind"] == "crossed units"
    x, by = crossed()
    found = cf.Report(x, by=by, between="site", units="patient").to_dict()
    assert "crossed units" not in [entry["kind"] for entry in found["warnings"]]


def test_units_in_strata_of_one_group_are_not_counted():
    x, by = crossed()
    label = np.where(by["patient"] % 3 == 0, "both", by["site"])
    found = cf.Report(x, by=by | {"label": label}, between="site", given="label", units="patient").to_dict()
    said = strip_marks(" ".join(found["headline"]))
    assert "count 24 patient units (8 of them in strata with several groups), not" in said
    assert (found["test"]["number"], found["test"]["total"]) == (8, 24)


def test_a_confounded_design_is_told_as_the_rows_come():
    x, by = crossed()
    report = cf.Report(x, by=by | {"label": by["site"]}, between="site", given="label", units="patient")
    assert any(sentence.startswith("Unadjusted: Unlikely by chance") for sentence in report.to_dict()["headline"])
    page = report.to_html()
    assert "Shares of the variance between the groups." in page
    assert "permutations of labels within strata" not in page


def test_one_stratum_is_enough_for_a_page():
    x, by = crossed()
    found = cf.Report(x, by=by | {"label": np.repeat("one", 240)}, between="site", given="label").to_dict()
    assert list(found["distances"]) == ["plain", "adjusted"]


def test_pairs_are_shown_of_the_groups_that_are_farthest_from_the_others(monkeypatch):
    monkeypatch.setattr(sys.modules["crossfusion.report.contents"], "MAX_GROUPS", 3)
    x, by = study(sites=5)
    found = cf.Report(x, by=by, between="site").to_dict()
    assert found["groups"]["names"] == ["S0", "S1", "S4"] or found["groups"]["names"] == ["S0", "S3", "S4"]
    assert (found["groups"]["all"], len(found["ranks"]["names"])) == (5, 5)


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
def test_imbalance_is_told_where_it_decides(weights):
    x, by = crossed()
    rows = np.flatnonzero((by["site"] == "A") | (by["patient"] >= 22))
    x, by = x[rows], {name: values[rows] for name, values in by.items()}
    found = cf.Report(x, by=by, between="site", units="patient", weights=weights).to_dict()
    assert ("imbalance" in [entry["kind"] for entry in found["warnings"]]) == (weights == "pooled")


def test_units_of_several_columns_are_not_mixed_up():
    x, by = crossed()
    by = {"site": by["site"], "hospital": by["patient"] // 3, "patient": by["patient"] % 3}
    found = cf.Report(x, by=by, between="site", units=["patient", "hospital"]).to_dict()
    assert (found["units"]["over"], found["units"]["number"]) == ("patient × hospital", 24)


def test_why_versions_and_periods_have_no_intervals_is_on_the_page():
    x, by = crossed()
    twice = {name: np.concatenate([values, values[:220]]) for name, values in by.items()}
    twice["method"] = np.repeat(["raw", "corrected"], [240, 220])
    asked: dict[str, Any] = {"between": "site", "units": "patient"}
    report = cf.Report(np.concatenate([x, x[:220]]), by=twice, method="method", **asked)
    assert "different units or groups" in report.to_dict()["missing"]["intervals of versions"]
    assert "No intervals of versions" in report.to_html()
    week = by["patient"] // 2
    found = cf.Report(x, by=by | {"week": week}, time="week", **asked).to_dict()
    assert "intervals over time" in found["missing"] or found["drift"]["lower"] is not None


def test_too_few_units_leave_open_whether_groups_are_apart():
    unit = np.repeat(np.arange(6), 20)
    x = np.random.default_rng(0).normal(size=(120, 4)) + 3.0 * (unit >= 3)[:, None]
    report = cf.Report(x, by={"site": unit // 3, "patient": unit}, between="site", units="patient")
    said = repr(report)
    assert report.to_dict()["verdict"]["kind"] == "none"
    assert (
        "Chance cannot be ruled out: p = 0.1 is the smallest p-value that all 20 permutations of patient can give."
        in said
    )


def test_nothing_is_said_where_nothing_can_be_told():
    x = np.random.default_rng(0).normal(size=(12, 3))
    single = cf.Report(x, by={"row": np.arange(12)}, between="row")
    assert single.to_dict()["verdict"]["kind"] == "untested"
    assert "cannot be determined: every group has one row" in repr(single)
    assert "100" not in repr(single)
    site = np.arange(12) % 4
    alone = cf.Report(x, by={"site": site, "kind": site}, between="site", given="kind").to_dict()
    assert alone["cards"][1]["value"] == "–"
    assert alone["cards"][1]["text"].startswith("nothing to compare")
    flat = cf.Report(np.ones((12, 3)), by={"site": np.arange(12) % 3}, between="site")
    assert "farthest" not in repr(flat)


def test_a_summary_is_enough_and_says_what_is_left_out(whole, tmp_path):
    report, summary = whole
    summary.write(tmp_path / "summary.parquet")
    for source in (summary, tmp_path / "summary.parquet"):
        found = cf.Report(source, between="site", given="label", units="patient").to_dict()
        rows = report.to_dict()
        assert found["distances"]["adjusted"]["interval"] == rows["distances"]["adjusted"]["interval"]
        assert found["pairs"] == rows["pairs"]
        assert found["projection"]["codes"] is None
        assert all(view["at"] is None for view in found["projection"]["views"].values())
    alone = cf.Report(summary, between="site")
    assert "interval" in alone.to_dict()["missing"]
    assert alone.to_dict()["test"] is None
    assert "summary has no rows" in alone.to_html()


def test_without_units_rows_are_judged_and_a_warning_says_so():
    x, by = study()
    found = cf.Report(x, by=by, between="site").to_dict()
    expected = cf.cfd(x, labels=by["site"], level=0.95, weights="balanced")
    assert found["distances"]["plain"]["interval"] == pytest.approx(
        expected.interval, rel=1e-3
    )  # of rows in another order
    assert found["test"]["exchanged"] == "single rows"
    assert found["test"]["pvalue"] == cf.permutation_test(x, by["site"]).pvalue
    assert found["warnings"][0]["kind"] == "units"
    assert found["pairs"]["plain"]["lower"] is not None


def test_every_version_is_compared_and_the_rest_is_about_the_reference():
    x, by = study()
    fixed = x - 0.8 * np.char.lstrip(by["site"], "S").astype(np.float32)[:, None] * np.eye(6, dtype=np.float32)[0]
    both = {name: np.tile(values, 2) for name, values in by.items()} | {"kind": np.repeat(["raw", "fixed"], len(x))}
    asked: dict[str, Any] = {"between": "site", "given": "label", "units": "patient"}
    report = cf.Report(np.concatenate([x, fixed]), by=both, method="kind", reference="raw", **asked)
    found = report.to_dict()
    versions = {"raw": cf.summarize(x, by=by), "fixed": cf.summarize(fixed, by=by)}
    expected = cf.compare_corrections(versions, reference="raw", weights="balanced", **asked)
    assert found["methods"]["names"] == ["fixed", "raw"]
    for k, name in enumerate(found["methods"]["names"]):
        batch = expected.batch[expected.names.index(name)]
        assert found["methods"]["batch"][k]["value"] == pytest.approx(batch.unbiased)
        assert found["methods"]["batch"][k]["interval"] == pytest.approx(batch.interval)
    assert found["distances"]["adjusted"]["unbiased"] == pytest.approx(expected.batch[0].unbiased)
    assert found["about"]["rows"] == len(x)
    assert "describe the version raw; fixed is on the Pareto front" in repr(report)


def versions(first, second):
    """The same rows twice, as two versions of these names; the second one is shifted less."""
    x, by = study(300)
    both = {name: np.tile(values, 2) for name, values in by.items()} | {"kind": np.repeat([first, second], len(x))}
    return np.concatenate([x, 0.5 * x]), both


@pytest.mark.parametrize("name", ["none", "raw", "Raw"])
def test_the_reference_is_the_version_called_none_or_raw(name):
    x, by = versions("gan", name)  # "gan" is the first in the alphabet
    found = cf.Report(x, by=by, between="site", method="kind", permutations=9).to_dict()
    assert found["about"]["reference"] == name


def test_without_such_a_version_the_reference_must_be_named():
    x, by = versions("gan", "macenko")
    with pytest.raises(cf.InputError, match=r"reference is needed.*'gan', 'macenko'"):
        cf.Report(x, by=by, between="site", method="kind", permutations=9)


def test_a_quantity_has_one_value_on_the_page():
    """The unadjusted, the adjusted and the label's distance are the same wherever the page shows them."""
    x, by = study(600)
    asked: dict[str, Any] = {"between": "site", "given": "label", "units": "patient", "permutations": 99}
    found = cf.Report(x, by=by, expect="fused", **asked).to_dict()
    distances, (batch,) = found["distances"], found["batches"]
    for name, kind in (("plain", "plain"), ("batch", "adjusted")):
        assert batch[name]["value"] == distances[kind]["unbiased"]
        assert batch[name]["interval"] == distances[kind]["interval"]
    for card, kind in zip(found["cards"], ("plain", "adjusted"), strict=False):
        assert card["value"] == format_number(distances[kind]["unbiased"])
    alone = cf.summarize(x, by=by).cfd("label", units="patient", weights="balanced")
    assert batch["labels"]["value"] == pytest.approx(alone.unbiased)


@pytest.mark.parametrize("weights", ["balanced", "pooled"])
def test_a_page_has_one_weighting_and_names_it_once(weights):
    x, by = study(600)
    keep = (by["site"] != "S2") | (np.arange(600) % 9 == 0)
    x, by = x[keep], {name: values[keep] for name, values in by.items()}
    chosen = {} if weights == "balanced" else {"weights": weights}
    report = cf.Report(x, by=by, between="site", given="label", units="patient", permutations=9, **chosen)
    found, summary = report.to_dict(), cf.summarize(x, by=by)
    options: dict[str, Any] = {"given": "label", "weights": weights}
    assert found["distances"]["adjusted"]["distance"] == pytest.approx(summary.cfd("site", **options).distance)
    pairs = summary.pairwise("site", **options).distance[np.triu_indices(3, 1)]
    assert found["pairs"]["adjusted"]["distance"] == pytest.approx(pairs, rel=1e-5)
    assert found["levels"][0]["levels"][0]["distance"] == pytest.approx(found["distances"]["plain"]["distance"])
    assert "distance" not in found["test"]  # it follows the rows
    page = re.sub(r"<script.*?</script>|<code.*?</code>", "", report.to_html(), flags=re.DOTALL)
    assert [page.count(f"({name})") for name in (weights, *({"balanced", "pooled"} - {weights}))] == [1, 0]


def test_the_plane_shows_a_share_of_the_same_variance():
    draw, rows = np.random.default_rng(0), [400, 20, 20, 20]
    site = np.repeat(range(4), rows)
    x = draw.normal(size=(460, 5)) + 2 * np.eye(4, 5)[site]
    found = cf.Report(x, by={"site": site}, between="site", permutations=9).to_dict()["projection"]["views"]["plain"][
        "shown"
    ]
    means = np.array([x[site == k].mean(axis=0) for k in range(4)])
    variance = np.linalg.svd(means - means.mean(axis=0), compute_uv=False) ** 2
    assert found == pytest.approx(variance[:2].sum() / variance.sum())


@pytest.mark.parametrize(("patients", "told"), [(4, True), (8, False)])
def test_fewer_than_twenty_units_are_told(patients, told):
    x, by = study(480)
    patient = np.char.add(by["site"], (np.arange(480) // 3 % patients).astype(str))
    found = cf.Report(x, by=by | {"patient": patient}, between="site", units="patient", permutations=9).to_dict()
    assert ("few units" in [entry["kind"] for entry in found["warnings"]]) == told


def kinds(report):
    return {entry["kind"] for entry in report.to_dict()["warnings"]}


def test_what_could_mislead_is_named_with_what_to_do():
    x, by = study(rows=600)
    assert kinds(cf.Report(x, by=by, between="site", units="patient")) == {"disclosure"}
    keep = (by["site"] != "S2") | (np.arange(600) % 12 == 0)
    few = {name: values[keep] for name, values in by.items()}
    pooled = cf.Report(x[keep], by=few, between="site", units="patient", weights="pooled")
    assert {"imbalance", "small rows"} <= kinds(pooled)
    copied = x.copy()
    copied[100:200], copied[:, 5] = copied[0], 1.0
    assert {"duplicates", "variance"} <= kinds(cf.Report(copied, by=by, between="site", units="patient"))
    wide = x * np.where(by["site"] == "S0", 8, 1)[:, None]
    wide -= np.array([wide[by["site"] == site].mean(axis=0) for site in by["site"]])
    assert {"spread", "shape"} & kinds(cf.Report(wide, by=by, between="site", units="patient"))
    mixed = {**by, "label": np.where(by["site"] == "S0", "L0", by["label"])}
    assert "mix" in kinds(cf.Report(x, by=mixed, between="site", given="label", units="patient"))
    apart = {**by, "label": by["site"]}
    confounded = cf.Report(x, by=apart, between="site", given="label", units="patient")
    assert "overlap" in kinds(confounded)
    assert "cannot be separated from that of label" in repr(confounded)
    for entry in confounded.to_dict()["warnings"]:
        assert entry["title"]
        assert entry["advice"]


def test_the_headline_names_groups_that_are_hardly_compared():
    x, by = study(rows=600)
    x = x + np.where(by["site"] == "S2", 50.0, 0.0)[:, None]
    by = {**by, "label": np.where(by["site"] == "S2", "fish", by["label"])}
    report = cf.Report(x, by=by, between="site", given="label", units="patient")
    said = "the comparison rests on few rows: only 0 of 223 rows of S2 are in strata with another group"
    assert f"Caution: {said}." in report.to_dict()["headline"]
    assert "few rows" in kinds(report)
    by["label"] = by["site"]  # which has a sentence of its own
    assert "few rows" not in kinds(cf.Report(x, by=by, between="site", given="label", units="patient"))


def test_the_plane_shows_as_much_of_the_between_variance_as_it_says(whole):
    report, summary = whole
    projection = report.to_dict()["projection"]
    view = projection["views"]["plain"]
    groups = summary.rollup("site").moments
    weight = groups.count / groups.count.sum()
    gap = groups.mean - weight @ groups.mean
    values = np.linalg.eigvalsh((gap * weight[:, None]).T @ gap)
    assert view["shown"] == pytest.approx(values[-2:].sum() / values.sum())
    means = np.array(view["means"][0], float)
    seen = np.sqrt(np.sum((means[0] - means[1]) ** 2) / np.sum((means[0] - means[2]) ** 2))
    true = np.linalg.norm(gap[0] - gap[1]) / np.linalg.norm(gap[0] - gap[2])
    assert seen == pytest.approx(true, rel=0.02)
    points, codes = np.array(view["at"]), np.array(projection["codes"][0])
    assert points[codes == 2].mean(axis=0) == pytest.approx(means[2], abs=2)


def test_the_plane_has_no_points_where_a_distance_is_undefined():
    x, by = study(300)
    alone = cf.summarize(x, by=by | {"label": by["site"]})
    batches: dict[str, Any] = {"between": "site", "given": "label", "permutations": 9, "expect": "fused"}
    said = {
        "confounded": cf.Report(alone, **batches),
        "versions": cf.Report(cf.summarize(x, by=by), between="site", method="label", reference="L0", permutations=9),
        "defined": cf.Report(cf.summarize(x, by=by), **batches),
    }
    texts = {name: report.to_html() for name, report in said.items()}
    assert "There is no picture because one of its two CFDs is undefined" in texts["confounded"]
    assert "There is no picture because no factor to preserve is named" in texts["versions"]
    assert "There is no picture" not in texts["defined"]
    assert "The upper left corner is best" in texts["defined"]


def test_groups_without_a_finite_row_are_missed_on_the_page(tmp_path):
    x, by = study(300)
    x[by["site"] == "S1"] = np.nan
    with pytest.warns(cf.CrossfusionWarning) as said:
        found = cf.Report(x, by=by, between="site", nan="drop", permutations=9).to_dict()
    assert any("groups without a finite row are left out (1): S1" in str(entry.message) for entry in said)
    concern = next(entry for entry in found["warnings"] if entry["kind"] == "lost groups")
    assert concern["serious"]
    assert concern["text"] == "Groups without a finite row are left out (1): S1."


def test_two_groups_get_a_second_direction():
    x, by = study(sites=2)
    assert cf.Report(x, by=by, between="site").to_dict()["projection"]["views"]["plain"]["second"] == "rows"
    summary = cf.summarize(x, by=by)
    found = cf.Report(summary, between="site", units="patient").to_dict()["projection"]["views"]["plain"]
    assert found["second"] == "cells"


def test_groups_that_lie_close_stand_side_by_side():
    place = np.array([0.0, 10.0, 0.2, 10.1, 0.1, 20.0])
    order = order_by_clusters(np.abs(place[:, None] - place))
    assert sorted(order[order.index(5) == 0 :][:3]) in ([0, 2, 4], [1, 3, 5])
    steps = np.abs(np.diff(place[order]))
    assert np.sum(steps > 1) == 2


@pytest.mark.parametrize("rows", [40, 1000])
def test_the_sample_is_the_same_each_time_and_every_row_has_its_chance(rows, tmp_path):
    x, by = study(rows=5000)
    x[:, 0] = np.arange(5000)
    path = as_file(tmp_path / "rows.parquet", x, by)
    drawn = []
    for _ in range(2):
        sample = Sample(3, rows=rows)
        for source in sample.watch([open_file(path, ["site"])]):
            for block in source.chunks():
                np.asarray(block.rows)
                np.asarray(block.rows)  # stretches may be made twice, and count once
        found = sample.rows()
        assert found is not None
        assert sample.seen == 5000
        assert len(found.x) == len(np.unique(found.x[:, 0])) == rows
        assert found.keys.column("site").to_pylist() == by["site"][found.x[:, 0].astype(int)].tolist()
        drawn.append(found.x[:, 0])
    assert np.array_equal(*drawn)
    assert abs(drawn[0].mean() - 2500) < 5 * 1443 / np.sqrt(rows)


def test_the_page_holds_the_data_and_stays_small_with_many_groups(tmp_path):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), 12)
    x = rng.normal(size=(720, 4)) + rng.normal(size=(60, 4))[group]
    by = {"site": group, "patient": np.arange(720) // 4}
    report = cf.Report(x, by=by, between="site", units="patient")
    report.write(tmp_path / "many.html")
    found = report.to_dict()
    assert len(found["pairs"]["plain"]["distance"]) == 60 * 59 // 2
    assert (tmp_path / "many.html").stat().st_size < 5e6 * (60 / 100) ** 2
    more = cf.Report(cf.summarize(x, by={"site": np.arange(720) // 4}), between="site").to_dict()
    assert (more["groups"]["number"], more["groups"]["all"]) == (120, 180)


def test_the_same_source_and_seed_give_the_same_page(whole):
    report, _ = whole
    x, by = study()
    again = cf.Report(x, by=by, between="site", given="label", units="patient")
    assert again.to_html() == report.to_html()
    assert json.loads(json.dumps(again.to_dict(), allow_nan=False)) == again.to_dict()
    assert (
        "crossfusion.Report(source, between='site', given='label', units='patient')"
        in again.to_dict()["made"]["command"]
    )


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"between": []}, "between is empty"),
        ({"between": "nowhere"}, "nowhere"),
        ({"between": "site", "given": "site"}, "each factor for one purpose"),
        ({"between": "site", "level": 95}, "level"),
        ({"between": "site", "reference": "raw"}, "method"),
        ({"between": "site", "method": "patient", "reference": "raw"}, "raw"),
        ({"between": "site", "weights": "equal"}, "weights"),
        ({"between": "site", "permutations": 0}, "permutations"),
    ],
)
def test_bad_questions_are_refused(options, pattern, whole, refuses):
    with refuses(pattern):
        cf.Report(whole[1], **options)


def test_a_page_is_written_to_a_page(whole, tmp_path, refuses):
    with refuses("ending", cf.FileError):
        whole[0].write(tmp_path / "data.parquet")
    with refuses("there is no folder", cf.FileError):
        whole[0].write(tmp_path / "no" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with refuses("cannot be written", cf.FileError):
        whole[0].write(tmp_path / "folder.html")


def test_a_page_that_cannot_be_written_is_refused_before_rows_are_read(tmp_path):
    done = run("report", tmp_path / "nowhere.parquet", "--between", "site", "-o", tmp_path / "no" / "report.html")
    assert done.returncode == 2
    assert "there is no folder" in done.stderr


def test_a_name_without_a_letter_is_seen():
    x, by = study()
    names = np.array(["", " ", "B"])[[int(name[1]) for name in by["site"]]]
    report = cf.Report(x, by={"site": names}, between="site", permutations=9)
    assert report.to_dict()["groups"]["names"] == ["(empty)", "' '", "B"]
    assert report.to_dict()["ranks"]["names"] == ["(empty)", "' '", "B"]


def test_features_have_their_names_in_the_drift_too(tmp_path):
    x, by = study()
    week = np.arange(len(x)) // 100
    x[week >= 10, 4] += 3.0
    columns = {f"f{k}": x[:, k] for k in range(x.shape[1])} | {"site": by["site"], "week": week}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    report = cf.Report(tmp_path / "rows.parquet", between="site", time="week", vectors="f*", permutations=9)
    assert "by features: f4" in report.to_dict()["drift"]["told"][1]


def run(*arguments):
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_the_command_writes_the_page_and_says_what_it_says(tmp_path):
    path = as_file(tmp_path / "rows.parquet", *study())
    page = tmp_path / "report.html"
    asked = ["--between", "site", "--given", "label", "--units", "patient"]
    done = run("report", path, *asked, "-o", page)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"written to {page}"
    assert "24 patient units" in done.stdout
    text = page.read_text(encoding="utf-8")
    assert f"crossfusion report {path}" in text
    found = json.loads(run("report", path, *asked, "--json").stdout)
    assert found["about"]["sampled"] == 1500
    refused = run("report", path, *asked, "-o", tmp_path / "report.txt")
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


def test_an_array_without_labels_is_refused_by_the_factor_that_it_lacks(refuses):
    with refuses(r"^ndarray has no columns to find 'site' in: pass by=\{name: values\}, a file or a table$"):
        cf.Report(np.zeros((4, 2)), between="site")


def test_the_shape_of_groups_is_looked_at_without_another_interval(monkeypatch):
    draw = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 5)
    site = np.where(patient < 30, "A", "B")
    x = draw.normal(size=(300, 2))
    x[np.arange(300), (site == "B").astype(int)] += 8 * draw.choice([-1, 1], 300)  # equal means and spread, other shape
    expected = cf.cfd(x, labels=site, units=patient, level=0.95).caution
    assert "shape" in expected
    monkeypatch.setattr("crossfusion.report.evidence.cfd", lambda *_, **__: pytest.fail("an interval of its own"))
    report = cf.Report(x, by={"site": site, "patient": patient}, between="site", units="patient")
    assert expected in str(report.to_dict())


def test_nested_factors_have_their_earlier_name():
    """And the call on the page, which makes the same page, has the new one."""
    rng = np.random.default_rng(0)
    by = {"site": np.arange(80) % 2, "ward": np.arange(80) % 4, "patient": np.arange(80) // 4}
    asked = {"by": by, "between": "site", "units": "patient", "permutations": 19}
    x = rng.normal(size=(80, 3))
    found = cf.Report(x, factors=["site", "ward"], **asked).to_dict()
    assert found["question"]["levels"] == ["site", "ward"]
    assert "factors=['site', 'ward']" in str(found["made"])
    with pytest.warns(cf.CrossfusionWarning, match="levels is now called factors"):
        assert cf.Report(x, **{**asked, "levels": ["site", "ward"]}).to_dict() == found
    assert "factors=" not in str(cf.Report(x, **asked).to_dict()["made"])
