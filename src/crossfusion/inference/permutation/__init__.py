"""permutation."""
