"""The figure that plots are drawn on, loaded with Matplotlib only."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from crossfusion.plots.style import make_metadata

NOTEBOOK_DPI = 144  # dots per inch in a notebook


@contextmanager
def _apply_style(style: dict[str, Any]) -> Iterator[None]:
    """The style while something is drawn; letters that no font has become boxes, without a word about each."""
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
        yield


class StyledFigure(Figure):
    """A figure that keeps its style: ticks are made, and fonts embedded, when it is drawn and not before."""

    style: dict[str, Any]

    def draw(self, renderer: Any) -> None:
        """Draw in its style."""
        with _apply_style(self.style):
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write to a file in its style; `Figure.savefig` says what options there are."""
        ending = options.get("format") or Path(str(fname)).suffix[1:]
        with _apply_style(self.style):
            super().savefig(fname, **{"metadata": make_metadata(ending.lower())} | options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows, without pyplot."""
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=NOTEBOOK_DPI)
        return written.getvalue()
