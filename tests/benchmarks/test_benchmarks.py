"""The benchmarks run and say what they measured; how fast it was is not for a test."""

import json

import numpy as np
from click.testing import CliRunner

from benchmarks import corners, intervals, lenses, machine, permutations, scale, startup
from benchmarks.commands import benchmarks
from benchmarks.scale import model


def test_intervals_beside_distances(monkeypatch):
    monkeypatch.setattr(intervals, "SHAPES", ((2000, 8, np.float32), (1000, 4, np.float64)))
    monkeypatch.setattr(intervals, "ROWS", 4000)
    found = intervals.run(repeats=1)
    assert [row[1] for row in found["rows"]] == ["2,000", "1,000", "2,000", "4,000", "4,000"]
    assert all(float(row[4]) > 0 for row in found["rows"])
    assert all(len(row) == len(found["header"]) for row in found["rows"])


def test_lenses_beside_products(monkeypatch):
    monkeypatch.setattr(lenses, "SHAPES", ((3000, 8), (1000, 12), (500, 16)))
    monkeypatch.setattr(lenses, "CELLS", (4000, 5, 8))
    found = lenses.run(repeats=1)
    assert [row[0] for row in found["rows"]] == [
        *["kernel, 1,024 features"] * 3,
        "codebook, 8 regions",
        "unit, beside no lens",
        "standardize, beside no lens",
        "whiten, 6 directions",
    ]
    assert all(float(row[4]) > 0 and len(row) == len(found["header"]) for row in found["rows"])


def test_permutations_beside_scikit_bio(monkeypatch):
    monkeypatch.setattr(permutations, "LARGE", 500)
    monkeypatch.setattr(permutations, "DIM", 4)
    monkeypatch.setattr(permutations, "PERMUTATIONS", 9)
    monkeypatch.setattr(permutations, "SIZES", (40, 30, 60))
    monkeypatch.setattr(permutations, "MINUTES", 60)
    found = permutations.run(repeats=1)
    assert [row[3] for row in found["rows"]] == [*["500"] * 4, *["40"] * 4, "30", "60", "60"]
    assert [row[1] for row in found["rows"][4:8]] == ["pseudo-f", "welch"] * 2
    assert all(float(row[7]) < 1e-8 for row in found["rows"][4:] if row[1] == "pseudo-f")


def test_storages_beside_plain_reads(tmp_path):
    found = scale.run(gigabytes=0.001, large=0.002, dim=8, repeats=1, only=("storages", "memory"), folder=tmp_path)
    assert [row[0].partition(":")[0] for row in found["rows"][:7]] == [
        *[".npy, mapped and warm"] * 2,
        "Parquet, vectors",
        *["Parquet, columns"] * 2,
        "HDF5, chunked",
        "Zarr, compressed",
    ]
    assert all(float(value) > 0 for _, value, _ in found["rows"])
    assert not any(tmp_path.iterdir())  # what was made is deleted


def test_the_model_counts_what_a_tree_moves():
    cost = model.Cost(rows=10**6, dim=10, groups=5, workers=2, threads=2)
    assert cost.read == 4 * 10**7
    assert cost.tasks == 32
    assert cost.moved == (32 + 4) * 16 * 5 * 10  # to four, and to one
    assert model.Cost(rows=10**6, dim=10, groups=5, part=10**7).tasks == 4
    assert all(len(line) == len(model.HEADER) for line in model.table(1e9))


def test_a_start_is_timed_beyond_numpy():
    found = startup.run(repeats=1)
    assert [row[0] for row in found["rows"]] == [
        "import crossfusion",
        "modules of crossfusion",
        "crossfusion --help",
        "crossfusion compare",
    ]
    assert found["seconds"].keys() == startup.AIMS.keys()
    assert found["numpy"] > 0
    assert found["modules"] >= 1
    assert found["seconds"]["crossfusion compare"] > 0


def test_corners_have_a_value_and_an_aim_each(monkeypatch):
    monkeypatch.setattr(corners, "DIM", 4)
    monkeypatch.setattr(corners, "PERMUTATIONS", 2)
    parts = {"_many_groups": 50, "_many_units": 100, "_units_of_one_row": 1000, "_cells_as_donors": 100}
    rows = [row for name, part in parts.items() for row in getattr(corners, name)(part, 1)]
    rows += corners._small_files(500, 1)
    assert len(rows) == 9
    assert all(len(row) == len(corners.HEADER) and float(row[2]) >= 0 and row[4].startswith("≤") for row in rows)


def test_the_machine_is_named_above_every_table(monkeypatch):
    monkeypatch.setattr(machine, "READ_BYTES", 2**20)
    machine.describe_machine.cache_clear()
    machine.measure_bandwidth.cache_clear()
    monkeypatch.setattr(startup, "run", lambda **_: {"title": "made up", "header": ["a"], "rows": [["b"]]})
    shown = CliRunner().invoke(benchmarks, ["startup"]).output.splitlines()
    assert "cores" in shown[0]
    assert "GB/s" in shown[0]
    assert shown[1] == "made up"
    assert json.loads(CliRunner().invoke(benchmarks, ["startup", "--json"]).output)["machine"] == shown[0]
