"""Cross-Fusion Distance: how far groups of embeddings are fused or separated.

Public names are loaded on first use (PEP 562), so that the import costs next to nothing. Type checkers and editors
read `__init__.pyi`, which lists the same names.
"""

import warnings as _warnings
from importlib import import_module as _import_module

from crossfusion._version import __version__ as __version__

_NAMES = {
    "_base": (
        "CrossfusionError",
        "CrossfusionWarning",
        "EngineError",
        "FileError",
        "InputError",
        "MissingDependencyError",
        "NonFiniteError",
    ),
    "_environment": ("show_versions",),
    "arrays": (
        "Recognition",
        "Separability",
        "cfd",
        "dispersion_test",
        "log_wilks",
        "one_vs_rest",
        "pairwise",
        "permutation_test",
        "separability",
    ),
    "evaluation": (
        "Cddr",
        "Decomposition",
        "Rdr",
        "Study",
        "cddr",
        "correct",
        "corrections",
        "degradation_study",
        "distance",
        "distances",
        "rdr",
        "wasserstein_decomposition",
    ),
    "fusion": (
        "Attribution",
        "Exclusion",
        "Fusion",
        "Geometry",
        "Hierarchy",
        "Level",
        "Mixing",
        "Pairwise",
        "Projection",
        "Region",
    ),
    "gates": ("CheckResult", "RuleOutcome", "check"),
    "inference": ("TestResult", "adjusted_pvalues"),
    "io": ("summarize",),
    "moments": ("Moments",),
    "report": ("Report",),
    "summary": (
        "Change",
        "CorrectionComparison",
        "Drift",
        "Summary",
        "append_summary",
        "compare_corrections",
        "merge_summaries",
        "read_summary",
    ),
}
_MODULES = ("lens", "testing")  # whose names are used as crossfusion.lens.unit
_PACKAGES = {name: package for package, names in _NAMES.items() for name in names}
_RENAMED = {"Methods": "CorrectionComparison", "compare_methods": "compare_corrections"}  # names of 0.1

__all__ = sorted(["__version__", *_MODULES, *_PACKAGES])


def __getattr__(name: str) -> object:
    """Load a public name from the package that defines it."""
    if name in _RENAMED:
        _warnings.warn(f"{name} is now called {_RENAMED[name]}: use that name", DeprecationWarning, stacklevel=2)
        return __getattr__(_RENAMED[name])
    if name in _MODULES:
        return _import_module(f"{__name__}.{name}")
    if name not in _PACKAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(_import_module(f"{__name__}.{_PACKAGES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Public names only, not the packages that happen to be loaded."""
    return list(__all__)
