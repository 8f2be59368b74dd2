"""Where files are: paths, globs, folders and URLs, and the factors that the names of folders hold."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from glob import glob
from pathlib import PurePath
from typing import IO, Any
from urllib.parse import unquote

from crossfusion._base import (
    RAN_SHORT,
    CrossfusionError,
    CrossfusionWarning,
    FileError,
    InputError,
    escape_unprintable,
    first_line,
    optional,
    ran_short,
)
from crossfusion.io.sources.folder_files import check_one_version, drop_linked, split_tables, walk_once
from crossfusion.io.sources.lake_tables import TABLE_REMEDIES, find_table

COMPRESSED_ENDINGS = (".gz", ".bz2", ".zst", ".zip")  # endings that follow the one of the content
PARQUET_ENDINGS = (".parquet", ".pq")
DAMAGED = "is damaged: write it again"
ZARR_ENDING = ".zarr"  # the ending of a Zarr store, which is a folder whatever it is called
ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")  # files by which such a folder is known
HIVE_MISSING = "__HIVE_DEFAULT_PARTITION__"  # how Hive and Spark spell a missing value in a path
WHOLE_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")


@dataclass(frozen=True)
class FoundFile:
    """One file, or one folder that is read as a file."""

    path: str
    ending: str

    @cached_property
    def factors(self) -> dict[str, str | None]:
        """Values that folders on the way are named after, `site=A/day=1/x.csv`."""
        steps = [step.partition("=") for step in re.split(r"[/\\]" if os.sep == "\\" else "/", self.path)[:-1]]
        return {unquote(key): _read_value(value) for key, mark, value in steps if mark and key}


@dataclass(frozen=True)
class Location:
    """What one path stands for: a file, or the files of a folder or glob, whose rows belong together."""

    name: str  # for messages
    files: tuple[FoundFile, ...]
    several: bool = False  # a folder or glob, whatever the number of files
    tables: tuple[str, ...] = ()  # text beside arrays, which is not read


def find_files(path: str | os.PathLike[str], endings: Collection[str]) -> Location:
    """Files that a path stands for, in the order of their names."""
    place = as_text(path)
    found = _find_remote(place, endings) if is_remote(place) else _find_local(place, endings)
    check_no_table(file.path for file in found.files if file.ending in PARQUET_ENDINGS)
    return found


def check_no_table(files: Iterable[str]) -> None:
    """Refuse Parquet files of a table, since its folder also holds files that were replaced or deleted."""
    table = find_table(files)
    if table is not None:
        folder, kind = table
        raise FileError(
            show_path(folder),
            f"is a table of {kind}, whose folder also holds files that are no longer part of it",
            str(TABLE_REMEDIES[kind]),
        )


def as_text(path: str | os.PathLike[str]) -> str:
    """A path as text, `~` expanded."""
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise FileError(problem=f"{text!r} is not a path", remedy="name a file, a folder or a URL")
    return text if is_remote(text) else os.path.expanduser(text)


def is_remote(path: str) -> bool:
    """Whether a path is a URL, which fsspec reads."""
    return "://" in path


def show_path(path: str | os.PathLike[str]) -> str:
    """A path for messages: any terminal can print it, and what gives access to a URL is left out."""
    text = os.fsdecode(path)
    if is_remote(text):
        text = re.sub(r"://[^/@]*@", "://...@", text)
        text = re.sub(r"(https?://[^?]*\?).*", r"\1...", text)
    return escape_unprintable(text)


def find_ending(path: str) -> str:
    """The ending of a file's name in lower case, both of them where it is packed: `.csv.gz`."""
    if is_remote(path):
        path = next(step for step in path.split("::") if is_remote(step))  # before it may be a cache
        path = path.partition("?")[0] if path.startswith("http") else path
    suffixes = PurePath(path).suffixes
    return "".join(suffixes[-2:] if suffixes and suffixes[-1].lower() in COMPRESSED_ENDINGS else suffixes[-1:]).lower()


def _read_value(text: str) -> str | None:
    return None if text == HIVE_MISSING else show_path(unquote(text))


def _is_glob(path: str) -> bool:
    marks = "*" if path.startswith("http") else "*?["  # a URL has other uses for these
    return any(mark in path.partition("::")[0] for mark in marks)


def _is_hidden(name: str) -> bool:
    """Whether a name is one that data sets keep for themselves, such as `_SUCCESS` and `.x.crc`."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _find_root(pattern: str) -> str:
    """The folder in which the files that a glob matches are looked for."""
    return os.path.dirname(re.split(r"[*?[]", pattern)[0])


def _drop_hidden(root: str, names: Sequence[str]) -> list[str]:
    """Names without those that are hidden, or in a folder below the root that is."""
    return [name for name in names if not any(map(_is_hidden, name.removeprefix(root).strip("/").split("/")))]


def _find_local(path: str, endings: Collection[str]) -> Location:
    if os.path.isdir(path):
        if any(os.path.exists(os.path.join(path, mark)) for mark in ZARR_FILES):
            return Location(show_path(path), (FoundFile(path, ZARR_ENDING),))
        return _make_location(path, list(_walk_folder(path, endings)), endings, "below it")
    if _is_glob(path) and not os.path.exists(path):
        matches = drop_linked(_drop_hidden(_find_root(path), glob(path, recursive=True)))
        places = [
            _find_local(match, endings) for match in matches if os.path.isdir(match) or find_ending(match) in endings
        ]
        return _make_location(path, [file for place in places for file in place.files], endings, "that it matches")
    check_file(path)
    _check_ending(path, endings)
    return Location(show_path(path), (FoundFile(path, find_ending(path)),))


def _walk_folder(folder: str, endings: Collection[str]) -> Iterator[FoundFile]:
    """Files below a folder, through links too, each folder once; a Zarr store counts as one file."""
    for root, folders, files in walk_once(folder):
        visible = sorted(name for name in folders if not _is_hidden(name))
        stores = {
            name for name in visible if any(os.path.exists(os.path.join(root, name, mark)) for mark in ZARR_FILES)
        }
        folders[:] = [name for name in visible if name not in stores]
        kinds = {name: find_ending(name) for name in files if not _is_hidden(name)} | dict.fromkeys(stores, ZARR_ENDING)
        for name in sorted(name for name in kinds if kinds[name] in endings):
            path = os.path.join(root, name)
            if name not in stores:
                check_file(path)
            yield FoundFile(path, kinds[name])


def _make_location(path: str, found: Sequence[FoundFile], endings: Collection[str], where: str) -> Location:
    if not found:
        raise FileError(
            show_path(path), f"has no file {where} with an ending that is known", f"use one of {', '.join(endings)}"
        )
    kinds = {file.path: file.ending for file in sorted(found, key=lambda file: file.path)}
    read, tables = split_tables(kinds)
    check_one_version(kinds, show_path(path))
    return Location(show_path(path), tuple(FoundFile(file, kinds[file]) for file in read), True, tuple(tables))


def check_file(path: str | os.PathLike[str], name: str | None = None) -> None:
    """Refuse what is not there, and what is no file."""
    if not os.path.isfile(path):  # to open a pipe would wait for ever
        trouble = "is not a file" if os.path.exists(path) else "does not exist"
        raise FileError(name or show_path(path), trouble, "check the path")


def _check_ending(path: str, endings: Collection[str]) -> None:
    if find_ending(path) not in endings:
        raise FileError(show_path(path), "has an ending that is not known", f"use one of {', '.join(endings)}")


def _find_remote(path: str, endings: Collection[str]) -> Location:
    with translate_errors(path):
        system, root = _open_file_system(path)
        if _is_glob(path) and not system.exists(root):
            names = _drop_hidden(_find_root(root), system.glob(root))
            return _make_location(path, _list_remote(path, system, names, endings), endings, "that it matches")
        kind = system.info(root)["type"]
        if kind == "directory":
            if any(system.exists(f"{root.rstrip('/')}/{mark}") for mark in ZARR_FILES):
                return Location(show_path(path), (FoundFile(path, ZARR_ENDING),))
            names = _drop_hidden(root, system.find(root))
            return _make_location(path, _list_remote(path, system, names, endings), endings, "below it")
    _check_ending(path, endings)
    return Location(show_path(path), (FoundFile(path, find_ending(path)),))


def _list_remote(path: str, system: Any, names: Sequence[str], endings: Collection[str]) -> list[FoundFile]:
    """Files of a file system, by URLs of the same kind as the one that was given."""
    first, *rest = path.split("::")
    scheme = first.partition("://")[0]
    urls = ["::".join([f"{scheme}://{name.lstrip('/')}", *rest]) if rest else system.unstrip_protocol(name)
            for name in names]  # fmt: skip
    return [FoundFile(url, find_ending(url)) for url in urls if find_ending(url) in endings]


def _open_file_system(path: str) -> tuple[Any, str]:
    core = optional.load("fsspec.core", "fsspec", "remote", f"reading {show_path(path)}")
    system, root = core.url_to_fs(path)
    return system, root


@contextmanager
def translate_errors(path: str, trouble: str = "cannot be read") -> Iterator[None]:
    """Turn whatever goes wrong with a file into one sentence: formats and storages have errors of many kinds."""
    try:
        yield
    except (CrossfusionError, CrossfusionWarning):
        raise
    except FileNotFoundError as problem:
        found = "cannot be reached or does not exist" if is_remote(path) else "does not exist"
        raise FileError(show_path(path), found, "check the path") from problem
    except Exception as problem:
        found, remedy = trouble, "check the file, or write it again"
        if is_remote(path):  # the way may be damaged, and not the file
            found, remedy = "cannot be read", "check the connection and the file"
        if ran_short(problem):
            found, remedy = RAN_SHORT, "free some, or check the file"
        raise FileError(show_path(path), f"{found} ({describe_error(problem)})", remedy) from problem


def describe_error(problem: BaseException) -> str:
    """What an error says, in one line."""
    return show_path(first_line(problem).replace("\0", ""))[:300]


def open_binary(path: str) -> IO[bytes]:
    """A file to read from, wherever it is."""
    with translate_errors(path):
        if not is_remote(path):
            return open(path, "rb")
        system, root = _open_file_system(path)
        file: IO[bytes] = system.open(root, "rb")
        with suppress(AttributeError):
            file.__dict__["system"] = system  # an archive is closed when nothing refers to it
        return file


def has_name(path: str) -> bool:
    """Whether a path is text, which libraries need who open files by themselves."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def open_arrow(path: str, mapped: bool = False) -> Any:
    """A file for Arrow to read from, memory-mapped where that is asked for and it is local."""
    import pyarrow as pa

    with translate_errors(path):
        if is_remote(path) or not has_name(path):
            return pa.PythonFile(open_binary(path), "r")
        return pa.memory_map(path) if mapped and os.path.getsize(path) else pa.OSFile(path)


def read_path_factors(files: Sequence[FoundFile], by: Sequence[str]) -> list[dict[str, Any]]:
    """For each file, the values of those factors of `by` that the names of folders give.

    Values are integers where all of a factor's are plain ones, without leading zeros, and text otherwise.
    """
    wanted = [name for name in by if any(name in file.factors for file in files)]
    for name in wanted:
        bare = next((file for file in files if name not in file.factors), None)
        if bare is not None:
            named = next(file for file in files if name in file.factors)
            raise InputError(
                problem=f"{show_path(bare.path)} has no folder {name}=... in its path, but {show_path(named.path)} has",
                remedy="pass files of one layout",
            )
    whole = {name for name in wanted if _are_whole([file.factors[name] for file in files])}
    return [{name: _type_values(file.factors[name], name in whole) for name in wanted} for file in files]


def _are_whole(values: Sequence[str | None]) -> bool:
    known = {value for value in values if value is not None}
    return bool(known) and all(WHOLE_NUMBER.fullmatch(value) for value in known)


def _type_values(value: str | None, whole: bool) -> Any:
    import pyarrow as pa

    return pa.scalar(int(value) if whole and value is not None else value, pa.int64() if whole else pa.string())
