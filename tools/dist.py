"""Build sdist and wheel of the last commit: the same bytes wherever and whenever it is done.

python -m tools.dist [FOLDER]
"""

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def released() -> tuple[str, dt.date]:
    """Version and date of the newest release in the changelog."""
    found = re.search(r"^## (\d\S+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit("CHANGELOG.md has no line such as: ## 0.1.0 - 2026-11-17")
    return found[1], dt.date.fromisoformat(found[2])


def tracked() -> set[str]:
    """Names of the files of the last commit."""
    listed = subprocess.run(["git", "ls-tree", "-rz", "--name-only", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    return {name.decode() for name in listed.stdout.split(b"\0") if name}


def export(folder: Path) -> None:
    """The files of the last commit; where there is no repository, as in an unpacked sdist, what is here."""
    if not (ROOT / ".git").exists():
        hidden = shutil.ignore_patterns(".venv*", "dist", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, folder, ignore=hidden, dirs_exist_ok=True)
        return
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="tar")


def build(tree: Path, out: Path, **environment: str) -> list[Path]:
    """Build the sdist from a tree and the wheel from the sdist; every file is dated as the newest release."""
    noon = dt.datetime.combine(released()[1], dt.time(12), dt.UTC)
    settings = os.environ | {"SOURCE_DATE_EPOCH": str(int(noon.timestamp()))} | environment
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)]
    done = subprocess.run(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(done.stdout)
    return sorted(out.iterdir())


def main() -> None:
    """Build into a folder, which is made anew."""
    out = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "dist")
    changed = (ROOT / ".git").exists() and subprocess.run(["git", "diff", "--quiet", "HEAD"], cwd=ROOT).returncode
    if changed:
        print("changes that are not committed are left out", file=sys.stderr)
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as tree:
        export(Path(tree))
        for file in build(Path(tree), out):
            print(f"{file.stat().st_size:>11,}  {file}")


if __name__ == "__main__":
    main()
