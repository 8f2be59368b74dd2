"""Two hundred and more messy data sets: what the library says of each, and what a plain reference says."""

import warnings
from pathlib import Path

import pytest

import crossfusion as cf
from tests.hunt.expected import Expected, check_summary
from tests.hunt.labels import as_key
from tests.hunt.recipes import Recipe, draw_recipe, make
from tests.hunt.routes import READINGS, ROUTES

SEEDS = range(272)
RECIPES = [draw_recipe(seed, list(ROUTES)) for seed in SEEDS]


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_messy_data_give_what_the_formula_gives(recipe: Recipe, tmp_path: Path) -> None:
    data = make(recipe)
    expected = Expected(data, READINGS.get(recipe.route, as_key))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cf.CrossfusionWarning)
        summary = ROUTES[recipe.route](data, tmp_path)
        differences = list(check_summary(summary, expected))
    assert not differences, f"{recipe}\n" + "\n".join(differences[:10])
