"""Pictures that a page of the docs shows, drawn by the examples on that page.

    python examples/page_pictures.py docs/plots.md

Runs the page's Python examples in a temporary folder, and copies what the page shows from `plots/` beside it.
"""

import argparse
import doctest
import os
import re
import shutil
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PICTURE = re.compile(r"!\[[^]]*\]\(([^)]+)\)")


def run(text: str) -> None:
    """Run the examples of a page, one after the other, under the same names."""
    names: dict[str, object] = {}
    for block in BLOCK.findall(text):
        for example in doctest.DocTestParser().get_examples(block):
            exec(compile(example.source, "page", "single"), names)


def main() -> None:
    """Draw anew what a page shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page.resolve()
    text = page.read_text()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        run(text)
        for name in PICTURE.findall(text):
            (page.parent / name).parent.mkdir(exist_ok=True)
            shutil.copy(Path(folder, Path(name).name), page.parent / name)
        os.chdir(page.parent)


if __name__ == "__main__":
    main()
