"""Figures of studies: one style, and the same bytes from the same numbers."""

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from crossfusion._base import write_whole
from crossfusion.plots import style


def set_figure_style(**settings: Any) -> AbstractContextManager[None]:
    """Context in which figures of a study are drawn; settings of Matplotlib have ``_`` in place of the dot."""
    own = {name.replace("_", ".", 1): value for name, value in settings.items()}
    context: AbstractContextManager[None] = style.load_matplotlib().rc_context(style.WIDE | own)
    return context


def figure(width: float, height: float) -> Any:
    """Make an empty figure, in inches, in the style that holds while it is drawn."""
    return style.make_figure(width, height)


def save_figure(drawn: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG, each whole or not at all, and return the files."""
    drawn.draw_without_rendering()
    drawn.set_layout_engine("none")  # the layout is computed once, for both files
    paths = []
    with style.load_matplotlib().rc_context({"svg.hashsalt": style.WIDE["svg.hashsalt"]}):
        for ending in ("png", "svg"):
            path = folder / f"{name}.{ending}"
            write_whole(path, partial(drawn.savefig, format=ending, dpi=150, metadata=style.make_metadata(ending)))
            paths.append(path)
    return paths
