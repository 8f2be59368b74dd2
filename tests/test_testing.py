"""Assertions for pytest: what passes, what fails, and how the failure reads."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import crossfusion as cf
from crossfusion._base import interval_text, number_text
from crossfusion.testing import assert_apart, assert_fused
from tests.helpers import PATIENCE
from tests.helpers.policies import make_data


def test_groups_that_are_fused_and_groups_that_are_apart():
    x, by = make_data(shift=0.0)
    assert_fused(x, by["scanner"], given=by["tissue"], units=by["patient"], max=0.02, on="upper")
    assert_fused(x, by["scanner"], max=0.02)
    assert_apart(x, by["tissue"], units=by["patient"], min=0.5, on="lower")
    for values, claim, limit in (
        (by["tissue"], assert_fused, {"max": 0.02}),
        (by["scanner"], assert_apart, {"min": 0.1}),
    ):
        with pytest.raises(AssertionError):
            claim(x, values, **limit)


def test_a_summary_gives_the_same_message():
    x, by = make_data()
    said = []
    for source, labels, given in ((x, by["scanner"], by["tissue"]), (cf.summarize(x, by=by), "scanner", "tissue")):
        with pytest.raises(AssertionError) as failure:
            assert_fused(source, labels, given=given, max=0.001, each_pair=True)
        said.append(str(failure.value))
    assert said[0] == said[1]
    pairs = cf.summarize(x, by=by).pairwise("scanner", given="tissue").to_frame().sort_values("unbiased")
    group_a, group_b, unbiased = pairs.iloc[-1][["group_a", "group_b", "unbiased"]]
    assert said[0] == (
        f"\nGroups are not fused: CFD at most 0.001\n\nCompared: {group_a} and {group_b}, adjusted"
        f"\n CFD: {number_text(unbiased)}\n MAX: 0.001"
    )


def test_a_message_with_an_interval():
    x, by = make_data()
    fusion = cf.cfd(x, labels=by["scanner"], weights="balanced", level=0.9)
    with pytest.raises(AssertionError) as failure:
        assert_apart(x, by["scanner"], min=0.5, on="lower", level=0.9)
    assert str(failure.value) == (
        "\nGroups are not apart: lower limit of CFD (90%) at least 0.5\n\nCompared: 3 groups"
        f"\n CFD: {interval_text(fusion.unbiased, fusion.interval)}\n MIN: 0.5"
    )


def test_what_cannot_be_answered_never_passes():
    x, by = make_data()
    with (
        pytest.warns(cf.CrossfusionWarning, match="fully confounded"),
        pytest.raises(cf.InputError, match="cannot be answered: 3 groups: no stratum holds two"),
    ):
        assert_fused(x, by["scanner"], given=by["scanner"], max=9)
    with pytest.raises(cf.InputError, match="one group"):
        assert_apart(x, np.zeros(len(x)), min=0)
    with pytest.raises(cf.InputError, match="max=nan must be a finite number, 0 or more"):
        assert_fused(x, by["scanner"], max=float("nan"))
    with pytest.raises(cf.InputError, match="labels has 3 entries for 480 rows"):
        assert_fused(x, [1, 2, 3], max=9)
    with pytest.raises(cf.InputError, match="no factor 'scaner'"):
        assert_fused(cf.summarize(x, by=by), "scaner", max=9)


def test_a_data_frame_is_matched_by_index():
    x, by = make_data()
    frame = pd.DataFrame(x)
    labels = pd.Series(by["tissue"]).iloc[::-1]
    assert_apart(frame, labels, min=0.5)


def test_the_traceback_of_pytest_ends_at_the_line_of_the_user(tmp_path):
    test = (
        "import numpy as np\nfrom crossfusion.testing import assert_fused\n\n\ndef test_batches():\n"
        "    x = np.arange(40.0).reshape(20, 2) ** 1.5\n    assert_fused(x, np.arange(20) // 10, max=0.02)\n"
    )
    (tmp_path / "test_batches.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_batches.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert ">       assert_fused(x, np.arange(20) // 10, max=0.02)\n" in done.stdout
    assert "E       Groups are not fused: CFD at most 0.02\n" in done.stdout
    assert "test_batches.py:7: AssertionError" in done.stdout
    assert "_assert_rule" not in done.stdout


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_labels_are_names_of_columns_of_a_table(kind):
    draw, site = np.random.default_rng(0), np.arange(400) % 2
    by = {"site": site.astype(str), "patient": np.arange(400) // 4 * 2 + site}
    x = draw.normal(size=(400, 3)) + 0.5 * site[:, None]
    table = pytest.importorskip(kind).DataFrame({**by, **{f"dim_{k}": x[:, k] for k in range(3)}})
    messages = []
    for call in ((x, by["site"], by["patient"]), (table, "site", "patient")):
        with pytest.raises(AssertionError) as failed:
            assert_fused(call[0], call[1], units=call[2], max=0.01, on="upper")
        messages.append(str(failed.value))
    assert messages[0] == messages[1]
    with pytest.raises(cf.InputError, match="did you mean 'site'"):
        assert_apart(table, "sit", min=0.1)
