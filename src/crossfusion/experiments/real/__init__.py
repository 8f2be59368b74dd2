"""The paper's evaluation on real data at hand: scanners, centres, batches, and domains of pictures."""

from crossfusion.experiments.real.folder import NAMES, data_folder
from crossfusion.experiments.real.run import run

__all__ = ["NAMES", "data_folder", "run"]
