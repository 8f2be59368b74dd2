"""One rule of a policy: what it asks of the data, and the limit that must hold."""

from dataclasses import dataclass
from typing import Any

from crossfusion._base import level_text
from crossfusion.fusion import MIN_UNITS

ENDS = ("estimate", "lower", "upper")  # of an interval


@dataclass(frozen=True)
class Rule:
    """A question with the limit of its answer; for `drift`, `between` is the time and `limit` the false-alarm rate."""

    name: str
    kind: str
    limit: float
    between: tuple[str, ...]
    given: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    each_pair: bool = False
    on: str = "estimate"
    level: float = 0.95
    alpha: float = 0.05
    weights: str = "balanced"
    min_units: int = MIN_UNITS
    incomparable: str = "error"
    seed: int = 0
    reference: Any = None
    adjust: str | None = None
    window: int = 1
    step: int = 1
    latest: bool = False
    line: int | None = None

    @property
    def factors(self) -> tuple[str, ...]:
        """The columns that it needs."""
        return tuple(dict.fromkeys((*self.between, *self.given, *self.units)))

    @property
    def confidence(self) -> float | None:
        """Confidence level of the interval that it needs; None if the estimate is enough."""
        if self.kind == "fused_within":
            return 1 - 2 * self.alpha
        return self.level if self.on != "estimate" or (self.units and not self.each_pair) else None

    @property
    def needs_rows(self) -> bool:
        """Whether a summary is not enough."""
        if self.kind in ("max_separability", "drift"):
            return self.kind == "max_separability"
        return self.confidence is not None and not self.units

    @property
    def question(self) -> str:
        """What is compared, in words."""
        given = f" given {' × '.join(self.given)}" if self.given else ""
        return " × ".join(self.between) + given + (", each pair" if self.each_pair else "")

    @property
    def requirement(self) -> str:
        """What must hold, in words."""
        if self.kind == "drift":
            return f"no alarm at {self.limit:g}"
        if self.kind == "fused_within":
            return f"fused within {self.limit:g} (alpha {self.alpha:g})"
        what = "separability" if self.kind == "max_separability" else "CFD"
        if self.on != "estimate":
            what = f"{self.on} limit of {what} ({level_text(self.level)})"
        return f"{what} at {'least' if self.kind == 'min' else 'most'} {self.limit:g}"
