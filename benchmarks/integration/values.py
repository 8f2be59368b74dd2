"""What both sides say of the same embeddings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.integration.peers import METRICS, Metric, pcr
from crossfusion.anndata import Leaderboard, cfd
from crossfusion.study import number_text

FIRST = "X_pca"  # what is compared with
OURS = ["embedding", "CFD(batch | label)", "CFD(label | batch)", "1 − CFS(batch)", "PCR", "comparison by CFS"]
NOTE = (
    "CFD unbiased, the most fused first. PCR over all components is 1 − CFS(batch), and PCR comparison is\n"
    "1 − (1 − CFS after) / (1 − CFS before): the same numbers, but for float32 on their side.\n"
    "Lower is better for CFD(batch | label), 1 − CFS(batch) and PCR, higher for all others."
)


def leaderboard(adata: Any) -> Leaderboard:
    """The embeddings by distances, each cell taken as independent."""
    names = [*adata.obsm]
    return cfd(adata, batch_key="batch", label_key="label", embedding_obsm_keys=names, donor_key="index")


def rows(adata: Any, board: Leaderboard, metrics: Mapping[str, Metric] = METRICS) -> tuple[list[str], list[list[str]]]:
    """Header, and one row an embedding, the most fused first."""
    share = {name: -np.expm1(-float(fusion)) for name, fusion in zip(board.embeddings, board.plain, strict=True)}
    batch, label = (adata.obs[name].to_numpy() for name in ("batch", "label"))
    before, found = np.asarray(adata.obsm[FIRST]), []
    for k in np.argsort([float(fusion) for fusion in board.batch], kind="stable").tolist():
        name, x = board.embeddings[k], np.asarray(adata.obsm[board.embeddings[k]])
        biology = None if board.biology is None else board.biology[k].unbiased
        ours = [board.batch[k].unbiased, biology, share[name], pcr(x, batch), max(0.0, 1 - share[name] / share[FIRST])]
        theirs = [of(before, x, batch, label) for of in metrics.values()]
        found.append([name, *map(number_text, [*ours, *theirs])])
    return [*OURS, *metrics], found
