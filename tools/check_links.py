"""Links within a folder of HTML pages lead somewhere, and no page loads anything from elsewhere.

    python tools/check_links.py docs/_build/html

Says what is wrong, a line each, and ends with 1; pages elsewhere on the network are not looked at.
"""

import argparse
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("video", "src")}
SHEETS = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "dns-prefetch"}


@dataclass
class Page(HTMLParser):
    """What a page names, links to and loads."""

    names: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the names and addresses of an element."""
        values = {name: value or "" for name, value in attrs}
        self.names.update(values[name] for name in ("id", "name") if name in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and SHEETS & set(values.get("rel", "").split()):
            self.loaded.append(values.get("href", ""))
        self.loaded += [values[name] for element, name in LOADED if element == tag and name in values]
        if tag in ("img", "source") and "srcset" in values:
            self.loaded += [part.split()[0] for part in values["srcset"].split(",") if part.strip()]


def read(path: Path) -> Page:
    """A page, as far as links go."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def problems(folder: Path) -> list[str]:
    """What is wrong with the links of the pages below a folder, in the order of the pages."""
    folder = folder.resolve()
    files = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]  # there are templates
    pages = {path: read(path) for path in files}
    found = []
    for path, page in pages.items():
        wrong = [_wrong(link, path, pages) for link in dict.fromkeys([*page.links, *page.loaded])]
        wrong += [f"loads {link} from elsewhere" for link in dict.fromkeys(page.loaded) if _elsewhere(link)]
        found += [f"{path.relative_to(folder)}: {text}" for text in wrong if text]
    return found if pages else [f"{folder}: there are no pages"]


def _elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _wrong(link: str, path: Path, pages: dict[Path, Page]) -> str:
    """What is wrong with a link of a page; nothing, if it leads elsewhere or somewhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return f"{link} leads to no file"
    named = unquote(parts.fragment)
    if named and target in pages and named not in pages[target].names:
        return f"{link} leads to no such place in {target.name}"
    return ""


def main() -> None:
    """Check a folder and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    found = problems(folder)
    if found:
        print(*found, sep="\n", file=sys.stderr)
        sys.exit(1)
    print(f"every link in {sum(1 for _ in folder.rglob('*.html'))} pages leads somewhere")


if __name__ == "__main__":
    main()
