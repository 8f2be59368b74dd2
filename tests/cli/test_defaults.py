"""crossfusion.toml in the working folder: defaults of options, which give way to what is typed."""

import json

import numpy as np
import pytest

from tests.helpers.command_line import fails, run

ASKED = ["matrix", "x.npz", "--between", "site"]


@pytest.fixture
def folder(tmp_path):
    """A folder with rows."""
    draw = np.random.default_rng(0)
    site, tissue = np.repeat(["A", "B"], 60), np.tile(["t", "u"], 60)
    patient = np.array([f"{name}{k % 6}" for k, name in enumerate(site)])
    np.savez(tmp_path / "x.npz", x=draw.normal(size=(120, 3)), site=site, tissue=tissue, patient=patient)
    return tmp_path


def write(folder, text):
    (folder / "crossfusion.toml").write_text(text)


@pytest.mark.parametrize(
    ("text", "typed", "same_as", "said"),
    [
        ("level = 0.9", [], ["--level", "0.9"], "--level 0.9"),
        ('[matrix]\nunits = "patient"\nlevel = 0.9', [], ["--units", "patient", "--level", "0.9"], None),
        ("level = 0.5\n[matrix]\nlevel = 0.9", [], ["--level", "0.9"], "--level 0.9"),
        ('given = "tissue"\n[test]\nlevel = 0.5', [], ["--given", "tissue"], "--given tissue"),
        ('given = ["tissue", "patient"]', [], ["--given", "tissue,patient"], "--given tissue --given patient"),
        ('plug-in = true\nweights = "pooled"', [], ["--plug-in", "--weights", "pooled"], "--plug-in --weights pooled"),
        ("level = 0.9", ["--level", "0.5"], ["--level", "0.5"], ""),
        ("plug-in = false", [], [], ""),
        ('[compare]\nweights = "balanced"', [], [], ""),
        ("[matrix]\ntest = 9", [], ["--permutations", "9"], "--permutations 9"),
    ],
)
def test_the_file_stands_for_typed_options_and_says_so(folder, text, typed, same_as, said):
    expected = run(*ASKED, *same_as, cwd=folder)
    write(folder, text)
    found = run(*ASKED, *typed, cwd=folder)
    assert found.stdout == expected.stdout
    if said is not None:
        told = f"crossfusion: defaults from crossfusion.toml: {said}\n" if said else ""
        assert found.stderr == told + expected.stderr
    untouched = run("--no-config", *ASKED, *same_as, cwd=folder)
    assert (untouched.stdout, untouched.stderr) == (expected.stdout, expected.stderr)


def test_a_required_option_may_come_from_the_file(folder):
    write(folder, 'between = "site"')
    assert json.loads(run("matrix", "x.npz", "--json", cwd=folder).stdout)["labels"] == ["A", "B"]


def test_an_option_that_a_command_lacks_is_left_to_the_others(folder):
    write(folder, 'units = "patient"')
    run("hierarchy", "x.npz", "--factors", "site", cwd=folder)
    run("completion", "bash", cwd=folder)


def test_a_page_names_the_whole_command(folder):
    write(folder, 'units = "patient"\n[report]\ntitle = "Our sites"')
    run("report", "x.npz", "--between", "site", "--permutations", "19", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert "<title>Our sites" in page
    assert "--units patient --title " in page


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unit = 1", "crossfusion.toml has no option 'unit': did you mean 'units'?"),
        ("[matrx]\nlevel = 1", "crossfusion.toml has no command 'matrx': did you mean 'matrix'?"),
        ("[matrix]\nlevell = 1", "crossfusion.toml, [matrix] has no option 'levell': did you mean 'level'?"),
        ("[matrix]\ntop = 3", "crossfusion.toml, [matrix] has no option 'top'"),
        ("level = [0.9]", "crossfusion.toml: level must be text or a number, not [0.9]: fix it, or pass --no-config"),
        ("plug-in = 1", "crossfusion.toml: plug-in must be true or false, not 1"),
        ("weights = true", "crossfusion.toml: weights must be text or a number, not True"),
        ('level = "high"', "crossfusion.toml: level: 'high' is not a valid float"),
        ("[matrix", "crossfusion.toml cannot be read (Expected ']'"),
    ],
)
def test_what_the_file_cannot_mean_is_one_line(folder, text, said):
    write(folder, text)
    assert said in fails(*ASKED, cwd=folder)
    assert run("--no-config", *ASKED, cwd=folder).stderr == ""


def test_the_help_describes_the_file():
    assert "crossfusion.toml" in run("--help").stdout
    assert "--no-config" in run("--help").stdout
