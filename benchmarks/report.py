"""How large the page of a large study is, and how long a browser takes to open it."""

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion import FileError, Report
from paper.checks import check_whole, load_library

HEADER = ["rows", "groups", "units", "of", "value", "aim"]
DIM = 64
UNITS = 6  # of each group
MOST, LONGEST, SLOWEST = 5.0, 2.0, 10.0  # megabytes of a page, and seconds until it is open and to compute it
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


def run(*, rows: int = 1_000_000, groups: int = 100, repeats: int = 3) -> dict[str, Any]:
    """Measure everything and return it as a table.

    Parameters
    ----------
    rows, groups : int
        Size of the study.
    repeats : int
        How often the page is opened; the best time counts.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    for name, value in {"rows": rows, "groups": groups, "repeats": repeats}.items():
        check_whole(value, name)
    x, by = _study(rows, groups)
    start = time.perf_counter()
    report = Report(x, by=by, between="site", given="label", units="patient")
    made = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        report.write(path)
        size, opened = path.stat().st_size / 1e6, min(_time_opening(path, repeats))
    common = [f"{rows:,}", f"{groups:,}", f"{groups * UNITS:,}"]
    return {
        "title": f"A report on rows of {DIM} features, opened {repeats} times",
        "header": HEADER,
        "rows": [
            [*common, "size of the page, MB", f"{size:.2f}", f"≤ {MOST:g}"],
            [*common, "seconds until it is open", f"{opened:.2f}", f"≤ {LONGEST:g}"],
            [*common, "seconds to compute it", f"{made:.0f}", f"≤ {SLOWEST:g}"],
        ],
    }


def _study(rows: int, groups: int) -> tuple[Any, dict[str, Any]]:
    """Rows that groups and units move, and their factors."""
    draw = np.random.default_rng(0)
    site = draw.integers(0, groups, rows)
    patient = site * UNITS + draw.integers(0, UNITS, rows)
    x = draw.standard_normal((rows, DIM), np.float32)
    x += 0.5 * draw.standard_normal((groups, DIM), np.float32)[site]
    x += 0.2 * draw.standard_normal((groups * UNITS, DIM), np.float32)[patient]
    return x, {"site": site, "label": draw.integers(0, 5, rows), "patient": patient}


def _time_opening(path: Path, repeats: int) -> list[float]:
    """Seconds from asking for a page until it has loaded and drawn everything."""
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        raise FileError(None, "there is no Chromium to open a page in", "install the package chromium")
    play = load_library("playwright.sync_api", "playwright", "test", "opening a page").sync_playwright
    found = []
    with play() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(repeats):
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            start = time.perf_counter()
            page.goto(path.as_uri())
            page.wait_for_selector("#download-body button")
            found.append(time.perf_counter() - start)
            page.close()
        browser.close()
    return found
