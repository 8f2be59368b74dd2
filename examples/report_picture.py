"""Pictures of the demo's report for the docs.

Run as ``python examples/report_picture.py demo/report.html --out docs/report``; `make example-report` does. It needs
Chromium.
"""

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
PICTURES = {  # name: width, height, scheme, and the section that is scrolled to
    "page": (1200, 1130, "light", None),
    "cloud": (1200, 800, "light", "cloud"),
    "pairs": (1200, 640, "light", "matrix"),
    "phone": (390, 844, "dark", None),
}


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description="Pictures of a report.")
    parser.add_argument("page", type=Path, help="the report")
    parser.add_argument("--out", type=Path, default=Path("docs/report"), help="folder for the pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        for name, (width, height, scheme, section) in PICTURES.items():
            dark = "dark" if scheme == "dark" else "light"
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=dark)
            page.goto(options.page.resolve().as_uri())
            if section:
                page.evaluate("id => document.getElementById(id).scrollIntoView()", section)
            page.screenshot(path=options.out / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
