"""Local mixing by counts of a codebook beside iLISI and kBET by neighbors, over corrections of the same cells."""

from typing import Any

import numpy as np

import crossfusion as cf
from benchmarks.integration.peers import NEIGHBOURS, ilisi, library
from crossfusion._base import thread_count
from crossfusion.study import number_text

REGIONS = 64
HEADER = ["embedding", "CFD(batch)", "mixing", "mixing given label", "iLISI", "kBET"]


def kbet(x: Any, batch: Any) -> float:
    """Share of cells whose neighbors are of the batches that all cells are of."""
    near = min(NEIGHBOURS, len(x) - 1)
    found = library().nearest_neighbors.pynndescent(np.asarray(x), n_neighbors=near, n_jobs=thread_count())
    return float(library().kbet(found, batch)[0])


def measure(adata: Any) -> dict[str, list[float]]:
    """CFD, mixing, mixing given the label, iLISI and kBET of each embedding."""
    batch, label = (adata.obs[name].to_numpy() for name in ("batch", "label"))
    found = {}
    for name in adata.obsm:
        x = np.asarray(adata.obsm[name])
        by = {"batch": batch.astype(str), "label": label.astype(str)}
        summary = cf.summarize(x, by=by, lens=cf.lens.codebook(x, regions=REGIONS))
        plain, given = summary.mixing("batch"), summary.mixing("batch", given="label")
        theirs = ilisi(None, x, batch, label), kbet(x, batch)
        found[name] = [plain.cfd or 0.0, plain.information, given.information, *theirs]
    return found


def correlate(values: dict[str, list[float]]) -> tuple[float, float]:
    """Spearman's correlation of mixing with iLISI and with kBET."""
    ranks = np.argsort(np.argsort(np.array([*values.values()]), axis=0), axis=0)
    both = np.atleast_2d(np.corrcoef(ranks.T))
    return float(both[1, 3]), float(both[1, 4])


def table(values: dict[str, list[float]]) -> tuple[list[list[str]], str]:
    """One row per embedding, the most mixed first, and what is said of the table."""
    ordered = sorted(values.items(), key=lambda entry: entry[1][1])
    rows = [[name, *map(number_text, own)] for name, own in ordered]
    near, kept = correlate(values)
    note = (
        f"Mixing: normalized mutual information of batch and {REGIONS} regions, 0 mixed to 1 separate; iLISI and kBET:"
        f" 1 mixed.\nSpearman's correlation of mixing with iLISI {near:.2f}, with kBET {kept:.2f}."
    )
    return rows, note
