"""Records kept while slides are cut: a picture of each slide, and the share of tiles that groups keep."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist

import numpy as np

from crossfusion._base import arg, label_text, warn
from crossfusion.io import show_path
from crossfusion.pathology.images import compute_digest
from crossfusion.pathology.tiles import Tile
from crossfusion.pathology.tissue import CutSlide
from crossfusion.pathology.tissue_pictures import write_picture

MIN_RATIO = 0.8  # of the smallest to the largest mean share of a factor's groups; below it, they differ clearly
CHANCE = 0.01  # probability that slides of one population exceed what counts as chance, over all pairs of groups
MAX_SINGLE_SLIDES = 5  # groups of one slide each; more of them are names of slides, not groups
SLIDE_FACTOR = "slide"  # names slides, so its values are not groups of them
MAX_NAME_LENGTH = 60  # characters of a picture's name before its ending


@dataclass
class Survey:
    """The files of a data set while their tiles are listed.

    Parameters
    ----------
    progress : callable
        Called with the number of files that were finished.
    pictures : Path, optional
        Folder for a picture of each slide that is cut.
    """

    progress: Callable[[int], None] = lambda _: None
    pictures: Path | None = None
    _shares: list[tuple[Mapping[str, str], float]] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def finish_file(self) -> None:
        """Count one more file as finished."""
        self.progress(1)

    def add(self, slide: CutSlide, chosen: Sequence[Tile]) -> None:
        """Record a slide and the tiles that were chosen from it, and write its picture."""
        if slide.grid:
            self._shares.append((slide.factors, slide.kept))
        if self.pictures is not None:
            write_picture(self.pictures / self._name_picture(slide.key), slide, chosen)

    def _name_picture(self, key: str) -> str:
        """A file name made from a slide's key, with a digest if another slide has taken the name."""
        name = re.sub(r"[^\w.=+ -]+", "_", key)[-MAX_NAME_LENGTH:].strip("_. ") or SLIDE_FACTOR
        if self._names.setdefault(name.casefold(), key) != key:
            name = f"{name}-{compute_digest([key.encode('utf-8', 'surrogateescape')])[:8]}"
        return f"{name}.png"

    def warn_about_shares(self) -> None:
        """Warn about each factor whose groups keep clearly different shares of their tiles."""
        for name in dict.fromkeys(name for factors, _ in self._shares for name in factors):
            groups: dict[str, list[float]] = {}
            for factors, share in self._shares:
                groups.setdefault(factors[name], []).append(share)
            ends = _find_difference(groups) if name != SLIDE_FACTOR else None
            if ends is not None:
                shares = [f"{np.mean(groups[end]):.0%} of the tiles of {name}={label_text(end)}" for end in ends]
                warn(
                    f"tissue was found in {shares[0]}, but in {shares[1]}",
                    f"before comparing them, {self._say_where_to_look()} that tissue is detected equally well in both",
                )

    def _say_where_to_look(self) -> str:
        if self.pictures is None:
            return f"write pictures of the slides with {arg('pictures')} and check"
        return f"check in the pictures in {show_path(self.pictures)}"


def _find_difference(groups: Mapping[str, Sequence[float]]) -> tuple[str, str] | None:
    """The groups with the smallest and the largest mean share, if these differ clearly.

    They do if their ratio is below `MIN_RATIO` and their difference is unlikely by chance: measured in its standard
    error, from the pooled variance of slides within groups, it exceeds the normal quantile for all pairs of groups
    (Bonferroni). If every group has one slide, there is no such variance, and the ratio decides.
    """
    means = {name: float(np.mean(shares)) for name, shares in groups.items()}
    low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    if means[low] >= MIN_RATIO * means[high]:
        return None
    freedom = sum(map(len, groups.values())) - len(groups)
    if freedom == 0:
        return (low, high) if len(groups) <= MAX_SINGLE_SLIDES else None
    within = sum(float(np.var(shares)) * len(shares) for shares in groups.values()) / freedom
    error = np.sqrt(within * (1 / len(groups[low]) + 1 / len(groups[high])))
    pairs = len(groups) * (len(groups) - 1) / 2
    least = NormalDist().inv_cdf(1 - CHANCE / (2 * pairs)) * error
    return (low, high) if means[high] - means[low] > least else None
