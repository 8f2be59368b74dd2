"""Errors, checks of arguments, text, files, threads and types: what every other package stands on."""

from crossfusion._base import arrow, errors, factors, files, optional, threads
from crossfusion._base.alignment import align_index, check_index
from crossfusion._base.errors import (
    RAN_SHORT,
    CrossfusionError,
    CrossfusionWarning,
    EngineError,
    FileError,
    InputError,
    MissingDependencyError,
    NonFiniteError,
    dump_error,
    first_line,
    load_error,
    ran_short,
    warn,
)
from crossfusion._base.factors import python_value
from crossfusion._base.feature_names import (
    NamedRows,
    as_features,
    check_distinct,
    column_names,
    match_columns,
    match_features,
)
from crossfusion._base.files import check_folder, make_folder, write_text, write_whole
from crossfusion._base.finite import (
    LOST_GROUPS,
    NAN_OPTIONS,
    FiniteCheck,
    find_finite_rows,
    require_finite,
    split_rows,
    warn_about_lost_groups,
)
from crossfusion._base.lazy_rows import LazyRows, fit_rows_in_cache, prefetch
from crossfusion._base.lensing import (
    RowLens,
    apply_lens,
    as_lens_rows,
    check_lens,
    label_rows,
    map_lazily,
    map_rows,
)
from crossfusion._base.messages import Argument, Spelling, arg, escape_unprintable
from crossfusion._base.optional import load
from crossfusion._base.progress import show_on_terminal, show_progress
from crossfusion._base.renaming import accept_old_names
from crossfusion._base.text import (
    MAX_LISTED_GROUPS,
    count_text,
    field_values,
    interval_text,
    label_text,
    level_text,
    limits_text,
    number_text,
    p_text,
    percent,
    plain_number,
    plain_value,
    pvalue_text,
    quantity_text,
    shorten,
    text_table,
)
from crossfusion._base.threads import limit_blas, map_threads, multiply_matrices, thread_count
from crossfusion._base.torchvision_shim import declare_operators
from crossfusion._base.typing import CodeArray, FloatArray
from crossfusion._base.validation import (
    MAX_EXTENT,
    as_frequency,
    as_names,
    as_row_pair,
    as_rows,
    as_tags,
    check_fraction,
    check_known,
    check_length,
    check_level,
    check_no_labels,
    check_once,
    check_option,
    check_positive,
    check_rate,
    check_same_dim,
    check_same_factors,
    check_same_lens,
    check_same_tags,
    check_seed,
    check_some_rows,
    check_tags,
    check_wait,
    check_whole,
    is_real,
)
