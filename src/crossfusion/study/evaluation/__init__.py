"""RDR, CDDR and the degradation study of data sets, in pieces that are kept, as tables, figures and a page."""

from crossfusion.study.evaluation.model import Dataset, Evaluated, Plan
from crossfusion.study.evaluation.run import evaluate, evaluate_all
from crossfusion.study.evaluation.web import write_page

__all__ = ["Dataset", "Evaluated", "Plan", "evaluate", "evaluate_all", "write_page"]
