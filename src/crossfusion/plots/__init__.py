"""Figures of results, from plain numbers and names; results call these in their `plot`."""

from crossfusion.plots.bars import contributions, levels, parts
from crossfusion.plots.chance import null
from crossfusion.plots.clouds import cloud
from crossfusion.plots.depths import depth
from crossfusion.plots.heatmap import matrix
from crossfusion.plots.lines import LINES, forest
from crossfusion.plots.panels import panels
from crossfusion.plots.periods import series
from crossfusion.plots.versus import plane

__all__ = [
    "LINES",
    "cloud",
    "contributions",
    "depth",
    "forest",
    "levels",
    "matrix",
    "null",
    "panels",
    "parts",
    "plane",
    "series",
]
