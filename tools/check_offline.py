"""Install the wheel into an empty environment, without a compiler and without a network, and use it there.

python -m tools.check_offline WHEEL SDIST CACHE

Wheels of the dependencies are downloaded to CACHE once; from then on the network is cut. At the end the sdist is
installed instead, which without a compiler leaves NumPy to do the work of the C extension.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PIP = ("-m", "pip", "--isolated", "--disable-pip-version-check")
SETUPTOOLS = "setuptools>=77"
NOWHERE = "http://127.0.0.1:9"
DATA = """
import numpy as np, crossfusion as cf
from pathlib import Path
x = np.random.default_rng(0).normal(size=(40, 3))
np.save("a.npy", x), np.save("b.npy", x + 1)
np.savez("both.npz", embedding=x, g=np.arange(40) % 2, y=np.arange(40) % 3)
cf.summarize(x, by={"g": np.arange(40) % 2}).write("s.parquet")
for name in ("x.h5", "x.h5ad", "x.pt", "x.zarr/zarr.json", "tiles/A/x.png"):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(b"")
"""
WORKS = ("--version", "--help", "compare a.npy b.npy --json", "matrix s.parquet --between g", "demo --out demo")
COMMANDS = {  # a command, and the extra without which it does not work
    "compare a.npy b.npy --distance wasserstein": "distances",
    "cddr both.npz --between g --label y": "distances",
    "matrix s.parquet --between g --plot g.png": "plots",
    "summarize x.h5 --by g -o t.parquet": "hdf5",
    "integration x.h5ad --batch g --label y --obsm X_pca": "hdf5",
    "summarize x.zarr --by g -o t.parquet": "zarr",
    "summarize x.pt --by g -o t.parquet": "torch",
    "summarize --sql table --by g -o t.parquet": "sql",
    "summarize s3://a/b.parquet --by g -o t.parquet": "remote",
    "summarize both.npz --by g --engine dask -o t.parquet": "dask",
    "summarize both.npz --by g --engine spark -o t.parquet": "spark",
    "mcp tiles": "mcp",
    "embed tiles --layout folder --encoder random -o t.parquet": "pathology",
}
CODE = {
    "import crossfusion.torch": "torch",
    "import crossfusion.jax": "jax",
    "import crossfusion as cf; cf.read_summary('s.parquet').to_frame()": "pandas",
    "import crossfusion as cf; cf.read_summary('s.parquet').cfd('g').plot()": "plots",
}


def without_network() -> list[str]:
    """How to start a command that reaches no other machine, where the system allows it."""
    cut = ["unshare", "--map-root-user", "--net"]
    allowed = shutil.which("unshare") and subprocess.run([*cut, "true"], capture_output=True).returncode == 0
    print("the network is cut" if allowed else "the network cannot be cut here: proxies lead nowhere instead")
    return cut if allowed else []


class Environment:
    """An empty environment in a folder, with one wheel installed; commands run in that folder."""

    def __init__(self, folder: Path, wheel: Path, cache: Path) -> None:
        self.folder, self.start = folder, without_network()
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.run("python", *PIP, "install", "-q", "--no-index", "--find-links", cache, wheel)

    def run(self, *command: str | Path, code: int = 0) -> str:
        """What a command of the environment prints; ends the check where it ends with another code."""
        proxies = {f"{kind}_proxy": NOWHERE for kind in ("http", "https", "all")}
        plain = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "CC": "/bin/false",
        } | proxies
        line = [*self.start, self.folder / "venv" / "bin" / command[0], *command[1:]]
        done = subprocess.run(line, cwd=self.folder, env=plain, capture_output=True, text=True)
        if done.returncode != code:
            sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def names_extra(said: str, shown: str, extra: str) -> bool:
    """Whether a missing library is named in the last line, with the extra that brings it."""
    last = said.strip().splitlines()[-1]
    right = re.search(rf"needs .* not installed: pip install 'crossfusion\[{extra}\]'$", last) is not None
    print(f"{'ok' if right else f'should have named the extra {extra}'}: {shown}\n    {last if right else said}")
    return right


def expect_kernel(there: Environment, kernel: str) -> None:
    """The kernel that is in use, as the command says."""
    said = there.run("crossfusion", "--version").strip()
    if f"kernel {kernel}" not in said:
        sys.exit(f"the kernel should have been {kernel}: {said}")
    print(f"ok: {said}")


def check_numpy(there: Environment, sdist: Path) -> None:
    """Install the sdist without a compiler: NumPy stands in, with the same numbers."""
    compare = "crossfusion", "compare", "a.npy", "b.npy", "--level", "0.95"
    before = there.run(*compare)
    there.run("python", *PIP, "install", "-q", "--force-reinstall", "--no-deps", "--no-build-isolation", sdist)
    expect_kernel(there, "NumPy")
    if there.run(*compare) != before:
        sys.exit(f"NumPy and C differ: {before}")
    print("ok: installed without a compiler, NumPy gives the same numbers")


def use(there: Environment) -> bool:
    """Do what must work with the dependencies alone, and ask for what is not there."""
    there.run("python", "-c", DATA)
    for line in WORKS:
        there.run("crossfusion", *line.split())
        print(f"ok: crossfusion {line}")
    asked = [(f"crossfusion {line}", extra, ["crossfusion", *line.split()], 2) for line, extra in COMMANDS.items()]
    asked += [(code, extra, ["python", "-c", code], 1) for code, extra in CODE.items()]
    found = [names_extra(there.run(*command, code=code), shown, extra) for shown, extra, command, code in asked]
    return all(found)


def main() -> None:
    """Download, cut the network, install and use."""
    wheel, sdist, cache = (Path(argument).resolve() for argument in sys.argv[1:])
    fetch = ["pip", "download", "-q", "--disable-pip-version-check", "--only-binary", ":all:", "-d", str(cache)]
    subprocess.run([sys.executable, "-m", *fetch, str(wheel), SETUPTOOLS], check=True)
    with tempfile.TemporaryDirectory() as folder:
        there = Environment(Path(folder), wheel, cache)
        print(there.run("python", *PIP, "list", "--format", "freeze").strip())
        expect_kernel(there, "C (")
        named = use(there)
        there.run("python", *PIP, "install", "-q", "--no-index", "--find-links", cache, SETUPTOOLS)
        check_numpy(there, sdist)
        sys.exit(not named)


if __name__ == "__main__":
    main()
