"""Tables of embeddings: what is in them, work that is interrupted and gone on with, and the command."""

# mypy: disable-error-code="index"

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import crossfusion as cf
from crossfusion.cli.embed import choose_normalizer
from crossfusion.pathology import embedding, resumable_output
from crossfusion.pathology.embedding import embed
from crossfusion.pathology.encoders import Encoder, encoder
from crossfusion.pathology.normalizers import Normalizer, normalizer
from crossfusion.pathology.tiles import Tile
from tests.helpers import PATIENCE
from tests.helpers.command_line import fails, run, run_json
from tests.helpers.stained_images import BLANK, stained, write_tiles

pytest.importorskip("torch", reason="install the extra pathology")


def colour(name="colour", broken=(), seen=None):
    """An encoder that needs no network: the mean colour; of some images it makes NaN."""

    def forward(batch):
        found = batch[:, :, 0, 0]
        if seen is not None:
            seen.append(len(found))
        return np.where(np.isin(np.rint(found[:, :1]), broken), np.nan, found)

    def prepare(image):
        return image.mean(axis=(0, 1), dtype=np.float32)[:, None, None]

    return Encoder(name, 3, (1, 1), prepare, forward, "1")


@pytest.fixture
def tiles(tmp_path):
    folder = tmp_path / "tiles"
    folder.mkdir()
    return write_tiles(folder)


def left(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "tiles")


def test_a_row_a_tile_with_factors_and_vectors(tiles, tmp_path):
    path = embed(tiles, tmp_path / "out.parquet", encoder="random", batch=5, workers=3)
    table = pq.read_table(path)
    assert table.column_names == ["scanner", "slide", "key", "file", "embedding"]
    assert table["key"].to_pylist() == [tile.key for tile in tiles]
    assert table["file"].to_pylist() == [tile.file for tile in tiles]
    assert table["slide"].to_pylist() == [tile.factors["slide"] for tile in tiles]
    assert str(table.schema.field("embedding").type).startswith("fixed_size_list<element: float>[256]")
    vectors = np.stack(table["embedding"].to_numpy())
    np.testing.assert_allclose(vectors, encoder("random")([tile.read() for tile in tiles]), rtol=1e-4, atol=1e-5)
    assert left(tmp_path) == ["out.parquet"]


def test_the_file_says_how_it_was_made_and_is_a_source(tiles, tmp_path):
    blank = tmp_path / "tiles" / "blank.png"
    Image.fromarray(BLANK).save(blank)
    tiles = [*tiles, Tile(str(blank), "blank", {"slide": "00", "scanner": "A"})]
    to_first = normalizer("macenko", tiles[0])
    path = embed(tiles, tmp_path / "out.parquet", encoder="random", normalizer=to_first)
    facts = resumable_output.read_facts(path)
    assert (facts["encoder"], facts["normalizer"], facts["dim"], facts["tiles"]) == ("random", "macenko", 256, 13)
    assert facts["unchanged"] == 1
    assert facts["normalizer_tag"] == to_first.tag
    assert facts["creator"] == f"crossfusion {cf.__version__}"
    summary = cf.summarize(path, by=["scanner", "slide"])
    assert summary.dim == 256
    assert summary.cfd("scanner").distance > 0
    plain = embed(tiles, tmp_path / "plain.parquet", encoder="random")
    assert cf.summarize(plain, by="scanner").cfd("scanner").distance > summary.cfd("scanner").distance


def test_done_work_is_not_done_again(tiles, tmp_path):
    seen: list[int] = []
    path = tmp_path / "out.parquet"
    for _ in range(2):
        embed(tiles, path, encoder=colour(seen=seen), batch=5)
    assert seen == [5, 5, 2]
    os.utime(tiles[3].file, (1, 1))  # another image under the same name
    embed(tiles, path, encoder=colour(seen=seen), batch=12)
    embed(tiles, path, encoder=replace(colour(seen=seen), tag="2"), batch=12)
    embed(tiles, path, encoder=colour(seen=seen), batch=12)
    for tag in ("1", "2"):
        embed(tiles, path, encoder=colour(seen=seen), normalizer=Normalizer("dark", lambda i: i // 2, tag), batch=12)
    embed(tiles[:6], path, encoder=colour(seen=seen), batch=12)
    assert seen == [5, 5, 2, 12, 12, 12, 12, 12, 6]
    assert left(tmp_path) == ["out.parquet"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interrupted_work_is_gone_on_with(error, tiles, tmp_path):
    whole = embed(tiles, tmp_path / "whole.parquet", encoder=colour(), batch=2)
    seen: list[int] = []
    told: list[int] = []

    def stop(done):
        if len(seen) == 4:
            raise error

    path = tmp_path / "out.parquet"
    with pytest.raises(error):
        embed(tiles, path, encoder=colour(seen=seen), batch=2, progress=stop)
    assert not path.exists()
    embed(tiles, path, encoder=colour(seen=seen), batch=2, progress=told.append)
    assert seen == [2] * 6
    assert told == [8, 2, 2]
    assert path.read_bytes() == whole.read_bytes()
    assert left(tmp_path) == ["out.parquet", "whole.parquet"]


def test_damaged_parts_are_done_again(tiles, tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "SAVE_SECONDS", 0.0)
    whole = embed(tiles, tmp_path / "whole.parquet", encoder=colour(), batch=3)
    path = tmp_path / "out.parquet"

    def stop(done):
        if len(list(tmp_path.glob(".out*/*.npz"))) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(tiles, path, encoder=colour(), batch=3, progress=stop)
    kept = sorted(tmp_path.glob(".out*/*.npz"))
    content = bytearray(kept[1].read_bytes())
    with np.load(kept[1]) as part:
        content[content.index(part["vectors"].tobytes())] ^= 1
    kept[1].write_bytes(bytes(content))
    seen: list[int] = []
    embed(tiles, path, encoder=colour(seen=seen), batch=3)
    assert seen == [3, 3, 3]
    assert path.read_bytes() == whole.read_bytes()


SLOWLY = """
import sys, time
from pathlib import Path
from crossfusion.pathology import embedding
from crossfusion.pathology.encoders import encoder
from crossfusion.pathology.tiles import Tile
from dataclasses import replace
embedding.SAVE_SECONDS = 0.0
plain = encoder("random", device="cpu")
def forward(batch):
    time.sleep(float(sys.argv[3]))
    return plain.forward(batch)
files = sorted(Path(sys.argv[1]).glob("*.png"))
tiles = [Tile(str(file), file.name, {}) for file in files]
embedding.embed(tiles, sys.argv[2], encoder=replace(plain, forward=forward), batch=2)
"""


def test_killed_work_is_gone_on_with(tiles, tmp_path):
    def command(name, pause):
        return [sys.executable, "-c", SLOWLY, str(tmp_path / "tiles"), str(tmp_path / name), str(pause)]

    subprocess.run(command("whole.parquet", 0), check=True, timeout=PATIENCE)
    killed = subprocess.Popen(command("out.parquet", 2.0))
    end = time.monotonic() + PATIENCE
    while len(list(tmp_path.glob(".out*/*.npz"))) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    kept = sorted(tmp_path.glob(".out*/[0-9]*.npz"))
    assert 2 <= len(kept) < 6
    assert not (tmp_path / "out.parquet").exists()
    first = kept[0].stat().st_mtime_ns
    second = subprocess.Popen(command("out.parquet", 0.2))
    while len(list(tmp_path.glob(".out*/[0-9]*.npz"))) <= len(kept) and time.monotonic() < end:
        time.sleep(0.02)
    assert kept[0].stat().st_mtime_ns == first  # gone on with, not begun again
    assert second.wait(timeout=PATIENCE) == 0
    assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert left(tmp_path) == ["out.parquet", "whole.parquet"]


def test_two_do_not_make_the_same_output_at_once(tiles, tmp_path, refuses):
    tried = []

    def again(done):
        with refuses("another process that makes the same output", cf.FileError):
            embed(tiles, tmp_path / "out.parquet", encoder=colour(), batch=4)
        tried.append(done)

    embed(tiles, tmp_path / "out.parquet", encoder=colour(), batch=4, progress=again)
    assert tried == [4, 4, 4]
    assert left(tmp_path) == ["out.parquet"]


def test_vectors_that_are_not_finite_name_the_tile(tiles, tmp_path, refuses):
    red = np.rint(tiles[7].read()[..., 0].mean())
    with refuses("NaN or infinite values for the tile 'tile 7'", cf.NonFiniteError):
        embed(tiles, tmp_path / "out.parquet", encoder=colour(broken=[red]), batch=1)
    assert not (tmp_path / "out.parquet").exists()


def test_an_image_that_cannot_be_read_is_named(tiles, tmp_path, refuses):
    broken = tmp_path / "tiles" / "004.png"
    broken.write_bytes(broken.read_bytes()[:200])
    with refuses("004.png", cf.FileError):
        embed(tiles, tmp_path / "out.parquet", encoder=colour(), batch=2)
    broken.unlink()
    with refuses("004.png cannot be read", cf.FileError):
        embed(tiles, tmp_path / "other.parquet", encoder=colour())


def test_tiles_that_do_not_go_into_one_table_are_refused(tiles, tmp_path, refuses):
    def refused(pattern, chosen, error=cf.InputError, out="out.parquet", **options):
        with refuses(pattern, error):
            embed(chosen, tmp_path / out, encoder=colour(), **options)

    refused("no tiles", [])
    refused("2 tiles have the key 'tile 0'", [tiles[0], *tiles])
    refused("'tile 0' has the factors a, others have scanner", [tiles[1], replace(tiles[0], factors={"a": "1"})])
    refused("'key' is a column", [replace(tiles[0], factors={"key": "1"})])
    refused("batch=0", tiles, batch=0)
    refused("workers=0", tiles, workers=0)
    refused("ending", tiles, cf.FileError, "out.csv")
    refused("no folder", tiles, cf.FileError, "nowhere/out.parquet")
    cf.summarize(np.eye(2), by={"g": [1, 2]}).write(tmp_path / "summary.parquet")
    refused("was not made by embed", tiles, cf.FileError, "summary.parquet")
    assert left(tmp_path) == ["summary.parquet"]


def test_a_part_of_an_image_at_another_size(tiles, tmp_path):
    tile = replace(tiles[0], box=(8, 16, 40, 20), size=(20, 10))
    assert tile.read().shape == (10, 20, 3)
    np.testing.assert_array_equal(replace(tile, size=None).read(), tiles[0].read()[16:36, 8:48])


@pytest.fixture
def manifest(tiles, tmp_path):
    rows = [f"tiles/{k:03d}.png,{tile.factors['scanner']},{tile.factors['slide']}" for k, tile in enumerate(tiles)]
    path = tmp_path / "manifest.csv"
    path.write_text("\n".join(["file,scanner,slide", *rows]))
    return path


def test_command_makes_a_table_that_other_commands_read(manifest, tmp_path):
    options = ("--encoder", "random", "--normalizer", "reinhard", "--reference", "scanner=B")
    done = run("embed", manifest, *options, "-o", tmp_path / "out.parquet")
    assert "12 tiles × 256 features by random, normalized by reinhard, 0 tiles without tissue" in done.stdout
    facts = run_json("embed", manifest, *options, "-o", tmp_path / "out.parquet")
    assert (facts["tiles"], facts["unchanged"], facts["output"]) == (12, 0, str(tmp_path / "out.parquet"))
    table = pq.read_table(tmp_path / "out.parquet")
    assert set(table["slide"].to_pylist()) == {"00", "01", "02"}  # text stays text
    assert cf.summarize(tmp_path / "out.parquet", by="scanner").cfd("scanner").distance > 0


def test_command_refuses_in_one_line(manifest, tmp_path):
    out = ("-o", tmp_path / "out.parquet")
    assert "did you mean 'random'" in fails("embed", manifest, "--encoder", "randon", *out)
    line = fails("embed", manifest, "--encoder", "random", "--device", "tpu", *out)
    assert "--device tpu is not a known device" in line
    reinhard = ("--encoder", "random", "--normalizer", "reinhard", "--reference")
    assert "no scanner called 'C'" in fails("embed", manifest, *reinhard, "scanner=C", *out)


def test_references_of_the_command(tiles, tmp_path, refuses):
    with refuses("reference goes with"):
        choose_normalizer("none", "a.png", tiles, "cpu")
    with refuses("does not exist", cf.FileError):
        choose_normalizer("macenko", "a.png", tiles, "cpu")
    with refuses("no factor 'site'"):
        choose_normalizer("macenko", "site=C", tiles, "cpu")
    given = choose_normalizer("macenko", tiles[2].file, tiles, "cpu")
    assert given.tag == normalizer("macenko", tiles[2]).tag
    assert choose_normalizer("macenko", None, tiles, "cpu").tag in {normalizer("macenko", tile).tag for tile in tiles}


def test_stained_images_have_tissue():
    from crossfusion.pathology.images import has_tissue

    assert has_tissue(stained())
    assert not has_tissue(BLANK)
