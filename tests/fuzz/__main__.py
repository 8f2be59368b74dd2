"""Break and read files of one format."""

import gc
import os
import shutil
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from crossfusion.io.sources import parquet_wide
from tests.fuzz.breaking import break_file
from tests.fuzz.formats import FORMATS, Format
from tests.fuzz.judging import MEGABYTES, judge, judge_isolated, peak, run_command

NO_TEXT = os.fsdecode(b"caf\xe9-") if sys.platform == "linux" else "café-"  # elsewhere names are text


def copy(source: Path, target: Path) -> None:
    shutil.rmtree(target) if target.is_dir() else target.unlink(missing_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def check_whole(made: Format, whole: Path, odd_name: Path) -> str:
    """Whole files have to be read, under any name, from Python and by all commands."""
    copy(whole, odd_name)
    for path in (whole, odd_name):
        for target in made.targets(path):
            for ask in (made.ask, *(partial(_command, command) for command in made.commands)):
                found = judge(partial(_must, ask, path, target))
                if found:
                    return f"{target.name}: {found}"
    return ""


def _command(command, path: Path, target: Path) -> None:
    run_command(command(path, target))


def _must(ask, path: Path, target: Path) -> None:
    try:
        ask(path, target)
    except ValueError as problem:  # ours are
        raise AssertionError(f"whole, but refused: {problem}") from problem


def prepare(made: Format, whole: Path, path: Path, case: int, draw: np.random.Generator) -> tuple[Path, str]:
    """Put a broken file in place: which one, and what is wrong with it."""
    copy(whole, path)
    if made.odd is not None and case % 4 == 3:
        plain = whole.with_name(f"odd-{made.odd_file or whole.name}")
        shutil.rmtree(plain, ignore_errors=True)
        made.odd(plain, draw)
        target = path / made.odd_file if made.odd_file else path
        copy(plain, target)
        return target, "odd content"
    targets = made.targets(path)
    target = targets[int(draw.integers(len(targets)))]
    return target, break_file(target, draw)


def run(name: str, count: int, seed: int) -> int:
    """Read broken files of a format; returns the number of findings."""
    warnings.simplefilter("ignore")
    made, findings = FORMATS[name], 0
    if made.large:
        parquet_wide.MIN_COLUMNWISE_ROWS = 1
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        whole = Path(folder) / f"whole-{made.file}"
        names = Path(folder) / made.file, Path(folder) / f"{NO_TEXT}{made.file}"
        made.write(whole)
        found = check_whole(made, whole, names[1])
        if found:
            print(f"{name}: whole: {found}", flush=True)
            return 1
        before, judge_case = peak(), judge_isolated if made.isolated else judge
        for case in range(count):
            draw = np.random.default_rng([seed, case])
            path = names[case % 5 == 4]
            target, how = prepare(made, whole, path, case, draw)
            print(f"{name} {seed} {case}: {how!r}", file=sys.stderr, flush=True)  # the last line tells of a crash
            if case % 10 in (0, 9):
                found = judge_case(partial(run_command, made.command(path, target, draw)))
            else:
                found = judge_case(partial(made.ask, path, target))
            if not found and peak() - before > MEGABYTES:
                found, before = f"memory grew by {peak() - before:.0f} MB", peak()
            if found:
                findings += 1
                print(f"{name} {seed} {case}: {how!r}: {found[-400:]}", flush=True)
        grown = peak() - before
        late = judge(gc.collect)  # of what is cleared away at last
        if late:
            findings += 1
            print(f"{name} {seed}: at the end: {late[-400:]}", flush=True)
    print(f"{name} {seed}: memory grew by {grown:.0f} MB", file=sys.stderr)
    return findings


if __name__ == "__main__":
    sys.exit(min(1, run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
