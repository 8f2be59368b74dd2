"""Moments of cells as tensors: differentiable, and adding up over batches and processes."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Total = Callable[[Tensor], Tensor]


class CellMoments(NamedTuple):
    """Count, mean and centred sum of squares (over all features) of each cell; means are relative to `centre`."""

    count: Tensor
    mean: Tensor
    sumsq: Tensor
    centre: Tensor


def alone(values: Tensor) -> Tensor:
    """Total over the processes where there is one."""
    return values


def cell_moments(x: Tensor, cell: Tensor, num_cells: int, total: Total = alone) -> CellMoments:
    """Moments of the rows of each cell, in two passes around a centre; a negative cell leaves its row out.

    `total` adds up over processes. The centre is no part of the derivative: nothing depends on it.
    """
    kept = (cell >= 0).unsqueeze(1)
    rows = torch.where(kept, accumulating(x), 0)
    slot = torch.where(cell < 0, num_cells, torch.where(cell >= num_cells, num_cells + 1, cell))  # beyond: an error
    seen = total(kept.sum().to(rows.dtype))
    centre = total(rows.detach().sum(dim=0)) / seen.clamp(min=1)
    rows = torch.where(kept, rows - centre, 0)
    count = total(_summed(torch.ones_like(rows[:, 0]), slot, num_cells))
    mean = total(_summed(rows, slot, num_cells)) / count.clamp(min=1).unsqueeze(1)
    own = torch.cat([mean, torch.zeros_like(mean[:1])])[slot]
    sumsq = total(_summed((rows - own).square().sum(dim=1), slot, num_cells))
    return CellMoments(count, mean, sumsq, centre)


def accumulating(x: Tensor) -> Tensor:
    """The same values in a type to add them up in: float32 for narrower ones."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _summed(values: Tensor, slot: Tensor, num_cells: int) -> Tensor:
    """Sum of the values of each cell; the last slot takes what is left out."""
    sums = values.new_zeros(num_cells + 1, *values.shape[1:])
    return sums.index_add(0, slot, values)[:num_cells]
