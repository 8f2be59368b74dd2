"""Slides whose stains and labels are known: each scanner or centre shows the same kind of tissue in its own colours."""

import numpy as np

from tests.helpers.stained_images import HE, OTHER

STRENGTH = {"Aperio CS2": (HE, 1.0), "Hamamatsu S360": (HE, 1.3), "Hamamatsu XR": (OTHER, 1.6)}


def tissue(size, nuclei, colours, strength, seed):
    """Pixels of eosin with nuclei: middle, radius and darkness each."""
    draw = np.random.default_rng(seed)
    rows, columns = np.mgrid[: size[1], : size[0]]
    dark = np.zeros((size[1], size[0]))
    few = [(*draw.uniform(0, size), draw.uniform(2, 4), 0.8) for _ in range(size[0] * size[1] // 900)]
    for x, y, radius, darkness in [*few, *nuclei]:
        near = tuple(slice(max(0, int(at - 4 * radius)), int(at + 4 * radius) + 1) for at in (y, x))
        away = (rows[near] - y) ** 2 + (columns[near] - x) ** 2
        dark[near] = np.maximum(dark[near], darkness * np.exp(-away / (2 * radius**2)))
    ground = 0.5 + 0.3 * np.sin(columns / 9 + draw.uniform(0, 6)) * np.cos(rows / 7)
    amounts = strength * np.stack([dark, ground * (dark < 0.4)], axis=-1)
    density = (amounts + draw.normal(0, 0.02, amounts.shape)) @ colours
    return np.clip(240 * np.exp(-density), 0, 255).astype(np.uint8)


def midog_picture(number, size, annotations):
    """An image of MIDOG: mitotic figures are large and dark, hard negatives small and pale."""
    scanner = ["Hamamatsu XR", "Hamamatsu S360", "Aperio CS2"][(number - 1) // 50]
    nuclei = []
    for entry in annotations:
        left, top, right, bottom = entry["bbox"]
        nuclei.append(((left + right) / 2, (top + bottom) / 2, *((9, 1.6) if entry["category_id"] == 1 else (4, 0.7))))
    return tissue(size, nuclei, *STRENGTH[scanner], seed=number)


def camelyon_picture(name, size):
    """A slide: glass around tissue, and in the left half of a tumour's tissue dense nuclei."""
    kind, number = name.split("_")
    is_radboud = int(number) <= {"normal": 100, "tumor": 70}[kind]
    draw = np.random.default_rng(int(number))
    left, top, width, height = size[0] // 4, size[1] // 4, size[0] // 2, size[1] // 2
    dense = [] if kind == "normal" else [(*draw.uniform(0, (width / 2, height)), 5, 1.4) for _ in range(150)]
    pixels = np.full((size[1], size[0], 3), 243, np.uint8)
    stain = (HE, 1.0) if is_radboud else (OTHER, 1.5)
    pixels[top : top + height, left : left + width] = tissue((width, height), dense, *stain, seed=int(number))
    return pixels
