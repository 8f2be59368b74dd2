"""Tiles of slides and images: pixels, layouts as distributed, and what is refused."""

# mypy: disable-error-code="index,misc"

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import crossfusion as cf
from crossfusion._base import optional
from crossfusion.pathology import Tile, read_layout, slide_files, tissue
from crossfusion.pathology import tiles as tiles_module
from crossfusion.pathology.layouts import count_tiles
from crossfusion.pathology.lesions import read_lesions
from tests.helpers import slide_layouts as slides
from tests.helpers.command_line import fails, run, run_json
from tests.helpers.missing_libraries import without

READERS = {"openslide": slide_files._OpenSlide, "tiffslide": slide_files._TiffSlide}


@pytest.fixture(params=READERS)
def reader(request, monkeypatch):
    """Each library of slides alone."""
    other = next(name for name in READERS if name != request.param)
    load = optional.load

    def only(module, *details):
        if module == other:
            raise cf.MissingDependencyError(*details)
        return load(module, *details)

    monkeypatch.setattr(optional, "load", only)
    return request.param


@pytest.fixture
def slide(tmp_path):
    pixels = slides.tissue_picture(768, 512)
    return slides.write_slide(tmp_path / "s.tif", pixels), pixels


def close_kept():
    while tiles_module._open_files.files:
        tiles_module._open_files.files.popitem()[1].close()


# pixels


def test_a_region_at_full_resolution_is_the_pixels(slide, reader):
    path, pixels = slide
    found = Tile(path, "k", {}, box=(101, 57, 200, 150)).read()
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, pixels[57:207, 101:301])
    close_kept()


@pytest.mark.parametrize("factor", [2, 3, 4, 6])
def test_a_scaled_region_is_the_average_of_its_pixels(slide, reader, factor):
    path, pixels = slide
    found = Tile(path, "k", {}, box=(96, 48, 480, 384), size=(480 // factor, 384 // factor)).read()
    whole = pixels[48:432, 96:576].astype(float)
    expected = whole.reshape(384 // factor, factor, 480 // factor, factor, 3).mean(axis=(1, 3))
    assert found.shape == expected.shape
    assert abs(found.mean(axis=(0, 1)) - expected.mean(axis=(0, 1))).max() < 0.5
    centred = expected - expected.mean()
    assert (centred * (found - expected.mean())).sum() / (centred**2).sum() == pytest.approx(1, abs=0.05)
    close_kept()


def test_both_libraries_give_the_same_pixels(slide):
    path, _ = slide
    one, other = (reader(path) for reader in READERS.values())
    assert one.size == other.size == (768, 512)
    assert one.mpp == other.mpp == (0.25, 0.25)
    assert one.levels == other.levels == 3
    for box, size in [((0, 0, 768, 512), (96, 64)), ((33, 71, 240, 250), (77, 80)), ((700, 500, 68, 12), (68, 12))]:
        np.testing.assert_array_equal(one.read_region(box, size), other.read_region(box, size))
    one.close()
    other.close()


def test_pixels_over_the_edge_are_mirrored(tmp_path):
    pixels = slides.tissue_picture(60, 40, [(0, 0, 1, 1)])
    path = slides.write_image(tmp_path / "a.png", pixels)
    found = Tile(path, "k", {}, box=(-10, 20, 30, 30)).read()
    np.testing.assert_array_equal(found, np.pad(pixels, ((0, 10), (10, 0), (0, 0)), mode="symmetric")[20:50, :30])
    halved = Tile(path, "k", {}, box=(-10, 20, 30, 30), size=(15, 15)).read()
    assert halved.shape == (15, 15, 3)
    np.testing.assert_array_equal(halved[:, :5], halved[:, 9:4:-1])


def test_a_box_outside_of_the_picture_is_refused(tmp_path, refuses):
    path = slides.write_image(tmp_path / "a.png", slides.tissue_picture(60, 40))
    with refuses(r"a\.png has 60 × 40 pixels, so the box \(60, 0, 8, 8\) lies outside", cf.FileError):
        Tile(path, "k", {}, box=(60, 0, 8, 8)).read()


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1", "LA"])
def test_any_kind_of_image_is_rgb(tmp_path, mode):
    image = Image.fromarray(slides.tissue_picture(20, 10)).convert(mode)
    path = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    image.save(path)
    assert Tile(str(path), "k", {}).read().shape == (10, 20, 3)


def test_what_is_transparent_is_white(tmp_path):
    pixels = np.zeros((4, 4, 4), np.uint8)
    pixels[0] = (10, 20, 30, 255)
    path = slides.write_image(tmp_path / "a.png", pixels)
    found = Tile(path, "k", {}).read()
    assert found[0].tolist() == [[10, 20, 30]] * 4
    assert (found[1:] == 255).all()


def test_tiles_travel_and_are_read_by_many_threads(slide):
    path, pixels = slide
    boxes = [(x, y, 64, 64) for y in range(0, 512, 64) for x in range(0, 768, 64)]
    wanted = pickle.loads(pickle.dumps([Tile(path, f"{box}", {"a": "b"}, box) for box in boxes]))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(Tile.read, wanted * 2))
    for tile, read in zip(wanted * 2, found, strict=True):
        left, top = tile.box[:2]
        np.testing.assert_array_equal(read, pixels[top : top + 64, left : left + 64])
    assert len({*wanted}) == len(boxes)


def test_a_slide_is_opened_once_for_all_its_tiles(slide, monkeypatch):
    path, _ = slide
    close_kept()
    opened = []

    def noted(name):
        opened.append(name)
        return slide_files.open_slide_file(name)

    monkeypatch.setattr(tiles_module, "open_slide_file", noted)
    copies = [path, *(shutil.copy(path, f"{path[:-4]}{k}.tif") for k in range(2))]
    for left in range(0, 400, 40):
        for copy in copies[:2]:  # a pair that alternates stays open
            Tile(copy, "k", {}, (left, 0, 40, 40)).read()
    assert opened == copies[:2]
    Tile(copies[2], "k", {}, (0, 0, 40, 40)).read()
    assert len(tiles_module._open_files.files) == tiles_module.MAX_OPEN_FILES
    close_kept()


def test_a_file_that_was_replaced_is_read_anew(tmp_path):
    path = slides.write_image(tmp_path / "a.png", np.full((20, 20, 3), 10, np.uint8))
    tile = Tile(path, "k", {}, (0, 0, 5, 5))
    assert tile.read()[0, 0, 0] == 10
    slides.write_image(path, np.full((30, 30, 3), 200, np.uint8))
    assert tile.read()[0, 0, 0] == 200


def test_nothing_is_left_open_at_the_end(slide, python):
    code = f"""
from concurrent.futures import ThreadPoolExecutor
from crossfusion.pathology import Tile, slide_files
tile = Tile({slide[0]!r}, "k", {{}}, (0, 0, 9, 9))
with ThreadPoolExecutor(2) as pool:
    print(sum(found.shape[0] for found in pool.map(Tile.read, [tile] * 4)), tile.read().shape)
"""
    assert python(code) == python(without("openslide") + code) == "36 (9, 9, 3)"


def test_a_missing_library_is_named(slide, python):
    code = f"""
from crossfusion.pathology import Tile
try:
    Tile({slide[0]!r}, "k", {{}}, (0, 0, 9, 9)).read()
except ImportError as problem:
    print(type(problem).__name__, problem)
"""
    hidden = without("openslide") + without("tiffslide").replace("Hidden", "Hidden2")
    expected = "s.tif needs OpenSlide or tiffslide, which is not installed: pip install 'crossfusion[pathology]'"
    assert python(hidden + code).endswith(expected)
    assert "needs Pillow" in python(without("PIL") + code)


def test_the_package_is_light(python):
    heavy = {"PIL", "openslide", "tiffslide", "tifffile", "zarr", "pyarrow", "torch"}
    code = "import sys, crossfusion.pathology.layouts; print(*sys.modules)"
    assert {name.partition(".")[0] for name in python(code).split()}.isdisjoint(heavy)


def test_slides_compressed_as_jpeg_look_the_same_by_both(tmp_path):
    pixels = slides.tissue_picture(512, 512)
    path = slides.write_slide(tmp_path / "s.tif", pixels, compression="jpeg")
    one, other = (reader(path).read_region((60, 70, 256, 256), (128, 128)).astype(int) for reader in READERS.values())
    assert abs(one - other).max() <= 3  # two decoders
    assert abs(one.mean(axis=(0, 1)) - pixels[70:326, 60:316].mean(axis=(0, 1))).max() < 1


# tissue


def test_the_mask_finds_tissue_and_nothing_on_glass():
    pixels = slides.tissue_picture(200, 100, [(0.2, 0.3, 0.6, 0.8)])
    expected = np.zeros((100, 200), bool)
    expected[30:80, 40:120] = True
    assert (tissue.find_tissue(pixels) == expected).mean() > 0.995
    assert not tissue.find_tissue(slides.tissue_picture(200, 100, [])).any()
    assert tissue.find_tissue(slides.tissue_picture(200, 100, [(0, 0, 1, 1)])).mean() > 0.99
    assert not tissue.find_tissue(np.zeros((50, 50, 3), np.uint8)).any()


@pytest.mark.parametrize(("mpp", "side"), [(0.25, 64), (0.5, 128), (1.0, 256)])
def test_tiles_cover_the_microns_that_are_asked_for(slide, mpp, side):
    path, _ = slide
    found = read_layout(path, "slides", mpp=mpp, size=64, tissue=0.4)
    assert {tile.box[2:] for tile in found} == {(side, side)}
    assert {tile.size for tile in found} == {(64, 64)}
    assert all(tile.box[0] % side == tile.box[1] % side == 0 for tile in found)
    for tile in found:  # tissue lies from 192 to 576 and from 128 to 384
        across = min(tile.box[0] + side, 576) - max(tile.box[0], 192)
        down = min(tile.box[1] + side, 384) - max(tile.box[1], 128)
        assert across * down / side**2 >= 0.4
    assert len(found) == {64: 24, 128: 8, 256: 2}[side]
    assert found[0].read().shape == (64, 64, 3)


def test_all_tiles_without_a_wish_for_tissue_and_few_with_a_limit(slide):
    path, _ = slide
    assert len(read_layout(path, "slides", mpp=0.25, size=64, tissue=0)) == 12 * 8
    chosen = [read_layout(path, "slides", mpp=0.25, size=64, per_slide=5, seed=seed) for seed in (0, 0, 1)]
    assert [len(tiles) for tiles in chosen] == [5, 5, 5]
    assert chosen[0] == chosen[1] != chosen[2]
    everything = [tile.key for tile in read_layout(path, "slides", mpp=0.25, size=64)]
    assert [key for key in everything if key in {tile.key for tile in chosen[0]}] == [tile.key for tile in chosen[0]]


def test_what_is_drawn_of_a_slide_does_not_depend_on_others(tmp_path):
    for name in ("b", "c"):
        slides.write_slide(tmp_path / "all" / f"{name}.tif", slides.tissue_picture(512, 512))
    alone = read_layout(tmp_path / "all", "slides", mpp=0.25, size=64, per_slide=3)
    assert [tile.box for tile in alone[:3]] != [tile.box for tile in alone[3:]]
    slides.write_slide(tmp_path / "all" / "a.tif", slides.tissue_picture(512, 512))
    more = read_layout(tmp_path / "all", "slides", mpp=0.25, size=64, per_slide=3)
    assert [tile for tile in more if tile.factors["slide"] != "a"] == alone


def test_slides_without_a_resolution(tmp_path, refuses):
    pixels = slides.tissue_picture(512, 512)
    path = slides.write_slide(tmp_path / "s.tif", pixels, mpp=None)
    for options in ({}, {"mpp": 0.5}, {"tissue": 0}):
        with refuses(r"s\.tif does not state its resolution, .*: pass slide_mpp with its µm per pixel"):
            read_layout(path, "slides", **options)
    found = read_layout(path, "slides", size=64, slide_mpp=0.25)
    assert {tile.box[2:] for tile in found} == {(128, 128)}
    told = slides.write_slide(tmp_path / "t.tif", pixels, mpp=0.5)
    assert {tile.box[2:] for tile in read_layout(told, "slides", size=64, slide_mpp=0.25)} == {(64, 64)}
    with pytest.warns(cf.CrossfusionWarning, match=r"t\.tif has 0\.5 µm per pixel: its tiles are enlarged to 0\.25"):
        read_layout(told, "slides", size=64, mpp=0.25)


def test_slides_without_tissue(tmp_path, refuses):
    slides.write_slide(tmp_path / "blank.tif", slides.tissue_picture(512, 512, []))
    with (
        pytest.warns(cf.CrossfusionWarning, match=r"blank\.tif has no tile of 128 × 128 pixels with 50% tissue"),
        refuses("has no tiles: ask for less tissue", cf.FileError),
    ):
        read_layout(tmp_path, "slides", size=64)
    slides.write_slide(tmp_path / "full.tif", slides.tissue_picture(512, 512))
    with pytest.warns(cf.CrossfusionWarning, match="it is left out"):
        found = read_layout(tmp_path, "slides", size=64)
    assert {tile.factors["slide"] for tile in found} == {"full"}


def test_a_large_picture_without_levels_is_looked_at_in_bands(tmp_path, monkeypatch):
    pixels = slides.tissue_picture(768, 512)
    path = slides.write_slide(tmp_path / "flat.tif", pixels, levels=1)
    once = read_layout(path, "slides", mpp=0.25, size=64)
    monkeypatch.setattr(tissue, "BAND_PIXELS", 40_000)
    assert read_layout(path, "slides", mpp=0.25, size=64) == once


# manifests and folders


def test_a_manifest_gives_files_and_factors_as_text(tmp_path):
    found = read_layout(slides.write_manifest(tmp_path))
    assert found == read_layout(tmp_path / "manifest.csv")
    assert len(found) == 8
    assert found[0].key == "aperio/03_0.png"
    assert found[0].factors == {"scanner": "aperio", "slide": "03", "position": "0"}
    assert found[0].read().shape == (48, 48, 3)
    assert count_tiles(found)["slide"] == {"03": 4, "04": 4}


def test_whole_images_have_no_tiles_to_choose_from(tmp_path):
    folder = slides.write_manifest(tmp_path)
    with pytest.warns(cf.CrossfusionWarning, match="per_slide has no effect on images that are taken whole"):
        assert len(read_layout(folder, per_slide=1)) == 8


def test_a_manifest_of_slides_is_cut_and_of_plain_tiff_is_not(tmp_path):
    pixels = slides.tissue_picture(512, 512)
    slides.write_slide(tmp_path / "s.tif", pixels)
    slides.write_slide(tmp_path / "one.tif", pixels, levels=1)
    slides.write_image(tmp_path / "plain.tif", pixels)
    (tmp_path / "m.tsv").write_text("site\tfile\nA\ts.tif\nB\tone.tif\nC\tplain.tif\n")
    found = read_layout(tmp_path / "m.tsv", size=64)
    assert count_tiles(found) == {"site": {"A": 4, "B": 1, "C": 1}}
    assert [tile.key for tile in found if tile.box] == [
        "s.tif@128,128",
        "s.tif@256,128",
        "s.tif@128,256",
        "s.tif@256,256",
    ]
    assert {tile.read().shape for tile in found if not tile.box} == {(512, 512, 3)}


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("path,site\na.png,A\n", "has no column 'file': there are 'path', 'site'"),
        ("file,site\na.png,A\nb.png,A\nc.png,A\n", r"names 2 files of 3 that do not exist \(b.png, c.png\)"),
        ("file,site\na.png,A\na.png,B\n", r"names 1 files twice \(a.png\)"),
        ("file,site\na.png,A,B\n", "3 values for 2 columns in line 2"),
        ("file,site\n", "has no rows"),
        ("", "has no column 'file'"),
        ("file,site,site\na.png,A,B\n", "2 columns called 'site'"),
        ("file,site\n,A\n", r"do not exist \(\(empty\)\)"),
        ('file,site\n"a.png,A\n', "cannot be read"),
        ("file,site\na.png,\udc80\n", r"manifest\.csv is not text: name a table as CSV or TSV, in UTF-8"),
    ],
)
def test_manifests_that_cannot_be_used(tmp_path, refuses, text, pattern):
    slides.write_image(tmp_path / "a.png", slides.tissue_picture(20, 20))
    (tmp_path / "manifest.csv").write_bytes(text.encode(errors="surrogateescape"))
    with refuses(pattern, cf.CrossfusionError):
        read_layout(tmp_path)


def test_folders_give_factors_by_their_names(tmp_path):
    pixels = slides.tissue_picture(20, 20)
    for scanner, slide_name in (("A", "01"), ("B", "02")):
        slides.write_image(tmp_path / f"scanner={scanner}" / f"slide={slide_name}" / "x.png", pixels)
    found = read_layout(tmp_path, "folder")
    assert [tile.factors for tile in found] == [{"scanner": "A", "slide": "01"}, {"scanner": "B", "slide": "02"}]
    assert [tile.key for tile in found] == ["scanner=A/slide=01/x.png", "scanner=B/slide=02/x.png"]


def test_folders_without_such_names_are_groups(tmp_path):
    pixels = slides.tissue_picture(20, 20)
    for name in ("cat/1.png", "dog/1.jpg", "dog/2.jpg"):
        slides.write_image(tmp_path / name, pixels)
    (tmp_path / "dog" / "notes.txt").write_text("not an image")
    assert count_tiles(read_layout(tmp_path, "folder")) == {"group": {"cat": 1, "dog": 2}}


def test_folders_of_two_layouts_are_refused(tmp_path, refuses):
    pixels = slides.tissue_picture(20, 20)
    for name in ("site=A/1.png", "B/1.png"):
        slides.write_image(tmp_path / name, pixels)
    with refuses("has no folder site=... in its path"):
        read_layout(tmp_path, "folder")


# MIDOG 2021


def test_midog_as_distributed(tmp_path):
    found = read_layout(slides.write_midog(tmp_path), "midog", size=64)
    assert len(found) == 24
    counts = count_tiles(found)
    assert counts["scanner"] == {"Aperio CS2": 8, "Hamamatsu S360": 8, "Hamamatsu XR": 8}
    assert counts["label"] == {"hard negative": 12, "mitotic figure": 12}
    assert counts["slide"] == dict.fromkeys(("001", "002", "051", "052", "101", "102"), 4)
    assert len({tile.key for tile in found}) == 24
    assert {tile.read().shape for tile in found} == {(64, 64, 3)}
    entry = slides.midog_json()["annotations"][0]
    middle = [(entry["bbox"][k] + entry["bbox"][k + 2]) / 2 for k in (0, 1)]
    assert found[0].box == (*(int(at - 32) for at in middle), 64, 64)
    assert found[0].key == "001/1"


def test_midog_scanners_change_where_the_authors_say(tmp_path):
    images = (1, 50, 51, 100, 101, 150)
    found = read_layout(slides.write_midog(tmp_path, images, per_image=1), "midog", size=16)
    named = {tile.factors["slide"]: tile.factors["scanner"] for tile in found}
    assert list(named) == ["001", "050", "051", "100", "101", "150"]
    assert [*named.values()] == ["Hamamatsu XR"] * 2 + ["Hamamatsu S360"] * 2 + ["Aperio CS2"] * 2


def test_midog_as_downloaded_and_at_other_scales(tmp_path):
    folder = Path(slides.write_midog(tmp_path))
    for file in (folder / "images").iterdir():
        file.rename(folder / file.name)
    full = read_layout(folder / "MIDOG.json", "midog", size=64, per_slide=2)
    assert len(full) == 12
    half = read_layout(folder, "midog", size=32, mpp=0.5, per_slide=2)
    assert [tile.key for tile in half] == [tile.key for tile in full]
    assert [tile.box for tile in half] == [tile.box for tile in full]
    assert half[0].read().shape == (32, 32, 3)


def changed(found, **change):
    found["annotations"][3] |= change
    return found


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        (lambda found: "{", "cannot be read as JSON"),
        (lambda found: [1], "no lists of images and annotations"),
        (lambda found: found | {"annotations": []}, "has no annotations"),
        (lambda found: found | {"annotations": [{"bbox": [0, 0, 1, 1]}]}, "is not as distributed"),
        (lambda found: changed(found, bbox=[200, 150, 50, 50]), r"annotation 4: it must be left, top, right, bottom"),
        (lambda found: changed(found, bbox=[0, 0, float("nan"), 5]), "it must be left, top, right, bottom"),
        (lambda found: changed(found, bbox=[280, 0, 380, 50]), r"001.tiff has 300 × 200 pixels, .* outside \(4\)"),
        (lambda found: changed(found, category_id=3), "category_id=3 in annotation 4: known are 1"),
        (lambda found: changed(found, image_id=7), "images that it does not list \\(7\\)"),
        (lambda found: changed(found, image_id=151), r"annotations of 151\.tiff, and those of MIDOG 2021 are of 001"),
        (lambda found: changed(found, id=1), "annotations with the same id"),
        (lambda found: changed(found, id="x"), "an id is 'x', not a whole number"),
        (
            lambda found: found | {"images": [{"id": k["id"], "file_name": "../x.tiff"} for k in found["images"]]},
            "is not the name of a file",
        ),
    ],
)
def test_midog_that_cannot_be_used(tmp_path, refuses, change, pattern):
    folder = Path(slides.write_midog(tmp_path))
    found = change(slides.midog_json())
    (folder / "MIDOG.json").write_text(found if isinstance(found, str) else json.dumps(found))
    with refuses(pattern, cf.FileError):
        read_layout(folder, "midog", size=64)


def test_midog_names_all_images_that_are_missing(tmp_path, refuses):
    folder = Path(slides.write_midog(tmp_path))
    for name in ("002", "101"):
        (folder / "images" / f"{name}.tiff").unlink()
    with refuses(r"names 2 files of 6 that do not exist \(002.tiff, 101.tiff\)", cf.FileError):
        read_layout(folder, "midog")
    (folder / "MIDOG.json").unlink()
    with refuses("MIDOG.json does not exist", cf.FileError):
        read_layout(folder, "midog")


# Camelyon16


def test_camelyon16_as_distributed(tmp_path):
    folder = slides.write_camelyon16(tmp_path, outlines=False)
    found = read_layout(folder, "camelyon16", mpp=0.25, size=64)
    centres = {tile.factors["slide"]: tile.factors["centre"] for tile in found}
    assert centres == {
        "normal_001": "Radboud",
        "normal_101": "Utrecht",
        "tumor_001": "Radboud",
        "tumor_071": "Utrecht",
    }
    assert count_tiles(found)["kind"] == {"normal": 48, "tumor": 48}
    assert set(found[0].factors) == {"centre", "slide", "kind"}


def test_camelyon16_centres_change_where_the_authors_say(tmp_path):
    names = ("normal_100", "Normal_101", "normal_160", "Tumor_070", "tumor_071", "tumor_111")
    slides.write_camelyon16(tmp_path, names[:0])
    for name in names:
        slides.write_slide(tmp_path / f"{name}.tif", slides.tissue_picture(256, 256))
    found = read_layout(tmp_path, "camelyon16", mpp=0.25, size=64)
    centres = {tile.factors["slide"]: tile.factors["centre"] for tile in found}
    assert [*centres] == sorted(name.lower() for name in names)
    assert [*centres.values()] == ["Radboud", "Utrecht", "Utrecht", "Radboud", "Utrecht", "Utrecht"]


def test_camelyon16_labels_by_outlines(tmp_path):
    folder = slides.write_camelyon16(tmp_path)  # tumour from (192, 128), 192 wide, with a hole of 60 in its corner
    found = read_layout(folder, "camelyon16", mpp=0.25, size=32)
    for tile in found:
        x, y = tile.box[0] + 16, tile.box[1] + 16
        inside = 192 <= x < 384 and 128 <= y < 320 and not (x < 252 and y < 188)
        assert tile.factors["label"] == ("tumor" if inside and tile.factors["kind"] == "tumor" else "normal")
    assert count_tiles(found)["label"] == {"normal": 320, "tumor": 64}
    few = read_layout(folder, "camelyon16", mpp=0.25, size=32, per_slide=7)
    assert count_tiles(few)["slide"] == dict.fromkeys(("normal_001", "normal_101", "tumor_001", "tumor_071"), 7)


def test_camelyon16_slides_that_are_outlined_in_part_give_tumour_only(tmp_path):
    found = read_layout(slides.write_camelyon16(tmp_path, ("tumor_010", "tumor_011")), "camelyon16", mpp=0.25, size=32)
    labels = {(tile.factors["slide"], tile.factors["label"]) for tile in found}
    assert labels == {("tumor_010", "tumor"), ("tumor_011", "tumor"), ("tumor_011", "normal")}


def test_camelyon16_test_slides_need_a_table_of_centres(tmp_path, refuses):
    folder = slides.write_camelyon16(tmp_path, ("normal_001", "test_001", "test_002"))
    with pytest.warns(cf.CrossfusionWarning, match=r"2 slides do not tell their center \(test_001, test_002\)"):
        found = read_layout(folder, "camelyon16", size=64)
    assert {tile.factors["slide"] for tile in found} == {"normal_001"}
    (tmp_path / "centres.csv").write_text("slide,centre,kind\ntest_001.tif,Utrecht,tumor\nTest_002,Radboud,normal\n")
    found = read_layout(folder, "camelyon16", size=64, centres=tmp_path / "centres.csv")
    known = {tile.factors["slide"]: (tile.factors["centre"], tile.factors["kind"]) for tile in found}
    assert known["test_001"] == ("Utrecht", "tumor")
    assert known["test_002"] == ("Radboud", "normal")
    with refuses("centres goes with layout='camelyon16'"):
        read_layout(folder, "slides", centres=tmp_path / "centres.csv")


def test_camelyon16_that_cannot_be_used(tmp_path, refuses):
    with refuses("has no slides called normal_001.tif", cf.FileError):
        read_layout(tmp_path, "camelyon16")
    with refuses("is not a folder", cf.FileError):
        read_layout(tmp_path / "x.tif", "camelyon16")
    folder = Path(slides.write_camelyon16(tmp_path))
    (folder / "training" / "lesion_annotations" / "tumor_071.xml").unlink()
    with refuses(r"1 slides with a tumor have no outlines, while others have \(tumor_071\)", cf.FileError):
        read_layout(folder, "camelyon16")
    shutil.copy(folder / "training" / "tumor" / "tumor_001.tif", folder / "Tumor_001.tif")
    with refuses("are of one slide: keep one of them", cf.FileError):
        read_layout(folder, "camelyon16")
    (folder / "Tumor_001.tif").rename(folder / "tumor_112.tif")
    with refuses("tumor_112 is not a slide of Camelyon16, which ends at tumor_111", cf.FileError):
        read_layout(folder, "camelyon16")


def test_camelyon16_leaves_out_the_slide_that_was_named_wrongly(tmp_path):
    folder = slides.write_camelyon16(tmp_path, ("normal_001", "normal_086"))
    with pytest.warns(cf.CrossfusionWarning, match="normal_086 is left out: it holds a tumor"):
        found = read_layout(folder, "camelyon16", size=64)
    assert {tile.factors["slide"] for tile in found} == {"normal_001"}


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("<ASAP_Annotations>", "cannot be read as outlines of ASAP"),
        (slides.asap_xml([("_9", slides.square(0, 0, 9))]), "outlines of the group '_9'"),
        (slides.asap_xml([("_0", [("a", 1)])]), "cannot be read as outlines"),
        (slides.asap_xml([("_0", [("inf", 1)])]), "coordinates are not finite"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares a document type"),
    ],
)
def test_outlines_that_cannot_be_used(tmp_path, refuses, text, pattern):
    path = tmp_path / "tumor_001.xml"
    path.write_text(text)
    with refuses(pattern, cf.FileError):
        read_lesions(path)


def test_points_in_outlines_that_are_not_convex(tmp_path):
    corners = [(0, 0), (10, 0), (10, 10), (6, 10), (6, 4), (4, 4), (4, 10), (0, 10)]  # a U turned upside down
    path = tmp_path / "a.xml"
    path.write_text(slides.asap_xml([("Tumor", corners), ("Exclusion", slides.square(1, 1, 2))]))
    points = np.array([[5, 2], [5, 7], [2, 7], [8, 9], [2, 2], [-1, 5], [11, 5]], float)
    assert read_lesions(path).contain_points(points).tolist() == [True, False, True, True, False, False, False]


# what is refused


def png_of(width, height):
    """A small file that says it holds a picture of this size."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.svs", "a.jpg"])
@pytest.mark.parametrize("content", [b"", b"not an image", b"II*\0\x08\0\0\0\xff\xff" + b"\xff" * 40])
def test_files_that_are_no_images(tmp_path, refuses, name, content):
    (tmp_path / name).write_bytes(content)
    with refuses(rf"{name} is damaged, or no image that can be read", cf.FileError):
        Tile(str(tmp_path / name), "k", {}).read()


@pytest.mark.parametrize("layout", ["folder", "slides"])
def test_a_damaged_file_is_named_when_it_is_listed_or_read(tmp_path, refuses, layout):
    (tmp_path / "a.tif").write_bytes(b"II*\0")
    with refuses(r"a\.tif is damaged, or no image", cf.FileError):
        read_layout(tmp_path, layout)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_truncated_slides_and_images(tmp_path, refuses, reader, share):
    pixels = slides.tissue_picture(512, 512)
    slides.write_slide(tmp_path / "s.tif", pixels)
    slides.write_image(tmp_path / "a.png", pixels)
    boxes = [(left, top, 128, 128) for left in range(0, 512, 128) for top in range(0, 512, 128)]
    for name in ("s.tif", "a.png"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
        if (name, reader, share) == (
            "s.tif",
            "tiffslide",
            0.9,
        ):  # what is cut off are smaller levels, which it lets pass
            for left, top, *_ in boxes:
                found = Tile(str(path), "k", {}, (left, top, 128, 128)).read()
                np.testing.assert_array_equal(found, pixels[top : top + 128, left : left + 128])
            continue
        with refuses(rf"{name} is damaged, or no image that can be read", cf.FileError):
            for box in boxes:
                Tile(str(path), "k", {}, box).read()
    close_kept()


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [(100_000, 100_000), (15_000, 11_000)])
def test_a_picture_that_says_it_is_huge(tmp_path, refuses, size):
    (tmp_path / "bomb.png").write_bytes(png_of(*size))
    with refuses(r"bomb\.png has .*: convert it to a tiled TIFF", cf.FileError):
        Tile(str(tmp_path / "bomb.png"), "k", {}).read()


def test_a_slide_that_is_too_large_to_be_read_whole_can_be_cut(slide, refuses, monkeypatch):
    monkeypatch.setattr(slide_files, "MAX_PIXELS", 100_000)
    with refuses(r"s\.tif has 768 × 512 pixels to decode in one go", cf.FileError):
        Tile(slide[0], "k", {}).read()
    assert len(read_layout(slide[0], "slides", mpp=0.25, size=64)) == 24


def test_more_than_eight_bits_are_refused(tmp_path, refuses):
    Image.fromarray(np.full((8, 8), 4000, np.uint16)).save(tmp_path / "deep.png")
    with refuses(r"deep\.png has more than eight bits", cf.FileError):
        Tile(str(tmp_path / "deep.png"), "k", {}).read()


def test_formats_that_run_programs_are_not_read(tmp_path, refuses):
    Image.fromarray(slides.tissue_picture(20, 20)).save(tmp_path / "a.eps")
    (tmp_path / "a.eps").rename(tmp_path / "a.png")
    with refuses(r"a\.png is damaged, or no image", cf.FileError):
        read_layout(tmp_path, "folder")[0].read()


def test_files_that_are_missing(tmp_path, refuses):
    for name in ("a.png", "a.svs", "a.tif"):
        with refuses(rf"{name} does not exist", cf.FileError):
            Tile(str(tmp_path / name), "k", {}, (0, 0, 5, 5)).read()
    with refuses("is a URL", cf.FileError):
        read_layout("s3://bucket/slides", "slides")
    with refuses("does not exist", cf.FileError):
        read_layout(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"layout": "coco"}, "layout='coco' is not known"),
        ({"size": 2}, "size=2 must be a whole number, 8 or more"),
        ({"mpp": -1}, "mpp=-1 must be a finite number above 0"),
        ({"slide_mpp": float("nan")}, "slide_mpp=nan must be"),
        ({"tissue": 1.5}, r"tissue=1\.5 must be a share"),
        ({"per_slide": 0}, "per_slide=0 must be"),
        ({"seed": -1}, "seed=-1 must be"),
    ],
)
def test_options_that_cannot_be_used(tmp_path, refuses, options, pattern):
    with refuses(pattern):
        read_layout(slides.write_manifest(tmp_path), **options)


# the command


def test_the_command_counts_tiles_by_factor(tmp_path):
    folder = slides.write_midog(tmp_path)
    found = run_json("tiles", folder, "--layout", "midog", "--size", "64")
    assert found["tiles"] == 24
    assert found["files"] == 6
    assert found["factors"]["label"] == {"hard negative": 12, "mitotic figure": 12}
    text = run("tiles", folder, "--layout", "midog", "--per-slide", "1").stdout
    assert text.startswith("6 tiles of 6 files\nfactor   value")
    assert "scanner  Aperio CS2" in text


def test_the_command_refuses_in_one_line(tmp_path):
    path = slides.write_slide(tmp_path / "s.tif", slides.tissue_picture(512, 512), mpp=None)
    assert "pass --slide-mpp with its µm per pixel" in fails("tiles", path, "--layout", "slides")
    assert "--layout coco is not known" in fails("tiles", path, "--layout", "coco")


def test_progress_counts_files(tmp_path):
    seen: list[int] = []
    read_layout(slides.write_manifest(tmp_path), progress=seen.append)
    assert sum(seen) == 8
    seen.clear()
    read_layout(slides.write_midog(tmp_path / "m"), "midog", size=64, progress=seen.append)
    assert sum(seen) == 6


def test_a_slide_that_was_cut_off_is_one_line_on_the_command_line(tmp_path):
    slides.write_camelyon16(tmp_path, outlines=False)
    path = next(tmp_path.rglob("normal_101.tif"))
    path.write_bytes(path.read_bytes()[:3000])
    command = [sys.executable, "-c", "from crossfusion.cli import main; main()", "tiles", str(tmp_path)]
    done = subprocess.run([*command, "--layout", "camelyon16", "--size", "64"], capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "normal_101.tif is damaged" in done.stderr


@pytest.mark.parametrize(("layout", "name"), [("manifest", "manifest.csv"), ("midog", "MIDOG.json")])
def test_a_pipe_is_not_waited_for(layout, name, tmp_path, refuses):
    os.mkfifo(tmp_path / name)
    with refuses(f"{name} is not a file", cf.FileError):
        read_layout(tmp_path, layout)
