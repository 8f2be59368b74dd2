"""study."""

from crossfusion.study import histopathology, output, published, published_tables
from crossfusion.study.evaluation import Dataset, Evaluated, Plan, evaluate_all
from crossfusion.study.evaluation.tables import main_tables, markdown
from crossfusion.study.evaluation.web import write_page
from crossfusion.study.output import make_folder, write_table
from crossfusion.study.published import ACROSS, CDDR, COLUMNS, CORRELATION, DISTANCES, F1, MEASURES, METHODS
from crossfusion.study.resume import all_found, digest
from crossfusion.study.workers import computed

__all__ = [
    "ACROSS",
    "CDDR",
    "COLUMNS",
    "CORRELATION",
    "DISTANCES",
    "F1",
    "MEASURES",
    "METHODS",
    "Dataset",
    "Evaluated",
    "Plan",
    "all_found",
    "computed",
    "digest",
    "evaluate_all",
    "histopathology",
    "main_tables",
    "make_folder",
    "markdown",
    "output",
    "published",
    "published_tables",
    "write_page",
    "write_table",
]
