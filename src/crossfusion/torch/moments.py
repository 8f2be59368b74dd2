"""Moments of cells as tensors: differentiable, and adding up over batches and processes."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Total = Callable[[Tensor], Tensor]


class CellMoments(NamedTuple):
    """Count, mean and centered sum of squares (over all features) of each cell; means are relative to `centre`.

    `squares` is the sum of the squared weights of the rows where they do not weigh the same; None: each counts once.
    """

    count: Tensor  # type: ignore[assignment]  # a tuple has a method of that name, which nobody needs here
    mean: Tensor
    sumsq: Tensor
    centre: Tensor
    squares: Tensor | None = None

    def weigh_rows(self) -> Tensor:
        """Weight of the rows of each cell, averaged with these weights: count over it is how many rows there are."""
        if self.squares is None:
            return torch.ones_like(self.count)
        return self.squares / replace_zeros(self.count)


def keep_local(values: Tensor) -> Tensor:
    """Total over the processes where there is one."""
    return values


def compute_cell_moments(x: Tensor, cell: Tensor, num_cells: int, total: Total = keep_local) -> CellMoments:
    """Moments of the rows of each cell, in two passes around a centre; a negative cell leaves its row out.

    `total` adds up over processes. The centre is no part of the derivative: nothing depends on it.
    """
    kept = (cell >= 0).unsqueeze(1)
    rows = torch.where(kept, widen(x), 0)
    ones = kept.to(rows.dtype)
    slot = torch.where(cell < 0, num_cells, torch.where(cell >= num_cells, num_cells + 1, cell))  # beyond: an error
    seen = total(torch.cat([ones.sum(dim=0), rows.detach().sum(dim=0)]))
    centre = seen[1:] / seen[0].clamp(min=1)
    rows = torch.where(kept, rows - centre, 0)
    sums = total(torch.cat([_sum_by_cell(ones, slot, num_cells), _sum_by_cell(rows, slot, num_cells)], dim=1))
    count = sums[:, 0].detach()
    mean = sums[:, 1:] / replace_zeros(count).unsqueeze(1)
    own = torch.cat([mean, mean.new_zeros(1, mean.shape[1])])[slot]
    sumsq = total(_sum_by_cell((rows - own).square().sum(dim=1), slot, num_cells))
    return CellMoments(count, mean, sumsq, centre)


def merge(past: CellMoments, present: CellMoments) -> CellMoments:
    """Moments of both together, cell by cell, around the centre of the present ones (Chan, Golub and LeVeque)."""
    known = (past.count > 0).unsqueeze(1)
    before = torch.where(known, past.mean + (past.centre - present.centre), 0)
    count = past.count + present.count
    share = present.count / replace_zeros(count)
    apart = present.mean - before
    sumsq = past.sumsq + present.sumsq + past.count * share * apart.square().sum(dim=1)
    squares = past.count * past.weigh_rows() + present.count * present.weigh_rows()
    return CellMoments(count, before + share.unsqueeze(1) * apart, sumsq, present.centre, squares)


def widen(x: Tensor) -> Tensor:
    """The same values in a type to add them up in: float32 for narrower ones."""
    return x.float() if torch.finfo(x.dtype).bits < 32 else x


def replace_zeros(values: Tensor) -> Tensor:
    """The same values with 1 for 0, to divide by."""
    return torch.where(values == 0, 1, values)


def _sum_by_cell(values: Tensor, slot: Tensor, num_cells: int) -> Tensor:
    """Sum of the values of each cell; the last slot takes what is left out."""
    sums = values.new_zeros(num_cells + 1, *values.shape[1:])
    return sums.index_add(0, slot, values)[:num_cells]
