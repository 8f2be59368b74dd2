"""What every distance of the registry promises: one list of properties, one table of who keeps which."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

import crossfusion as cf


@dataclass(frozen=True)
class Promise:
    """What holds for one distance."""

    degree: float = 1.0  # scaling all features by c scales the distance by c ** degree
    zero: float | None = 1e-12  # how close to zero two orders of the same rows are; None: they are not at zero
    within: float = 1e-9  # relative error that is rounding
    rotation: float | None = None  # the same after a rotation, where it is more than rounding
    least: int = 1  # rows needed in each cloud
    lone: bool = False  # whether one cloud may have a single row
    sparse: bool = False  # takes sparse rows
    squared: tuple[str, ...] = ()  # options in units of squared features
    options: Mapping[str, float] = field(default_factory=dict)

    def options_at(self, scale: float) -> dict[str, float]:
        return {name: value * (scale**2 if name in self.squared else 1) for name, value in self.options.items()}


PRECISE = {"epsilon": 0.5, "tolerance": 1e-9}
PROMISES = {
    "cfd": Promise(degree=0, sparse=True),
    "cfd_unbiased": Promise(degree=0, sparse=True, zero=None, least=2, lone=True),
    "cfd_balanced": Promise(degree=0, sparse=True),
    "wasserstein": Promise(),
    "sinkhorn": Promise(zero=None, within=1e-6, squared=("epsilon",), options=PRECISE),
    "sinkhorn_divergence": Promise(zero=1e-3, within=1e-6, squared=("epsilon",), options=PRECISE),
    "sliced_wasserstein": Promise(rotation=0.1),
    "gaussian_wasserstein": Promise(zero=1e-6),  # the root of a difference of traces
    "mmd": Promise(degree=0),
    "mmd2_unbiased": Promise(degree=0, zero=None, least=2),
    "energy": Promise(degree=0.5),
    "hausdorff": Promise(),
    "chamfer": Promise(),
    "classifier": Promise(degree=0, zero=None, within=0.15, rotation=0.3, least=5),
}

names = pytest.mark.parametrize("name", list(PROMISES))


def clouds(shift=1.0):
    draw = np.random.default_rng(7)
    return draw.normal(size=(60, 4)), draw.normal(size=(45, 4)) * [1.0, 0.5, 2.0, 1.0] + shift


def distance(name, a, b, scale=1.0):
    return cf.distance(name, a, b, **PROMISES[name].options_at(scale))


def test_every_distance_says_what_it_promises():
    assert set(PROMISES) == set(cf.distances)


@names
def test_it_is_one_number_and_has_a_name(name):
    found = distance(name, *clouds())
    assert type(found) is float
    assert np.isfinite(found)
    assert cf.distances[name](*clouds(), **PROMISES[name].options) == found


@names
def test_it_is_symmetric(name):
    a, b = clouds()
    assert distance(name, b, a) == pytest.approx(distance(name, a, b), rel=PROMISES[name].within)


@names
def test_the_order_of_rows_is_nothing_to_it(name):
    a, b = clouds()
    draw = np.random.default_rng(0)
    found = distance(name, draw.permutation(a), draw.permutation(b))
    assert found == pytest.approx(distance(name, a, b), rel=PROMISES[name].within)


@names
def test_two_orders_of_the_same_rows(name):
    a = clouds()[0]
    found, zero = distance(name, a, np.random.default_rng(0).permutation(a)), PROMISES[name].zero
    if zero is None:
        assert found != 0
        assert found < distance(name, *clouds())
    else:
        assert abs(found) <= zero


@names
def test_moving_both_clouds_changes_nothing(name):
    a, b = clouds()
    offset = np.array([100.0, -50.0, 0.0, 7.0])
    assert distance(name, a + offset, b + offset) == pytest.approx(distance(name, a, b), rel=PROMISES[name].within)


@names
def test_rotating_both_clouds_changes_nothing(name):
    a, b = clouds()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    tolerance = PROMISES[name].rotation or PROMISES[name].within
    assert distance(name, a @ turn, b @ turn) == pytest.approx(distance(name, a, b), rel=tolerance)


@names
def test_scaling_both_clouds_scales_it_by_its_degree(name):
    a, b = clouds()
    expected = 3.0 ** PROMISES[name].degree * distance(name, a, b)
    assert distance(name, 3 * a, 3 * b, scale=3.0) == pytest.approx(expected, rel=PROMISES[name].within)


@names
def test_it_grows_with_a_large_shift(name):
    found = [distance(name, *clouds(shift)) for shift in (0.0, 1.0, 4.0)]
    assert all(nearer < farther for nearer, farther in pairwise(found))


@names
def test_single_precision_is_good_enough(name):
    a, b = clouds()
    narrow = distance(name, a.astype(np.float32), b.astype(np.float32))
    assert narrow == pytest.approx(distance(name, a, b), rel=1e-5)


@names
def test_it_leaves_the_rows_as_they_are(name):
    a, b = clouds()
    before = a.copy(), b.copy()
    distance(name, a, b)
    assert np.array_equal(a, before[0])
    assert np.array_equal(b, before[1])


@names
def test_lists_and_other_memory_layouts_are_the_same_rows(name):
    a, b = clouds()
    expected = distance(name, a, b)
    assert distance(name, a.tolist(), np.asfortranarray(b)) == pytest.approx(expected, rel=PROMISES[name].within)
    wide = np.repeat(a, 2, axis=1)[:, ::2]
    assert distance(name, wide, b) == pytest.approx(expected, rel=PROMISES[name].within)


@names
def test_few_rows(name, refuses):
    a, b = clouds()
    least = PROMISES[name].least
    assert distance(name, a[:least], b[:least]) >= 0 or PROMISES[name].zero is None
    assert np.isfinite(distance(name, a[:least], b))
    if PROMISES[name].lone:
        assert np.isfinite(distance(name, a[:1], b))
        with refuses("the variance within groups is unknown"):
            distance(name, a[:1], b[:1])
    elif least > 1:
        with refuses(r"rows?\b"):
            distance(name, a[: least - 1], b)


@names
def test_bad_rows_are_refused_in_one_line(name, refuses):
    a, b = clouds()
    with refuses("a must be two-dimensional"):
        distance(name, a[:, 0], b)
    with refuses("b must be two-dimensional"):
        distance(name, a, b[None])
    with refuses("numbers of features differ"):
        distance(name, a, b[:, :3])
    with refuses("b has no rows"):
        distance(name, a, b[:0])
    with refuses("must hold numbers"):
        distance(name, a.astype(str), b)
    broken = b.copy()
    broken[3, 2] = np.nan
    with refuses("row 3, feature 2", cf.NonFiniteError):
        distance(name, a, broken)


@names
def test_sparse_rows(name, refuses):
    a, b = clouds()
    if PROMISES[name].sparse:
        found = distance(name, sparse.csr_array(a), sparse.csr_array(b))
        assert found == pytest.approx(distance(name, a, b), rel=PROMISES[name].within)
    else:
        with refuses("a is sparse.*toarray"):
            distance(name, sparse.csr_array(a), b)


@names
def test_options_that_do_not_exist_are_refused(name, refuses):
    with refuses(f"the distance '{name}' has no option 'colour'"):
        cf.distance(name, *clouds(), colour=1)


def test_a_name_that_does_not_exist_is_refused(refuses):
    with refuses("no distance 'wassertein': did you mean 'wasserstein'"):
        cf.distance("wassertein", *clouds())


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("mmd", "bandwidth", 0.0),
        ("mmd", "bandwidth", float("nan")),
        ("mmd2_unbiased", "bandwidth", "wide"),
        ("sinkhorn", "epsilon", -1.0),
        ("sinkhorn", "tolerance", 0.0),
        ("sinkhorn_divergence", "epsilon", True),
        ("sinkhorn_divergence", "max_iterations", 0),
        ("sliced_wasserstein", "projections", 0),
        ("sliced_wasserstein", "seed", -1),
        ("classifier", "folds", 1),
        ("classifier", "seed", 0.5),
        ("cfd", "trim", 0.5),
    ],
)
def test_values_that_make_no_sense_are_refused(name, option, value, refuses):
    with refuses(f"{option}={value!r}"):
        cf.distance(name, *clouds(), **{option: value})
