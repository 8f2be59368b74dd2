"""The layers that the pages name are those of the contract that import-linter checks."""

import re
import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from tests.test_report_page import CHROMIUM, FLAGS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def layers():
    """Layers from the top, each a tuple of modules."""
    written = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = written["tool"]["importlinter"]["contracts"]
    return [tuple(layer.split(" : ")) for layer in contract["layers"]]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def table_after(text, heading):
    """Cells of the first table after a heading, without its head."""
    lines = text.split(heading, 1)[1].splitlines()
    rows = [line for line in lines if line.startswith("|")]
    end = next((k for k, line in enumerate(lines) if k > lines.index(rows[0]) and not line.startswith("|")), len(lines))
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines[lines.index(rows[0]) + 2 : end]]


def test_the_page_names_the_layers_in_their_order(layers):
    rows = table_after((ROOT / "docs/architecture.md").read_text(), "## Layers")
    named = [tuple(layer.split(" : ")) for _, cell, _ in rows for layer in quoted(cell)]
    assert named == layers


def test_the_picture_shows_every_module_or_says_that_it_does_not(layers):
    drawn = re.findall(r'class="module">([^<]+)<', (ROOT / "docs/architecture.svg").read_text())
    page = (ROOT / "docs/architecture.md").read_text()
    left_out = quoted(page.split("Not drawn,", 1)[1].split(".", 1)[0])
    assert len(drawn) == len(set(drawn))
    assert sorted(drawn + left_out) == sorted(module for layer in layers for module in layer)


BEYOND = """() => {
    const within = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;
    const boxes = [...document.querySelectorAll("rect")].map(box => box.getBoundingClientRect());
    const inside = ({x, y, width, height}, {left, right, top, bottom}) =>
        left < x + width / 2 && x + width / 2 < right && top < y + height / 2 && y + height / 2 < bottom;
    const beyond = text => {
        const place = text.getBoundingClientRect();
        return boxes.some(box => inside(place, box) && !within(place, box));
    };
    return [...document.querySelectorAll("text")].filter(beyond).map(text => text.textContent);
}"""


def test_the_words_of_the_picture_stay_in_their_boxes():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.goto((ROOT / "docs/architecture.svg").as_uri())
        assert page.locator("text").count() > 20
        assert page.evaluate(BEYOND) == []
        browser.close()


def test_contributing_has_every_module_once_from_the_top(layers):
    place = {module: number for number, layer in enumerate(layers) for module in layer}
    rows = table_after((ROOT / "CONTRIBUTING.md").read_text(), "## Where things are")
    named = [[name.rstrip("/") for name in quoted(cell)] for cell, _ in rows]
    assert sorted(name for row in named for name in row) == sorted(place)
    highest = [min(place[name] for name in row) for row in named]
    assert highest == sorted(highest)


def test_what_is_on_the_way_exists(layers):
    rows = table_after((ROOT / "docs/architecture.md").read_text(), "## The way of the data")
    made_by = [name for _, _, cell in rows for name in quoted(cell)]
    for name in made_by:
        module, _, function = name.partition(".")
        source = ROOT / "src/crossfusion" / f"{module}.py"
        assert (source if source.exists() else source.with_suffix("")).exists(), name
        assert not function or f"def {function}(" in source.read_text(), name
