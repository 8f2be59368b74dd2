"""Batches of tensors with groups and strata."""

from typing import Any

import numpy as np
import torch


def batch(
    seed: int = 0,
    rows: int = 24,
    dim: int = 3,
    groups: int = 3,
    parts: int = 2,
    dtype: Any = torch.float64,
    offset: float = 0.0,
    grad: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Rows that differ between groups and strata, and their codes."""
    draw = np.random.default_rng(seed)
    labels, given = draw.integers(groups, size=rows), draw.integers(parts, size=rows)
    x = draw.normal(size=(rows, dim)) + 0.7 * labels[:, None] + given[:, None] + offset
    return torch.tensor(x, dtype=dtype).requires_grad_(grad), torch.tensor(labels), torch.tensor(given)
