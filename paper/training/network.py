"""The network, the same for all methods."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """A small network: features, and the scores of the labels from them.

    Images pass two convolutions, vectors none. There is no normalisation by batches, which aligns domains by itself.

    Parameters
    ----------
    shape : tuple of int
        Of one row: (dim,) or (height, width).
    width : int
        Number of features.
    classes : int
        Number of labels.
    """

    def __init__(self, shape: tuple[int, ...], width: int, classes: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        size = shape[0]
        if len(shape) == 2:
            layers = [nn.Unflatten(1, (1, shape[0])), *_convolution(1, 16), *_convolution(16, 32), nn.Flatten()]
            size = 32 * (shape[0] // 4) * (shape[1] // 4)
        self.body = nn.Sequential(*layers, nn.Linear(size, width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Features and scores."""
        features = self.body(x)
        return features, self.head(features)


def _convolution(before: int, after: int) -> list[nn.Module]:
    return [nn.Conv2d(before, after, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """The same numbers for a seed on any machine's cores; what PyTorch was set to is left as it was."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # sums of several threads depend on how many there are
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)
