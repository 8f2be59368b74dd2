"""What is loaded, and when."""

import pytest

HEAVY = {"numba", "llvmlite", "pyarrow", "pandas", "polars", "scipy", "sklearn", "torch", "jax", "click", "rich"}
HEAVY |= {"ot", "matplotlib", "threadpoolctl"}


def test_import_loads_numpy_and_nothing_heavy(python):
    loaded = python("import sys, crossfusion; print(*sys.modules)").split()
    assert "numpy" in loaded
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY)


def without(name):
    """Code after which a library cannot be imported."""
    return f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{name}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


@pytest.mark.parametrize("name", ["pandas", "polars", "scipy", "sklearn", "torch", "jax", "click", "rich"])
def test_questions_need_no_optional_library(name, python):
    code = """
import numpy as np, crossfusion as cf
x = np.arange(24.0).reshape(12, 2)
s = cf.summarize(x, by={"g": [1, 2, 3] * 4})
print(cf.cfd(x[:4], x[4:]), s, s.pairwise("g"), s.hierarchy(["g"]), s.attribution("g"))
"""
    assert "Cross-Fusion Distance" in python(without(name) + code)


@pytest.mark.parametrize(
    ("hidden", "name", "library"),
    [
        ("ot", "wasserstein", "POT"),
        ("scipy", "sinkhorn", "SciPy"),
        ("sklearn", "classifier", "scikit-learn"),
    ],
)
def test_a_distance_names_the_library_it_misses(hidden, name, library, python):
    code = f"""
import numpy as np, crossfusion as cf
try:
    cf.distance("{name}", np.eye(6), np.eye(6))
except cf.MissingDependencyError as problem:
    print(problem)
"""
    expected = f"the distance '{name}' needs {library}, which is not installed: pip install 'crossfusion[distances]'"
    assert python(without(hidden) + code) == expected


def test_a_missing_library_is_named_with_the_way_out(python):
    code = """
import crossfusion as cf
try:
    cf.summarize([[1.0], [2.0]], by={"g": [1, 2]}).to_frame()
except cf.MissingDependencyError as problem:
    print(isinstance(problem, cf.CrossfusionError), isinstance(problem, ImportError), problem)
"""
    expected = "True True to_frame() needs pandas, which is not installed: pip install 'crossfusion[pandas]'"
    assert python(without("pandas") + code) == expected
