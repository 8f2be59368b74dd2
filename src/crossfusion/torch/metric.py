"""The distance of everything seen so far, as a metric of torchmetrics."""

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import torch
from torch import Tensor

from crossfusion._base import InputError, arg, check_option, check_whole, declare_operators, load
from crossfusion.fusion import WEIGHTS, check_eps
from crossfusion.torch.functional import check_rows, compute_batch_moments, compute_distance
from crossfusion.torch.moments import CellMoments, merge

declare_operators()  # torchmetrics imports torchvision where it is installed
load("torchmetrics", "torchmetrics", "torch", "CrossFusionDistance")

from torchmetrics import Metric  # noqa: E402

MERGE_REMEDY = "merge metrics of the same groups, strata and features"


class CrossFusionDistance(Metric):  # type: ignore[misc]
    r"""Cross-Fusion Distance between groups, accumulated over all batches and processes.

    The state is one tensor of groups × (dim + 2) numbers, with strata as a first axis: count, centered sum of squares
    and mean of each group (and stratum). It adds up exactly, so neither the split into batches nor the number of
    processes changes the result.

    Parameters
    ----------
    num_groups : int
        Number of groups, numbered from 0.
    dim : int
        Number of features.
    num_given : int, optional
        Number of strata, numbered from 0: groups are compared within strata, and `update` takes `given`. With 0,
        `given` is accepted and ignored, for collections that hold metrics of both kinds.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    unbiased : bool
        Subtract the part of the distance that is due to sampling; see :func:`crossfusion.torch.cfd`.
    eps : float
        A variance added to the variance within groups; see :func:`crossfusion.torch.cfd`.
    **kwargs : Any
        Arguments of ``torchmetrics.Metric``, such as ``process_group`` and ``sync_on_compute``.

    Notes
    -----
    The state is float64, whatever the type of the rows. For a device without float64, call
    ``set_dtype(torch.float32)`` before moving the metric there. Narrower types are not used: they cannot count beyond a
    few thousand rows.

    As with other metrics, ``persistent(True)`` includes the state in ``state_dict()``, and the value of ``forward`` has
    a gradient.

    Examples
    --------
    >>> import torch
    >>> from crossfusion.torch import CrossFusionDistance
    >>> metric = CrossFusionDistance(num_groups=2, dim=1)
    >>> metric.update(torch.tensor([[0.0], [4.0]]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([[2.0], [6.0]]), torch.tensor([0, 1]))
    >>> f"{metric.compute().item():.4f}"  # log((1 + 4) / 1)
    '1.6094'
    """

    is_differentiable = True
    higher_is_better = None  # domains should be close, classes apart
    full_state_update = False
    moments: Tensor

    def __init__(
        self,
        num_groups: int,
        dim: int,
        *,
        num_given: int | None = None,
        weights: str = "pooled",
        unbiased: bool = False,
        eps: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_whole(num_groups, "num_groups")
        check_whole(dim, "dim")
        if num_given is not None:
            check_whole(num_given, "num_given", least=0)
        check_option(weights, WEIGHTS, "weights")
        check_eps(eps)
        self.num_groups, self.num_given, self.dim = num_groups, num_given, dim
        self.weights, self.unbiased, self.eps = weights, unbiased, eps
        shape = (num_given, num_groups) if num_given else (num_groups,)  # of its own, lest a collection merges two
        self.add_state("moments", torch.zeros(*shape, dim + 2, dtype=torch.float64), dist_reduce_fx=add_packed)

    def update(self, x: Tensor, labels: Tensor, given: Tensor | None = None) -> None:
        """Add a batch.

        Parameters
        ----------
        x : tensor of shape (rows, dim)
            Floating point.
        labels : tensor of shape (rows,)
            The group of each row as an integer. Rows with a negative label are left out.
        given : tensor of shape (rows,), optional
            The stratum of each row, if `num_given` is positive.
        """
        self._check_given(given)
        check_rows(x)
        state = self.moments
        rows = x.to(torch.promote_types(x.dtype, state.dtype))
        found, _ = compute_batch_moments(
            rows, labels, given if self.num_given else None, self.num_groups, self.num_given
        )
        if x.shape[1] != self.dim:
            raise InputError(
                "x",
                problem=f"has {x.shape[1]} features, but the metric is for {arg('dim', self.dim)}",
                remedy="make one for each",
            )
        self.moments = add_packed(torch.stack([state, pack(found).to(state.dtype).reshape(state.shape)]))

    def _check_given(self, given: Tensor | None) -> None:
        if self.num_given and given is None:
            raise InputError(
                "given",
                problem="is missing",
                remedy=f"{arg('num_given', self.num_given)} asks for the stratum of each row",
            )
        if self.num_given is None and given is not None:
            raise InputError(
                "given",
                problem=f"needs {arg('num_given')}, the number of strata",
                remedy=f"pass it, or leave {arg('given')} out",
            )

    def compute(self) -> Tensor:
        """Return the distance over all rows seen by all processes.

        Returns
        -------
        tensor
            A scalar. Groups without rows are ignored. NaN if no stratum holds rows of two groups, since nothing is
            compared then.
        """
        found = unpack(self.moments)
        value = compute_distance(found, self.num_given or 1, self.weights, self.unbiased, self.eps)
        present = (found.count > 0).reshape(self.num_given or 1, -1).sum(dim=1)
        return torch.where((present > 1).any(), value, torch.nan)

    def merge_state(self, incoming_state: "dict[str, Any] | CrossFusionDistance") -> None:
        """Add the state of another metric.

        Parameters
        ----------
        incoming_state : CrossFusionDistance or dict
            A metric of the same groups, strata and dim, or its state.
        """
        if isinstance(incoming_state, CrossFusionDistance):
            self._check_same(incoming_state)
        elif isinstance(incoming_state, dict):
            self._check_state(incoming_state.get("moments"))
        super().merge_state(incoming_state)
        self._renew()

    def _check_same(self, other: "CrossFusionDistance") -> None:
        for name in ("num_groups", "num_given", "dim"):
            own, its = getattr(self, name), getattr(other, name)
            if (own or None) != (its or None):
                raise InputError(
                    "incoming_state", problem=f"has {name}={its}, this metric {name}={own}", remedy=MERGE_REMEDY
                )

    def _check_state(self, moments: Tensor | None) -> None:
        if moments is None:
            raise InputError(
                "incoming_state", problem="has no moments", remedy="pass metric.metric_state, or the metric itself"
            )
        if moments.shape != self.moments.shape:
            shapes = tuple(moments.shape), tuple(self.moments.shape)
            raise InputError(
                "incoming_state",
                problem=f"has moments of shape {shapes[0]}, this metric of {shapes[1]}",
                remedy=MERGE_REMEDY,
            )

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one value or several.

        Parameters
        ----------
        val : tensor or sequence of tensors, optional
            Values of `forward` or `compute`; by default the value of `compute`.
        ax : matplotlib.axes.Axes, optional
            Where to draw.

        Returns
        -------
        tuple
            Figure and axes.
        """
        return self._plot(val, ax)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        saved, shape = state_dict.get(f"{prefix}moments"), tuple(self.moments.shape)
        if saved is not None and tuple(saved.shape) != shape:  # the last of the arguments collects what is wrong
            args[-1].append(f"{prefix}moments has shape {tuple(saved.shape)}, this metric {shape}: make it alike")
            return
        super()._load_from_state_dict(state_dict, prefix, *args)
        self._renew()

    def _renew(self) -> None:
        """Forget the value of the state before, and that nothing was seen."""
        self._computed = None
        self._update_count = max(self.update_count, int(bool(self.moments[..., 0].any())))

    def _apply(self, fn: Callable[[Tensor], Tensor], *args: Any, **kwargs: Any) -> Any:
        """Move the state; where it would become too narrow to count in, to float32."""

        @wraps(fn)  # torchmetrics tells moves from casts by their names
        def move(values: Tensor) -> Tensor:
            found = fn(values)
            narrow = found.is_floating_point() and torch.finfo(found.dtype).bits < 32
            return values.to(found.device, torch.float32) if narrow else found

        return super()._apply(move, *args, **kwargs)


def pack(moments: CellMoments) -> Tensor:
    """Count, sum of squares and mean of each cell side by side; an empty cell is all 0."""
    mean = torch.where(moments.count.unsqueeze(1) > 0, moments.mean + moments.centre, 0)
    return torch.cat([moments.count.unsqueeze(1), moments.sumsq.unsqueeze(1), mean], dim=1)


def unpack(state: Tensor) -> CellMoments:
    """The moments that were packed, cell after cell."""
    cells = state.flatten(0, -2)
    return CellMoments(cells[:, 0], cells[:, 2:], cells[:, 1], torch.zeros_like(cells[0, 2:]))


def add_packed(states: Tensor) -> Tensor:
    """Sum of packed moments, which are stacked: what batches, metrics and processes add up to."""
    return pack(reduce(merge, map(unpack, states))).reshape(states.shape[1:])
