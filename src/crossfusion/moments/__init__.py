"""Count, mean and centered sum of squares of each group: the monoid, and the kernel that computes it."""

from crossfusion.moments import kernel
from crossfusion.moments.columnwise import FEATURES_AT_ONCE, ColumnwiseRows
from crossfusion.moments.influence import PRODUCTS, READ_BYTES, sum_influences
from crossfusion.moments.kernel import squared_distances
from crossfusion.moments.moments import Moments, concat, reduce_groups, squared_distance_to_mean
from crossfusion.moments.transpose import transpose, transpose_lazily
