"""Drift over time: distance of each period to a reference, alarms at a stated rate, and the change point."""

from crossfusion.summary.drift.detection import MIN_PERIODS, compare_periods
from crossfusion.summary.drift.result import Change, Drift

__all__ = ["MIN_PERIODS", "Change", "Drift", "compare_periods"]
