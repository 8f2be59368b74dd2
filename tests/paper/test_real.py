"""The study of real data: on made-up data in the same layout everywhere, and on the data where they are."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from paper import real
from paper.real.folder import PLACES
from tests.helpers import ROOT
from tests.helpers.module_commands import ENVIRONMENT, fail_module, module_command, run_module
from tests.helpers.stained_images import HE, OTHER, stained

TABLES = {"sc_mixology": ("batch", "cell_line"), "pacs": ("domain", "label")}
TABLES |= dict.fromkeys(["office_caltech", "office_caltech_surf"], ("domain", "label"))


def write_table(path, domain, label, seed):
    """Four domains that lie apart, three labels."""
    draw = np.random.default_rng(seed)
    domains, labels = np.repeat([f"D{k}" for k in range(4)], 30), np.tile(["u", "v", "w"], 40)
    x = np.abs(draw.normal(size=(120, 6)) + 3 + 2 * np.arange(6) * (labels == "v")[:, None])
    x[:, 0] += np.repeat(np.arange(4.0), 30)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.astype(np.float32).ravel()), 6)
    pq.write_table(pa.table({domain: domains, label: labels, "embedding": vectors}), path)


def write_images(folder, rows, side):
    """Images that a manifest names, stained as its first factor says."""
    for number, row in enumerate(rows):
        path = folder / row["file"]
        path.parent.mkdir(parents=True, exist_ok=True)
        colours = HE if number % 2 else OTHER
        Image.fromarray(stained(number, colours, side=side)).save(path)
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (folder / "manifest.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder in the layout of the real one."""
    folder = tmp_path_factory.mktemp("data")
    for seed, (name, factors) in enumerate(TABLES.items()):
        write_table(folder / PLACES[name], *factors, seed)
    names = ("scanner", "normalization", "slide", "position")
    mitos = [
        dict(zip(("file", *names), (f"p/{'-'.join(values)}.png", *values), strict=True))
        for values in (
            (scanner, way, slide, place)
            for slide in ("03", "04")
            for place in ("0_0", "0_1", "1_0", "1_1")
            for way in ("none", "staingan")
            for scanner in ("aperio", "hamamatsu")
        )
    ]
    write_images(folder / "mitos_he", mitos, 96)
    camelyon = [{"file": f"t/{c}-{k}.png", "centre": str(c)} for c in range(3) for k in range(3)]
    write_images(folder / "camelyon17_he", camelyon, 512)
    return folder


@pytest.fixture(scope="module")
def made(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    return out, run_module("paper", "real", "--quick", "--data", data, "--out", out).stdout


def test_every_data_set_is_evaluated(made):
    out, said = made
    found = json.loads((out / "real.json").read_text())
    assert [entry["name"] for entry in found["data"]] == list(real.NAMES)
    studied = {entry["name"]: entry["study"] for entry in found["data"]}
    assert studied.pop("camelyon17_he") is None
    assert all(study["outcomes"] for study in studied.values())
    versions = {outcome["correction"] for outcome in studied["mitos_he"]["outcomes"]}
    assert versions == {"none", "macenko", "staingan", "staingan reversed"}
    for text in found["reading"]:
        assert text in said
        assert text in (out / "real.md").read_text()
    page = (out / "real.html").read_text()
    for name in real.NAMES:
        assert f'<section id="{name}">' in page
    assert ">paper: " not in page


def test_versions_of_tissue_stay_in_register(made, data):
    """Row for row the same scanner and place; StainGAN's rows of one scanner, the other's own."""
    out, _ = made
    found = real.tissue.read_mitos(data, out, True, 1, lambda _: None)
    assert found.units is not None
    assert found.label is not None
    assert found.units[:4] == ["03/0_0", "03/0_1", "03/1_0", "03/1_1"]
    assert found.domain == ["aperio"] * 8 + ["hamamatsu"] * 8
    assert found.label[:8] == ["03"] * 4 + ["04"] * 4
    table = pq.read_table(out / "embeddings" / "mitos_he-raw.parquet").to_pylist()
    place = {(r["scanner"], r["normalization"], f"{r['slide']}/{r['position']}"): r["embedding"] for r in table}
    for version, ways in {
        "none": ("none", "none"),
        "staingan": ("staingan", "none"),
        "staingan reversed": ("none", "staingan"),
    }.items():
        for k, (scanner, unit) in enumerate(zip(found.domain, found.units, strict=True)):
            way = ways[scanner == "hamamatsu"]
            np.testing.assert_array_equal(found.all_versions[version][k], place[scanner, way, unit])


def test_bags_of_words_are_divided_by_their_sums(data):
    found = real.tables.read_table_set(data, "office_caltech_surf", False)
    np.testing.assert_allclose(found.x.sum(axis=1), 1, rtol=1e-5)
    assert list(found.all_versions)[:6] == ["none", "center", "standardize", "coral", "subspace", "combat"]


def test_a_killed_study_goes_on(data, made, tmp_path):
    """What was kept is not computed again, and the end is the same as without the kill."""
    arguments = ["paper", "real", "--quick", "--data", str(data), "--only", "pacs", "--workers", "1"]
    killed = subprocess.Popen(module_command(*arguments, "--out", tmp_path), env=ENVIRONMENT)
    while not (kept := list(tmp_path.glob("*/pieces/*.json"))):
        time.sleep(0.02)
        assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert not (tmp_path / "real.html").exists()
    run_module(*arguments, "--out", tmp_path)
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    for name in ("results.json", "study.md", "scatter.svg"):
        assert (tmp_path / "pacs" / name).read_bytes() == (made[0] / "pacs" / name).read_bytes()


def test_without_data_one_sentence(data, tmp_path):
    said = fail_module("paper", "real", "--data", tmp_path / "nothing", "--out", tmp_path / "out")
    assert "CROSSFUSION_DATA" in said
    assert "nothing" in said
    assert "pacs.parquet" in fail_module(
        "paper", "real", "--data", tmp_path, "--only", "pacs", "--out", tmp_path / "out"
    )
    assert "camelyon17_he" in fail_module("paper", "real", "--data", data, "--only", "camelion", "--out", tmp_path)
    assert not (tmp_path / "out").exists()


def test_quick_on_the_data(tmp_path):
    """All of it in miniature, as continuous integration runs it."""
    folder = Path(os.environ.get("CROSSFUSION_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"there is no folder {folder}: set CROSSFUSION_DATA")
    run_module("paper", "real", "--quick", "--data", folder, "--out", tmp_path)
    found = json.loads((tmp_path / "real.json").read_text())
    assert [entry["name"] for entry in found["data"]] == list(real.NAMES)
    mean = {
        entry["name"]: np.mean([o["cddr"] for o in entry["study"]["outcomes"] if o["correction"] == "none"])
        for entry in found["data"]
        if entry["study"]
    }
    assert mean["pacs"] > 3 * mean["office_caltech"], "drawings are farther from photos than shops from desks"
    assert mean["mitos_he"] > 0.1
