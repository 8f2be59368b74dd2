"""Tables for people who work in pandas."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crossfusion.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


def data_frame(columns: Mapping[str, Any]) -> "pd.DataFrame":
    """Columns as a pandas DataFrame."""
    try:
        import pandas as pd
    except ModuleNotFoundError as problem:
        raise MissingDependencyError("pandas", "pandas", "to_frame()") from problem
    return pd.DataFrame(dict(columns))
