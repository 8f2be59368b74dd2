"""Cross-Fusion Distance in PyTorch: differentiable, on any device, across processes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crossfusion._base import load

load("torch", "PyTorch", "torch", "crossfusion.torch")

from crossfusion.torch.functional import cfd  # noqa: E402
from crossfusion.torch.layers_result import Layers  # noqa: E402
from crossfusion.torch.layerwise import layerwise_cfd  # noqa: E402
from crossfusion.torch.loss import CrossFusionLoss  # noqa: E402

if TYPE_CHECKING:
    from crossfusion.torch.lightning import CrossFusionCallback
    from crossfusion.torch.metric import CrossFusionDistance

__all__ = ["CrossFusionCallback", "CrossFusionDistance", "CrossFusionLoss", "Layers", "cfd", "layerwise_cfd"]

LATER = {"CrossFusionCallback": "lightning", "CrossFusionDistance": "metric"}  # need more than PyTorch


def __getattr__(name: str) -> Any:
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{LATER[name]}"), name)
