"""The study of training: penalties against their formulas, no label of the target in use, the command as a whole."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats

import crossfusion as cf
from paper.training import Settings
from paper.training.cost import Cost
from paper.training.cost import compute as timed
from paper.training.loop import add_guesses, train_all
from paper.training.measures import distances
from paper.training.network import reproducible
from paper.training.outcomes import choose_strength, estimate_mean, summarize_runs
from paper.training.penalties import Adversary, coral, linear_mmd, penalty_of, rbf_mmd
from paper.training.reading import describe_results
from paper.training.scanners import load_digits, simulate_scan
from paper.training.seed_runs import SeedRun, compute
from paper.training.settings import METHODS, NONE
from paper.training.tasks import UNKNOWN, Pool, Rows, Task, list_tasks, read_pools, split_rows
from tests.helpers.missing_libraries import without
from tests.helpers.module_commands import fail_module, run_module

SMALL = replace(Settings.quick(), warm_up=4, steps=6, strengths=(1.0,), batch=16)
DOMAINS = ("a", "b", "c")


def cloud(rows, seed, shift=0.0, dim=5):
    return torch.from_numpy(np.random.default_rng(seed).normal(shift, 1, (rows, dim)))


def pool(seed=0, dim=6):
    """Three domains that lie apart, three labels."""
    draw = np.random.default_rng(seed)
    label, domain = np.arange(180) % 3, np.arange(180) // 60
    x = draw.normal(size=(180, dim)) + 2 * np.eye(3, dim)[label] + domain[:, None]
    return Pool(x.astype(np.float32), label, domain, DOMAINS)


def weights(network):
    return torch.cat([values.detach().flatten() for values in network.parameters()])


@pytest.mark.parametrize(("n", "m"), [(30, 20), (7, 12), (8, 8)])
def test_penalties_are_their_formulas(n, m):
    a, b = cloud(n, 1), cloud(m, 2, 0.7)
    gap = np.cov(a.numpy(), rowvar=False) - np.cov(b.numpy(), rowvar=False)
    assert float(coral(a, b)) == pytest.approx(np.sum(gap**2) / (4 * 5**2), rel=1e-12)
    share = n * m / (n + m) ** 2
    between = cf.cfd(a.numpy(), b.numpy()).between
    assert share * float(linear_mmd(a, b)) == pytest.approx(between, rel=1e-12)
    assert float(rbf_mmd(a, b)) == pytest.approx(cf.distance("mmd", a.numpy(), b.numpy()) ** 2, rel=1e-9)


def test_cfd_is_that_of_the_library_and_needs_labels_only_within_labels():
    x, domain, label = torch.cat([cloud(30, 1), cloud(30, 2, 0.5)]), torch.arange(60) // 30, torch.arange(60) % 3
    plain = cf.cfd(x.numpy(), labels=domain.numpy()).unbiased
    assert float(penalty_of("cfd", 2, 3)(x, domain, label)) == pytest.approx(plain, rel=1e-5)
    label[::7] = UNKNOWN
    known = (label >= 0).numpy()
    within = cf.cfd(x.numpy()[known], labels=domain.numpy()[known], given=label.numpy()[known]).unbiased
    assert float(penalty_of("cfd_given_label", 2, 3)(x, domain, label)) == pytest.approx(within, rel=1e-5)


@pytest.mark.parametrize(("method", "pair"), {"coral": coral, "mmd_linear": linear_mmd, "mmd_rbf": rbf_mmd}.items())
def test_several_domains_are_averaged_over_pairs(method, pair):
    parts = [cloud(9, 1), cloud(9, 2, 1.0), cloud(9, 3, 3.0)]
    domain = torch.arange(27) // 9
    expected = np.mean([float(pair(parts[i], parts[j])) for i, j in ((0, 1), (0, 2), (1, 2))])
    assert float(penalty_of(method, 3, 2)(torch.cat(parts), domain, domain)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in (NONE, "dann")])
def test_penalties_pull_domains_together(method):
    x = torch.cat([cloud(40, 1), 2 * cloud(40, 2, 1.0)]).requires_grad_()
    domain, label = torch.arange(80) // 40, torch.arange(80) % 2
    penalty = penalty_of(method, 2, 2)
    before = penalty(x, domain, label)
    (gradient,) = torch.autograd.grad(before, x)
    after = penalty(x - 0.01 * gradient / gradient.norm(), domain, label)
    assert after.item() < before.item()


def test_an_adversary_turns_the_gradient_of_the_features_only():
    torch.manual_seed(0)
    adversary = Adversary(5, 2)
    x, domain = torch.cat([cloud(8, 1), cloud(8, 2, 1.0)]).float(), torch.arange(16) // 8
    own = list(adversary.parameters())

    def gradients(loss_of):
        features = x.clone().requires_grad_()
        first, *rest = torch.autograd.grad(loss_of(features), [features, *own])
        return first, rest

    plain, of_adversary = gradients(lambda f: torch.nn.functional.cross_entropy(adversary.layers(f), domain))
    for strength in (0.0, 1.0, 2.5):
        turned, rest = gradients(lambda f, strength=strength: adversary(f, domain, strength))
        torch.testing.assert_close(turned, -strength * plain)
        torch.testing.assert_close(rest, of_adversary)


def test_only_confident_guesses_stand_for_labels():
    scores = torch.tensor([[5.0, 0.0], [0.1, 0.0], [0.0, 5.0], [0.0, 5.0]])
    label = torch.tensor([UNKNOWN, UNKNOWN, UNKNOWN, 0])
    assert add_guesses(scores, label, 0.8).tolist() == [0, UNKNOWN, 1, 0]


def test_splits_share_no_row_and_hide_the_labels_of_the_target():
    rows = pool()
    split = split_rows(rows, Task("pacs", ("a",), "b"), 0)
    source, target = split.train
    assert (target.label == UNKNOWN).all()
    assert (source.label >= 0).all()
    assert [len(source.x), len(split.held.x), len(target.x), len(split.test.x)] == [48, 12, 30, 30]
    vectors = torch.cat([source.x, split.held.x, target.x, split.test.x])
    assert len(torch.unique(vectors, dim=0)) == 120
    assert float(source.x.mean()) == pytest.approx(0, abs=1e-5)
    assert float(target.x.mean()) > 0.3, "the target is not centred"


@pytest.mark.parametrize("group", ["pacs", "pacs_left_out"])
def test_no_label_of_the_target_is_used(group):
    """Networks, and the choice of strengths, are the same with labels of the target that are wrong."""
    rows = pool()
    task = Task(group, ("a", "c") if group == "pacs_left_out" else ("a",), "b")
    wrong = replace(rows, label=np.where(rows.domain == 1, (rows.label + 1) % 3, rows.label))
    right, other = ([weights(n) for *_, n in train_all(split_rows(p, task, 0), SMALL, 0)] for p in (rows, wrong))
    for one, two in zip(right, other, strict=True):
        assert torch.equal(one, two)
    runs, of_wrong = (
        [run for seed in (0, 1) for run in compute(SeedRun(task, p, "", SMALL, seed))["runs"]] for p in (rows, wrong)
    )
    assert [run["target"] for run in runs] != [run["target"] for run in of_wrong]
    chosen, of_others = ([o.strength for o in summarize_runs(r, SMALL)] for r in (runs, of_wrong))
    assert chosen == of_others


def test_a_domain_that_is_left_out_is_not_seen():
    rows = pool()
    other = replace(rows, x=np.where(rows.domain[:, None] == 1, rows.x * 9, rows.x))
    task = Task("pacs_left_out", ("a", "c"), "b")
    networks = [[weights(n) for *_, n in train_all(split_rows(p, task, 0), SMALL, 0)] for p in (rows, other)]
    assert all(torch.equal(one, two) for one, two in zip(*networks, strict=True))


def test_methods_differ_by_their_penalty_alone():
    """A penalty of no strength leaves what no regulariser gives, but for the rounding of sums of more terms."""
    settings = replace(SMALL, strengths=(0.0, 1.0), confidence=0.0)
    found = {(m, s): weights(n) for m, s, n in train_all(split_rows(pool(), Task("pacs", ("a",), "b"), 0), settings, 0)}
    for (_, strength), values in found.items():
        apart = float((values - found[NONE, 0.0]).abs().max())
        assert (apart < 1e-5) == (strength == 0.0)


def test_the_same_seed_gives_the_same_and_pytorch_is_left_alone():
    part = SeedRun(Task("pacs", ("a",), "b"), pool(), "", SMALL, 3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        first = compute(part)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.are_deterministic_algorithms_enabled()
    assert compute(part) == first
    assert compute(replace(part, seed=4)) != first


def test_the_largest_strength_that_costs_the_sources_nothing_is_chosen():
    accuracy = {0.1: 0.90, 0.3: 0.95, 1.0: 0.94, 3.0: 0.80}
    assert choose_strength(list(accuracy), accuracy.__getitem__, 0.93) == 1.0
    assert choose_strength(list(accuracy), accuracy.__getitem__, 0.99) == 0.1


def test_intervals_are_those_of_students_t():
    values = np.array([0.61, 0.66, 0.58, 0.70, 0.64])
    _, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    found = estimate_mean(values)
    assert found.mean == pytest.approx(values.mean())
    assert found.half == pytest.approx(high - values.mean(), rel=5e-3)
    assert [estimate_mean(values).sign, estimate_mean(-values).sign, estimate_mean(values - 0.63).sign] == [1, -1, 0]


def test_distances_see_means_and_what_is_left_without_them():
    x = cloud(300, 1)
    domain, label = torch.arange(600) // 300, torch.zeros(600, dtype=torch.int64)
    moved, wider = (torch.cat([x, other]) for other in (x + 1, x * 3))
    found = distances(moved, Rows(moved, label, domain))
    assert found["cfd"] == pytest.approx(cf.cfd(moved[:300].numpy(), moved[300:].numpy()).unbiased, rel=1e-9)
    assert found["energy"] > 0.3
    assert found["energy_centred"] < 1e-6
    assert distances(100 * moved, Rows(moved, label, domain)) == pytest.approx(found, abs=1e-6)
    spread = distances(wider, Rows(wider, label, domain))
    assert abs(spread["cfd"]) < 0.01
    assert spread["energy_centred"] > 0.2
    assert all(np.isnan(v) for v in distances(0 * moved, Rows(moved, label, domain)).values())


def test_the_second_scanner_is_the_same_every_time_and_dark_becomes_grey():
    images, label = load_digits()
    assert images.shape == (1797, 8, 8)
    assert set(label) == set(range(10))
    again = simulate_scan(images)
    np.testing.assert_array_equal(simulate_scan(images), again)
    assert (simulate_scan(images, seed=1) != again).any()
    assert again.mean() > images.mean()
    assert again.std(axis=(1, 2)).mean() < images.std(axis=(1, 2)).mean()


def test_each_domain_is_a_target_once():
    pools = read_pools(None) | {"pacs": pool()}
    found = list_tasks(pools, True)
    assert [task.name for task in found[:4]] == ["scanner A → scanner B", "a → b", "b → c", "c → a"]
    left_out = {task.target: task.sources for task in found[4:]}
    assert left_out == {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}


def made_up_runs():
    """CFD gains ten points on every seed, DANN loses ten, the others gain nothing."""
    gains = {"cfd": 0.1, "dann": -0.1}
    rest = {"source": 0.9, "confident": 0.5, "right": 0.8, "cfd": 0.1, "cfd_given_label": 0.1, "energy": 1.0}
    return [
        {"group": "digits", "task": "A → B", "seed": seed, "method": method, "strength": strength}
        | rest
        | {"energy_centred": 0.5, "target": 0.6 + 0.01 * seed + gains.get(method, 0.0) * strength}
        for seed in range(5)
        for method in METHODS
        for strength in ((0.0,) if method == NONE else (0.5, 1.0))
    ]


def test_the_reading_follows_from_the_runs():
    found = summarize_runs(made_up_runs(), Settings())
    assert {o.method: o.strength for o in found if o.method != NONE} == dict.fromkeys([*METHODS][1:], 1.0)
    assert {o.method: o.difference.sign for o in found} == dict.fromkeys(METHODS, 0) | {"cfd": 1, "dann": -1}
    assert next(o for o in found if o.method == "dann").best == 0.5
    ratios = [{"group": "digits", "rows": 64, "method": m, "ratio": 1.5} for m in METHODS]
    said = " ".join(describe_results(found, ratios, Settings()))
    assert "in points: CFD (+10.0); worse: DANN (-10.0)" in said
    assert "CFD beats no regulariser on digits, loses to it on none" in said
    assert "2 of 6 differences lie beyond" in said
    assert "At most the choice costs 5.0 points (DANN on digits)" in said
    assert "Not every method" not in said
    assert "RBF MMD 1.50" in said


def test_the_reading_names_methods_that_drive_domains_apart():
    runs = [run | {"cfd": 0.1 + 0.4 * (run["method"] == "coral")} for run in made_up_runs()]
    ratios = [{"group": "digits", "rows": 64, "method": m, "ratio": 1.5} for m in METHODS]
    said = " ".join(describe_results(summarize_runs(runs, Settings()), ratios, Settings()))
    assert "larger than without a regulariser with CORAL on digits." in said


def test_every_method_is_timed_against_none():
    settings = replace(SMALL, rounds=2)
    ratios = timed(Cost(Task("pacs", ("a",), "b"), pool(), settings))["ratios"]
    assert {(entry["rows"], entry["ratio"]) for entry in ratios if entry["method"] == NONE} == {(16, 1.0), (128, 1.0)}
    assert len(ratios) == 2 * (len(METHODS) + 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The study in miniature, on digits and made-up tables."""
    folder, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out")
    rows = pool(dim=8)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.x.ravel()), 8)
    names = {"domain": [DOMAINS[k] for k in rows.domain], "label": [str(k) for k in rows.label]}
    pq.write_table(pa.table(names | {"embedding": vectors}), folder / "pacs.parquet")
    return folder, out, run_module("paper", "training", "--quick", "--data", folder, "--out", out).stdout


def test_quick_leaves_everything(made):
    _, out, said = made
    found = json.loads((out / "training.json").read_text())
    groups = ["digits", "pacs", "pacs_left_out"]
    assert [(o["group"], o["method"]) for o in found["outcomes"]] == [(g, m) for g in groups for m in METHODS]
    own = {(o["group"], o["method"]): o for o in found["outcomes"]}
    base = own["digits", NONE]
    assert base["source"]["mean"] - base["target"]["mean"] > 0.1, "the second scanner costs accuracy"
    assert own["digits", "cfd"]["distances"]["cfd"] < 0.3 * base["distances"]["cfd"], "the distance falls"
    for text in found["reading"]:
        assert text in said
        assert text in (out / "training.md").read_text()
    assert "office_caltech.parquet" in said
    assert "says nothing" in said or "say nothing" in said
    page = (out / "training.html").read_text()
    assert page.count("<img") == 4
    assert "CFD given label" in page
    lines = (out / "runs.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2 * (1 + 6 * 2)
    assert (out / "tables" / "cost-of-a-step.md").is_file()
    for name in ("scanners", "accuracy", "strengths", "distances"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_there_is_not_trained_again(made):
    data, out, _ = made
    before = {path: path.read_bytes() for path in (out / "parts").iterdir()}
    when = {path: path.stat().st_mtime_ns for path in before}
    (out / "parts" / "digits-scanner-a-scanner-b-0.json").unlink()
    run_module("paper", "training", "--quick", "--data", data, "--out", out, "--cost-again", "--workers", "1")
    new = {path.name for path in before if path.stat().st_mtime_ns != when[path]}
    assert new == {"digits-scanner-a-scanner-b-0.json", "cost-digits.json", "cost-pacs.json"}
    for path, content in before.items():
        assert path.name.startswith("cost") or path.read_bytes() == content, "the same in this process as in a worker"


def test_bad_calls_are_one_line(tmp_path):
    assert "nothing" in fail_module("paper", "training", "--data", tmp_path / "nothing", "--out", tmp_path / "out")
    assert "--seed -1" in fail_module("paper", "training", "--seed", "-1", "--out", tmp_path / "out")
    assert "--workers 0" in fail_module("paper", "training", "--workers", "0", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("module", "library"), [("torch", "PyTorch"), ("sklearn", "scikit-learn")])
def test_a_missing_library_is_named(python, module, library):
    code = """
import crossfusion as cf
try:
    from paper import training
except cf.MissingDependencyError as problem:
    print(problem)
"""
    needs = f"python -m paper training needs {library}, which is not installed"
    assert python(without(module) + code) == f"{needs}: pip install 'crossfusion[reproduce,torch]'"


def test_torch_is_left_as_it_was():
    torch.manual_seed(5)
    with reproducible(1):
        first = torch.rand(1)
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), after)
    with reproducible(1):
        assert torch.equal(torch.rand(1), first)
