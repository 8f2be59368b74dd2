"""Figures look as they did, take any name, leave Matplotlib as it was, and are written whole."""

import json
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.testing.compare import compare_images

import crossfusion as cf
from crossfusion import plots
from crossfusion.cli import output
from crossfusion.plots import saving, style
from tests.helpers import ROOT, drawn
from tests.helpers.command_line import on_terminal

PINNED = (ROOT / "constraints.txt").read_text("utf-8")
TOLERANCE = 6  # root mean square of grey levels: letters may sit a pixel off, a moved bar or point is far more


def differs(name, folder):
    return compare_images(str(drawn.FOLDER / name), str(folder / name), TOLERANCE)


@pytest.mark.skipif(f"matplotlib=={mpl.__version__}\n" not in PINNED, reason="figures of another Matplotlib differ")
@pytest.mark.parametrize("name", drawn.DRAWINGS)
def test_a_figure_looks_as_it_did(name, tmp_path):
    saving.write_figure(drawn.DRAWINGS[name](), tmp_path / f"{name}.png", drawn.DPI)
    problem = differs(f"{name}.png", tmp_path)
    assert problem is None, f"{problem}\nif that is meant: python -m tests.helpers.drawn, and look at the pictures"


def test_the_comparison_sees_what_changes(tmp_path):
    found = drawn.made().pairwise("site", given="tissue", units="patient", level=0.95)
    moved = replace(found, unbiased=found.unbiased * 1.05, lower=found.lower * 1.05, upper=found.upper * 1.05)
    saving.write_figure(moved.plot_forest(), tmp_path / "forest.png", drawn.DPI)
    assert differs("forest.png", tmp_path) is not None


def texts(figure):
    return [text for text in figure.findobj(mpl.text.Text) if text.get_text() and text.get_visible()]


@pytest.mark.parametrize("name", drawn.DRAWINGS)
def test_text_is_readable_and_inside(name):
    figure = drawn.DRAWINGS[name]()
    figure.draw_without_rendering()
    assert figure.get_figwidth() in (style.COLUMN, style.PAGE)
    whole = figure.bbox.padded(1.0)
    shown = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    shown += [
        text for axes in figure.axes for text in axes.get_yticklabels() if axes.get_ylim()[0] > axes.get_ylim()[1]
    ]
    for text in texts(figure):
        assert text.get_fontsize() >= 6.99, text.get_text()
    for text in filter(lambda text: text.get_text(), shown):
        box = text.get_window_extent()
        assert whole.x0 <= box.x0, text.get_text()
        assert box.x1 <= whole.x1, text.get_text()
        assert whole.y0 <= box.y0, text.get_text()
        assert box.y1 <= whole.y1, text.get_text()


def test_names_are_text_and_no_formulas(tmp_path):
    figure = drawn.made(drawn.HOSTILE, size=20).pairwise("site").plot()
    figure.savefig(tmp_path / "matrix.svg")
    found = re.findall(r">([^<>]*)</text>", (tmp_path / "matrix.svg").read_text())
    assert "$\\frac{1}{0}$" in found
    assert "&lt;b&gt;&amp;&lt;/b&gt;\\n…" in found or "&lt;b&gt;&amp;&lt;/b&gt;\\n%s" in found
    assert "aaaaaaaaa…aaaa" in found
    figure.savefig(tmp_path / "matrix.pdf")
    assert b"/Type /Font /Subtype /Type0" in (tmp_path / "matrix.pdf").read_bytes(), "letters, not drawings of them"


def test_long_names_keep_both_ends_and_leave_room_for_the_label():
    names = [(f"university hospital of the north {k}", f"university hospital of the south {k}") for k in range(2)]
    figure: Any = plots.forest(names, np.array([0.1, 0.2]), what="Cross-Fusion Distance, 0.999 interval of patients")
    shown = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert len(set(shown)) == 2
    figure.draw_without_rendering()
    assert figure.axes[0].xaxis.label.get_window_extent().x1 <= figure.bbox.x1


def test_letters_that_no_font_has_are_boxes():
    figure: Any = plots.forest(["日本", "🙂"], np.array([0.1, 0.2]))
    figure.draw_without_rendering()  # warnings are errors here
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_drawing_leaves_matplotlib_alone(python):
    code = """
import sys, numpy as np, matplotlib as mpl
import crossfusion as cf
before = mpl.rcParams.copy()
summary = cf.summarize(np.eye(6), by={"site": list("aabbcc")})
summary.pairwise("site").plot()._repr_png_()
print("matplotlib.pyplot" in sys.modules, mpl.rcParams.copy() == before)
"""
    assert python(code) == "False True"


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cf.MissingDependencyError, match=r"pip install 'crossfusion\[plots\]'"):
        cf.Decomposition(1.0, 1.0).plot()


def test_axes_that_are_passed_are_drawn_on():
    figure = Figure()
    own, other = figure.subplots(1, 2)
    assert drawn.drift().plot(axes=own) is figure
    assert own.lines
    assert not other.lines
    part: Any = Figure().subfigures()
    assert drawn.made().hierarchy(["site"]).plot(axes=part.subplots()) is part.figure


def test_what_is_not_axes_is_refused():
    for wrong in (3, "left", Figure()):
        with pytest.raises(cf.InputError, match=r"axes=.* must be Matplotlib axes"):
            drawn.made().cfd("site").plot(axes=wrong)


def test_figures_show_the_numbers():
    found = drawn.made().pairwise("site", units="patient", level=0.95)
    (image,) = found.plot().axes[0].images
    np.testing.assert_array_equal(image.get_array(), found.unbiased)
    (image,) = found.plot("distance").axes[0].images
    np.testing.assert_array_equal(image.get_array(), found.distance)
    with pytest.raises(cf.InputError, match="values='upper'"):
        found.plot("upper")
    axes = found.plot_forest().axes[0]
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert points == sorted(found.unbiased[np.triu_indices(4, 1)], reverse=True)
    levels = drawn.made().hierarchy(["site", "tissue"])
    bars = levels.plot().axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx(
        [*(own.distance for own in levels.levels), levels.distance]
    )
    assert bars[1].get_x() == bars[0].get_width(), "each begins where the one above ends"
    shares = drawn.made().attribution("site")
    assert [bar.get_width() for bar in shares.plot(3).axes[0].patches] == shares.share[shares.top(3)].tolist()


def test_pairs_that_cannot_be_compared_are_left_grey():
    x = np.arange(8.0)[:, None]
    with pytest.warns(cf.CrossfusionWarning, match="confounded"):
        found = cf.summarize(x, by={"site": list("aabbccdd"), "kind": list("xxxxyyyy")}).pairwise("site", given="kind")
    image: Any = found.plot().axes[0].images[0]
    assert image.get_array().mask.sum() == 8


def test_extremes_can_be_drawn():
    apart = cf.summarize([[0.0], [0.0], [1.0], [1.0]], by={"site": list("aabb"), "unit": [0, 1, 2, 3]})
    for figure in (
        apart.pairwise("site").plot(),
        apart.pairwise("site").plot_forest(),
        apart.hierarchy(["site", "unit"]).plot(),
        apart.cfd("site").plot(),
        apart.attribution("site").plot(),
        apart.test("site", units="unit").plot(),
        apart.project("site").plot(),
        cf.summarize(np.ones((4, 2)), by={"site": list("aabb")}).pairwise("site").plot(),
        cf.summarize(np.ones((4, 2)), by={"site": list("aabb")}).project("site").plot(),
        cf.summarize(np.ones((4, 2)), by={"site": list("aabb")}).attribution("site").plot(),
        cf.Decomposition(0.0, 0.0).plot(),
    ):
        figure.draw_without_rendering()


def test_a_figure_can_be_kept(tmp_path):
    again = pickle.loads(pickle.dumps(drawn.made().hierarchy(["site"]).plot()))
    again.savefig(tmp_path / "again.png")
    assert (tmp_path / "again.png").stat().st_size > 1000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    x, by = drawn.rows(("A", "B"))
    np.savez(folder / "raw.npz", x=x, **by)
    np.savez(folder / "half.npz", x=x / 2 + x.mean(axis=0), **by)
    np.save(folder / "a.npy", x[:60])
    np.save(folder / "b.npy", x[60:])
    return folder


COMMANDS = {
    "compare": ["compare", "a.npy", "b.npy"],
    "matrix": ["matrix", "raw.npz", "--between", "site"],
    "pairs": ["matrix", "raw.npz", "--between", "site", "--units", "patient", "--level", "0.9"],
    "hierarchy": ["hierarchy", "raw.npz", "--factors", "site,patient"],
    "attribution": ["attribution", "raw.npz", "--between", "site"],
    "test": ["test", "raw.npz", "--between", "site", "--units", "patient", "--permutations", "99"],
    "corrections": ["corrections", "raw=raw.npz", "half=half.npz", "--between", "site", "--given", "tissue"],
    "rdr": ["rdr", "raw.npz", "--between", "site", "--repeats", "2"],
    "cddr": ["cddr", "raw.npz", "--between", "site", "--label", "tissue"],
    "projection": ["projection", "raw.npz", "--between", "site"],
}
VECTORS = (("--vectors", "x"), ())  # of files with names, and of those without
BEGINS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


def run(files, *words):
    command = Path(sys.executable).with_name("crossfusion")
    return subprocess.run([command, *words], cwd=files, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_draw(files, name):
    ending = [*BEGINS][len(name) % 3]
    done = run(files, *COMMANDS[name], *VECTORS[name == "compare"], "--json", "--plot", f"{name}.{ending}")
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)
    assert (files / f"{name}.{ending}").read_bytes().startswith(BEGINS[ending])


def test_on_a_terminal_shares_have_bars(files):
    for name in ("hierarchy", "attribution", "pairs"):
        asked = [str(files / word) if word == "raw.npz" else word for word in COMMANDS[name]]
        assert "█" in on_terminal(*asked, "--vectors", "x"), name
        assert "█" not in run(files, *COMMANDS[name], "--vectors", "x").stdout


def test_bars_are_in_proportion():
    assert output.make_bars([1.0, -0.5, 0.0, None, np.nan]) == [
        ("█" * 20, "cyan"),
        ("█" * 10, "red"),
        ("", "cyan"),
        ("", "cyan"),
        ("", "cyan"),
    ]
    assert output.make_bars([1.0, 1 / 160])[1][0] == "▏"
    assert output.make_bars([0.0, None]) == []


def test_no_plane_shows_more_of_what_is_between():
    x, by = drawn.rows()
    found = drawn.projection()
    means = np.array([x[np.array(by["site"]) == name].mean(axis=0) for name in found.labels]) - x.mean(axis=0)
    np.testing.assert_allclose(found.means, means @ found.axes.T, atol=1e-12)
    np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(2), atol=1e-12)
    shown = np.sum(found.means**2) / np.sum(means**2)
    assert found.shown == pytest.approx(shown)
    rng = np.random.default_rng(0)
    for _ in range(200):
        other, _ = np.linalg.qr(found.axes.T + 0.2 * rng.normal(size=found.axes.T.shape))
        assert np.sum((means @ other) ** 2) / np.sum(means**2) <= shown
    np.testing.assert_allclose(found.points, (x - x.mean(axis=0)) @ found.axes.T, atol=1e-12)
    assert [found.labels[k] for k in found.codes] == by["site"]
    assert json.loads(json.dumps(found.to_dict()))["labels"] == list("ABCD")
    assert found.to_frame()["first"].tolist() == found.means[:, 0].tolist()


def test_there_may_be_no_second_direction():
    found = cf.summarize([[0.1, 0.2], [0.3, 0.7]], by={"site": ["A", "B"]}).project("site")
    assert found.shown == 1.0
    np.testing.assert_array_equal(found.axes[1], 0.0)
    np.testing.assert_array_equal(found.means[:, 1], 0.0)


def test_one_group_has_no_plane(refuses):
    with refuses("there is only one group to compare"):
        cf.summarize(np.eye(3), by={"site": ["A"] * 3}).project("site")


def test_rows_of_no_group_are_refused(refuses):
    summary = drawn.made()
    with refuses("labels and rows go together"):
        summary.project("site", rows=np.ones((2, 6)))
    with refuses("labels has 1 entry for 2 rows"):
        summary.project("site", rows=np.ones((2, 6)), labels=["A"])
    with refuses("labels has 'Z', which is not a group"):
        summary.project("site", rows=np.ones((1, 6)), labels=["Z"])
    with refuses("6"):
        summary.project("site", rows=np.ones((1, 5)), labels=["A"])


def test_a_file_that_is_no_figure_is_refused_before_any_work(files):
    for wrong, said in (("f.txt", "does not fit a figure"), ("none/f.png", "no folder")):
        done = run(files, "matrix", "missing.npz", "--between", "site", "--plot", wrong)
        assert done.returncode == 2
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
