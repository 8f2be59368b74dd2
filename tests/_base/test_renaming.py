"""Earlier names of arguments and options work and say what they are called now."""

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers.command_line import run

X = np.random.default_rng(0).normal(size=(24, 3))
SITE, TISSUE = np.repeat(["A", "B"], 12), np.tile(["t", "u"], 12)
SUMMARY = cf.summarize(X, by={"site": SITE, "tissue": TISSUE})
CALLS = {
    "permutation_test": (cf.permutation_test, (X, SITE), "strata", "given", TISSUE),
    "dispersion_test": (cf.dispersion_test, (X, SITE), "strata", "given", TISSUE),
    "hierarchy": (SUMMARY.hierarchy, (), "levels", "factors", ["site", "tissue"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_earlier_name_gives_the_same_result_with_a_warning(name):
    function, arguments, old, new, value = CALLS[name]
    with pytest.warns(cf.CrossfusionWarning, match=f"^{old} is now called {new}: pass {new}=$") as told:
        found = function(*arguments, **{old: value})
    assert told[0].filename == __file__
    assert repr(found) == repr(function(*arguments, **{new: value}))
    with pytest.raises(cf.InputError, match=f"{old} is the earlier name of {new}: pass only one of them"):
        function(*arguments, **{old: value, new: value})


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hierarchy x.npz --levels site,tissue", "hierarchy x.npz --factors site,tissue"),
        ("hierarchy x.npz --levels=site,tissue", "hierarchy x.npz --factors=site,tissue"),
        ("test x.npz --between tissue --paired site", "test x.npz --between tissue --pairs site"),
        ("matrix x.npz --between site --test 9", "matrix x.npz --between site --permutations 9"),
        ("compare a.npy b.npy --test 9", "compare a.npy b.npy --permutations 9"),
    ],
)
def test_an_option_of_0_1_gives_the_same_output_with_one_line(old, new, tmp_path):
    np.savez(tmp_path / "x.npz", x=X, site=SITE, tissue=TISSUE)
    np.save(tmp_path / "a.npy", X[:12])
    np.save(tmp_path / "b.npy", X[12:])
    before, now = (run(*words.split(), cwd=tmp_path) for words in (old, new))
    assert before.stdout == now.stdout
    option = {"--levels": "--factors", "--paired": "--pairs", "--test": "--permutations"}
    (name,) = [name for name in option if name in old]
    assert before.stderr == f"crossfusion: {name} is now called {option[name]}\n{now.stderr}"
