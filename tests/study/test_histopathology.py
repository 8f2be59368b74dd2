"""The study of tissue from slides to tables: miniature MIDOG21 and Camelyon16 whose stains are known."""

# mypy: disable-error-code="index,name-defined,misc"

import json
import pickle
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.pathology import read_layout
from crossfusion.pathology.tiles import Tile
from crossfusion.study import Dataset, Plan, tasks
from crossfusion.study.histopathology import Choices, design, prepare, versions, writing
from tests.helpers import PATIENCE
from tests.helpers.browser import Seen
from tests.helpers.command_line import COMMAND, fails, run
from tests.helpers.painted_slides import camelyon_picture, midog_picture
from tests.helpers.slide_layouts import write_camelyon16, write_manifest, write_midog
from tests.helpers.stained_images import export

torch = pytest.importorskip("torch", reason="install the extra pathology")

STUDY = ("histopathology",)
SCANNERS = ["Aperio CS2", "Hamamatsu S360", "Hamamatsu XR"]
FEW = ("--quick", "--workers", 1, "--device", "cpu", "--distance", "cfd,cfd_unbiased,mmd")


class Levelled(torch.nn.Module):
    """Gives every image the same mean and spread of each channel."""

    def forward(self, images):
        middle, spread = images.mean(dim=(2, 3), keepdim=True), images.std(dim=(2, 3), keepdim=True)
        return (0.6 + 0.15 * (images - middle) / spread).clamp(0, 1)


@pytest.fixture(scope="module")
def midog(tmp_path_factory):
    """Four images of each scanner, and the arguments of a study of them with three normalisers."""
    folder = tmp_path_factory.mktemp("midog")
    images = (*range(1, 5), *range(51, 55), *range(101, 105))
    write_midog(folder, images, size=(320, 240), per_image=8, paint=midog_picture)
    network = export(Levelled(), str(folder / "levelled.onnx"), torch.rand(2, 3, 64, 64))
    normalizers = f"none,macenko,level=onnx:{network}@0..1"
    data = ("--data", folder, "--layout", "midog", "--size", 64)
    return (*STUDY, *data, "--encoder", "random", "--normalizer", normalizers, "--correction", "center", *FEW)


@pytest.fixture(scope="module")
def studied(midog, tmp_path_factory):
    out = tmp_path_factory.mktemp("studied")
    return out, run(*midog, "--out", out)


def numbers(out, name="midog"):
    return json.loads((out / name / "results.json").read_text())


def averages(found, name):
    """Average of a distance or a score over pairs, by correction."""
    outcomes = found["study"]["outcomes"]
    values: dict[str, list[float]] = {}
    for one in outcomes:
        values.setdefault(one["correction"], []).append(one["distances"][name] if name in ("cfd", "mmd") else one[name])
    return {correction: float(np.mean(own)) for correction, own in values.items()}


def test_one_command_leaves_embeddings_tables_figures_and_a_page(studied):
    out, done = studied
    assert done.stderr == ""  # quiet in a pipe
    for name in ("none", "macenko", "level"):
        assert pq.read_schema(out / "embeddings" / f"{name}.parquet").names[:3] == ["scanner", "slide", "label"]
        assert f"{name}: 96 tiles × 256 features in " in done.stdout
    for name in ("rdr.md", "appendix.md", "cddr.md", "study.md", "correlations.md", "results.json", "scatter.png"):
        assert (out / "midog" / name).stat().st_size > 0
    assert (out / "samples.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads((out / "histopathology.json").read_text())
    assert facts["versions"] == {"none": [96, 256], "macenko": [96, 256], "level": [96, 256], "center": "center"}
    assert (facts["between"], facts["label"], facts["units"]) == (["scanner"], ["label"], ["slide"])
    text = (out / "histopathology.md").read_text()
    for printed in ("| paper: Macenko | 0.2243 |", "| paper: within ACS |", "paper: ACS in ACS–HS"):
        assert printed in text
    assert "RAD" not in text, "numbers of Camelyon16 do not stand beside MIDOG"
    assert "In print, ACS, HS and HX are Aperio CS2, Hamamatsu S360 and Hamamatsu XR." in text
    assert "This study used another encoder" in (out / "histopathology.html").read_text()


def test_numbers_are_those_of_the_protocols_on_the_embeddings(studied):
    out, _ = studied
    for name, units in (("midog", "slide"), ("midog_tiles", None)):
        found = numbers(out, name)
        for version in ("none", "macenko", "level"):
            table = pq.read_table(out / "embeddings" / f"{version}.parquet")
            x = np.stack(table["embedding"].to_numpy())
            plan, options = found["plan"], {} if units is None else {"units": table[units].to_pylist()}
            domain, distances = table["scanner"].to_pylist(), plan["distances"]
            same = {"repeats": plan["halves"], "rows": plan["rows"], "seed": plan["seed"]}
            expected = cf.rdr(x, domain, distances=distances, **same, **options).to_dict()
            for ours, theirs in zip(found["rdr"][version]["ratios"], expected["ratios"], strict=True):
                assert ours["pair"] == list(theirs["pair"])
                assert ours["ratio"] == pytest.approx(theirs["ratio"], rel=1e-9)


def test_pairs_of_the_paper_come_first(studied):
    found = numbers(studied[0])
    pairs = list(dict.fromkeys(tuple(entry["pair"]) for entry in found["rdr"]["none"]["ratios"]))
    assert pairs[:2] == [(SCANNERS[0], SCANNERS[1]), (SCANNERS[0], SCANNERS[2])]
    own = [one for one in found["study"]["outcomes"] if SCANNERS[0] in (one["train"], one["test"])]
    mean = np.mean([one["distances"]["cfd"] for one in own if one["correction"] == "macenko"])
    text = (studied[0] / "histopathology.md").read_text()
    table = text.split("pairs of the paper\n")[1].split("\n### ")[0]
    assert re.search(rf"\| macenko \| {mean:.4f} ", table)


def test_the_stain_is_found_and_normalisation_takes_it_away(studied):
    found = numbers(studied[0])
    cfd, mmd, cddr = (averages(found, name) for name in ("cfd", "mmd", "cddr"))
    assert cfd["none"] > 0.5
    assert max(cfd["macenko"], cfd["level"]) < 0.3 * cfd["none"]
    assert max(mmd["macenko"], mmd["level"]) < 0.7 * mmd["none"]
    assert cddr["none"] > 0.3 > 0.15 > max(cddr["macenko"], cddr["level"])
    assert cfd["center"] == pytest.approx(0, abs=0.02)
    apart = {  # the third scanner has other colours, the second only more of the same stain
        one["test"]: one["distances"]["cfd"]
        for one in found["study"]["outcomes"]
        if (one["correction"], one["train"]) == ("none", SCANNERS[0])
    }
    assert apart[SCANNERS[2]] > 1.3 * apart[SCANNERS[1]]


def test_the_page_opens_in_a_browser(studied, browser):
    for width in (1440, 390):
        page = browser.new_page(viewport={"width": width, "height": 900})
        seen = Seen(page)
        page.goto((studied[0] / "histopathology.html").as_uri())
        assert seen.console == []
        assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
        assert page.locator("img").count() == 2
        words = page.inner_text("body")
        assert "96 tiles of 12 files (midog) through random" in words
        assert "paper: StainFuser" in words


def stopped(command, how, out, when):
    """Stop a study when a file is there; what it said."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE
    while not list(out.glob(when)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(how)
    _, said = process.communicate(timeout=PATIENCE)
    assert not (out / "histopathology.html").exists()
    return process.returncode, said


def test_a_stopped_study_goes_on_and_finds_the_same(midog, studied, tmp_path):
    command = (*midog, "--out", tmp_path)
    code, said = stopped(command, signal.SIGINT, tmp_path, "embeddings/none.parquet")
    assert code == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    stopped(command, signal.SIGKILL, tmp_path, "midog/pieces/*.json")
    done = run(*command)
    assert "none: 96 tiles × 256 features taken over from" in done.stdout
    for name in ("midog/results.json", "midog/study.md", "midog/scatter.svg", "midog_tiles/rdr.md"):
        assert (tmp_path / name).read_bytes() == (studied[0] / name).read_bytes()


def test_camelyon16_through_a_checkpoint_of_virchow(tmp_path):
    encoders = pytest.importorskip(
        "tests.pathology.test_encoders", reason="timm is missing: install the extra pathology"
    )
    names = [f"{kind}_{n:03d}" for kind, first in (("normal", 101), ("tumor", 71)) for n in (1, 2, first, first + 1)]
    data = write_camelyon16(tmp_path / "data", names, width=1024, height=768, paint=camelyon_picture)
    checkpoint = encoders.save(tmp_path / "checkpoint", *encoders.tiny())
    encoder = ("--encoder", f"virchow:{checkpoint}", "--normalizer", "macenko")
    out = tmp_path / "out"
    options = ("--size", 64, "--reference", "centre=Radboud", "--out", out, *FEW)
    run(*STUDY, "--data", data, "--layout", "camelyon16", *encoder, *options)
    found = numbers(out, "camelyon16")
    assert found["counts"].keys() == {"Radboud", "Utrecht"}
    assert {label for one in found["study"]["outcomes"] for label in (one["train"], one["test"])} == set(
        found["counts"]
    )
    cfd = averages(found, "cfd")
    assert cfd["macenko"] < 0.6 * cfd["none"]
    facts = json.loads((out / "histopathology.json").read_text())
    assert facts["reference"].endswith("of Radboud")
    assert {entry["dim"] for entry in facts["embeddings"]} == {2 * encoders.WIDTH}
    page = (out / "histopathology.html").read_text()
    assert "the same encoder" in page
    assert "paper: within RAD" in page
    tables = [*out.rglob("*.md"), *out.rglob("*.html")]
    for name in ("paper: Macenko", "ACS", "StainFuser"):
        assert not any(name in path.read_text() for path in tables), "numbers of MIDOG do not stand beside Camelyon16"


def test_a_study_of_own_slides_shows_no_printed_numbers(tmp_path):
    data = write_manifest(tmp_path / "data", slides=("03", "04", "05", "06"))
    out = tmp_path / "out"
    options = ("--between", "scanner", "--encoder", "random", "--normalizer", "none", "--out", out, *FEW)
    run(*STUDY, "--data", data, *options)
    for path in (*out.rglob("*.md"), *out.rglob("*.html")):
        assert not any(named in path.read_text() for named in ("| paper: ", ">paper: ", "are printed in")), path


def test_bad_input_is_one_line(tmp_path):
    data = write_manifest(tmp_path / "data")
    start = (*STUDY, "--out", tmp_path / "out", "--encoder", "random", "--data")
    assert "does not exist" in fails(*start, tmp_path / "nowhere", "--layout", "midog")
    assert "layout" in fails(*start, data, "--layout", "midgo")
    assert "did you mean 'coral'" in fails(*start, data, "--correction", "corall")
    assert "did you mean 'cfd'" in fails(*start, data, "--distance", "cdf")
    assert "--between is missing" in fails(*start, data)
    assert "did you mean 'macenko'" in fails(*start, data, "--between", "scanner", "--normalizer", "macenco")
    assert not (tmp_path / "out").exists()


def made_up(factors, number=24):
    """Tiles that are never read."""
    return [Tile("none.png", str(k), {name: of(k) for name, of in factors.items()}) for k in range(number)]


FULL = {"scanner": lambda k: "AB"[k % 2], "label": lambda k: "uv"[k // 2 % 2], "slide": lambda k: str(k // 4)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scanner": lambda _: "A"}, "all 24 tiles have the scanner 'A'"),
        ({"label": lambda _: "u"}, "all 24 tiles have the label 'u'"),
        ({"slide": lambda _: "1"}, "unit"),
        ({"label": lambda k: "uv"[k % 2]}, "labels in common"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_anything_is_encoded(changed, said, refuses, tmp_path):
    tiles = made_up(FULL | changed)
    with refuses(said):
        prepare(tiles, tmp_path, Choices("manifest", "random", between=["scanner"]), Plan.quick())
    assert list(tmp_path.iterdir()) == []


def test_factors_by_layout_and_by_name(refuses):
    tiles = made_up(FULL | {"kind": FULL["label"], "centre": FULL["scanner"], "patient": FULL["slide"]})
    found = design.find_design("camelyon16", tiles)
    assert (found.between, found.label, found.units) == (("centre",), ("label",), ("slide",))
    asked = design.find_design("manifest", tiles, between=["scanner", "centre"], label=["none"], units=["patient"])
    assert (asked.label, asked.units) == ((), ("patient",))
    assert asked.values(tiles)["domain"][:2] == ["A / A", "B / B"]
    assert design.find_design("manifest", tiles, between=["scanner"], units=["none"]).values(tiles)["units"] is None
    alone = made_up({"scanner": FULL["scanner"]})
    with refuses("units is missing"):
        design.find_design("manifest", alone, between=["scanner"])
    with refuses("did you mean 'scanner'"):
        design.find_design("manifest", alone, between=["scaner"])
    tests = made_up(FULL | {"kind": lambda k: ("normal", "test")[k // 2 % 2]})
    with refuses("which is not a label"):
        design.rehearse(design.Design(("scanner",), ("kind",), ("slide",)), tests, Plan.quick())


def test_the_papers_numbers_belong_to_its_own_domains():
    own = {"between": ("scanner",), "label": ("label",), "units": ("slide",)}
    assert design.Design(**own).find_printed("midog") == "midog"
    assert design.Design(**own | {"label": ()}).find_printed("midog") == "midog"
    for changed in ({"between": ("slide",)}, {"label": ("grade",)}):
        assert design.Design(**own | changed).find_printed("midog") is None
    assert design.Design(("centre",), ("kind",), ("slide",)).find_printed("camelyon16") == "camelyon16"
    for layout in ("manifest", "slides", "folder"):
        assert design.Design(**own).find_printed(layout) is None


def test_names_of_normalisers(refuses):
    assert versions.parse_normalizers(["macenko", "sf=onnx:a=b.onnx@0..1", "onnx:folder/lmc.onnx@-1..1"]) == {
        "none": "none",
        "macenko": "macenko",
        "sf": "onnx:a=b.onnx@0..1",
        "lmc": "onnx:folder/lmc.onnx@-1..1",
    }
    for specs, said in (
        (["macenko", "macenko"], "two called 'macenko'"),
        (["a/b=macenko"], "use letters"),
        (["macenko=onnx:a.onnx@0..1"], "another's name"),
    ):
        with refuses(said):
            versions.parse_normalizers(specs)
    with refuses("two versions are called 'coral'"):
        Choices("midog", "random", normalizers=["coral=onnx:a.onnx@0..1"], corrections=["coral"]).specs()
    with refuses("reference goes with"):
        Choices("midog", "random", reference="a.png").specs()
    with refuses("does not exist", cf.FileError):
        Choices("midog", "random", embeddings={"mine": Path("nowhere.parquet")}).specs()


def test_ready_made_embeddings_are_matched_by_key(midog, studied, tmp_path, refuses):
    tiles = read_layout(midog[midog.index("--data") + 1], "midog", size=64)
    table = pq.read_table(studied[0] / "embeddings" / "macenko.parquet")
    order = np.random.default_rng(0).permutation(table.num_rows)
    pq.write_table(table.take(order).select(["embedding", "key"]), tmp_path / "mixed.parquet")
    expected = np.stack(table["embedding"].to_numpy())
    np.testing.assert_array_equal(versions.read_embeddings(tmp_path / "mixed.parquet", tiles), expected)
    pq.write_table(table.slice(1), tmp_path / "short.parquet")
    with refuses("lacks 1 of 96 tiles", cf.FileError):
        versions.read_embeddings(tmp_path / "short.parquet", tiles)
    pq.write_table(table.select(["key"]), tmp_path / "empty.parquet")
    with refuses("'embedding'"):
        versions.read_embeddings(tmp_path / "empty.parquet", tiles)


def test_a_task_goes_to_a_worker_with_its_own_rows_only():
    x, domain, label = np.random.default_rng(0).normal(size=(90, 40)), ["A", "B"] * 45, ["u", "u", "v"] * 30
    data = Dataset("small", {name: x + k for k, name in enumerate("uvw")} | {"center": "center"}, x, domain, label)
    for task in tasks.list_tasks(data, Plan.quick(distances=["cfd"], within_labels=[])):
        sent = pickle.dumps(task)
        assert len(sent) < 1.3 * x.nbytes
        assert tasks.compute(pickle.loads(sent)) == tasks.compute(task)


def test_pairs_of_one_domain():
    x = np.random.default_rng(0).normal(size=(90, 3))
    domain, label = np.repeat(["A", "B", "C"], 30), np.tile([0, 1], 45)
    study = cf.degradation_study(x, label, domain, distances=["cfd"], corrections=["none"], draws=9)
    own = writing.select_paper_pairs(study, "B")
    assert own is not None
    assert {(one.train, one.test) for one in own.outcomes} == {("A", "B"), ("B", "A"), ("B", "C"), ("C", "B")}
    assert writing.select_paper_pairs(study, "D") is None
