"""Recognition of Dask collections and Spark DataFrames, without importing either library."""

import sys
from typing import Any


def is_collection(source: Any) -> bool:
    """Return whether the source is a Dask collection; whoever passes one has imported Dask already."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(source))


def is_frame(source: Any) -> bool:
    """Return whether the source is a Spark DataFrame, classic or of Spark Connect."""
    return type(source).__module__.startswith("pyspark.sql.") and hasattr(source, "mapInArrow")
