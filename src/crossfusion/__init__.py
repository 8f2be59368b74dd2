"""Cross-Fusion Distance: how far groups of embeddings are fused or separated."""

from crossfusion._version import __version__
from crossfusion.attribution import Attribution
from crossfusion.baselines import Decomposition, distance, distances, wasserstein_decomposition
from crossfusion.collect import summarize
from crossfusion.compare import cfd
from crossfusion.errors import (
    CrossfusionError,
    CrossfusionWarning,
    FileError,
    InputError,
    MissingDependencyError,
    NonFiniteError,
)
from crossfusion.fusion import Fusion
from crossfusion.hierarchy import Hierarchy, Level
from crossfusion.moments import Moments
from crossfusion.pairwise import Pairwise
from crossfusion.summary import Summary, read_summary

__all__ = [
    "Attribution",
    "CrossfusionError",
    "CrossfusionWarning",
    "Decomposition",
    "FileError",
    "Fusion",
    "Hierarchy",
    "InputError",
    "Level",
    "MissingDependencyError",
    "Moments",
    "NonFiniteError",
    "Pairwise",
    "Summary",
    "__version__",
    "cfd",
    "distance",
    "distances",
    "read_summary",
    "summarize",
    "wasserstein_decomposition",
]
