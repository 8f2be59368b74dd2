"""Noise of mean 0, whose variance is 1 in each feature or on the average of all, of several shapes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from paper.arrays import FloatArray

Rows = NDArray[np.float32]

MODE = 0.8  # distance of the mixture's modes from its centre, in each feature
APART = 4.0  # standard deviations between the modes that overlap hardly, but do not dominate


def normal(draw: Generator, rows: int, dim: int) -> Rows:
    """Independent standard normal features."""
    return draw.standard_normal((rows, dim), np.float32)


def heavy(draw: Generator, rows: int, dim: int) -> Rows:
    """Independent features with Student's t of five degrees of freedom, scaled to variance 1."""
    return normal(draw, rows, dim) * _scale(draw, (rows, dim))


def elliptical(draw: Generator, rows: int, dim: int) -> Rows:
    """The same with one chi-square for all features of a row, so that a few rows hold much of the variance."""
    return normal(draw, rows, dim) * _scale(draw, (rows, 1))


def _scale(draw: Generator, shape: tuple[int, int]) -> Rows:
    """Factors that turn normal values into Student's t of five degrees of freedom and variance 1."""
    return np.asarray(np.sqrt(np.float32(1.5) / draw.standard_gamma(2.5, shape, np.float32)))


def two_modes(draw: Generator, rows: int, dim: int) -> Rows:
    """Two modes four standard deviations apart, along all features."""
    side = APART / 2 * dim**-0.5 * np.where(draw.random((rows, 1)) < 0.5, 1, -1)
    return _scale_to(normal(draw, rows, dim) + side, dim / (dim + APART**2 / 4))


def three_modes(draw: Generator, rows: int, dim: int) -> Rows:
    """Three modes, each off the others along a feature of its own."""
    found = normal(draw, rows, dim)
    found[np.arange(rows), draw.integers(0, 3, rows)] += APART
    found[:, :3] -= APART / 3
    return _scale_to(found, dim / (dim + 2 * APART**2 / 3))


def dominated(draw: Generator, rows: int, dim: int) -> Rows:
    """Two modes at ±0.8 in every feature, each of standard deviation 0.6: one direction holds most of the variance."""
    side = np.where(draw.random((rows, 1)) < 0.5, MODE, -MODE)
    return _scale_to(normal(draw, rows, dim), 1 - MODE**2) + side.astype(np.float32)


def _scale_to(rows: NDArray[np.floating], variance: float) -> Rows:
    return np.asarray(rows * math.sqrt(variance), np.float32)


def _alike(dim: int) -> FloatArray:
    return np.eye(dim)


def _of_two_modes(dim: int) -> FloatArray:
    return np.asarray((np.eye(dim) + APART**2 / 4 / dim) * dim / (dim + APART**2 / 4))


def _of_three_modes(dim: int) -> FloatArray:
    found = np.eye(dim)
    found[:3, :3] += APART**2 * (np.eye(3) / 3 - 1 / 9)
    return found * dim / (dim + 2 * APART**2 / 3)


def _covariance_of_dominated(dim: int) -> FloatArray:
    return (1 - MODE**2) * np.eye(dim) + MODE**2


@dataclass(frozen=True)
class Family:
    """A shape of noise.

    Parameters
    ----------
    draw : function
        Makes so many rows of so many features.
    covariance : function
        Matrix of so many features.
    """

    draw: Callable[[Generator, int, int], Rows]
    covariance: Callable[[int], FloatArray] = _alike


FAMILIES: Mapping[str, Family] = {
    "normal": Family(normal),
    "t5": Family(heavy),
    "two modes": Family(two_modes, _of_two_modes),
    "three modes": Family(three_modes, _of_three_modes),
    "dominated": Family(dominated, _covariance_of_dominated),
    "elliptical t5": Family(elliptical),
}
