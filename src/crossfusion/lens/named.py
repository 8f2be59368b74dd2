"""Lenses by name, as the command line has them, and from files."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from crossfusion._base import InputError
from crossfusion.lens import storage
from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training
from crossfusion.lens.random_features import Kernel, fit_kernel
from crossfusion.lens.regions import Codebook, fit_codebook
from crossfusion.lens.standardization import Standardize, fit_standardize
from crossfusion.lens.unit_length import Unit
from crossfusion.lens.whitening import Whiten, fit_whiten

KINDS = (Unit, Standardize, Whiten, Kernel, Codebook)
NAMES: Mapping[str, Callable[[Training], Lens]] = MappingProxyType(
    {
        "unit": lambda training: training.follow(Unit()),
        "standardize": fit_standardize,
        "whiten": fit_whiten,
        "kernel": fit_kernel,
        "codebook": fit_codebook,
    }
)
JOIN = "+"  # between names of lenses that follow each other


def fit_named(names: str, training: Training) -> Lens:
    """Fit the lenses of these names, each on the rows as seen through those before it."""
    for name in names.split(JOIN):
        if name.strip() not in NAMES:
            raise InputError(
                "lens",
                names,
                "is not a file or a known lens",
                f"choose {', '.join(NAMES)}, several such as standardize{JOIN}kernel, or a file",
            )
        training = replace(training, after=NAMES[name.strip()](training))
    assert training.after is not None  # as there is a name
    return training.after


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
