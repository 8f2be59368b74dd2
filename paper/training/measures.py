"""What a trained network is worth: accuracy where labels were held back, and how far its features lie apart."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import crossfusion as cf
from crossfusion.torch import cfd
from paper.training.network import Network
from paper.training.settings import Settings
from paper.training.tasks import Rows, Split

MOST = 400  # rows of a domain in distances that grow with their square

Array = NDArray[np.float64]


def measure_network(network: Network, ready: Split, settings: Settings, adapts: bool) -> dict[str, float]:
    """Accuracies and distances of features, all on rows that were not trained on.

    Parameters
    ----------
    network : Network
        As it was trained.
    ready : Ready
        Rows of the sources that were held out, and of the target.
    settings : Settings
        Every choice.
    adapts : bool
        Whether the target's features were pulled towards the sources'; else distances are those of the sources.

    Returns
    -------
    dict
        ``target`` and ``source``, accuracies; ``confident``, the share of the target's rows whose prediction would pass
        for a label, and ``right``, the accuracy of those; ``cfd``, ``cfd_given_label``, ``energy``, ``energy_centred``.
    """
    with torch.no_grad():
        held, target = network(ready.held.x), network(ready.test.x)
    probability, guess = target[1].softmax(dim=1).max(dim=1)
    sure = probability >= settings.confidence
    is_right = guess == ready.test.label
    rows = _join(held[0], ready.held, target[0], ready.test) if adapts else (held[0], ready.held)
    return {
        "target": _share(is_right),
        "source": _share(held[1].argmax(dim=1) == ready.held.label),
        "confident": _share(sure),
        "right": _share(is_right[sure]),
        **distances(*rows),
    }


def _share(values: Tensor) -> float:
    return float(values.double().mean()) if len(values) else math.nan


def _join(a: Tensor, of_a: Rows, b: Tensor, of_b: Rows) -> tuple[Tensor, Rows]:
    return torch.cat([a, b]), Rows(*(torch.cat(values) for values in zip(of_a, of_b, strict=True)))


def distances(features: Tensor, rows: Rows) -> dict[str, float]:
    """Distances between the features of domains, none of which depends on their scale.

    Parameters
    ----------
    features : tensor of shape (rows, dim)
        Of some rows.
    rows : Rows
        Their labels and domains.

    Returns
    -------
    dict
        Unbiased CFD of the domains, the same within labels, and the energy distance, averaged over pairs of domains,
        of features with a variance of 1 within domains: as they are, and with the mean of each domain taken off, which
        is what CFD does not see.
    """
    x = features.double()
    codes, domain = torch.unique(rows.domain, return_inverse=True)
    parts = [x[domain == k].numpy() for k in range(len(codes))]
    within = sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts) / len(x)
    if not within > 0:  # all rows of a domain at one place
        return dict.fromkeys(("cfd", "cfd_given_label", "energy", "energy_centred"), math.nan)
    scaled = [part[:MOST] / math.sqrt(within) for part in parts]
    return {
        "cfd": float(cfd(x, domain, unbiased=True)),
        "cfd_given_label": float(cfd(x, domain, rows.label, unbiased=True)),
        "energy": _energy(scaled),
        "energy_centred": _energy([part - part.mean(axis=0) for part in scaled]),
    }


def _energy(parts: list[Any]) -> float:
    return float(np.mean([cf.distance("energy", a, b) for a, b in combinations(parts, 2)]))
