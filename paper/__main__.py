"""`python -m paper`."""

from crossfusion.cli import run
from paper.commands import reproduce

if __name__ == "__main__":
    run(reproduce, "python -m paper")
