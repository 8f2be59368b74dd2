"""Permutation tests: exchangeable items, permutations of their labels, sums of squares under each, and the result."""
