"""Corrections that look good by construction: where they stand, and what is said about them."""

# mypy: disable-error-code="operator,arg-type"

import numpy as np
import pytest
from scipy import stats

import crossfusion as cf
from crossfusion.fusion.cautions import EQUAL_MEANS_LEVEL, bound_lower_tail
from tests.helpers.command_line import run, run_json

ASKED = {"between": "batch", "given": "label"}
BY_UNITS = pytest.mark.parametrize("units", ["donor", None])


def make_cells(*, batches=2, seed=0, shift=0.5):
    """Cells of three types from donors in several batches, and their factors."""
    draw = np.random.default_rng(seed)
    donor = np.repeat(np.arange(6 * batches), 60)
    batch, label = donor // 6, draw.integers(3, size=len(donor))
    x = draw.normal(size=(len(donor), 16)) + draw.normal(size=(3, 16))[label]
    x += shift * draw.normal(size=(batches, 16))[batch] + 0.2 * draw.normal(size=(6 * batches, 16))[donor]
    return x, {"batch": batch, "label": np.array(["B", "M", "T"])[label], "donor": donor}


def center(x, groups, *, scale=False):
    """Subtract the mean of each group, and if asked divide by its standard deviation."""
    found = np.empty_like(x)
    for group in np.unique(groups):
        own = groups == group
        found[own] = (x[own] - x[own].mean(axis=0)) / (x[own].std(axis=0) if scale else 1.0)
    return found


def halve(x, by):
    """Remove half of the shift of each batch."""
    return (x + center(x, by["batch"])) / 2


def erase(x, by, how, seed=0):
    """Remove what sets label T apart, in one of three ways."""
    draw, found = np.random.default_rng(seed), x.copy()
    for batch in np.unique(by["batch"]):
        inside = by["batch"] == batch
        own, other = inside & (by["label"] == "T"), x[inside & (by["label"] == "B")]
        if how == "constant":
            found[own] = 0
        elif how == "merged":
            found[own] = other[draw.integers(len(other), size=own.sum())]
        else:
            found[own] = x[inside & (by["label"] != "T")].mean(axis=0) + draw.normal(size=(own.sum(), x.shape[1]))
    return found


def compare(versions, by, units):
    summaries = {name: cf.summarize(x, by=by) for name, x in versions.items()}
    return cf.compare_corrections(summaries, **ASKED, units=units)


@BY_UNITS
@pytest.mark.parametrize("batches", [2, 4])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("scale", [False, True])
def test_centered_batches_are_named(units, batches, kind, scale):
    x, by = make_cells(batches=batches)
    found = compare(
        {"raw": x, "half": halve(x, by), "own": center(x, by["batch"], scale=scale).astype(kind)}, by, units
    )
    assert found.batch[2].unbiased < found.batch[1].unbiased < found.batch[0].unbiased
    within = "unadjusted" not in found.standing[2].caution
    assert found.standing[2].text == ("not judged (equal means)" if within else "front (equal means)")
    assert found.standing[1].text == ("front" if within or scale else "worse than own")  # scaling costs biology
    said = next(remark for remark in found.remarks() if remark.startswith("caution, own: "))
    assert "the group means agree far more closely than sampling error allows, as they do by construction" in said
    assert [entry.caution for entry in found.standing[:2]] == [None, None]


@BY_UNITS
def test_batches_centered_within_labels_are_not_judged_but_named(units):
    x, by = make_cells()
    cell = np.char.add(by["batch"].astype(str), by["label"])
    means = {label: x[by["label"] == label].mean(axis=0) for label in "BMT"}
    own = center(x, cell) + np.array([means[label] for label in by["label"]])
    found = compare({"raw": x, "half": halve(x, by), "own": own}, by, units)
    assert found.batch[2].unbiased < found.batch[1].unbiased
    assert found.front == ("half",)
    assert found.standing[2].text == "not judged (equal means)"
    assert "by construction after centering each group" in found.standing[2].caution


@BY_UNITS
def test_centering_does_not_win_by_the_sampling_error_that_it_removes(units):
    x, by = make_cells(shift=0.0)
    found = compare({"raw": x, "centered": center(x, by["batch"]), "again": center(x, by["batch"])}, by, units)
    assert found.batch[1].unbiased < found.batch[0].unbiased
    assert found.front == ("raw", "centered", "again")
    assert found.standing[0].tied_with == ("centered", "again")
    assert found.standing[1].identical_to == ("again",)


@BY_UNITS
def test_the_same_rows_in_less_precision_are_tied(units):
    x, by = make_cells()
    found = compare({"raw": x, "half": halve(x, by), "again": halve(x, by).astype(np.float32)}, by, units)
    assert found.difference[1] != found.difference[2]
    assert found.front == ("half", "again")
    assert found.standing[1].tied_with == ("again",)


def test_a_distance_alone_says_that_means_are_equal_by_construction():
    x, by = make_cells()
    own = center(x, by["batch"], scale=True)
    assert "by construction" in cf.cfd(own, labels=by["batch"]).caution
    assert "by construction" in cf.cfd(own, labels=by["batch"], units=by["donor"], level=0.95).caution
    assert "by construction" in cf.cfd(np.concatenate([x, x]), labels=np.repeat([0, 1], len(x))).caution
    assert cf.cfd(x, labels=by["batch"]).caution is None


def test_tests_pairs_and_the_headline_say_so_too():
    x, by = make_cells()
    own = center(x, by["batch"])
    summary = cf.summarize(own, by=by)
    for result in (
        cf.permutation_test(own, by["batch"]),
        cf.permutation_test(own, by["batch"], units=by["donor"]),
        summary.test("batch", units="donor"),
        summary.pairwise("batch"),
        summary.pairwise("batch", units="donor", level=0.95),
    ):
        assert "by construction" in result.caution
    assert "Caution: the group means agree far more closely" in repr(cf.Report(summary, between="batch"))
    assert "caution" not in repr(cf.Report(cf.summarize(x, by=by), between="batch")).lower()
    assert cf.permutation_test(x, by["batch"]).caution is None
    assert cf.summarize(x, by=by).pairwise("batch").caution is None


@pytest.mark.parametrize("command", [["matrix"], ["attribution"], ["matrix", "--units", "donor", "--level", "0.95"]])
def test_commands_say_so_without_given(command, tmp_path):
    x, by = make_cells()
    cf.summarize(center(x, by["batch"]), by=by).write(tmp_path / "s.parquet")
    said = run(command[0], tmp_path / "s.parquet", "--between", "batch", *command[1:]).stdout
    assert said.count("by construction after centering") == 1


def test_means_that_are_equal_by_chance_are_not_suspected():
    for seed in range(300):
        draw = np.random.default_rng(seed)
        x, groups, units = draw.normal(size=(40, 1)), np.arange(40) % 2, np.arange(40) // 2 % 10
        assert cf.cfd(x, labels=groups).caution is None
        table = cf.summarize(x, by={"group": groups, "unit": 10 * groups + units})
        assert "by construction" not in (table.cfd("group", units="unit").caution or "")


def test_the_bound_is_above_the_probability():
    for freedom in (1.0, 3.0, 40.0):
        for error_freedom in (4.0, 30.0, np.inf):
            for ratio in (1e-9, 1e-3, 0.1, 0.5, 0.9):
                exact = (
                    stats.chi2.cdf(freedom * ratio, freedom)
                    if np.isinf(error_freedom)
                    else stats.f.cdf(ratio, freedom, error_freedom)
                )
                assert exact <= bound_lower_tail(ratio, freedom, error_freedom) <= 1
    assert bound_lower_tail(0.2, 40.0, np.inf) < EQUAL_MEANS_LEVEL
    assert bound_lower_tail(0.0, 1.0, 5.0) == 0


@BY_UNITS
@pytest.mark.parametrize("shift", [0.5, 0.0])
def test_noise_is_never_on_the_front(units, shift):
    x, by = make_cells(shift=shift)
    noise = np.random.default_rng(1).normal(size=x.shape)
    found = compare({"raw": x, "half": halve(x, by), "noise": noise}, by, units)
    assert "noise" not in found.front
    assert found.standing[2].text == "biology lost"
    assert repr(found).splitlines()[4].startswith("noise")
    assert "noise lost biology: less than half of the distance in raw is left between B and M; B and T" in repr(found)
    assert found.pairs.lost.tolist() == [[False] * 3, [False] * 3, [True] * 3]


@BY_UNITS
@pytest.mark.parametrize("batches", [2, 4])
@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("constant", "own lost biology: the rows of T barely vary anymore"),
        ("merged", "own lost biology: less than half of the distance in raw is left between B and T"),
        ("blurred", "T and all other labels"),
    ],
)
def test_an_erased_label_is_named_even_if_it_raises_the_distance_between_labels(units, batches, how, said):
    x, by = make_cells(batches=batches)
    found = compare({"raw": x, "half": halve(x, by), "own": erase(halve(x, by), by, how)}, by, units)
    assert found.front == ("half",)
    assert found.standing[2].text == "biology lost"
    assert said in repr(found)
    if how == "constant":
        assert found.biology[2].unbiased > found.biology[0].unbiased


def test_both_axes_are_there_for_each_label_and_pair():
    x, by = make_cells()
    versions = {"raw": x, "merged": erase(x, by, "merged")}
    found = compare(versions, by, "donor")
    labels, pairs = found.labels_frame(), found.pairs_frame()
    assert list(labels["label"]) == ["B", "M", "T"] * 2
    assert list(labels["kept"][:3]) == [1, 1, 1]
    assert labels["kept"][5] == pytest.approx(labels["biology"][5] / labels["biology"][2])
    for k, row in labels.iterrows():
        summary = cf.summarize(versions[row["correction"]], by=by)
        within = summary.select(label=[row["label"]]).cfd("batch", units="donor", level=0.95)
        assert row["batch"] == pytest.approx(within.unbiased)
        assert (row["batch_lower"], row["batch_upper"]) == pytest.approx(within.interval)
        rest = summary.one_vs_rest("label", given="batch")[row["label"]]
        assert row["biology"] == pytest.approx(rest.unbiased), k
    assert list(zip(pairs["label_a"], pairs["label_b"], strict=True)) == [("B", "M"), ("B", "T"), ("M", "T")] * 2
    summary = cf.summarize(versions["merged"], by=by)
    apart = summary.pairwise("label", given="batch", weights="pooled").unbiased
    np.testing.assert_allclose(pairs["biology"][3:], [apart[0, 1], apart[0, 2], apart[1, 2]])
    assert list(pairs["lost"]) == [False, False, False, False, True, False]


def test_many_labels_are_not_compared_pair_by_pair_and_that_is_said(monkeypatch):
    monkeypatch.setattr("crossfusion.summary.label_effects.MAX_PAIRED_LABELS", 2)
    x, by = make_cells()
    found = compare({"raw": x, "merged": erase(x, by, "blurred")}, by, None)
    assert found.pairs is None
    assert found.standing[1].text == "biology lost"
    assert "which are not compared pair by pair" in repr(found)


def test_the_command_and_the_page_say_the_same(tmp_path):
    x, by = make_cells()
    versions = {
        "raw": x,
        "centered": center(x, by["batch"]),
        "noise": np.random.default_rng(1).normal(size=x.shape),
        "again": x,
    }
    for name, rows in versions.items():
        cf.summarize(rows, by=by).write(tmp_path / f"{name}.parquet")
    files = [f"{name}={tmp_path / name}.parquet" for name in versions]
    asked = ("--between", "batch", "--given", "label", "--units", "donor")
    found = compare(versions, by, "donor")
    standing = run_json("corrections", *files, *asked)["standing"]
    assert [entry["front"] for entry in standing] == [False, True, False, False]
    text = run("corrections", *files, *asked).stdout
    for remark in found.remarks():
        assert remark in text
    every = {name: np.tile(values, len(versions)) for name, values in by.items()}
    every["version"] = np.repeat(list(versions), len(x))
    rows = np.concatenate(list(versions.values()))
    page = cf.Report(rows, by=every, between="batch", given="label", units="donor", method="version", reference="raw")
    shown = page.to_dict()["methods"]
    assert dict(zip(shown["names"], shown["standing"], strict=True)) == {
        name: entry.text for name, entry in zip(found.names, found.standing, strict=True)
    }
    assert shown["front"] == shown["equal_means"] == ["centered"]
    assert {remark for remark in found.remarks() if "lost" in remark or "caution" in remark} < set(shown["remarks"])
    assert "centered is on the Pareto front of fused groups and kept labels" in repr(page)
    assert "By construction, groups have equal means in centered." in repr(page)
