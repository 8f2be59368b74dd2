"""The folder of real data, and its tables of embeddings."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion import FileError
from paper.checks import check_known

VARIABLE = "CROSSFUSION_DATA"
PLACES = {
    "mitos_he": "mitos_he/manifest.csv",
    "camelyon17_he": "camelyon17_he/manifest.csv",
    "sc_mixology": "sc_mixology.parquet",
    "pacs": "pacs.parquet",
    "office_caltech": "office_caltech.parquet",
    "office_caltech_surf": "office_caltech_surf.parquet",
}
NAMES = tuple(PLACES)


def data_folder(given: Path | None = None) -> Path:
    """The folder that is given, or that CROSSFUSION_DATA names, or ``../shared/data``."""
    return given or Path(os.environ.get(VARIABLE) or Path("..", "shared", "data"))


def check_data(folder: Path, names: Sequence[str]) -> None:
    """Refuse a folder that is not there or lacks a data set, before any work."""
    check_known(names, NAMES, "data set", "this study")
    if not folder.is_dir():
        raise FileError(
            folder, "does not exist", f"set {VARIABLE}, or pass --data, with the folder that holds the data"
        )
    missing = [PLACES[name] for name in names if not (folder / PLACES[name]).is_file()]
    if missing:
        raise FileError(folder, f"has no {', '.join(missing)}", "name other data sets with --only, or another folder")


@dataclass(frozen=True)
class Embeddings:
    """Rows with the values of their factors."""

    x: NDArray[np.float32]
    factors: dict[str, list[str]]

    def take(self, rows: Any) -> "Embeddings":
        """Some of the rows, in the order named."""
        return Embeddings(self.x[rows], {name: np.array(v)[rows].tolist() for name, v in self.factors.items()})


def read_embeddings(path: Path, factors: Sequence[str]) -> Embeddings:
    """Vectors and factors of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=[*factors, "embedding"])
    except (pa.ArrowException, OSError) as problem:
        wanted = ", ".join(factors)
        raise FileError(path, f"has no table with {wanted} and embedding ({problem})", "replace it") from problem
    vectors = table["embedding"].combine_chunks()
    x = np.asarray(vectors.flatten().to_numpy(), np.float32).reshape(len(table), -1)
    return Embeddings(x, {name: [str(value) for value in table[name].to_pylist()] for name in factors})
