"""Locales, encodings, terminals, pipes, times and clocks: the same answer, or one line."""

import glob
import json
import os
import pty
import select
import subprocess
import time
from pathlib import Path

import numpy as np

from tests.stress import children, data, writing
from tests.stress.judging import Broken, check_files, outcome

CLOCK = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), "")  # of Debian's package libfaketime
CHOICES: dict[str, tuple[str | None, ...]] = {
    "LC_ALL": (None, "C", "POSIX", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1", "ja_JP.SJIS", "none"),
    "LANG": (None, "C", "tr_TR", ""),
    "PYTHONUTF8": (None, "0", "1"),
    "PYTHONCOERCECLOCALE": (None, "0"),
    "PYTHONIOENCODING": (None, None, "ascii", "latin-1", "cp1252", "utf-8", "utf-16", "cp037"),
    "COLUMNS": (None, "20", "1", "0", "x", "100000"),
    "LINES": (None, "1"),
    "NO_COLOR": (None, "1"),
    "TERM": (None, "dumb", "xterm-256color", "", "none"),
    "TZ": (None, "UTC", "Asia/Kathmandu", "America/St_Johns", "none", ":", "XXX-25"),
    "HOME": (None, "/nowhere", "/proc"),
    "TMPDIR": (None, "/nowhere"),
    "OMP_NUM_THREADS": ("1", "x", "0", "-3"),
    "PYTHONWARNINGS": (None, "error", "always"),
    "PYTHONOPTIMIZE": (None, "2"),
    "PYTHONUNBUFFERED": (None, "1"),
}
CALLS = (
    "matrix ../s.parquet --between site --given label",
    "drift ../s.parquet --time week --reference first:4 --alarm 0",
    "attribution ../names.parquet --between site --vectors v",
    "summarize ../x.csv --by site,week --vectors v* -o own.parquet",
    "report ../s.parquet --between site --units patient --permutations 19 -o own.html",
    "matrix ../names.parquet --between site --csv",
    "hierarchy ../s.parquet --factors site,scanner",
)
EXPECTED: dict[str, object] = {}


def prepare(folder: Path) -> None:
    """The files, and what each call answers in ordinary surroundings."""
    data.write_whole_files(folder)
    data.write_bad_files(folder)
    children.preload()
    (folder / "plain").mkdir()
    for call in CALLS:
        if "--csv" not in call:
            EXPECTED[call] = json.loads(
                children.fork([*call.split(), "--json"], folder / "plain", folder / "logs").wait().out
            )


def case(folder: Path, own: Path, draw: np.random.Generator, number: int) -> str:
    """One call in drawn surroundings."""
    chosen = {name: values[int(draw.integers(len(values)))] for name, values in CHOICES.items() if draw.random() < 0.5}
    environment = {name: value for name, value in os.environ.items() if name not in CHOICES}
    environment |= {name: value for name, value in chosen.items() if value is not None}
    call = CALLS[int(draw.integers(len(CALLS)))]
    way = (as_json, on_terminal, to_closed_pipe, at_other_time, without_streams)[number % 5]
    try:
        return way(call, folder, own, draw, environment)
    except Broken as problem:
        raise Broken(f"with {chosen}: {problem}") from problem


def as_json(call: str, _folder: Path, own: Path, _draw: np.random.Generator, environment: dict[str, str]) -> str:
    """JSON is the same everywhere."""
    words = [*call.split(), *([] if "--csv" in call else ["--json"])]
    ended = children.spawn(words, own, environment)
    if environment.get("PYTHONIOENCODING") in ("utf-16", "cp037"):
        return "another encoding" if ended.code in (0, 2) and "Traceback" not in ended.err else outcome(ended)
    found = outcome(ended)
    if found != "right":
        raise ended.broken("refused, though only the surroundings are others")
    if "--json" in words and json.loads(ended.out) != EXPECTED[call]:
        raise ended.broken("another answer")
    return "JSON, right"


def on_terminal(call: str, _folder: Path, own: Path, _draw: np.random.Generator, environment: dict[str, str]) -> str:
    """A table on a terminal of any width, for as long as somebody looks."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [children.COMMAND, *call.split()], stdin=follower, stdout=follower, stderr=follower, env=environment, cwd=own
    )
    os.close(follower)
    shown, deadline = b"", time.monotonic() + children.SECONDS
    while time.monotonic() < deadline:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                shown += os.read(leader, 65536)
            except OSError:  # the last user of the terminal is gone
                break
    os.close(leader)
    process.kill()
    code = process.wait()
    if code or b"Traceback" in shown:
        text = shown.decode("utf-8", "replace")
        raise Broken(f"on a terminal: crossfusion {call} -> {code}, {text[-900:]!r}")
    return "terminal, right"


def to_closed_pipe(call: str, _folder: Path, own: Path, _draw: np.random.Generator, environment: dict[str, str]) -> str:
    """A reader that has seen enough, such as head, is no error."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [children.COMMAND, *call.split()], stdout=write, stderr=subprocess.PIPE, env=environment, cwd=own, check=False
    )
    os.close(write)
    said = done.stderr.decode("utf-8", "replace")
    errors = [line for line in said.splitlines() if not line.startswith("crossfusion: warning: ")]
    if done.returncode not in (0, -13) or errors:
        raise Broken(f"to a closed pipe: crossfusion {call} -> {done.returncode}, {said[-900:]!r}")
    check_files(own, {}, "right")
    return "closed pipe, right"


def without_streams(call: str, _folder: Path, own: Path, draw: np.random.Generator, environment: dict[str, str]) -> str:
    """Standard streams that are closed."""
    closed = [0, 1, 2][: int(draw.integers(1, 4))] if draw.random() < 0.5 else [int(draw.integers(3))]

    def before() -> None:
        for number in closed:
            os.close(number)

    ended = children.spawn(call.split(), own, environment, before)
    if "Traceback" in ended.err or ended.code not in (0, 2) or (ended.code == 2 and 1 not in closed):
        raise ended.broken(f"without the streams {closed}")
    check_files(own, {}, "right" if ended.code == 0 else "refused")
    return f"closed streams, exit code {ended.code}"


def at_other_time(call: str, folder: Path, own: Path, draw: np.random.Generator, environment: dict[str, str]) -> str:
    """Files, locks and litter from the far past and future; a clock that runs elsewhere, where that can be had."""
    write = writing.WRITINGS["append"]
    old = write.begin(own, True)
    litter = own / ".own.parquet.append-0123456789abcdef"
    litter.write_bytes(b"half")
    (own / ".own.parquet.lock").touch()
    for path in (*own.iterdir(), folder / "x.parquet"):
        moment = int(draw.choice([-(2**31), -1, 0, 2**31, 2**32 + 5, 7 * 10**9]))
        os.utime(path, (moment, moment))
    if CLOCK:
        moments = ("@1970-01-02 00:00:00", "@2106-02-08 00:00:00", "-30d", "+9000d", "@1999-12-31 23:59:58")
        environment |= {
            "LD_PRELOAD": CLOCK,
            "FAKETIME": moments[int(draw.integers(len(moments)))],
            "DONT_FAKE_MONOTONIC": "1",
        }
    ended = children.spawn(write.words, own, environment)
    if environment.get("PYTHONIOENCODING") not in ("utf-16", "cp037") and outcome(ended) != "right":
        raise ended.broken("refused, though only times are others")
    if write.state(own, old) != "new" or litter.exists():
        raise ended.broken("not added to, or litter was left")
    return f"other times{', other clock' if CLOCK else ''}, right"
