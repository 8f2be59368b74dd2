"""Errors and warnings: what they are made of, how each interface words them, and how they travel between processes."""

import ast
import copy
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import crossfusion as cf
from crossfusion._base import Argument, Spelling, arg, dump_error, load_error, warn
from tests.helpers import ROOT

BOTH = Spelling("a list of periods", "A,B,...")
REMEDY = f"pass {arg('units')}, {arg('level', None)} or {BOTH}"
IN_PYTHON = "pass units, level=None or a list of periods"
AS_OPTIONS = "pass --units, --level None or A,B,..."
ERRORS: dict[str, tuple[Any, str, str]] = {
    "argument and value": (cf.InputError("by", ["a"], "is odd", REMEDY), "by=['a'] is odd: ", "--by ['a'] is odd: "),
    "argument": (cf.InputError("by", problem="is empty", remedy=REMEDY), "by is empty: ", "--by is empty: "),
    "no argument": (cf.InputError(problem="by is odd", remedy=REMEDY), "by is odd: ", "by is odd: "),
    "rows": (cf.NonFiniteError("x", problem="has NaN", remedy=REMEDY), "x has NaN: ", "--x has NaN: "),
    "file": (cf.FileError("a.npy", "is damaged", REMEDY), "a.npy is damaged: ", "a.npy is damaged: "),
    "no file": (cf.FileError(problem="there is none", remedy=REMEDY), "there is none: ", "there is none: "),
    "engine": (cf.EngineError("workers are lost", REMEDY), "workers are lost: ", "workers are lost: "),
    "base": (cf.CrossfusionError(problem="no plan", remedy=REMEDY), "no plan: ", "no plan: "),
    "warning": (cf.CrossfusionWarning("few rows", REMEDY), "few rows: ", "few rows: "),
}
NASTY = ["{units}", "%s {0} {{", "\ue000units\ue001", "a\nb", "\x1b[31m", "caf\udce9", "\U000f0000", "=|", "', '"]


def as_option(part):
    if isinstance(part, Spelling):
        return part.typed
    return f"--{part.name}" if part.value is None else f"--{part.name} {part.value}"


@pytest.mark.parametrize("name", ERRORS)
def test_python_and_the_command_line_word_the_same_object(name):
    error, python, typed = ERRORS[name]
    assert str(error) == python + IN_PYTHON
    assert error.render(as_option) == typed + AS_OPTIONS
    assert error.remedy == IN_PYTHON
    assert str(error) in repr(error)


def test_errors_have_parts():
    error = cf.InputError("level", 2, "must be below 1", "pass 0.95")
    assert (error.argument, error.value, error.problem, error.remedy) == ("level", 2, "must be below 1", "pass 0.95")
    file = cf.FileError(ROOT / "x.npy", "does not exist", "check the path")
    assert (file.path, file.argument, file.problem) == (str(ROOT / "x.npy"), None, "does not exist")
    missing = cf.MissingDependencyError("zarr", "zarr", "reading Zarr")
    assert missing.problem == "reading Zarr needs zarr, which is not installed"
    assert missing.remedy == "pip install 'crossfusion[zarr]'"


def test_errors_raised_by_the_library_have_parts():
    with pytest.raises(cf.InputError) as caught:
        cf.cfd([[1.0]], [[2.0]], level=3)
    assert (caught.value.argument, caught.value.value) == ("level", 3)
    with pytest.raises(cf.NonFiniteError) as caught:
        cf.cfd([[np.nan]], [[2.0]])
    assert (caught.value.argument, caught.value.remedy) == ("a", "fix them, or leave those rows out with nan='drop'")
    with pytest.raises(cf.FileError) as missing:
        cf.read_summary("none.parquet")
    assert (missing.value.path, missing.value.problem) == ("none.parquet", "does not exist")


@pytest.mark.parametrize("name", ERRORS)
def test_errors_survive_pickling_and_copying(name):
    error = ERRORS[name][0]
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert (other.argument, other.value) == (error.argument, error.value)
        assert getattr(other, "path", None) == getattr(error, "path", None)
        assert other.render(as_option) == error.render(as_option)
        assert repr(other) == repr(error)


@pytest.mark.parametrize("name", [name for name in ERRORS if name != "warning"])
def test_errors_survive_json(name):
    error = ERRORS[name][0]
    other = load_error(dump_error(error))
    assert type(other) is type(error)
    assert (other.argument, getattr(other, "path", None)) == (error.argument, getattr(error, "path", None))
    assert (str(other), other.render(as_option)) == (str(error), error.render(as_option))


def test_missing_libraries_are_told_by_other_processes():
    error = cf.MissingDependencyError("zarr", None, "reading Zarr")
    for other in (pickle.loads(pickle.dumps(error)), load_error(dump_error(error))):
        assert isinstance(other, cf.MissingDependencyError)
        assert str(other) == "reading Zarr needs zarr, which is not installed: pip install zarr"


def test_values_that_cannot_be_pickled_are_shown():
    lock = threading.Lock()
    other = pickle.loads(pickle.dumps(cf.InputError("engine", lock, "is not known")))
    assert str(other) == f"engine={lock!r} is not known"
    assert other.value == repr(lock)


def test_errors_of_another_process_are_worded_here():
    made = "cf.InputError('by', 1, 'is odd', f\"pass {arg('units')}\")"
    imports = "import pickle, sys, crossfusion as cf; from crossfusion._base import arg"
    code = f"{imports}; pickle.dump({made}, sys.stdout.buffer)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert pickle.loads(done.stdout).render(as_option) == "--by 1 is odd: pass --units"


@pytest.mark.parametrize("text", NASTY)
def test_text_of_users_is_never_taken_for_an_argument(text):
    problem, mark = f"has {text}", str(arg("units"))
    error = cf.InputError("by", text, problem, f"see {text}, or {arg('given', text)}")
    assert [part for part in error.sentence if isinstance(part, Argument)] == [arg("by", text), arg("given", text)]
    for said in (str(error), error.render(as_option), str(pickle.loads(pickle.dumps(error)))):
        assert said.isprintable()
        assert "--units" not in said
        assert mark not in said
        if text.isprintable():
            assert said.count(text) >= 2


def test_an_error_quotes_another_without_losing_its_arguments():
    inner = cf.InputError("level", 2, "is odd", f"pass {arg('units')}")
    assert cf.CrossfusionWarning(f"no interval: {inner.marked}").render(as_option) == (
        "no interval: --level 2 is odd: pass --units"
    )


class Loud:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("value", "said"), [(np.float64(0.5), "x=0.5"), (np.int64(3), "x=3"), ("a", "x='a'"), (Loud(), "x=<Loud>")]
)
def test_values_are_shown_as_python_writes_them(value, said):
    assert str(cf.InputError("x", value, "is odd")) == f"{said} is odd"


def test_long_values_are_cut():
    assert len(str(cf.InputError("x", "a" * 100_000, "is odd"))) < 500


@pytest.mark.parametrize("made", [lambda: cf.InputError("a sentence"), lambda: cf.FileError("a sentence")])
def test_an_error_needs_a_problem(made):
    with pytest.raises(TypeError, match="needs a problem"):
        made()


def test_warnings_point_outside_of_the_library():
    with pytest.warns(cf.CrossfusionWarning, match="few rows: pass units") as caught:
        warn("few rows", f"pass {arg('units')}")
    assert caught[0].filename == __file__
    assert isinstance(caught[0].message, cf.CrossfusionWarning)
    assert caught[0].message.render(as_option) == "few rows: pass --units"


def test_every_error_of_the_library_is_made_in_parts():
    kinds = {"CrossfusionError", "InputError", "NonFiniteError"}
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "paper").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kinds | {"FileError"}:
                least = 2 if node.func.id == "FileError" else 3
                named = any(keyword.arg == "problem" for keyword in node.keywords)
                assert named or len(node.args) >= least, f"{path}:{node.lineno} says no problem"
