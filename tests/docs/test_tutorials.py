"""Every tutorial runs, draws one figure, and comes to the decision that its text leads to."""

import re
import runpy

import pytest

from tests.helpers import ROOT

FOLDER = ROOT / "examples" / "gallery"
NEEDS = {"single_cells": "anndata", "training": "torch", "cluster": "distributed", "what_it_does_not_see": "ot"}
DECISIONS = {
    "two_arrays": "pool them",
    "pathology_lab": "switch on Macenko",
    "single_cells": "were not used to fit the correction",
    "training": "keep the loss",
    "drift": "stop and look",
    "several_hospitals": "south: with north",
    "cluster": "take a cluster",
    "where_it_comes_from": "look at Cork",
    "what_it_does_not_see": "another spread, another shape",
}


def test_all_are_listed_here_and_in_the_gallery():
    order = (ROOT / "docs" / "_ext" / "tutorials.py").read_text().partition("ORDER = (")[2].partition(")")[0]
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == set(DECISIONS) == set(re.findall(r'"(\w+)"', order))


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.parametrize("name", DECISIONS)
def test_it_comes_to_its_decision(name, capsys, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    monkeypatch.chdir(tmp_path)
    left = runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert left["figure"].axes
    assert DECISIONS[name] in capsys.readouterr().out.splitlines()[-1]
    assert not list(tmp_path.iterdir())  # nothing is left where it runs
