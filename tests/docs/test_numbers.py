"""Numbers that pages state in words are those of the code, or of the outputs that stand beside them."""

import json
import re

import pytest

from benchmarks.coverage import promises
from benchmarks.scale.model import Cost
from crossfusion.io.engines import dask, local, resume, spark
from crossfusion.io.sources import chunk, parquet_wide
from crossfusion.moments import columnwise
from crossfusion.summary.drift.detection import MAX_PAST_PERIODS, MIN_PERIODS
from paper.synthetic import settings, tasks
from paper.training import loop
from paper.training.settings import Settings as Training
from tests.helpers import ROOT

DOCS = ROOT / "docs"
WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
SYNTHETIC, TRAINING, MODEL = settings.Settings(), Training(), Cost(10**9, 1024, 10)


RUN_ROWS = re.search(r"#define RUN (\d+)", (ROOT / "src/crossfusion/moments/_kernel.c").read_text())[1]


def listed(values):
    return ", ".join(f"{value:g}" for value in values)


def megabytes(size):
    return f"{size // 2**20} MB"


STATED = {
    "coverage.md": [
        f"{promises.FULL:,}\ntimes each ({promises.FULL // 4} for the curves of power)",
        f"cover in {100 * promises.LEAST['rows']:g} % or more; in {100 * promises.LEAST['rows']:g} to"
        f" {100 * promises.MOST:g} % where the distance is more than {promises.CLEAR:g} standard errors",
        f"cover in {100 * promises.LEAST['units']:g} % or more |",
        f"reject in {100 * promises.SIZE:g} %, as far as chance lets {promises.FULL:,} draws tell"
        f" ({100 * promises.SURE:g} %)",
    ],
    "drift.md": [
        f"{WORDS[MIN_PERIODS].capitalize()} reference periods at least",
        f"the up to {MAX_PAST_PERIODS} periods before a window",
    ],
    "reproduction.md": [
        f"| δ = {listed(SYNTHETIC.deltas)} |",
        f"the same with δ = {SYNTHETIC.dispersion_delta:g}",
        f"| α = {listed(SYNTHETIC.scales)} |",
        f"| K = {listed(SYNTHETIC.modes)} |",
        f"N(0, {SYNTHETIC.tau:g}² I) | {listed(SYNTHETIC.outlier_percents)} %",
        "n_B / n_A = 1, " + ", ".join(f"1/{1 / ratio:g}" for ratio in SYNTHETIC.ratios[1:]),
        f"c = {listed(SYNTHETIC.contrasts)}",
        f"{SYNTHETIC.trials} trials, in {SYNTHETIC.dims[0]} and {SYNTHETIC.dims[1]} dimensions, with"
        f" {SYNTHETIC.sizes[0]} and {SYNTHETIC.sizes[1]:,} rows a group; trial t has the seed"
        f" {settings.FIRST_SEED} + t",
        f"exact at {SYNTHETIC.exact_up_to} rows, and Sinkhorn's with ε = {SYNTHETIC.epsilon:g}",
        f"`--spread {SYNTHETIC.spread:g}`",
        f"| {SYNTHETIC.sigma:g} where it does not vary | `sigma` |",
        f"| {listed(SYNTHETIC.sigmas)} | `--sigmas` |",
        f"`--delta {SYNTHETIC.base_delta:g}`",
        f"at distance {SYNTHETIC.radius:g}; K = 1 at the origin | `--radius {SYNTHETIC.radius:g}`",
        f"| {100 * SYNTHETIC.trim:g} % of each group | `--trim {SYNTHETIC.trim:g}`",
        f"pieces of {WORDS[tasks.BLOCK]} trials",
    ],
    "training_study.md": [
        f"a probability of {TRAINING.confidence:g}",
        f"over {WORDS[TRAINING.seeds]} seeds",
        f"learns at {WORDS[loop.QUICKER]} times the network's rate",
        f"costs at most {WORDS[round(100 * TRAINING.tolerance)]} point of\n  accuracy",
    ],
    "scale.md": [
        f"T · ({megabytes(chunk.CHUNK_BYTES)} + a summary)",
        f"| {WORDS[dask.FAN_IN]} are merged at a time",
        f"until there are {WORDS[dask.TASKS_PER_THREAD]} tasks a thread",
        f"{MODEL.workers} workers of {MODEL.threads} threads",
        f"is taken as {MODEL.link / 1e9:g} GB/s",
        f"wait for an earlier one, at most {WORDS[local.MAX_AHEAD]} for each thread",
        f"10,000 groups of 1,024 features are {16 * 10_000 * 1024 / 1e6:.0f} MB",
        f"when Ctrl-C stops it after {WORDS[int(resume.MIN_WORK_SECONDS)]} seconds",
        f"row groups of fewer than {parquet_wide.MIN_COLUMNWISE_ROWS:,} rows, or of more than fill"
        f" {megabytes(chunk.CHUNK_BYTES // columnwise.FEATURES_AT_ONCE)} of a column",
        f"decoded {WORDS[parquet_wide.COLUMNS_PER_CALL]} at a time and reduced sixteen at a time",
    ],
    "sources.md": [f"{WORDS[parquet_wide.COLUMNS_PER_CALL]} columns at a time"],
    "speed.md": [f"At 200,000 rows the matrix would take {8 * 200_000**2 / 1e9:.0f} GB"],
    "how_it_works.md": [
        f"in runs of at most {RUN_ROWS} rows",
        f"chunks* of about {megabytes(chunk.CHUNK_BYTES)}",
    ],
}


@pytest.mark.parametrize(("page", "text"), [(page, text) for page, texts in STATED.items() for text in texts])
def test_the_page_says_what_the_code_does(page, text):
    assert " ".join(text.split()) in " ".join((DOCS / page).read_text().split())


def test_engines_agree_on_what_the_page_says_of_both():
    assert (dask.FAN_IN, dask.TASKS_PER_THREAD) == (spark.FAN_IN, spark.TASKS_PER_CORE)
    assert resume.SAVE_SECONDS == 20
    assert "every twenty seconds" in (DOCS / "scale.md").read_text()
    assert columnwise.FEATURES_AT_ONCE == 16  # "reduced sixteen at a time"


def test_every_promise_of_coverage_was_kept():
    found = json.loads((DOCS / "coverage/coverage.json").read_text())
    assert found["all_hold"]
    assert found["draws"] == promises.FULL
    assert {point["draws"] for design in found["designs"] for point in design["points"]} == {2000, 500}


def test_alarms_hold_where_the_page_says_and_not_where_it_does_not():
    """Rows of the first table: reference periods, correlation, and whether both rates are kept."""
    table = (DOCS / "bench_drift.txt").read_text().split("\n\n")[0].splitlines()
    rows = [re.split(r" {2,}", line.strip()) for line in table if re.match(r" *\d+ {2,}", line)]
    kept = [(int(row[0]), float(row[4]), row[-1] == "yes") for row in rows]
    assert len(kept) == 30  # "with thirty rows"
    assert all(held for reference, rho, held in kept if (reference, rho) != (16, 0.9))
    assert not any(held for reference, rho, held in kept if (reference, rho) == (16, 0.9))
    assert all(float(row[6]) > 0.01 for row in rows if int(row[0]) == 16 and float(row[4]) == 0.8)


def test_partitions_move_about_ten_times_what_files_do():
    model = (DOCS / "bench_scale.txt").read_text().split("The model:")[1]
    moved = [float(row.replace(",", "")) for row in re.findall(r"MB +([\d.,]+) GB", model)]
    files, partitions = moved[:3], moved[3:]
    assert all(8 < many / few < 12 for few, many in zip(files, partitions, strict=True))
