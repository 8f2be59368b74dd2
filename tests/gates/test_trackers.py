"""Experiment trackers take `to_metrics` as it is; `python -m tools.check_trackers` does the same with MLflow."""

import math

import numpy as np
import pytest

import crossfusion as cf
from tests.helpers.policies import make_data

wandb = pytest.importorskip("wandb")

RESULTS = {
    "cfd": lambda summary: summary.cfd("scanner", units="patient", level=0.95),
    "pairwise": lambda summary: summary.pairwise("scanner", given="tissue"),
    "drift": lambda summary: summary.drift("week", reference="first:6"),
    "check": lambda summary: cf.check({"rule": [{"between": "scanner", "max": 0.02}]}, summary),
}


@pytest.mark.filterwarnings("ignore")  # of the tracker
@pytest.mark.parametrize("name", RESULTS)
def test_an_offline_run_keeps_the_numbers(name, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    x, by = make_data()
    metrics = RESULTS[name](cf.summarize(x, by=by)).to_metrics("val/")
    with wandb.init(project="crossfusion", dir=tmp_path) as run:
        run.log(metrics)
        kept = {key: value for key, value in dict(run.summary).items() if not key.startswith("_")}
    assert kept == metrics
    assert len(list(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))) == 1


def test_names_are_flat_and_values_are_finite():
    labels = np.array(["a/1", "a.1", "a:1", "é"])[np.arange(80) % 4]
    x = np.random.default_rng(0).normal(size=(80, 3))
    fusion = cf.cfd(x, labels=labels, level=0.95)
    found = fusion.to_metrics("val/")
    assert found["val/unbiased"] == fusion.unbiased
    assert (found["val/interval.0"], found["val/interval.1"]) == fusion.interval
    counts = [found[f"val/counts.{name}"] for name in ("a_1", "a_1_2", "a_1_3", "é")]
    assert counts == [20.0] * 4
    far = cf.cfd(np.zeros((2, 1)), np.ones((2, 1))).to_metrics()
    assert "distance" not in far
    assert far["score"] == 0
    assert all(type(value) is float and math.isfinite(value) for value in (found | far).values())
