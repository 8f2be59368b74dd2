"""The same streams through `Summary.drift`."""

from collections.abc import Callable
from typing import Any

import numpy as np

import crossfusion as cf

RATE = 0.01


def fit(reference: Any) -> Callable[[Any], bool]:
    """From the reference's rows (periods, rows, features) to a function of the rows of a window."""
    periods, rows, dim = reference.shape
    known = cf.summarize(reference.reshape(-1, dim), by={"period": np.repeat(np.arange(periods), rows)})

    def alarm(window: Any) -> bool:
        new = cf.summarize(window, by={"period": np.full(len(window), periods)})
        return bool((known + new).drift("period", reference=f"first:{periods}", alarm=RATE).alarm[-1])

    return alarm


if __name__ == "__main__":
    from harness import main

    main({"crossfusion, alarm=0.01": fit}, by_period=True)
