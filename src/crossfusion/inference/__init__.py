"""Intervals and tests: errors of rows and of units, bootstrap, permutation, multiple testing."""

from crossfusion.inference.bootstrap import compute_replicates, draw_multiplicities
from crossfusion.inference.by_unit import (
    add_limits,
    add_pvalues,
    add_tests,
    add_unit_errors,
    fill_matrix,
    run_unit_test,
    test_pairs,
)
from crossfusion.inference.intervals import add_interval, half_width
from crossfusion.inference.multiple_testing import METHODS, adjusted_pvalues
from crossfusion.inference.paired_differences import Side, count_ranks, exceeds_rounding, half_widths
from crossfusion.inference.permutation.exchangeable import find_exchangeable
from crossfusion.inference.permutation.result import TestResult, check_test_options, run_test, test_moments
from crossfusion.inference.permutation.sums import Entries
from crossfusion.inference.row_errors import LabeledRows, count_independent, estimate_row_errors, sample_rows
from crossfusion.inference.unit_errors import UnitMoments, estimate_cell_errors, estimate_unit_errors

__all__ = [
    "METHODS",
    "Entries",
    "LabeledRows",
    "Side",
    "TestResult",
    "UnitMoments",
    "add_interval",
    "add_limits",
    "add_pvalues",
    "add_tests",
    "add_unit_errors",
    "adjusted_pvalues",
    "check_test_options",
    "compute_replicates",
    "count_independent",
    "count_ranks",
    "draw_multiplicities",
    "estimate_cell_errors",
    "estimate_row_errors",
    "estimate_unit_errors",
    "exceeds_rounding",
    "fill_matrix",
    "find_exchangeable",
    "half_width",
    "half_widths",
    "run_test",
    "run_unit_test",
    "sample_rows",
    "test_moments",
    "test_pairs",
]
