"""Pages in a real browser, and names that would do harm on a page that does not escape them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.helpers import PATIENCE

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=http://example.org/x onerror=alert(2)>",
    "\"double\" & 'single' &lt; \u2028",
    "מכון \u202eיום",
    "two\nlines",
    '" onmouseover="alert(4)" ' * 3,
    "long " * 2000,
)


@dataclass
class Seen:
    """An open page and what happened on it."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(1000 * PATIENCE)
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda problem: self.console.append(str(problem)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("dialog", lambda dialog: dialog.dismiss())
        self.page.on("dialog", lambda dialog: self.dialogs.append(dialog.message))


@contextmanager
def open_browser() -> Iterator[Any]:
    """Chromium, without a window."""
    if shutil.which(CHROMIUM) is None:
        pytest.fail(f"{CHROMIUM} is missing: pages are tested in a real browser, apt-get install chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=1000 * PATIENCE)
        yield opened
        opened.close()
