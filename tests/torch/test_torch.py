"""The distance of a batch in PyTorch: its value, its derivatives, and where there is little to compare."""

# mypy: disable-error-code="arg-type,misc,union-attr,operator,index"

import math
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st

import crossfusion as cf
import crossfusion.torch as cft
from tests.helpers.docstrings import API_PAGE, sections
from tests.helpers.missing_libraries import without
from tests.helpers.torch_batches import batch


def value_and_gradient(x, *factors, **options):
    rows = x.detach().clone().requires_grad_()
    value = cft.cfd(rows, *factors, **options)
    (gradient,) = torch.autograd.grad(value, rows)
    return value.detach(), gradient


# what NumPy says


@drawn(
    seed=st.integers(0, 10_000),
    rows=st.integers(8, 60),
    groups=st.integers(2, 5),
    parts=st.integers(1, 4),
    weights=st.sampled_from(["pooled", "balanced"]),
    conditional=st.booleans(),
    static=st.booleans(),
    spare=st.integers(0, 2),
)
@pytest.mark.filterwarnings("ignore:the design is fully confounded")
def test_values_are_those_of_numpy(seed, rows, groups, parts, weights, conditional, static, spare):
    x, labels, given = batch(seed, rows, 4, groups, parts, offset=seed % 7)
    labels[:2] = torch.tensor([0, 1])  # at least two groups; others may be missing
    strata = given if conditional else None
    numbers = {"num_groups": groups + spare, "num_given": parts + spare} if static else {}
    if strata is None:
        numbers.pop("num_given", None)
    expected = cf.cfd(
        x.numpy(), labels=labels.numpy(), given=None if strata is None else given.numpy(), weights=weights
    )
    found = cft.cfd(x, labels, strata, weights=weights, **numbers).item()
    assert found == pytest.approx(expected.distance, rel=1e-10, abs=1e-10)
    found = cft.cfd(x, labels, strata, weights=weights, eps=0.5, **numbers).item()
    assert found == pytest.approx(math.log1p(expected.between / (expected.within + 0.5)), rel=1e-10, abs=1e-10)
    if expected.unbiased is not None:
        found = cft.cfd(x, labels, strata, weights=weights, unbiased=True, **numbers).item()
        assert found == pytest.approx(expected.unbiased, rel=1e-10, abs=1e-10)


def test_rows_of_negative_codes_are_left_out_whatever_they_hold():
    x, labels, given = batch(1, 40)
    kept = (labels > 0) & (given >= 0)
    kept[5] = False
    x[~kept] = torch.nan
    codes, strata = torch.where(kept, labels, -1), given.clone()
    codes[5], strata[5] = 1, -3
    for numbers in ({}, {"num_groups": 3, "num_given": 2}):
        value, gradient = value_and_gradient(x, codes, strata, **numbers)
        alone, _ = value_and_gradient(x[kept], labels[kept], given[kept], **numbers)
        assert value.item() == pytest.approx(alone.item(), abs=1e-14)
        assert torch.isfinite(gradient).all()
        assert (gradient[~kept] == 0).all()


def test_a_group_of_one_row_has_the_variance_of_the_others():
    x = torch.tensor([[0.0], [2.0], [3.0], [9.0], [5.0]], dtype=torch.float64)
    variance = (2 + 18) / 2  # of two groups of two rows, with one row less each
    between, chance = 0.2 * (2 * 2.8**2 + 2 * 2.2**2 + 1.2**2), 0.2 * ((0.6 * 2) + (0.6 * 18) + 0.8 * variance)
    within = 0.2 * (2 * 2 + 2 * 18 + variance)
    labels = torch.tensor([0, 0, 1, 1, 2])
    found = cft.cfd(x, labels, unbiased=True).item()
    assert found == pytest.approx(math.log1p((between - chance) / within), rel=1e-12)
    assert cf.cfd(x.numpy(), labels=labels.numpy()).unbiased == pytest.approx(found, rel=1e-12)


def test_any_whole_numbers_will_do_without_num_groups():
    x, labels, given = batch()
    odd = torch.tensor([7, 300, 10**12])[labels]
    assert cft.cfd(x, odd, given.bool()) == cft.cfd(x, labels, given)
    assert cft.cfd(x, labels.to(torch.uint8), given) == cft.cfd(x, labels, given)


# derivatives


@pytest.mark.parametrize("conditional", [False, True])
@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize(("unbiased", "eps"), [(False, 0.0), (True, 0.0), (False, 0.3), (True, 0.3)])
def test_first_and_second_derivatives(conditional, weights, unbiased, eps):
    for scale in (0.2, 5.0):  # between is the smaller, and the larger
        x, labels, given = batch(3, 9, 2)
        x = (x + scale * labels[:, None]).requires_grad_()

        def distance(rows, labels=labels, given=given):
            strata = given if conditional else None
            return cft.cfd(rows, labels, strata, num_groups=4, num_given=2 if conditional else None,
                           weights=weights, unbiased=unbiased, eps=eps)  # fmt: skip

        assert torch.autograd.gradcheck(distance, x)
        assert torch.autograd.gradgradcheck(distance, x)


def test_the_gradient_does_not_scale_rows_or_move_them_all():
    x, labels, given = batch(2)
    _, gradient = value_and_gradient(x, labels, given)
    torch.testing.assert_close(gradient.sum(dim=0), torch.zeros(3, dtype=torch.float64), atol=1e-14, rtol=0)
    assert (gradient * x).sum().abs() < 1e-14
    value, _ = value_and_gradient(1e5 * x, labels, given)
    assert value.item() == pytest.approx(cft.cfd(x, labels, given).item(), rel=1e-12)


@pytest.mark.parametrize("unbiased", [False, True])
def test_zero_displacement(unbiased):
    half, labels = torch.randn(20, 3, generator=torch.Generator().manual_seed(0)), torch.arange(40) // 20
    value, gradient = value_and_gradient(half.repeat(2, 1), labels, unbiased=unbiased)
    assert torch.isfinite(gradient).all()
    if unbiased:
        assert -0.1 < value < 0
    else:
        assert value == 0
        assert (gradient == 0).all()


@pytest.mark.parametrize("options", [{}, {"num_groups": 3, "num_given": 2}], ids=["counted", "static"])
@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("left", ["none", "one row", "one group", "all left out", "one of each", "confounded"])
def test_little_to_compare_is_no_nan(options, weights, unbiased, left):
    x, labels, given = batch(4, 12)
    rows = {"none": slice(0), "one row": slice(1), "one group": labels == 1}.get(left, slice(None))
    if left == "all left out":
        labels = torch.full_like(labels, -1)
    if left == "one of each":
        x, labels, given, rows = x[:6], torch.arange(6) % 3, torch.arange(6) // 3, slice(None)
    strata = labels.clamp(max=1) if left == "confounded" else given
    labels = (labels > 0).long() if left == "confounded" else labels
    value, gradient = value_and_gradient(
        x[rows], labels[rows], strata[rows], weights=weights, unbiased=unbiased, eps=1e-3, **options
    )
    assert torch.isfinite(gradient).all()
    if left == "one of each":
        assert 3 < value < 20
        assert (gradient != 0).any()
    else:
        assert value.item() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("unbiased", [False, True])
def test_no_variance_within(dtype, unbiased):
    x, labels = torch.tensor([[0.0], [0.0], [2.0], [2.0]], dtype=dtype), torch.tensor([0, 0, 1, 1])
    value, gradient = value_and_gradient(x, labels, unbiased=unbiased)
    assert value == math.inf
    assert (gradient == 0).all()
    value, gradient = value_and_gradient(torch.ones_like(x), labels, unbiased=unbiased)
    assert value == 0
    assert (gradient == 0).all()
    for eps in (1e-30, 1e-6, 1.0):
        value, gradient = value_and_gradient(x, labels, unbiased=unbiased, eps=eps)
        assert value.item() == pytest.approx(math.log1p(1 / eps), rel=1e-6)
        assert torch.isfinite(gradient).all()
        assert (gradient[:2] < 0).all()
        assert (gradient[2:] > 0).all()
        value, gradient = value_and_gradient(torch.ones_like(x), labels, unbiased=unbiased, eps=eps)
        assert value == 0
        assert (gradient == 0).all()


def test_rows_that_are_not_finite_are_not_hidden():
    x, labels, given = batch()
    for bad in (torch.nan, torch.inf):
        x[3, 1] = bad
        assert cft.cfd(x, labels, given).isnan()


# types and devices


@pytest.mark.parametrize("offset", [1e3, 1e4])
@pytest.mark.parametrize("conditional", [False, True])
def test_float32_far_from_the_origin(offset, conditional):
    x, labels, given = batch(5, 500, 16, dtype=torch.float32, offset=offset)
    strata = given if conditional else None
    exact, slope = value_and_gradient(x.double(), labels, strata)
    value, gradient = value_and_gradient(x, labels, strata)
    assert value.item() == pytest.approx(exact.item(), rel=2e-6)
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-3, atol=1e-6 * slope.abs().max().item())
    of_squares = (x.square().mean(dim=0) - x.mean(dim=0).square()).sum()  # what must not be done
    if offset == 1e4:
        assert abs(of_squares / x.double().var(dim=0, correction=0).sum() - 1) > 0.01


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_types_are_added_up_in_float32(dtype):
    x, labels, given = batch(6, 2000, 8, dtype=torch.float32)
    x = (200 * x).to(dtype)  # sums of squares, and some sums of rows, are beyond float16
    exact, slope = value_and_gradient(x.double(), labels, given)
    value, gradient = value_and_gradient(x, labels, given)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)
    assert gradient.dtype == dtype
    torch.testing.assert_close(gradient.double(), slope, rtol=0.02, atol=1e-7)


def test_under_autocast():
    x, labels, given = batch(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, gradient = value_and_gradient(x, labels, given)
    assert value.dtype == torch.float32
    exact, slope = value_and_gradient(x, labels, given)
    torch.testing.assert_close(value, exact)
    torch.testing.assert_close(gradient, slope)


def test_layout_does_not_matter():
    x, labels, given = batch(rows=40)
    value, gradient = value_and_gradient(x, labels, given)
    transposed = x.t().contiguous().t()
    strided = torch.stack([labels, labels], dim=1)[:, 0]
    assert not transposed.is_contiguous()
    assert not strided.is_contiguous()
    again, slope = value_and_gradient(transposed, strided, given.flip(0).flip(0))
    torch.testing.assert_close(again, value)
    torch.testing.assert_close(slope, gradient)


def test_shapes_are_known_without_data():
    x, labels, given = (values.to("meta") for values in batch())
    assert cft.cfd(x, labels, given, num_groups=3, num_given=2).shape == ()


def test_many_batches_at_once():
    x, labels, given = batch()
    several = torch.stack([x, 2 * x + labels[:, None], x.flip(0)])

    def distance(rows):
        return cft.cfd(rows, labels, given, num_groups=3, num_given=2)

    expected = torch.stack([distance(rows) for rows in several])
    torch.testing.assert_close(torch.func.vmap(distance)(several), expected)
    slopes = torch.func.vmap(torch.func.grad(distance))(several)
    torch.testing.assert_close(slopes[1], value_and_gradient(several[1], labels, given)[1])


# torch.compile


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch's own modules, which inductor loads
@pytest.mark.parametrize(("backend", "unbiased"), [("aot_eager", False), ("aot_eager", True), ("inductor", False)])
def test_compiled_in_one_graph_once(backend, unbiased):
    if backend == "inductor" and not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("inductor needs a C++ compiler")
    torch._dynamo.reset()
    options = {"num_groups": 3, "num_given": 2, "unbiased": unbiased, "eps": 1e-9}

    @torch.compile(fullgraph=True, backend=backend)
    def distance(x, labels, given):
        return cft.cfd(x, labels, given, **options)

    for seed in range(3):
        x, labels, given = batch(seed, grad=True)
        if seed == 2:
            labels = labels.clamp(max=1)  # a group is missing
        with torch.compiler.set_stance("fail_on_recompile" if seed else "default"):
            value = distance(x, labels, given)
            value.backward()
        expected, slope = value_and_gradient(x, labels, given, **options)
        torch.testing.assert_close(value.detach(), expected)
        torch.testing.assert_close(x.grad, slope)
    with pytest.raises((RuntimeError, IndexError)):
        distance(x, labels + 2, given)


# what is refused


def test_bad_input_is_refused_in_one_sentence(refuses):
    x, labels, given = batch()
    with refuses(r"x must be floating point of shape \(rows, dim\), not torch.int64"):
        cft.cfd(x.long(), labels)
    with refuses(r"of shape \(24, 3, 1\): pass one vector per row"):
        cft.cfd(x.unsqueeze(2), labels)
    with refuses("not array"):
        cft.cfd(x.numpy(), labels)
    with refuses(r"labels must be whole numbers of shape \(24,\), not torch.float64"):
        cft.cfd(x, labels.double())
    with refuses(r"given must be whole .* of shape \(24, 1\)"):
        cft.cfd(x, labels, given.unsqueeze(1))
    with refuses(r"labels must be .*\[0, 1"):
        cft.cfd(x, [0, 1] * 12)
    with refuses("labels has numbers up to 2, beyond num_groups=2: number them from 0"):
        cft.cfd(x, labels, num_groups=2)
    with refuses("given has numbers up to 1, beyond num_given=1"):
        cft.cfd(x, labels, given, num_groups=3, num_given=1)
    with refuses("num_groups=0 must be a whole number"):
        cft.cfd(x, labels, num_groups=0)
    with refuses("num_given=2 goes with given, which is None"):
        cft.cfd(x, labels, num_given=2)
    with refuses("weights='even' is not known"):
        cft.cfd(x, labels, weights="even")
    with refuses(r"x must be floating point of .* of shape \(24, 0\)"):
        cft.cfd(x[:, :0], labels)
    with refuses("x is sparse .*: pass x.to_dense()"):
        cft.cfd(x.to_sparse(), labels)
    for eps in (-1.0, math.nan, np.float32(-1), "1e-6", None, [1.0]):
        with refuses("eps=.* must be 0 or a positive variance"):
            cft.cfd(x, labels, eps=eps)
    with refuses("labels is on meta and x on cpu"):
        cft.cfd(x, labels.to("meta"))


def test_the_extra_is_named_where_torch_is_missing(python):
    code = """
import crossfusion as cf
try:
    import crossfusion.torch
except cf.MissingDependencyError as problem:
    print(problem)
"""
    expected = "crossfusion.torch needs PyTorch, which is not installed: pip install 'crossfusion[torch]'"
    assert python(without("torch") + code) == expected


@pytest.mark.parametrize("name", cft.__all__)
def test_names_are_documented(name):
    assert f"\n   torch.{name}\n" in API_PAGE.read_text()
    assert {"Parameters", "Examples"} <= set(sections(getattr(cft, name)))
