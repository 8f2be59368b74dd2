"""`python -m benchmarks`."""

from benchmarks.commands import bench
from crossfusion.cli import run

if __name__ == "__main__":
    run(bench, "python -m benchmarks")
