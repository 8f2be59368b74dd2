"""Tables for people who work in pandas."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crossfusion._base import optional

if TYPE_CHECKING:
    import pandas as pd


def data_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Columns as a pandas DataFrame."""
    frame: pd.DataFrame = optional.load("pandas", "pandas", "pandas", "to_frame()").DataFrame(dict(columns))
    return frame
