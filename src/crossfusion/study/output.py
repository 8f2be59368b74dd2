"""Figures and texts as files: the same bytes from the same numbers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion._base import files, make_folder
from crossfusion.plots import style

if TYPE_CHECKING:
    import pyarrow as pa

STYLE = style.WIDE
figure = style.figure
matplotlib = style.matplotlib

__all__ = ["STYLE", "figure", "make_folder", "matplotlib", "save", "write_table"]


def save(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, each whole or not at all."""
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # places are found once, for both files
    paths = []
    with matplotlib().rc_context({"svg.hashsalt": STYLE["svg.hashsalt"]}):
        for ending in ("png", "svg"):
            path = folder / f"{name}.{ending}"
            files.write_whole(path, partial(drawn.savefig, format=ending, dpi=150, metadata=style.nameless(ending)))
            paths.append(path)
    return paths


def write_table(path: Path, table: "pa.Table") -> None:
    """Write a table whole or not at all, with checksums."""
    import pyarrow.parquet as pq

    files.write_whole(path, partial(pq.write_table, table, write_page_checksum=True))
