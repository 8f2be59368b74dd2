"""Slides and images of tissue: read, cut into tiles, and made ready for an encoder."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crossfusion.pathology.embedding import embed
    from crossfusion.pathology.encoders import Encoder, encoder
    from crossfusion.pathology.layouts import read_layout
    from crossfusion.pathology.normalizers import Normalizer, normalizer
    from crossfusion.pathology.stains import choose_reference
    from crossfusion.pathology.tiles import Tile

_WHERE = {
    "Encoder": "encoders",
    "Normalizer": "normalizers",
    "Tile": "tiles",
    "choose_reference": "stains",
    "embed": "embedding",
    "encoder": "encoders",
    "normalizer": "normalizers",
    "read_layout": "layouts",
}

__all__ = ["Encoder", "Normalizer", "Tile", "choose_reference", "embed", "encoder", "normalizer", "read_layout"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
