"""Images that look stained: two stains in known amounts, as some scanner would show them."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

HE = np.array([[0.65, 0.70, 0.29], [0.15, 0.95, 0.28]])  # colours of haematoxylin and eosin, in optical density
OTHER = np.array([[0.50, 0.75, 0.43], [0.20, 0.90, 0.38]])  # and as another laboratory has them
BLANK = np.full((64, 64, 3), 243, np.uint8)


def stained(seed=0, colours=HE, amount=1.0, side=96):
    """A tile of nuclei in a ground of eosin, with some glass that is clear."""
    draw = np.random.default_rng(seed)
    rows, columns = np.mgrid[:side, :side]
    nuclei = np.zeros((side, side))
    for _ in range(10):
        y, x = draw.integers(0, side, 2)
        nuclei += np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * draw.uniform(3, 7) ** 2))
    ground = 0.5 + 0.4 * np.sin(columns / 9 + draw.uniform(0, 6)) * np.cos(rows / 7)
    amounts = amount * np.stack([1.5 * nuclei.clip(0, 1), ground * (nuclei < 0.5)], axis=-1)
    amounts[: side // 6] = 0
    density = (amounts + draw.normal(0, 0.02, amounts.shape)) @ colours
    return np.clip(240 * np.exp(-density), 0, 255).astype(np.uint8)


def write_tiles(folder, number=12, side=96):
    """Images in a folder, and their tiles."""
    from crossfusion.pathology.tiles import Tile

    tiles = []
    for k in range(number):
        path = folder / f"{k:03d}.png"
        Image.fromarray(stained(k, (HE, OTHER)[k % 2], side=side)).save(path)
        tiles.append(Tile(str(path), f"tile {k}", {"scanner": "AB"[k % 2], "slide": f"0{k // 4}"}))
    return tiles


def export(module, path, example):
    """Write a module as ONNX with any number and size of images."""
    import torch

    sides = {0: torch.export.Dim("n"), 2: torch.export.Dim("h"), 3: torch.export.Dim("w")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the exporter, about itself
        torch.onnx.export(module.eval(), (example,), path, dynamic_shapes=(sides,), dynamo=True, verbose=False)
    return path


def real_images(folder, step):
    """Every so manieth real image; the test is skipped where there are none."""
    found = Path(os.environ.get("CROSSFUSION_DATA", Path(__file__).parents[3] / "shared" / "data")) / folder
    if not found.is_dir():
        pytest.skip(f"there is no folder {found}: set CROSSFUSION_DATA")
    paths = sorted(path for path in found.rglob("*") if path.suffix in (".jpg", ".png"))[::step]
    return {path: np.asarray(Image.open(path).convert("RGB")) for path in paths}
