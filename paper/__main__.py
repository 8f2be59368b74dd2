"""`python -m paper`."""

from crossfusion.cli import run
from paper.commands import paper

if __name__ == "__main__":
    run(paper, "python -m paper")
