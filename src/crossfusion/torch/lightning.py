"""Distances between domains in the log of a Lightning trainer, epoch by epoch."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from crossfusion._base import InputError, arg, as_names, optional
from crossfusion.torch.hooks import (
    LayerHooks,
    Pool,
    Selector,
    check_pool,
    explain_misfit,
    find_layers,
    make_layer_error,
    pick,
    pool_output,
)
from crossfusion.torch.metric import CrossFusionDistance

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:  # the same library under its older name
    Callback = optional.load("pytorch_lightning", "Lightning", "lightning", "CrossFusionCallback").Callback

STAGES = ("train", "val")


class CrossFusionCallback(Callback):  # type: ignore[misc]
    """Log the Cross-Fusion Distance between domains in chosen layers at the end of each epoch.

    The values are ``val_cfd/<layer>`` and ``train_cfd/<layer>``, in ``trainer.callback_metrics`` and in every logger.
    With several processes they are computed from the rows of all processes.

    Parameters
    ----------
    layers : str or list of str
        Names of layers as in ``module.named_modules()``, or patterns such as ``"encoder.blocks.*"``, where a star is
        one step of the path.
    between : str, int or callable
        The group of each row as an integer: a key or position in the batches, or a function of a batch.
    num_groups : int
        Number of groups, numbered from 0.
    given : str, int or callable, optional
        The stratum of each row, given in the same way: groups are compared within strata.
    num_given : int, optional
        Number of strata, numbered from 0.
    stages : str or list of str
        "val", "train", or both. Training activations come from the model while it changes.
    pool : {"mean", "flatten"} or callable
        How an activation becomes one vector per row; see :func:`crossfusion.torch.layerwise_cfd`.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    unbiased : bool
        Subtract the part of the distance that is due to sampling; see :func:`crossfusion.torch.cfd`.

    Notes
    -----
    If a layer is called several times for a batch, each call is logged separately: "relu", "relu:2". The sanity check
    of validation before training is not logged.

    Examples
    --------
    >>> from crossfusion.torch import CrossFusionCallback
    >>> callback = CrossFusionCallback("encoder.*", between="domain", num_groups=2, given="label", num_given=10)
    >>> callback.stages
    ('val',)
    """

    def __init__(
        self,
        layers: str | Sequence[str],
        *,
        between: Selector,
        num_groups: int,
        given: Selector | None = None,
        num_given: int | None = None,
        stages: str | Sequence[str] = "val",
        pool: Pool = "mean",
        weights: str = "pooled",
        unbiased: bool = False,
    ) -> None:
        super().__init__()
        check_pool(pool)
        self.layers, self.stages = as_names(layers, "layers", "layer"), as_names(stages, "stages", "stage")
        if not self.stages or not set(self.stages) <= set(STAGES):
            raise InputError("stages", stages, "must be 'val', 'train' or a list of both")
        if (given is None) != (num_given is None):
            raise InputError("given", problem=f"and {arg('num_given')} go together", remedy="pass both, or neither")
        self.between, self.given, self.pool = between, given, pool
        self.options: dict[str, Any] = {
            "num_groups": num_groups,
            "num_given": num_given,
            "weights": weights,
            "unbiased": unbiased,
        }
        CrossFusionDistance(dim=1, **self.options)  # refuses what it cannot use, before any training
        self._metrics: dict[str, dict[str, CrossFusionDistance]] = {stage: {} for stage in STAGES}
        self._watch: LayerHooks | None = None

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:  # noqa: ARG002
        """Start recording the layers for a training batch."""
        self._start("train", pl_module, batch)

    def on_train_batch_end(self, *_: Any) -> None:
        """Stop watching."""
        self._stop()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Log the CFD of a training epoch."""
        self._log("train", pl_module)

    def on_validation_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:  # noqa: ARG002
        """Start recording the layers for a validation batch."""
        self._start("val", pl_module, batch)

    def on_validation_batch_end(self, *_: Any) -> None:
        """Stop watching."""
        self._stop()

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Log the CFD of a validation run."""
        self._log("val", pl_module)

    def on_exception(self, *_: Any) -> None:
        """Stop watching."""
        self._stop()

    def _start(self, stage: str, module: Any, batch: Any) -> None:
        self._stop()
        if stage not in self.stages:
            return
        labels = _read_codes(batch, self.between, "between")
        given = None if self.given is None else _read_codes(batch, self.given, "given")

        def see(name: str, output: Any) -> None:
            rows = pool_output(output, self.pool)
            if rows is None or explain_misfit(rows, len(labels)):
                raise make_layer_error(name, explain_misfit(rows, len(labels)))
            metric = self._find_metric(stage, name, rows)
            metric.update(rows, labels.to(rows.device), None if given is None else given.to(rows.device))

        self._watch = LayerHooks(find_layers(module, self.layers), see)

    def _find_metric(self, stage: str, name: str, rows: Tensor) -> CrossFusionDistance:
        """The metric of a layer, made when the number of its features is known."""
        if name not in self._metrics[stage]:
            made = CrossFusionDistance(dim=rows.shape[1], **self.options)
            if rows.device.type == "mps":  # which has no float64
                made = made.set_dtype(torch.float32)
            self._metrics[stage][name] = made.to(rows.device)
        return self._metrics[stage][name]

    def _log(self, stage: str, module: Any) -> None:
        """Log what was seen, all processes together, and begin anew."""
        for name, metric in self._metrics[stage].items():
            module.log(f"{stage}_cfd/{name}", metric.compute(), on_step=False, on_epoch=True, sync_dist=True)
        self._metrics[stage] = {}

    def _stop(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def _read_codes(batch: Any, where: Selector, name: str) -> Tensor:
    """Whole numbers of the rows of a batch."""
    values = pick(batch, where, name)
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise InputError(
            name,
            problem=f"must give whole numbers from 0, one per row, not {type(values).__name__}",
            remedy="map them with a function",
        ) from problem
