"""A lens: steps applied to each row, one after the other."""

import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import InputError, as_rows, column_names, count_text, label_rows, map_rows, match_features
from crossfusion.lens import storage
from crossfusion.lens.step import Names, Step


class Lens:
    """A fixed map of rows, applied before they are reduced, so that CFD sees more than the means of raw features.

    Created by `unit`, `standardize`, `whiten`, `kernel`, `codebook`, `read` or, from two lenses, by ``a | b``.

    Parameters
    ----------
    steps : tuple of Step
        What is done to each row, in order.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> x = np.random.default_rng(0).normal(size=(500, 8)) * [1, 1, 1, 1, 1, 1, 1, 50]
    >>> lens = cf.lens.standardize(x) | cf.lens.unit()
    >>> lens
    Lens: standardize 8 features | unit
    >>> lens(x).shape
    (500, 8)
    >>> cf.cfd(x[:250], x[250:], lens=lens).distance < 0.01
    True
    """

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self.steps: tuple[Any, ...] = steps
        self._check_chain()

    def _check_chain(self) -> None:
        """Reject steps that cannot follow each other, and factors of the same name."""
        dim = names = None
        for step in self.steps:
            if None not in (dim, step.dim) and dim != step.dim:
                raise InputError(
                    problem=f"{step.kind} was fitted on {step.dim} features, but the lens before gives {dim}",
                    remedy="fit it on rows seen through that lens",
                )
            dim = step.dim if step.dim is not None else dim
            names = step.name_features(step.features or names)
            dim = None if dim is None else step.count_features(dim)
        if len(set(self.factors)) < len(self.factors):
            raise InputError(problem=f"two lenses add the factor {self.factors[0]!r}", remedy="use one of them")

    def __or__(self, other: "Lens") -> "Lens":
        return Lens(self.steps + other.steps) if isinstance(other, Lens) else NotImplemented

    def __call__(self, rows: Any) -> NDArray[Any]:
        """Map rows."""
        values = as_rows(rows, "rows")
        self.name_features(column_names(rows) or None, "rows")
        mapped: NDArray[Any] = map_rows(self, values, "rows")
        return mapped

    def label(self, rows: Any) -> dict[str, NDArray[np.int32]]:
        """Return the factors that the lens adds, such as the region of a codebook.

        Parameters
        ----------
        rows : array of shape (rows, dim)
            The rows.

        Returns
        -------
        dict
            An array with a whole number per row, by name; -1 for rows with NaN or infinite values.
        """
        values = as_rows(rows, "rows")
        self.name_features(column_names(rows) or None, "rows")
        return label_rows(self, values, "rows")

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the lens to a safetensors file, atomically.

        Parameters
        ----------
        path : path
            The file, ending in .safetensors; an existing file is replaced.
        """
        storage.write(path, self.steps, self.digest)

    @cached_property
    def digest(self) -> str:
        """What identifies the lens: equal for lenses that map rows in the same way."""
        return storage.compute_digest(self.steps)

    @property
    def factors(self) -> Names:
        """Names of the factors that the lens adds."""
        return tuple(name for step in self.steps for name in step.factors)

    @property
    def changes_rows(self) -> bool:
        """Whether mapped rows differ from the rows."""
        return any(step.changes_rows for step in self.steps)

    @property
    def width(self) -> int:
        """The largest number of values per row that the lens works with, which decides how many rows it takes."""
        return int(max(step.width for step in self.steps))

    @property
    def dim(self) -> int | None:
        """Number of features that rows must have; None for any."""
        return self._first.dim

    @property
    def features(self) -> Names | None:
        """Names of these features, if the lens was fitted on named ones."""
        return self._first.features

    @property
    def _first(self) -> Step:
        """The step that knows the features of the rows: the first one that was fitted."""
        found: Step = next((step for step in self.steps if step.dim is not None), self.steps[0])
        return found

    def count_features(self, dim: int, holder: str = "x") -> int:
        """Return the number of features of mapped rows; reject rows with another number of features.

        Parameters
        ----------
        dim : int
            Number of features of the rows.
        holder : str
            Name of the rows in the message.

        Returns
        -------
        int
            Number of features of mapped rows.
        """
        if self.dim not in (None, dim):
            raise InputError(
                problem=f"{holder} has {count_text(dim, 'feature')}, but the lens was fitted on {self.dim}",
                remedy="pass embeddings of the same model, or fit another lens",
            )
        for step in self.steps:
            dim = step.count_features(dim)
        return dim

    def name_features(self, names: Names | None, holder: str = "x") -> Names | None:
        """Return the names of the features of mapped rows; reject rows with other features.

        Parameters
        ----------
        names : tuple of str or None
            Names of the features of the rows; None if they have none, which are then taken by position.
        holder : str
            Name of the rows in the message.

        Returns
        -------
        tuple of str or None
            Names of the features of mapped rows.
        """
        if names and self.features is not None and match_features(self.features, names, "the lens", holder) is not None:
            raise InputError(
                problem=f"{holder} has the features of the lens in another order",
                remedy="select them in the order of lens.features",
            )
        names = names or None
        for step in self.steps:
            names = step.name_features(names or step.features)
        return names

    def map_block(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Map a few finite rows of the right features.

        Parameters
        ----------
        rows : array of shape (rows, dim)
            The rows.

        Returns
        -------
        array
            Mapped rows.
        """
        for step in self.steps:
            rows = step.map_block(rows) if step.changes_rows else rows
        return rows

    def label_block(self, rows: NDArray[Any]) -> dict[str, NDArray[np.int32]]:
        """Label a few finite rows of the right features with the factors that the lens adds.

        Parameters
        ----------
        rows : array of shape (rows, dim)
            The rows.

        Returns
        -------
        dict
            An array with a whole number per row, by name.
        """
        found: dict[str, NDArray[np.int32]] = {}
        for step in self.steps:
            found |= {name: step.label_block(rows) for name in step.factors}
            rows = step.map_block(rows) if step.changes_rows else rows
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Lens, (self.steps,)

    def __repr__(self) -> str:
        return f"Lens: {' | '.join(step.describe() for step in self.steps)}"
