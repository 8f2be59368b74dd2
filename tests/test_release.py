"""What a release says of itself agrees: version, date, citation, licences of what it needs."""

import io
import json
import os
import platform
import re
import tarfile
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import crossfusion as cf
from crossfusion import _environment
from crossfusion.moments import kernel
from crossfusion.report.methods_text import BIBTEX, CITATION
from tools import licences
from tools.dist import PLATFORM, TAG, find_release, normalize

ROOT = Path(__file__).parents[1]
MANIFEST = (ROOT / "MANIFEST.in").read_text("utf-8")
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
BILL = json.loads((ROOT / "docs" / "sbom.json").read_text("utf-8"))
PINNED = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))


def plain(text):
    return " ".join(text.split()).casefold()


def test_version_and_date_are_the_same_everywhere():
    version, day = find_release()
    assert (CITED["version"], CITED["date-released"]) == (version, day)
    assert cf.__version__ == version or cf.__version__.startswith(f"{version}.") or "dev" in cf.__version__
    assert BILL["metadata"]["component"]["version"] == version


def test_paper_and_benchmarks_are_in_the_sdist_and_not_in_the_wheel():
    """As configured; tools/check_dist.py looks into the files."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert settings["packages"] == {"find": {"where": ["src"]}}
    assert {"paper", "benchmarks", "src", "tests"} <= set(re.findall(r"^graft (\S+)$", MANIFEST, re.MULTILINE))


def test_the_extension_is_optional_and_of_the_stable_abi():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    lowest = project["project"]["requires-python"].removeprefix(">=").replace(".", "")
    assert project["tool"]["distutils"]["bdist_wheel"]["py_limited_api"] == f"cp{lowest}"
    assert f"cp{lowest}-abi3-{PLATFORM}" == TAG
    for extension in project["tool"]["setuptools"]["ext-modules"]:
        assert extension["optional"]
        assert extension["py-limited-api"]
        assert "-g0" in extension["extra-compile-args"]  # paths of the machine that builds it stay out of the wheel
        for source in extension["sources"]:
            version = re.search(r"^#define Py_LIMITED_API 0x03([0-9A-F]{2})0000$", (ROOT / source).read_text(), re.M)
            assert f"3{int(version[1], 16)}" == lowest


def test_an_sdist_is_normalized(tmp_path):
    made = []
    for umask, moment in ((0o022, 1e9), (0o077, 1.5e9)):
        folder = tmp_path / f"{umask}"
        folder.mkdir()
        for name, mode in (("run", 0o755), ("b.txt", 0o644), ("a.txt", 0o644)):
            (folder / name).write_text(name)
            (folder / name).chmod(mode & ~umask)
            os.utime(folder / name, (moment, moment))
        sdist = tmp_path / f"{umask}.tar.gz"
        with tarfile.open(sdist, "w:gz") as archive:
            archive.add(folder, "x-1")
        normalize(sdist, 1_700_000_000)
        made.append(sdist.read_bytes())
        with tarfile.open(sdist) as archive:
            facts = [(one.name, one.mode, one.mtime, one.uid, one.uname) for one in archive]
        assert facts == [
            (f"x-1/{n}", m, 1_700_000_000, 0, "") for n, m in (("a.txt", 420), ("b.txt", 420), ("run", 493))
        ]
    assert made[0] == made[1]


def test_what_runs_here_is_shown():
    out = io.StringIO()
    cf.show_versions(file=out)
    shown = dict(line.split(maxsplit=1) for line in out.getvalue().splitlines())
    assert (shown["crossfusion"], shown["kernel"]) == (cf.__version__, kernel.describe_kernel())
    assert (shown["numpy"], shown["pyarrow"]) == (np.__version__, pa.__version__)
    assert shown["Python"] == platform.python_version()
    assert shown["CPUs"] == str(os.cpu_count())
    assert shown["pandas"] == distribution("pandas").version


def test_every_library_that_users_may_have_is_shown():
    users = {extra: names for extra, names in declared().items() if extra not in ("", *licences.TOOLS)}
    assert set(map(canonicalize_name, _environment.REQUIRED)) == declared()[""]
    optional = set(map(canonicalize_name, _environment.OPTIONAL))
    assert optional == set().union(*users.values()) | {"harmonypy"}  # which belongs to no extra


def test_the_report_cites_what_the_citation_file_does():
    (paper,) = CITED["references"]
    for text in (CITATION, BIBTEX):
        assert plain(paper["title"]) in plain(text)
        assert str(paper["year"]) in text
    authors = paper["authors"]
    short = ", ".join(f"{author['given-names'][0]}. {author['family-names']}" for author in authors)
    assert CITATION.startswith(f"{short}. ")
    full = " and ".join(f"{author['family-names']}, {author['given-names']}" for author in authors)
    assert f"author = {{{full}}}" in BIBTEX
    assert short.replace(", X. Song", " and X. Song") in " ".join((ROOT / "README.md").read_text("utf-8").split())


def test_no_page_shows_what_an_unfinished_version_measured():
    if "dev" in cf.__version__:
        pytest.skip("this is no release")
    pages = [path for path in (ROOT / "docs").glob("**/*") if path.suffix in {".md", ".txt", ".json"}]
    kept = [path for path in pages if "_build" not in path.parts]
    assert [path.name for path in kept if re.search(r"\d\.dev\d", path.read_text("utf-8"))] == []


def declared():
    """Names of what the library itself and each extra need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    named = {extra: {canonicalize_name(Requirement(line).name) for line in lines} for extra, lines in extras.items()}
    return {extra: names - {"crossfusion"} for extra, names in named.items()}


def test_the_page_on_dependencies_tells_why_each_is_there():
    told, extra = dict.fromkeys(declared(), ""), ""
    for line in (ROOT / "docs" / "dependencies.md").read_text("utf-8").splitlines():
        cells = [cell.strip(" `") for cell in line.split("|")]
        extra = cells[1] if line.startswith("| `") else extra
        told[extra] += " ".join(cells[1:3]).casefold() if line.startswith("|") else ""
    called = {"torch": "pytorch", "myst-parser": "myst", "pydata-sphinx-theme": "the pydata theme"}
    for extra, names in declared().items():
        untold = {name for name in names if called.get(name, name) not in told[extra].replace("_", "-")}
        assert not untold, f"say in docs/dependencies.md why {extra or 'the library'} needs {untold}"


def test_the_bill_names_what_is_declared_in_the_versions_that_are_pinned():
    direct = set().union(*declared().values())
    listed = {one["name"]: one["version"] for one in BILL["components"]}
    assert direct <= listed.keys(), "make sbom"
    assert listed.items() <= {canonicalize_name(name): version for name, version in PINNED.items()}.items(), "make sbom"


def test_users_get_nothing_under_the_gpl_and_what_is_flagged_has_a_reason():
    flagged = {
        one["name"]: one["scope"]
        for one in BILL["components"]
        if licences.Package(one["name"], one["version"], one["licenses"][0]["license"]["name"]).flagged
    }
    assert {name for name, scope in flagged.items() if scope != "excluded"} == {"openslide-bin"}
    assert flagged.keys() == licences.REASONS.keys()


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "GNU General Public License v2 (GPLv2)", "AGPL-3.0", "unknown"])
def test_licences_that_are_flagged(licence):
    assert licences.Package("x", "1", licence).flagged


@pytest.mark.parametrize(
    "licence", ["LGPL-2.1-only", "MIT", "GNU Lesser General Public License v3 (LGPLv3)", "MPL-2.0"]
)
def test_licences_that_are_not(licence):
    assert not licences.Package("x", "1", licence).flagged
