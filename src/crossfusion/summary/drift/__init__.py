"""Drift over time: each period beside a reference, an alarm whose rate is stated, and where a change set in."""

from crossfusion.summary.drift.detection import compare_periods
from crossfusion.summary.drift.result import Change, Drift

__all__ = ["Change", "Drift", "compare_periods"]
