"""What the layers of a model give, seen by forward hooks: one vector for each row of a batch."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Self

from torch import Tensor
from torch.compiler import disable
from torch.nn import Module

from crossfusion._base import InputError, arg, as_names, check_known, check_option
from crossfusion.torch.moments import widen

Selector = str | int | Callable[[Any], Any]
Pool = str | Callable[[Tensor], Tensor]
POOLS = ("mean", "flatten")


def pick(batch: Any, where: Selector, name: str) -> Any:
    """What a batch has under a key or at a position, or what a function finds in it."""
    if callable(where):
        return where(batch)
    if isinstance(where, bool) or not isinstance(where, str | int):
        raise InputError(name, where, "must be a key or a position of the batches, or a function of a batch")
    try:
        return batch[where]
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        raise InputError(name, where, f"is not in the batches, which {_describe_batch(batch)}") from problem


def _describe_batch(batch: Any) -> str:
    """What a batch is, for a message."""
    if isinstance(batch, Mapping):
        return f"have the keys {', '.join(map(repr, batch))}: name one of these, or pass a function of a batch"
    if isinstance(batch, list | tuple):
        return f"have {len(batch)} entries: pass a position from 0 to {len(batch) - 1}, or a function of a batch"
    return f"are of type {type(batch).__name__}: pass a function of a batch"


def find_layers(model: Module, layers: str | Sequence[str] | None) -> dict[str, Module]:
    """Layers by name: those that match names or patterns, or all that have no layers inside."""
    if not isinstance(model, Module):
        raise InputError(
            "model", problem=f"must be a torch.nn.Module, not {type(model).__name__}", remedy="pass the network itself"
        )
    known = dict(model.named_modules())
    if layers is None:
        return {name or "model": module for name, module in known.items() if not len(list(module.children()))}
    wanted = as_names(layers, "layers", "layer")
    if not wanted:
        raise InputError("layers", problem="is empty", remedy="name at least one, or leave it out for all")
    names = [name for name in known if name]
    for pattern in wanted:
        if not any(_matches(name, pattern) for name in names):
            check_known([pattern], names, "layer", "the model")
    return {name: known[name] for name in names if any(_matches(name, pattern) for pattern in wanted)}


def _matches(name: str, pattern: str) -> bool:
    """Whether a name such as "blocks.3.norm" fits a pattern such as "blocks.*.norm"; a star is one step of the path."""
    steps, wanted = name.split("."), pattern.split(".")
    return len(steps) == len(wanted) and all(map(fnmatchcase, steps, wanted))


def check_pool(pool: Any) -> None:
    """Refuse a way of pooling that is none."""
    if not callable(pool):
        check_option(pool, POOLS, "pool")


def pool_output(output: Any, pool: Pool) -> Tensor | None:
    """One vector per row of what a layer gives, without gradient; None if it gives no floating-point tensor of rows."""
    values = _find_tensor(output)
    if values is None or values.ndim == 0:
        return None
    values = widen(values.detach())
    if callable(pool):
        rows = pool(values)
        if not isinstance(rows, Tensor) or rows.ndim != 2:
            raise InputError(
                "pool",
                problem=f"gave {_describe_shape(rows)} for {_describe_shape(values)}",
                remedy="it must give one vector per row",
            )
        return rows
    if values.ndim == 1:
        return values.unsqueeze(1)
    if pool == "flatten" or values.ndim == 2:
        return values.flatten(1)
    return values.mean(dim=1 if values.ndim == 3 else tuple(range(2, values.ndim)))


def explain_misfit(rows: Tensor | None, number: int) -> str:
    """Why vectors are not those of a batch of so many rows; empty if they are."""
    if rows is not None and len(rows) == number:
        return ""
    return f"gave {'no tensor of rows' if rows is None else f'{len(rows)} rows'} for a batch of {number}"


def make_layer_error(name: str, why: str) -> InputError:
    """The error of a named layer that cannot be used."""
    return InputError(
        problem=f"layer {name!r} {why}",
        remedy=f"leave it out of {arg('layers')}, or make one vector per row of it with {arg('pool')}",
    )


def _find_tensor(output: Any) -> Tensor | None:
    """A floating-point tensor, or the first one in a tuple, list or mapping of them."""
    if isinstance(output, Tensor):
        return output if output.is_floating_point() else None
    entries = output.values() if isinstance(output, Mapping) else output if isinstance(output, tuple | list) else ()
    found = (_find_tensor(entry) for entry in entries)
    return next((tensor for tensor in found if tensor is not None), None)


def _describe_shape(values: Any) -> str:
    return f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__


class LayerHooks:
    """Forward hooks that tell of each output under the name of its layer, until they are closed.

    A layer that is called again in the same pass counts as one more: "relu", "relu:2", ...

    Parameters
    ----------
    layers : mapping of str to Module
        What to watch.
    see : callable
        Told the name and the output.
    """

    def __init__(self, layers: Mapping[str, Module], see: Callable[[str, Any], None]) -> None:
        self._calls: Counter[str] = Counter()
        self._see = see
        self._handles = [
            module.register_forward_hook(partial(self._report_output, name)) for name, module in layers.items()
        ]

    @disable  # type: ignore[untyped-decorator]  # a compiled model runs it as it is
    def _report_output(self, name: str, _module: Module, _inputs: Any, output: Any) -> None:
        self._calls[name] += 1
        times = self._calls[name]
        self._see(name if times == 1 else f"{name}:{times}", output)

    def new_pass(self) -> None:
        """Count calls from one again."""
        self._calls.clear()

    def close(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
