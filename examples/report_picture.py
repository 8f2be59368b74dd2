"""Pictures of the demo's report for the docs.

Run as ``python examples/report_picture.py demo/report.html --out docs/report``; `make example-report` does. It needs
Chromium.
"""

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
PICTURES = {"page": (900, None), "pairs": (960, "matrix")}  # height, and where it begins
WIDTH = 1440


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Pictures of a report.")
    parser.add_argument("page", type=Path, help="the report")
    parser.add_argument("--out", type=Path, default=Path("docs/report"), help="folder for the pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, (height, section) in PICTURES.items():
            page = browser.new_page(viewport={"width": WIDTH, "height": height})
            page.goto(options.page.resolve().as_uri())
            if section:
                page.evaluate("id => document.getElementById(id).scrollIntoView()", section)
            page.screenshot(path=options.out / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
