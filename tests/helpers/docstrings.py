"""What docstrings and the page of the API say."""

import inspect
import re

from tests.helpers import ROOT

API_PAGE = ROOT / "docs" / "api.md"


def sections(documented: object) -> list[str]:
    """Headings of a docstring."""
    return re.findall(r"^(\w[\w ]+)\n-{3,}$", inspect.getdoc(documented) or "", re.MULTILINE)
