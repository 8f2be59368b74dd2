"""How figures look: no window, no global state of Matplotlib."""

from typing import Any

from crossfusion import optional

STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "legend.frameon": False,
    "svg.hashsalt": "crossfusion",  # else the names inside an SVG change from run to run
}


def matplotlib() -> Any:
    """The library, or what installs it."""
    return optional.load("matplotlib", "matplotlib", "reproduce", "drawing a figure")


def figure(width: float, height: float) -> Any:
    """An empty figure in inches."""
    module = optional.load("matplotlib.figure", "matplotlib", "reproduce", "drawing a figure")
    return module.Figure(figsize=(width, height), layout="constrained")
