"""Libraries that load when they are used, and say how to install them when they are missing."""

from importlib import import_module
from typing import Any

from crossfusion._base.errors import MissingDependencyError


def load(module: str, library: str, extra: str | None, purpose: str) -> Any:
    """Import a module of an optional library, or say which extra installs it; None: the library by its name."""
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        raise MissingDependencyError(library, extra, purpose) from problem
