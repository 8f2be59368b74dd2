"""Lenses: fixed maps of rows, applied before they are reduced, for what means of raw features cannot show."""

from crossfusion.lens.composition import Lens
from crossfusion.lens.fitting import Training
from crossfusion.lens.named import JOIN, NAMES, fit_named, read
from crossfusion.lens.random_features import kernel
from crossfusion.lens.regions import codebook
from crossfusion.lens.standardization import standardize
from crossfusion.lens.storage import FILE_ENDING as LENS_ENDING
from crossfusion.lens.unit_length import unit
from crossfusion.lens.whitening import whiten

__all__ = ["Lens", "codebook", "kernel", "read", "standardize", "unit", "whiten"]
