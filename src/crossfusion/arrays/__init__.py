"""The same questions asked of arrays directly."""

from crossfusion.arrays import distance
from crossfusion.arrays.dispersion import dispersion_test
from crossfusion.arrays.distance import cfd
from crossfusion.arrays.permutation import permutation_test
from crossfusion.arrays.row_pairs import number_of_pairs, pairs_of_rows

__all__ = [
    "cfd",
    "dispersion_test",
    "distance",
    "number_of_pairs",
    "pairs_of_rows",
    "permutation_test",
]
