"""The distance in JAX: equal to NumPy's, under every transformation, and finite where derivatives often are not."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import crossfusion as cf
from crossfusion.jax import cfd
from tests.helpers.missing_libraries import without

ROWS, DIM, GROUPS, STRATA = 60, 5, 3, 4


def drawn(seed=0, rows=ROWS, offset=0.0):
    draw = np.random.default_rng(seed)
    labels, given = draw.integers(0, GROUPS, rows), draw.integers(0, STRATA, rows)
    given[(given == 1) & (labels == 2)] = 0  # a cell that is not there
    x = draw.normal(size=(rows, DIM)) + draw.normal(size=(GROUPS, DIM))[labels] + draw.normal(size=(STRATA, DIM))[given]
    return x + offset, labels, given


def settings():
    return [(w, u, g) for w in ("pooled", "balanced") for u in (False, True) for g in (False, True)]


@pytest.mark.parametrize(("weights", "unbiased", "conditional"), settings())
def test_equals_numpy_in_float64(weights, unbiased, conditional, double):
    x, labels, given = drawn()
    strata = given if conditional else None
    fusion = cf.cfd(x, labels=labels, given=strata, weights=weights)
    number = STRATA if conditional else None
    measure = jax.jit(partial(cfd, weights=weights, unbiased=unbiased, num_groups=GROUPS, num_given=number))
    found = measure(x, labels, strata)
    assert found.dtype == jnp.float64
    assert float(found) == pytest.approx(fusion.unbiased if unbiased else fusion.distance, rel=1e-10, abs=1e-12)


def test_groups_are_counted_where_labels_are_known(double):
    x, labels, given = drawn()
    labels = jnp.asarray(labels)
    found = cfd(x, labels, given, weights="balanced")
    assert float(found) == pytest.approx(cf.cfd(x, labels=labels, given=given, weights="balanced").distance, rel=1e-10)
    assert float(jax.jit(lambda x: cfd(x, labels, given, weights="balanced"))(x)) == pytest.approx(
        float(found), rel=1e-12
    )


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("unbiased", [False, True])
def test_float32_keeps_its_digits_at_any_offset(offset, unbiased):
    x, labels, _ = drawn(1, rows=5000)
    x = (0.05 * x + offset).astype(np.float32)
    fusion = cf.cfd(x, labels=labels)
    found = jax.jit(partial(cfd, num_groups=GROUPS, unbiased=unbiased))(x, labels)
    assert found.dtype == jnp.float32
    assert float(found) == pytest.approx(fusion.unbiased if unbiased else fusion.distance, rel=1e-4)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_are_summed_in_float32(dtype):
    x, labels, _ = drawn(2, rows=5000)
    x = jnp.asarray(x + 3, dtype)
    found, slope = jax.jit(jax.value_and_grad(partial(cfd, num_groups=GROUPS)))(x, labels)
    assert found.dtype == jnp.float32
    assert float(found) == pytest.approx(cf.cfd(np.asarray(x, np.float64), labels=labels).distance, rel=1e-4)
    assert slope.dtype == x.dtype


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64", "int8", "bool"])
def test_labels_of_every_whole_type(kind):
    x, labels, _ = drawn()
    codes = (labels % 2).astype(kind)
    assert cfd(x, codes) == cfd(x, jnp.asarray(codes)) == cfd(x, labels % 2)


def test_whole_numbers_and_lists_will_do():
    assert float(cfd([[0], [2], [2], [4]], [0, 0, 1, 1])) == pytest.approx(np.log(2), rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "unbiased", "conditional"),
    [("pooled", False, False), ("pooled", True, True), ("balanced", False, True), ("balanced", True, False)],
)
def test_derivatives_are_those_of_numpy(weights, unbiased, conditional, double):
    x, labels, given = drawn(3, rows=80)
    strata = given if conditional else None
    direction = np.random.default_rng(0).normal(size=x.shape)

    def exact(step):
        fusion = cf.cfd(x + step * direction, labels=labels, given=strata, weights=weights)
        return fusion.unbiased if unbiased else fusion.distance

    measure = partial(
        cfd, labels=labels, given=strata, num_groups=GROUPS + 1, weights=weights, unbiased=unbiased
    )  # one group is missing

    @jax.jit
    def derivatives(x):
        slope = jax.grad(measure)
        first, second = jax.jvp(slope, (x,), (jnp.asarray(direction),))
        return jnp.vdot(first, direction), jnp.vdot(second, direction)

    first, second = derivatives(x)
    assert float(first) == pytest.approx((exact(1e-4) - exact(-1e-4)) / 2e-4, rel=1e-5)
    assert float(second) == pytest.approx((exact(1e-3) - 2 * exact(0) + exact(-1e-3)) / 1e-6, rel=1e-4)


def edge(name):
    """Batches at which a careless derivative is NaN; of six groups that there can be, some are missing."""
    x, labels, _ = drawn(4, rows=12)
    if name == "no displacement":
        x = np.concatenate([x[:4]] * 3)
        labels = np.repeat([0, 1, 2], 4)
    if name == "one group alone":
        labels = np.zeros(12, int)
    if name == "one row a group":
        labels = np.array([0, 1, 2] + [-1] * 9)
    if name == "no spread within":
        x = x[labels]
    if name == "no spread at all":
        x = np.ones_like(x) / 3
    if name == "no rows left":
        labels = np.full(12, -1)
    return x, labels


VALUES = {"no displacement": 0, "one group alone": 0, "one row a group": np.inf}
VALUES |= {"no spread within": np.inf, "no spread at all": 0, "no rows left": 0}


@partial(jax.jit, static_argnames="unbiased")
def looked_at(x, labels, eps, unbiased):
    measure = partial(cfd, labels=labels, num_groups=6, unbiased=unbiased, eps=eps)
    return measure(x), jax.grad(measure)(x), jax.hessian(measure)(x)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_edges_have_the_value_of_numpy_and_finite_derivatives(name, unbiased, double):
    x, labels = edge(name)
    for eps in (0.0, 1e-3):
        value, slope, curvature = looked_at(x, labels, eps, unbiased)
        assert jnp.isfinite(slope).all()
        assert jnp.isfinite(curvature).all()
        assert jnp.isfinite(value) or not eps
        if not eps and not unbiased:
            assert float(value) == pytest.approx(VALUES[name], abs=1e-15)


def test_eps_is_a_variance_added_within(double):
    x, labels, _ = drawn(5)
    fusion = cf.cfd(x, labels=labels)
    found = jax.jit(partial(cfd, num_groups=GROUPS, eps=0.7))(x, labels)
    assert float(found) == pytest.approx(np.log1p(fusion.between / (fusion.within + 0.7)), rel=1e-12)


def test_missing_groups_and_masked_rows_count_for_nothing(double):
    x, labels, given = drawn(6)
    out = np.arange(ROWS) % 7 == 0
    x[out] = np.nan
    masked, other = np.where(out, -1, labels), np.where(out, -5, given)
    expected = cf.cfd(x[~out], labels=labels[~out], given=given[~out], weights="balanced").distance
    measure = jax.jit(jax.value_and_grad(partial(cfd, num_groups=9, num_given=8, weights="balanced")))
    for group, stratum in ((masked, given), (labels, other)):
        value, slope = measure(x, group, stratum)
        assert float(value) == pytest.approx(expected, rel=1e-12)
        assert (slope[out] == 0).all()
        assert jnp.isfinite(slope).all()


def test_one_row_borrows_the_variance_of_the_others(double):
    x = jnp.array([[0.0], [2.0], [5.0], [9.0], [4.0]])
    labels = [0, 0, 1, 1, 2]
    borrowed = (2.0 + 8.0) / 2  # scatter of 2 and of 8, one degree of freedom each
    variance, count, mean = np.array([2.0, 8.0, borrowed]), np.array([2, 2, 1]), np.array([1.0, 7.0, 4.0])
    weight = count / 5
    between = weight @ (mean - weight @ mean) ** 2 - weight @ ((1 - weight) * variance / count)
    assert float(cfd(x, labels, unbiased=True)) == pytest.approx(np.log1p(between / (weight @ variance)), rel=1e-12)


def test_vmap_is_a_loop(double):
    draws = [drawn(seed) for seed in range(4)]
    x, labels, given = (np.stack(parts) for parts in zip(*draws, strict=True))
    measure = partial(cfd, num_groups=GROUPS, num_given=STRATA, weights="balanced", unbiased=True)
    one = jax.jit(jax.value_and_grad(measure))
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(measure)))(x, labels, given)
    for draw, value, slope in zip(draws, values, slopes, strict=True):
        np.testing.assert_allclose(value, one(*draw)[0], rtol=1e-12)
        np.testing.assert_allclose(slope, one(*draw)[1], rtol=1e-10, atol=1e-14)


DEVICES = """
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax.sharding import Mesh, PartitionSpec as P
from crossfusion.jax import cfd
jax.config.update("jax_enable_x64", True)
assert len(jax.devices()) == 2
draw = np.random.default_rng(0)
x, given = draw.normal(size=(40, 3)) + 100, draw.integers(0, 2, 40)
labels = np.repeat([0, 1, 2], [22, 10, 8])  # the devices see different groups
mesh = Mesh(np.array(jax.devices()), ("rows",))
spread = partial(jax.shard_map, mesh=mesh)
for options in ({}, {"unbiased": True, "weights": "balanced", "eps": 0.1}):
    whole = partial(cfd, num_groups=3, num_given=2, **options)
    local = partial(whole, axis_name="rows")
    value, slope = jax.jit(jax.value_and_grad(whole))(x, labels, given)
    outside = spread(local, in_specs=(P("rows"),) * 3, out_specs=P())
    inside = spread(jax.value_and_grad(local), in_specs=(P("rows"),) * 3, out_specs=(P(), P("rows")))
    for found in (jax.value_and_grad(outside), inside):
        other, other_slope = jax.jit(found)(x, labels, given)
        np.testing.assert_allclose(other, value, rtol=1e-12)
        np.testing.assert_allclose(other_slope, slope, rtol=1e-9, atol=1e-14)
print("same")
"""


def test_two_devices_give_the_value_and_the_gradient_of_the_whole_batch(python):
    assert python(DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_PLATFORMS="cpu") == "same"


def test_labels_that_are_too_large(refuses):
    x, labels, _ = drawn()
    with refuses(r"labels has numbers up to 2, beyond num_groups=2"):
        cfd(x, labels, num_groups=2)
    assert np.isnan(jax.jit(partial(cfd, num_groups=2))(x, labels))  # nothing can be raised there
    assert np.isnan(jax.jit(partial(cfd, num_groups=3, num_given=2))(x, labels, labels))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones(4)}, "x must be two-dimensional"),
        ({"x": np.ones((4, 1), complex)}, "real numbers"),
        ({"x": np.array([["a"]] * 4)}, "x must hold numbers"),
        (
            {"labels": np.array([0, 0, 2**33, 2**33])},
            "labels has numbers up to 8589934592.*: number them from 0",
        ),
        ({"eps": "1"}, "eps='1' must be"),
        ({"labels": [0, 1, 0]}, "3 entries for 4 rows"),
        ({"labels": ["a", "b", "a", "b"]}, "whole numbers"),
        ({"labels": [0.5, 1, 0, 1]}, "whole numbers"),
        ({"given": [[0], [1], [0], [1]]}, "given must be whole numbers"),
        ({"weights": "equal"}, "weights='equal'"),
        ({"eps": -1.0}, "eps=-1.0 must be"),
        ({"num_groups": 0}, "num_groups=0"),
        ({"num_given": 2}, "num_given=2 goes with given, which is None"),
    ],
)
def test_bad_arguments_name_themselves(change, message, refuses):
    with refuses(message):
        cfd(**{"x": np.ones((4, 1)), "labels": [0, 0, 1, 1]} | change)


def test_traced_labels_need_the_number_of_groups(refuses):
    x, labels, given = drawn()
    with refuses("labels are traced.*pass num_groups"):
        jax.jit(cfd)(x, labels)
    with refuses("given are traced.*pass num_given"):
        jax.jit(partial(cfd, num_groups=3))(x, labels, given)


def test_a_missing_library_is_named(python):
    code = """
import crossfusion as cf
try:
    import crossfusion.jax
except cf.MissingDependencyError as problem:
    print(problem)
"""
    expected = "crossfusion.jax needs JAX, which is not installed: pip install 'crossfusion[jax]'"
    assert python(without("jax") + code) == expected
