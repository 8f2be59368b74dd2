"""Figures of results, from plain numbers and names; results call these in their `plot`."""

from crossfusion.plots.bars import contributions, levels, parts
from crossfusion.plots.batch_biology import plane
from crossfusion.plots.degradation_panels import panels
from crossfusion.plots.drift_series import series
from crossfusion.plots.forest_plot import LINES, forest
from crossfusion.plots.heatmap import matrix
from crossfusion.plots.layer_depth import depth
from crossfusion.plots.null_distribution import null
from crossfusion.plots.projection import cloud
from crossfusion.plots.region_map import region_map
from crossfusion.plots.theme import DARK, LIGHT

__all__ = [
    "DARK",
    "LIGHT",
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
    "region_map",
    "series",
]
