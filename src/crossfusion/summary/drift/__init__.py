"""Drift over time: distance of each period to a reference, alarms at a stated rate, and the change point."""

from crossfusion.summary.drift.detection import compare_periods
from crossfusion.summary.drift.result import Change, Drift

__all__ = ["Change", "Drift", "compare_periods"]
