"""From labels to codes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base.typing import CodeArray

def find_distinct(records: NDArray[Any], codes: CodeArray, limit: int) -> list[int] | None: ...
def find_distinct_text(
    text: NDArray[np.uint8], offsets: NDArray[np.int32], codes: CodeArray, limit: int
) -> list[int] | None: ...
def mark(codes: CodeArray, seen: NDArray[np.uint8]) -> None: ...
def relabel(codes: CodeArray, table: CodeArray, out: CodeArray) -> None: ...
