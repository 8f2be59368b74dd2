"""Slides and images of tissue: read, cut into tiles, and made ready for an encoder."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossfusion.pathology.embedding import embed
    from crossfusion.pathology.encoders import Encoder, encoder
    from crossfusion.pathology.layouts import count_tiles as count_tiles
    from crossfusion.pathology.layouts import read_layout
    from crossfusion.pathology.normalizers import NETWORKS as NETWORKS
    from crossfusion.pathology.normalizers import Normalizer, normalizer
    from crossfusion.pathology.resumable_output import VECTOR_COLUMN as VECTOR_COLUMN
    from crossfusion.pathology.resumable_output import check_target as check_target
    from crossfusion.pathology.resumable_output import read_facts as read_facts
    from crossfusion.pathology.stains import choose_reference
    from crossfusion.pathology.stains import find_reference as find_reference
    from crossfusion.pathology.tiles import Tile

_WHERE = {
    "Encoder": "encoders",
    "NETWORKS": "normalizers",
    "Normalizer": "normalizers",
    "Tile": "tiles",
    "VECTOR_COLUMN": "resumable_output",
    "check_target": "resumable_output",
    "choose_reference": "stains",
    "count_tiles": "layouts",
    "embed": "embedding",
    "encoder": "encoders",
    "find_reference": "stains",
    "normalizer": "normalizers",
    "read_facts": "resumable_output",
    "read_layout": "layouts",
}

__all__ = ["Encoder", "Normalizer", "Tile", "choose_reference", "embed", "encoder", "normalizer", "read_layout"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
