"""Cells with batches and labels: real ones if they are at hand, or made up."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion import correct
from paper.checks import load_library

METHODS = ("center", "standardize", "combat", "coral", "harmony")
DIM, BATCHES, LABELS = 50, 5, 10
PURPOSE = "the comparison with scib-metrics"


@dataclass(frozen=True)
class Cells:
    """Principal components of cells, with their batches and labels."""

    name: str
    x: NDArray[np.float32]
    batch: NDArray[Any]
    label: NDArray[Any]


def read_cells(folder: Path | None) -> Cells | None:
    """The cells of sc_mixology, where the folder has them."""
    path = None if folder is None else folder / "sc_mixology.parquet"
    if path is None or not path.is_file():
        return None
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    x = np.asarray(table["embedding"].combine_chunks().flatten().to_numpy(), np.float32).reshape(len(table), -1)
    batch, label = (np.array(table[name].to_pylist()) for name in ("batch", "cell_line"))
    return Cells("sc_mixology", x, batch, label)


def simulate_cells(number: int, seed: int = 0) -> Cells:
    """Cells of ten types in five batches of unequal mix, shifted by what they are and where they come from."""
    draw = np.random.default_rng(seed)
    batch = draw.integers(0, BATCHES, number)
    label = draw.integers(0, LABELS, number)
    label = np.where(draw.uniform(size=number) < 0.15 * batch, label // 2, label)
    x = draw.standard_normal((number, DIM), np.float32)
    x += draw.standard_normal((LABELS, DIM), np.float32)[label]
    x += 0.7 * draw.standard_normal((BATCHES, DIM), np.float32)[batch]
    return Cells("made-up cells", x, np.array([f"b{k}" for k in range(BATCHES)])[batch], label)


def make_anndata(cells: Cells, **embeddings: Any) -> Any:
    """An AnnData of cells, with embeddings in its obsm."""
    anndata = load_library("anndata", "anndata", "anndata", PURPOSE)
    frame = load_library("pandas", "pandas", "pandas", PURPOSE)
    columns = {"batch": frame.Categorical(cells.batch), "label": frame.Categorical(cells.label.astype(str))}
    adata = anndata.AnnData(obs=frame.DataFrame(columns, index=np.arange(len(cells.x)).astype(str)))
    for name, rows in embeddings.items():
        adata.obsm[name] = rows
    return adata


def add_corrections(cells: Cells) -> Any:
    """An AnnData of cells as they are, and after each correction that is installed."""
    chosen = [name for name in METHODS if name != "harmony" or find_spec("harmonypy") is not None]
    made = {name: correct(cells.x, cells.batch, name).astype(np.float32) for name in chosen}
    return make_anndata(cells, X_pca=cells.x, **{f"X_{name}": rows for name, rows in made.items()})
