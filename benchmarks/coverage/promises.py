"""What is promised of intervals and tests, and whether a measured share keeps it."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

FULL = 2000  # draws from which a share is compared with a promise as it is; with fewer, chance is allowed for
SURE = 0.999  # of a band that a share leaves by chance once in a thousand times
LEVEL = 0.95  # of the intervals
LEAST = {"rows": 0.93, "units": 0.90, "lenses": 0.93}  # coverage
MOST = 0.97  # the same where the distance is clear
SIZE = 0.05  # of the tests
CLEAR = 3.0  # standard errors beyond which a distance is clearly not zero


def bounds(section: str, point: Mapping[str, Any]) -> tuple[float, float] | None:
    """Between what the share of a point is promised to lie, if anything is.

    Parameters
    ----------
    section : str
        Of the study.
    point : mapping
        As `measure` has it.

    Returns
    -------
    tuple of float, or None
        Bounds of the coverage of an interval, or of how often a test rejects. Of fewer than `FULL` draws they are so
        wide that chance alone hardly breaks them.
    """
    draws = point["draws"]
    if section == "level":
        return band(draws, SIZE)
    if section not in LEAST:
        return None
    least, most = LEAST[section], MOST if section == "rows" and point["ratio"] > CLEAR else 1.0
    return (least, most) if draws >= FULL else (band(draws, least)[0], band(draws, most)[1])


def judge(section: str, point: Mapping[str, Any]) -> dict[str, Any]:
    """The bounds of a point and whether its share keeps them; nothing where nothing is promised."""
    found = bounds(section, point)
    if found is None:
        return {}
    share = point["rejected"] if section == "level" else point["coverage"]
    return {"least": found[0], "most": found[1], "holds": found[0] <= share <= found[1]}


def band(draws: int, share: float) -> tuple[float, float]:
    """Shares between which that of so many draws lies with probability `SURE`, if `share` is true.

    Parameters
    ----------
    draws : int
        Number of draws.
    share : float
        True share.

    Returns
    -------
    tuple of float
        Exact quantiles of the binomial distribution, over the number of draws.
    """
    if share in (0.0, 1.0):
        return share, share
    hits = np.arange(draws + 1)
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, draws + 1)))])  # log k!
    log_mass = ways[-1] - ways - ways[::-1] + hits * math.log(share) + (draws - hits) * math.log1p(-share)
    below = np.cumsum(np.exp(log_mass))
    tail = (1 - SURE) / 2
    return int(np.searchsorted(below, tail)) / draws, int(np.searchsorted(below, 1 - tail)) / draws


def standard_error(share: float, draws: int) -> float:
    """Standard error of a measured share."""
    return math.sqrt(share * (1 - share) / draws)
