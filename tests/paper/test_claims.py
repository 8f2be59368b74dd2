"""The claims ledger: verdicts follow from the evidence, and turn when the evidence does."""

import json

import numpy as np
import pyarrow as pa
import pytest

import crossfusion as cf
from paper import claims, printed, runtime, synthetic
from paper.claims import CONDITIONS, FAILS, HOLDS, UNDECIDED, Evidence, Trials, copies, files, ledger
from paper.claims.curve import Curve, estimate
from paper.claims.model import decide, decide_across, decide_jointly
from paper.claims.outcomes import above, all_of, any_of, opposite, share, small, steady
from tests.helpers.claims_evidence import CHOICES, FARAWAY, Response, evidence, parts, study, timings


@pytest.fixture(scope="module")
def fair() -> dict[str, claims.Claim]:
    return {claim.id: claim for claim in claims.judge(evidence())}


def verdict(name: str, found: Evidence) -> claims.Claim:
    return next(check for check in claims.CHECKS if check.id == name)(found)


def test_every_claim_is_complete():
    assert len({check.id for check in claims.CHECKS}) == len(claims.CHECKS) >= 40
    assert all(check.place and check.claim.endswith(".") and check.how.endswith((".", ".)")) for check in claims.CHECKS)


def test_figures_and_verdicts_are_there(fair):
    assert all(claim.figure and claim.verdict in claims.VERDICTS for claim in fair.values())
    assert all(claim.verdict != UNDECIDED for claim in fair.values())
    assert all(bool(claim.conditions) == (claim.verdict == CONDITIONS) for claim in fair.values())
    assert all("nan" not in claim.figure + claim.mend for claim in fair.values())
    assert [*map(len, claims.rows(list(fair.values())))] == [len(claims.HEADER)] * len(fair)


TURNS: dict[str, dict[str, Response]] = {
    "deformation-comparable": dict.fromkeys(
        ("displacement__wasserstein", "displacement__sinkhorn"), lambda x: 1.001 * x
    ),
    "homogeneous": {f"scaling__{name}": lambda x: 5 for name in FARAWAY},
    "mmd-scale": {"scaling__mmd": lambda x: x},
    "dispersion-flat": {f"dispersion__{name}": lambda x: 10 + x**2 for name in FARAWAY},
    "displacement-monotone": {f"displacement__{name}": lambda x: abs(x - 2) + 1 for name in (*FARAWAY, "cfd", "mmd")},
    "displacement-linear": {f"displacement__{name}": lambda x: np.exp(2 * x) for name in FARAWAY},
    "displacement-overlap": {"displacement__hausdorff": lambda x: 4 + 3 * x},
    "displacement-mmd-weaker": {"displacement__mmd": lambda x: x},
    "displacement-steepest": {"displacement__cfd": lambda x: 1 + x / 1000},
    "dispersion-cfd-falls": {"dispersion__cfd": lambda x: 1 / x**0.1},
    "dispersion-mmd-falls": {"dispersion__mmd": lambda x: x},
    "dispersion-steepest": {"dispersion__cfd": lambda x: 1 / x**0.001}
    | {f"dispersion__{name}": lambda x: x for name in FARAWAY},
    "scaling-stable": {"scaling__cfd": lambda x: x},
    "topology-cfd": {"topology__cfd": lambda x: x / 100},
    "topology-others": {f"topology__{name}": lambda x: 4 + x / 1000 for name in (*FARAWAY, "mmd")},
    "outliers-others": {f"outliers__{name}": lambda x: 5 + x / 100 for name in FARAWAY},
    "outliers-cfd": {"outliers__cfd": lambda x: 0.1 / (1 + x / 5)},
    "outliers-mmd": {"outliers__mmd": lambda x: 0.1 / (1 + x / 5)},
    "same-source-zero": {"topology__cfd": lambda x: 0.1},
    "same-source-others": {f"topology__{name}": lambda x: 0.01 for name in (*FARAWAY, "mmd")},
    "sample-size": {"displacement__cfd_unbiased": lambda x: x**2 / 1000},
    "imbalance": {"imbalance__cfd": lambda x: x},
}


@pytest.mark.parametrize("name", TURNS)
def test_verdicts_turn_with_the_study(name, fair):
    assert fair[name].verdict == HOLDS
    turned = verdict(name, evidence(**TURNS[name]))
    assert turned.verdict == FAILS
    assert turned.figure != fair[name].figure


def test_a_claim_of_some_measures_names_them():
    found = verdict("outliers-others", evidence(outliers__chamfer=lambda x: 5))
    assert found.verdict == CONDITIONS
    assert "Hausdorff in 4 of 4" in found.conditions
    assert "Chamfer in 0 of 4" in found.conditions


MOVED = Trials(copies.run_copies(CHOICES, rows=150, trials=2), copies.EXPERIMENTS)
TWO_READINGS = (
    "dispersion-flat",
    "displacement-linear",
    "displacement-overlap",
    "displacement-mmd-weaker",
    "outliers-others",
)


@pytest.mark.parametrize("name", TWO_READINGS)
def test_what_fails_for_two_samples_may_hold_for_moved_copies(name):
    found = verdict(name, evidence(copied=MOVED, **TURNS[name]))
    assert found.verdict == FAILS
    assert found.mend.startswith("would hold if B were A's own sample, moved: ")
    assert f"{copies.ROWS} rows, {copies.TRIALS} trials" in found.check


def test_what_holds_in_part_names_its_part_and_then_moved_copies():
    found = verdict("outliers-others", evidence(copied=MOVED, outliers__chamfer=lambda x: 5))
    assert found.verdict == CONDITIONS
    assert "Chamfer in 0 of 4" in found.conditions
    assert "moved" not in found.conditions
    assert found.mend.startswith("would hold if B were A's own sample, moved: ")
    neither = verdict("outliers-others", evidence(**TURNS["outliers-others"]))
    assert neither.mend.startswith("would not hold either if B were A's own sample, moved: ")


def test_moved_copies_are_at_the_shift():
    table = copies.run_copies(CHOICES, rows=60, trials=2)
    assert {row["trial"] for row in table.to_pylist()} == {0, 1}
    assert {row["size"] for row in table.to_pylist()} == {60}
    rows = [row for row in table.to_pylist() if row["experiment"] == "displacement"]
    assert [row["wasserstein"] for row in rows] == pytest.approx([row["level"] for row in rows])
    assert [row["hausdorff"] for row in rows] == pytest.approx([row["level"] for row in rows])


def test_variants_mend_only_what_they_mend():
    falling: Response = lambda x: 0.1 / (1 + x / 5)  # noqa: E731
    good = verdict("outliers-cfd", evidence(outliers__cfd=falling))
    assert "trimmed by 5% mends it in 4 of 4" in good.mend
    bad = verdict("outliers-cfd", evidence(outliers__cfd=falling, outliers__cfd_trimmed=falling))
    assert "stable in 0 of 4" in bad.mend
    uneven = verdict("imbalance", evidence(imbalance__cfd=lambda x: x, imbalance__cfd_balanced=lambda x: 1 / x))
    assert "balanced CFD stable in 0 of 4" in uneven.mend
    assert "balanced and unbiased CFD stable in 4 of 4 settings:" in uneven.mend
    noise = {"imbalance__cfd_balanced_unbiased": 0.05}
    unsure = verdict("imbalance", evidence(noise=noise, imbalance__cfd=lambda x: x))
    assert "balanced and unbiased CFD stable in 0 of 4 settings, undecided in 4:" in unsure.mend


def test_zero_is_not_overlap_where_others_see_a_difference():
    seen = evidence(covariance__gaussian_wasserstein=lambda x: 1 + x, covariance__cfd_unbiased=lambda x: 0)
    assert verdict("zero-is-overlap", seen).verdict == FAILS
    assert verdict("zero-is-overlap", evidence(covariance__cfd_unbiased=lambda x: 0)).verdict == HOLDS


def test_two_samples_of_one_source():
    """One criterion for CFD and the others: a share of the value at the largest displacement."""
    for measure, name in (("cfd", "same-source-zero"), ("mmd", "same-source-others")):
        near = {f"topology__{measure}": lambda x: 0.09, f"displacement__{measure}": lambda x: x / 4}
        found = verdict(name, evidence(**near))
        assert "9%" in found.figure
        assert (found.verdict == HOLDS) == (measure == "cfd")
    assert "CFD · N is 1.00 to 2.00" in verdict("same-source-zero", evidence()).figure


@pytest.mark.parametrize(("power", "expected"), [(1.0, HOLDS), (2.0, CONDITIONS), (3.0, FAILS)])
def test_what_adds_up(power, expected):
    assert verdict("wasserstein-adds-up", evidence(split=parts(power))).verdict == expected


@pytest.mark.parametrize(
    ("name", "powers", "expected"),
    [
        ("linear-time", {}, HOLDS),
        ("linear-time", {"cfd": 1.6}, CONDITIONS),
        ("cost-transport", {}, HOLDS),
        ("cost-transport", {"wasserstein": 2.3}, CONDITIONS),
        ("cost-transport", {"sinkhorn": 2.5}, FAILS),
        ("cost-pairs", {"mmd": 2.6}, FAILS),
        ("scales-best", {}, HOLDS),
        ("scales-best", {"hausdorff": 1.2}, CONDITIONS),
        ("mmd-costs-more", {}, HOLDS),
        ("mmd-costs-more", {"mmd": 1.1}, FAILS),
        ("linear-time", {"points": {"cfd": 2}}, UNDECIDED),
        ("linear-time", {"features": {"cfd": 2.0}}, CONDITIONS),
        ("cost-transport", {"points": {"sinkhorn": 2}}, CONDITIONS),
        ("cost-transport", {"points": {"sinkhorn": 2, "wasserstein": 0}}, UNDECIDED),
        ("cost-pairs", {"points": {"mmd": 2}}, CONDITIONS),
        ("cost-pairs", {"points": {"mmd": 2}, "chamfer": 2.6}, FAILS),
        ("cost-features", {}, HOLDS),
        ("cost-features", {"features": {"mmd": 1.6}}, FAILS),
        ("cost-features", {"features": {"mmd": 0.2}}, CONDITIONS),
        ("cost-features", {"points": {"wasserstein": 1}}, CONDITIONS),
        ("scales-best", {"points": {"mmd": 1, "sinkhorn": 0}}, CONDITIONS),
        ("mmd-costs-more", {"points": {"mmd": 0}}, UNDECIDED),
    ],
)
def test_verdicts_turn_with_the_timings(name, powers, expected):
    assert verdict(name, evidence(timed=timings(**powers))).verdict == expected


@pytest.mark.parametrize("name", ["cost-transport", "cost-pairs", "cost-features", "scales-best"])
def test_what_was_not_timed_is_named(name):
    missing = {"sinkhorn": 1, "mmd": 1}
    found = verdict(name, evidence(timed=timings(points=missing)))
    titles = [title for title in ("Sinkhorn", "MMD") if title in found.figure]
    assert titles
    assert f"undecided for {' and '.join(titles)}" in found.conditions


def test_times_that_are_not_numbers_decide_nothing():
    table = timings()
    seconds = pa.array(
        [
            None if m == "mmd" else s
            for m, s in zip(table["measure"].to_pylist(), table["seconds"].to_pylist(), strict=True)
        ],
        pa.float64(),
    )
    table = table.set_column(table.column_names.index("seconds"), "seconds", seconds)
    assert "undecided for MMD" in verdict("cost-pairs", evidence(timed=table)).conditions


def test_arithmetic_of_the_experiments(fair):
    found = fair["topology-dispersion"]
    assert "d=32: +50.0% (K = 1 to 2), +0.0% (K = 2 to 4), +0.0% (K = 4 to 8); d=128: +12.5%" in found.figure
    assert found.verdict == CONDITIONS
    assert found.conditions == "holds for K = 1 to 2 in 0 of 2, K = 2 to 4 in 2 of 2 and K = 4 to 8 in 2 of 2"
    assert "centroids −5%" in fair["outliers-preserve"].figure
    assert fair["outliers-preserve"].verdict == CONDITIONS


def test_printed_tables_recomputed():
    found = {name: printed.pearson(values, printed.CDDR) for name, values in printed.DISTANCES.items()}
    expected = {"CFD": 0.8827, "Wasserstein": 0.7992, "MMD": 0.8148, "Hausdorff": 0.8825, "Chamfer": 0.2259}
    assert found == pytest.approx(expected, abs=5e-5)
    other = printed.swap_macenko()
    assert printed.pearson(other["Hausdorff"], printed.CDDR) == pytest.approx(0.6977, abs=5e-5)
    assert printed.pearson(other["Chamfer"], printed.CDDR) == pytest.approx(0.6148, abs=5e-5)
    assert printed.spearman(printed.DISTANCES["CFD"], printed.CDDR) == pytest.approx(0.8)
    ratios = printed.ratios()
    gaps = [abs(printed.RDR[m][k] - ratios[m, c]) for m in printed.MEASURES for k, c in enumerate(printed.COLUMNS)]
    assert max(gaps) < 5e-4
    squares = [printed.ratios(2)["MMD", column] for column in printed.COLUMNS]
    assert (min(squares), max(squares)) == pytest.approx((0.0022, 0.0046), abs=5e-5)
    assert printed.exact_pvalue(printed.DISTANCES["CFD"], printed.CDDR) == pytest.approx(3 / 24)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rdr-near-zero", HOLDS),
        ("rdr-not-scale", FAILS),
        ("averages", HOLDS),
        ("correlation-highest", CONDITIONS),
        ("correlation-evidence", FAILS),
        ("degradation-monotone", CONDITIONS),
        ("ordering", FAILS),
    ],
)
def test_verdicts_of_the_printed_tables(name, expected, fair):
    assert fair[name].verdict == expected


def test_verdicts_turn_with_the_printed_tables(monkeypatch):
    monkeypatch.setattr(claims.histology, "F1", (0.3, 0.4, 0.5, 0.6))
    monkeypatch.setattr(claims.histology, "CDDR", (0.4, 0.3, 0.2, 0.1))
    assert verdict("degradation-monotone", evidence()).verdict == HOLDS
    assert verdict("ordering", evidence()).verdict == HOLDS
    assert verdict("correlation-evidence", evidence()).verdict == HOLDS


def test_propositions_hold_but_for_their_edges(fair):
    always = ("variance-decomposition", "zero-iff-means", "monotone-in-distance", "limits", "single-pass")
    assert {fair[name].verdict for name in (*always, "monotone-in-dispersion")} == {HOLDS}
    edges = ("score-bounds", "scale-invariant", "parameter-free")
    assert {fair[name].verdict for name in edges} == {CONDITIONS}
    assert fair["metric"].verdict == FAILS
    assert "CFD is 0 for 100 of 100 pairs of different clouds" in fair["metric"].figure
    assert fair["metric"].mend == "√CFD violates 0% of these triangles, of equal spread; with unequal spreads it can"
    assert "holds for groups of equal size" in fair["parameter-free"].conditions
    assert "not for groups of different size" in fair["parameter-free"].conditions
    assert fair["mmd-bandwidth"].verdict == HOLDS


def test_three_valued_logic():
    assert [all_of(found) for found in ([True, True], [True, None], [None, False])] == [True, None, False]
    assert [any_of(found) for found in ([False, False], [False, None], [None, True])] == [False, None, True]
    assert [opposite(found) for found in (True, False, None)] == [False, True, None]
    assert [above(value, 1, 5) for value in (7, 4, 5.5, np.nan)] == [True, False, None, None]
    assert above(5, 0, 5) is False
    assert [small(value, 0.05, 0.1) for value in (-0.05, 0.2, -0.1, np.nan)] == [True, False, None, None]
    assert [steady(*found) for found in ((0.15, 0.06), (0.15, 0.04), (0.05, 0.2), (0.5, 0.2))] == [
        True,
        False,
        None,
        False,
    ]
    assert share([True, False, None, None], "settings") == "1 of 4 settings, undecided in 2"


def test_what_is_not_known_is_no_verdict():
    assert decide({"X": None, "Y": None}, "").verdict == UNDECIDED
    mixed = decide({"X": True, "Y": False, "Z": None}, "")
    assert (mixed.verdict, mixed.conditions) == (CONDITIONS, "holds for X; not for Y; undecided for Z")
    against = decide({"Y": False, "Z": None}, "")
    assert (against.verdict, against.conditions) == (FAILS, "not for Y; undecided for Z")
    assert decide_across({("X", "d=1"): None}, "").verdict == UNDECIDED
    some = decide_across({("X", "d=1"): True, ("X", "d=2"): None}, "")
    assert some.conditions == "holds for X in 1 of 2 (d=1, undecided in 1: d=2)"


@pytest.mark.parametrize(("outcome", "expected"), [(True, HOLDS), (False, FAILS), (None, UNDECIDED)])
def test_all_parts_together(outcome, expected):
    assert decide_jointly({"one": True, "other": outcome}, "").verdict == expected


STABILITY = ("scaling-stable", "topology-cfd", "outliers-cfd", "outliers-mmd", "imbalance", "mmd-scale")


@pytest.mark.parametrize("name", STABILITY)
def test_noise_is_not_stability(name):
    noise = {f"{e}__{m}": 1.0 for e in ("scaling", "topology", "outliers", "imbalance") for m in ("cfd", "mmd")}
    assert verdict(name, evidence(noise=noise)).verdict == UNDECIDED


def test_noise_leaves_comparisons_open():
    noise = {f"{e}__{m}": 30.0 for e in ("displacement", "dispersion") for m in ("cfd", "mmd", "hausdorff")}
    found = evidence(noise=noise)
    for name in ("displacement-steepest", "dispersion-mmd-falls", "dispersion-steepest", "dispersion-cfd-falls"):
        assert verdict(name, found).verdict == UNDECIDED
    assert "undecided for CFD in displacement" in verdict("consistent", found).conditions


def test_standard_errors_by_leaving_out_are_those_of_a_mean():
    curve = Curve(np.array([1.0, 2.0]), np.array([[1.0, 2.0, 4.0, 7.0], [3.0, 5.0, 1.0, 8.0]]))
    value, doubt = estimate(lambda c: float(c.mean[0]), curve)
    assert value == 3.5
    assert doubt == pytest.approx(2 * np.std([1, 2, 4, 7], ddof=1) / 2)


def test_both_definitions_of_sensitivity_are_judged():
    """Over the whole range the far measure is the more sensitive one, step by step CFD is."""
    steep = {f"dispersion__{name}": lambda x: 1 + (x > 2.5) for name in FARAWAY}
    found = verdict("dispersion-steepest", evidence(**steep))
    assert found.verdict == CONDITIONS
    assert "CFD above Hausdorff (first level to last) in 0 of 4" in found.conditions
    assert "CFD above Hausdorff (averaged over steps) in 4 of 4" in found.conditions


def test_a_factor_that_begins_at_zero_has_no_sensitivity():
    table = study().to_pydict()
    table["level"] = [
        0.0 if (e, x) == ("displacement", 0.25) else x for e, x in zip(table["experiment"], table["level"], strict=True)
    ]
    found = Evidence(Trials(pa.table(table)), CHOICES, timings(), parts(), MOVED)
    assert verdict("displacement-steepest", found).verdict == UNDECIDED


def test_studies_too_small_to_judge_are_refused(refuses):
    table = study()
    with refuses("fewer than two trials of displacement.* run it again with more trials"):
        Trials(table.filter(pa.compute.equal(table.column("trial"), 0)))
    first = pa.compute.and_(
        pa.compute.equal(table.column("experiment"), "scaling"), pa.compute.greater(table.column("level"), 1.0)
    )
    with refuses("fewer than two levels of scaling.* run it again with more levels"):
        Trials(table.filter(pa.compute.invert(first)))


def test_the_fourth_verdict_is_counted_where_it_occurs(tmp_path, fair):
    found = list(fair.values())
    assert "not decided" not in files.render_markdown(found, ledger.source(evidence()))
    assert 'class="open"' not in files.render_page(found, ledger.source(evidence()))
    noise = {"outliers__mmd": 5.0}
    unsure = claims.judge(evidence(noise=noise))
    number = files.counts(unsure)[UNDECIDED]
    assert number >= 1
    assert f"{number} {'is' if number == 1 else 'are'} not decided." in files.render_markdown(
        unsure, ledger.source(evidence())
    )
    page = files.render_page(unsure, ledger.source(evidence()))
    assert page.count('class="claim open"') == number
    assert 'class="open"' in page


def test_files_agree(tmp_path, fair):
    found = evidence()
    files.write_ledger(tmp_path, list(fair.values()), ledger.source(found))
    stored = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in stored["claims"]] == list(fair)
    assert sum(stored["counts"].values()) == len(fair)
    assert stored["source"]["trials"] == CHOICES.trials
    assert stored["source"]["dims"] == [32, 128]
    assert stored["source"]["version"] == cf.__version__
    assert "(100 rows, 4 trials)" in (tmp_path / "claims.md").read_text(encoding="utf-8")  # of the moved copies
    page = (tmp_path / "claims.html").read_text(encoding="utf-8")
    text = (tmp_path / "claims.md").read_text(encoding="utf-8")
    assert page.count("<article") == len(fair)
    assert all(f'id="{name}"' in page for name in fair)
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == len(fair) + len(ledger.PARTS)
    assert {line.count(" | ") for line in text.splitlines() if line.startswith("| ")} == {3}
    assert "http" not in page.replace("http-equiv", "")


def test_a_study_without_an_experiment_is_refused(refuses):
    table = study()
    kept = table.filter(pa.compute.not_equal(table.column("experiment"), "outliers"))
    with refuses("no outliers: run it"):
        Trials(kept)


def test_quick_run_reads_what_is_there_and_runs_what_is_not(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    small = synthetic.Settings.quick(dims=(32,), sizes=(50, 100), trials=2, exact_up_to=50, ratios=(1.0, 0.5))
    monkeypatch.setattr(synthetic.Settings, "quick", lambda: small)
    monkeypatch.setattr(runtime, "QUICK", {"dim": 16, "cap": 0.05, "largest": 1000})
    seen: list[str] = []
    first = claims.run(folder, quick=True, workers=1, progress=seen.append)
    assert any(line.startswith("runtime") for line in seen)
    assert any(line.startswith("synthetic") for line in seen)
    seen.clear()
    again = claims.run(folder, quick=True, progress=seen.append)
    found = f"synthetic: as found in {folder / 'synthetic'}"
    assert seen == [found, "claims: moved copies", f"claims: {len(claims.CHECKS)} checks"]
    assert list((folder / "synthetic" / "figures").glob("relative-*.png"))
    assert again == first
    assert (folder / "claims.html").stat().st_size > 10_000
