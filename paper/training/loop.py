"""Training: a warm-up that all methods share, then the same steps for each of them with its penalty."""

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from paper.training.network import Network, reproducible
from paper.training.penalties import Adversary, penalty_of
from paper.training.settings import METHODS, NONE, Settings
from paper.training.tasks import UNKNOWN, Rows, Split

SLOPE = 10.0  # of the growth of the penalty (Ganin et al. 2016)
CALIBRATED = 20  # batches by which the size of a penalty is found
QUICKER = 10  # times the rate of the network that an adversary learns at: one that lags behind drives domains apart
LEAST = 1e-6  # size that a penalty is taken to have at least
Added = Callable[[Tensor, Tensor, Rows, float], Tensor]
UNITS = (NONE, "dann")  # methods that are measured in nats as they are


@dataclass
class State:
    """A network as it is being trained."""

    network: Network
    optimiser: torch.optim.Optimizer


class Batches(NamedTuple):
    """Rows of each step, the same for all methods."""

    train: list[Rows]
    rows: list[Any]

    def at(self, step: int) -> Rows:
        """Rows of all domains."""
        parts = [Rows(*(values[rows[step]] for values in own)) for own, rows in zip(self.train, self.rows, strict=True)]
        return Rows(*(torch.cat(values) for values in zip(*parts, strict=True)))


def batches(train: list[Rows], steps: int, batch: int, seed: int) -> Batches:
    """Draw rows of each domain for each step, with replacement."""
    draw = np.random.default_rng([seed, 1])
    return Batches(train, [torch.from_numpy(draw.integers(len(own.x), size=(steps, batch))) for own in train])


def train_all(ready: Split, settings: Settings, seed: int) -> Iterator[tuple[str, float, Network]]:
    """Networks of all methods and strengths, trained one after the other from the same warm-up.

    Parameters
    ----------
    ready : Ready
        Rows to train on; those of a target have no labels.
    settings : Settings
        Every choice.
    seed : int
        Of weights and batches.

    Yields
    ------
    tuple
        Method, strength, and network.
    """
    drawn = batches(ready.train, settings.warm_up + settings.steps, settings.batch, seed)
    with reproducible(seed):
        start = new_state(ready, settings)
        for step in range(settings.warm_up):
            learn(start, drawn.at(step))
    for method in METHODS:
        unit = 1.0 if method in UNITS else 1 / size(start, method, drawn, ready.classes, settings)
        for strength in (0.0,) if method == NONE else settings.strengths:
            with reproducible(seed):
                yield method, strength, _finish(start, method, strength * unit, drawn, ready.classes, settings)


def new_state(ready: Split, settings: Settings) -> State:
    """A network before training."""
    network = Network(tuple(ready.held.x.shape[1:]), settings.width, ready.classes)
    return State(network, torch.optim.Adam(network.parameters(), lr=settings.rate))


def _finish(start: State, method: str, weight: float, drawn: Batches, classes: int, settings: Settings) -> Network:
    state = copy_state(start, settings)
    penalise = make_penalty(state, method, len(drawn.train), classes, settings)
    for k in range(settings.steps):
        grown = 2 / (1 + math.exp(-SLOPE * (k + 1) / settings.steps)) - 1
        learn(state, drawn.at(settings.warm_up + k), penalise, weight * grown)
    return state.network


def copy_state(start: State, settings: Settings) -> State:
    """A copy of the network and of what the optimiser remembers."""
    network = copy.deepcopy(start.network)
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.rate)
    optimiser.load_state_dict(copy.deepcopy(start.optimiser.state_dict()))
    return State(network, optimiser)


def make_penalty(
    state: State, method: str, domains: int, classes: int, settings: Settings, *, unbiased: bool = True
) -> Added | None:
    """What a method adds to the loss; an adversary joins the network in training."""
    if method == NONE:
        return None
    if method == "dann":
        adversary = Adversary(settings.width, domains)
        state.optimiser.add_param_group({"params": list(adversary.parameters()), "lr": QUICKER * settings.rate})
        return lambda features, _scores, rows, strength: adversary(features, rows.domain, strength)
    penalty = penalty_of(method, domains, classes, unbiased=unbiased)

    def add_penalty(features: Tensor, scores: Tensor, rows: Rows, strength: float) -> Tensor:
        label = add_guesses(scores, rows.label, settings.confidence) if method == "cfd_given_label" else rows.label
        return strength * penalty(features, rows.domain, label)

    return add_penalty


def add_guesses(scores: Tensor, label: Tensor, confidence: float) -> Tensor:
    """Labels, and where there is none the network's own if it is confident; nobody else's are at hand."""
    probability, guess = scores.detach().softmax(dim=1).max(dim=1)
    guessed = torch.where(probability >= confidence, guess, UNKNOWN)
    return torch.where(label == UNKNOWN, guessed, label)


def size(start: State, method: str, drawn: Batches, classes: int, settings: Settings) -> float:
    """Mean of a penalty over some batches, before it is trained against; never 0, as sampling alone has a size."""
    penalise = make_penalty(start, method, len(drawn.train), classes, settings, unbiased=False)
    assert penalise is not None
    with reproducible(0), torch.no_grad():
        steps = map(drawn.at, range(settings.warm_up, settings.warm_up + min(CALIBRATED, settings.steps)))
        outputs = ((start.network(rows.x), rows) for rows in steps)
        found = [float(penalise(features, scores, rows, 1.0)) for (features, scores), rows in outputs]
    return max(float(np.mean(found)), LEAST)


def learn(state: State, rows: Rows, penalise: Added | None = None, strength: float = 0.0) -> None:
    """One step; without a penalty, rows that have no label are not looked at."""
    if penalise is None:
        rows = select_labeled(rows)
    features, scores = state.network(rows.x)
    loss = nn.functional.cross_entropy(scores, rows.label, ignore_index=UNKNOWN)
    if penalise is not None:
        loss = loss + penalise(features, scores, rows, strength)
    state.optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    state.optimiser.step()


def select_labeled(rows: Rows) -> Rows:
    """Rows that have a label."""
    keep = rows.label != UNKNOWN
    return Rows(*(values[keep] for values in rows))
