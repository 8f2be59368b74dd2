"""Outlines of lesions as ASAP writes them, and which points lie inside."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError
from crossfusion.io import check_file, show_path, translate_errors

TUMOR = ("_0", "_1", "Tumor")  # groups of outlines in the files of Camelyon16
NORMAL = ("_2", "Exclusion", "None")  # of tissue within those that is not tumor

Points = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lesions:
    """Outlines of tumor, and of holes in them, in pixels of the full resolution."""

    tumor: Sequence[Points]
    normal: Sequence[Points]

    def contain_points(self, points: Points) -> NDArray[np.bool_]:
        """Which points lie in a tumor and not in a hole."""
        return _are_in_any(points, self.tumor) & ~_are_in_any(points, self.normal)


def read_lesions(path: Path) -> Lesions:
    """Read a file of ASAP."""
    check_file(path)
    with translate_errors(str(path), "cannot be read as outlines of ASAP"):
        if b"<!DOCTYPE" in path.read_bytes():
            raise FileError(
                show_path(path), "declares a document type, which files of ASAP do not", "take the original"
            )
        found: dict[str, list[Points]] = {"tumor": [], "normal": []}
        for entry in ElementTree.parse(path).getroot().iter("Annotation"):
            group = entry.get("PartOfGroup", "")
            if group not in (*TUMOR, *NORMAL):
                raise FileError(
                    show_path(path), f"has outlines of the group {group!r}", "known are _0, _1, Tumor, _2, Exclusion"
                )
            found["tumor" if group in TUMOR else "normal"].append(_read_outline(entry))
    return Lesions(**found)


def _read_outline(entry: ElementTree.Element) -> Points:
    places = sorted(entry.iter("Coordinate"), key=lambda place: float(place.get("Order", "0")))
    points = np.array([[float(place.attrib[axis]) for axis in ("X", "Y")] for place in places], float).reshape(-1, 2)
    if not np.isfinite(points).all():
        raise ValueError("coordinates are not finite")
    return points


def _are_in_any(points: Points, outlines: Sequence[Points]) -> NDArray[np.bool_]:
    inside = np.zeros(len(points), bool)
    for outline in outlines:
        inside |= _are_inside(points, outline)
    return inside


def _are_inside(points: Points, outline: Points) -> NDArray[np.bool_]:
    """Whether a ray from each point to the right crosses the outline an odd number of times."""
    odd = np.zeros(len(points), bool)
    if not len(outline):
        return odd
    near = np.flatnonzero(((points >= outline.min(axis=0)) & (points <= outline.max(axis=0))).all(axis=1))
    x, y = points[near].T
    for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
        if y0 != y1:
            odd[near] ^= ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return odd
