"""The checker of built pages finds links that lead nowhere, and pages that load from elsewhere."""

import runpy

import pytest

from tests.helpers import ROOT

problems = runpy.run_path(str(ROOT / "tools" / "check_links.py"))["problems"]


def built(folder, body):
    (folder / "sub").mkdir()
    (folder / "index.html").write_text(f'<h1 id="top">A</h1>{body}')
    (folder / "sub" / "b c.html").write_text('<p id="é">B</p><a href="../index.html#top">A</a>')
    (folder / "x.png").write_bytes(b"")
    return problems(folder)


@pytest.mark.parametrize(
    "body",
    [
        '<a href="sub/b%20c.html#%C3%A9">B</a>',
        '<a href="#top">A</a><a href="#">up</a>',
        '<a href="https://example.org/none">elsewhere</a><a href="mailto:a@b.c">mail</a>',
        '<img src="x.png" srcset="x.png, x.png 2x"><link rel="canonical" href="https://example.org">',
        '<img src="data:image/png;base64,AA==">',
    ],
)
def test_links_that_lead_somewhere(body, tmp_path):
    assert built(tmp_path, body) == []


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('<a href="sub/none.html">B</a>', "sub/none.html leads to no file"),
        ('<a href="sub/b%20c.html#none">B</a>', "leads to no such place in b c.html"),
        ('<a href="#none">A</a>', "#none leads to no such place in index.html"),
        ('<img src="y.png">', "y.png leads to no file"),
        ('<img src="x.png" srcset="x.png, y.png 2x">', "y.png leads to no file"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js from elsewhere"),
        ('<script src="//example.org/a.js"></script>', "loads //example.org/a.js from elsewhere"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "loads https://example.org/a.css from elsewhere"),
    ],
)
def test_links_that_do_not(body, told, tmp_path):
    (found,) = built(tmp_path, body)
    assert found.startswith("index.html: ")
    assert told in found


def test_a_folder_without_pages_is_no_success(tmp_path):
    assert problems(tmp_path)
