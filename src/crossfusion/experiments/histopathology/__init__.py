"""The paper's study of tissue on any slides: encoders, stain normalisers, ratios, degradation, one page."""

from crossfusion.experiments.histopathology.choices import Choices
from crossfusion.experiments.histopathology.design import check_plan
from crossfusion.experiments.histopathology.run import Encoded, Ready, encode, evaluate, prepare
from crossfusion.experiments.histopathology.writing import NAME, write

__all__ = ["NAME", "Choices", "Encoded", "Ready", "check_plan", "encode", "evaluate", "prepare", "write"]
