"""Sums over the processes of a training run, with their gradient."""

from typing import Any

import torch
from torch import Tensor, distributed


def is_distributed() -> bool:
    """Whether this is one of several processes that work together."""
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def sum_processes(values: Tensor) -> Tensor:
    """Sum over all processes, the same in each.

    Its gradient is that of the sum of the results of all processes: if each has the same result, that is their number
    times the gradient of one, of which an average of gradients over processes makes the gradient of one.
    """
    return _ProcessSum.apply(values)  # type: ignore[no-any-return, no-untyped-call]


class _ProcessSum(torch.autograd.Function):
    """A sum whose derivative is a sum; torch.distributed.nn has the same, but deprecates it for private names."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:  # noqa: ARG004
        """Sum of the values of all processes."""
        sums = values.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(sums)
        return sums

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004
        """Sum of the gradients of all processes."""
        return sum_processes(gradient)
