"""The paper's study of tissue on any slides: encoders, stain normalizers, ratios, degradation, one page."""

from crossfusion.study.histopathology.choices import Choices
from crossfusion.study.histopathology.design import check_plan
from crossfusion.study.histopathology.run import Embeddings, Setup, encode, evaluate, prepare
from crossfusion.study.histopathology.writing import NAME, write

__all__ = ["NAME", "Choices", "Embeddings", "Setup", "check_plan", "encode", "evaluate", "prepare", "write"]
