"""Peak memory of a command that reads more than memory should hold."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.scale import files
from crossfusion import InputError

LIMIT = 600  # megabytes


def measure(folder: Path, gigabytes: float, dim: int, tell: Callable[[str], None] | None = None) -> list[list[str]]:
    """A line for each storage: peak anonymous memory of `crossfusion summarize`."""
    found = []
    for name, write in (("Parquet", files.write_parquet), ("HDF5", files.write_hdf5)):
        path = folder / f"large.{'parquet' if name == 'Parquet' else 'h5'}"
        if tell is not None:
            tell(f"writing {gigabytes:g} GB of {name}")
        write(path, gigabytes, dim)
        if tell is not None:
            tell(f"measuring memory while {name} is read")
        peak = peak_anonymous(["summarize", str(path), "--by", "site", "--vectors", "vector", "-o", f"{path}.parquet"])
        path.unlink()
        found.append([f"peak anonymous memory, {gigabytes:g} GB of {name} (MB)", f"{peak / 1e6:.0f}", f"< {LIMIT}"])
    return found


def peak_anonymous(arguments: list[str]) -> int:
    """Largest anonymous memory of a process that runs a command, in bytes; mapped files are not in it."""
    if not Path("/proc/self/status").exists():
        raise InputError(
            problem="the peak of anonymous memory is read from /proc, which is not here", remedy="measure on Linux"
        )
    command = [sys.executable, "-c", "from crossfusion.cli import main; main()", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, _read_anonymous(process.pid))
            time.sleep(0.005)
        said = process.stderr.read().decode() if process.stderr else ""
    if process.returncode:
        raise InputError(problem=f"the measured command failed ({said.strip()})", remedy="run it by hand")
    return peak


def _read_anonymous(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (OSError, ValueError):  # it has ended
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)
