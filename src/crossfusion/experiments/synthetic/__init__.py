"""The paper's synthetic study, and two experiments beyond it."""

from crossfusion.experiments.synthetic.figures import write_figures
from crossfusion.experiments.synthetic.levels import levels
from crossfusion.experiments.synthetic.run import count, read, run, settings_of
from crossfusion.experiments.synthetic.settings import EXPERIMENTS, Settings
from crossfusion.experiments.synthetic.tables import write_tables

__all__ = [
    "EXPERIMENTS",
    "Settings",
    "count",
    "levels",
    "read",
    "run",
    "settings_of",
    "write_figures",
    "write_tables",
]
