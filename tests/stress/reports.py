"""Pages of hostile names, and of summaries that are broken: names stay text, pages are whole."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

import crossfusion as cf
from tests.fuzz.breaking import MUTATIONS
from tests.stress import data
from tests.stress.commands import here
from tests.stress.judging import Broken, check_whole, outcome

NAMES = (
    *data.HOSTILE, "</script><script>alert(2)</script>", "<!--", "-->", "]]>", "&lt;b&gt;",
    "<img src=x onerror=alert(3)>",
    '" onmouseover="alert(4)', "'; alert(5); '", "\\u003cscript\\u003e", "{{7*7}}", "`${alert(6)}`", "מכון", "🙂" * 50,
    "x" * 2000, "\u2028", "\x00", "javascript:alert(7)", "A", "B", "__proto__", "constructor", "null", "NaN", "0", "-1",
)  # fmt: skip


def prepare(folder: Path) -> None:
    """The files."""
    data.write_whole_files(folder)


class Tags(HTMLParser):
    """Scripts, and what else could run something."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count scripts; nothing else may run or load."""
        self.scripts += tag == "script"
        self.bad += [
            f"{tag} {name}" for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")
        ]
        self.bad += [tag] if tag in ("img", "iframe", "object", "embed", "base") else []
        self.bad += [f"{tag} {name}" for name, value in attrs if name == "src"]


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """A page by Python of hostile names, or by the command of a broken summary."""
    return of_broken(folder, own, draw) if number % 3 == 2 else of_names(own, draw)


def of_names(own: Path, draw: np.random.Generator) -> str:
    """Names of factors, groups, units and the page are drawn from what was meant to do harm."""
    rows = int(draw.integers(20, 120))
    factors = [NAMES[int(k)] for k in draw.choice(len(NAMES), 4, replace=False)]
    counts = [int(draw.integers(1, 9)) for _ in factors]
    by: dict[str, Any] = {}
    for name, count in zip(factors, counts, strict=True):
        values = np.array([NAMES[int(k)] for k in draw.choice(len(NAMES), count, replace=False)], object)
        by[name] = values[draw.integers(0, count, rows)]
    asked: dict[str, Any] = {"between": factors[0], "permutations": 9, "title": NAMES[int(draw.integers(len(NAMES)))]}
    asked |= {"given": factors[1]} if draw.random() < 0.5 else {}
    asked |= {"units": factors[2]} if draw.random() < 0.5 else {}
    asked |= {"time": factors[3]} if draw.random() < 0.3 else {}
    told = f"{rows} rows, by {[name[:40] for name in factors]}, {list(asked)}"
    try:
        report = cf.Report(data.X[:rows], by=by, **asked)
        report.write(own / "own.html")
        said = repr(report)
    except cf.CrossfusionError as problem:
        if not str(problem).isprintable():
            raise Broken(f"{told}: not one line: {problem}") from problem
        return "refused"
    except Exception as problem:
        raise Broken(f"{told}: {type(problem).__name__}: {problem}") from problem
    check_page(own / "own.html", told)
    if any(not (c.isprintable() or c == "\n") for c in said):
        raise Broken(f"{told}: cannot be printed: {said!r}")
    return "right"


def check_page(path: Path, told: str) -> None:
    """A whole page with two scripts of its own, and nothing else that runs."""
    check_whole(path)
    text = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    if tags.scripts != 2 or tags.bad:
        raise Broken(f"{told}: {tags.scripts} scripts, {tags.bad}")
    start = text.index('type="application/json"')
    content = text[text.index(">", start) + 1 : text.index("</script>", start)]
    try:
        json.loads(content)
    except ValueError as problem:
        raise Broken(f"{told}: the page's data are no JSON: {problem}") from problem


def of_broken(folder: Path, own: Path, draw: np.random.Generator) -> str:
    """A summary that is broken is refused, and the page that is there already stays."""
    content = bytearray((folder / "s.parquet").read_bytes())
    (own / "in.parquet").write_bytes(MUTATIONS[int(draw.integers(len(MUTATIONS)))](content, draw))
    (own / "own.html").write_text("<html>old</html>")
    words = ["report", "in.parquet", "--between", "site", "--permutations", "9", "-o", "own.html"]
    ended = here(words, own)
    found = outcome(ended)
    if found == "refused" and (own / "own.html").read_text() != "<html>old</html>":
        raise ended.broken("refused, but the old page is gone")
    if found == "right":
        check_page(own / "own.html", str(words))
    return f"broken summary, {found}"
