"""Cross-Fusion Distance in JAX: a pure function for `jit`, `grad`, `vmap` and several devices."""

from typing import Any

import numpy as np

from crossfusion._base import InputError, arg, check_length, check_option, check_whole, first_line, optional
from crossfusion.fusion import WEIGHTS, Cells, check_eps, check_strata, compute_distance

jax = optional.load("jax", "JAX", "jax", "crossfusion.jax")
jnp = optional.load("jax.numpy", "JAX", "jax", "crossfusion.jax")

__all__ = ["cfd"]

MAX_CODES = 2**31 - 1  # groups that int32 can number


def cfd(
    x: Any,
    labels: Any,
    given: Any = None,
    *,
    num_groups: int | None = None,
    num_given: int | None = None,
    weights: str = "pooled",
    unbiased: bool = False,
    eps: Any = 0.0,
    axis_name: Any = None,
) -> Any:
    r"""Cross-Fusion Distance between labeled groups of rows, as a differentiable JAX scalar.

    .. math:: \mathrm{CFD} = \log\Bigl(1 + \frac{B}{W + \varepsilon}\Bigr)

    with the variance B between the groups' means, within the strata of `given`, and W within the groups.

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all groups. Floats narrower than 32 bits are reduced in float32, integers in JAX's default float.
    labels : array of shape (rows,)
        The group of each row, an integer from 0; rows with a negative label are left out.
    given : array of shape (rows,), optional
        The stratum of each row, likewise; groups are compared within strata.
    num_groups, num_given : int, optional
        Number of groups and of strata; needed while JAX traces the labels (`jit`, `vmap`, `shard_map`), otherwise found
        from the labels. Groups without rows in the batch are ignored.
    weights : {"pooled", "balanced"}
        Weight groups by their rows, or all equally.
    unbiased : bool
        Whether to return the unbiased estimate. A group with one row in a stratum borrows the pooled variance of the
        others.
    eps : float
        A variance added to W, so that gradients stay bounded if groups collapse to points.
    axis_name : str or tuple of str, optional
        Names of the mesh axes over which rows are distributed: counts and sums are added over them, so that every
        device returns the distance over all rows.

    Returns
    -------
    jax.Array
        A scalar of the type of `x` or float32, whichever is wider.

    Notes
    -----
    Without variance within groups (W + eps = 0) the distance is infinite, or 0 if the means are equal; its gradient is
    0 there. Rows are centered before they are squared, so float32 is enough at any offset.

    JAX cannot raise errors while it traces: a label of `num_groups` or more then makes the distance NaN, as does a row
    with NaN or infinity, unless it is left out. A batch with one group, or with one group per stratum, has distance 0.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> from crossfusion.jax import cfd
    >>> x = jnp.array([[0.0], [2.0], [2.0], [4.0]])
    >>> labels = jnp.array([0, 0, 1, 1])
    >>> print(f"{cfd(x, labels):.6f}")
    0.693147
    >>> jax.jit(jax.grad(lambda x: cfd(x, labels, num_groups=2)))(x).ravel().tolist()
    [0.0, -0.5, 0.5, 0.0]
    """
    check_option(weights, WEIGHTS, "weights")
    check_eps(eps)
    check_strata(given, num_given)
    rows = _check_rows(x)
    group, groups = _check_codes(labels, num_groups, len(rows), "labels", "num_groups")
    stratum, strata = (
        (jnp.zeros_like(group), 1) if given is None else _check_codes(given, num_given, len(rows), "given", "num_given")
    )
    kept = (group >= 0) & (stratum >= 0)
    cell = jnp.where(kept, group * strata + stratum, groups * strata)  # beyond the last: such rows are dropped
    cells = _compute_moments(rows, cell, kept, (groups, strata), axis_name)
    value = compute_distance(jnp, cells, weights=weights, unbiased=unbiased, eps=eps)
    stray = _sum_devices(jnp.sum(kept & ((group >= groups) | (stratum >= strata))), axis_name)
    return jnp.where(stray > 0, jnp.nan, value)


def _check_rows(x: Any) -> Any:
    """Rows × features of a type that sums can be taken in."""
    try:
        rows = jnp.asarray(x)
    except (TypeError, ValueError) as problem:
        raise InputError("x", problem=f"must hold numbers ({first_line(problem)})", remedy="convert it") from problem
    if rows.ndim != 2:
        raise InputError(
            "x", problem=f"must be two-dimensional, rows × features, but has shape {rows.shape}", remedy="reshape it"
        )
    if jnp.issubdtype(rows.dtype, jnp.complexfloating):
        raise InputError(
            "x", problem=f"must hold real numbers, not {rows.dtype}", remedy="pass real and imaginary parts as features"
        )
    if not jnp.issubdtype(rows.dtype, jnp.floating):
        return rows.astype(float)
    return rows.astype(jnp.promote_types(rows.dtype, jnp.float32))


def _check_codes(values: Any, number: int | None, rows: int, name: str, option: str) -> tuple[Any, int]:
    """Codes of groups or strata, and how many there can be."""
    try:
        codes = values if isinstance(values, jax.Array) else np.asarray(values)
    except ValueError as problem:
        raise InputError(
            name, problem=f"cannot be read as one number per row ({first_line(problem)})", remedy="number them"
        ) from problem
    if codes.ndim != 1 or codes.dtype.kind not in "iub":
        raise InputError(
            name,
            problem=f"must be whole numbers 0, 1, ..., one per row, not {codes.dtype} of shape {codes.shape}",
            remedy="number them, such as by numpy.unique(..., return_inverse=True)",
        )
    check_length(len(codes), rows, name, "x")
    if number is not None:
        check_whole(number, option)
    if isinstance(codes, jax.core.Tracer):
        if number is None:
            raise InputError(
                name, problem="are traced, so how many there can be is not known", remedy=f"pass {arg(option)}"
            )
        return codes.astype(jnp.int32), number
    most = int(np.asarray(codes).max()) + 1 if len(codes) else 0  # NumPy looks now, even while JAX traces the rows
    if number is not None and most > number:
        raise InputError(
            name, problem=f"has numbers up to {most - 1}, beyond {arg(option, number)}", remedy="number them from 0"
        )
    if most > MAX_CODES:
        raise InputError(
            name,
            problem=f"has numbers up to {most - 1}, beyond {MAX_CODES - 1}",
            remedy="number them from 0 without gaps, such as by numpy.unique(..., return_inverse=True)",
        )
    return jnp.asarray(codes, jnp.int32), max(1, most) if number is None else number


def _sum_devices(values: Any, axis_name: Any) -> Any:
    """Sums over all devices."""
    return values if axis_name is None else jax.lax.psum(values, axis_name)


def _compute_moments(rows: Any, cell: Any, kept: Any, shape: tuple[int, int], axis_name: Any) -> Cells:
    """Moments of groups × strata over all devices, in two passes around a value that lies within each cell.

    Means are relative to a common origin. Both origins are constants to a derivative, which does not depend on them.
    """
    number = shape[0] * shape[1]
    safe = jnp.where(kept, jnp.minimum(cell, number - 1), 0)

    def sums(values: Any) -> Any:
        return _sum_devices(jax.ops.segment_sum(values, cell, number), axis_name)

    rows = jnp.where(kept[:, None], rows, 0.0)
    count = sums(kept.astype(jnp.int32)).astype(rows.dtype)
    origin, common = _find_origins(jax.lax.stop_gradient(rows), cell, number, axis_name)
    shifted = rows - origin[safe]
    mean = sums(shifted) / jnp.maximum(count, 1.0)[:, None]
    centered = jnp.where(kept[:, None], shifted - mean[safe], 0.0)
    scatter = sums(jnp.sum(centered * centered, axis=1))
    mean = jnp.where(count[:, None] > 0, origin - common + mean, 0.0)
    return Cells(count.reshape(shape), mean.reshape(*shape, -1), scatter.reshape(shape))


def _find_origins(rows: Any, cell: Any, number: int, axis_name: Any) -> tuple[Any, Any]:
    """The least value of each feature in each cell (so that equal rows differ by exactly 0), and in all of them."""
    least = jax.ops.segment_min(rows, cell, number)
    if axis_name is not None:
        least = jax.lax.pmin(least, axis_name)
    common = jnp.min(least, axis=0)
    return jnp.where(jnp.isfinite(least), least, 0.0), jnp.where(jnp.isfinite(common), common, 0.0)
