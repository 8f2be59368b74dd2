"""Batch effect and biology of embeddings in AnnData: one row per embedding, from moments alone.

Imported when asked for, as ``import crossfusion.anndata``; the extra ``anndata`` installs what it needs.
"""

from crossfusion.anndata.label_distances import WithinLabel
from crossfusion.anndata.leaderboard import Leaderboard
from crossfusion.anndata.measure import cfd
from crossfusion.anndata.ranking import Keys as Keys
from crossfusion.anndata.ranking import rank_embeddings as rank_embeddings

__all__ = ["Leaderboard", "WithinLabel", "cfd"]
