"""Build sdist and wheel of the last commit: the same bytes wherever and whenever it is done.

python -m tools.dist [FOLDER]
"""

import datetime as dt
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLATFORM = "manylinux_2_17_x86_64"  # Linux since 2014
TAG = f"cp311-abi3-{PLATFORM}"
COMPILER = f"{shlex.quote(sys.executable)} -m ziglang cc -target x86_64-linux-gnu.2.17"


def find_release() -> tuple[str, dt.date]:
    """Version and date of the newest release in the changelog."""
    found = re.search(r"^## (\d\S+) - (\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit("CHANGELOG.md has no line such as: ## 0.1.0 - 2026-11-17")
    return found[1], dt.date.fromisoformat(found[2])


def list_tracked() -> set[str]:
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
    noon = int(dt.datetime.combine(find_release()[1], dt.time(12), dt.UTC).timestamp())
    for file in tree.rglob("*"):
        file.chmod(0o755 if file.is_dir() or file.stat().st_mode & 0o100 else 0o644)
    with tempfile.TemporaryDirectory() as cache:
        settings = {"SOURCE_DATE_EPOCH": str(noon), "CC": COMPILER, "LDSHARED": f"{COMPILER} -shared"}
        settings |= {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)]
        command += [f"--config-setting=--build-option=--plat-name={PLATFORM}"]
        done = subprocess.run(
            command,
            env=os.environ | settings | environment,
            umask=0o022,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    if done.returncode or not list(out.glob(f"*-{TAG}.whl")):
        sys.exit(f"{done.stdout}\nno wheel of {TAG} was built")
    for sdist in out.glob("*.tar.gz"):
        normalize(sdist, noon)
    return sorted(out.iterdir())


def normalize(sdist: Path, time: int) -> None:
    """Write an sdist again in the order of its names, without times, owners and modes of the machine that built it."""
    with tarfile.open(sdist) as archive:
        files = [(member, archive.extractfile(member)) for member in archive.getmembers() if member.isfile()]
        contents = {member.name: (member, file.read()) for member, file in files if file is not None}
    with (
        sdist.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=time, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, (member, content) in sorted(contents.items()):
            plain = tarfile.TarInfo(name)
            plain.size, plain.mtime, plain.mode = len(content), time, 0o755 if member.mode & 0o100 else 0o644
            archive.addfile(plain, BytesIO(content))


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
