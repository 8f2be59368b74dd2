"""What a report is about: which groups, given what, counted by which units."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from crossfusion._base import InputError, arg, as_names, check_level, check_option, check_positive
from crossfusion.fusion import MIN_UNITS, WEIGHTS, Record, check_min_units
from crossfusion.inference import check_test_options
from crossfusion.summary import Factors

Names = tuple[str, ...]
EXPECTATIONS = ("fused", "apart")  # groups that should agree, such as batches, and classes that should separate


@dataclass(frozen=True)
class Question(Record):
    """Names of factors, and how they are compared; `Report` says what each means."""

    between: Names
    given: Names
    units: Names
    time: str | None
    method: str | None
    reference: str | None
    levels: Names
    weights: str
    level: float
    permutations: int
    seed: int
    min_units: int = MIN_UNITS
    expect: str | None = None
    fused_within: float | None = None

    @property
    def factors(self) -> Names:
        """All factors that are named, each once."""
        single = [name for name in (self.time, self.method) if name is not None]
        return tuple(dict.fromkeys([*self.between, *self.given, *self.levels, *self.units, *single]))


def make_question(
    between: Factors,
    given: Factors | None,
    units: Factors | None,
    time: str | None,
    method: str | None,
    reference: Any,
    nested: Sequence[str] | None,
    weights: str,
    level: float,
    permutations: int,
    seed: int,
    min_units: int = MIN_UNITS,
    expect: str | None = None,
    fused_within: float | None = None,
) -> Question:
    """A question whose parts go together."""
    if expect is not None:
        check_option(expect, EXPECTATIONS, "expect")
    if fused_within is not None:
        check_positive(fused_within, "fused_within")
    check_level(level, needed=True)
    check_test_options(permutations, seed)
    check_min_units(min_units)
    check_option(weights, WEIGHTS, "weights")
    compared = as_names(between, "between", needed=True)
    held, counted = as_names(given, "given"), as_names(units, "units")
    single = {name: _check_single(value, name) for name, value in (("time", time), ("method", method))}
    _check_apart(compared, held, counted, single)
    if reference is not None and method is None:
        raise InputError(
            "reference", reference, "names a version", f"name the factor of the versions in {arg('method')}"
        )
    levels = [*compared, *counted] if nested is None else list(as_names(nested, "factors"))
    levels = [name for name in levels if name not in held and name != method]
    if not levels:
        raise InputError(
            "factors",
            problem=f"has no factor besides those of {arg('given')} and {arg('method')}",
            remedy="name factors from the outermost to the innermost",
        )
    return Question(
        compared,
        held,
        counted,
        single["time"],
        single["method"],
        None if reference is None else str(reference),
        tuple(levels),
        weights,
        level,
        permutations,
        seed,
        min_units,
        expect,
        fused_within,
    )


def _check_single(value: Any, name: str) -> str | None:
    if value is None or (isinstance(value, str) and value):
        return value
    raise InputError(name, value, "is not the name of one factor", "pass a name, or leave it out")


def _check_apart(between: Names, given: Names, units: Names, single: dict[str, str | None]) -> None:
    """Refuse a factor that is to play two parts."""
    parts = {"between": between, "given": given, "units": units}
    parts |= {name: (value,) for name, value in single.items() if value is not None}
    seen: dict[str, str] = {}
    for part, names in parts.items():
        for name in names:
            if name in seen and {part, seen[name]} != {"between", "time"}:
                raise InputError(
                    problem=f"{name!r} is in {arg(seen[name])} and in {arg(part)}",
                    remedy="use each factor for one purpose",
                )
            seen.setdefault(name, part)
