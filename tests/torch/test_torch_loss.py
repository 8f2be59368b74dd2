"""The loss: both directions, memory of past batches, several processes, and life as a module."""

# mypy: disable-error-code="arg-type,misc,union-attr,operator,index"

import copy
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import crossfusion.torch as cft
from crossfusion.torch import CrossFusionLoss
from crossfusion.torch.functional import compute_distance
from crossfusion.torch.moments import CellMoments
from tests.helpers import PATIENCE, ROOT, torch_processes
from tests.helpers.torch_batches import batch

NUMBERS = {"num_groups": 3, "num_given": 2}


def named(labels, given):
    return {"domain": labels, "label": given}


def null_batch(draw, rows=16, dim=64, offset=0.0):
    """Rows of two domains that do not differ."""
    return torch.randn(rows, dim, generator=draw, dtype=torch.float64) + offset, {"domain": torch.arange(rows) % 2}


# what it is


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_loss_is_the_distance_or_the_score(weights, unbiased):
    x, labels, given = batch(1, grad=True)
    options = {"weights": weights, "unbiased": unbiased, "eps": 1e-3}
    expected = cft.cfd(x, labels, given, **options)
    assert CrossFusionLoss("domain", "label", **options)(x, **named(labels, given)) == expected
    score = CrossFusionLoss("domain", "label", mode="separate", **options)(x, label=given, domain=labels)
    torch.testing.assert_close(score, torch.exp(-expected))
    assert CrossFusionLoss("scanner", **options)(x, scanner=labels) == cft.cfd(x, labels, **options)


def test_groups_without_variance_have_a_bounded_gradient():
    x, domain = torch.tensor([[0.0], [0.0], [2.0], [2.0]], requires_grad=True), torch.tensor([0, 0, 1, 1])
    CrossFusionLoss()(x, domain=domain).backward()
    assert 0 < x.grad.abs().max() < 10
    for eps in (0.0, 1e-6):
        loss = CrossFusionLoss(mode="separate", eps=eps)(x, domain=domain)
        (gradient,) = torch.autograd.grad(loss, x)
        assert loss.item() == pytest.approx(eps, rel=1e-3)
        assert torch.isfinite(gradient).all()


def test_training_fuses_domains_and_keeps_classes():
    x, domain, label = two_scanners()
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
    fuse = CrossFusionLoss("domain", given="label", num_groups=2, num_given=2)
    keep = CrossFusionLoss("label", given="domain", mode="separate", num_groups=2, num_given=2)
    before = cft.cfd(model(x), domain, label).item(), cft.cfd(model(x), label, domain).item()
    fit(model, lambda z: fuse(z, domain=domain, label=label) + keep(z, domain=domain, label=label), x)
    after = cft.cfd(model(x), domain, label).item(), cft.cfd(model(x), label, domain).item()
    assert after[0] < before[0] / 20
    assert after[1] > 2 * before[1]


def two_scanners():
    """Two classes seen by two scanners, in unlike shares."""
    torch.manual_seed(0)
    label = (torch.arange(400) % 5 < 2).long()
    domain = (torch.rand(400) < 0.3 + 0.4 * label).long()
    x = torch.randn(400, 6)
    x[:, 0] += 2 * domain
    x[:, 1] += 2 * label
    return x, domain, label


def fit(model, objective, x, steps=150):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        objective(model(x)).backward()
        optimizer.step()


# what it does not see


def test_variance_within_may_grow_instead_unless_it_is_held():
    x, domain, _ = two_scanners()
    loss = CrossFusionLoss(num_groups=2)
    free = nn.Parameter(torch.ones(6))  # a scale for each feature: invertible, so nothing about a domain is lost
    optimizer = torch.optim.Adam([free], lr=0.05)
    before = loss(x, domain=domain).item()
    for _ in range(200):
        optimizer.zero_grad()
        loss(x * free, domain=domain).backward()
        optimizer.step()
    assert loss(x * free, domain=domain).item() < before / 20
    z = (x * free).detach()
    first, second = z[domain == 0, 0], z[domain == 1, 0]
    assert abs(second.mean() - first.mean()) / first.std() > 1.8  # as far apart in that feature as they were
    of_standard = [loss((rows - rows.mean(0)) / rows.std(0), domain=domain).item() for rows in (x, z)]
    assert of_standard[1] == pytest.approx(of_standard[0], rel=1e-3)


# memory


def test_no_memory_is_plain():
    draw = torch.Generator().manual_seed(0)
    loss = CrossFusionLoss(num_groups=2, memory=0.0, eps=0)
    for _ in range(3):
        x, factors = null_batch(draw)
        assert loss(x, **factors) == cft.cfd(x, factors["domain"])
    assert not loss.state_dict()


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_memory_is_the_distance_of_faded_rows(offset):
    draw, keep = torch.Generator().manual_seed(1), 0.5
    loss = CrossFusionLoss("domain", "label", memory=keep, eps=0, **NUMBERS)
    fair = CrossFusionLoss("domain", "label", memory=keep, eps=0, unbiased=True, **NUMBERS)
    seen = []
    for step in range(4):
        x = torch.randn(20, 3, generator=draw, dtype=torch.float64) + offset
        labels = torch.randint(2 if step == 3 else 3, (20,), generator=draw)
        given = torch.randint(2, (20,), generator=draw)
        seen.append((x + labels[:, None], labels, given))
        value = loss(seen[-1][0], **named(labels, given)).item()
        unbiased = fair(seen[-1][0], **named(labels, given)).item()
        assert unbiased < value
    # 2 ** k copies of each row weigh as rows of weight keep ** (3 - k) do, which only the plug-in does not tell apart
    copies = [tuple(values.repeat(2**k, *[1] * (values.ndim - 1)) for values in step) for k, step in enumerate(seen)]
    x, labels, given = (torch.cat(parts) for parts in zip(*copies, strict=True))
    assert value == pytest.approx(cft.cfd(x, labels, given).item(), rel=1e-10)


def test_memory_takes_the_bias_of_small_batches_away():
    rows = 16
    values: dict[float, list[float]] = {0.0: [], 0.9: [], 0.99: []}
    fair = []
    for seed in range(2):
        for keep, found in values.items():
            draw = torch.Generator().manual_seed(seed)
            loss = CrossFusionLoss(num_groups=2, memory=keep)
            found.append(late_mean(loss, draw, rows))
        draw = torch.Generator().manual_seed(seed)
        loss = CrossFusionLoss(num_groups=2, memory=0.9, unbiased=True)
        fair.append(late_mean(loss, draw, rows))
    bias = 1 / (rows - 1)
    assert values[0.0] == pytest.approx([bias] * 2, rel=0.1)
    assert values[0.9] == pytest.approx([bias / 19] * 2, rel=0.2)  # (1 + 0.9) / (1 - 0.9) batches
    assert max(values[0.99]) < bias / 50
    assert fair == pytest.approx([0] * 2, abs=bias / 100)


def late_mean(loss, draw, rows):
    """Mean of the second half of many losses of groups that do not differ."""
    values = []
    for _ in range(300):
        x, factors = null_batch(draw, rows)
        values.append(loss(x, **factors).item())
    return sum(values[150:]) / 150


def test_the_gradient_with_memory_is_as_strong_as_of_all_rows():
    draw = torch.Generator().manual_seed(0)
    loss = CrossFusionLoss(num_groups=2, memory=0.9)
    domain = torch.arange(200) % 2
    rows = torch.randn(200, 8, generator=draw, dtype=torch.float64) + domain[:, None]
    for _ in range(100):
        x = rows.clone().requires_grad_()
        loss(x, domain=domain).backward()
    memory, x.grad = x.grad, None
    cft.cfd(x, domain, eps=1e-6).backward()
    torch.testing.assert_close(memory, x.grad)  # the same rows, again and again: the past adds nothing


def test_one_row_that_fades_does_not_show_a_variance():
    for weight in (0.9**k for k in range(1, 40)):
        count, mean = torch.tensor([20, 20, weight], dtype=torch.float64), torch.tensor([[0.0], [1.0], [2.0]]).double()
        sumsq = torch.tensor([30.0, 10.0, 0.0]).double()
        faded = CellMoments(
            count, mean, sumsq, torch.zeros(1).double(), count * torch.tensor([1, 1, weight], dtype=torch.float64)
        )
        share, variance = count / count.sum(), torch.tensor([30 / 19, 10 / 19, 40 / 38], dtype=torch.float64)
        between = (share * (mean[:, 0] - share @ mean[:, 0]) ** 2).sum()
        chance = (share * (1 - share) * variance / torch.tensor([20, 20, 1])).sum()
        expected = torch.log1p((between - chance) / (share @ variance))
        torch.testing.assert_close(compute_distance(faded, 1, "pooled", True, 0.0), expected)


def test_a_group_that_does_not_come_again_is_forgotten():
    draw = torch.Generator().manual_seed(0)
    loss = CrossFusionLoss(num_groups=3, memory=0.5, weights="balanced")
    x, factors = null_batch(draw, 12)
    with_third = torch.where(torch.arange(12) < 4, 2, factors["domain"])
    loss(x + 100 * (with_third == 2)[:, None], domain=with_third)
    values = [loss(null_batch(draw, 12)[0], **factors).item() for _ in range(12)]
    assert values[0] > 1
    assert values[-1] < 0.1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_batch_that_is_not_finite_is_not_remembered(value):
    draw = torch.Generator().manual_seed(0)
    loss, other = (CrossFusionLoss(num_groups=2, memory=0.9) for _ in range(2))
    domain = torch.arange(16) % 2
    first, last = (torch.randn(16, 4, generator=draw) for _ in range(2))
    loss(first, domain=domain), other(first, domain=domain)
    assert loss(first.index_fill(0, torch.tensor([3]), value), domain=domain).isnan()  # as a step in float16 may be
    assert loss(last, domain=domain) == other(last, domain=domain)


def test_memory_rests_in_evaluation_and_resets():
    x, labels, given = batch(2)
    loss = CrossFusionLoss("domain", "label", memory=0.9, eps=0, **NUMBERS)
    first = loss(x, **named(labels, given)).item()
    kept = copy.deepcopy(loss.state_dict())
    loss.eval()
    other = batch(3)
    assert loss(other[0], **named(*other[1:])) == cft.cfd(*other)
    assert all((kept[name] == value).all() for name, value in loss.state_dict().items())
    loss.train()
    assert loss(other[0], **named(*other[1:])) != cft.cfd(*other)
    loss.reset()
    assert loss(x, **named(labels, given)).item() == first == cft.cfd(x, labels, given).item()
    loss.reset()
    assert loss(x[:, :2], **named(labels, given)) == cft.cfd(x[:, :2], labels, given)


def test_memory_travels_with_the_state():
    loss = CrossFusionLoss("domain", "label", memory=0.9, **NUMBERS)
    for seed in range(3):
        x, labels, given = batch(seed)
        loss(x, **named(labels, given))
    fresh = CrossFusionLoss("domain", "label", memory=0.9, **NUMBERS).double()
    fresh.load_state_dict(loss.state_dict())
    copies = [fresh, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))]
    x, labels, given = batch(7)
    expected = loss(x, **named(labels, given))
    assert [one(x, **named(labels, given)) for one in copies] == [expected] * 3
    assert fresh.state_dict().keys() == loss.state_dict().keys() == {
        f"past.{name}" for name in ("count", "mean", "sumsq", "centre", "squares")
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_model_in_half_precision_remembers_in_float32(dtype):
    model = nn.ModuleDict({"loss": CrossFusionLoss("domain", "label", memory=0.9, **NUMBERS)})
    for seed in range(30):
        x, labels, given = batch(seed, 200, dtype=dtype, offset=100.0)
        value = model["loss"](x, **named(labels, given))
        model.to(dtype)
    exact = CrossFusionLoss("domain", "label", memory=0.9, **NUMBERS)
    for seed in range(30):
        x, labels, given = batch(seed, 200, dtype=dtype, offset=100.0)
        expected = exact(x.double(), **named(labels, given))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    assert {buffer.dtype for buffer in model.buffers()} == {torch.float32}
    assert {buffer.device.type for buffer in model.to("meta").buffers()} == {"meta"}


def test_memory_leaves_batches_of_the_past_without_a_graph():
    loss = CrossFusionLoss("domain", "label", memory=0.9, **NUMBERS)
    for seed in range(3):
        x, labels, given = batch(seed, grad=True)
        loss(x, **named(labels, given)).backward()
        assert torch.isfinite(x.grad).all()
    assert not any(buffer.requires_grad for buffer in loss.buffers())


@pytest.mark.parametrize("memory", [0.0, 0.9])
@pytest.mark.parametrize("mode", ["fuse", "separate"])
def test_little_to_compare_is_no_nan(memory, mode):
    loss = CrossFusionLoss("domain", "label", mode=mode, memory=memory, **NUMBERS)
    x, labels, given = batch(0)
    for rows in (slice(0), slice(1), labels == 1, labels < 0, slice(None), slice(0)):
        z = x[rows].clone().requires_grad_()
        value = loss(z, **named(labels[rows], given[rows]))
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(z.grad).all()


# torch.compile


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_compiled_in_one_graph(memory):
    torch._dynamo.reset()
    plain = CrossFusionLoss("domain", "label", memory=memory, **NUMBERS)
    loss = torch.compile(copy.deepcopy(plain), fullgraph=True, backend="aot_eager")
    for seed in range(4):
        x, labels, given = batch(seed, grad=True)
        with torch.compiler.set_stance("fail_on_recompile" if seed > 1 else "default"):
            value = loss(x, **named(labels, given))
            value.backward()
        again = x.detach().clone().requires_grad_()
        expected = plain(again, **named(labels, given))
        expected.backward()
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(x.grad, again.grad)


# several processes


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory):
    """What two processes found that met over gloo."""
    folder = tmp_path_factory.mktemp("meeting")
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error", "-m", "tests.helpers.torch_processes", str(folder)]
    running = [
        subprocess.Popen([*command, str(rank)], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    errors = [process.communicate(timeout=PATIENCE)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], "\n".join(errors)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in (0, 1)]


@pytest.mark.parametrize("name", torch_processes.LOSSES)
def test_two_processes_are_one_batch(name, two_processes):
    expected = torch_processes.train(name, torch_processes.make_model())
    assert expected["gradients"].abs().max() > 1e-3
    for found in two_processes:
        torch.testing.assert_close(found[name]["losses"], expected["losses"], rtol=0, atol=1e-10)
        torch.testing.assert_close(found[name]["gradients"], expected["gradients"], rtol=0, atol=1e-10)
        torch.testing.assert_close(found[name]["state"], expected["state"], rtol=0, atol=1e-10)


def test_processes_that_do_not_wait_and_groups_that_are_not_numbered(two_processes):
    for rank, found in enumerate(two_processes):
        x, domain, label = torch_processes.share(0, rank)
        own = cft.cfd(x, domain, label, eps=1e-6)
        torch.testing.assert_close(found["alone"]["quiet"], own)
        torch.testing.assert_close(found["alone"]["rested"], own)
        assert found["alone"]["refusal"] == (
            "a loss of several processes needs num_groups, so that all processes number the groups alike: pass how"
            " many there are"
        )


def test_two_compiled_processes(two_processes):
    x, domain, label = torch_processes.share(0)
    x.requires_grad_()
    value = torch_processes.make_loss("given")(x, domain=domain, label=label)
    value.backward()
    for found in two_processes:
        torch.testing.assert_close(found["compiled"]["value"], value.detach())
    gradient = torch.cat([found["compiled"]["gradient"] for found in two_processes])
    torch.testing.assert_close(gradient, 2 * x.grad)  # of the losses of both: an average over processes halves it


# what is refused


def test_bad_options_are_refused_in_one_sentence(refuses):
    with refuses("mode='apart' is not known: choose 'fuse' or 'separate'"):
        CrossFusionLoss(mode="apart")
    with refuses("weights='even'"):
        CrossFusionLoss(weights="even")
    with refuses("eps=-1"):
        CrossFusionLoss(eps=-1)
    with refuses("num_groups=1.5 must be a whole number"):
        CrossFusionLoss(num_groups=1.5)
    with refuses("num_given=2 goes with given"):
        CrossFusionLoss(num_given=2)
    with refuses("both 'domain'"):
        CrossFusionLoss("domain", "domain")
    with refuses("between=3 must be the name of a factor"):
        CrossFusionLoss(3)
    for memory in (1.0, -0.1, True, "long", math.nan):
        with refuses("memory=.* must be a share from 0"):
            CrossFusionLoss(memory=memory)
    with refuses("memory=0.9 needs num_groups"):
        CrossFusionLoss(memory=0.9)
    kept = CrossFusionLoss(num_groups=2, memory=np.float32(0.5)).past
    assert kept is not None
    with refuses("memory=0.9 needs num_given"):
        CrossFusionLoss(given="label", num_groups=2, memory=0.9)


def test_bad_calls_are_refused_in_one_sentence(refuses):
    x, labels, given = batch()
    loss = CrossFusionLoss("domain", "label", memory=0.5, **NUMBERS)
    with refuses(r"needs the label of each row: call it as loss\(x, domain=..., label=...\)"):
        loss(x, domain=labels)
    with refuses(r"does not use label: call it as loss\(x, domain=...\), or make it with given='label'"):
        CrossFusionLoss()(x, domain=labels, label=given)
    with refuses(r"label must be whole numbers of shape \(24,\), not torch.int64 of shape \(3,\)"):
        loss(x, domain=labels, label=given[:3])
    with refuses("domain has numbers up to 3, beyond num_groups=3"):
        loss(x, domain=labels + 1, label=given)
    loss(x, domain=labels, label=given)
    with refuses("x has 2 features, but memory holds 3"):
        loss(x[:, :2], domain=labels, label=given)


def test_it_prints_its_options():
    loss = CrossFusionLoss("site", "label", mode="separate", memory=0.9, **NUMBERS)
    assert "between='site', given='label', mode='separate', num_groups=3" in repr(loss)
    assert "memory=0.9" in repr(loss)
