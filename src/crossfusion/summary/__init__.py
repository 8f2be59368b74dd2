"""The table of moments: queries, storage, merging, suppression, comparison of corrections, drift."""

from crossfusion.summary import storage
from crossfusion.summary.append import (
    WAIT_SECONDS,
    append_summary,
    check_appendable,
    check_appendable_features,
    check_appendable_lens,
)
from crossfusion.summary.comparison import CorrectionComparison, compare_corrections, compare_summaries
from crossfusion.summary.crossed_units import (
    MIN_CROSSED_SHARE,
    count_exchangeable_units,
    describe_exchange,
    has_crossed_units,
)
from crossfusion.summary.drift import MIN_PERIODS, Change, periods
from crossfusion.summary.drift.periods import list_periods, parse_reference
from crossfusion.summary.drift.result import Drift
from crossfusion.summary.label_effects import LabelEffect, LabelPairs, Loss
from crossfusion.summary.merge import merge_summaries
from crossfusion.summary.moment_table import Factors, arrange_rows
from crossfusion.summary.standing import Standing
from crossfusion.summary.storage import METADATA_KEY
from crossfusion.summary.summary import Summary, combine, read_summary
from crossfusion.summary.suppression import DISCLOSING_ROWS, SMALL_OPTIONS, suppress_small
from crossfusion.summary.version_ranking import VersionRanking, fusion_columns
