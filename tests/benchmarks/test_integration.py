"""Beside scib-metrics: what is the same number, and how time is compared."""

from pathlib import Path

import numpy as np
import pytest

import crossfusion as cf
from benchmarks import integration
from benchmarks.integration import cells, mixing, peers, times, values
from tests.helpers import ROOT, waiting
from tests.helpers.module_commands import fail_module

SCIB = pytest.mark.filterwarnings("ignore")  # of its dependencies about each other
MADE = cells.simulate_cells(400)


@SCIB
def test_pcr_over_all_components_is_the_share_between_batches():
    for x in (MADE.x, np.exp(MADE.x), MADE.x * np.linspace(1, 20, cells.DIM)):
        share = 1 - cf.cfd(x, labels=MADE.batch).score
        assert peers.pcr(np.asarray(x, np.float32), MADE.batch) == pytest.approx(share, rel=2e-4)


@SCIB
@pytest.mark.parametrize("method", ["center", "combat", "worse"])
def test_pcr_comparison_is_the_share_of_it_that_is_gone(method):
    after = 0.1 * MADE.x if method == "worse" else cf.correct(MADE.x, MADE.batch, method)
    if method == "worse":
        after[MADE.batch == "b1"] += 1
    before, left = (1 - cf.cfd(x, labels=MADE.batch).score for x in (MADE.x, after))
    expected = max(0.0, 1 - left / before)
    found = peers.pcr_comparison(MADE.x, np.asarray(after, np.float32), MADE.batch, MADE.label)
    assert found == pytest.approx(expected, abs=1e-5)
    assert (expected == 0) == (method == "worse")


@SCIB
def test_the_table_of_values_has_both_sides():
    adata = cells.add_corrections(cells.simulate_cells(700))
    board = values.leaderboard(adata)
    header, rows = values.rows(adata, board, {"PCR comparison": peers.pcr_comparison})
    assert header[-2:] == ["comparison by CFS", "PCR comparison"]
    assert {row[0] for row in rows} >= {"X_pca", "X_center", "X_combat"}
    assert rows[-1][0] == "X_pca"  # the only one that is not corrected
    for row in rows:
        ours, theirs, own, peers_own = (
            0.0 if text[0] in "<>" else float(text) for text in row[3:7]
        )  # bounds of 0.0001
        assert ours == pytest.approx(theirs, abs=1e-4)
        assert own == pytest.approx(peers_own, abs=1e-4)


def test_mixing_is_ranked_against_the_scores_of_neighbors():
    found = {"worst": [0.3, 0.9, 0.8, 0.1, 0.0], "half": [0.0, 0.4, 0.4, 0.5, 0.6], "best": [0.0, 0.1, 0.1, 0.9, 0.4]}
    assert mixing.correlate(found) == pytest.approx((-1.0, -0.5))
    rows, note = mixing.table(found)
    assert [row[0] for row in rows] == ["best", "half", "worst"]
    assert len(rows[0]) == len(mixing.HEADER)
    assert "with iLISI -1.00, with kBET -0.50" in note


def test_what_takes_too_long_is_ended_and_said(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    sizes = (1000, waiting.SLOW, 4000)
    told: list[str] = []
    rows = times.measure_times(sizes, 5.0, told.append, {"quick": waiting.at_once, "slow": waiting.too_long})
    quick, slow, ours = rows
    assert all(len(row) == len(times.header(sizes)) for row in rows)
    assert all(float(cell.replace(",", "")) >= 0 for cell in quick[1:])
    assert float(slow[1]) >= 0
    assert slow[2].startswith("> ")
    assert slow[3:] == ["–", "–"]
    assert ours[1:4] == ["1", "1", "1"]
    assert told[-1] == "slow, 3,000 cells"
    with pytest.raises(cf.CrossfusionError, match="ended by itself"):
        times.measure_times((waiting.SLOW,), 5.0, told.append, {"ends": waiting.ends})


def test_made_up_cells_are_the_same_in_every_process():
    again = cells.simulate_cells(400)
    np.testing.assert_array_equal(again.x, MADE.x)
    assert len({*MADE.batch.tolist()}) == cells.BATCHES
    assert len({*MADE.label.tolist()}) > 5
    assert cells.read_cells(None) is None
    assert cells.read_cells(Path("nowhere")) is None


def test_what_cannot_be_measured_is_refused(refuses):
    with refuses("this benchmark has no part 'time': did you mean 'times'"):
        integration.run(only=("time",))
    with refuses("cap=0"):
        integration.run(cap=0)
    assert "board.txt must end in .png" in fail_module("benchmarks", "integration", "--plot", "board.txt")
