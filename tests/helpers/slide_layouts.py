"""Miniature data sets of tissue, in the layouts in which real ones are distributed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from PIL import Image

GLASS = 243  # brightness of a slide without tissue


def tissue_picture(width, height, spots=((0.25, 0.25, 0.75, 0.75),), seed=0):
    """Pixels of a slide: pink tissue in some boxes, given as shares of the picture, on bright glass."""
    draw = np.random.default_rng(seed)
    pixels = np.clip(draw.normal(GLASS, 1.5, (height, width, 1)), 0, 255).repeat(3, axis=2)
    for left, top, right, bottom in spots:
        rows, columns = slice(int(top * height), int(bottom * height)), slice(int(left * width), int(right * width))
        shape = pixels[rows, columns].shape[:2]
        pixels[rows, columns] = (
            np.array([190, 110, 170]) + draw.normal(0, 12, (*shape, 1)) + draw.normal(0, 4, (*shape, 3))
        )
    return np.clip(pixels, 0, 255).astype(np.uint8)


def write_slide(path, pixels, mpp=0.25, levels=3, compression="deflate", tile=(128, 128)):
    """A pyramidal TIFF in tiles, each level half of the one before; `mpp` None leaves the resolution out."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with tifffile.TiffWriter(path) as writer:
        for level in range(levels):
            step = 2**level
            whole = pixels[: pixels.shape[0] // step * step, : pixels.shape[1] // step * step].astype(np.float64)
            part = whole.reshape(whole.shape[0] // step, step, whole.shape[1] // step, step, 3).mean(axis=(1, 3))
            known = {} if mpp is None else {"resolution": (1e4 / (mpp * step),) * 2, "resolutionunit": "CENTIMETER"}
            writer.write(
                part.round().astype(np.uint8),
                photometric="rgb",
                tile=tile,
                compression=compression,
                subfiletype=int(level > 0),
                metadata=None,
                **known,
            )
    return str(path)


def write_image(path, pixels):
    """An ordinary image."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)
    return str(path)


def write_manifest(folder, scanners=("aperio", "hamamatsu"), slides=("03", "04"), positions=2, side=48):
    """A folder with `manifest.csv` and an image for each scanner, slide and position."""
    lines = ["file,scanner,slide,position"]
    for number, (scanner, slide, position) in enumerate(
        (scanner, slide, position) for scanner in scanners for slide in slides for position in range(positions)
    ):
        name = f"{scanner}/{slide}_{position}.png"
        write_image(Path(folder, name), tissue_picture(side, side, [(0, 0, 1, 1)], seed=number))
        lines.append(f"{name},{scanner},{slide},{position}")
    Path(folder, "manifest.csv").write_text("\n".join(lines) + "\n")
    return str(folder)


def midog_json(images=(1, 2, 51, 52, 101, 102), size=(300, 200), per_image=4, seed=0):
    """Contents of MIDOG.json: boxes of 50 × 50 pixels as left, top, right, bottom, some reaching over the edge."""
    draw = np.random.default_rng(seed)
    annotations: list[dict[str, Any]] = []
    for image in images:
        for number in range(per_image):
            x, y = (int(draw.integers(0, limit)) for limit in size)
            annotations.append(
                {
                    "bbox": [x - 25, y - 25, x + 25, y + 25],
                    "category_id": 1 + number % 2,
                    "image_id": image,
                    "id": len(annotations) + 1,
                    "labels": [],
                }
            )
    listed = [*images, 151]  # an image of the fourth scanner, which has no annotations
    return {
        "info": {"description": "miniature"},
        "licenses": [],
        "images": [
            {"id": k, "file_name": f"{k:03d}.tiff", "width": size[0], "height": size[1], "license": 1} for k in listed
        ],
        "categories": [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}],
        "annotations": annotations,
    }


def write_midog(folder, images=(1, 2, 51, 52, 101, 102), size=(300, 200), per_image=4, mpp=0.25, paint=None):
    """MIDOG.json, and images/NNN.tiff in tiles without smaller levels; `paint` makes pixels of number and boxes."""
    found = midog_json(images, size, per_image)
    for image in images:
        if paint is None:
            pixels = tissue_picture(size[0], size[1], [(0, 0, 1, 1)], seed=image)
        else:
            pixels = paint(image, size, [entry for entry in found["annotations"] if entry["image_id"] == image])
        write_slide(Path(folder, "images", f"{image:03d}.tiff"), pixels, mpp=mpp, levels=1)
    Path(folder, "MIDOG.json").write_text(json.dumps(found))
    return str(folder)


def asap_xml(outlines):
    """A file of ASAP: pairs of a group's name and corners."""
    entries = [
        f'<Annotation Name="Annotation {k}" Type="Polygon" PartOfGroup="{group}" Color="#F4FA58"><Coordinates>'
        + "".join(f'<Coordinate Order="{n}" X="{x}" Y="{y}" />' for n, (x, y) in enumerate(corners))
        + "</Coordinates></Annotation>"
        for k, (group, corners) in enumerate(outlines)
    ]
    group = '<Group Name="_0" PartOfGroup="None" Color="#00ff00"><Attributes /></Group>'
    found = f"<Annotations>{''.join(entries)}</Annotations><AnnotationGroups>{group}</AnnotationGroups>"
    return f'<?xml version="1.0"?>\n<ASAP_Annotations>{found}</ASAP_Annotations>'


def square(left, top, side):
    """Corners of a square."""
    return [(left, top), (left + side, top), (left + side, top + side), (left, top + side)]


def write_camelyon16(
    folder,
    slides=("normal_001", "normal_101", "tumor_001", "tumor_071"),
    outlines=True,
    width=768,
    height=512,
    paint=None,
):
    """Pyramidal slides in training/normal, training/tumor and testing/images, and outlines of the tumours.

    `paint` makes pixels of a slide's name and size.
    """
    for seed, name in enumerate(slides):
        kind = name.split("_")[0]
        place = Path(folder, *(("testing", "images") if kind == "test" else ("training", kind)))
        spots = [(0.25, 0.25, 0.75, 0.75)]
        pixels = tissue_picture(width, height, spots, seed=seed) if paint is None else paint(name, (width, height))
        write_slide(place / f"{name}.tif", pixels)
        if kind == "tumor" and outlines:
            tumour = ("_0", square(width / 4, height / 4, width / 4)), ("_2", square(width / 4, height / 4, 60))
            xml = Path(folder, "training", "lesion_annotations", f"{name}.xml")
            xml.parent.mkdir(exist_ok=True, parents=True)
            xml.write_text(asap_xml(tumour))
    return str(folder)
