"""Layer by layer: how far a model brings groups together or apart."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module

from crossfusion._base import NAN_OPTIONS, InputError, arg, check_level, check_option, factors
from crossfusion.fusion import WEIGHTS, Fusion
from crossfusion.io import Chunk, RunningSum, finish_summary, reduce_chunk
from crossfusion.summary import Summary
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
from crossfusion.torch.layers_result import Layers

if TYPE_CHECKING:
    import pyarrow as pa


def layerwise_cfd(
    model: Module,
    loader: Iterable[Any],
    *,
    between: Selector,
    given: Selector | None = None,
    units: Selector | None = None,
    inputs: Selector | Sequence[str] | None = None,
    layers: str | Sequence[str] | None = None,
    pool: Pool = "mean",
    weights: str = "pooled",
    level: float | None = None,
    nan: str = "raise",
    progress: Callable[[int], None] | None = None,
) -> Layers:
    """Cross-Fusion Distance between groups in each layer of a model, in one pass over the data.

    Parameters
    ----------
    model : torch.nn.Module
        Any model. It runs in evaluation mode without gradients; its state is restored afterwards.
    loader : iterable of batches
        Such as a ``DataLoader``; batches are tuples, dicts, or anything that the functions below accept.
    between : str, int or callable
        The group of each row, as numbers or strings: a key or position in the batches, or a function of a batch.
    given : str, int or callable, optional
        The stratum of each row: groups are compared within strata, and strata within groups.
    units : str, int or callable, optional
        The unit of each row, such as its patient: `unbiased` and intervals count units.
    inputs : str, int, callable or list of str, optional
        The input of the model; by default the first entry of a tuple. A mapping is passed as keyword arguments, a tuple
        as positional arguments; a list of keys stands for a mapping of these.
    layers : str or list of str, optional
        Names of layers as in ``model.named_modules()``, or patterns such as ``"blocks.*"``, where a star is one step of
        the path. By default all layers without children.
    pool : {"mean", "flatten"} or callable
        How an activation becomes one vector per row: (rows, channels, height, width) is averaged over positions,
        (rows, tokens, features) over tokens; or it is flattened; or a function of the tensor is applied.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    level : float, optional
        Confidence level of intervals for the distances; needs `units`.
    nan : {"raise", "drop"}
        How to handle vectors with NaN or infinite values.
    progress : callable, optional
        Called with the number of rows after each batch.

    Returns
    -------
    Layers
        One row per layer, in the order in which they are called.

    Notes
    -----
    Activations are reduced to moments at once, so memory grows with layers × groups × features, not with rows. If a
    layer returns a tuple or a dict, its first tensor counts. A layer that is called several times in a pass counts as
    several layers.

    Examples
    --------
    >>> import torch
    >>> from crossfusion.torch import layerwise_cfd
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> domain = torch.arange(200) % 2
    >>> x = torch.randn(200, 4) + domain[:, None]
    >>> layers = layerwise_cfd(model, zip(x.split(50), domain.split(50)), between=1, layers=["0", "2"])
    >>> [fusion.distance > 0.1 for fusion in layers.fusions]
    [True, True]
    """
    check_pool(pool)
    check_option(weights, WEIGHTS, "weights")
    check_option(nan, NAN_OPTIONS, "nan")
    check_level(level)
    if level is not None and units is None:
        raise InputError(
            "level",
            level,
            f"needs {arg('units')}, since activations are not kept",
            "name independent units, such as the patient",
        )
    seen = _ActivationMoments(pool, named=layers is not None)
    found = find_layers(model, layers)
    parts = {"between": between, "given": given, "units": units}
    with _evaluate_model(model), LayerHooks(found, seen.see) as watch:
        for batch in loader:
            watch.new_pass()
            seen.begin(
                factors.as_table({name: _read_values(batch, at, name) for name, at in parts.items() if at is not None})
            )
            _run(model, _read_inputs(batch, inputs))
            if progress is not None:
                progress(seen.keys.num_rows)
    summaries = seen.summaries(found, nan)

    def ask(compared: str, strata: str | None) -> tuple[Fusion, ...]:
        by = None if units is None else "units"
        asked = {"given": strata, "units": by, "weights": weights, "level": level}
        return tuple(_compare_layer(name, summary, compared, **asked) for name, summary in summaries.items())

    return Layers(
        names=tuple(summaries),
        dims=tuple(summary.dim for summary in summaries.values()),
        fusions=ask("between", None if given is None else "given"),
        strata=None if given is None else ask("given", "between"),
        between=between if isinstance(between, str) else "between",
        given=None if given is None else given if isinstance(given, str) else "given",
        skipped=tuple(seen.skipped),
    )


def _compare_layer(name: str, summary: Summary, between: str, **asked: Any) -> Fusion:
    """The distance of a layer, by whose name errors are called."""
    try:
        return summary.cfd(between, **asked)
    except InputError as problem:
        if summary.moments.sumsq.any():
            raise
        raise InputError(
            problem=f"layer {name!r} does not vary within groups", remedy=f"leave it out of {arg('layers')}"
        ) from problem


class _ActivationMoments:
    """Moments of the activations of each layer, by the groups of their rows.

    Parameters
    ----------
    pool : str or callable
        How an activation becomes one vector per row.
    named : bool
        Whether the layers were named, so that one that cannot be used is an error.
    """

    def __init__(self, pool: Pool, named: bool) -> None:
        self.skipped: dict[str, str] = {}
        self.keys: pa.Table
        self._pool, self._named = pool, named
        self._batches = self._rows = 0
        self._running: dict[str, RunningSum] = {}
        self._dims: dict[str, int] = {}

    def begin(self, keys: "pa.Table") -> None:
        """A batch, by the groups of its rows."""
        self._rows += self.keys.num_rows if self._batches else 0
        self._batches += 1
        self.keys = keys

    def see(self, name: str, output: Any) -> None:
        """What a layer gives for the batch."""
        rows = pool_output(output, self._pool)
        if rows is None or explain_misfit(rows, self.keys.num_rows):
            self._leave(name, explain_misfit(rows, self.keys.num_rows))
            return
        if self._dims.setdefault(name, rows.shape[1]) != rows.shape[1]:
            raise InputError(
                problem=f"layer {name!r} gave {rows.shape[1]} features after {self._dims[name]} before",
                remedy=f"pool them to one number of features with {arg('pool', 'mean')} or a function",
            )
        running = self._running.setdefault(name, RunningSum(name))
        chunk = Chunk(rows.cpu().numpy(), self.keys, self._rows)
        running.add(running.number, reduce_chunk(chunk, f"layer {name!r}"))

    def _leave(self, name: str, why: str) -> None:
        if self._named:
            raise make_layer_error(name, why)
        self.skipped.setdefault(name, why)

    def summaries(self, layers: Mapping[str, Module], nan: str) -> dict[str, Summary]:
        """Summary of each layer that gave one vector for every row, in the order of calls."""
        if not self._batches:
            raise InputError("loader", problem="has no batches", remedy="pass one that gives some")
        for name in [*self._running, *(name for name in layers if name not in self._running)]:
            times = self._running[name].number if name in self._running else 0
            if times < self._batches and name not in self.skipped:
                self._leave(name, f"was called for {times} of {self._batches} batches")
        kept = {name: running for name, running in self._running.items() if name not in self.skipped}
        if not kept:
            name, why = next(iter(self.skipped.items()))
            raise InputError(
                problem=f"no layer gives one vector for each row of a batch ({name!r} {why})",
                remedy="name one in layers, and pool it",
            )
        return {name: finish_summary([(f"layer {name!r}", running.total())], nan) for name, running in kept.items()}


@contextmanager
def _evaluate_model(model: Module) -> Iterator[None]:
    """Evaluation without gradients, after which each module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode


def _read_values(batch: Any, where: Selector, name: str) -> Any:
    """Values of a factor for the rows of a batch, in main memory."""
    values = pick(batch, where, name)
    return values.detach().cpu() if isinstance(values, Tensor) else values


def _read_inputs(batch: Any, inputs: Selector | Sequence[str] | None) -> Any:
    """What the model is called with."""
    if inputs is None:
        if isinstance(batch, list | tuple):
            return batch[0]
        raise InputError(
            "inputs",
            problem=f"must say what the model is called with where a batch is of type {type(batch).__name__}",
            remedy="pass a key, or a function of a batch",
        )
    if isinstance(inputs, list | tuple):
        if not all(isinstance(name, str) for name in inputs):
            raise InputError(
                "inputs", inputs, "must be keys of the batches", "pass a function of a batch for positions"
            )
        return {name: pick(batch, name, "inputs") for name in inputs}
    return pick(batch, inputs, "inputs")  # type: ignore[arg-type]


def _run(model: Module, values: Any) -> None:
    """Call a model on its own device."""
    first = next(model.parameters(), None)
    placed = values if first is None else _move(values, first.device)
    if isinstance(placed, Mapping):
        model(**placed)
    elif isinstance(placed, list | tuple):
        model(*placed)
    else:
        model(placed)


def _move(values: Any, device: torch.device) -> Any:
    if isinstance(values, Tensor):
        return values.to(device)
    if isinstance(values, Mapping):
        return {name: _move(value, device) for name, value in values.items()}
    if not isinstance(values, list | tuple):
        return values
    return tuple(_move(value, device) for value in values)
