"""Corrections compared: differences, their intervals, where they stand, and what cannot be compared."""

# mypy: disable-error-code="index,arg-type,misc,operator,union-attr"

import json

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers.command_line import fails, run, run_json


def corrections(seed=0, units=24, noise=0.0, keep=(1.0, 0.4, 0.38)):
    """Summaries of the same rows with less and less of the shift between sites left in them."""
    draw = np.random.default_rng(seed)
    patient = np.repeat(np.arange(units), 8)
    by = {"site": patient // (units // 2), "label": np.tile([0, 1], 4 * units), "patient": patient}
    x = draw.normal(size=(len(patient), 6)) + 0.5 * draw.normal(size=(units, 6))[patient]
    x[:, 1] += by["label"]
    found = {}
    for name, left in zip(("raw", "half", "most"), keep, strict=True):
        shifted = x + noise * draw.normal(size=x.shape)
        shifted[:, 0] += 2 * left * by["site"]
        found[name] = cf.summarize(shifted, by=by)
    return found


ASKED = {"between": "site", "given": "label", "units": "patient"}


def test_differences_and_the_pair_of_distances():
    methods = corrections()
    found = cf.compare_corrections(methods, **ASKED)
    for k, summary in enumerate(methods.values()):
        batch = summary.cfd("site", given="label", units="patient", level=0.95)
        biology = summary.cfd("label", given="site", units="patient", level=0.95)
        assert found.batch[k] == batch
        assert found.biology[k] == biology
        assert found.difference[k] == batch.unbiased - found.batch[0].unbiased
    assert found.names == ("raw", "half", "most")
    assert found.reference == "raw"
    assert found.lower[0] == found.upper[0] == 0
    assert (found.upper[1:] < 0).all()
    assert found.front == ("half", "most")
    assert found.standing[0].worse_than == ("most", "half")
    assert found.standing[1].tied_with == ("most",)


def test_a_difference_is_known_better_than_the_distances():
    found = cf.compare_corrections(corrections(noise=0.1), **ASKED, reference="half")
    width = found.upper[2] - found.lower[2]
    assert found.reference == "half"
    assert width < 0.5 * (found.batch[2].interval[1] - found.batch[2].interval[0])


def test_equals_are_tied_and_on_the_front_together():
    found = cf.compare_corrections(corrections(noise=0.5, keep=(0.5, 0.5, 0.5)), **ASKED)
    assert (found.lower <= 0).all()
    assert (found.upper >= 0).all()
    assert found.front == found.names
    assert [entry.tied_with for entry in found.standing] == [("half", "most"), ("raw", "most"), ("raw", "half")]
    assert "tied, as the intervals of their differences include 0: raw and half; raw and most" in repr(found)


@pytest.mark.parametrize("keep", [(1.0, 0.5, 0.0), (0.0, 0.0, 0.0)])
def test_intervals_of_differences_cover(keep):
    inside = 0
    truth = np.log1p(0.25 * (2 * keep[1]) ** 2 / (7.5 + 6 * 0.04)) - np.log1p(
        0.25 * (2 * keep[0]) ** 2 / (7.5 + 6 * 0.04)
    )
    for seed in range(200):
        found = cf.compare_corrections(
            corrections(seed, noise=0.2, keep=keep), between="site", given="label", units="patient"
        )
        inside += found.lower[1] <= truth <= found.upper[1]
    assert inside / 200 >= 0.9


@pytest.mark.parametrize("units", ["patient", None])
def test_identical_inputs_stand_together_and_the_text_says_so(units):
    raw = corrections()["raw"]
    found = cf.compare_corrections({"a": raw, "b": raw}, between="site", given="label", units=units)
    assert found.front == ("a", "b")
    assert found.standing[0].identical_to == ("b",)
    assert found.standing[0].tied_with == ("b",)
    assert "identical rows: a and b" in repr(found)
    three = cf.compare_corrections(
        {"a": raw, "b": raw, "c": corrections()["most"]}, between="site", given="label", units=units
    )
    assert three.front == ("c",)
    assert three.standing[0].text == three.standing[1].text == "worse than c"


@pytest.mark.filterwarnings("error")
def test_an_infinite_distance_is_last():
    by = {"site": np.arange(40) % 2}
    x = np.random.default_rng(0).normal(size=(40, 2))
    apart, near = cf.summarize(np.repeat(by["site"][:, None], 2, axis=1), by=by), cf.summarize(x, by=by)
    found = cf.compare_corrections({"apart": apart, "near": near, "again": apart}, between="site")
    assert [line.split()[0] for line in repr(found).splitlines()[2:5]] == ["near", "apart", "again"]
    assert found.standing[0].tied_with == ("again",)


def test_a_difference_is_longer_on_the_side_where_the_distances_are():
    found = cf.compare_corrections(corrections(), **ASKED)
    low, high = found.batch[0].interval
    assert high - found.batch[0].unbiased > found.batch[0].unbiased - low
    assert found.upper[1] - found.difference[1] < found.difference[1] - found.lower[1]


def test_without_units_there_are_no_intervals():
    found = cf.compare_corrections(corrections(), between="site")
    assert found.lower is None
    assert found.biology is None
    standing = ["standing", "front", "tied_with", "lost", "caution"]
    assert list(found.to_frame().columns) == ["method", *standing, "batch", "difference"]
    assert "reference" in repr(found)


def test_without_labels_nothing_is_ranked():
    found = cf.compare_corrections(corrections(), between="site", units="patient")
    assert found.front is None
    assert [entry.front for entry in found.standing] == [None] * 3
    assert "not ranked: removing everything fuses groups too" in repr(found)
    assert found.labels == ()
    assert len(found.pairs_frame()) == 0


def test_results_go_to_tables_and_json():
    found = cf.compare_corrections(corrections(), **ASKED)
    frame = found.to_frame()
    assert list(frame["method"]) == ["raw", "half", "most"]
    assert {"batch_lower", "biology_upper", "lower", "kept_upper", "front"} <= set(frame.columns)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["names"] == ["raw", "half", "most"]
    lines = repr(found).splitlines()
    assert lines[2].startswith("most")
    assert lines[4].startswith("raw")
    assert list(found.labels_frame()["kept"][:2]) == [1.0, 1.0]
    assert len(found.pairs_frame()) == 3


def test_other_rows_in_the_same_groups_are_warned_of():
    x, by = np.random.default_rng(0).normal(size=(40, 2)), {"site": np.arange(40) // 20, "patient": np.arange(40) // 2}
    half = cf.summarize(x[::2], by={name: values[::2] for name, values in by.items()})
    with pytest.warns(cf.CrossfusionWarning, match="'raw' and 'half' have different numbers of rows"):
        cf.compare_corrections({"raw": cf.summarize(x, by=by), "half": half}, between="site", units="patient")


def test_what_cannot_be_compared_is_refused(refuses):
    methods = corrections()
    with refuses("at least two"):
        cf.compare_corrections({"raw": methods["raw"]}, **ASKED)
    with refuses("must map names to summaries"):
        cf.compare_corrections([methods["raw"]], **ASKED)
    with refuses("no correction 'row': did you mean 'raw'"):
        cf.compare_corrections(methods, **ASKED, reference="row")
    with refuses("correction 'raw' has no factor 'sites'"):
        cf.compare_corrections(methods, between="sites")
    with refuses("level=None"):
        cf.compare_corrections(methods, **ASKED, level=None)
    with refuses("correction 'half' has no factor 'patient'"):
        cf.compare_corrections(methods | {"half": methods["half"].rollup(["site", "label"])}, **ASKED)
    with refuses("level=3"):
        cf.compare_corrections(methods, **ASKED, level=3)
    fewer = methods["half"].select(patient=[p for p in range(24) if p != 5])
    with refuses("'raw' and 'half' have different units or groups"):
        cf.compare_corrections(methods | {"half": fewer}, **ASKED)


def test_the_command(tmp_path):
    methods = corrections()
    for name, summary in methods.items():
        summary.write(tmp_path / f"{name}.parquet")
    files = [f"{name}={tmp_path / name}.parquet" for name in methods]
    asked = ("--between", "site", "--given", "label", "--units", "patient")
    found = run_json("corrections", *files, *asked)
    assert found == json.loads(json.dumps(cf.compare_corrections(methods, **ASKED).to_dict()))
    text = run("corrections", *files, *asked).stdout
    assert "standing" in text
    assert "worse than most" in text
    assert run("methods", *files, *asked).stdout == text  # the command's name in 0.1
    assert "methods" not in run("--help").stdout
    assert "NAME=FILE" in fails("corrections", files[0], "half.parquet", *asked)
    assert "twice" in fails("corrections", files[0], files[0], *asked)
    assert "at least two" in fails("corrections", files[0], *asked)


def test_the_names_of_the_first_release_still_work_and_name_the_new_ones():
    with pytest.warns(DeprecationWarning, match="compare_methods is now called compare_corrections"):
        assert cf.compare_methods is cf.compare_corrections
    with pytest.warns(DeprecationWarning, match="Methods is now called CorrectionComparison"):
        assert cf.Methods is cf.CorrectionComparison
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = cf.no_such_name  # type: ignore[attr-defined]
