"""The paper's printed tables as numbers, as they stand in print.

Zhang, Zhang and Song, *Cross-Fusion Distance* (2026): table 2 (ratios), table 3 (correlations), appendix C (distances).
The numbers are in ``printed.json`` beside this module, each table with the place it stands in.
"""

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any


def tables() -> dict[str, Any]:
    """All tables as in the file: the ``source``, and by name ``where`` each is printed, ``what`` it is, and values.

    ``datasets`` names the data sets of the paper by their layouts, each with the abbreviations of its sources.
    """
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("printed.json").read_text("utf-8"))
    return found


DATASETS: Mapping[str, Mapping[str, str]] = tables()["datasets"]
_RATIOS = tables()["rdr"]
COLUMNS: tuple[str, ...] = tuple(_RATIOS["columns"])  # of table 2: a source in a pair
RDR: Mapping[str, tuple[float, ...]] = {measure: tuple(column) for measure, column in _RATIOS["values"].items()}


def belongs(name: str, dataset: str | None) -> bool:
    """Whether a printed name, such as "ACS", "ACS–HS" or "HS in ACS–HS", is of a source of a data set of `DATASETS`."""
    return dataset is not None and re.split(" in |–", name)[0] in DATASETS[dataset]
