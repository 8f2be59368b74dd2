"""The benchmarks run and say what they measured; how fast it was is not for a test."""

import numpy as np

from crossfusion.benchmarks import intervals, permutations


def test_intervals_beside_distances(monkeypatch):
    monkeypatch.setattr(intervals, "SHAPES", ((2000, 8, np.float32), (1000, 4, np.float64)))
    monkeypatch.setattr(intervals, "ROWS", 4000)
    found = intervals.run(repeats=1)
    assert [row[1] for row in found["rows"]] == ["2,000", "1,000", "2,000", "4,000", "4,000"]
    assert all(float(row[4]) > 0 for row in found["rows"])
    assert all(len(row) == len(found["header"]) for row in found["rows"])


def test_permutations_beside_scikit_bio(monkeypatch):
    monkeypatch.setattr(permutations, "LARGE", 500)
    monkeypatch.setattr(permutations, "DIM", 4)
    monkeypatch.setattr(permutations, "PERMUTATIONS", 9)
    monkeypatch.setattr(permutations, "SIZES", (40, 30, 60))
    monkeypatch.setattr(permutations, "MINUTES", 60)
    found = permutations.run(repeats=1)
    assert [row[2] for row in found["rows"]] == ["500", "500", "40", "40", "30", "60"]
    assert all(float(row[6]) < 1e-8 for row in found["rows"][2:])
