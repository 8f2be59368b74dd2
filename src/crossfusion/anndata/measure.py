"""From an AnnData to a leaderboard: summarize each embedding once, then ask."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    NAN_OPTIONS,
    InputError,
    RowLens,
    arg,
    check_known,
    check_lens,
    check_once,
    check_option,
    factors,
    optional,
    warn,
)
from crossfusion.anndata.leaderboard import Leaderboard
from crossfusion.anndata.matrices import choose_embeddings, open_embedding
from crossfusion.anndata.ranking import DONOR, Keys, rank_embeddings
from crossfusion.io import reduce_sources

if TYPE_CHECKING:
    import pyarrow as pa

CELL_INDEX = "index"  # as a donor: every cell is independent


def cfd(
    adata: Any,
    *,
    batch_key: str,
    label_key: str | None = None,
    use_rep: str | None = None,
    embedding_obsm_keys: Sequence[str] | None = None,
    donor_key: str | None = None,
    weights: str = "pooled",
    level: float = 0.95,
    reference: str | None = None,
    min_cells: int = 2,
    nan: str = "raise",
    engine: Any = "auto",
    key_added: str | None = "crossfusion",
    lens: RowLens | Mapping[str, RowLens] | None = None,
) -> Leaderboard:
    """Measure batch effect and biology of one or several embeddings in an AnnData object.

    Parameters
    ----------
    adata : anndata.AnnData
        In memory, backed, or with Dask arrays; dense or sparse; views are accepted.
    batch_key : str
        Column of obs whose groups should be fused, such as the batch or the technology.
    label_key : str, optional
        Column of obs whose groups should stay separated, such as the cell type. Batches are compared within labels, and
        labels within batches.
    use_rep : str, optional
        The embedding: a key of obsm, "X", "raw/X" or "layers/NAME". By default "X_pca" if obsm has it, else "X".
    embedding_obsm_keys : list of str, optional
        Several embeddings, by the same names.
    donor_key : str, optional
        Column of obs that identifies the unit, such as the donor, for intervals. "index" treats every cell as a unit,
        unless there is a column of that name.
    weights : {"pooled", "balanced"}
        Weight batches by their cells, or all equally.
    level : float
        Confidence level of the intervals, which need `donor_key`.
    reference : str, optional
        The embedding that the others are compared with; the first by default.
    min_cells : int
        Combinations of batch and label with fewer cells, or with fewer than two donors, are left out, with a warning.
    nan : {"raise", "drop"}
        How to handle cells with NaN or infinite values.
    engine : {"auto", "local", "dask"} or distributed.Client
        The engine that reads and reduces; "auto" uses Dask for Dask arrays and threads otherwise.
    key_added : str or None
        Key of ``adata.uns`` under which the result is stored, as `Leaderboard.to_uns` returns it; None stores nothing.
    lens : crossfusion.lens.Lens or mapping, optional
        A map that is applied to the cells of each embedding first, or one lens per embedding by name.

    Returns
    -------
    Leaderboard
        One row per embedding: CFD(batch | label), CFD(label | batch), CFD(batch), differences from the reference, its
        standing, and both CFDs of each label and pair of labels.

    Notes
    -----
    Each embedding is read once, in time linear in cells; memory grows with batches × labels × donors, not with cells.
    CFD compares means, not shapes, so an embedding that centers each batch has an unadjusted CFD of 0 by construction;
    `standing` says so. Cells with a missing batch, label or donor are left out, with a warning.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd
    >>> import crossfusion.anndata
    >>> rng = np.random.default_rng(0)
    >>> donor = np.repeat(np.arange(8), 50)
    >>> obs = pd.DataFrame({"batch": donor // 4, "label": np.tile(["T", "B"], 200), "donor": donor})
    >>> x = rng.normal(size=(400, 4)) + 2 * (obs[["label"]] == "T").to_numpy() + (donor // 4)[:, None]
    >>> adata = anndata.AnnData(x, obs=obs.set_index(obs.index.astype(str)))
    >>> board = crossfusion.anndata.cfd(adata, batch_key="batch", label_key="label", donor_key="donor")
    >>> found = board.batch[0]
    >>> round(found.unbiased, 2), found.interval[0] < found.unbiased < found.interval[1]
    (0.24, True)
    >>> sorted(adata.uns["crossfusion"])
    ['format', 'labels', 'leaderboard', 'params']
    """
    library = optional.load("anndata", "anndata", "anndata", "crossfusion.anndata")
    if not isinstance(adata, library.AnnData):
        kind = type(adata).__name__
        raise InputError(
            "adata",
            problem=f"must be an AnnData, not {kind}",
            remedy="read a file with anndata.read_h5ad(..., backed='r')",
        )
    if key_added is not None and not (isinstance(key_added, str) and key_added):
        raise InputError("key_added", key_added, "must be a key of adata.uns, or None to store nothing")
    check_option(nan, NAN_OPTIONS, "nan")
    keys = Keys(batch_key, label_key, donor_key)
    names = choose_embeddings(adata, use_rep, embedding_obsm_keys)
    table = _read_factors(adata.obs, keys)
    lenses = _assign_lenses(lens, names)
    summaries = {}
    for name in names:
        source, who = open_embedding(adata, name, table, engine)
        summaries[name] = reduce_sources([source], engine=who, nan=nan, lens=lenses.get(name))
    options: dict[str, Any] = {"weights": weights, "level": level, "reference": reference}
    board = rank_embeddings(summaries, keys, min_cells=min_cells, **options)
    if key_added is not None:
        _store(adata, key_added, board)
    return board


def _assign_lenses(lens: Any, names: Sequence[str]) -> Mapping[str, RowLens]:
    """The lens of each embedding that has one."""
    lenses = lens if isinstance(lens, Mapping) else dict.fromkeys(names, lens)
    check_known(lenses, names, "embedding", "the leaderboard")
    for entry in lenses.values():
        check_lens(entry, adds_factors=False)
    return lenses


def _read_factors(obs: Any, keys: Keys) -> "pa.Table":
    """Batch, label and donor of each cell, from the columns of obs; categories without cells do not matter."""
    import pyarrow as pa

    columns, known = {}, list(obs.columns)
    for factor, name in keys.by_factor.items():
        if factor == DONOR and name == CELL_INDEX and CELL_INDEX not in known:
            columns[factor] = pa.array(np.arange(len(obs)))
            continue
        check_known([name], known, "column of obs", "adata")
        check_once([name], known, "adata.obs")
        columns[factor] = _encode_column(obs[name], f"{name} of adata.obs")
    return pa.table(columns)


def _encode_column(values: Any, name: str) -> "pa.Array":
    """Values of a column by their number among the distinct ones; categories have theirs already."""
    import pyarrow as pa

    categories = getattr(values, "cat", None)
    if categories is None:
        return factors.as_column(values, name).dictionary_encode()
    codes = categories.codes.to_numpy().astype(np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, mask=codes < 0), factors.as_column(categories.categories, name)
    )


def _store(adata: Any, key: str, board: Leaderboard) -> None:
    """Keep a result with the data; anndata turns a view into data of its own for that, but not one on disk."""
    if adata.is_view and adata.isbacked:
        warn(
            "a view of a backed AnnData cannot hold the result, so it is not stored",
            f"pass {arg('key_added', None)}, or keep what to_uns() gives in the whole",
        )
        return
    adata.uns[key] = board.to_uns()
