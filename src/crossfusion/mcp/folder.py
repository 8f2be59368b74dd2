"""The one folder whose files may be read."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from crossfusion._base import FileError, load

MAX_LISTED_FILES = 500
MAX_WALKED_FILES = 20_000
HDF5_ENDINGS = (".h5", ".hdf5", ".h5ad")


class Folder:
    """A folder; paths in it are relative, and nothing outside of it is reached.

    Parameters
    ----------
    root : path
        The folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        if not Path(root).is_dir():
            raise FileError(root, "is not a folder", "name the folder whose files may be read")
        self.root = Path(os.path.realpath(root))

    def find(self, name: str) -> Path:
        """Find a file, or a folder of files, by its relative name."""
        if not name or "\0" in name or "://" in name or Path(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise FileError(repr(name), "is not a relative path in the folder", "name one that list_files shows")
        path = Path(os.path.realpath(self.root / name))
        self._check_inside(path, name)
        if not path.exists():
            raise FileError(name, "does not exist", "name one that list_files shows")
        for file in self._walk(path, name) if path.is_dir() else [path]:
            _check_hdf5(file, name)
        return path

    def shorten(self, text: str) -> str:
        """A text in which paths are relative to the folder."""
        return text.replace(f"{self.root}{os.sep}", "").replace(str(self.root), ".")

    def list_files(self) -> tuple[list[dict[str, Any]], int]:
        """List the first files with their sizes, and count all of them."""
        found = [
            (file.relative_to(self.root).as_posix(), file.stat().st_size)
            for file in self._walk(self.root, ".", skip=True)
        ]
        listed = [{"path": name, "bytes": size} for name, size in sorted(found)[:MAX_LISTED_FILES]]
        return listed, len(found)

    def _walk(self, path: Path, name: str, *, skip: bool = False) -> Iterator[Path]:
        """All plain files below a folder; links that lead out of the root are refused, or skipped."""
        count = 0
        for place, folders, files in os.walk(path):
            folders[:] = [entry for entry in folders if not entry.startswith(".")]
            for entry in [*folders, *files]:
                count += 1
                if count > MAX_WALKED_FILES:
                    raise FileError(
                        name, f"holds more than {MAX_WALKED_FILES:,} files", "name a file, or a smaller folder"
                    )
                own = Path(place) / entry
                inside = Path(os.path.realpath(own)).is_relative_to(self.root)
                if not inside and not skip:
                    self._check_inside(Path(os.path.realpath(own)), own.relative_to(self.root).as_posix())
                if inside and entry in files and not entry.startswith(".") and own.is_file():
                    yield own

    def _check_inside(self, path: Path, name: str) -> None:
        if not path.is_relative_to(self.root):
            raise FileError(name, "leads out of the folder", "name a file in it")


def _check_hdf5(file: Path, name: str) -> None:
    """Refuse an HDF5 file whose contents are in other files, which may be anywhere."""
    if file.suffix.lower() not in HDF5_ENDINGS:
        return
    h5py = load("h5py", "h5py", "hdf5", "reading HDF5")
    try:
        with h5py.File(file, "r") as opened:
            outside = _find_outside(opened, h5py)
    except (OSError, RuntimeError):  # which reading the file explains
        return
    if outside:
        raise FileError(name, f"refers to another file in {outside}", "copy the data into one file")


def _find_outside(group: Any, h5py: Any) -> str | None:
    """The first entry of a group, or of one below, that refers to another file."""
    for key in group:
        link = group.get(key, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            return f"{group.name.rstrip('/')}/{key}"
        if isinstance(link, h5py.SoftLink):
            continue  # to an entry that is looked at by itself
        entry = group[key]
        if isinstance(entry, h5py.Group):
            found = _find_outside(entry, h5py)
            if found:
                return found
        elif entry.external or entry.is_virtual:
            return str(entry.name)
    return None
