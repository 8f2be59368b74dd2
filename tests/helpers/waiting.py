"""Work for a process of its own, in the place of a metric."""

import time
from typing import Any

from tests.helpers import PATIENCE

SLOW = 3000  # cells


def at_once(_before: Any, x: Any, _batch: Any, _label: Any) -> float:
    """As many as there are cells."""
    return float(len(x))


def too_long(_before: Any, x: Any, _batch: Any, _label: Any) -> float:
    """The same, of many cells after longer than anyone waits."""
    time.sleep(PATIENCE if len(x) >= SLOW else 0)
    return float(len(x))


def ends(_before: Any, x: Any, _batch: Any, _label: Any) -> float:
    """The end of the process, if there are many cells."""
    if len(x) >= SLOW:
        raise SystemExit
    return float(len(x))
