"""Run the cases of one part, or one of them again: `python -m tests.stress.part NAME SEED --case N`."""

import argparse
import faulthandler
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zlib
from pathlib import Path

import numpy as np

from tests.helpers import PATIENCE
from tests.stress.judging import Broken
from tests.stress.parts import PARTS

SECONDS = 2 * PATIENCE + 60  # of a case, after which it is taken to hang


def run(name: str, seed: int, first: int, last: int, seconds: float) -> int:
    """Run cases until the time is over; returns the number of findings."""
    part, findings, deadline = PARTS[name], 0, time.monotonic() + seconds
    load = part.load()
    with tempfile.TemporaryDirectory(prefix="stress-") as folder:
        place = Path(folder)
        load.prepare(place)
        for case in range(first, last):
            if time.monotonic() > deadline and case > first:
                break
            findings += not _one(load, name, seed, case, place)
    print("over", flush=True)
    return findings


def _one(load, name: str, seed: int, case: int, place: Path) -> bool:
    """Run a case in an empty folder beside what was prepared; whether it ended well."""
    print(f"case {case}", file=sys.stderr, flush=True)
    own = place / "case"
    own.mkdir()
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        ended = load.case(place, own, np.random.default_rng([seed, zlib.crc32(name.encode()), case]), case)
    except Broken as problem:
        text = str(problem).replace("\n", "\\n")
        print(f"found python -m tests.stress.part {name} {seed} --case {case}: {text[-1500:]}", flush=True)
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()
        for path in (own, *own.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
        shutil.rmtree(own)
    print(f"ended {ended}", flush=True)
    return True


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress.part", description=__doc__)
    parser.add_argument("name", choices=PARTS)
    parser.add_argument("seed", type=int)
    parser.add_argument("--case", type=int, help="this one only")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    first, last = (asked.first, 10**9) if asked.case is None else (asked.case, asked.case + 1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell that runs this behind has switched off
    return min(1, run(asked.name, asked.seed, first, last, asked.seconds))


if __name__ == "__main__":
    sys.exit(main())
