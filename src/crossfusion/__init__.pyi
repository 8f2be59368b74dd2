from crossfusion import lens as lens
from crossfusion import testing as testing
from crossfusion._base import (
    CrossfusionError,
    CrossfusionWarning,
    EngineError,
    FileError,
    InputError,
    MissingDependencyError,
    NonFiniteError,
)
from crossfusion._environment import show_versions
from crossfusion._version import __version__
from crossfusion.arrays import (
    Recognition,
    Separability,
    cfd,
    dispersion_test,
    log_wilks,
    one_vs_rest,
    pairwise,
    permutation_test,
    separability,
)
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
from crossfusion.fusion import (
    Attribution,
    Exclusion,
    Fusion,
    Geometry,
    Hierarchy,
    Level,
    Mixing,
    Pairwise,
    Projection,
    Region,
)
from crossfusion.gates import CheckResult, RuleOutcome, check
from crossfusion.inference import TestResult, adjusted_pvalues
from crossfusion.io import summarize
from crossfusion.moments import Moments
from crossfusion.report import Report
from crossfusion.summary import (
    Change,
    CorrectionComparison,
    Drift,
    Summary,
    append_summary,
    compare_corrections,
    merge_summaries,
    read_summary,
)

__all__ = [
    "Attribution",
    "Cddr",
    "Change",
    "CheckResult",
    "CorrectionComparison",
    "CrossfusionError",
    "CrossfusionWarning",
    "Decomposition",
    "Drift",
    "EngineError",
    "Exclusion",
    "FileError",
    "Fusion",
    "Geometry",
    "Hierarchy",
    "InputError",
    "Level",
    "MissingDependencyError",
    "Mixing",
    "Moments",
    "NonFiniteError",
    "Pairwise",
    "Projection",
    "Rdr",
    "Recognition",
    "Region",
    "Report",
    "RuleOutcome",
    "Separability",
    "Study",
    "Summary",
    "TestResult",
    "__version__",
    "adjusted_pvalues",
    "append_summary",
    "cddr",
    "cfd",
    "check",
    "compare_corrections",
    "correct",
    "corrections",
    "degradation_study",
    "dispersion_test",
    "distance",
    "distances",
    "lens",
    "log_wilks",
    "merge_summaries",
    "one_vs_rest",
    "pairwise",
    "permutation_test",
    "rdr",
    "read_summary",
    "separability",
    "show_versions",
    "summarize",
    "testing",
    "wasserstein_decomposition",
]

Methods = CorrectionComparison  # names of 0.1, deprecated
compare_methods = compare_corrections
