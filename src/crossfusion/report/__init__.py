"""The HTML report, and the HTML kit that it shares with the study."""

from crossfusion.report.data import ReportData, summarize_and_sample
from crossfusion.report.html.document import make_document
from crossfusion.report.html.markup import PageTable, escape, make_element, make_table
from crossfusion.report.question import EXPECTATIONS, Question, make_question
from crossfusion.report.report import Report, check_page
