"""Data that policies are tested on, and rules that hold, are broken, or cannot be answered."""

import numpy as np

ROWS = 480
HOLDS = (
    '[[rule]]\nname = "scanners"\nbetween = "scanner"\ngiven = "tissue"\nunits = "patient"\nmax = 0.5\non = "upper"\n'
)
BROKEN = '[[rule]]\nname = "tissues"\nbetween = "tissue"\nmax = 0.01\n'
UNKNOWN = '[[rule]]\nname = "sites"\nbetween = "site"\nmax = 0.01\n'


def make_data(shift=0.5):
    """Three scanners, of which S3 is shifted, on two tissues that are far apart."""
    rng = np.random.default_rng(3)
    order = np.arange(ROWS)
    by = {
        "scanner": np.array(["S1", "S2", "S3"])[order % 3],
        "tissue": np.array(["liver", "lung"])[order // 3 % 2],
        "patient": order // 12,
        "week": order // 40,
    }
    x = rng.normal(size=(ROWS, 6)) + 3.0 * (by["tissue"] == "lung")[:, None] + shift * (by["scanner"] == "S3")[:, None]
    return x, by
