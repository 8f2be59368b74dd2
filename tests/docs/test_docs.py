"""Every example in the README and the docs runs and prints what the page says, and what pages are made of is there."""

import doctest
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import sklearn

from crossfusion.cli.commands import cli
from tests.helpers import ROOT

PINNED = (ROOT / "constraints.txt").read_text("utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")


def run_python(text, names, page):
    example = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    report: list[str] = []
    runner.run(example, out=report.append, clear_globs=False)
    names.update(example.globs)
    assert runner.failures == 0, "".join(report)


def run_console(text):
    """Run each line after `$`; what follows it, if anything, is its output."""
    for call in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = call.partition("\n")
        words = shlex.split(line)
        if words[0] != "crossfusion":
            continue  # make, pip: the set-up itself is tested by running it
        command = [str(Path(sys.executable).with_name("crossfusion")), *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if expected.strip():
            same = doctest.OutputChecker().check_output(expected, done.stdout, FLAGS)
            assert same, f"$ {line}\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page, tmp_path):
    if page.name == "evaluation.md" and f"scikit-learn=={sklearn.__version__}\n" not in PINNED:
        pytest.skip("classifiers of another scikit-learn differ")
    names = {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        for kind, text in BLOCK.findall(page.read_text()):
            if kind == "console":
                run_console(text)
            elif ">>>" in text:
                run_python(text, names, page)
    finally:
        os.chdir(before)


def test_examples_are_found():
    counted = sum(len(BLOCK.findall(page.read_text())) for page in PAGES)
    assert counted >= 10


def shown_commands(page):
    """Words of each command that a page shows without running it, for it needs files or hours."""
    for text in SHOWN.findall(page.read_text()):
        one_line = re.sub(r"\\\n", " ", text)
        for line in re.findall(r"^crossfusion (?:\"[^\"]*\"|'[^']*'|[^\n\"'])*", one_line, re.MULTILINE):
            for command in re.split(r"&&|\|\|", re.sub(r"[\[\]]", "", line)):  # [--quick]: may be left out
                program, *words = shlex.split(command, comments=True)
                if program == "crossfusion":
                    yield words


def understood(words):
    """Whether the command line has such a command with such options; raises click's error if not."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(context, name)
        assert found is not None, f"there is no command {name}"
        command, context = found, click.Context(found, parent=context, info_name=name)
    command.make_parser(context).parse_args(list(words))


@pytest.mark.parametrize("page", [page for page in PAGES if list(shown_commands(page))], ids=lambda page: page.name)
def test_commands_that_are_only_shown_exist_with_their_options(page):
    for words in shown_commands(page):
        try:
            understood(words)
        except click.ClickException as problem:
            pytest.fail(f"crossfusion {shlex.join(words)}: {problem.message}")


def test_commands_that_do_not_exist_are_noticed():
    understood(["matrix", "summary.parquet", "--between", "site"])
    with pytest.raises(click.NoSuchOption):
        understood(["matrix", "summary.parquet", "--beyond", "site"])
    with pytest.raises(AssertionError, match="no command metrics"):
        understood(["metrics"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_files(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    targets = [(first or second).partition("#")[0] for first, second in LINK.findall(text)]
    local = [target for target in targets if target and "://" not in target and not target.startswith("tutorials/")]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert not missing


def test_every_page_is_in_one_section():
    listed = []
    for page in (ROOT / "docs").glob("*.md"):
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            lines = [line.strip() for line in tree.splitlines() if line.strip() and not line.startswith(":")]
            listed += [re.sub(r".*<(.+)>", r"\1", line) for line in lines]
    pages = sorted(page.stem for page in (ROOT / "docs").glob("*.md") if page.stem != "index")
    assert sorted(name for name in listed if "/" not in name) == pages


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_speed_of_the_readme_is_what_was_measured(theme):
    pytest.importorskip("matplotlib")
    script = runpy.run_path(str(ROOT / "examples" / "readme_pictures.py"))
    drawn = (ROOT / "docs" / "readme" / f"speed-{theme}.svg").read_text()
    for _, label, *where in script["BARS"]:
        assert f">{label}<" in drawn
        assert f">× {script['read_ratio'](*where):,.0f}<" in drawn, f"{label}: run make example-readme"
