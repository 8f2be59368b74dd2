"""The pages name the packages that exist, and packages import each other as the architecture page says."""

import ast
import re
import tomllib

from tests.helpers import ROOT

SOURCE = ROOT / "src/crossfusion"
NOT_PACKAGES = {"__init__", "__main__", "_environment", "_version"}  # about the package itself
MODULES = {path.stem for path in SOURCE.glob("*.py")} | {path.parent.name for path in SOURCE.glob("*/__init__.py")}
PACKAGES = MODULES - NOT_PACKAGES


def layers_of_page():
    """Packages by layer, from the table of the architecture page."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    layers: dict[int, set[str]] = {}
    for layer, package in rows:
        layers.setdefault(int(layer), set()).add(package)
    return layers


def test_readme_tree_lists_the_packages():
    tree = (ROOT / "README.md").read_text().split("```text\nsrc/crossfusion/\n", 1)[1].split("```", 1)[0]
    assert sorted(re.findall(r"^  (\w+)(?:/|\.py) ", tree, re.MULTILINE)) == sorted(PACKAGES)


def test_architecture_page_lists_the_packages_in_the_layers_of_the_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layered = next(contract for contract in contracts if contract.get("containers") == ["crossfusion"])
    contract = [set(layer.split(" | ")) - NOT_PACKAGES for layer in layered["layers"]]
    page = layers_of_page()
    assert set().union(*page.values()) == PACKAGES
    assert [page[layer] for layer in sorted(page)] == [layer for layer in contract if layer]


def imports():
    """Every import of crossfusion inside the package: place, own package, imported module, imported names."""
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                yield from ((place, own, alias.name, ()) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{place}: a relative import"
                yield place, own, node.module or "", tuple(alias.name for alias in node.names)


def test_nothing_imports_the_root():
    """`from crossfusion import plots` is the package plots; any other name is one that the root collects for users."""
    found = [(place, set(names or "*")) for place, _, module, names in imports() if module == "crossfusion"]
    assert not [place for place, names in found if not names <= PACKAGES], "import from the package that defines it"


def test_packages_import_each_other_through_init():
    found = [(place, own, *module.split(".")) for place, own, module, _ in imports() if "crossfusion." in module]
    wrong = [(place, inside) for place, own, _, other, *inside in found if other != own and inside]
    assert not wrong, "import the name from the __init__ of its package"
