"""The claims ledger: verdicts follow from the evidence, and turn when the evidence does."""

import json

import numpy as np
import pyarrow as pa
import pytest

import crossfusion as cf
from crossfusion.experiments import claims, runtime, synthetic
from crossfusion.experiments.claims import CONDITIONS, FAILS, HOLDS, Evidence, Trials, copies, files, ledger, printed
from tests.made_up import CHOICES, FARAWAY, Response, evidence, parts, study, timings


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
    "scaling-stable": {"scaling__cfd": lambda x: x, "scaling__mmd": lambda x: x},
    "topology-cfd": {"topology__cfd": lambda x: x / 100},
    "topology-others": {f"topology__{name}": lambda x: 4 + x / 1000 for name in (*FARAWAY, "mmd")},
    "outliers-others": {f"outliers__{name}": lambda x: 5 + x / 100 for name in FARAWAY},
    "outliers-cfd": {"outliers__cfd": lambda x: 0.1 / (1 + x / 5)},
    "outliers-mmd": {"outliers__mmd": lambda x: 0.1 / (1 + x / 5)},
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


TWO_READINGS = (
    "dispersion-flat",
    "displacement-linear",
    "displacement-overlap",
    "displacement-mmd-weaker",
    "outliers-others",
)


@pytest.mark.parametrize("name", TWO_READINGS)
def test_what_fails_for_two_samples_may_hold_for_moved_copies(name):
    moved = Trials(copies.study(CHOICES), copies.EXPERIMENTS)
    found = verdict(name, evidence(copied=moved, **TURNS[name]))
    assert found.verdict == CONDITIONS
    assert "if B is not a sample of its own but that of A, moved" in found.conditions
    assert "With moved copies" in found.figure


def test_moved_copies_are_at_the_shift():
    table = copies.study(CHOICES)
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
    assert "balanced and unbiased CFD stable in 4 of 4" in uneven.mend


def test_zero_is_not_overlap_where_others_see_a_difference():
    seen = evidence(covariance__gaussian_wasserstein=lambda x: 1 + x, covariance__cfd_unbiased=lambda x: 0)
    assert verdict("zero-is-overlap", seen).verdict == FAILS
    assert verdict("zero-is-overlap", evidence(covariance__cfd_unbiased=lambda x: 0)).verdict == HOLDS


def test_two_samples_of_one_source():
    assert verdict("same-source-zero", evidence()).verdict == FAILS  # a small value that is clearly not zero
    assert verdict("same-source-zero", evidence(topology__cfd=lambda x: 0)).verdict == HOLDS


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
    ],
)
def test_verdicts_turn_with_the_timings(name, powers, expected):
    assert verdict(name, evidence(timed=timings(**powers))).verdict == expected


def test_arithmetic_of_the_experiments(fair):
    assert "d=32: +50.0%, d=128: +12.5%" in fair["topology-dispersion"].figure
    assert fair["topology-dispersion"].verdict == CONDITIONS
    assert "centroids −5%" in fair["outliers-preserve"].figure
    assert fair["outliers-preserve"].verdict == CONDITIONS


def test_printed_tables_recomputed():
    found = {name: printed.pearson(values, printed.CDDR) for name, values in printed.DISTANCES.items()}
    expected = {"CFD": 0.8827, "Wasserstein": 0.7992, "MMD": 0.8148, "Hausdorff": 0.8825, "Chamfer": 0.2259}
    assert found == pytest.approx(expected, abs=5e-5)
    other = printed.exchanged()
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
    assert {fair[name].verdict for name in always} == {HOLDS}
    edges = ("score-bounds", "scale-invariant", "metric", "parameter-free")
    assert {fair[name].verdict for name in edges} == {CONDITIONS}
    assert fair["mmd-bandwidth"].verdict == HOLDS


def test_files_agree(tmp_path, fair):
    found = evidence()
    files.write(tmp_path, list(fair.values()), ledger.source(found))
    stored = json.loads((tmp_path / "claims.json").read_text(encoding="utf-8"))
    assert [claim["id"] for claim in stored["claims"]] == list(fair)
    assert sum(stored["counts"].values()) == len(fair)
    assert stored["source"]["trials"] == CHOICES.trials
    assert stored["source"]["dims"] == [32, 128]
    assert stored["source"]["version"] == cf.__version__
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
