"""Which files of a folder are read: each once, without tables that describe the others."""

import os
from collections.abc import Iterable, Iterator, Mapping

from crossfusion._base import FileError

ARRAY_ENDINGS = (".npy", ".npz", ".h5", ".hdf5", ".zarr", ".zarr.zip", ".pt", ".pth")
TEXT_ENDINGS = (".csv", ".tsv")  # packed or not

Step = tuple[str, list[str], list[str]]


def walk_once(folder: str) -> Iterator[Step]:
    """Walk a folder as `os.walk` does, through links to folders as well, but into each folder once."""
    inside = os.path.realpath(folder)
    seen = {inside}
    for root, folders, files in os.walk(folder, followlinks=True):
        yield root, folders, files
        new = {name: os.path.realpath(os.path.join(root, name)) for name in folders}
        here = os.path.realpath(root)
        folders[:] = [
            name
            for name in folders
            if new[name] not in seen
            and not (os.path.islink(os.path.join(root, name)) and _contains(inside, new[name]))  # comes by itself
            and not _contains(new[name], here)
        ]
        seen.update(new[name] for name in folders)


def drop_linked(paths: Iterable[str]) -> list[str]:
    """Paths without those that lead to the same file in the same folder through a link."""
    real: dict[str, str] = {}
    found: dict[tuple[str, str], str] = {}
    for path in paths:
        folder, name = os.path.split(path)
        if folder not in real:
            real[folder] = os.path.realpath(folder)
        direct = real[folder] == os.path.abspath(folder)
        if direct or (real[folder], name) not in found:
            found[real[folder], name] = path
    return sorted({*found.values()})


def split_tables(endings: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Split paths into those to read, and text tables beside arrays, which describe these and hold no vectors."""
    if not any(ending in ARRAY_ENDINGS for ending in endings.values()):
        return list(endings), []
    tables = [path for path, ending in endings.items() if ending.startswith(TEXT_ENDINGS)]
    return [path for path in endings if path not in {*tables}], tables


def check_one_version(endings: Mapping[str, str], name: str) -> None:
    """Refuse arrays that one folder, or two beside each other, hold in two formats: h5_files/s.h5 and pt_files/s.pt."""
    first: dict[tuple[str, str], str] = {}
    for path, ending in endings.items():
        if ending not in ARRAY_ENDINGS:
            continue
        folder, file = os.path.split(path)
        stem = file[: -len(ending)]
        for place in ((folder, stem), (os.path.dirname(folder), f"*/{stem}")):
            other = first.setdefault(place, path)
            if endings[other] != ending and not _differ_in_factor(folder, os.path.dirname(other)):
                raise FileError(
                    name,
                    f"holds {os.path.basename(other)} and {file}, probably the same vectors in two formats",
                    f"name one of the folders, or a pattern such as *{ending}",
                )


def _differ_in_factor(one: str, other: str) -> bool:
    """Whether folders are named after different values of a factor: site=A and site=B."""
    return one != other and "=" in os.path.basename(one) and "=" in os.path.basename(other)


def _contains(folder: str, path: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
