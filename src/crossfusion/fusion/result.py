"""The base class of all results: plain values, a table for pandas, a figure, and how it all reads."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from crossfusion._base import InputError, field_values, load, plain_value
from crossfusion.fusion.display import DisplayMixin

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Record:
    """A dataclass that turns into plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Fields by name, ready for JSON.

        Returns
        -------
        dict
            Plain Python values: infinity is "inf", an undefined number None, a date its ISO form.
        """
        return {name: plain_value(value) for name, value in self._values().items()}

    def _values(self) -> dict[str, Any]:
        """What `to_dict` holds, as it is."""
        return field_values(self)


class Result(Record, DisplayMixin):
    """What was found: a dataclass that says in `_contents` how it reads, and how `_columns` and `_draw` show it."""

    _has_panels: ClassVar[bool] = False

    def to_frame(self) -> "pd.DataFrame":
        """The result as a table.

        Returns
        -------
        pandas.DataFrame
            The columns that the class describes; without a description, one row with all single values.
        """
        return data_frame(self._columns())

    def _columns(self) -> dict[str, Any]:
        """Columns of `to_frame`."""
        single = {name: value for name, value in self._values().items() if not isinstance(value, Mapping)}
        return {name: [value] for name, value in single.items() if np.ndim(value) == 0}

    def plot(self, *, axes: Any = None) -> "Figure":
        """Draw the result.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure, one column wide, if it is left out.

        Returns
        -------
        matplotlib.figure.Figure
            What was drawn on; write it with ``savefig``.
        """
        if axes is not None and self._has_panels:
            raise InputError("axes", problem="holds one panel, and this figure has several", remedy="leave it out")
        return self._draw(axes)

    def _draw(self, axes: Any) -> "Figure":
        """Draw on these axes, or in a new figure where they are None."""
        raise NotImplementedError


def record_columns(kind: type[Any], records: Iterable[Any]) -> dict[str, list[Any]]:
    """Columns of a table with one row per record: the fields of their class."""
    rows = list(records)
    return {field.name: [getattr(row, field.name) for row in rows] for field in fields(kind)}


def data_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Columns as a pandas DataFrame."""
    frame: pd.DataFrame = load("pandas", "pandas", "pandas", "to_frame()").DataFrame(dict(columns))
    return frame
