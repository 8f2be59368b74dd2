"""Intervals and tests: errors of rows and of units, bootstrap, permutation, multiple testing."""

from crossfusion.inference.bootstrap import compute_replicates, draw_multiplicities
from crossfusion.inference.intervals import add_interval, compute_half_width
from crossfusion.inference.mixing_errors import RegionCounts
from crossfusion.inference.multiple_testing import ADJUSTMENTS, adjusted_pvalues
from crossfusion.inference.paired_differences import Side, compute_half_widths, zero_rounding
from crossfusion.inference.pairs import REACH_CAUTION, add_pair_tests, ask_pairs, count_pairs, fill_matrix
from crossfusion.inference.permutation.exchangeable import find_exchangeable
from crossfusion.inference.permutation.result import STATISTICS, TestResult, caution_about_number
from crossfusion.inference.permutation.run import (
    add_cautions,
    check_test_options,
    name_test_scale,
    run_moment_test,
    run_test,
)
from crossfusion.inference.permutation.sums import Entries
from crossfusion.inference.row_errors import (
    MIN_CELL_ROWS,
    LabeledRows,
    estimate_row_errors,
    measure_spread,
    sample_rows,
)
from crossfusion.inference.unit_errors import UnitMoments, estimate_cell_errors, estimate_unit_errors
from crossfusion.inference.unit_inference import (
    add_limits,
    add_tests,
    add_unit_errors,
    compare_each_with_rest_by_units,
    run_unit_test,
)
