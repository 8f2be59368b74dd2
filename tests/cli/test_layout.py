"""Tables fit a terminal: headers wrap, names are cut, columns continue below, and numbers stay whole."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import crossfusion as cf
from crossfusion.cli.layout import measure_block, plan_columns, wrap_words
from tests.helpers.command_line import on_terminal, run

LONG = ["University Hospital Aarhus", "Bonn", "Cork Regional Medical Center"]
COMMANDS = {
    "matrix": "matrix s.parquet --between site --given label",
    "matrix of pairs": "matrix s.parquet --between site --given label --units patient --level 0.95 --permutations 99",
    "test": "test x.npz --between site --given label",
    "compare": "compare a.npy b.npy --level 0.95 --permutations 99",
    "hierarchy": "hierarchy s.parquet --factors label,site,patient",
    "attribution": "attribution s.parquet --between site --over patient",
    "projection": "projection s.parquet --between site",
    "drift": "drift x.npz --time week --reference first:4 --given label --level 0.95 --units patient",
    "corrections": "corrections none=x.npz shifted=y.npz --between site --given label --units patient",
    "rdr": "rdr x.npz --between site --repeats 3",
}
NUMBER = re.compile(r"[<>]? ?-?\d[-\d., e+%()<>to±]*")  # alone, with an interval or a spread


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of three sites with long names."""
    folder = tmp_path_factory.mktemp("layout")
    draw = np.random.default_rng(0)
    site = np.repeat(LONG, 120)
    by = {
        "site": site,
        "label": np.tile(["tumor", "stroma", "fat"], 120),
        "patient": np.array([f"{name[:2]}-{k % 9}" for k, name in enumerate(site)]),
        "week": np.tile(np.arange(8), 45),
    }
    x = draw.normal(size=(360, 6)) + 0.2 * (site == "Bonn")[:, None]
    np.savez(folder / "x.npz", x=x, **by)
    np.savez(folder / "y.npz", x=x - 0.2 * (site == "Bonn")[:, None], **by)
    np.save(folder / "a.npy", x[:120])
    np.save(folder / "b.npy", x[120:])
    cf.summarize(x, by={name: by[name] for name in ("site", "label", "patient")}).write(folder / "s.parquet")
    return folder


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_shows_all_numbers_of_the_pipe_on_lines_that_fit(name, width, folder):
    words = re.sub(r"(\w+\.(npz|npy|parquet))", rf"{folder}/\1", COMMANDS[name]).split()
    piped = run(*words).stdout
    shown = on_terminal(*words, columns=width)
    shown = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown).replace("\r\n", "\n").rpartition("\r")[2]
    lines = shown.splitlines()
    table = [line for line in lines if line.startswith(" ")]
    assert table
    assert max(map(len, table)) <= width
    cells = [cell for line in piped.splitlines() for cell in re.split(r" {2,}", line) if NUMBER.fullmatch(cell)]
    assert cells
    found = [cell for line in table for cell in re.split(r" {2,}", line.strip())]
    assert not set(cells) - set(found) - {cell for line in lines for cell in line.split()} - {"0"}  # of a diagonal


CELL = st.text("0123456789.", min_size=1, max_size=24)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 8), st.integers(40, 140))
def test_numbers_keep_their_width_and_every_column_is_shown_once(data, numbers, room):
    names = st.sampled_from(["CFD", "95% interval", "adjusted p (holm)"])
    header = ["group", *(data.draw(names) for _ in range(numbers))]
    rows = [["name" * 9, *(data.draw(CELL) for _ in range(numbers))] for _ in range(3)]
    plan = plan_columns(header, rows, (0,), room)
    assert sorted(k for block in plan.blocks for k in block if k) == list(range(1, numbers + 1))
    assert all(block[0] == 0 for block in plan.blocks)
    assert all(plan.widths[k] >= len(row[k]) for row in rows for k in range(1, numbers + 1))
    assert all(measure_block(plan.widths, block) <= room for block in plan.blocks)


def test_headers_wrap_at_spaces_only():
    assert wrap_words("adjusted p (holm)", 8) == ["adjusted", "p (holm)"]
    assert wrap_words("interval", 4) == ["interval"]
