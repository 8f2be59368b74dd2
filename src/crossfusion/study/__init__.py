"""Studies of distances: evaluate data sets in tasks that are kept, and write tables, figures and a page.

``crossfusion histopathology`` is such a study on the user's slides; the experiments of the paper, which are not in the
package, use the same functions.
"""

from crossfusion._base import make_folder, number_text, plain_value, write_text
from crossfusion.evaluation import Association
from crossfusion.inference import compute_half_width
from crossfusion.report import PageTable, escape, make_document, make_element
from crossfusion.report import make_table as html_table
from crossfusion.study import histopathology, published
from crossfusion.study.dataset import Dataset, Evaluation, Plan
from crossfusion.study.evaluation import evaluate, evaluate_all
from crossfusion.study.figures import figure, figure_style, save_figure
from crossfusion.study.page import write_page
from crossfusion.study.published_tables import markdown_table
from crossfusion.study.result_files import write_table
from crossfusion.study.resume import digest, run_tasks
from crossfusion.study.tables import main_tables, render_markdown
from crossfusion.study.workers import compute_all, worker_count

__all__ = [
    "Association",
    "Dataset",
    "Evaluation",
    "PageTable",
    "Plan",
    "compute_all",
    "compute_half_width",
    "digest",
    "escape",
    "evaluate",
    "evaluate_all",
    "figure",
    "figure_style",
    "histopathology",
    "html_table",
    "main_tables",
    "make_document",
    "make_element",
    "make_folder",
    "markdown_table",
    "number_text",
    "plain_value",
    "published",
    "render_markdown",
    "run_tasks",
    "save_figure",
    "worker_count",
    "write_page",
    "write_table",
    "write_text",
]
