"""Every correction by its name."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from crossfusion._base import FloatArray, check_known
from crossfusion.evaluation.correctors.combat import combat
from crossfusion.evaluation.correctors.covariance import coral, subspace
from crossfusion.evaluation.correctors.harmony import harmony
from crossfusion.evaluation.correctors.scaling import center, none, standardize

_CORRECTIONS: tuple[Callable[..., FloatArray], ...] = (none, center, standardize, coral, subspace, combat, harmony)

_SPELLINGS = {"centre": "center", "standardise": "standardize"}  # names in 0.1, which are still accepted


class _Registry(dict[str, Callable[..., FloatArray]]):
    def __missing__(self, name: str) -> Callable[..., FloatArray]:
        if name not in _SPELLINGS:
            raise KeyError(name)
        return self[_SPELLINGS[name]]


corrections: Mapping[str, Callable[..., FloatArray]] = MappingProxyType(
    _Registry({function.__name__: function for function in _CORRECTIONS})
)
"""Every correction by its name; each is a plain function of rows and their domains."""


def respell_correction(name: Any) -> Any:
    """Replace the British spelling that a correction had in 0.1 by its name."""
    return _SPELLINGS.get(name, name) if isinstance(name, str) else name


def correct(x: Any, domain: Any, method: str = "coral", **options: Any) -> FloatArray:
    """Remove differences between domains from rows.

    Parameters
    ----------
    x : array of shape (rows, dim)
        Rows of all domains.
    domain : array of shape (rows,)
        The domain of each row, such as its scanner.
    method : str
        The name of a correction, one of ``crossfusion.corrections``.
    **options
        Keyword arguments of the correction, such as ``reference`` or ``ridge`` for ``coral``.

    Returns
    -------
    array of shape (rows, features)
        Corrected rows in the same order. ``subspace`` returns fewer features, the others the same number.

    Notes
    -----
    No correction sees labels. Those that give all domains the same mean (``center``, ``standardize``, ``coral``,
    ``subspace``) make CFD zero by construction: judge them by a prediction task, by a distance that sees more than
    means, or by CFD adjusted for the label.

    Examples
    --------
    >>> import numpy as np
    >>> import crossfusion as cf
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 4))
    >>> scanner = np.repeat(["S1", "S2"], 100)
    >>> x[scanner == "S2"] = 2 * x[scanner == "S2"] + 1
    >>> for method in ("none", "combat", "coral"):
    ...     corrected = cf.correct(x, scanner, method)
    ...     print(f"{method:<8}{cf.cfd(corrected, labels=scanner).distance:.4f}")
    none    0.0964
    combat  0.0007
    coral   0.0000
    """
    method = respell_correction(method)
    check_known([method], list(corrections), "correction", "crossfusion")
    function = corrections[method]
    check_known(options, list(inspect.signature(function).parameters)[2:], "option", f"the correction {method!r}")
    return function(x, domain, **options)
