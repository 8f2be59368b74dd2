"""The propositions of the paper's appendix A, and the invariances that follow from them."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import crossfusion as cf
from tests.helpers import reference

COORDINATE = st.integers(-50, 50)


@st.composite
def clouds(draw):
    """Two clouds of whole numbers whose means are whole numbers too, so that equality of means is exact."""
    sizes, dim = draw(st.tuples(st.integers(1, 12), st.integers(1, 12))), draw(st.integers(1, 4))
    scale = sizes[0] * sizes[1]
    a, b = (draw(hnp.arrays(np.int64, (n, dim), elements=COORDINATE)) * scale for n in sizes)
    assume(np.ptp(a, axis=0).any() or np.ptp(b, axis=0).any())  # some spread within
    return a.astype(np.float64), b.astype(np.float64)


@st.composite
def directions(draw, dim):
    direction = draw(hnp.arrays(np.int64, dim, elements=COORDINATE))
    assume(direction.any())
    return direction


@given(clouds())
def test_variance_decomposition(pair):
    (a, b), union = pair, np.concatenate(pair)
    fusion, share = cf.cfd(a, b), len(a) / len(union)
    centre = union.mean(axis=0)
    displacement = share * np.sum((a.mean(axis=0) - centre) ** 2) + (1 - share) * np.sum((b.mean(axis=0) - centre) ** 2)
    dispersion = share * a.var(axis=0).sum() + (1 - share) * b.var(axis=0).sum()
    assert fusion.within == pytest.approx(dispersion, rel=1e-12)
    assert fusion.between == pytest.approx(displacement, rel=1e-9, abs=1e-12 * dispersion)
    assert fusion.total == pytest.approx(float(reference.moments(union).dispersion), rel=1e-12)


@given(clouds())
def test_bounds(pair):
    fusion = cf.cfd(*pair)
    assert 0 < fusion.score <= 1
    assert 0 <= fusion.distance < np.inf
    assert fusion.distance == pytest.approx(-np.log(fusion.score), rel=1e-9, abs=1e-15)


@given(clouds(), st.data())
def test_zero_if_and_only_if_the_means_are_equal(pair, data):
    a, b = pair
    same = b - b.mean(axis=0) + a.mean(axis=0)
    assert cf.cfd(a, same).distance == 0
    assert cf.cfd(a, same).score == 1
    moved = cf.cfd(a, same + data.draw(directions(a.shape[1])))
    assert moved.distance > 0
    assert moved.score < 1


@given(clouds(), st.data())
def test_strictly_increasing_in_displacement(pair, data):
    a, b = pair
    centred = b - b.mean(axis=0) + a.mean(axis=0)
    direction = data.draw(directions(a.shape[1]))
    steps = sorted(data.draw(st.sets(st.integers(0, 1000), min_size=2, max_size=5)))
    found = [cf.cfd(a, centred + step * direction) for step in steps]
    assert all(near.distance < far.distance for near, far in itertools.pairwise(found))
    assert all(near.score > far.score for near, far in itertools.pairwise(found))
    assert len({fusion.within for fusion in found}) == 1


@given(clouds())
def test_limits(pair):
    a, b = pair
    share = len(a) / (len(a) + len(b))
    for far in (1e10, 1e50, 1e100):  # along a feature of its own, so that no digit of the others is lost
        fusion = cf.cfd(np.insert(a, 0, 0, axis=1), np.insert(b, 0, far, axis=1))
        grown = 2 * np.log(far) + np.log(share * (1 - share) / fusion.within)
        assert fusion.distance == pytest.approx(grown, rel=1e-3)
        assert fusion.score == pytest.approx(np.exp(-fusion.distance), rel=1e-9)


def random_clouds(seed):
    draw = np.random.default_rng(seed)
    dim = int(draw.integers(1, 9))
    return [draw.normal(draw.normal(size=dim), 1, (int(draw.integers(2, 40)), dim)) for _ in range(2)], draw


SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(-60, 60), st.floats(1e-6, 1e6))
def test_scale_does_not_matter(seed, power, factor):
    (a, b), _ = random_clouds(seed)
    fusion = cf.cfd(a, b)
    assert cf.cfd(a * 2.0**power, b * 2.0**power).distance == fusion.distance
    assert cf.cfd(a * 2.0**power, b * 2.0**power).unbiased == fusion.unbiased
    assert cf.cfd(a * factor, b * -factor).within == pytest.approx(fusion.within * factor**2, rel=1e-12, abs=0)
    assert cf.cfd(-a * factor, -b * factor).distance == pytest.approx(fusion.distance, rel=1e-10)


@given(SEEDS)
def test_rotation_and_translation_do_not_matter(seed):
    (a, b), draw = random_clouds(seed)
    rotation = np.linalg.qr(draw.normal(size=(a.shape[1], a.shape[1])))[0]
    fusion, turned = cf.cfd(a, b), cf.cfd(a @ rotation, b @ rotation)
    offset = draw.normal(scale=100, size=a.shape[1])
    moved = cf.cfd(a + offset, b + offset)
    assert turned.distance == pytest.approx(fusion.distance, rel=1e-9)
    assert moved.distance == pytest.approx(fusion.distance, rel=1e-9)
    assert moved.unbiased == pytest.approx(fusion.unbiased, rel=1e-9, abs=1e-12)


@given(SEEDS, st.sampled_from(["pooled", "balanced"]))
def test_the_order_of_groups_rows_and_features_does_not_matter(seed, weights):
    (a, b), draw = random_clouds(seed)
    features = draw.permutation(a.shape[1])
    fusion = cf.cfd(a, b, weights=weights)
    for other in (
        cf.cfd(b, a, weights=weights),
        cf.cfd(draw.permutation(a), draw.permutation(b), weights=weights),
        cf.cfd(a[:, features], b[:, features], weights=weights),
    ):
        assert other.distance == pytest.approx(fusion.distance, rel=1e-12)
        assert other.unbiased == pytest.approx(fusion.unbiased, rel=1e-12, abs=1e-13)
        assert other.within == pytest.approx(fusion.within, rel=1e-13)


@given(SEEDS, st.integers(2, 5))
def test_repeating_every_row_does_not_matter_to_the_plug_in(seed, times):
    (a, b), _ = random_clouds(seed)
    again = cf.cfd(np.repeat(a, times, axis=0), np.tile(b, (times, 1)))
    assert again.distance == pytest.approx(cf.cfd(a, b).distance, rel=1e-12)
    assert again.counts == {"a": times * len(a), "b": times * len(b)}
