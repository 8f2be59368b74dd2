"""`python -m paper` and `python -m benchmarks`: help, bad calls, interruptions, folders."""

import signal
import subprocess
import sys
import time

import pytest

from paper.synthetic import EXPERIMENTS
from tests.helpers.module_commands import ENVIRONMENT, fail_module, module_command, run_module

BAD = {
    "unknown experiment": ("paper synthetic --experiment outlier", "did you mean 'outliers'"),
    "not numbers": ("paper synthetic --dims many", "'many' is not a list of whole numbers"),
    "no trials": ("paper synthetic --trials 0", "--trials 0"),
    "no workers": ("paper synthetic --quick --workers 0", "--workers 0"),
    "no room": ("paper synthetic --dims 8", "--dims 8 has no room"),
    "endless shift": ("paper synthetic --delta inf", "--delta inf"),
    "name twice": ("paper real --only pacs,pacs", "'pacs' is used twice"),
    "empty name": ("paper real --only pacs,", "has an empty name"),
    "unknown study": ("paper everything", "No such command"),
    "no time": ("paper runtime --cap 0", "--cap 0"),
    "negative seed": ("paper decomposition --seed -1", "--seed -1"),
    "out is a file": ("paper decomposition --out a.npy", "a.npy"),
    "no features": ("benchmarks moments --dim 0", "--dim 0"),
    "few draws": ("benchmarks coverage --draws 1", "--draws 1"),
    "unknown part": ("benchmarks scale --only storage", "did you mean 'storages'"),
    "unknown benchmark": ("benchmarks everything", "No such command"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_calls_are_one_line(case, tmp_path):
    words, expected = BAD[case]
    (tmp_path / "a.npy").write_bytes(b"")
    assert expected in fail_module(*words.split(), cwd=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npy"]


def test_help_names_every_experiment():
    words = run_module("paper", "synthetic", "--help").stdout.replace(",", " ").replace(".", " ").split()
    assert set(EXPERIMENTS) <= set(words)


def test_small_settings_have_a_folder_of_their_own(tmp_path):
    done = run_module("paper", "runtime", "--quick", "--dim", "4", cwd=tmp_path)
    assert (tmp_path / "reproduction-quick" / "runtime" / "runtime.md").read_text() in done.stdout
    assert not (tmp_path / "reproduction").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interruption_is_one_line(tmp_path):
    words = module_command("paper", "synthetic", "--workers", 1, "--out", tmp_path / "out")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        while not (tmp_path / "out" / "parts").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == "crossfusion: interrupted; no partial files are left behind\n"


def test_a_reader_that_has_seen_enough_is_no_error():
    words = module_command("benchmarks", "--help")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
