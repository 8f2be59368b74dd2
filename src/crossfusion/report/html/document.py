"""A whole page: self-contained, no network, and no script but its own."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from crossfusion import plots
from crossfusion.report.html.markup import escape, make_element

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
UNSAFE = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})  # what could end a script, or a line of one


def make_document(
    title: str,
    parts: Sequence[str],
    footer: str = "",
    *,
    style: str = "",
    script: str = "",
    data: Mapping[str, Any] | None = None,
) -> str:
    """The page around HTML parts; `data` is JSON in the element ``data`` for the script, the only one that may run."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_make_policy(script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{_make_colors()}{_read_file('page.css')}{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        *parts,
        "</main>",
        footer,
        *([] if data is None else [make_element("script", dump_json(data), type="application/json", id="data")]),
        *([f"<script>{script}</script>"] if script else []),
        "</body>",
        "</html>\n",
    ]
    return "\n".join(lines)


def _read_file(name: str) -> str:
    return files("crossfusion.report.html").joinpath(name).read_text(encoding="utf-8")


def _make_colors() -> str:
    """Light colors, and dark ones where the reader's system or the page's switch asks for them; print is light."""
    light, dark = (
        "".join(f"--{name}: {value};\n" for name, value in theme.items()) for theme in (plots.LIGHT, plots.DARK)
    )
    return f""":root {{\n{light}}}
@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{\n{dark}}} }}
@media screen {{ :root[data-theme="dark"] {{\n{dark}}} }}
"""


def _make_policy(script: str) -> str:
    """What the browser may do: show the page, and run this script alone."""
    if not script:
        return POLICY
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{POLICY}; script-src 'sha256-{digest}'"


def dump_json(data: Mapping[str, Any]) -> str:
    """JSON that nothing in it can end."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(UNSAFE)
