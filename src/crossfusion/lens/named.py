"""Lenses by name, as the command line has them, and from files."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from inspect import signature
from types import MappingProxyType
from typing import Any

from crossfusion._base import InputError
from crossfusion.lens import storage
from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training
from crossfusion.lens.random_features import Kernel, fit_kernel
from crossfusion.lens.regions import Codebook, fit_codebook
from crossfusion.lens.standardization import Standardize, fit_standardize
from crossfusion.lens.unit_length import Unit, fit_unit
from crossfusion.lens.whitening import Whiten, fit_whiten

KINDS = (Unit, Standardize, Whiten, Kernel, Codebook)
NAMES: Mapping[str, Callable[..., Lens]] = MappingProxyType(
    {
        "unit": fit_unit,
        "standardize": fit_standardize,
        "whiten": fit_whiten,
        "kernel": fit_kernel,
        "codebook": fit_codebook,
    }
)
JOIN = "+"  # between names of lenses that follow each other


def fit_named(names: str, training: Training, options: Mapping[str, Any] = MappingProxyType({})) -> Lens:
    """Fit the lenses of these names, each on the rows as seen through those before it, with the options that it has."""
    chosen = [name.strip() for name in names.split(JOIN)]
    if not {*chosen} <= {*NAMES}:
        raise InputError(
            "lens",
            names,
            "is not a file or a known lens",
            f"choose {', '.join(NAMES)}, several such as standardize{JOIN}kernel, or a file",
        )
    there = {option for name in chosen for option in _list_options(name)}
    for option in options:
        if option not in there:
            raise InputError(option, options[option], f"is not an option of {' or '.join(chosen)}", "leave it out")
    for name in chosen:
        own = {option: options[option] for option in _list_options(name) if option in options}
        training = replace(training, after=NAMES[name](training, **own))
    assert training.after is not None  # as there is a name
    return training.after


def _list_options(name: str) -> list[str]:
    return [*signature(NAMES[name]).parameters][1:]


def read(path: str | os.PathLike[str]) -> Lens:
    """Read a lens written by `Lens.write`.

    Parameters
    ----------
    path : path
        The file. No code in it is run: it holds numbers and names only.

    Returns
    -------
    Lens
        The lens as it was written.

    Raises
    ------
    FileError
        If the file is missing, damaged, not a lens, or has a newer format.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crossfusion as cf
    >>> lens = cf.lens.standardize([[0.0, 5.0], [2.0, 1.0], [1.0, 3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lens.write(Path(folder) / "lens.safetensors")
    ...     again = cf.lens.read(Path(folder) / "lens.safetensors")
    >>> again.digest == lens.digest
    True
    """
    return Lens(storage.read_steps(path, KINDS))
