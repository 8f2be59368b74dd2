"""Training with a loss over several processes: a program for each of them, and the same steps in one process."""

import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

from crossfusion._base.errors import InputError
from crossfusion.torch import CrossFusionLoss

STEPS = 4
LOSSES: dict[str, dict[str, Any]] = {
    "plain": {"given": None, "num_given": None},
    "given": {},
    "balanced": {"weights": "balanced", "unbiased": True},
    "separate": {"mode": "separate", "weights": "balanced"},
    "memory": {"memory": 0.8},
    "unbiased memory": {"memory": 0.8, "unbiased": True, "mode": "separate"},
}


def make_loss(name):
    options: dict[str, Any] = {"given": "label", "num_groups": 3, "num_given": 2}
    return CrossFusionLoss("domain", **options | LOSSES[name])


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4)).double()


def share(step, rank=None):
    """The rows of one process, or of all: 0 has fewer, none in one step, and nothing of the last group."""
    draw = torch.Generator().manual_seed(step)
    domain = torch.tensor([0, 1] * 5 + [0, 1, 2] * 7)
    x = torch.randn(31, 5, generator=draw, dtype=torch.float64) + domain[:, None]
    label = torch.randint(2, (31,), generator=draw)
    split = 0 if step == 2 else 10
    rows = {None: slice(None), 0: slice(split), 1: slice(split, None)}[rank]
    return x[rows], domain[rows], label[rows]


def train(name, model, rank=None):
    """Losses, and the gradients of all parameters, of a few steps."""
    loss = make_loss(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses, gradients = [], []
    for step in range(STEPS):
        x, domain, label = share(step, rank)
        factors = {"domain": domain} | ({} if loss.given is None else {"label": label})
        optimizer.zero_grad()
        value = loss(model(x), **factors)
        value.backward()
        losses.append(value.detach())
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
        optimizer.step()
    return {"losses": torch.stack(losses), "gradients": torch.stack(gradients), "state": loss.state_dict()}


def alone(rank):
    """What one process says where it does not wait for others, or does not know their groups."""
    x, domain, label = share(0, rank)
    factors = {"domain": domain, "label": label}
    quiet = CrossFusionLoss("domain", "label", sync=False)(x, **factors)
    rested = CrossFusionLoss("domain", "label").eval()(x, **factors)
    try:
        CrossFusionLoss("domain", "label")(x, **factors)
    except InputError as problem:
        return {"quiet": quiet, "rested": rested, "refusal": str(problem)}


def compiled(rank):
    """Value and gradient of the rows of one process, compiled."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # what the compiler does to autograd functions
    x, domain, label = share(0, rank)
    x.requires_grad_()
    value = torch.compile(make_loss("given"), backend="aot_eager", fullgraph=True)(x, domain=domain, label=label)
    value.backward()
    return {"value": value.detach(), "gradient": x.grad}


def main(folder, rank):
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    found = {name: train(name, DistributedDataParallel(make_model()), rank) for name in LOSSES}
    found |= {"alone": alone(rank), "compiled": compiled(rank)}
    torch.save(found, Path(folder) / f"{rank}.pt")
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], int(sys.argv[2]))
