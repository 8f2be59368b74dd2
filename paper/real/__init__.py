"""The paper's evaluation on real data at hand: scanners, centres, batches, and domains of pictures."""

from paper.real.folder import NAMES, data_folder
from paper.real.run import run

__all__ = ["NAMES", "data_folder", "run"]
