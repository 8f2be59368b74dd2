"""Where networks run, and in which precision."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from crossfusion._base import InputError, check_option, escape_unprintable, optional

PRECISIONS = ("auto", "float32", "float16", "bfloat16")


def load_torch() -> Any:
    """The library, or what installs it."""
    return optional.load("torch", "PyTorch", "pathology", "encoding images")


def choose_device(device: str) -> str:
    """The device to use: `auto` is the first of cuda, mps and cpu that is there; what is not there is refused."""
    library = load_torch()
    there = {"cuda": library.cuda.is_available(), "mps": library.backends.mps.is_available(), "cpu": True}
    if device == "auto":
        return next(name for name, is_there in there.items() if is_there)
    kind, _, number = str(device).partition(":")
    count = library.cuda.device_count() if kind == "cuda" else 1
    if kind not in there or (number and not (number.isdecimal() and kind == "cuda")):
        raise InputError("device", device, "is not a known device", "choose 'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'")
    if not there[kind] or (number and int(number) >= count):
        raise InputError("device", device, "is not available to this PyTorch", "choose 'auto' or 'cpu'")
    return str(device)


def choose_precision(precision: str, device: str) -> str:
    """The precision to use: `auto` is float16 on cuda, as Virchow's authors advise, and float32 elsewhere."""
    check_option(precision, PRECISIONS, "precision")
    if precision == "auto":
        return "float16" if device.startswith("cuda") else "float32"
    if precision == "float16" and device == "cpu":
        raise InputError("precision", "float16", "needs an accelerator", "use 'float32' or 'bfloat16' on the CPU")
    return precision


def make_precision_context(device: str, precision: str) -> Callable[[], AbstractContextManager[Any]]:
    """Contexts in which layers that bear it compute in less than float32."""
    if precision == "float32":
        return nullcontext
    library = load_torch()
    kind = getattr(library, precision)
    return lambda: library.autocast(device_type=device.partition(":")[0], dtype=kind)


def shorten_problem(problem: BaseException) -> str:
    """What a library says of a problem, in one line."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return escape_unprintable(lines[0])[:200] if lines else type(problem).__name__
