"""The table of moments that answers every question: queries, storage, merging, comparison of corrections, drift."""

from crossfusion.summary import storage
from crossfusion.summary.append import WAIT, append_summary, check_appendable
from crossfusion.summary.comparison import CorrectionComparison, compare_corrections, compare_summaries
from crossfusion.summary.designs import FEW_CROSSED, count_exchanged, describe_exchange, have_several
from crossfusion.summary.drift import Change, periods
from crossfusion.summary.drift.periods import list_periods, parse_reference
from crossfusion.summary.drift.result import Drift
from crossfusion.summary.merge import merge_summaries
from crossfusion.summary.moment_table import Factors
from crossfusion.summary.storage import KEY
from crossfusion.summary.summary import Summary, combine, read_summary
from crossfusion.summary.suppression import SMALL_GROUPS, suppress_small
from crossfusion.summary.version_ranking import VersionRanking, fusion_columns

__all__ = [
    "FEW_CROSSED",
    "KEY",
    "SMALL_GROUPS",
    "WAIT",
    "Change",
    "CorrectionComparison",
    "Drift",
    "Factors",
    "Summary",
    "VersionRanking",
    "append_summary",
    "check_appendable",
    "combine",
    "compare_corrections",
    "compare_summaries",
    "count_exchanged",
    "describe_exchange",
    "fusion_columns",
    "have_several",
    "list_periods",
    "merge_summaries",
    "parse_reference",
    "periods",
    "read_summary",
    "storage",
    "suppress_small",
]
