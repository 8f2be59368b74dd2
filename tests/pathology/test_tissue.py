"""Tissue on slides: the same tile counts the same on every slide; pictures and warnings show what was decided."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

import crossfusion as cf
from crossfusion.pathology import read_layout, tissue
from crossfusion.pathology import tissue_pictures as pictures
from crossfusion.pathology.slide_files import SlideFile, open_slide_file
from crossfusion.pathology.survey import _find_difference
from crossfusion.pathology.tile_settings import TileSettings
from tests.helpers import painted_slides
from tests.helpers import slide_layouts as slides
from tests.helpers.command_line import fails, run
from tests.helpers.stained_images import HE, OTHER, real_images

STAINS = {"pale": (HE, 0.3), "pale, other lab": (OTHER, 0.3), "strong": (OTHER, 1.6)}
SIDE = 256  # pixels of a painted tile that is all tissue


class Mosaic(SlideFile):
    """A slide in memory, of any size, that repeats one tile."""

    def __init__(self, tile, side):
        self.path, self.tile, self.size, self.mpp = "mosaic.tif", tile, (side, side), (0.5, 0.5)

    def read_region(self, box, size):
        left, top, width, height = box
        row = self.tile.take(np.arange(left, left + width), axis=1, mode="wrap")
        pixels = row.take(np.arange(top, top + height), axis=0, mode="wrap")
        return np.asarray(Image.fromarray(pixels).resize(size, resample=1))

    def close(self):
        pass


def paint(stain):
    """Pixels of a tile that is all tissue: a ground of eosin, with nuclei that are several times darker."""
    nuclei = [(*middle, 8, 4) for middle in np.random.default_rng(3).uniform(0, SIDE, (60, 2))]
    return painted_slides.tissue((SIDE, SIDE), nuclei, *STAINS[stain], seed=1)


def mosaic(stain, side):
    """Pixels of a slide that repeats one tile of tissue."""
    return np.tile(paint(stain), (side // SIDE, side // SIDE, 1))


def read_share(path, **options):
    """The number of tiles of a slide as a share of its grid."""
    everything = read_layout(path, "slides", tissue=0, **options)
    return len(read_layout(path, "slides", **options)) / len(everything)


# the same decision on every slide


@pytest.mark.parametrize("stain", STAINS)
def test_a_mosaic_of_a_tile_that_is_all_tissue_keeps_every_tile(tmp_path, stain):
    path = slides.write_slide(tmp_path / "s.tif", mosaic(stain, 1024), mpp=0.5)
    assert len(read_layout(path, "slides")) == (1024 // 224) ** 2


@pytest.mark.parametrize("stain", STAINS)
@pytest.mark.parametrize("side", [1024, 4096, 8192])
def test_tiles_do_not_depend_on_the_size_of_the_slide(stain, side):
    slide = tissue.cut_slide(Mosaic(paint(stain), side), "k", {}, TileSettings(tissue=0.9))
    assert len(slide.tiles) == slide.grid == (side // 224) ** 2
    assert slide.mask.mean() > 0.95


@pytest.mark.parametrize("side", [1024, 2048])
def test_real_tiles_that_are_all_tissue_keep_every_tile(side):
    for path, tile in real_images("camelyon17_he", 1).items():  # three of them kept none by Otsu's threshold
        slide = tissue.cut_slide(Mosaic(tile, side), "k", {}, TileSettings())
        assert len(slide.tiles) == slide.grid, path.name


@pytest.mark.parametrize("side", [1024, 8192])
def test_glass_has_no_tiles_on_slides_of_any_size(side):
    glass = slides.tissue_picture(SIDE, SIDE, [])
    with pytest.warns(cf.CrossfusionWarning, match=r"mosaic\.tif has no tile of 224 × 224 pixels with 50% tissue"):
        slide = tissue.cut_slide(Mosaic(glass, side), "k", {}, TileSettings())
    assert not slide.tiles
    assert not slide.mask.any()


def test_a_tile_counts_the_same_whatever_else_is_on_the_slide(tmp_path):
    piece = mosaic("pale", 512)
    kept = {}
    for name, ground in {"alone": None, "glass": 243, "black": 4, "strong": "strong"}.items():
        if ground is None:
            pixels = piece
        else:
            pixels = mosaic("strong", 1024) if ground == "strong" else np.full((1024, 1024, 3), ground, np.uint8)
            pixels[:512, :512] = piece
        path = slides.write_slide(tmp_path / f"{name}.tif", pixels, mpp=0.5)
        boxes = {tile.box for tile in read_layout(path, "slides", size=128)}
        kept[name] = {box for box in boxes if box is not None and max(box[:2]) < 512}
    assert len(kept["alone"]) == 16
    assert all(one == other for one, other in pairwise(kept.values()))


@pytest.mark.parametrize("mpp", [0.25, 0.5, 1.0, 7.9, 12.0])
def test_tissue_is_looked_for_at_one_physical_scale(tmp_path, mpp):
    path = slides.write_slide(tmp_path / "s.tif", slides.tissue_picture(640, 320), mpp=mpp)
    picture = open_slide_file(path)
    overview = tissue.read_overview(picture, picture.mpp)
    picture.close()
    scale = min(1, mpp / 8)  # never finer than the scan
    assert overview.shape == (round(320 * scale), round(640 * scale), 3)


def test_the_same_slide_scanned_finer_keeps_the_same_tissue(tmp_path):
    coarse = slides.tissue_picture(512, 512, [(0.1, 0.3, 0.8, 0.7)])
    kept = [
        [tile.box for tile in read_layout(path, "slides", size=32)]
        for path in (
            slides.write_slide(tmp_path / "coarse.tif", coarse, mpp=0.5),
            slides.write_slide(tmp_path / "fine.tif", coarse.repeat(2, axis=0).repeat(2, axis=1), mpp=0.25),
        )
    ]
    assert kept[0]
    assert [tuple(2 * side for side in box) for box in kept[0]] == kept[1]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_shares_are_exact_to_fractions_of_a_pixel(share):
    mask = np.zeros((10, 10), bool)
    mask[:, :5] = True
    shares = tissue._measure_tissue_shares(mask, (1, 1), (10 * share, 5 / share))
    assert shares == pytest.approx(np.array([[share]]))
    quarters = tissue._measure_tissue_shares(mask, (4, 4), (2.5, 2.5))
    np.testing.assert_allclose(quarters, [[1, 1, 0, 0]] * 4)
    thirds = tissue._measure_tissue_shares(mask, (3, 3), (10 / 3, 10 / 3))
    np.testing.assert_allclose(thirds, [[1, 0.5, 0]] * 3, atol=1e-8)


# pictures


def count_color(image, color):
    return int((np.asarray(image) == color).all(axis=2).sum())


def test_a_picture_shows_tissue_and_tiles(tmp_path):
    path = slides.write_slide(tmp_path / "s.tif", slides.tissue_picture(1024, 512), mpp=1.0)
    found = read_layout(path, "slides", size=64, mpp=1, per_slide=5, pictures=tmp_path / "made")
    [made] = (tmp_path / "made").iterdir()
    assert made.name == "s.tif.png"
    with Image.open(made) as image:
        assert image.format == "PNG"
        assert image.width > 2 * image.height > 800
        panels = image.crop((0, 0, image.width // 2, image.height)), image.crop((image.width // 2, 0, *image.size))
    assert len(found) == 5
    inside, outside = (np.asarray(panels[0])[row, pictures.MARGIN + 450].astype(int) for row in (300, 100))
    assert abs(inside - [190, 110, 170]).max() < 20  # the middle of the slide is tissue, and in its own color
    assert outside.max() - outside.min() > 50  # glass is gray, and tinted
    assert count_color(panels[0], pictures.CHOSEN) == 0
    assert count_color(panels[1], pictures.CHOSEN) > 5 * 50
    assert count_color(panels[1], pictures.SPARED) > count_color(panels[0], pictures.SPARED)


def test_a_slide_without_tissue_has_a_picture_too(tmp_path):
    slides.write_slide(tmp_path / "in" / "full.tif", slides.tissue_picture(512, 512))
    slides.write_slide(tmp_path / "in" / "blank.tif", slides.tissue_picture(512, 512, []))
    slides.write_slide(tmp_path / "in" / "tiny.tif", slides.tissue_picture(20, 30, [(0, 0, 1, 1)]))
    with pytest.warns(cf.CrossfusionWarning, match="it is left out"):
        read_layout(tmp_path / "in", "slides", size=64, pictures=tmp_path / "made")
    made = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert made == ["blank.tif.png", "full.tif.png", "tiny.tif.png"]


def test_slides_of_the_same_name_have_pictures_of_their_own(tmp_path):
    for folder in ("a/b", "a_b", "A_b", "x" * 90, "y" * 90):
        slides.write_slide(tmp_path / "in" / folder / "s.tif", slides.tissue_picture(256, 256), levels=1)
    read_layout(tmp_path / "in", "slides", size=64, mpp=0.25, pictures=tmp_path / "made")
    made = {path.name.casefold() for path in (tmp_path / "made").iterdir()}
    assert len(made) == 5
    assert max(map(len, made)) < 80


@pytest.mark.parametrize("name", ["größe 切片", "a\nb", b"\xff\xfe".decode("utf-8", "surrogateescape")])
def test_pictures_of_slides_with_any_name(tmp_path, name):
    try:
        path = slides.write_slide(tmp_path / "in" / f"{name}.tif", slides.tissue_picture(256, 256), levels=1)
    except OSError:
        pytest.skip("the file system does not take this name")
    read_layout(path, "slides", size=64, mpp=0.25, pictures=tmp_path / "made")
    assert len([*(tmp_path / "made").iterdir()]) == 1


def test_a_picture_is_written_whole_or_not_at_all(tmp_path, monkeypatch, refuses):
    path = slides.write_slide(tmp_path / "s.tif", slides.tissue_picture(512, 512))
    made = tmp_path / "made"
    read_layout(path, "slides", size=64, pictures=made)
    before = (made / "s.tif.png").read_bytes()

    def fill_disk(_, target, **options):
        with open(target, "wb") as file:
            file.write(b"\x89PNG")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Image.Image, "save", fill_disk)
    with refuses("No space left on device", cf.FileError):
        read_layout(path, "slides", size=64, pictures=made)
    assert [(file.name, file.read_bytes()) for file in made.iterdir()] == [("s.tif.png", before)]


def test_images_that_are_taken_whole_have_no_pictures(tmp_path):
    read_layout(slides.write_manifest(tmp_path), pictures=tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_commands_write_pictures(tmp_path):
    path = slides.write_slide(tmp_path / "s.tif", slides.tissue_picture(512, 512))
    options = [path, "--layout", "slides", "--size", "64"]
    run("tiles", *options, "--pictures", str(tmp_path / "made"))
    done = run("embed", *options, "--encoder", "random", "-o", str(tmp_path / "raw.parquet"))
    assert f"pictures of the tissue on each slide are in {tmp_path / 'raw_tissue'}" in done.stderr
    for folder in ("made", "raw_tissue"):
        with Image.open(tmp_path / folder / "s.tif.png") as image:
            image.load()
    (tmp_path / "taken").write_text("a file")
    assert "taken" in fails("tiles", *options, "--pictures", str(tmp_path / "taken"))


# shares that differ between groups


def write_groups(folder, shares, factor="scanner"):
    """Slides in folders factor=group, each with a band of tissue that covers a share of it."""
    for group, own in shares.items():
        for number, share in enumerate(own):
            pixels = slides.tissue_picture(640, 640, [(0, 0, 1, share)], seed=number)
            slides.write_slide(folder / f"{factor}={group}" / f"{group}{number}.tif", pixels, levels=2)


def test_groups_that_keep_different_shares_are_named(tmp_path):
    write_groups(tmp_path / "in", {"aperio": [0.9, 1.0], "hamamatsu": [0.4, 0.5]})
    expected = (
        r"tissue was found in 4\d% of the tiles of scanner=hamamatsu, but in 9\d% of the tiles of scanner=aperio:"
        r" before comparing them, write pictures of the slides with pictures and check that"
    )
    with pytest.warns(cf.CrossfusionWarning, match=expected):
        read_layout(tmp_path / "in", "slides", size=32)
    with pytest.warns(cf.CrossfusionWarning, match=r"check in the pictures in .*made that"):
        read_layout(tmp_path / "in", "slides", size=32, pictures=tmp_path / "made")
    options = [str(tmp_path / "in"), "--layout", "slides", "--size", "32"]
    assert "with --pictures and check" in run("tiles", *options).stderr


def test_a_limit_per_slide_does_not_hide_different_shares(tmp_path):
    write_groups(tmp_path, {"a": [1.0], "b": [0.4]}, factor="site")
    with pytest.warns(cf.CrossfusionWarning, match="of site=b, but in 100% of the tiles of site=a"):
        read_layout(tmp_path, "slides", size=32, per_slide=2)


def test_groups_that_keep_similar_shares_are_not_named(tmp_path):
    write_groups(tmp_path, {"aperio": [0.8, 0.9], "hamamatsu": [0.7, 0.9]})
    read_layout(tmp_path, "slides", size=32)  # the tests treat warnings as errors
    assert read_share(tmp_path, size=32) == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(
    ("groups", "ends"),
    [
        ({"a": [0.5]}, None),
        ({"a": [0.5], "b": [0.39]}, ("b", "a")),  # one slide each: the ratio decides
        ({"a": [0.5], "b": [0.41]}, None),
        ({"a": [0.0], "b": [0.0]}, None),
        ({"a": [0.0], "b": [0.1]}, ("a", "b")),
        ({str(k): [k / 10] for k in range(1, 6)}, ("1", "5")),
        ({str(k): [k / 10] for k in range(1, 7)}, None),  # names of slides, not groups
        ({"a": [0.5, 0.52, 0.48], "b": [0.3, 0.32, 0.28]}, ("b", "a")),
        ({"a": [0.1, 0.5, 0.9], "b": [0.0, 0.3, 0.6]}, None),  # slides of a group differ as much
        ({"a": [0.9, 0.9, 0.9], "b": [0.8, 0.8, 0.8]}, None),  # surely different, but not by much
        ({"a": [0.5, 0.52, 0.48], "b": [0.2]}, ("b", "a")),
    ],
)
def test_when_shares_differ_clearly(groups, ends):
    assert _find_difference(groups) == ends


@pytest.mark.parametrize(("number", "slides_each"), [(2, 10), (5, 10), (40, 5)])
def test_slides_of_one_population_are_rarely_told_apart(number, slides_each):
    draw = np.random.default_rng(0)
    alarms = sum(
        _find_difference({str(k): draw.beta(1, 2, slides_each).tolist() for k in range(number)}) is not None
        for _ in range(300)
    )
    assert alarms <= 12  # 4%; a threshold of two standard errors alarms in nearly all with 40 groups
