"""What a loss remembers of the batches before: their moments, fading."""

from typing import Any

import torch
from torch import Tensor, nn

from crossfusion._base import InputError
from crossfusion.torch.moments import CellMoments, merge

MIN_ROWS = 0.01  # rows: what has faded to less is no longer there, lest a group that never comes again keeps its say


class Memory(nn.Module):
    """Moments of past batches, of which each new batch keeps a share.

    Parameters
    ----------
    keep : float
        Share of the weight of the past that is left after each batch, above 0 and below 1.
    num_cells : int
        How many cells there are.
    """

    count: Tensor
    mean: Tensor
    sumsq: Tensor
    centre: Tensor
    squares: Tensor

    def __init__(self, keep: float, num_cells: int) -> None:
        super().__init__()
        self.keep = keep
        self.num_cells = num_cells
        for name in CellMoments._fields:
            self.register_buffer(name, torch.zeros(0))
        self.reset()

    def reset(self) -> None:
        """Forget all batches, and how many features they had."""
        self._fit(self.centre.new_zeros(0))

    def _fit(self, centre: Tensor) -> None:
        """Be empty, for rows like this one."""
        cells, dim = self.num_cells, len(centre)
        shapes = {"count": (cells,), "mean": (cells, dim), "sumsq": (cells,), "centre": (dim,), "squares": (cells,)}
        for name, shape in shapes.items():
            setattr(self, name, centre.new_zeros(shape))

    def join(self, present: CellMoments) -> CellMoments:
        """Moments of the past and of this batch, which is remembered; only the batch has a gradient.

        The gradient is multiplied by all rows over those of the batch: rows of the past would move like these.
        """
        self._check(present)
        past = CellMoments(self.count, self.mean, self.sumsq, self.centre, self.squares)
        rows = present.count.sum()
        scale = (past.count.sum() + rows) / rows.clamp(min=1)
        amplified = present._replace(
            mean=_scale_gradient(present.mean, scale), sumsq=_scale_gradient(present.sumsq, scale)
        )
        together = merge(past, amplified)
        self._keep(together)
        return together

    def _check(self, present: CellMoments) -> None:
        """Take the number of features from the first batch, and refuse others later."""
        if not self.centre.numel():
            self._fit(present.centre)
        if self.centre.shape != present.centre.shape:
            raise InputError(
                "x",
                problem=f"has {len(present.centre)} features, but memory holds {len(self.centre)}",
                remedy="use one loss for each layer, or call reset()",
            )

    def _keep(self, together: CellMoments) -> None:
        """Remember moments, faded by one step; in new tensors, since a compiled backward pass reads the old ones.

        Of a batch with NaN or infinite values nothing is remembered: it would never fade.
        """
        left = torch.where(together.count * self.keep < MIN_ROWS, 0, self.keep)
        assert together.squares is not None  # merged moments have them
        faded = {
            "count": together.count * left,
            "mean": together.mean.detach(),
            "sumsq": together.sumsq.detach() * left,
            "centre": together.centre,
            "squares": together.squares * left.square(),
        }
        finite = faded["mean"].isfinite().all() & faded["sumsq"].isfinite().all()
        for name, values in faded.items():
            setattr(self, name, torch.where(finite, values, getattr(self, name)))

    def _apply(self, fn: Any, recurse: bool = True) -> "Memory":
        """Move to another device or type, but to none too narrow to add up in."""
        before = dict(self.named_buffers(recurse=False))
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, value in self.named_buffers(recurse=False):
            if torch.finfo(value.dtype).bits < 32:
                setattr(self, name, before[name].to(value.device))
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Take the number of features from what is loaded."""
        saved = state_dict.get(f"{prefix}centre")
        if saved is not None and saved.shape != self.centre.shape:
            self._fit(self.centre.new_zeros(saved.shape))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _scale_gradient(values: Tensor, scale: Tensor) -> Tensor:
    """The same values with a gradient this many times as large."""
    fixed = values.detach()
    return fixed + scale * (values - fixed)
