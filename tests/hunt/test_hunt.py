"""Two hundred and more messy data sets: what the library says of each, and what a plain reference says."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest

import crossfusion as cf
import crossfusion.anndata
from tests.helpers import reference
from tests.hunt.expected import (
    LEVELS,
    SCHEMES,
    Expected,
    check_cfd,
    check_features,
    check_fusion,
    check_hierarchy,
    check_pairwise,
    check_summary,
)
from tests.hunt.labels import as_key
from tests.hunt.recipes import Messy, Recipe, draw_recipe, make
from tests.hunt.routes import READINGS, ROUTES, as_container, from_plain, run_command

SEEDS = range(270)
RECIPES = [draw_recipe(seed, list(ROUTES)) for seed in SEEDS]
AS_JSON = ("text", "missing", "unicode", "punctuation", "digits", "integers")  # labels that JSON can hold
pytestmark = pytest.mark.filterwarnings("ignore::crossfusion.CrossfusionWarning")


def report(recipe: Recipe, differences: list[str]) -> None:
    """Fail with the recipe and the first differences."""
    assert not differences, f"{recipe}\n" + "\n".join(differences[:10])


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_summaries_give_what_the_formula_gives(recipe: Recipe, tmp_path: Path) -> None:
    data = make(recipe)
    expected = Expected(data, READINGS.get(recipe.route, as_key))
    summary = ROUTES[recipe.route](data, tmp_path)
    if len(expected.sites) < 2:  # all rows of the others hold NaN, or their labels are missing in a text table
        with pytest.raises(cf.InputError, match="only one group to compare"):
            summary.cfd("site")
        return
    report(recipe, list(check_summary(summary, expected)))


@pytest.mark.parametrize("recipe", RECIPES[::4], ids=str)
def test_arrays_give_what_the_formula_gives(recipe: Recipe) -> None:
    data = make(recipe)
    draw, expected = data.draw(6), Expected(data)
    found: list[str] = []
    for scheme in SCHEMES:
        for given in (None, "tissue"):
            strata = None if given is None else as_container(data.tissue, draw)
            labels = as_container(data.site, draw)
            fusion = cf.cfd(data.rows, labels=labels, given=strata, weights=scheme, nan="drop")
            found += check_cfd(fusion, given, scheme, expected)
    report(recipe, found)


def ask(command: str, path: Path, *typed: str) -> Any:
    """What a command prints as JSON, as an object; infinity, which JSON lacks, is the text "inf"."""
    code, printed, said = run_command(command, path, *typed, "--json")
    assert code == 0, said
    return json.loads(printed, object_hook=_as_object)


def _as_object(entry: dict[str, Any]) -> SimpleNamespace:
    numbers = {name: value for name, value in entry.items() if name in ("distance", "unbiased", "without")}
    return SimpleNamespace(**entry | {name: _with_infinity(value) for name, value in numbers.items()})


def _with_infinity(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_infinity(each) for each in value]
    return float(value) if isinstance(value, str) else value


def as_matrix(found: Any) -> Any:
    """Lists of lists as arrays."""
    matrices = {name: np.array(getattr(found, name), float) for name in ("distance", "unbiased", "overlap")}
    return SimpleNamespace(labels=found.labels, **matrices)


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.site in AS_JSON][::4], ids=str)
def test_commands_give_what_the_formula_gives(recipe: Recipe, tmp_path: Path) -> None:
    data = make(recipe)
    expected, path = Expected(data), tmp_path / "summary.parquet"
    found: list[str] = []
    from_plain(data, tmp_path).write(path)
    for scheme in SCHEMES:
        weights = ["--weights", scheme]
        adjusted = ["--between", "site", "--given", "tissue", *weights]
        found += check_pairwise(as_matrix(ask("matrix", path, *adjusted)), "tissue", scheme, expected)
        found += check_features(ask("attribution", path, *adjusted), "tissue", scheme, expected)
        found += check_hierarchy(ask("hierarchy", path, "--factors", ",".join(LEVELS), *weights), scheme, expected)
    report(recipe, found)


def complete(data: Messy) -> Messy:
    """The rows whose site and tissue are there."""
    labels = zip(data.site, data.tissue, strict=True)
    return data.take(np.flatnonzero([None not in map(as_key, both) for both in labels]))


@pytest.mark.parametrize("recipe", RECIPES[1::6], ids=str)
def test_anndata_gives_what_the_formula_gives(recipe: Recipe) -> None:
    data = make(recipe)
    expected = Expected(complete(data))
    obs = pd.DataFrame({name: pd.Categorical([as_key(v) for v in values]) for name, values in data.factors.items()})
    rows = np.ascontiguousarray(data.rows.astype(np.float64))
    adata = anndata.AnnData(rows, obs=obs.set_index(obs.index.astype(str)))
    keys = {"batch_key": "site", "label_key": "tissue", "min_cells": 1, "nan": "drop"}
    if min(len(expected.sites), len({tissue for _, tissue in expected.adjusted})) < 2:
        with pytest.raises(
            cf.InputError, match=r"^(batch|label)_key='|^no cell has a value in each of 'site', 'tissue'"
        ):
            crossfusion.anndata.cfd(adata, **keys)
        return
    board = crossfusion.anndata.cfd(adata, weights="balanced", **keys)
    cell = expected.adjusted
    fused = reference.fuse(cell, reference.weights(cell, "balanced"), lambda key: key[1])
    report(recipe, list(check_fusion("batch", board.batch[0], fused, expected)))
