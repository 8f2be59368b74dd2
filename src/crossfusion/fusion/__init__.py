"""The formula: Cross-Fusion Distance between groups, its variants and its decompositions."""

from crossfusion.fusion import array_api
from crossfusion.fusion.array_api import Cells, check_eps, check_strata, compute_distance
from crossfusion.fusion.attribution import FEATURES, Attribution, attribute_to_features, attribute_to_units
from crossfusion.fusion.cautions import (
    EQUAL_MEANS_CAUTION,
    MIN_SHARED_ROWS,
    SHAPE_CAUTION,
    SPREAD_CAUTION,
    are_few,
    bound_lower_tail,
    caution_about_close_means,
    caution_about_equal_means,
    caution_about_overlap,
    caution_about_shape,
    caution_about_spread,
    count_shared_rows,
    has_equal_means,
    join_cautions,
    split_cautions,
)
from crossfusion.fusion.design import (
    NO_VARIANCE,
    WEIGHTS,
    Codes,
    Design,
    between_by_feature,
    compute_stratum_means,
    estimate_mean_errors,
    split_by_stratum,
)
from crossfusion.fusion.display import STATISTIC_NAMES, Content, DisplayMixin, Facts, TextTable
from crossfusion.fusion.distance import Fusion, fuse
from crossfusion.fusion.exclusion import (
    MIN_UNITS,
    Exclusion,
    check_min_units,
    describe_excluded,
    leave_out_cells,
    list_excluded,
)
from crossfusion.fusion.geometry import GEOMETRY_REMEDY, caution_about_geometry
from crossfusion.fusion.geometry_result import Geometry, measure_geometry
from crossfusion.fusion.hierarchy import HEADER, Hierarchy, Level, split_levels
from crossfusion.fusion.mixing import REGION, Mixing, Region, measure_entropy, measure_information
from crossfusion.fusion.one_vs_rest import GroupAndRest, compare_each_with_rest, split_each_from_rest
from crossfusion.fusion.pairwise import Pairwise, compare_pairs, restore_labels
from crossfusion.fusion.projection import Projection, center_strata, check_projectable, find_plane, project_groups
from crossfusion.fusion.result import Record, Result, data_frame, record_columns
from crossfusion.fusion.scaling import (
    SCALES,
    TEST_PLACE,
    FeatureScale,
    ScaledRows,
    caution_about_separating,
    check_scale,
    describe_scale,
    measure_within_scale,
    name_scale,
)
