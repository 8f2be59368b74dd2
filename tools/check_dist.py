"""Look at what `python -m tools.dist` left: the same bytes when built elsewhere, all that belongs there, nothing else.

python -m tools.check_dist [FOLDER]
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import HeaderParser
from hashlib import sha256
from pathlib import Path

from tools.dist import ROOT, TAG, build, export, find_release, list_tracked
from tools.native import extensions

ELSEWHERE = {"TZ": "Asia/Kathmandu", "LC_ALL": "C", "PYTHONHASHSEED": "7", "HOME": "/nowhere"}
LONG_AGO = 1_000_000_000  # seconds, as a time of change


def expect(same: bool, said: str) -> None:
    """Say what holds, or end with what does not."""
    if not same:
        sys.exit(f"not so: {said}")
    print(f"ok: {said}")


def build_elsewhere() -> dict[str, str]:
    """Digests of what is built in another folder, with another umask, other times, another zone and locale."""
    with tempfile.TemporaryDirectory(prefix="a far longer name than usual ") as folder:
        tree, out = Path(folder, "tree"), Path(folder, "out")
        usual = os.umask(0o077)
        try:
            export(tree)
            for file in tree.rglob("*"):
                file.chmod(file.stat().st_mode & ~0o077)
                os.utime(file, (LONG_AGO, LONG_AGO))
            return digests(build(tree, out, **ELSEWHERE))
        finally:
            os.umask(usual)


def digests(files: list[Path]) -> dict[str, str]:
    """SHA-256 of files by name."""
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in files}


def check_sdist(path: Path, version: str) -> None:
    """An sdist holds the files of the commit, so that it can be built and tested, and what setuptools adds."""
    with tarfile.open(path) as archive:
        names = {name.removeprefix(f"crossfusion-{version}/") for name in archive.getnames()}
    names -= {name for name in names if name.startswith("src/crossfusion.egg-info/")}
    expect(
        names == list_tracked() | {"PKG-INFO", "setup.cfg"},
        f"{path.name} holds the {len(names) - 2} files of the commit",
    )


def check_wheel(path: Path, version: str) -> None:
    """A wheel holds the package, its extensions and its metadata, the licence among them."""
    about = f"crossfusion-{version}.dist-info"
    written = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt"}
    package = {name.removeprefix("src/") for name in list_tracked() if name.startswith("src/")}
    package |= {f"{extension['name'].replace('.', '/')}.abi3.so" for extension in extensions()}
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        facts = HeaderParser().parsestr(archive.read(f"{about}/METADATA").decode())
    roots = {name.partition("/")[0] for name in names}
    expect(roots == {"crossfusion", about}, "it has neither paper nor benchmarks")
    expect("crossfusion/py.typed" in names, "its types are for users, too")
    expect(names == package | {f"{about}/{name}" for name in written}, f"{path.name} holds the package, nothing else")
    said = (facts["Version"], facts["License-Expression"], facts["Description-Content-Type"])
    expect(said == (version, "Apache-2.0", "text/markdown"), f"its metadata say {', '.join(said)}")
    expect("Project-URL" not in facts, "it names no address that is not there")
    expect(path.name == f"crossfusion-{version}-{TAG}.whl", f"it is for {TAG}")
    check_platform(path)


def check_platform(path: Path) -> None:
    """A manylinux wheel runs on any Linux with the C library of its tag, as auditwheel sees it."""
    audit = [sys.executable, "-m", "auditwheel", "show", "--json", str(path)]
    found = json.loads(subprocess.run(audit, check=True, capture_output=True, text=True).stdout)
    older = [int(number) for number in re.findall(r"manylinux_2_(\d+)_x86_64", found["overall_tag"])]
    claimed = int(TAG.split("_")[2])
    expect(bool(older) and older[0] <= claimed, f"auditwheel finds it fit for {found['overall_tag']}")
    expect(not found["external_libs"], f"it needs no library but {found['versioned_symbols']}")


def main() -> None:
    """Check all files of a folder."""
    files = sorted((ROOT / (sys.argv[1] if len(sys.argv) > 1 else "dist")).iterdir())
    version = files[-1].name.removeprefix("crossfusion-").removesuffix(".tar.gz")
    expect(
        version == find_release()[0] or "dev" in version,
        f"{version} is the newest release of the changelog, or none yet",
    )
    expect([file.suffix for file in files] == [".whl", ".gz"], "there are a wheel and an sdist, no more")
    other = build_elsewhere()
    for name, digest in digests(files).items():
        expect(other[name] == digest, f"another folder, umask, time, zone and locale make the same {name}")
    check_wheel(files[0], version)
    check_sdist(files[1], version)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    for name, digest in digests(files).items():
        print(digest, name)


if __name__ == "__main__":
    main()
