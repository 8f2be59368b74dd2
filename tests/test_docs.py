"""Every example in the README and the docs runs and prints what the page says."""

import doctest
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


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
