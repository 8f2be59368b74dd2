"""Corrections of embeddings: they map rows of several domains to rows whose domains differ less.

No correction sees a label, since the labels of a new domain are unknown.
"""

from crossfusion.evaluation.correctors.registry import correct, corrections, respell_correction

__all__ = ["correct", "corrections", "respell_correction"]
