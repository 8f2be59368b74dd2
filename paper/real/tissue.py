"""The data sets that come as images of tissue: normalised, encoded, and put side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion.pathology import Tile, choose_reference, embed, normalizer, read_layout
from crossfusion.study import Dataset, make_folder
from paper.real.folder import PLACES, Embeddings, read_embeddings

ENCODER = "efficientnet_lite0"
REFERENCE = "hamamatsu"  # the scanner that images are normalised to, as StainGAN's renderings of Aperio are
SIDE = 256  # of a crop
CROPS = ((0, 0), (SIDE, 0), (0, SIDE), (SIDE, SIDE))
FEW_SLIDES, FEW_POSITIONS = 3, 8  # of a first look
Tell = Callable[[str], None]


def encode_set(
    tiles: Sequence[Tile], out: Path, name: str, way: str, reference: Tile | None, workers: int | None, tell: Tell
) -> Embeddings:
    """Vectors of tiles after a normalisation, kept in a table of that name."""
    path = make_folder(out / "embeddings") / f"{name}.parquet"
    done = 0

    def progress(more: int) -> None:
        nonlocal done
        done += more
        tell(f"encoding {name}: {done} of {len(tiles)} tiles")

    normalize = normalizer(way, reference)
    embed(tiles, path, encoder=ENCODER, normalizer=normalize, workers=workers, progress=progress)
    return read_embeddings(path, list(tiles[0].factors))


def read_mitos(folder: Path, out: Path, quick: bool, workers: int | None, tell: Tell) -> Dataset:
    """The same tissue on two scanners, as scanned and after stain normalisations.

    Parameters
    ----------
    folder : path
        Of the data.
    out : path
        Of the results; embeddings are kept there.
    quick : bool
        Some slides and positions, and fewer normalisations.
    workers : int, optional
        Threads that read and normalise.
    tell : function
        Shown what is being done.

    Returns
    -------
    Dataset
        Scanners as domains, slides as labels, places on a slide as units.
    """
    tiles = read_layout(folder / PLACES["mitos_he"])
    tiles = _sample_tiles(tiles) if quick else tiles
    scanned = [tile for tile in tiles if tile.factors["normalization"] == "none"]
    reference = choose_reference([tile for tile in scanned if tile.factors["scanner"] == REFERENCE])
    raw = encode_set(tiles, out, "mitos_he-raw", "none", None, workers, tell)
    order = _places(raw, {"aperio": "none", "hamamatsu": "none"})
    versions: dict[str, Any] = {"none": raw.x[order]}
    for way in ("macenko",) if quick else ("reinhard", "macenko"):
        found = encode_set(scanned, out, f"mitos_he-{way}", way, reference, workers, tell)
        versions[way] = found.x[_places(found, {"aperio": "none", "hamamatsu": "none"})]
    versions["staingan"] = raw.x[_places(raw, {"aperio": "staingan", "hamamatsu": "none"})]
    versions["staingan reversed"] = raw.x[_places(raw, {"aperio": "none", "hamamatsu": "staingan"})]
    own = raw.take(order).factors
    note = (
        f"The same tissue on two scanners, registered pairs, by {ENCODER}. The label is the slide, a unit is a place on"
        f" a slide, which is held out on both scanners at once. Reinhard and Macenko: tiles of both scanners normalised"
        f" to {reference.key}, the most ordinary tile of {REFERENCE}. StainGAN: Aperio's tiles as a CycleGAN renders"
        " them in Hamamatsu's style, against Hamamatsu's own; reversed, the other way round."
    )
    units = [f"{slide}/{position}" for slide, position in zip(own["slide"], own["position"], strict=True)]
    return Dataset("mitos_he", versions, versions["none"], own["scanner"], own["slide"], units, note)


def _sample_tiles(tiles: Sequence[Tile]) -> list[Tile]:
    kept = {name: sorted({tile.factors[name] for tile in tiles}) for name in ("slide", "position")}
    slides, positions = kept["slide"][:FEW_SLIDES], kept["position"][:FEW_POSITIONS]
    return [tile for tile in tiles if tile.factors["slide"] in slides and tile.factors["position"] in positions]


def _places(found: Embeddings, wanted: Mapping[str, str]) -> Any:
    """Rows of each scanner in the normalisation wanted of it, ordered by scanner, slide and position."""
    columns = [found.factors[name] for name in ("scanner", "slide", "position", "normalization")]
    rows = sorted(
        (scanner, slide, position, k)
        for k, (scanner, slide, position, way) in enumerate(zip(*columns, strict=True))
        if wanted.get(scanner) == way
    )
    return np.array([row[-1] for row in rows])


def read_camelyon(folder: Path, out: Path, quick: bool, workers: int | None, tell: Tell) -> Dataset:
    """Tiles of five centres, each cut into four, as scanned and after Macenko's normalisation.

    Parameters
    ----------
    folder, out, quick, workers, tell
        As in `read_mitos`; a first look takes two crops of each tile.

    Returns
    -------
    Dataset
        Centres as domains, tiles as units, no labels.
    """
    whole = read_layout(folder / PLACES["camelyon17_he"])
    reference = choose_reference(whole)
    crops = [
        replace(tile, key=f"{tile.key} {k}", factors={**tile.factors, "tile": tile.key}, box=(*corner, SIDE, SIDE))
        for tile in whole
        for k, corner in enumerate(CROPS[: 2 if quick else None])
    ]
    raw = encode_set(crops, out, "camelyon17_he-raw", "none", None, workers, tell)
    after = encode_set(crops, out, "camelyon17_he-macenko", "macenko", reference, workers, tell)
    note = (
        f"Tiles of five centres, five each, cut into {len(crops) // len(whole)} of {SIDE} pixels, by {ENCODER}; a unit"
        f" is a tile. Macenko: normalised to {reference.key}, the most ordinary of all tiles. Five tiles tell more"
        " about their tissue than about their centre."
    )
    own = raw.factors
    return Dataset("camelyon17_he", {"macenko": after.x}, raw.x, own["centre"], None, own["tile"], note)
