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
from crossfusion.study.figures import figure, save_figure, set_figure_style
from crossfusion.study.page import write_page
from crossfusion.study.published_tables import format_markdown_table
from crossfusion.study.result_files import write_table
from crossfusion.study.resume import digest, run_tasks
from crossfusion.study.tables import make_main_tables, render_markdown
from crossfusion.study.workers import compute_all, count_workers

__all__ = [
    "Association",
    "Dataset",
    "Evaluation",
    "PageTable",
    "Plan",
    "compute_all",
    "compute_half_width",
    "count_workers",
    "digest",
    "escape",
    "evaluate",
    "evaluate_all",
    "figure",
    "format_markdown_table",
    "histopathology",
    "html_table",
    "make_document",
    "make_element",
    "make_folder",
    "make_main_tables",
    "number_text",
    "plain_value",
    "published",
    "render_markdown",
    "run_tasks",
    "save_figure",
    "set_figure_style",
    "write_page",
    "write_table",
    "write_text",
]
