"""Every `--help`: examples that work, the same words for the same option; and commands on the pages of the docs."""

import re
import shlex

import anndata as ad
import click
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.shell_completion import BashComplete

import crossfusion as cf
from crossfusion import EngineError, FileError, InputError, NonFiniteError
from crossfusion._base import arg
from crossfusion.cli import _make_warning_handler
from crossfusion.cli.commands import HIDDEN, LISTED, cli
from crossfusion.cli.wording import find_command, make_wording
from crossfusion.summary.drift.periods import REFERENCE_FORMS
from tests.helpers import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OWN_WORDS = [
    "--adjust",
    "--batch",
    "--by",
    "--cap",
    "--data",
    "--draws",
    "--folder",
    "--label",
    "--normalizer",
    "--over",
    "--out",
    "--output",
    "--permutations",
    "--plot",
    "--quick",
    "--reference",
    "--repeats",
    "--rows",
    "--seed",
    "--units",
    "--workers",
]  # of what, or for what: by command
OWN_VALUES = ("--batch", "--data", "--label", "--normalizer", "--over", "--reference")
ELSEWHERE = ("histopathology", "tiles", "embed", "demo", "mcp")  # need minutes, slides, networks or a client
ROWS = 240
pytestmark = [
    pytest.mark.filterwarnings("ignore:The 'mode.chained_assignment' option"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option"),
    pytest.mark.filterwarnings("ignore::crossfusion._base.errors.CrossfusionWarning"),  # of so few rows
]


def commands(command=cli, path=()):
    """All commands and groups of commands, each with the words that call it."""
    yield path, command
    for name, own in getattr(command, "commands", {}).items():
        if not own.hidden:
            yield from commands(own, (*path, name))


def help_of(path, command):
    context = click.Context(command, info_name=" ".join(("crossfusion", *path)), terminal_width=100)
    return command.get_help(context)


def calls_in(text):
    """Calls of the command, without what the shell does to their output; [--option] may be left out, so it is not."""
    call = ""
    for line in text.replace("\\\n", " ").splitlines():
        start = re.match(r"[ $]*crossfusion (.+)", line)
        call = f"{call}\n{line}" if call else start[1] if start else ""
        if call.count('"') % 2 == 0 and call:  # a query may take several lines
            words = [word.strip("[]") for word in shlex.split(call, comments=True)]
            yield words[: next((k for k, word in enumerate(words) if word in (">", ">>", "|", "&&")), len(words))]
            call = ""


def parse(words):
    """Read a call as the command would, without running it."""
    command: click.Command = cli
    rest = list(words)
    while isinstance(command, click.Group):
        command = command.commands[rest.pop(0)]
    return command.make_context("crossfusion", rest)


COMMANDS = dict(commands())
EXAMPLES = {
    path: list(calls_in(help_of(path, command).partition("Examples:")[2])) for path, command in COMMANDS.items()
}
CALLS = {" ".join(words): words for found in EXAMPLES.values() for words in found}
OPTIONS = [
    (" ".join(path), option)
    for path, command in COMMANDS.items()
    for option in command.params
    if isinstance(option, click.Option) and "--version" not in option.opts
]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """All files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(3)
    order = np.arange(ROWS)
    label = order % 2
    factors = {
        "site": np.where(order % 4 < 2, "north", "south"),
        "scanner": np.array(["S1", "S2"])[order // 2 % 2],
        "label": label,
        "tissue": label,
        "diagnosis": np.array(["benign", "malign"])[label],
        "patient": order // 4 % 12,
        "slide": order // 4 % 12,
        "week": order // 20 + 1,
        "month": order // 24 + 1,
        "day": (np.datetime64("2024-01-01") + np.arange(ROWS) // 2).astype("datetime64[D]"),
        "normalizer": np.array(["none", "macenko"])[order // 120],
    }
    x = rng.normal(size=(ROWS, 4)) + label[:, None]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), 4)
    table = pa.table({name: pa.array(values) for name, values in factors.items()} | {"vector": vectors})
    for name in ("embeddings", "corrected", "raw", "macenko", "A", "B", "lake/part", "january/1", "february/1"):
        (folder / name).parent.mkdir(exist_ok=True)
        own = table.rename_columns([*table.column_names[:-1], "embedding"]) if name in ("A", "B") else table
        pq.write_table(own, folder / f"{name}.parquet")
    np.save(folder / "A.npy", x[label == 0])
    np.save(folder / "B.npy", x[label == 1])
    for week in (1, 2, 3):
        frame = pd.DataFrame(rng.normal(size=(20, 3)), columns=["dim_0", "dim_1", "dim_2"]).assign(week=week)
        frame.to_csv(folder / f"week{week}.csv", index=False)
    (folder / "features").mkdir()
    for name in ("one", "two"):
        with h5py.File(folder / "features" / f"{name}.h5", "w") as file:
            file["features"] = rng.normal(size=(20, 4))
    rule = '[[rule]]\nbetween = "scanner"\ngiven = "tissue"\nunits = "patient"\nmax = 0.5\n'
    (folder / "policy.toml").write_text(rule)
    (folder / "slides.csv").write_text("file,scanner\none,S1\ntwo,S2\n")
    cf.summarize(table, by=[*factors]).write(folder / "summary.parquet")
    cf.lens.standardize(table, by="site", vectors="vector").write(folder / "lens.safetensors")
    (folder / "sites").mkdir()
    for name, rows in (("north", x[:100]), ("south", x[100:])):
        part = cf.summarize(rows, by={"site": [name] * len(rows)})
        part.write(folder / f"{name}.parquet")
        part.write(folder / "sites" / f"{name}.parquet")
    with pd.option_context("future.infer_string", False):  # text as anndata can write it
        obs = pd.DataFrame({"batch": order // 2 % 2, "cell_type": label, "donor": order // 20}).astype(str)
        cells = ad.AnnData(x, obs=obs.set_index(obs.index.astype(str)), obsm={"X_pca": x, "X_scVI": x[:, :2]})
        cells.write_h5ad(folder / "cells.h5ad")
    return folder


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_an_example_of_itself(path):
    assert EXAMPLES[path]
    assert all(tuple(words[: len(path)]) == path for words in EXAMPLES[path])
    for words in EXAMPLES[path]:
        parse(words)


@pytest.mark.parametrize("words", [words for words in CALLS.values() if words[0] not in ELSEWHERE], ids=" ".join)
def test_examples_run(words, files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    if "--append" in words:
        cf.summarize(["week1.csv"], by="week", vectors="dim_*").write("weeks.parquet")
    expanded = [name for word in words for name in (map(str, files.glob(word)) if "sites/*" in word else [word])]
    try:
        code = cli.main(expanded, prog_name="crossfusion", standalone_mode=False)
    except SystemExit as done:
        code = done.code
    assert code in ((None, 1) if words[0] == "drift" else (None,))
    assert capsys.readouterr().out


def test_some_examples_run():
    assert sum(words[0] not in ELSEWHERE for words in CALLS.values()) >= 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_pages_can_be_typed(page):
    blocks = re.findall(r"^```(?:text|console|bash|sh)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    for block in blocks:
        for words in calls_in(block):
            if "..." not in words:
                parse(words)


def test_first_page_names_every_command_and_cuts_none_short():
    page = help_of((), cli)
    assert {(name,) for name in LISTED} == {path for path in COMMANDS if len(path) == 1}
    assert set(cli.commands) == set(LISTED) | set(HIDDEN)
    for path, command in COMMANDS.items():
        room = 80 - 6 - max(len(name) for own, _ in commands() for name in own[-1:] if own[:-1] == path[:-1])
        assert not command.get_short_help_str(room).endswith("..."), path
    assert page.index("compare") < page.index("summarize ") < page.index("completion")


@pytest.mark.parametrize("name", LISTED)
def test_first_page_says_what_the_help_of_a_command_says_first(name):
    assert LISTED[name] == (cli.commands[name].help or "").partition("\n")[0]


@pytest.mark.parametrize("name", HIDDEN)
def test_names_of_the_first_release_are_known_but_not_listed(name):
    assert cli.commands[name].hidden
    assert name not in LISTED


def completed(words):
    """What a shell offers for the last of some words."""
    completion = BashComplete(cli, {}, "crossfusion", "_CROSSFUSION_COMPLETE")
    return {item.value for item in completion.get_completions(words[:-1], words[-1])}


def test_shells_complete_commands_and_options():
    assert completed([""]) == set(LISTED)
    assert completed(["co"]) == {"compare", "completion", "corrections"}
    assert completed(["--ver"]) == {"--version"}
    assert completed(["compare", "--we"]) == {"--weights"}


def test_the_page_of_the_command_line_names_every_command():
    page = (ROOT / "docs" / "cli.md").read_text()
    assert [name for name in LISTED if not re.search(rf"`{name}`|crossfusion {name}\b", page)] == []


def test_options_read_alike():
    words: dict[str, dict[str, str]] = {}
    metavars: dict[str, str | None] = {}
    for where, option in OPTIONS:
        name = option.opts[-1]
        assert option.help, (where, name)
        assert option.help.endswith((".", "]")), (where, name)
        assert "y default" not in option.help, (where, name)
        if not option.is_flag and name not in OWN_VALUES:
            assert option.metavar, (where, name)
            assert metavars.setdefault(name, option.metavar) == option.metavar, (where, name)
        if name not in OWN_WORDS:
            words.setdefault(name, {})[re.split(r"[.;:]|, such|, of|, or| that", option.help)[0]] = where
    for name, texts in words.items():
        assert len(texts) == 1, (name, texts)


SAID = [
    ("drift --reference 4..0", InputError("reference", (4, 0), "is empty"), "--reference 4..0 is empty"),
    ("drift --reference=a,b", InputError("reference", ["a", "b"], "is not known"), "--reference a,b is not known"),
    ("drift", InputError(problem="x", remedy=f"pass {arg('alarm', None)}"), "x: pass --alarm 0"),
    ("drift", InputError(problem=f"pass {REFERENCE_FORMS}"), "pass first:N, previous, A,B,... or A..B"),
    ("compare", InputError("level", 2, "must be below 1"), "--level 2 must be below 1"),
    ("compare --permutations 0", InputError("permutations", 0, "is too few"), "--permutations 0 is too few"),
    ("summarize -o x", InputError("target", "x", "is read"), "-o x is read"),
    ("matrix", InputError("x", problem="is bad", remedy=f"use {arg('nan', 'drop')}"), "x is bad: use --nan drop"),
    ("matrix", InputError("nan", "a b", "is not known", "choose 'raise'"), "--nan 'a b' is not known: choose 'raise'"),
    ("matrix", InputError("level", problem=f"needs {arg('units')}"), "--level needs --units"),
    ("matrix", InputError(problem="level has 3 missing values"), "level has 3 missing values"),
    ("matrix", InputError("bandwidth", 2.0, "is too large"), "bandwidth=2.0 is too large"),
    ("matrix", NonFiniteError("x.npy", problem="has NaN"), "x.npy has NaN"),
    ("matrix", FileError("--level", "does not exist", "check it"), "--level does not exist: check it"),
    ("matrix", EngineError("level is lost", f"use {arg('engine', 'local')}"), "level is lost: use --engine local"),
    ("integration", InputError("label_key", "one", "has one value"), "--label one has one value"),
    ("integration", InputError(problem="x", remedy=f"pass {arg('min_cells', 1)}"), "x: pass --min-cells 1"),
    ("embed", InputError("seed", -1, "is negative"), "--tile-seed -1 is negative"),
    ("crossfusion", InputError("level", 2, "is odd"), "level=2 is odd"),
]


@pytest.mark.parametrize(("typed", "error", "said"), SAID)
def test_messages_speak_of_options(typed, error, said):
    words = typed.split()
    assert error.render(make_wording(find_command(cli, words), words)) == said


def test_warnings_speak_of_options_and_are_said_once(capsys):
    show = _make_warning_handler(None, ["matrix", "x.npy"])
    for _ in range(2):
        show(cf.CrossfusionWarning("nothing is compared", f"leave {arg('given')} out"), cf.CrossfusionWarning, "", 0)
    assert capsys.readouterr().err == "crossfusion: warning: nothing is compared: leave --given out\n"
