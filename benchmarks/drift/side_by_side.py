"""The alarm beside the detectors of evidently and frouros, each in an environment of its own, on the same streams."""

import json
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.drift.streams import Stream
from crossfusion.study import make_folder
from paper.checks import check_whole

PEERS = [
    "detector",
    "false alarms, periods alike",
    "false alarms, periods differ",
    "small sudden shift, periods alike: windows to the alarm",
    "sudden shift, periods differ",
    "slow shift, periods differ",
    "time of a window",
    "memory of a window",
]
PACKAGES = {
    "evidently": ("evidently>=0.7,<0.8", "pandas<3"),  # with pandas 3 its embedding drift does not import
    "frouros": ("frouros>=0.9,<0.10",),
}
HERE = Path(__file__).parent
FULL, QUICK = 4, 1  # streams of each kind
USUAL = Stream(reference=8, ahead=12, rows=50, dim=32, effect=4.0, directions=4, rho=0.5)
KINDS = {
    "alike": replace(USUAL, effect=0.0),
    "differ": USUAL,
    "small": replace(USUAL, effect=0.0, shift=2.0, onset=4),
    "sudden": replace(USUAL, shift=8.0, onset=4),
    "slow": replace(USUAL, shift=12.0, onset=1, ramp=12),
}


def side_by_side(
    folder: Path,
    *,
    quick: bool = False,
    streams: int | None = None,
    peers: tuple[str, ...] = tuple(PACKAGES),
    tell: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Run every detector on the same streams.

    Parameters
    ----------
    folder : path
        Where the environments of other libraries are made, by pip, unless they are there.
    quick : bool
        Few streams.
    streams : int, optional
        Of each kind.
    peers : tuple of str
        Other libraries.
    tell : function, optional
        Called with what is being done.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text; a library that could not be installed says why.
    """
    number = (QUICK if quick else FULL) if streams is None else streams
    check_whole(number, "streams")
    say = tell or (lambda _: None)
    rows, missing = [], []
    with TemporaryDirectory() as place:
        paths = [_write_streams(Path(place), name, number) for name in KINDS]
        say("crossfusion")
        ours = _run(Path(sys.executable), "ours.py", paths)
        found = dict(ours)
        for peer in peers:
            say(f"{peer}: environment in {folder / peer}")
            try:
                python = _environment(folder, peer)
                say(peer)
                found |= _run(python, f"peer_{peer}.py", paths)
            except RuntimeError as problem:
                missing.append(f"{peer} is left out: {problem}")
    base = next(iter(ours.values()))
    rows = [_row(name, result, base) for name, result in found.items()]
    title = (
        f"{number} streams a column, {USUAL.reference} reference periods and {USUAL.ahead} ahead of {USUAL.rows} rows"
        f" × {USUAL.dim}; time and memory as ratios, crossfusion's own is 1"
    )
    return {"title": title, "header": PEERS, "rows": rows, "missing": missing}


def _write_streams(folder: Path, name: str, number: int) -> str:
    path = folder / f"{name}.npy"
    np.save(path, np.array([KINDS[name].draw([seed, list(KINDS).index(name)]) for seed in range(number)]))
    return str(path)


def _environment(folder: Path, peer: str) -> Path:
    """The interpreter of a library's own environment, which is made if it is not there."""
    place = make_folder(folder) / peer
    python = place / "bin" / "python"
    if (place / ".installed").exists():
        return python
    try:
        venv.create(place, with_pip=True, clear=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        raise RuntimeError(f"no environment in {place} ({problem})") from problem
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[peer]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pip install {' '.join(map(repr, PACKAGES[peer]))} says: {_last(done.stderr)}")
    (place / ".installed").touch()
    return python


def _run(python: Path, script: str, paths: list[str]) -> dict[str, Any]:
    command = [str(python), str(HERE / script), str(USUAL.reference), *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"it does not run: {_last(done.stderr)}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "nothing"


def _row(name: str, result: dict[str, Any], base: dict[str, Any]) -> list[str]:
    alarms = dict(zip(KINDS, result["alarms"], strict=True))
    rates = [f"{np.mean(alarms[kind]):.3f}" for kind in ("alike", "differ")]
    delays = [_delay(np.array(alarms[kind]), KINDS[kind].onset) for kind in ("small", "sudden", "slow")]
    ratios = [f"{result[field] / base[field]:.3g}" for field in ("seconds", "bytes")]
    return [name, *rates, *delays, *ratios]


def _delay(alarms: Any, onset: int) -> str:
    """Windows from the onset to the first alarm, that of the onset being 1: the median; and streams with none."""
    after = alarms[:, onset - 1 :]
    delays = [int(stream.argmax()) + 1 if stream.any() else np.inf for stream in after]
    missed = sum(delay == np.inf for delay in delays)
    middle = median(delays)
    shown = f"{middle:g}" if middle < np.inf else f"> {after.shape[1]}"
    return shown + (f" ({missed} of {len(delays)} never)" if missed else "")
