"""Public names exist, are documented where one looks, and nothing else is public."""

import ast
import inspect
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

import crossfusion as cf
from tests.helpers.docstrings import API_PAGE, sections

MODULES = [name for name in cf.__all__ if inspect.ismodule(getattr(cf, name))]
PUBLIC = [name for name in cf.__all__ if not name.startswith("_") and name not in MODULES]
ERRORS = [name for name in PUBLIC if inspect.isclass(getattr(cf, name)) and issubclass(getattr(cf, name), Exception)]
REGISTRIES = ("corrections", "distances")
IN_MODULES = [f"{module}.{name}" for module in MODULES for name in getattr(cf, module).__all__]
WORKING = [*(name for name in PUBLIC if name not in (*ERRORS, *REGISTRIES)), *IN_MODULES]
OBJECTS = {name: attrgetter(name)(cf) for name in WORKING}
CLASSES = [member for member in OBJECTS.values() if inspect.isclass(member)]
METHODS = {
    f"{owner.__name__}.{name}": member
    for owner in CLASSES
    for base in owner.__mro__
    if base.__module__.startswith("crossfusion")
    for name, member in vars(base).items()
    if not name.startswith("_") and (callable(member) or isinstance(member, property | classmethod))
}


def test_type_checkers_see_the_names_that_are_loaded():
    stub = ast.parse(Path(cf.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    defined = {alias.name: str(node.module) for node in imports for alias in node.names}
    listed, *renamed = [node for node in stub.body if isinstance(node, ast.Assign)]
    assert list(cf.__all__) == ast.literal_eval(listed.value) == sorted(defined)
    assert {ast.unparse(node.targets[0]) for node in renamed} == set(vars(cf)["_RENAMED"])
    for name, module in defined.items():
        assert getattr(cf, name) is getattr(import_module(module), name)


def test_dir_shows_public_names_only():
    assert dir(cf) == list(cf.__all__)
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.?(dev|a|b|rc)\d+)?", cf.__version__)


def test_unknown_names_are_attribute_errors():
    for name in ("hierarchy", "drift", "unknown"):
        with pytest.raises(AttributeError, match=f"module 'crossfusion' has no attribute '{name}'"):
            getattr(cf, name)


@pytest.mark.parametrize("name", WORKING)
def test_public_names_are_documented_with_an_example(name):
    documented = OBJECTS[name]
    expected = ({"Parameters"} if inspect.signature(documented).parameters else set()) | {"Examples"}
    expected -= {"Examples"} if name == "Level" else set()
    expected |= {"Returns"} if inspect.isfunction(documented) else set()
    assert expected <= set(sections(documented))
    assert (">>> " in documented.__doc__) == ("Examples" in expected)


@pytest.mark.parametrize("name", METHODS)
def test_public_methods_are_documented(name):
    member = METHODS[name]
    function = member.__func__ if isinstance(member, classmethod) else member
    assert inspect.getdoc(function)
    if not isinstance(function, property) and inspect.signature(function).return_annotation not in (None, "None", bool):
        assert "Returns" in sections(function)


SIGNATURES = [
    *(name for name in WORKING if name != "Level"),
    *(name for name in METHODS if callable(METHODS[name])),
    *(f"{kind}:{name}" for kind in REGISTRIES for name in getattr(cf, kind)),
]


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_parameter_is_documented(name):
    kind, _, entry = name.partition(":")
    documented = METHODS[name] if name in METHODS else getattr(cf, kind)[entry] if entry else OBJECTS[name]
    text = inspect.getdoc(documented) or ""
    section = text.partition("Parameters\n----------\n")[2].split("\n\n")[0]
    named = {
        part.strip(" *") for line in re.findall(r"^(\S.*?) ?(?::|$)", section, re.MULTILINE) for part in line.split(",")
    }
    assert named == set(inspect.signature(documented).parameters) - {"self"}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_one_base(name):
    error = getattr(cf, name)
    assert error.__doc__
    if name != "CrossfusionWarning":
        assert issubclass(error, cf.CrossfusionError)


@pytest.mark.parametrize("name", [*(name for name in cf.__all__ if name not in MODULES), *IN_MODULES])
def test_every_name_is_on_the_api_page(name):
    entry = rf"(?<!\w){re.escape(name)}(?!\w)" if name in (*REGISTRIES, "__version__") else rf"^   {name}$"
    assert re.search(entry, API_PAGE.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", cf.distances)
def test_every_distance_says_what_it_is(name):
    documented = cf.distances[name]
    assert documented.__name__ == name
    assert {"Parameters", "Returns", "Notes", "References"} <= set(sections(documented))
    notes = (inspect.getdoc(documented) or "").partition("Notes\n-----\n")[2].lower()
    assert "blind" in notes
    assert re.search(r"linear|quadratic|cubic|o\(|costs|three problems", notes)
    assert f"   {documented.__module__.removeprefix('crossfusion.')}.{name}\n" in API_PAGE.read_text()


@pytest.mark.parametrize("name", cf.corrections)
def test_every_correction_says_what_it_is(name):
    documented = cf.corrections[name]
    assert documented.__name__ == name
    assert {"Parameters", "Returns", "Notes"} <= set(sections(documented))
    assert f"   {documented.__module__.removeprefix('crossfusion.')}.{name}\n" in API_PAGE.read_text()


@pytest.mark.parametrize("module", ["torch", "jax", "sklearn", "anndata", "pathology", "plots", "testing"])
def test_every_name_of_a_module_is_on_the_api_page(module):
    source = Path(cf.__file__).parent / module
    text = (source / "__init__.py" if source.is_dir() else source.with_suffix(".py")).read_text()
    names = re.findall(r'"(\w+)"', text.partition("__all__ = [")[2].partition("]")[0])
    listed = re.findall(rf"^   {module}\.(\w+)$", API_PAGE.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(name for name in names if not name.isupper())
