"""Cross-Fusion Distance: how far groups of embeddings are fused or separated."""

from crossfusion._version import __version__
from crossfusion.adjust import adjusted_pvalues
from crossfusion.alignment import correct, corrections
from crossfusion.appending import append_summary
from crossfusion.attribution import Attribution
from crossfusion.baselines import Decomposition, distance, distances, wasserstein_decomposition
from crossfusion.collect import summarize
from crossfusion.compare import cfd
from crossfusion.dispersion import dispersion_test
from crossfusion.drift import Change, Drift
from crossfusion.errors import (
    CrossfusionError,
    CrossfusionWarning,
    EngineError,
    FileError,
    InputError,
    MissingDependencyError,
    NonFiniteError,
)
from crossfusion.fusion import Fusion
from crossfusion.hierarchy import Hierarchy, Level
from crossfusion.judge import TestResult
from crossfusion.merging import merge_summaries
from crossfusion.methods import Methods, compare_methods
from crossfusion.moments import Moments
from crossfusion.pairwise import Pairwise
from crossfusion.permutation import permutation_test
from crossfusion.projection import Projection
from crossfusion.protocols.degradation import cddr
from crossfusion.protocols.drops import Cddr
from crossfusion.protocols.outcomes import Study
from crossfusion.protocols.ratios import Rdr
from crossfusion.protocols.relative import rdr
from crossfusion.protocols.study import degradation_study
from crossfusion.report import Report
from crossfusion.summary import Summary, read_summary

__all__ = [
    "Attribution",
    "Cddr",
    "Change",
    "CrossfusionError",
    "CrossfusionWarning",
    "Decomposition",
    "Drift",
    "EngineError",
    "FileError",
    "Fusion",
    "Hierarchy",
    "InputError",
    "Level",
    "Methods",
    "MissingDependencyError",
    "Moments",
    "NonFiniteError",
    "Pairwise",
    "Projection",
    "Rdr",
    "Report",
    "Study",
    "Summary",
    "TestResult",
    "__version__",
    "adjusted_pvalues",
    "append_summary",
    "cddr",
    "cfd",
    "compare_methods",
    "correct",
    "corrections",
    "degradation_study",
    "dispersion_test",
    "distance",
    "distances",
    "merge_summaries",
    "permutation_test",
    "rdr",
    "read_summary",
    "summarize",
    "wasserstein_decomposition",
]
