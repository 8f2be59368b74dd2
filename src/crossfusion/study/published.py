"""The paper's printed tables as numbers, as they stand in print.

Zhang, Zhang and Song, *Cross-Fusion Distance* (2026): table 2 (ratios), table 3 (correlations), appendix C (distances).
The numbers are in ``printed.json`` beside this module, each table with the place it stands in.
"""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any


def tables() -> dict[str, Any]:
    """All tables as in the file: the ``source``, and by name ``where`` each is printed, ``what`` it is, and values."""
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("printed.json").read_text("utf-8"))
    return found


_RATIOS = tables()["rdr"]
COLUMNS: tuple[str, ...] = tuple(_RATIOS["columns"])  # of table 2: a source in a pair
RDR: Mapping[str, tuple[float, ...]] = {measure: tuple(column) for measure, column in _RATIOS["values"].items()}
