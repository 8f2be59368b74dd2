"""The HTML report, and the HTML kit that it shares with the study."""

from crossfusion.report.data import Data, drawn
from crossfusion.report.html.document import document
from crossfusion.report.html.markup import Table, element, escaped, table
from crossfusion.report.question import Question, asked
from crossfusion.report.report import Report, check_page

__all__ = [
    "Data",
    "Question",
    "Report",
    "Table",
    "asked",
    "check_page",
    "document",
    "drawn",
    "element",
    "escaped",
    "table",
]
