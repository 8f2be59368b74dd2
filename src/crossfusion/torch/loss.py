"""A loss that fuses or separates groups."""

from typing import Any

import torch
from torch import Tensor, nn

from crossfusion._base import InputError, arg, check_fraction, check_option, check_whole
from crossfusion.fusion import WEIGHTS, check_eps, check_strata
from crossfusion.torch.functional import compute_batch_moments, compute_distance
from crossfusion.torch.memory import Memory
from crossfusion.torch.moments import Total, keep_local
from crossfusion.torch.processes import is_distributed, sum_processes

MODES = ("fuse", "separate")


class CrossFusionLoss(nn.Module):
    r"""Cross-Fusion Distance as a loss: fuse domains given the class, or separate classes.

    Call it with a batch and the factors by name: ``loss(x, domain=domain, label=label)``.

    Parameters
    ----------
    between : str
        The factor whose groups are compared.
    given : str, optional
        The factor to adjust for: ``CrossFusionLoss("domain", given="label")`` fuses domains without fusing classes that
        domains hold in different shares.
    mode : {"fuse", "separate"}
        "fuse" minimizes CFD, which is 0 if the means are equal. "separate" minimizes the score CFS = exp(-CFD), the
        share of the variance within groups, which is bounded: 1 if groups are fused, 0 if they are separated.
    num_groups, num_given : int, optional
        Number of groups and of strata, numbered from 0. Needed for `memory`, for several processes, and for
        :func:`torch.compile` to make one graph.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    unbiased : bool
        Subtract the part of the distance that is due to sampling; see :func:`crossfusion.torch.cfd`.
    eps : float
        A variance added to the variance within groups, in units of `x` squared. It bounds the gradient if groups have
        no variance. Keep it far below the variance of the groups: otherwise shrinking `x` lowers the loss.
    memory : float
        Share of the weight of past batches that remains after each batch, from 0 (no memory) to below 1. The effective
        number of rows is 1 / (1 - memory) times that of a batch.
    sync : bool
        Whether the rows of all processes of ``torch.distributed`` form one batch.

    Notes
    -----
    *Memory.* The moments (count, mean, sum of squares) of each group are kept in the state of the module and merged
    with those of the batch. Past rows have no gradient. The gradient of the batch is multiplied by the number of all
    rows over its own, as if past rows moved in the same way, so `memory` changes the bias of the loss but not its
    strength. Past means lag behind: keep 1 / (1 - memory) batches short compared with the time in which the network
    changes.

    *Several processes.* Moments and their gradients are summed over processes. Each process returns the loss of the
    whole batch, and the mean of gradients over processes, as DistributedDataParallel computes it, is the gradient of
    the whole batch. Without DistributedDataParallel, average the gradients; do not sum them. All processes must call
    the loss and backward; a process may have no rows.

    *Evaluation.* After ``eval()`` the loss uses only the rows passed in: nothing is remembered, and no process waits.

    Examples
    --------
    >>> import torch
    >>> from crossfusion.torch import CrossFusionLoss
    >>> loss = CrossFusionLoss("domain", given="label", num_groups=2, num_given=3)
    >>> draw = torch.Generator().manual_seed(0)
    >>> domain, label = torch.arange(600) % 2, torch.arange(600) % 3
    >>> x = torch.randn(600, 8, generator=draw) + 3 * label[:, None] + domain[:, None]
    >>> f"{loss(x, domain=domain, label=label).item():.2f}"
    '0.23'
    """

    def __init__(
        self,
        between: str = "domain",
        given: str | None = None,
        *,
        mode: str = "fuse",
        num_groups: int | None = None,
        num_given: int | None = None,
        weights: str = "pooled",
        unbiased: bool = False,
        eps: float = 1e-6,
        memory: float = 0.0,
        sync: bool = True,
    ) -> None:
        super().__init__()
        _check_names(between, given)
        check_option(mode, MODES, "mode")
        check_option(weights, WEIGHTS, "weights")
        check_eps(eps)
        _check_numbers(num_groups, num_given, given)
        self.between, self.given, self.mode = between, given, mode
        self.num_groups, self.num_given = num_groups, num_given
        self.weights, self.unbiased, self.eps, self.sync = weights, unbiased, eps, sync
        self.memory = memory
        self.past = self._make_memory()

    def _make_memory(self) -> Memory | None:
        """Room for past batches, if they are to be remembered."""
        check_fraction(self.memory, "memory", below=1)
        if self.memory == 0:
            return None
        self._check_numbered(f"memory={self.memory}", "batches")
        return Memory(float(self.memory), (self.num_groups or 1) * (self.num_given or 1))

    def _check_numbered(self, what: str, which: str) -> None:
        """Refuse groups that are numbered anew in each batch where batches are to be added up."""
        missing = "num_groups" if self.num_groups is None else "num_given"
        if self.num_groups is None or (self.given is not None and self.num_given is None):
            raise InputError(
                problem=f"{what} needs {arg(missing)}, so that all {which} number the groups alike",
                remedy="pass how many there are",
            )

    def forward(self, x: Tensor, /, **factors: Tensor) -> Tensor:
        """Compute the loss of a batch.

        Parameters
        ----------
        x : tensor of shape (rows, dim)
            The embeddings.
        **factors : tensor of shape (rows,)
            The group of each row under the name of `between`, and its stratum under the name of `given`, as integers.
            Rows with a negative number are left out.

        Returns
        -------
        tensor
            A scalar.
        """
        self._check_factors(factors)
        given = None if self.given is None else factors[self.given]
        numbers = self.num_groups, self.num_given
        names = self.between, self.given
        moments, parts = compute_batch_moments(
            x, factors[self.between], given, *numbers, names=names, total=self._choose_total()
        )
        if self.training and self.past is not None:
            moments = self.past.join(moments)
        value = compute_distance(moments, parts, self.weights, self.unbiased, self.eps)
        return value if self.mode == "fuse" else torch.exp(-value)

    def _choose_total(self) -> Total:
        """How moments add up over processes."""
        if not (self.training and self.sync and is_distributed()):
            return keep_local
        self._check_numbered("a loss of several processes", "processes")
        return sum_processes

    def _check_factors(self, factors: dict[str, Tensor]) -> None:
        """Refuse a call without a factor, or with one that would be passed over."""
        used = [self.between] if self.given is None else [self.between, self.given]
        for name in used:
            if name not in factors:
                raise InputError(
                    problem=f"the loss needs the {name} of each row", remedy=f"call it as loss(x, {_format_call(used)})"
                )
        for name in factors:
            if name not in used:
                raise InputError(
                    problem=f"the loss does not use {name}",
                    remedy=f"call it as loss(x, {_format_call(used)}), or make it with {arg('given', name)}",
                )

    def reset(self) -> None:
        """Forget past batches."""
        if self.past is not None:
            self.past.reset()

    def extra_repr(self) -> str:
        """Return the options for the representation.

        Returns
        -------
        str
            The options by name.
        """
        shown = ("between", "given", "mode", "num_groups", "num_given", "weights", "unbiased", "eps", "memory", "sync")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)


def _check_names(between: Any, given: Any) -> None:
    """Refuse factors that cannot be told apart by name."""
    for option, name in {"between": between, "given": given}.items():
        if not isinstance(name, str) and (option, name) != ("given", None):
            raise InputError(option, name, "must be the name of a factor", "its values are passed to the loss by it")
    if between == given:
        raise InputError(
            problem=f"{arg('between')} and {arg('given')} are both {between!r}",
            remedy="name two factors, or leave {arg('given')} out",
        )


def _check_numbers(num_groups: Any, num_given: Any, given: str | None) -> None:
    """Refuse numbers of groups that are none."""
    for option, number in {"num_groups": num_groups, "num_given": num_given}.items():
        if number is not None:
            check_whole(number, option)
    check_strata(given, num_given)


def _format_call(names: list[str]) -> str:
    """The factors as they are passed."""
    return ", ".join(f"{name}=..." for name in names)
