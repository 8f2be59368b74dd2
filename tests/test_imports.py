"""What is loaded, and when."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from tests.helpers.missing_libraries import without

HEAVY = {"pyarrow", "pandas", "polars", "scipy", "sklearn", "torch", "jax", "click", "rich"}
HEAVY |= {"ot", "matplotlib", "threadpoolctl"}


LOADED = "; import sys; print(*sys.modules)"


def own(modules):
    return {name for name in modules if name.partition(".")[0] == "crossfusion"}


def test_import_loads_no_library_and_next_to_nothing_of_its_own(python):
    loaded = python(f"import crossfusion{LOADED}").split()
    assert own(loaded) == {"crossfusion", "crossfusion._version"}
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY | {"numpy"})


def test_a_distance_loads_what_it_needs(python):
    loaded = python(f"import numpy as np, crossfusion as cf; cf.cfd(np.eye(4), np.eye(4) + 1){LOADED}").split()
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY)
    assert not own(loaded) & {"crossfusion.report", "crossfusion.evaluation", "crossfusion.cli"}


def test_names_stay_what_they_are_after_all_modules_load(python):
    code = """
import importlib, pkgutil
import numpy as np, crossfusion as cf
for module in pkgutil.walk_packages(cf.__path__, "crossfusion."):
    if module.name != "crossfusion.__main__":
        importlib.import_module(module.name)
assert dir(cf) == cf.__all__
assert callable(cf.pairwise) and not hasattr(cf, "drift")
print(cf.distance("mmd", np.zeros((2, 2)), np.ones((2, 2))))
"""
    assert float(python(code)) > 0


CALLED = """
import sys
from crossfusion.cli import main
try:
    main({words})
except SystemExit as done:
    assert not done.code
print("loaded", *sys.modules)
"""


def loaded_by(python, folder, *words):
    """Modules in memory after a command."""
    return python(CALLED.format(words=[str(word) for word in words]), cwd=folder).partition("loaded ")[2].split()


@pytest.mark.parametrize("words", [("--help",), ("--version",)], ids=" ".join)
def test_the_first_page_loads_no_command(words, python, tmp_path):
    loaded = loaded_by(python, tmp_path, *words)
    assert own(loaded) >= {"crossfusion.cli.commands"}
    packages = {name.split(".")[1] for name in own(loaded) if "." in name}
    assert packages - {"moments"} == {"_base", "_version", "cli"}
    assert ("moments" in packages) == (words == ("--version",))  # which knows the kernel in use
    light = {f"crossfusion.cli.{name}" for name in ("commands", "defaults", "wording")}
    assert {name for name in own(loaded) if name.startswith("crossfusion.cli.")} == light
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY - {"click"})


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rows in small files, and a summary of them."""
    folder = tmp_path_factory.mktemp("files")
    for name, x in (("a", np.eye(8)), ("b", np.eye(8) + 1)):
        np.save(folder / f"{name}.npy", x)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 8)
        pq.write_table(pa.table({"v": vectors, "site": ["n", "s"] * 4}), folder / f"{name}.parquet")
    cf.summarize(folder / "a.parquet", by="site").write(folder / "s.parquet")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "compare a.npy b.npy",
        "compare a.parquet b.parquet",
        "matrix s.parquet --between site",
        "summarize a.parquet --by site -o own.parquet",
    ],
)
def test_small_files_load_no_library_that_merely_is_installed(words, python, files):
    loaded = loaded_by(python, files, *words.split())
    assert {name.partition(".")[0] for name in loaded}.isdisjoint(HEAVY - {"click", "pyarrow"} | {"dask", "pyspark"})
    assert not own(loaded) & {f"crossfusion.{name}" for name in ("evaluation", "report", "pathology", "study", "demo")}


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
