"""The distance of a batch as a differentiable number."""

from typing import Any

import torch
from torch import Tensor

from crossfusion._base import InputError, arg, check_option, check_whole
from crossfusion.fusion import WEIGHTS, array_api
from crossfusion.torch.moments import CellMoments, Total, compute_cell_moments, keep_local


def cfd(
    x: Tensor,
    labels: Tensor,
    given: Tensor | None = None,
    *,
    num_groups: int | None = None,
    num_given: int | None = None,
    weights: str = "pooled",
    unbiased: bool = False,
    eps: float = 0.0,
) -> Tensor:
    r"""Cross-Fusion Distance between the groups of a batch, as a differentiable tensor.

    .. math:: \mathrm{CFD} = \log\Bigl(1 + \frac{B}{W + \varepsilon}\Bigr)

    with the variance W within the groups and B between them, as in :func:`crossfusion.cfd`.

    Parameters
    ----------
    x : tensor of shape (rows, dim)
        Floating point, on any device. Types narrower than float32 are accumulated in float32.
    labels : tensor of shape (rows,)
        The group of each row as an integer. Rows with a negative label are left out.
    given : tensor of shape (rows,), optional
        The stratum of each row: groups are compared within strata. Rows with a negative stratum are left out.
    num_groups, num_given : int, optional
        Number of groups and of strata, numbered from 0. If given, :func:`torch.compile` makes one graph. Without them,
        any integers are accepted and counted.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    unbiased : bool
        Subtract the part of B that is due to sampling, about (groups - 1) / rows of W, so that small batches are not
        biased. The result may be negative. A group with one row borrows the variance of the other rows.
    eps : float
        A variance added to W, in units of `x` squared. With 0, the distance between groups without variance is
        infinite and its gradient 0 (or very large, if rounding leaves a trace of variance). Any positive value makes
        it finite, with a useful gradient.

    Returns
    -------
    tensor
        A scalar of the type of `x` or float32, whichever is wider. Groups without rows in the batch are ignored. A
        batch in which nothing is compared, with fewer than two groups in each stratum, gives 0, so that it adds nothing
        to a loss; :class:`CrossFusionDistance`, which reports numbers, gives NaN. A row with NaN or infinity makes the
        result NaN, unless its label is negative.

    Examples
    --------
    >>> import torch
    >>> from crossfusion.torch import cfd
    >>> x = torch.tensor([[0.0], [2.0], [4.0], [6.0]], dtype=torch.float64, requires_grad=True)
    >>> distance = cfd(x, torch.tensor([0, 0, 1, 1]))
    >>> distance.backward()
    >>> f"{distance.item():.4f}"  # log((1 + 4) / 1)
    '1.6094'
    """
    check_option(weights, WEIGHTS, "weights")
    array_api.check_eps(eps)
    array_api.check_strata(given, num_given)
    moments, parts = compute_batch_moments(x, labels, given, num_groups, num_given)
    return compute_distance(moments, parts, weights, unbiased, eps)


def compute_batch_moments(
    x: Tensor,
    labels: Tensor,
    given: Tensor | None,
    num_groups: int | None,
    num_given: int | None,
    *,
    names: tuple[str, str | None] = ("labels", "given"),
    total: Total = keep_local,
) -> tuple[CellMoments, int]:
    """Moments of the groups within each stratum, side by side, and how many strata there are; errors use `names`."""
    group, groups = encode_labels(labels, num_groups, x, names[0], "num_groups")
    if given is None:
        return compute_cell_moments(x, group, groups, total), 1
    part, parts = encode_labels(given, num_given, x, str(names[1]), "num_given")
    return compute_cell_moments(x, cross_codes(group, groups, part, parts), parts * groups, total), parts


def cross_codes(group: Tensor, groups: int, part: Tensor, parts: int) -> Tensor:
    """Codes of groups within parts; a code beyond the last stays beyond the last and is not another cell."""
    cell = torch.where((group < 0) | (part < 0), -1, part * groups + group)
    return torch.where((group >= groups) | (part >= parts), parts * groups, cell)


def encode_labels(labels: Tensor, number: int | None, x: Tensor, name: str, option: str) -> tuple[Tensor, int]:
    """Codes from 0 of each row, negative where it is left out, and how many codes there are, at least 1."""
    check_rows(x)
    _check_labels(labels, x, name)
    labels = labels.to(torch.int64)
    if number is None:
        values, codes = torch.unique(labels.clamp(min=-1), return_inverse=True)
        left_out = int((values < 0).sum())
        return codes - left_out, max(1, len(values) - left_out)
    check_whole(number, option)
    if labels.device.type == "cpu" and not torch.compiler.is_compiling() and bool((labels >= number).any()):
        raise InputError(
            name,
            problem=f"has numbers up to {int(labels.max())}, beyond {arg(option, number)}",
            remedy="number them from 0",
        )
    return labels, number


def check_rows(x: Any) -> None:
    """Refuse what is not a matrix of numbers."""
    if not isinstance(x, Tensor) or x.ndim != 2 or x.shape[1] == 0 or not x.is_floating_point():
        raise InputError(
            "x",
            problem=f"must be floating point of shape (rows, dim), not {_describe(x)}",
            remedy="pass one vector per row",
        )
    if x.layout is not torch.strided:
        raise InputError("x", problem=f"is sparse ({x.layout})", remedy="pass x.to_dense()")


def _check_labels(labels: Any, x: Tensor, name: str) -> None:
    """Refuse what is not a whole number for each row."""
    if not isinstance(labels, Tensor) or labels.shape != x.shape[:1] or not _is_integer(labels):
        wanted = f"whole numbers of shape ({x.shape[0]},)"
        raise InputError(
            name, problem=f"must be {wanted}, not {_describe(labels)}", remedy="pass one number for each row of x"
        )
    if labels.device != x.device:
        raise InputError(
            name, problem=f"is on {labels.device} and x on {x.device}", remedy=f"move {name} to the device of x"
        )


def compute_distance(moments: CellMoments, num_parts: int, weights: str, unbiased: bool, eps: float) -> Tensor:
    """Distance from the moments of cells, the groups of a part standing side by side."""

    def put_groups_first(values: Tensor) -> Tensor:
        return values.reshape(num_parts, -1, *values.shape[1:]).transpose(0, 1)

    row = 1.0 if moments.squares is None else put_groups_first(moments.weigh_rows())
    cells = array_api.Cells(
        put_groups_first(moments.count), put_groups_first(moments.mean), put_groups_first(moments.sumsq), row
    )
    value: Tensor = array_api.compute_distance(torch, cells, weights=weights, unbiased=unbiased, eps=eps)
    return value


def _describe(values: Any) -> str:
    """Type and shape for a message."""
    return f"{values.dtype} of shape {tuple(values.shape)}" if isinstance(values, Tensor) else repr(values)[:40]


def _is_integer(values: Tensor) -> bool:
    """Whether a type holds whole numbers only."""
    return not values.is_floating_point() and not values.is_complex()
