"""Whether intervals and tests hold what they promise, by drawing from populations whose distance is known."""

from benchmarks.coverage.run import count_points, run
from benchmarks.coverage.tables import SUMMARY, summary

__all__ = ["SUMMARY", "count_points", "run", "summary"]
