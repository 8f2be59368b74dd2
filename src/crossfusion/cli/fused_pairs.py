"""The option `--fused-within` for pairs of groups: which of them are shown to be closer than a margin."""

import numpy as np

from crossfusion._base import count_text, label_text, level_text
from crossfusion.cli.result_tables import list_pairs
from crossfusion.fusion import Pairwise, has_equal_means, split_cautions

MARGIN_LEVEL = 0.9  # of the limits that equivalence at alpha = 0.05 depends on
MAX_NAMED_PAIRS = 10


def find_fused_pairs(result: Pairwise, margin: float) -> list[list[bool | None]]:
    """Whether the upper limit of each pair, at `MARGIN_LEVEL`, is below a margin; None where there is no answer.

    There is none without a limit, and for no pair if means agree by construction.
    """
    assert result.upper is not None
    if any(map(has_equal_means, split_cautions(result.caution))):
        return [[None] * len(result.labels) for _ in result.labels]
    return [[None if np.isnan(limit) else limit < margin for limit in row] for row in result.upper.tolist()]


def describe_fused_pairs(result: Pairwise, fused: list[list[bool | None]], margin: float) -> str:
    """Say which pairs are shown to be fused within a margin, and how many have no answer."""
    pairs = list_pairs(len(result.labels))
    shown = [
        f"{label_text(result.labels[i])} and {label_text(result.labels[j])}" for i, j in pairs if fused[i][j] is True
    ]
    unknown = sum(fused[i][j] is None for i, j in pairs)
    more = f", and {len(shown) - MAX_NAMED_PAIRS:,} more" if len(shown) > MAX_NAMED_PAIRS else ""
    named = f": {'; '.join(shown[:MAX_NAMED_PAIRS])}{more}" if shown else ""
    gap = f" (no answer for {unknown:,})" if unknown else ""
    number = count_text(len(pairs), "pair")
    return (
        f"fused within {margin:g}: shown for {len(shown):,} of {number}{gap}, by the upper limit"
        f" at {level_text(MARGIN_LEVEL)} confidence (alpha 0.05 for each pair){named}"
    )
