"""What all results share: plain values, a table, a figure, and how they read as text and in a notebook."""

import importlib
import inspect
import json
from dataclasses import is_dataclass

import numpy as np
import pytest

import crossfusion as cf
from crossfusion.fusion import DisplayMixin, Facts, Record, Result, TextTable
from crossfusion.plots import DARK, LIGHT
from tests.helpers import PATIENCE, drawn
from tests.helpers.browser import HOSTILE

PACKAGES = (
    "crossfusion",
    "crossfusion.anndata",
    "crossfusion.pathology",
    "crossfusion.torch",
)
RESULTS = {
    "Attribution",
    "Cddr",
    "CheckResult",
    "CorrectionComparison",
    "Decomposition",
    "Drift",
    "Fusion",
    "Geometry",
    "Hierarchy",
    "Layers",
    "Mixing",
    "Leaderboard",
    "Pairwise",
    "Projection",
    "Rdr",
    "Separability",
    "Study",
    "TestResult",
}
SHARED = ("to_dict", "to_frame", "__repr__", "_repr_html_")
MADE = {
    "fusion": lambda: drawn.made().cfd("site", given="tissue", units="patient", level=0.95),
    "pairwise": lambda: drawn.made().pairwise("site"),
    "pairs": lambda: drawn.made().pairwise("site", units="patient", level=0.95),
    "hierarchy": lambda: drawn.made().hierarchy(["site", "tissue", "patient"]),
    "geometry": lambda: drawn.made().geometry("site"),
    "mixing": lambda: drawn.mixing(units="patient", level=0.95),
    "attribution": lambda: drawn.made().attribution("site", over="patient"),
    "test": lambda: drawn.made().test("site", units="patient", permutations=19),
    "projection": drawn.projection,
    "drift": lambda: drawn.drift(units="patient"),
    "comparison": drawn.methods,
    "decomposition": lambda: cf.Decomposition(3.0, 1.0),
    "rdr": lambda: drawn.protocol("rdr"),
    "check": lambda: cf.check({"rule": [{"between": "site", "units": "patient", "max": 0.02}]}, drawn.made()),
    "cddr": lambda: drawn.protocol("cddr"),
    "separability": lambda: drawn.separability(),
}


def public_classes():
    for name in PACKAGES:
        package = importlib.import_module(name)
        for entry in package.__all__:
            found = getattr(package, entry)
            if inspect.isclass(found) and found.__module__.startswith("crossfusion"):
                yield found


@pytest.fixture(scope="module")
def hostile():
    return drawn.made(HOSTILE[:5], size=20)


def show(browser, tmp_path, markup, *, scheme="light", width=1000, body="<body>"):
    """A page around what a notebook was given, and the dialogs, errors and requests that it led to."""
    path = tmp_path / "page.html"
    path.write_text(f"<!DOCTYPE html><meta charset='utf-8'>{body}{markup}", encoding="utf-8")
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
    page.set_default_timeout(1000 * PATIENCE)
    events = []
    page.on("dialog", lambda dialog: events.append(dialog.message))
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.on("pageerror", lambda problem: events.append(str(problem)))
    page.on("request", lambda request: events.append(request.url) if request.url.startswith("http") else None)
    page.goto(path.as_uri())
    return page, events


def test_every_public_result_derives_from_the_base():
    classes = set(public_classes())
    assert {found.__name__ for found in classes if issubclass(found, Result)} == RESULTS
    for found in classes:
        if hasattr(found, "to_dict") and found is not cf.Report:
            assert issubclass(found, Record), found
            assert is_dataclass(found), found
        if hasattr(found, "to_dict") and hasattr(found, "plot"):
            assert issubclass(found, Result), found
    assert issubclass(cf.Summary, DisplayMixin)
    assert issubclass(cf.Report, DisplayMixin)


def test_what_is_shared_is_written_once():
    for found in public_classes():
        if issubclass(found, Result):
            assert [name for name in SHARED if name in vars(found)] == [], found
            assert "axes" in inspect.signature(found.plot).parameters


@pytest.mark.parametrize("name", MADE)
def test_a_result_is_plain_values_a_frame_and_the_same_cells_as_text_and_html(name):
    result = MADE[name]()
    values = result.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert len(result.to_frame()) >= 1
    title, *contents = result._contents()
    text, markup = repr(result), result._repr_html_()
    assert str(result) == text == "\n".join(map(str, [title, *contents]))
    tables = [content for content in contents if not isinstance(content, str)]
    assert tables
    assert markup.count("<table>") == len(tables)
    for table in tables:
        for cell in (cell for row in table.rows for cell in row):
            assert cell.strip() in text
            assert f">{cell.strip()}</t" in markup


def test_single_values_make_a_frame_of_one_row():
    fusion = drawn.made().cfd("site", units="patient", level=0.95)
    frame = fusion.to_frame()
    assert len(frame) == 1
    assert (frame["lower"][0], frame["upper"][0]) == fusion.interval
    assert frame["unbiased"][0] == fusion.unbiased
    assert not {"counts", "weights", "interval"} & set(frame.columns)
    assert list(cf.Decomposition(3.0, 1.0).to_frame().columns) == ["translation", "deformation", "total", "distance"]


def test_a_figure_of_several_panels_refuses_axes():
    x, by = drawn.rows(("A", "B", "C"))
    study = cf.degradation_study(x, by["tissue"], by["site"], distances=["cfd"], corrections=["none"])
    axes = drawn.protocol("cddr").plot().axes[0]
    with pytest.raises(cf.InputError, match="axes is a single panel, but this figure has several: leave it out"):
        study.plot(axes=axes)


def test_text_of_tables():
    assert str(TextTable(["", "a"], [["x", "1"]], more=2)) == "   a\nx  1\n... and 2 more"
    assert str(Facts([("one", "text"), ("three", "a", "b")], gap=1)) == "  one   text\n  three a  b"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_are_text_in_a_notebook(scheme, hostile, browser, tmp_path):
    results = [
        hostile,
        hostile.cfd("site"),
        hostile.pairwise("site"),
        hostile.pairwise("site", units="patient", level=0.9),
    ]
    markup = "".join(result._repr_html_() for result in results)
    page, events = show(browser, tmp_path, markup, scheme=scheme, width=390)
    assert page.locator(".cf-result").count() == len(results)
    assert page.locator(".cf-result").locator("script, img, svg, b, iframe").count() == 0
    names = page.locator(".cf-result").nth(2).locator("tbody td.cf-left").all_inner_texts()
    assert "<script>alert(1)</script>" in names
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert events == []


def channels(color):
    return tuple(int(color[k : k + 2], 16) for k in (1, 3, 5))


@pytest.mark.parametrize(
    ("scheme", "body", "theme"),
    [
        ("light", "<body>", LIGHT),
        ("dark", "<body>", DARK),
        ("light", '<body data-jp-theme-light="false">', DARK),
        ("dark", '<body class="vscode-light">', LIGHT),
    ],
)
def test_the_notebook_decides_on_light_and_dark_and_else_the_system(scheme, body, theme, browser, tmp_path):
    page, _ = show(browser, tmp_path, MADE["hierarchy"]()._repr_html_(), scheme=scheme, body=body)
    style = "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    found = page.locator(".cf-result").evaluate(style)
    assert found == [f"rgb{channels(theme[name])}" for name in ("ink", "paper")]


def test_a_report_shows_its_page_in_a_notebook(browser, tmp_path):
    x, by = drawn.rows(("A", "<img src=x onerror=alert(1)>"))
    title = '"></iframe><script>alert(2)</script>'
    report = cf.Report(x, by=by, between="site", permutations=19, title=title)
    assert "\n".join(map(str, report._contents())) == repr(report)
    page, events = show(browser, tmp_path, report._repr_html_())
    frame = page.frame_locator("iframe")
    assert frame.locator("h1").inner_text() == title
    assert frame.locator("#matrix-body svg, #matrix-body table").first.is_visible()
    assert page.locator("iframe").count() == 1
    assert page.locator("script").count() == 0
    assert page.locator("iframe").bounding_box()["height"] == pytest.approx(42 * 16, abs=4)
    assert events == []


def test_values_keep_their_meaning_in_plain_form():
    fusion = cf.cfd(np.zeros((2, 1)), np.ones((2, 1)))
    assert fusion.to_dict()["distance"] == "inf"
    assert "interval" not in fusion.to_dict()
    drift = drawn.drift(alarm=None)
    assert drift.to_dict()["change"] == drift.change.to_dict()
    assert drift.to_dict()["attributions"]["features"] == drift.attributions["features"].to_dict()
