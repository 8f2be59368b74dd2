"""Distances and tests computed from arrays directly."""

from crossfusion.arrays import distance
from crossfusion.arrays.all_pairs import pairwise
from crossfusion.arrays.classification import separability
from crossfusion.arrays.dispersion import dispersion_test
from crossfusion.arrays.distance import cfd, find_shape_caution
from crossfusion.arrays.frame_columns import take_columns
from crossfusion.arrays.group_and_rest import one_vs_rest
from crossfusion.arrays.pair_inference import infer_pairs, leave_out_small_groups
from crossfusion.arrays.permutation import permutation_test
from crossfusion.arrays.separability_result import Recognition, Separability
from crossfusion.arrays.wilks import log_wilks
