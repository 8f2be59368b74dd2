"""The page of a report, in a real browser."""

import csv
import io
import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crossfusion as cf
from crossfusion._base import pvalue_text
from crossfusion.report.html.markup import format_number
from tests.helpers.browser import HOSTILE, Seen

WIDTHS = (1440, 390)
SCHEMES = ("light", "dark")
FACTOR = '"><svg onload=alert(3)>'


@pytest.fixture(scope="module")
def show(browser):
    contexts = []

    def opened(path: Path, width: int = 1440, scheme: Any = "light") -> Seen:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        seen = Seen(context.new_page())
        seen.page.goto(path.as_uri())
        return seen

    yield opened
    for context in contexts:
        context.close()


def rows_of(rows=1400, groups=7):
    """Vectors that two codes and units move, and the codes."""
    rng = np.random.default_rng(5)
    site, label = rng.integers(0, groups, rows), rng.integers(0, 3, rows)
    unit = site * 6 + rng.integers(0, 6, rows)
    x = rng.normal(size=(rows, 8)) + 0.2 * rng.normal(size=(groups * 6, 8))[unit]
    x[:, 0] += 0.3 * site
    x[:, 1] += label
    return x, site, label, unit


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports by name: from rows, from hostile names, from a summary alone, of versions, of many groups."""
    folder = tmp_path_factory.mktemp("pages")
    x, site, label, unit = rows_of()
    by = {"site": np.array(list("ABCDEFG"))[site], "label": label, "scanner": (site + label) % 2, "patient": unit}
    asked: dict[str, Any] = {"between": "site", "given": "label", "units": "patient"}
    names = np.array([*HOSTILE, "x"], object)[:-1]
    bad = {FACTOR: names[site], HOSTILE[1]: names[label], HOSTILE[0]: np.array([f"{HOSTILE[0]}{k}" for k in unit])}
    twice = {name: np.tile(values, 2) for name, values in by.items()} | {"kind": np.repeat(["raw", "half"], len(x))}
    versions = np.concatenate([x, x - 0.15 * site[:, None]])
    z, group, _, owner = rows_of(2400, 45)
    order = np.arange(len(x)) // 70
    weeks, late = np.array([f"week {k + 1}" for k in order]), x + 4.0 * (order >= 17)[:, None]
    many = {"site": np.array([f"site {k:02d}" for k in group]), "patient": owner}
    found = {
        "plain": cf.Report(x, by=by, factors=["site", "scanner", "patient"], expect="fused", **asked),
        "hostile": cf.Report(x, by=bad, between=FACTOR, given=HOSTILE[1], units=HOSTILE[0], title=HOSTILE[1]),
        "summary": cf.Report(cf.summarize(x, by=by), **asked),
        "versions": cf.Report(versions, by=twice, method="kind", reference="raw", **asked),
        "many": cf.Report(z, by=many, between="site", units="patient"),
        "time": cf.Report(late, by=by | {"week": weeks}, time="week", **asked),
        "rows": cf.Report(x[:, :2], by={"site": by["site"]}, between="site", permutations=99),
    }
    for name, report in found.items():
        report.write(folder / f"{name}.html")
    return {name: (folder / f"{name}.html", report.to_dict()) for name, report in found.items()}


PAGES = ("plain", "hostile", "summary", "versions", "many", "time", "rows")

# Where boxes of words lie on each other, or words run out of theirs, or anything is wider than the page.
LAYOUT = """() => {
  const wide = document.documentElement.clientWidth, problems = [];
  const scrolls = element => element && (element.closest('.scroll, nav ul') !== null);
  const boxes = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !element.checkVisibility() || !box.width || scrolls(element)) continue;
    if (element.closest('math, option, .tip')) continue;
    if (getComputedStyle(element).fontSize === '0px') continue;
    if (box.right > wide + 1 || box.left < -1) problems.push(`outside: ${element.textContent.slice(0, 30)}`);
    for (const line of textBoxes(element)) boxes.push([line, element]);
  }
  function textBoxes(element) {
    const range = document.createRange(), found = [];
    for (const node of element.childNodes) if (node.nodeType === 3 && node.textContent.trim()) {
      range.selectNodeContents(node);
      found.push(...range.getClientRects());
    }
    return found;
  }
  boxes.sort((a, b) => a[0].top - b[0].top);
  boxes.forEach(([a, first], k) => {
    for (let n = k + 1; n < boxes.length && boxes[n][0].top < a.bottom - 4; n += 1) {
      const [b, second] = boxes[n];
      const over = Math.min(a.right, b.right) - Math.max(a.left, b.left), deep = Math.min(a.bottom, b.bottom) - b.top;
      if (over > 3 && deep > 5 && first !== second && !first.contains(second) && !second.contains(first)) {
        problems.push(`over: ${first.textContent.slice(0, 30)} / ${second.textContent.slice(0, 30)}`);
      }
    }
  });
  return problems;
}"""


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_fetched_nothing_fails_nothing_overlaps_or_overflows(name, width, show, pages):
    seen = show(pages[name][0], width)
    assert seen.console == []
    assert seen.dialogs == []
    assert [url for url in seen.requests if not url.startswith(("file://", "data:"))] == []
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.page.evaluate("document.body.scrollWidth") <= width
    assert seen.page.evaluate(LAYOUT) == []
    inside = seen.page.evaluate("JSON.parse(document.getElementById('data').textContent)")
    assert inside == json.loads(json.dumps(pages[name][1]))


def test_no_script_but_the_own_may_run(pages):
    text = pages["plain"][0].read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    assert "default-src 'none'" in policy[1]
    assert "unsafe-inline" not in policy[1].partition("script-src")[2]
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


def test_hostile_names_are_text_and_whole_somewhere(show, pages):
    seen = show(pages["hostile"][0])
    assert seen.page.evaluate("document.images.length") == 0
    assert seen.page.locator("[onload], [onerror], [onmouseover]").count() == 0
    assert seen.page.evaluate("document.scripts.length") == 2
    assert seen.page.locator("h1").inner_text() == HOSTILE[1]
    heads = seen.page.locator(".heat tbody th bdi")
    assert all(len(text) <= 40 for text in heads.all_inner_texts())
    whole = seen.page.locator("details.list tbody th").all_text_contents()
    for name in (HOSTILE[0], HOSTILE[1], HOSTILE[5], HOSTILE[6]):
        assert any(name in text for text in whole)
    assert any("מכון" in text for text in whole)
    assert seen.page.evaluate(
        "[...document.querySelectorAll('.heat th')].every(th => th.firstElementChild.tagName === 'BDI')"
    )


def matrix_of(seen):
    heads = seen.locator(".heat thead th").all_inner_texts()
    rows = seen.locator(".heat tbody tr")
    cells = [rows.nth(k).locator("td").all_inner_texts() for k in range(rows.count())]
    return heads, rows.locator("th").all_inner_texts(), cells


def distance_of(found, view, a, b):
    names = found["groups"]["names"]
    i, j = sorted((names.index(a), names.index(b)))
    place = i * len(names) - i * (i + 1) // 2 + j - i - 1
    return {name: values[place] for name, values in found["pairs"][view].items() if isinstance(values, list)}


def test_the_matrix_shows_the_pairs_sorts_and_switches(show, pages):
    path, found = pages["plain"]
    seen = show(path).page
    orders = {
        "name": sorted(found["groups"]["names"]),
        "size": [
            name
            for _, name in sorted(
                zip(found["groups"]["rows"], found["groups"]["names"], strict=True), key=lambda pair: -pair[0]
            )
        ],
        "distance": [
            name
            for _, name in sorted(
                zip(found["groups"]["distance"], found["groups"]["names"], strict=True), key=lambda pair: -pair[0]
            )
        ],
        "cluster": [found["groups"]["names"][k] for k in found["groups"]["cluster"]],
    }
    for view in ("adjusted", "plain"):
        seen.get_by_label("Compare").first.select_option(view)
        for order, names in orders.items():
            seen.get_by_label("Order").select_option(order)
            heads, sides, cells = matrix_of(seen)
            assert heads == sides == names
            for i, a in enumerate(names):
                for j, b in enumerate(names):
                    expected = 0 if a == b else distance_of(found, view, a, b)["unbiased"]
                    assert float(cells[i][j].replace("−", "-")) == pytest.approx(expected, abs=5.01e-5)
    assert seen.get_by_label("Compare").nth(1).input_value() == "plain"


def test_pointing_and_keys_show_the_numbers_of_the_json(show, pages):
    path, found = pages["plain"]
    seen = show(path).page
    seen.get_by_label("Order").select_option("name")
    cell = seen.locator(".heat tbody tr").nth(1).locator("td").nth(4)
    cell.hover()
    expected = distance_of(found, "adjusted", "B", "E")
    tip = seen.locator(".tip").inner_text()
    for value in (expected["unbiased"], expected["lower"], expected["upper"]):
        assert format_number(value) in tip
    assert f"p {pvalue_text(expected['pvalue'])}, adjusted {pvalue_text(expected['adjusted'])}" in tip
    seen.mouse.move(5, 5)
    assert seen.locator(".tip").is_hidden()
    seen.locator(".heat td[tabindex='0']").focus()
    seen.keyboard.press("ArrowDown")
    seen.keyboard.press("End")
    label = seen.evaluate("document.activeElement.getAttribute('aria-label')")
    expected = distance_of(found, "adjusted", "B", "G")
    assert format_number(expected["unbiased"]) in label
    assert f"{format_number(expected['lower'])} to {format_number(expected['upper'])}" in label
    assert seen.locator(".tip").is_visible()
    seen.keyboard.press("Enter")
    assert seen.locator("#pair-body h3").inner_text() == "B and G"
    assert seen.evaluate("document.activeElement.textContent") == "B and G"
    for value in (expected["distance"], expected["unbiased"], expected["lower"], expected["upper"]):
        assert format_number(value) in seen.locator("#pair-body").inner_text()
    assert seen.locator("#pair-body h3").bounding_box()["y"] < 900
    seen.keyboard.press("Escape")
    assert seen.locator("#pair").is_hidden()
    assert seen.evaluate("document.activeElement.tagName") == "TD"


def test_the_list_of_pairs_is_in_order_and_lines_lie_where_the_axis_says(show, pages):
    path, found = pages["plain"]
    seen = show(path).page
    rows = seen.locator("#forest button.row")
    assert rows.count() == 20
    seen.get_by_role("button", name="Show all 21 pairs").click()
    assert rows.count() == 21
    values = [float(text.replace("−", "-")) for text in rows.locator(".value b").all_inner_texts()]
    assert values == sorted(values, reverse=True)
    ticks = seen.evaluate("""() => [...document.querySelectorAll('#forest .axis .track span')]
      .map(tick => [parseFloat(tick.style.left), Number(tick.textContent.replace('−', '-'))])""")
    places, numbers = np.array(ticks).T
    slope, start = np.polyfit(places, numbers, 1)
    for k in (0, 7, 20):
        names = rows.nth(k).locator(".names bdi").all_inner_texts()
        expected = distance_of(found, "adjusted", *names)
        at = rows.nth(k).evaluate("""row => ['.dot', '.whisker'].map(name => row.querySelector(name).style)
          .flatMap(style => [parseFloat(style.left), parseFloat(style.width)])""")
        assert start + slope * at[0] == pytest.approx(max(expected["unbiased"], numbers[0]), abs=2e-4)
        assert start + slope * at[2] == pytest.approx(expected["lower"], abs=2e-4)
        assert start + slope * (at[2] + at[3]) == pytest.approx(expected["upper"], abs=6e-4)
    seen.get_by_label("Pairs of").select_option(label="C")
    assert rows.count() == 6
    rows.nth(2).click()
    assert "C" in seen.locator("#pair-body h3").inner_text()


def test_levels_add_up_to_the_whole(show, pages):
    path, found = pages["plain"]
    seen = show(path).page
    for k, entry in enumerate(found["levels"]):
        shares = (
            seen.locator(".bar").nth(k).evaluate("bar => [...bar.children].map(part => Number(part.style.flexGrow))")
        )
        assert sum(shares) == pytest.approx(1)
        assert len(shares) == len(entry["levels"]) + 1
        sums = np.cumsum([0.0, *(level["distance"] or 0.0 for level in entry["levels"])])  # None compares nothing
        assert shares == pytest.approx([*-np.diff(np.exp(-sums)), np.exp(-sums[-1])])


def test_versions_and_batches_lie_where_the_axes_say(show, pages):
    for name, count in (("versions", 2), ("plain", 2)):
        path, found = pages[name]
        seen = show(path).page
        ticks = seen.evaluate("""() => { const ticks = [...document.querySelectorAll('.plane .tick')]
          .map(t => ({ v: +t.textContent.replace('−', '-'), a: t.getAttribute('text-anchor'), x: +t.getAttribute('x'),
                       y: +t.getAttribute('y') }));
          return { x: ticks.filter(t => t.a == 'middle'), y: ticks.filter(t => t.a == 'end') }; }""")
        to_x = np.polyfit([tick["x"] for tick in ticks["x"]], [tick["v"] for tick in ticks["x"]], 1)
        to_y = np.polyfit([tick["y"] - 4 for tick in ticks["y"]], [tick["v"] for tick in ticks["y"]], 1)
        spots = seen.locator(".plane .point")
        assert spots.count() == count
        for k in range(count):
            if name == "versions":
                expected = (found["methods"]["batch"][k]["value"], found["methods"]["biology"][k]["value"])
            else:
                expected = (found["batches"][k]["batch"]["value"], found["batches"][k]["biology"]["value"])
            x, y = (float(spots.nth(k).get_attribute(axis) or 0) for axis in ("cx", "cy"))
            assert np.polyval(to_x, x) == pytest.approx(max(0, expected[0]), abs=0.003)
            assert np.polyval(to_y, y) == pytest.approx(expected[1], abs=0.003)


def test_periods_and_alarms_are_those_of_the_summary(show, pages):
    path, found = pages["time"]
    seen = show(path).page
    drift = found["drift"]
    assert drift["periods"] == [f"week {k}" for k in range(7, 21)]
    assert [period for period, alarm in zip(drift["periods"], drift["alarm"], strict=True) if alarm] == drift[
        "periods"
    ][-3:]
    assert seen.locator("svg.drift rect.point").count() == 3
    assert seen.locator("svg.drift circle.point").count() == 11
    seen.locator("svg.drift rect.point").first.hover()
    tip = seen.locator(".tip").inner_text()
    assert "week 18" in tip
    assert format_number(drift["unbiased"][11]) in tip
    assert "3 of 14 periods raise alarms against the first 6, from week 18 on" in seen.locator("header").inner_text()


def test_the_cloud_is_colored_by_any_factor(show, pages):
    path, found = pages["plain"]
    seen = show(path).page

    def dots():
        return seen.evaluate("""() => Object.fromEntries([...document.querySelectorAll('.dots')]
          .map(path => [path.classList[1], path.getAttribute('d').split('M').length - 1]))""")

    codes = dict(
        zip([entry["name"] for entry in found["projection"]["factors"]], found["projection"]["codes"], strict=True)
    )
    assert sorted(dots().values()) == sorted(np.bincount(codes["site"]).tolist())
    seen.get_by_label("Color by").select_option(label="label")
    assert dots() == {f"c{k}": count for k, count in enumerate(np.bincount(codes["label"]).tolist())}
    seen.locator(".keys button").nth(1).click()
    sizes = np.bincount(codes["label"]).tolist()
    assert dots() == {"faint": sizes[0] + sizes[2], "c1": sizes[1]}
    alone = show(pages["summary"][0]).page
    assert alone.locator(".dots").count() == 0
    assert alone.locator(".cloud .mean").count() == 7
    assert "a summary has no rows" in alone.locator("#cloud").inner_text()


@pytest.mark.parametrize(("name", "scheme"), list(zip(("plain", *PAGES), SCHEMES * 4, strict=False)))
def test_axe_finds_nothing(name, scheme, show, pages):
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    seen = show(pages[name][0], scheme=scheme).page
    seen.evaluate(source)
    found = seen.evaluate("axe.run().then(result => result.violations)")
    assert [
        (entry["id"], entry["nodes"][0]["html"][:200]) for entry in found if entry["impact"] in ("serious", "critical")
    ] == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_theme_switches(scheme, show, pages):
    seen = show(pages["plain"][0], scheme=scheme).page
    light = (
        "sum = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number).reduce((a, b) => a + b) > 384"
    )
    assert seen.evaluate(light) == (scheme == "light")
    button = seen.locator("#theme")
    assert button.inner_text() == ("Dark" if scheme == "light" else "Light")
    button.focus()
    seen.keyboard.press("Enter")
    assert seen.evaluate(light) == (scheme == "dark")
    assert button.inner_text() == ("Light" if scheme == "light" else "Dark")
    seen.emulate_media(media="print")
    assert seen.evaluate(light)
    assert seen.locator("nav").is_hidden()
    assert seen.locator("#theme").is_hidden()
    assert seen.locator(".heat").is_visible()
    assert seen.locator(".plane").first.is_visible()


def test_print_fits_its_paper(show, pages):
    seen = show(pages["plain"][0], width=794).page
    seen.emulate_media(media="print")
    assert seen.evaluate("document.documentElement.scrollWidth") <= 794
    assert seen.pdf(format="A4")[:4] == b"%PDF"


def test_printed_tables_have_their_heads_on_top(show, pages):
    seen = show(pages["plain"][0], width=794).page
    seen.emulate_media(media="print")
    ends = seen.evaluate("""() => [...document.querySelectorAll('table')].filter(table => table.checkVisibility())
      .map(table => [table.tHead.getBoundingClientRect().bottom, table.tBodies[0].getBoundingClientRect().top])""")
    assert ends
    assert all(head <= rows + 1 for head, rows in ends)
    for part in (".heat td", ".whisker", ".dot", ".bar span"):
        assert seen.locator(part).first.evaluate("part => getComputedStyle(part).printColorAdjust") == "exact"


def test_what_keys_reach_is_not_under_the_list_of_sections(show, pages):
    seen = show(pages["plain"][0]).page
    seen.locator(".save").last.focus()
    for _ in range(60):
        seen.keyboard.press("Shift+Tab")
        hidden = seen.evaluate("""() => { const own = document.activeElement, box = own.getBoundingClientRect();
          const list = document.querySelector('nav').getBoundingClientRect();
          return !own.closest('nav') && box.top < list.bottom - 1 && box.bottom > list.top ? own.outerHTML : null; }""")
        assert hidden is None
        if seen.evaluate("document.activeElement.closest('nav') !== null"):
            break
    else:
        pytest.fail("the list of sections was not reached")


def test_the_note_of_a_cell_stays_when_reaching_it_scrolls(show, pages):
    seen = show(pages["plain"][0]).page
    seen.locator("nav a").last.focus()
    while seen.evaluate("document.activeElement.tagName") != "TD":
        seen.keyboard.press("Tab")
    seen.wait_for_timeout(200)  # until the page has settled
    assert seen.locator(".tip").is_visible()
    seen.keyboard.press("Escape")
    assert seen.locator(".tip").is_hidden()


def test_names_of_means_do_not_cover_other_means(show, tmp_path):
    place = np.repeat([0.0, 0.45, 0.9], 400)[:, None] * [1.0, 0.0]
    x = place + np.random.default_rng(0).normal(size=(1200, 2))
    cf.Report(x, by={"site": np.repeat(list("ABC"), 400)}, between="site", permutations=9).write(tmp_path / "near.html")
    covered = show(tmp_path / "near.html", 390).page.evaluate("""() => {
      const boxes = name => [...document.querySelectorAll(`.cloud ${name}`)].map(part => part.getBoundingClientRect());
      return boxes('.spot').flatMap(word => boxes('.mean').filter(ring => word.left < ring.left + ring.width / 2
        && word.right > ring.left + ring.width / 2 && word.top + 3 < ring.top + ring.height / 2
        && word.bottom - 3 > ring.top + ring.height / 2)).length; }""")
    assert covered == 0


def test_keys_reach_everything_in_order(show, pages):
    seen = show(pages["plain"][0]).page
    reached = []
    for _ in range(60):
        seen.keyboard.press("Tab")
        reached.append(
            seen.evaluate("""() => { const e = document.activeElement;
          return [e.id || e.tagName + '.' + e.className, getComputedStyle(e).outlineStyle]; }""")
        )
    names = [name for name, _ in reached]
    assert names[:2] == ["copy", "theme"]
    assert "A." in names[2:4]
    assert any("SELECT" in name for name in names)
    assert names.count("TD.self") + names.count("TD.") == 1
    assert "BUTTON.row c0" in names
    assert {style for _, style in reached} == {"solid"}


def test_data_can_be_saved(show, pages):
    path, found = pages["plain"]
    seen = show(path)
    texts = {}
    for name in ("pairs.csv", "report.json"):
        with seen.page.expect_download() as waiting:
            seen.page.get_by_role("button", name=name).click()
        assert waiting.value.suggested_filename == name
        texts[name] = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert json.loads(texts["report.json"]) == json.loads(json.dumps(found))
    rows = list(csv.DictReader(io.StringIO(texts["pairs.csv"])))
    assert len(rows) == 2 * 21
    expected = distance_of(found, "adjusted", rows[3]["group_a"], rows[3]["group_b"])
    assert float(rows[3]["unbiased"]) == expected["unbiased"]
    assert [url for url in seen.requests if not url.startswith(("file://", "data:", "blob:"))] == []


def test_saved_tables_do_not_run_names_as_formulas(show, tmp_path):
    names, features = ["=1+1", "+1", "-1", "@a", "tumor"], ["=2", "x"]
    x = np.random.default_rng(0).normal(size=(100, 2))
    rows = cf.summarize(x, by={"site": np.repeat(names, 20)}).with_features(features)
    cf.Report(rows, between="site").write(tmp_path / "page.html")
    seen = show(tmp_path / "page.html")
    found = {}
    for name, column in (("pairs.csv", "group_a"), ("groups.csv", "group"), ("attribution.csv", "label")):
        with seen.page.expect_download() as waiting:
            seen.page.get_by_role("button", name=name).click()
        text = Path(waiting.value.path()).read_text(encoding="utf-8")
        found[name] = {row[column] for row in csv.DictReader(io.StringIO(text))}
    assert found["groups.csv"] == {"'=1+1", "'+1", "'-1", "'@a", "tumor"}
    assert found["pairs.csv"] <= found["groups.csv"]
    assert found["attribution.csv"] == {"'=2", "x"}


def test_many_groups_are_a_matrix_of_small_cells(show, pages):
    path, found = pages["many"]
    seen = show(path, 390).page
    assert seen.locator(".heat.dense tbody td").count() == 45 * 45
    cell = seen.locator(".heat tbody tr").nth(0).locator("td").nth(3)
    cell.scroll_into_view_if_needed()
    seen.wait_for_timeout(200)  # until the page has settled: what scrolls takes the note away
    cell.hover()
    names = [found["groups"]["names"][k] for k in found["groups"]["cluster"]]
    expected = distance_of(found, "plain", names[0], names[3])
    assert f"{expected['unbiased']:.4f}" in seen.locator(".tip").inner_text()
    box = seen.locator(".tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


ODD = {
    "one row a cell": ([[0.0], [1.0], [2.0], [4.0]], list("aabb"), list("xyxy")),
    "no spread": ([[0.0], [0.0], [1.0], [1.0], [3.0]], list("aabbc"), list("xyxyx")),
    "nothing at all": ([[0.0]] * 4, list("aabb"), list("xyxy")),
    "confounded": ([[0.0], [1.0], [2.0], [4.0]], list("aabb"), list("xxyy")),
    "missing names": ([[0.0], [1.0], [2.0], [4.0]], [None, None, "b", "b"], list("xyxy")),
}


@pytest.mark.parametrize("units", [None, "label"])
@pytest.mark.parametrize("name", ODD)
def test_odd_groups_make_a_page_too(name, units, show, tmp_path):
    x, site, label = ODD[name]
    by = {"site": site, "label": label}
    asked: dict[str, Any] = {"units": "label"} if units else {"given": "label"}
    cf.Report(x, by=by, between="site", **asked).write(tmp_path / "odd.html")
    seen = show(tmp_path / "odd.html", 390)
    assert seen.console == []
    assert seen.page.evaluate(LAYOUT) == []
    words = seen.page.inner_text("body").replace("(", " ").replace(")", " ").split()
    assert not {"nan", "NaN", "None", "inf", "undefined", "null"} & set(words)
    if name == "confounded" and not units:
        assert "cannot be separated from that of label" in seen.page.inner_text(".lead")


def test_names_of_means_side_by_side_do_not_meet(show, tmp_path):
    place = np.array([-1.0, 1.0, 0.0, 0.1])
    x = np.repeat(place, 50)[:, None] + 0.001 * np.random.default_rng(0).normal(size=(200, 1))
    summary = cf.summarize(x, by={"site": np.repeat(["left", "right", "WWWWW", "m"], 50)})
    cf.Report(summary, between="site").write(tmp_path / "near.html")
    assert show(tmp_path / "near.html").page.evaluate(LAYOUT) == []


def test_a_level_has_one_color(show, pages):
    swatches = show(pages["plain"][0]).page.evaluate("""() => [...document.querySelectorAll('#levels table')].map(
      table => Object.fromEntries([...table.querySelectorAll('.swatch')].map(
        mark => [mark.parentElement.textContent, mark.className])))""")
    assert [swatches[1][name] for name in swatches[0]] == [*swatches[0].values()]
    assert len({*swatches[1].values()}) == len(swatches[1])


def test_the_first_screen_holds_the_story(show, pages):
    path, found = pages["plain"]
    seen = show(path).page
    bottom = "name => document.querySelector(name).getBoundingClientRect().bottom"
    for part in (".verdict", ".strip", ".cards", "#ranks", "#next", "#cloud svg"):
        assert seen.evaluate(bottom, part) <= 900, part
    assert seen.locator(".lead").inner_text() == re.sub("[\u2068\u2069]", "", found["verdict"]["sentence"])
    values = seen.locator("#ranks .value b").all_inner_texts()
    assert values == [format_number(found["ranks"]["unbiased"][k]) for k in found["ranks"]["order"]]
    for chip, each in zip(seen.locator(".strip li").all(), found["warnings"], strict=True):
        assert chip.get_attribute("class") == ("serious" if each["serious"] else "mild")
    seen.locator(".strip a").first.click()
    assert seen.locator("#warning-0").bounding_box()["y"] < 900


def test_the_projection_switches_between_unadjusted_and_adjusted(show, pages):
    path, _ = pages["plain"]
    seen = show(path).page
    places = "[...document.querySelectorAll('.cloud .mean')].map(mean => mean.getAttribute('cx'))"
    buttons = seen.locator(".toggle button")
    assert buttons.all_inner_texts() == ["adjusted for label", "unadjusted"]
    adjusted = seen.evaluate(places)
    buttons.nth(1).click()
    assert buttons.nth(1).get_attribute("aria-pressed") == "true"
    assert "unadjusted" in seen.locator(".cloud svg, svg.cloud").first.get_attribute("aria-label")
    assert seen.evaluate(places) != adjusted


def test_the_conclusion_is_copied_as_text(show, pages):
    path, found = pages["hostile"]
    seen = show(path).page
    seen.context.grant_permissions(["clipboard-read", "clipboard-write"])
    seen.get_by_role("button", name="Copy as text").click()
    seen.get_by_role("button", name="Copied").wait_for()
    copied = seen.evaluate("navigator.clipboard.readText()")
    assert copied.splitlines()[0] == found["title"].splitlines()[0]
    for sentence in found["headline"]:
        assert re.sub("[\u2068\u2069]", "", sentence) in copied


def test_groups_that_stand_out_are_colored_and_named_among_many(show, tmp_path):
    x, site, _, owner = rows_of(3600, 30)
    x[:, 0] -= 0.3 * site
    x[:, 2] += 2.0 * (site == 7)
    names = np.array([f"center_{k:02d}" for k in site])
    cf.Report(x, by={"site": names, "patient": owner}, between="site", units="patient").write(tmp_path / "many.html")
    seen = show(tmp_path / "many.html").page
    assert seen.locator(".lead").inner_text().startswith("center_07 differs")
    assert seen.locator("#ranks .stands .names").all_inner_texts() == ["07"]
    assert seen.locator(".cloud .spot").all_text_contents() == ["07"]
    assert seen.locator(".cloud .mean:not(.other)").count() == 1
    assert seen.locator("#ranks li").count() == 8
    seen.get_by_role("button", name="Show all 30 groups").click()
    assert seen.locator("#ranks li").count() == 30
