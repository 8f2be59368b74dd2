"""Handwritten digits under two simulated scanners."""

import numpy as np
from numpy.typing import NDArray

from paper.checks import load_library

GAMMA, CONTRAST, OFFSET = 0.7, 0.7, 0.2  # of the second scanner: paler, and on a grey ground
SHADING = 0.3  # by which its light grows from one side to the other
NOISE = 0.08
KERNEL = (0.25, 0.5, 0.25)  # of its blur, along both axes
SCANNERS = ("scanner A", "scanner B")

Images = NDArray[np.float32]


def load_digits() -> tuple[Images, NDArray[np.int64]]:
    """Images of scikit-learn, of shape (rows, 8, 8) from 0 to 1, and the digit on each."""
    bunch = load_library("sklearn.datasets", "scikit-learn", "reproduce,torch", "the digits").load_digits()
    return np.asarray(bunch.images / 16, np.float32), np.asarray(bunch.target, np.int64)


def simulate_scan(images: Images, seed: int = 0) -> Images:
    """The same images from another scanner: gamma, contrast, blur, shading, noise.

    Parameters
    ----------
    images : array of shape (rows, height, width)
        From 0 to 1.
    seed : int
        Of the noise; all else is the same for every image.

    Returns
    -------
    array
        Of the same shape.
    """
    toned = OFFSET + CONTRAST * images**GAMMA
    light = 1 + SHADING * np.linspace(-1, 1, images.shape[2])
    noise = np.random.default_rng(seed).normal(scale=NOISE, size=images.shape)
    return np.asarray(blur(blur(toned, 1), 2) * light + noise, np.float32)


def blur(images: NDArray[np.floating], axis: int) -> NDArray[np.floating]:
    """Images blurred along one axis; at the border its own values go on."""
    ends = [(1, 1) if k == axis else (0, 0) for k in range(images.ndim)]
    padded = np.pad(images, ends, mode="edge")
    size = images.shape[axis]
    parts = (share * padded.take(range(k, k + size), axis) for k, share in enumerate(KERNEL))
    return np.asarray(sum(parts))
