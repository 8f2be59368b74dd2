"""Tables of Delta Lake, Iceberg and Hudi: folders of Parquet files of which a log says which ones still count."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache

from crossfusion._base import Spelling, optional

LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}  # by the folder of the log
ICEBERG_METADATA = re.compile(r"(v\d+|\d+-[\da-f-]{36})(\.gz)?\.metadata\.json(\.gz)?")
TABLE_REMEDIES = {
    "Delta Lake": Spelling(
        "pass deltalake.DeltaTable(path).to_pyarrow_dataset()",
        "use --sql \"install delta; load delta; select ... from delta_scan('PATH')\"",
    ),
    "Iceberg": Spelling(
        "pass table.scan().to_arrow_batch_reader() of pyiceberg",
        "use --sql \"install iceberg; load iceberg; select ... from iceberg_scan('PATH')\"",
    ),
    "Hudi": Spelling("pass a Spark DataFrame of it", "export it to plain Parquet files"),
}


def find_table(files: Iterable[str]) -> tuple[str, str] | None:
    """Folder and kind of a table that one of these Parquet files is in; None where all are plain files."""
    seen: set[str] = set()
    for start in dict.fromkeys(place for file in files for place in _list_places(file)):
        for folder in _list_folders(start):
            if folder in seen:
                break  # and so are those above it
            seen.add(folder)
            kind = _find_kind(folder)
            if kind is not None:
                return folder, kind
    return None


@lru_cache(maxsize=1)
def _resolve_folder(folder: str) -> str:
    """A folder behind links; most files are in the folder of the one before."""
    return os.path.realpath(folder)


def _list_places(file: str) -> Iterator[str]:
    """The folder of a file as it is named, and where it lies if that is behind a link."""
    if "://" in file:
        yield file
        return
    folder = os.path.dirname(os.path.abspath(file))
    yield os.path.join(folder, "")
    yield os.path.join(_resolve_folder(folder), "")


def _list_folders(file: str) -> Iterator[str]:
    """Folders above a file that may be the root of its table, nearest first; `key=value` folders never are."""
    if file.startswith("http"):
        return  # a server that sends files, and seldom lists them
    before, chained, archive = file.partition("::") if "://" in file else (file, "", "")
    scheme, mark, place = before.rpartition("://")
    folder = os.path.dirname(place)
    while folder.strip("/") and os.path.dirname(folder) != folder:
        if "=" not in os.path.basename(folder):
            yield f"{scheme}{mark}{folder}{chained}{archive}"
        folder = os.path.dirname(folder)
    if archive:
        yield f"{scheme}{mark}{chained}{archive}"


def _find_kind(folder: str) -> str | None:
    """Whose table a folder holds, if any."""
    for log, kind in LOGS.items():
        if _list_names(folder, log) is not None:
            return kind
    return "Iceberg" if any(map(ICEBERG_METADATA.fullmatch, _list_names(folder, "metadata") or ())) else None


def _list_names(folder: str, inner: str) -> list[str] | None:
    """Names in a folder of a folder; None where there is none, or none that may be looked at."""
    with suppress(Exception):  # whatever a storage raises about what is not there, or not allowed
        if "://" not in folder:
            return os.listdir(os.path.join(folder, inner))
        place, chained, archive = folder.partition("::")
        core = optional.load("fsspec.core", "fsspec", "remote", "reading remote files")
        system, root = core.url_to_fs(f"{place}/{inner}{chained}{archive}")
        names = [name.rstrip("/").rpartition("/")[2] for name in system.ls(root, detail=False)]
        return names or None
    return None
