"""`paper` uses public names of crossfusion only."""

import ast
from importlib import import_module

import pytest

from tests.helpers import ROOT

PUBLIC = ("", ".anndata", ".jax", ".pathology", ".plots", ".sklearn", ".study", ".study.published", ".torch")
FILES = sorted((ROOT / "paper").rglob("*.py"))


def imports(tree):
    """Module and name of everything that is imported from crossfusion; the name is None where all of it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((own.name, None) for own in node.names if own.name.split(".")[0] == "crossfusion")
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "crossfusion":
            yield from ((str(node.module), own.name) for own in node.names)


def is_public(module, name):
    if (module, name) == ("crossfusion.cli", "run"):
        return True
    if module.removeprefix("crossfusion") not in PUBLIC:
        return False
    return name is None or name in import_module(module).__all__


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names_are_imported(path):
    found = list(imports(ast.parse(path.read_text(encoding="utf-8"))))
    assert [own for own in found if not is_public(*own)] == []


def test_attributes_of_the_package_are_public():
    """What is used as `cf.name`."""
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "cf"}
        assert used <= {*import_module("crossfusion").__all__}, path


def test_private_names_are_seen():
    code = "from crossfusion._base import files\nfrom crossfusion.study import resume\nimport crossfusion.moments"
    assert not any(is_public(*own) for own in imports(ast.parse(code)))
