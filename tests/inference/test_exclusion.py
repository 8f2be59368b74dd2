"""Groups, or groups in a stratum, with too few units: they are left out by name, and all else is about the others."""

import json
import warnings

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers.command_line import run

PACKAGES, SINGLE = 23, "p22"
REMAINING = r"left out: p22 \(1\): fewer than 2 units; all numbers are about the remaining groups"


def packages():
    """Rows of files in 23 packages, of which the last has one file."""
    rng = np.random.default_rng(5)
    file = np.repeat(np.arange(3 * (PACKAGES - 1) + 1), 6)
    package = np.array([f"p{k:02d}" for k in range(PACKAGES)])[file // 3]
    x = rng.normal(size=(len(file), 4)) + 0.5 * rng.normal(size=(file.max() + 1, 4))[file]
    return x, {"package": package, "file": file}


def blocks(single):
    """Rows of patients at two sites with two labels; some labels at a site come from one patient."""
    rng = np.random.default_rng(6)
    patient = np.repeat(np.arange(12), 8)
    site, label = np.where(patient < 6, "A", "B"), np.tile(["healthy", "tumor"], 48)
    kept = np.ones(len(patient), bool)
    for name, word in single:
        own = (site == name) & (label == word)
        kept &= ~own | (patient == patient[own][0])
    by = {"site": site[kept], "label": label[kept], "patient": patient[kept]}
    return rng.normal(size=(len(patient), 3))[kept] + (by["site"] == "B")[:, None], by


def without(x, by, dropped):
    kept = ~dropped
    return cf.summarize(x[kept], by={name: values[kept] for name, values in by.items()})


def ask(question):
    """An answer, with the warning that must come with it."""
    with pytest.warns(cf.CrossfusionWarning, match="left out"):
        return question()


def assert_equal(found, expected):
    for name in ("distance", "unbiased", "within", "between", "interval", "stderr", "overlap"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)


def test_one_package_of_one_file_leaves_the_others_their_interval_and_test():
    x, by = packages()
    whole, others = cf.summarize(x, by=by), without(x, by, by["package"] == SINGLE)
    named = (cf.Exclusion(SINGLE, None, 1, "fewer than 2 units"),)
    with pytest.warns(cf.CrossfusionWarning, match=REMAINING):
        fusion = whole.cfd("package", units="file", level=0.95)
    assert fusion.excluded == named
    assert SINGLE not in fusion.counts
    assert_equal(fusion, others.cfd("package", units="file", level=0.95))
    tested = ask(lambda: whole.test("package", units="file", permutations=99))
    assert tested.excluded == named
    assert tested.pvalue == others.test("package", units="file", permutations=99).pvalue
    assert tested.distance == pytest.approx(fusion.distance)
    rows = ask(lambda: cf.cfd(x, labels=by["package"], units=by["file"], level=0.95))
    assert rows.excluded == named
    assert_equal(rows, fusion)
    same = ask(lambda: cf.permutation_test(x, by["package"], units=by["file"], permutations=99))
    assert (same.excluded, same.pvalue) == (named, tested.pvalue)


def test_pairs_keep_the_group_that_is_left_out_without_numbers():
    x, by = packages()
    whole, others = cf.summarize(x, by=by), without(x, by, by["package"] == SINGLE)
    options = {"units": "file", "level": 0.9, "permutations": 19}
    found, expected = ask(lambda: whole.pairwise("package", **options)), others.pairwise("package", **options)
    assert [entry.group for entry in found.excluded] == [SINGLE]
    assert found.labels == (*expected.labels, SINGLE)
    for name, values in expected.columns.items():
        np.testing.assert_allclose(found.columns[name][:-1, :-1], values, rtol=1e-9, err_msg=name)
        assert np.isnan(found.columns[name][-1, :-1]).all(), name
    assert "excluded: p22 (1): fewer than 2 units" in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["excluded"][0]["group"] == SINGLE


def test_a_group_is_left_out_in_the_stratum_where_it_has_too_few_units():
    x, by = blocks([("B", "tumor")])
    summary = cf.summarize(x, by=by)
    expected = (
        cf.Exclusion("B", "tumor", 1, "fewer than 2 units in a stratum"),
        cf.Exclusion("A", "tumor", 6, "no other group left in the stratum"),
    )
    others = without(x, by, by["label"] == "tumor")
    options = {"given": "label", "units": "patient"}
    fusion = ask(lambda: summary.cfd("site", level=0.95, **options))
    assert fusion.excluded == expected
    assert "B in tumor (1): fewer than 2 units in a stratum; A in tumor (6): no other group left" in repr(fusion)
    assert_equal(fusion, others.cfd("site", level=0.95, **options))
    assert fusion.overlap == 1  # tumor, where nothing can be compared, does not count
    tested = ask(lambda: summary.test("site", **options))
    assert tested.excluded == expected
    assert tested.distance == pytest.approx(fusion.distance)
    assert tested.pvalue == others.test("site", **options).pvalue
    rows = ask(lambda: cf.cfd(x, labels=by["site"], given=by["label"], units=by["patient"], level=0.95))
    assert rows.excluded == expected
    assert_equal(rows, fusion)


def test_min_units_sets_the_bar():
    x, by = blocks([("B", "tumor")])
    summary = cf.summarize(x, by=by)
    assert summary.cfd("site", units="patient", min_units=6).excluded == ()
    with pytest.raises(cf.InputError, match=r"fewer than two groups remain .* A \(6\), B \(6\): fewer than 7 units"):
        summary.cfd("site", units="patient", min_units=7)
    for bad in (1, 0, 2.5, True, "2"):
        with pytest.raises(cf.InputError, match="min_units"):
            summary.cfd("site", units="patient", min_units=bad)
        with pytest.raises(cf.InputError, match="min_units"):
            cf.cfd(x, labels=by["site"], units=by["patient"], min_units=bad)
    found = ask(lambda: summary.pairwise("label", given="site", units="patient", level=0.9, min_units=2))
    assert [(entry.group, entry.stratum) for entry in found.excluded] == [("tumor", "B"), ("healthy", "B")]
    replicates = ask(lambda: summary.bootstrap("site", given="label", units="patient", draws=9))
    assert np.isfinite(replicates).all()


def test_fewer_than_two_remaining_groups_are_refused():
    x, by = blocks([("B", "tumor"), ("B", "healthy")])
    summary = cf.summarize(x, by=by)
    options = {"given": "label", "units": "patient"}
    for question in (
        lambda: summary.cfd("site", level=0.95, **options),
        lambda: summary.cfd("site", **options),
        lambda: summary.pairwise("site", level=0.95, **options),
        lambda: summary.test("site", **options),
        lambda: summary.bootstrap("site", **options),
    ):
        with pytest.raises(cf.InputError, match=r"fewer than two groups remain .* B in healthy \(1\), B in tumor"):
            question()


def test_a_test_may_keep_groups_of_single_units():
    x, by = blocks([("B", "tumor")])
    summary = cf.summarize(x, by=by)
    found = summary.test("site", given="label", units="patient", min_units=1)
    assert found.excluded == ()
    assert found.distance == pytest.approx(summary.cfd("site", given="label").distance)
    keys = {"units": by["patient"], "given": by["label"]}
    assert cf.permutation_test(x, by["site"], min_units=1, **keys).pvalue == found.pvalue


def test_a_group_of_few_rows_leaves_the_others_their_interval():
    rng = np.random.default_rng(9)
    labels = np.repeat(["a", "b", "rare"], [40, 30, 2])
    x = rng.normal(size=(72, 5)) + (labels == "b")[:, None]
    found = ask(lambda: cf.cfd(x, labels=labels, level=0.95))
    assert found.excluded == (cf.Exclusion("rare", None, 2, "fewer than 3 rows"),)
    assert_equal(found, cf.cfd(x[:70], labels=labels[:70], level=0.95))
    assert cf.cfd(x, labels=labels).excluded == ()  # no error is asked for
    labels[-1] = "odd"
    spread = ask(lambda: cf.dispersion_test(x, labels, permutations=99))
    assert [entry.group for entry in spread.excluded] == ["odd", "rare"]
    assert spread.pvalue == cf.dispersion_test(x[:70], labels[:70], permutations=99).pvalue


def test_corrections_are_compared_without_the_group_of_one_unit():
    x, by = packages()
    versions = {"raw": cf.summarize(x, by=by), "half": cf.summarize(x / 2, by=by)}
    found = ask(lambda: cf.compare_corrections(versions, between="package", units="file"))
    assert [entry.group for entry in found.excluded] == [SINGLE]
    assert found.lower is not None
    assert "excluded: p22 (1)" in repr(found)


# ---- on the command line


@pytest.fixture(scope="module")
def summary_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("exclusion") / "summary.parquet"
    x, by = packages()
    cf.summarize(x, by=by).write(path)
    return path


def test_commands_name_what_they_leave_out(summary_file):
    asked = [summary_file, "--between", "package", "--units", "file"]
    commands = {
        "test": ["test", *asked, "--permutations", 19],
        "matrix": ["matrix", *asked, "--level", 0.95, "--permutations", 19],
        "corrections": ["corrections", f"raw={summary_file}", f"same={summary_file}", *asked[1:]],
    }
    for name, command in commands.items():
        said = run(*command)
        assert "excluded: p22 (1): fewer than 2 units" in said.stdout, name
        assert said.stderr.count("left out: p22 (1)") == 1, name
        found = json.loads(run(*command, "--json").stdout)
        excluded = found["batch"][0]["excluded"] if name == "corrections" else found["excluded"]
        assert excluded == [{"group": SINGLE, "stratum": None, "units": 1, "reason": "fewer than 2 units"}], name
    tested = json.loads(run(*commands["test"], "--json").stdout)
    assert tested["interval"] is not None
    assert 0 < tested["pvalue"] <= 1


def test_min_units_is_an_option_of_commands(summary_file):
    asked = [summary_file, "--between", "package", "--units", "file"]
    for command in ("test", "matrix", "report", "drift", "corrections"):
        assert "--min-units" in run(command, "--help").stdout, command
    refused = run("test", *asked, "--min-units", 4, code=2)
    assert "fewer than two groups remain after leaving out p00 (3), " in refused.stderr
    assert (
        "--min-units goes with --units"
        in run("matrix", summary_file, "--between", "package", "--min-units", 3, code=2).stderr
    )


def test_pairs_of_rows_leave_small_groups_out(tmp_path):
    rng = np.random.default_rng(10)
    group = np.repeat(["a", "b", "rare"], [30, 30, 2])
    x = rng.normal(size=(62, 3)) + (group == "b")[:, None]
    cf.summarize(x, by={"g": group})  # the rows themselves are read below
    np.savez(tmp_path / "rows.npz", x=x, g=group)
    found = json.loads(
        run("matrix", tmp_path / "rows.npz", "--between", "g", "--level", 0.95, "--permutations", 19, "--json").stdout
    )
    assert [entry["group"] for entry in found["excluded"]] == ["rare"]
    assert found["distance"][0][2] is None
    assert found["lower"][0][1] is not None
    assert found["pvalue"][0][1] is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = cf.cfd(x[:60], labels=group[:60], level=0.95)
    assert found["lower"][0][1] == pytest.approx(expected.interval[0])


# ---- on the page


def test_the_page_is_about_the_remaining_groups_and_names_the_others():
    x, by = packages()
    options = {"between": "package", "units": "file", "permutations": 99}
    report = cf.Report(cf.summarize(x, by=by), **options)
    found = report.to_dict()
    assert found["excluded"] == [{"group": SINGLE, "stratum": None, "units": 1, "reason": "fewer than 2 units"}]
    assert found["missing"] == {}
    assert found["test"] is not None
    assert found["distances"]["plain"]["interval"] is not None
    assert "Left out (fewer than 2 units): p22 (1)." in repr(report)
    assert "between the 22 packages" in repr(report)
    assert any(entry["kind"] == "excluded" for entry in found["warnings"])
    assert "are left out" in report.to_html()
    others = cf.Report(without(x, by, by["package"] == SINGLE), **options).to_dict()
    for name in ("distances", "pairs", "test", "features", "units", "levels", "groups"):
        assert found[name] == others[name], name
    assert cf.Report(x, by=by, **options).to_dict()["distances"].keys() == found["distances"].keys()
    assert [entry["group"] for entry in cf.Report(x, by=by, **options).to_dict()["excluded"]] == [SINGLE]


def test_the_page_names_groups_that_are_left_out_in_a_stratum():
    x, by = blocks([("B", "tumor")])
    summary = cf.summarize(x, by=by)
    report = cf.Report(summary, between="site", given="label", units="patient", permutations=99)
    found = report.to_dict()
    assert [(entry["group"], entry["stratum"]) for entry in found["excluded"]] == [("B", "tumor"), ("A", "tumor")]
    adjusted = found["distances"]["adjusted"]
    expected = ask(lambda: summary.cfd("site", given="label", units="patient", level=0.95))
    assert adjusted["distance"] == pytest.approx(expected.distance)
    assert adjusted["interval"] == pytest.approx(expected.interval)
    tested = ask(lambda: summary.test("site", given="label", units="patient", permutations=99))
    assert found["test"]["pvalue"] == tested.pvalue
    assert "Left out (fewer than 2 units in a stratum): B in tumor (1)." in repr(report)


def test_the_page_by_rows_leaves_a_group_of_two_rows_out():
    rng = np.random.default_rng(11)
    labels = np.repeat(["a", "b", "rare"], [40, 30, 2])
    found = cf.Report(rng.normal(size=(72, 5)), by={"g": labels}, between="g", permutations=19).to_dict()
    assert [(entry["group"], entry["reason"]) for entry in found["excluded"]] == [("rare", "fewer than 3 rows")]
    assert found["distances"]["plain"]["interval"] is not None
    assert found["about"]["rows"] == 70
