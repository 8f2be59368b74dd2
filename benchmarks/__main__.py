"""`python -m benchmarks`."""

from benchmarks.commands import benchmarks
from crossfusion.cli import run

if __name__ == "__main__":
    run(benchmarks, "python -m benchmarks")
