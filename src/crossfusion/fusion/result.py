"""The base class of all results: plain values, a pandas table, a figure, text and HTML."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion._base import InputError, field_values, load, plain_value
from crossfusion.fusion.display import DisplayMixin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


NOT_IN_NAMES = re.compile(r"[^\w \-]")  # of a label: MLflow refuses most signs, and "/" and "." have a meaning


class Record:
    """A dataclass that can be converted to plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, ready for JSON.

        Returns
        -------
        dict
            Plain Python values; infinity becomes "inf", an undefined number None, and a date its ISO form.
        """
        return {name: plain_value(value) for name, value in self._values().items()}

    def _values(self) -> dict[str, Any]:
        """Return the values of `to_dict` before conversion."""
        return field_values(self)


class Result(Record, DisplayMixin):
    """A dataclass that defines its text in `_contents`, its table in `_columns` and its figure in `_draw`."""

    _has_panels: ClassVar[bool] = False

    def to_frame(self) -> "pd.DataFrame":
        """Return the result as a table.

        Returns
        -------
        pandas.DataFrame
            The columns listed in the notes of the class; by default, one row with all scalar fields.
        """
        return data_frame(self._columns())

    def to_metrics(self, prefix: str = "") -> dict[str, float]:
        """Return all finite numbers by name, for experiment trackers such as MLflow and Weights & Biases.

        Parameters
        ----------
        prefix : str
            Text before each name, such as "val/".

        Returns
        -------
        dict
            Numbers of `to_dict`, with flat names such as "interval.0" and "counts.A". Characters that trackers do not
            allow become "_".
        """
        return flatten_numbers(self.to_dict(), prefix)

    def _columns(self) -> dict[str, Any]:
        """Return the columns of `to_frame`."""
        single = {name: value for name, value in self._values().items() if not isinstance(value, Mapping)}
        return {name: [value] for name, value in single.items() if np.ndim(value) == 0}

    def plot(self, *, axes: Any = None) -> "Figure":
        """Draw the result.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure, one column wide.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; save it with ``savefig``.
        """
        if axes is not None and self._has_panels:
            raise InputError("axes", problem="is a single panel, but this figure has several", remedy="leave it out")
        return self._draw(axes)

    def _draw(self, axes: Any) -> "Figure":
        """Draw on these axes, or in a new figure if they are None."""
        raise NotImplementedError


def flatten_numbers(value: Any, prefix: str) -> dict[str, float]:
    """Return the finite numbers in nested values, each by the path to it; names that become equal are numbered."""
    found: dict[str, float] = {}
    for path, number in _walk_numbers(value, ()):
        name = own = prefix + ".".join(NOT_IN_NAMES.sub("_", str(step)) for step in path)
        copies = 1
        while own in found:
            copies += 1
            own = f"{name}_{copies}"
        found[own] = number
    return found


def _walk_numbers(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], float]]:
    if isinstance(value, Mapping | list):
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        for step, entry in entries:
            yield from _walk_numbers(entry, (*path, step))
    elif isinstance(value, int | float) and math.isfinite(value):
        yield path, float(value)


def record_columns(kind: type[Any], records: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the fields of records as columns, with one row per record."""
    rows = list(records)
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(kind)}


def data_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Return columns as a pandas DataFrame."""
    frame: pd.DataFrame = load("pandas", "pandas", "pandas", "to_frame()").DataFrame(dict(columns))
    return frame
