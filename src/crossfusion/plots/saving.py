"""Figures as files."""

from functools import partial
from pathlib import Path
from typing import Any

from crossfusion._base import FileError, files
from crossfusion.plots import style

FIGURE_ENDINGS = (".png", ".svg", ".pdf")


def check_ending(path: Path) -> None:
    """Refuse a file that is no figure, before any work."""
    if path.suffix.lower() not in FIGURE_ENDINGS:
        raise FileError(path, "has an ending that does not fit a figure", f"use {' or '.join(FIGURE_ENDINGS)}")
    files.check_folder(path)


def write_figure(drawn: Any, path: Path, dpi: int = 300) -> None:
    """Write a figure, whole or not at all, the same bytes from the same numbers."""
    ending = path.suffix.lower()[1:]
    options = {"format": ending, "dpi": dpi, "metadata": style.make_metadata(ending)}
    with style.load_matplotlib().rc_context({"svg.hashsalt": style.BASE_STYLE["svg.hashsalt"]}):
        files.write_whole(path, partial(drawn.savefig, **options))
