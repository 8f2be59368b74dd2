"""Cross-Fusion Distance in PyTorch: differentiable, on any device, across processes."""

from crossfusion.optional import load

load("torch", "PyTorch", "torch", "crossfusion.torch")

from crossfusion.torch.functional import cfd  # noqa: E402
from crossfusion.torch.loss import CrossFusionLoss  # noqa: E402

__all__ = ["CrossFusionLoss", "cfd"]
