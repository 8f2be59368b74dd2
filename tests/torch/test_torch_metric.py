"""The metric: what torchmetrics tests of its own, and that no cut into batches or processes changes the distance."""

import copy
import io
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given as draw
from hypothesis import settings
from hypothesis import strategies as st

import crossfusion as cf
from tests.helpers import PATIENCE
from tests.helpers.missing_libraries import without

torch = pytest.importorskip("torch", reason="install the extra torch")
pytest.importorskip("crossfusion.torch.metric", reason="install the extra torch", exc_type=ImportError)

import torchmetrics  # noqa: E402

from crossfusion.torch import CrossFusionDistance, cfd  # noqa: E402

ROWS, DIM, GROUPS, STRATA = 120, 5, 3, 4


def made(seed=0, offset=0.0, rows=ROWS):
    rng = np.random.default_rng(seed)
    labels, given = rng.integers(GROUPS, size=rows), rng.integers(STRATA, size=rows)
    x = rng.normal(size=(rows, DIM)) + 0.5 * labels[:, None] + 0.3 * given[:, None] + offset
    return torch.tensor(x), torch.tensor(labels), torch.tensor(given)


def expected(x, labels, given=None, *, weights="pooled", unbiased=False):
    found = cf.cfd(
        x.double().numpy(), labels=labels.numpy(), given=None if given is None else given.numpy(), weights=weights
    )
    return found.unbiased if unbiased else found.distance


@pytest.fixture
def metric():
    return CrossFusionDistance(GROUPS, DIM)


@pytest.fixture
def filled(metric):
    metric.update(*made()[:2])
    return metric


def close(value, wanted, tolerance=1e-10):
    assert isinstance(value, torch.Tensor)
    assert value.shape == ()
    assert value.item() == pytest.approx(wanted, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("adjusted", [False, True])
@settings(max_examples=15)
@draw(cuts=st.lists(st.integers(0, ROWS), max_size=6), offset=st.sampled_from([0.0, 1e3, -1e5]))
def test_equals_numpy_whatever_the_batches(adjusted, weights, unbiased, cuts, offset):
    x, labels, given = made(offset=offset)
    options = {"weights": weights, "unbiased": unbiased}
    metric = CrossFusionDistance(GROUPS, DIM, num_given=STRATA if adjusted else None, **options)
    for rows in np.split(np.arange(ROWS), sorted(cuts)):  # some are empty
        metric.update(x[rows], labels[rows], given[rows] if adjusted else None)
    wanted = expected(x - offset, labels, given if adjusted else None, **options)
    close(metric.compute(), wanted, 1e-10 if offset == 0 else 1e-9)  # what rows lose at a far offset is theirs
    close(metric.compute(), expected(x, labels, given if adjusted else None, **options))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_narrow_rows_are_added_up_in_float64(metric, dtype):
    x, labels, _ = made(offset=100.0)
    for rows in torch.arange(ROWS).split(7):
        metric.update(x[rows].to(dtype), labels[rows])
    assert metric.moments.dtype == torch.float64
    close(metric.compute(), expected(x.to(dtype), labels))


def test_forward_gives_the_value_of_the_batch_and_keeps_all(metric):
    x, labels, _ = made()
    for rows in torch.arange(ROWS).split(40):
        close(metric(x[rows], labels[rows]), expected(x[rows], labels[rows]))
    assert metric.update_count == 3
    close(metric.compute(), expected(x, labels))


def test_forward_has_the_gradient_of_the_function(metric):
    x, labels, _ = made()
    x.requires_grad_()
    metric.update(x, labels)
    value = metric(x, labels)
    assert metric.is_differentiable == value.requires_grad
    (own,) = torch.autograd.grad(value, x)
    (plain,) = torch.autograd.grad(cfd(x, labels, num_groups=GROUPS), x)
    torch.testing.assert_close(own, plain, rtol=1e-9, atol=1e-12)
    assert not metric.moments.requires_grad


def test_reset_forgets(filled):
    filled.reset()
    assert not filled.update_called
    assert not filled.moments.any()
    x, labels, _ = made(seed=1)
    filled.update(x, labels)
    close(filled.compute(), expected(x, labels))


def test_constants_cannot_be_changed(metric):
    assert (metric.is_differentiable, metric.higher_is_better, metric.full_state_update) == (True, None, False)
    for name in ("is_differentiable", "higher_is_better", "full_state_update"):
        with pytest.raises(RuntimeError, match="const"):
            setattr(metric, name, True)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: m.clone(), lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_go_on_by_themselves(filled, copied):
    before = filled.compute()
    other = copied(filled)
    assert type(other) is CrossFusionDistance
    x, labels, _ = made(seed=1)
    close(other(x, labels), expected(x, labels))
    assert filled.compute() == before
    whole = torch.cat([made()[0], x]), torch.cat([made()[1], labels])
    close(other.compute(), expected(*whole))


def test_hash_tells_metrics_and_states_apart(filled):
    other = filled.clone()
    first = hash(filled)
    assert first != hash(other)
    filled.update(*made(seed=1)[:2])
    assert hash(filled) != first


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning", "ignore:This property will be:DeprecationWarning")
def test_metric_is_scriptable_as_those_of_torchmetrics(filled):
    scripted = torch.jit.script(filled)
    torch.testing.assert_close(scripted.moments, filled.moments)


def test_moves_to_a_device(filled):
    moved = filled.to("meta")
    assert moved.device.type == moved.moments.device.type == "meta"
    moved.reset()
    assert moved.moments.device.type == "meta"


@pytest.mark.parametrize("cast", ["half", "float", "double", "bfloat16"])
def test_casts_of_a_model_leave_the_state_alone(filled, cast):
    if cast in vars(torchmetrics.Metric):
        getattr(filled, cast)()
    model = torch.nn.ModuleList([filled])
    getattr(model, cast)()
    assert filled.moments.dtype == torch.float64
    close(filled.compute(), expected(*made()[:2]))


@pytest.mark.parametrize("narrow", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("way", ["set_dtype", "to"])
def test_state_is_never_narrower_than_float32(filled, narrow, way):
    getattr(filled, way)(narrow)
    assert filled.moments.dtype == torch.float32
    close(filled.compute(), expected(*made()[:2]), 1e-5)
    filled.reset()
    assert filled.moments.dtype == torch.float32
    x, labels = torch.randn(5000, DIM), torch.arange(5000) % 2
    for rows in torch.arange(5000).split(100):  # float16 stops counting at 2048
        filled.update(x[rows].to(narrow), labels[rows])
    assert filled.moments[:, 0].tolist() == [2500, 2500, 0]
    close(filled.compute(), expected(x.to(narrow), labels), 1e-4)


def test_set_dtype_for_devices_without_float64(metric):
    metric.set_dtype(torch.float32)
    x, labels, _ = made()
    for rows in torch.arange(ROWS).split(7):
        metric.update(x[rows].float(), labels[rows])
    assert metric.compute().dtype == torch.float32
    close(metric.compute(), expected(x, labels), 1e-5)


@pytest.mark.parametrize("as_dict", [False, True])
def test_merge_state_adds_another_metric(filled, as_dict):
    filled.compute()  # whose value is not to be remembered
    x, labels, _ = made(seed=1)
    labels = torch.where(labels == 1, 2, labels)  # a group is missing
    other = CrossFusionDistance(GROUPS, DIM)
    other.update(x, labels)
    filled.merge_state(other.metric_state if as_dict else other)
    close(filled.compute(), expected(torch.cat([made()[0], x]), torch.cat([made()[1], labels])))
    close(other.compute(), expected(x, labels))


def test_merge_state_into_a_new_metric(filled, metric):
    new = CrossFusionDistance(GROUPS, DIM)
    new.merge_state(filled)
    assert new.compute() == filled.compute()
    filled.merge_state(CrossFusionDistance(GROUPS, DIM))
    assert new.compute() == filled.compute()


def test_merge_state_refuses_other_groups(refuses):
    metric = CrossFusionDistance(2, DIM, num_given=3)
    with refuses("incoming_state has num_groups=3, this metric num_groups=2"):
        metric.merge_state(CrossFusionDistance(3, DIM, num_given=2))  # of the same shape
    with refuses(r"incoming_state has moments of shape \(2, 7\), this metric of \(3, 2, 7\)"):
        metric.merge_state(CrossFusionDistance(2, DIM).metric_state)
    with pytest.raises(ValueError, match="incoming"):
        metric.merge_state([1])
    with refuses("num_given=None, this metric num_given=3"):
        metric.merge_state(CrossFusionDistance(2, DIM))


def test_collection_shares_one_state_among_its_metrics():
    x, labels, given = made()
    collection = torchmetrics.MetricCollection(
        {
            "pooled": CrossFusionDistance(GROUPS, DIM, num_given=0),
            "unbiased": CrossFusionDistance(GROUPS, DIM, num_given=0, unbiased=True),
            "balanced": CrossFusionDistance(GROUPS, DIM, num_given=0, weights="balanced"),
            "adjusted": CrossFusionDistance(GROUPS, DIM, num_given=STRATA),
        }
    )
    for rows in torch.arange(ROWS).split(50):
        batch = collection(x[rows], labels[rows], given=given[rows])
        close(batch["balanced"], expected(x[rows], labels[rows], weights="balanced"))
        close(batch["adjusted"], expected(x[rows], labels[rows], given[rows]))
    for rows in torch.arange(ROWS).split(50):
        collection.update(x[rows], labels[rows], given=given[rows])
    assert sorted(map(sorted, collection.compute_groups.values())) == [["adjusted"], ["balanced", "pooled", "unbiased"]]
    twice = torch.cat([x, x]), torch.cat([labels, labels])
    found = collection.compute()
    close(found["pooled"], expected(*twice))
    close(found["unbiased"], expected(*twice, unbiased=True))
    close(found["balanced"], expected(*twice, weights="balanced"))
    close(found["adjusted"], expected(*twice, torch.cat([given, given])))
    collection.reset()
    assert not any(metric.update_called for metric in collection.values())


def test_collection_tells_groups_from_strata_of_as_many_cells():
    x, labels, _ = made()
    labels = labels % 2
    metrics = {"plain": CrossFusionDistance(4, DIM, num_given=0), "adjusted": CrossFusionDistance(2, DIM, num_given=2)}
    collection = torchmetrics.MetricCollection(metrics)
    given = torch.arange(ROWS) // (ROWS // 2)  # so that the first batch has one stratum
    for rows in torch.arange(ROWS).split(ROWS // 2):
        collection.update(x[rows], labels[rows], given=given[rows])
    found = collection.compute()
    close(found["plain"], expected(x, labels))
    close(found["adjusted"], expected(x, labels, given))


def test_arithmetic_and_trackers(filled):
    score = 1 - filled / 2
    close(score.compute(), 1 - expected(*made()[:2]) / 2)
    tracker = torchmetrics.MetricTracker(CrossFusionDistance(GROUPS, DIM), maximize=False)
    for seed in range(3):
        tracker.increment()
        tracker.update(*made(seed=seed)[:2])
    wanted = [expected(*made(seed=seed)[:2]) for seed in range(3)]
    assert tracker.compute_all().tolist() == pytest.approx(wanted, rel=1e-10)
    assert tracker.best_metric() == pytest.approx(min(wanted))


def test_checkpoint_holds_the_state_where_asked(filled):
    assert filled.state_dict() == {}
    filled.persistent(True)
    kept = io.BytesIO()
    torch.save(torch.nn.ModuleDict({"distance": filled}).state_dict(), kept)
    kept.seek(0)
    state = torch.load(kept, weights_only=True)
    assert {name: tuple(values.shape) for name, values in state.items()} == {"distance.moments": (GROUPS, DIM + 2)}
    again = CrossFusionDistance(GROUPS, DIM)
    again.persistent(True)
    again.update(*made(seed=5)[:2])
    again.compute()
    torch.nn.ModuleDict({"distance": again}).load_state_dict(state)
    assert again.compute() == filled.compute()  # nor does it warn that nothing was seen
    again.update(*made(seed=1)[:2])
    filled.update(*made(seed=1)[:2])
    assert again.compute() == filled.compute()


def test_checkpoint_of_other_groups_is_refused(filled):
    filled.persistent(True)
    other = CrossFusionDistance(GROUPS + 1, DIM)
    other.persistent(True)
    with pytest.raises(RuntimeError, match=r"moments has shape \(3, 7\), this metric \(4, 7\): make it alike"):
        other.load_state_dict(filled.state_dict())
    assert not other.moments.any()


def test_plot_draws_values(filled):
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot as plt

    value = filled.compute()
    _, axes = filled.plot()
    assert axes.lines[0].get_ydata()[0] == pytest.approx(value.item())
    _, several = filled.plot([value, value / 2, value / 4])
    assert several.lines[0].get_ydata().tolist() == pytest.approx([value.item() / 2**k for k in range(3)])
    plt.close("all")


def test_rows_of_negative_labels_and_strata_are_left_out():
    x, labels, given = made()
    labels[::5], given[::7] = -1, -1
    metric = CrossFusionDistance(GROUPS, DIM, num_given=STRATA)
    x[0] = torch.nan  # left out as well
    metric.update(x, labels, given)
    kept = (labels >= 0) & (given >= 0)
    close(metric.compute(), expected(x[kept], labels[kept], given[kept]))


def test_nothing_seen_is_no_distance(metric):
    with pytest.warns(UserWarning, match="before the ``update`` method"):
        assert torch.isnan(metric.compute())


def test_nothing_compared_is_no_distance():
    x, labels = torch.tensor([[0.0], [2.0], [90.0], [95.0]]), torch.tensor([0, 0, 1, 1])
    alone = CrossFusionDistance(num_groups=2, dim=1)
    alone.update(x[:2], labels[:2])
    assert torch.isnan(alone.compute())
    alone.update(x[2:], labels[2:])
    assert alone.compute() > 1
    confounded = CrossFusionDistance(num_groups=2, dim=1, num_given=2)
    confounded.update(x, labels, labels)
    assert torch.isnan(confounded.compute())
    confounded.update(x[:1], labels[:1], 1 - labels[:1])
    assert torch.isfinite(confounded.compute())


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"num_groups": 0}, "num_groups=0 must be a whole number"),
        ({"dim": 2.5}, "dim=2.5 must be a whole number"),
        ({"num_given": -1}, "num_given=-1 must be a whole number"),
        ({"weights": "equal"}, "weights='equal' is not known"),
        ({"eps": -1.0}, "eps=-1.0 must be 0 or a positive variance"),
        ({"eps": np.float32(-1)}, "must be 0 or a positive variance"),
        ({"eps": "1e-6"}, "eps='1e-6' must be 0 or a positive variance"),
        ({"eps": None}, "eps=None must be 0 or a positive variance"),
        ({"weights": np.ones(3)}, "is not known"),
    ],
)
def test_bad_options_are_refused(options, pattern, refuses):
    with refuses(pattern):
        CrossFusionDistance(**({"num_groups": GROUPS, "dim": DIM} | options))


def test_bad_batches_are_refused(metric, refuses):
    x, labels, given = made()
    with refuses("x has 4 features, but the metric is for dim=5"):
        metric.update(x[:, :4], labels)
    with refuses("given needs num_given"):
        metric.update(x, labels, given)
    with refuses("labels has numbers up to 7, beyond num_groups=3"):
        metric.update(x, torch.full_like(labels, 7))
    with refuses("x must be floating point of shape"):
        metric.update(x.tolist(), labels)
    with refuses("incoming_state has no moments"):
        metric.merge_state({})
    with refuses("given is missing: num_given=2 asks for"):
        CrossFusionDistance(GROUPS, DIM, num_given=2).update(x, labels)
    assert not metric.moments.any()


WORKER = """
import json, sys
import torch
from crossfusion.torch import CrossFusionDistance
rank, store = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
generator = torch.Generator().manual_seed(0)
x = torch.randn(90, 4, generator=generator, dtype=torch.float64) + 100
labels = torch.arange(90) % 3
x += 0.4 * labels[:, None]
mine = (labels != 2) & (torch.arange(90) < 80) if rank == 0 else (labels == 2) | (torch.arange(90) >= 80)
sizes = 10 if rank == 0 else 17  # batches of other sizes, and more of them
told = {}
metric = CrossFusionDistance(3, 4)
for rows in torch.arange(90)[mine].split(sizes):
    metric.update(x[rows], labels[rows])
told["whole"] = metric.compute().item()
own = metric.moments[:, 0].tolist()  # each has its own rows again
metric.update(x[:rank], labels[:rank])  # one more row, on one process
told["on"] = metric.compute().item()
stepping = CrossFusionDistance(3, 4, dist_sync_on_step=True)
rows = torch.arange(90)[mine][:20]
told["step"] = stepping(x[rows], labels[rows]).item()
told["after"] = stepping.compute().item()
alone = CrossFusionDistance(3, 4, sync_on_compute=False)
alone.update(x[mine], labels[mine])
told["alone"] = alone.compute().item()
print(json.dumps(told | {"own": own, "rows": rows.tolist(), "mine": mine.tolist()}))
torch.distributed.destroy_process_group()
"""


def test_two_processes_give_what_one_gives(tmp_path, pytestconfig):
    wary = (pytestconfig.getoption("pythonwarnings") or ["error"])[-1]
    commands = [[sys.executable, "-W", wary, "-c", WORKER, str(rank), str(tmp_path / "store")] for rank in range(2)]
    running = [subprocess.Popen(c, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for c in commands]
    done = [(*process.communicate(timeout=PATIENCE), process.returncode) for process in running]
    assert [code for *_, code in done] == [0, 0], done
    told = [json.loads(out.splitlines()[-1]) for out, *_ in done]
    x = torch.randn(90, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 100
    labels = torch.arange(90) % 3
    x += 0.4 * labels[:, None]
    more = torch.cat([x, x[:1]]), torch.cat([labels, labels[:1]])
    step = torch.tensor(told[0]["rows"] + told[1]["rows"])
    for rank, found in enumerate(told):
        mine = torch.tensor(found["mine"])
        assert found["own"] == torch.bincount(labels[mine], minlength=3).tolist()
        assert (found["own"][2] == 0) == (rank == 0)
        assert found["whole"] == pytest.approx(expected(x, labels), rel=1e-10)
        assert found["on"] == pytest.approx(expected(*more), rel=1e-10)
        assert found["step"] == found["after"] == pytest.approx(expected(x[step], labels[step]), rel=1e-10)
        assert found["alone"] == pytest.approx(expected(x[mine], labels[mine]), rel=1e-10)


def test_missing_torchmetrics_is_named_and_the_rest_works(python):
    code = """
import torch
import crossfusion as cf, crossfusion.torch
print(crossfusion.torch.cfd(torch.eye(4), torch.tensor([0, 0, 1, 1])).item() > 0)
try:
    crossfusion.torch.CrossFusionDistance
except cf.MissingDependencyError as problem:
    print(problem)
"""
    expected = "CrossFusionDistance needs torchmetrics, which is not installed: pip install 'crossfusion[torch]'"
    assert python(without("torchmetrics") + code) == f"True\n{expected}"
