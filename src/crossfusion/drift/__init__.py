"""Drift over time: each period beside a reference, an alarm whose rate is stated, and where a change set in."""

from crossfusion.drift.result import Change, Drift
from crossfusion.drift.watch import watch

__all__ = ["Change", "Drift", "watch"]
