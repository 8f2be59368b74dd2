"""The page, in a real browser."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

import crossfusion as cf
from crossfusion.page import Table, page, write_page
from crossfusion.page.markup import number

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
HOSTILE = (
    "<script>alert(1)</script>",
    "</style></title><img src=http://example.org/x onerror=alert(2)>",
    "\"double\" & 'single' &lt;",
    "מכון \u202eיום",
    "two\nlines",
    '" onmouseover="alert(4)" ' * 3,
    "long " * 400,
)
FACTOR = '"><svg onload=alert(3)>'


@dataclass
class Seen:
    """An open page and what happened on it."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser():
    if shutil.which(CHROMIUM) is None:
        pytest.fail(f"{CHROMIUM} is missing: pages are tested in a real browser, apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def show(browser):
    def opened(path: Path, width: int = 1440, scheme: Any = "light") -> Seen:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        seen = Seen(context.new_page())
        seen.page.on("console", lambda message: seen.console.append(message.text))
        seen.page.on("pageerror", lambda problem: seen.console.append(str(problem)))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("dialog", lambda dialog: dialog.dismiss())
        seen.page.on("dialog", lambda dialog: seen.dialogs.append(dialog.message))
        seen.page.goto(path.as_uri())
        return seen

    return opened


def rows_of(number_of_rows=2000):
    """Vectors that two codes move, and the codes."""
    rng = np.random.default_rng(5)
    site, label = rng.integers(0, len(HOSTILE), number_of_rows), rng.integers(0, 3, number_of_rows)
    x = rng.normal(size=(number_of_rows, 8))
    x[:, 0] += 0.3 * site
    x[:, 1] += label
    return x, site, label


@pytest.fixture(scope="module")
def plain_page(tmp_path_factory):
    x, site, label = rows_of()
    keys = {"site": np.array(list("ABCDEFG"))[site], "label": label, "scanner": (site + label) % 2}
    summary = cf.summarize(x, by=keys)
    path = tmp_path_factory.mktemp("page") / "plain.html"
    extra = Table("Extra", "A caption", ["name", "value"], [["first", "1"], ["second", "2"]])
    write_page(path, summary, between="site", given="label", levels=["site", "scanner"], tables=[extra])
    return path, summary


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    x, site, label = rows_of()
    keys = {FACTOR: np.array(HOSTILE)[site], HOSTILE[-1]: np.array(HOSTILE)[label], HOSTILE[0]: site % 2}
    path = tmp_path_factory.mktemp("page") / "hostile.html"
    extra = Table(HOSTILE[0], HOSTILE[1], [FACTOR, HOSTILE[2]], [list(HOSTILE[:2])])
    write_page(
        path,
        cf.summarize(x, by=keys),
        between=FACTOR,
        given=HOSTILE[-1],
        levels=[FACTOR, HOSTILE[0]],
        title=HOSTILE[1],
        tables=[extra],
    )
    return path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("which", ["plain", "hostile"])
def test_nothing_is_fetched_nothing_fails_and_nothing_overflows(which, width, show, plain_page, hostile_page):
    seen = show(plain_page[0] if which == "plain" else hostile_page, width)
    assert seen.console == []
    assert [url for url in seen.requests if not url.startswith(("file://", "data:"))] == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.evaluate("document.body.scrollWidth") <= width


def test_a_long_matrix_scrolls_by_itself(show, hostile_page):
    boxes = show(hostile_page, 390).page.locator(".scroll")
    for k in range(boxes.count()):
        assert boxes.nth(k).bounding_box()["width"] <= 390


def test_hostile_names_are_text(show, hostile_page):
    seen = show(hostile_page)
    assert seen.dialogs == []
    assert seen.page.evaluate("document.scripts.length + document.images.length") == 0
    assert seen.page.locator("svg svg, [onload], [onerror], [onmouseover]").count() == 0
    assert seen.page.locator("h1").inner_text() == HOSTILE[1]
    assert seen.page.title() == HOSTILE[1]
    heads = seen.page.locator(".heat").first.locator("tbody th bdi")
    said = [(heads.nth(k).text_content(), heads.nth(k).get_attribute("title")) for k in range(heads.count())]
    whole = {title or text for text, title in said}
    assert whole >= {HOSTILE[0], HOSTILE[1], HOSTILE[2], HOSTILE[5], HOSTILE[6]}
    assert any("two" in text and "lines" in text for text in whole)
    assert any("מכון" in text for text in whole)
    assert all(len(text) <= 40 for text, _ in said)


def test_the_matrices_show_the_pairwise_distances(show, plain_page):
    path, summary = plain_page
    tables = show(path).page.locator(".heat")
    for k, given in enumerate((None, "label")):
        expected = summary.pairwise("site", given=given)
        rows = tables.nth(k).locator("tbody tr")
        assert rows.locator("th").all_inner_texts() == list("ABCDEFG")
        assert tables.nth(k).locator("thead th").all_inner_texts() == list("ABCDEFG")
        for i in range(7):
            shown = [float(text.replace("−", "-")) for text in rows.nth(i).locator("td").all_inner_texts()]
            assert shown == pytest.approx(expected.unbiased[i], abs=5.01e-5)


def test_the_numbers_of_the_headline_the_levels_and_the_plane(show, plain_page):
    path, summary = plain_page
    seen = show(path).page
    asked = [summary.cfd("site"), summary.cfd("site", given="label"), summary.cfd("label", given="site")]
    assert seen.locator(".tiles b").all_inner_texts() == [number(fusion.unbiased) for fusion in asked]
    whole = summary.hierarchy(["site", "scanner"])
    text = seen.locator("section", has_text="Where the separation comes from").inner_text()
    for level in (*whole.levels, whole):
        assert number(level.distance) in text
    bar = seen.locator("svg.bar").first.locator("rect")
    widths = [float(bar.nth(k).get_attribute("width") or 0) for k in range(bar.count())]
    assert widths == pytest.approx([100 * (level.share or 0) for level in whole.levels], abs=0.1)
    assert sum(widths) == pytest.approx(100, abs=0.2)
    said = seen.locator("svg.plane desc").text_content()
    for batch in ("site", "scanner"):
        x, y = summary.cfd(batch, given="label"), summary.cfd("label", given=batch)
        assert f"{batch} at {number(x.unbiased)}, {number(y.unbiased)}" in said


def test_points_lie_where_the_axes_say(show, plain_page):
    path, summary = plain_page
    seen = show(path).page
    place = """() => { const ticks = [...document.querySelectorAll('.plane .tick')]
      .map(t => ({ v: +t.textContent.replace('−', '-'), a: t.getAttribute('text-anchor'), x: +t.getAttribute('x'),
                   y: +t.getAttribute('y') }));
      return { x: ticks.filter(t => t.a == 'middle'), y: ticks.filter(t => t.a == 'end') }; }"""
    ticks = seen.evaluate(place)
    to_x = np.polyfit([tick["x"] for tick in ticks["x"]], [tick["v"] for tick in ticks["x"]], 1)
    to_y = np.polyfit([tick["y"] - 4 for tick in ticks["y"]], [tick["v"] for tick in ticks["y"]], 1)
    spots = seen.locator(".plane .point")
    for k, batch in enumerate(("site", "scanner")):
        x, y = (float(spots.nth(k).get_attribute(name) or 0) for name in ("cx", "cy"))
        assert np.polyval(to_x, x) == pytest.approx(summary.cfd(batch, given="label").unbiased, abs=0.003)
        assert np.polyval(to_y, y) == pytest.approx(summary.cfd("label", given=batch).unbiased, abs=0.003)


CONTRAST = """() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const over = (top, under) => [0, 1, 2].map(k => top[k] * top[3] + under[k] * (1 - top[3]));
  const light = colour => colour.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = element => element === null ? [255, 255, 255]
    : over(parse(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), under = behind(element);
    const ink = over(parse(element.closest('svg') ? style.fill : style.color), under);
    const [low, high] = [light(ink), light(under)].sort((a, b) => a - b);
    found.push({ text: element.textContent.slice(0, 40), ratio: (high + 0.05) / (low + 0.05) });
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_text_is_readable(scheme, show, plain_page):
    seen = show(plain_page[0], scheme=scheme).page
    found = seen.evaluate(CONTRAST)
    assert len(found) > 100
    assert [entry for entry in found if entry["ratio"] < 4.5] == []
    paper = seen.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, paper.removeprefix("rgb(").removesuffix(")").split(","))) > 384) == (scheme == "light")


def test_pictures_and_tables_are_named(show, plain_page):
    seen = show(plain_page[0]).page
    for k in range(seen.locator("svg").count()):
        picture = seen.locator("svg").nth(k)
        assert picture.get_attribute("role") == "img"
        assert picture.locator("title, desc").count() == 2
    tables = seen.locator("table")
    assert tables.count() == seen.locator("table > caption").count() == 6
    assert seen.locator("th:not([scope])").count() == 0
    assert seen.locator("h1").count() == 1


def test_labels_in_the_plane_stay_inside_and_apart(show, plain_page, hostile_page):
    boxes = """() => [...document.querySelectorAll('.plane .spot')].map(t => t.getBBox())
      .map(b => [b.x, b.x + b.width, b.y, b.y + b.height])"""
    for path in (plain_page[0], hostile_page):
        seen = show(path, 390).page
        first, second = sorted(seen.evaluate(boxes), key=lambda box: box[2])
        for left, right, top, bottom in (first, second):
            assert 0 <= left < right <= 460
            assert 0 <= top < bottom <= 340
        aside = first[1] <= second[0] or second[1] <= first[0]
        assert aside or first[3] <= second[2] + 1


ODD = {
    "one row a cell": ([[0.0], [1.0], [2.0], [4.0]], list("aabb"), list("xyxy")),
    "no spread": ([[0.0], [0.0], [1.0], [1.0], [3.0]], list("aabbc"), list("xyxyx")),
    "nothing at all": ([[0.0]] * 4, list("aabb"), list("xyxy")),
    "confounded": ([[0.0], [1.0], [2.0], [4.0]], list("aabb"), list("xxyy")),
    "missing names": ([[0.0], [1.0], [2.0], [4.0]], [None, None, "b", "b"], list("xyxy")),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_groups_make_a_page_too(name, show, tmp_path):
    x, site, label = ODD[name]
    summary = cf.summarize(x, by={"site": site, "label": label})
    write_page(tmp_path / "odd.html", summary, between="site", given="label", levels=["site"])
    seen = show(tmp_path / "odd.html", 390)
    assert seen.console == []
    words = seen.page.inner_text("body").replace("(", " ").replace(")", " ").split()
    assert not {"nan", "NaN", "None", "inf"} & set(words)
    if name == "confounded":
        assert "fully confounded" in seen.page.inner_text(".lead")
        assert seen.page.locator(".heat").nth(1).locator("td.self").all_inner_texts() == ["0", "–", "–", "0"]


def test_of_many_groups_those_with_the_most_rows_are_shown(show, tmp_path):
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(40), np.arange(10, 50))
    summary = cf.summarize(rng.normal(size=(len(patient), 3)), by={"patient": patient, "label": patient % 2})
    write_page(tmp_path / "many.html", summary, between="patient", given="label", levels=["patient"])
    seen = show(tmp_path / "many.html").page
    assert seen.locator(".heat").first.locator("thead th").all_inner_texts() == [str(k) for k in range(28, 40)]
    assert "the 12 of 40 groups" in seen.inner_text("body")


def test_the_page_is_the_same_each_time_and_needs_a_factor_to_hold_fixed(plain_page):
    path, summary = plain_page
    asked: dict[str, Any] = {"between": "site", "levels": ["site", "scanner"]}
    assert page(summary, given="label", **asked) == page(summary, given="label", **asked)
    with pytest.raises(cf.InputError, match="given"):
        page(summary, given=[], **asked)
    with pytest.raises(cf.FileError, match="cannot be written"):
        write_page(path / "no" / "folder", summary, given="label", **asked)
