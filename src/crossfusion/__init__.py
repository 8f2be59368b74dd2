"""Cross-Fusion Distance: how far groups of embeddings are fused or separated."""

from crossfusion._base import (
    CrossfusionError,
    CrossfusionWarning,
    EngineError,
    FileError,
    InputError,
    MissingDependencyError,
    NonFiniteError,
)
from crossfusion._version import __version__
from crossfusion.arrays import cfd, dispersion_test, permutation_test
from crossfusion.evaluation import (
    Cddr,
    Decomposition,
    Rdr,
    Study,
    cddr,
    correct,
    corrections,
    degradation_study,
    distance,
    distances,
    rdr,
    wasserstein_decomposition,
)
from crossfusion.fusion import Attribution, Fusion, Hierarchy, Level, Pairwise, Projection
from crossfusion.inference import TestResult, adjusted_pvalues
from crossfusion.io import summarize
from crossfusion.moments import Moments
from crossfusion.report import Report
from crossfusion.summary import (
    Change,
    Drift,
    Methods,
    Summary,
    append_summary,
    compare_methods,
    merge_summaries,
    read_summary,
)

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
