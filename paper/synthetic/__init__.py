"""The paper's synthetic study, and two experiments beyond it."""

from paper.synthetic.figures import write_figures
from paper.synthetic.levels import levels
from paper.synthetic.run import count_pairs, read, read_settings, run
from paper.synthetic.settings import EXPERIMENTS, Settings
from paper.synthetic.tables import write_tables

__all__ = [
    "EXPERIMENTS",
    "Settings",
    "count_pairs",
    "levels",
    "read",
    "read_settings",
    "run",
    "write_figures",
    "write_tables",
]
