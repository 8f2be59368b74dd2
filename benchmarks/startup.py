"""What a start costs beyond NumPy: the import, the help, a comparison of two small files."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import best_times
from paper.checks import check_whole

HEADER = ["beyond import numpy", "measured", "aim"]
AIMS = {"import crossfusion": 0.08, "crossfusion --help": 0.25, "crossfusion compare": 0.4}  # seconds
MODULES = 30  # of crossfusion that its import loads
COUNT = "import sys, crossfusion; print(sum(name.split('.')[0] == 'crossfusion' for name in sys.modules))"
COMMAND = "import sys; from crossfusion.cli import main; main(sys.argv[1:])"
ROWS, DIM = 200, 16


def run(*, repeats: int = 7) -> dict[str, Any]:
    """Time fresh processes, which take turns, and keep the best of each.

    Parameters
    ----------
    repeats : int
        Rounds.

    Returns
    -------
    dict
        A title, the names of the columns, the rows as text, and the numbers: ``seconds`` beyond NumPy, ``numpy`` for
        NumPy itself, and ``modules``.
    """
    check_whole(repeats, "repeats")
    with tempfile.TemporaryDirectory() as folder:
        sides = _commands(Path(folder))
        for arguments in sides.values():
            _call(arguments)  # compiles bytecode, fills the cache of the disk
        best = best_times({name: partial(_call, arguments) for name, arguments in sides.items()}, repeats)
    plain = best.pop("import numpy")
    seconds = {name: round(value - plain, 4) for name, value in best.items()}
    modules = int(_call(["-c", COUNT]))
    rows = [[name, f"{value:.3f} s", f"≤ {AIMS[name]:g} s"] for name, value in seconds.items()]
    rows.insert(1, ["modules of crossfusion", str(modules), f"≤ {MODULES}"])
    title = f"Start of a fresh process, best of {repeats}; import numpy takes {plain:.3f} s"
    return {"title": title, "header": HEADER, "rows": rows, "seconds": seconds, "numpy": plain, "modules": modules}


def _commands(folder: Path) -> dict[str, list[str]]:
    """Arguments of Python for each side."""
    rng = np.random.default_rng(0)
    files = [str(folder / name) for name in ("a.npy", "b.npy")]
    for shift, file in enumerate(files):
        np.save(file, rng.normal(shift, size=(ROWS, DIM)).astype(np.float32))
    return {
        "import numpy": ["-c", "import numpy"],
        "import crossfusion": ["-c", "import numpy, crossfusion"],
        "crossfusion --help": ["-c", COMMAND, "--help"],
        "crossfusion compare": ["-c", COMMAND, "compare", *files],
    }


def _call(arguments: list[str]) -> str:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, env=kept)
    return done.stdout
