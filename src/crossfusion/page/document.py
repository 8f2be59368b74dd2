"""A whole page: self-contained, no network, no scripts."""

from collections.abc import Sequence
from importlib.resources import files

from crossfusion.page.markup import escaped

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, parts: Sequence[str], footer: str = "", *, style: str = "") -> str:
    """The page around its parts.

    Parameters
    ----------
    title : str
        Of the window.
    parts : list of str
        HTML of what the page shows, one after the other.
    footer : str
        HTML below it.
    style : str
        CSS beyond what all pages have.

    Returns
    -------
    str
        HTML.
    """
    common = files("crossfusion.page").joinpath("page.css").read_text(encoding="utf-8")
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        '<link rel="icon" href="data:,">',
        f"<title>{escaped(title)}</title>",
        f"<style>\n{common}{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        *parts,
        "</main>",
        footer,
        "</body>",
        "</html>\n",
    ]
    return "\n".join(lines)
