"""RDR, CDDR and the degradation study of data sets, in pieces that are kept, as tables, figures and a page."""

from crossfusion.experiments.evaluation.model import Dataset, Evaluated, Plan
from crossfusion.experiments.evaluation.run import evaluate, evaluate_all
from crossfusion.experiments.evaluation.web import write_page

__all__ = ["Dataset", "Evaluated", "Plan", "evaluate", "evaluate_all", "write_page"]
