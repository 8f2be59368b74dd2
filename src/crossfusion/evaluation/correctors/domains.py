"""Rows and the domain that each belongs to, as corrections and protocols take them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import (
    MAX_EXTENT,
    CodeArray,
    FloatArray,
    InputError,
    align_index,
    as_rows,
    check_length,
    factors,
    require_finite,
)

NON_FINITE_REMEDY = "leave those rows out, x[np.isfinite(x).all(axis=1)]"


@dataclass(frozen=True)
class Domains:
    """Rows of several domains.

    Parameters
    ----------
    x : array of shape (rows, dim)
        All rows.
    code : array of shape (rows,)
        Number of each row's domain.
    names : tuple
        The domains, in the order of their numbers.
    """

    x: FloatArray
    code: CodeArray
    names: tuple[Any, ...]

    @property
    def counts(self) -> list[int]:
        """Rows of each domain."""
        return [int(n) for n in np.bincount(self.code, minlength=len(self.names))]

    def rows(self, number: int) -> Any:
        """Which rows a domain has."""
        return np.flatnonzero(self.code == number)

    def number(self, name: Any, argument: str) -> int:
        """Number of the domain of this name."""
        name = factors.python_value(name)
        if name not in self.names:
            known = ", ".join(repr(label) for label in self.names)
            raise InputError(argument, problem=f"names {name!r}, which is not a domain", remedy=f"there are {known}")
        return self.names.index(name)

    def pairs(self, asked: Any) -> list[tuple[int, int]]:
        """Numbers of pairs of two domains that are given by name, each pair once."""
        try:
            found = [(self.number(a, "pairs"), self.number(b, "pairs")) for a, b in asked]
        except (TypeError, ValueError) as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError("pairs", asked, "must hold pairs of domains, such as [('A', 'B')]") from problem
        if not found or any(a == b for a, b in found) or len(set(found)) < len(found):
            raise InputError("pairs", asked, "must hold pairs of two different domains, each pair once")
        return found


def as_domains(x: Any, domain: Any, name: str = "x") -> Domains:
    """Check rows and domains; rows become float64 without holes. `name`: of the rows, in messages."""
    rows = as_rows(x, name)
    if not isinstance(rows, np.ndarray):
        raise InputError(
            name, problem="is sparse, which is not supported here", remedy="pass dense rows, such as x.toarray()"
        )
    (domain,) = align_index(name, x, domain=domain)
    code, names = as_codes(domain, len(rows), "domain")
    if len(names) < 2:
        raise InputError(
            "domain", problem=f"has {len(names)} distinct values", remedy="pass rows of at least two domains"
        )
    require_finite(rows, name, "raise", NON_FINITE_REMEDY)
    if float(np.max(np.abs(rows), initial=0)) > MAX_EXTENT:
        raise InputError(name, problem="has values whose squares exceed the range of float64", remedy="scale it down")
    return Domains(np.ascontiguousarray(rows, np.float64), code, names)


def as_codes(values: Any, rows: int, name: str) -> tuple[CodeArray, tuple[Any, ...]]:
    """Codes of one value per row, and the values that they stand for."""
    keys = factors.as_table({name: values})
    check_length(keys.num_rows, rows, name, "x")
    missing = keys.column(name).null_count
    if missing:
        raise InputError(
            name, problem=f"has {missing} missing values", remedy="leave those rows out, or give each of them one"
        )
    codes, found = factors.encode(keys)
    return codes, tuple(factors.list_labels(found))
