"""Whether the alarm keeps its rate, and what other detectors make of the same streams."""

from benchmarks.drift.calibration import RATES, kinds, rates
from benchmarks.drift.side_by_side import PACKAGES, PEERS, side_by_side

__all__ = ["PACKAGES", "PEERS", "RATES", "kinds", "rates", "side_by_side"]
