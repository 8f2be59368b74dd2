"""Whether intervals and tests hold what they promise, by drawing from populations whose distance is known."""

from crossfusion.benchmarks.coverage.run import count, run
from crossfusion.benchmarks.coverage.tables import SUMMARY, summary

__all__ = ["SUMMARY", "count", "run", "summary"]
