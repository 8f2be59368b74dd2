"""Where rows come from. A source is one generator of chunks: rows, and the factor values that belong to them."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from crossfusion._base import InputError, arg, as_names, as_rows, check_some_rows, warn
from crossfusion.io.sources import (
    arrays,
    arrow,
    csv,
    data_frames,
    dataloader,
    hdf5,
    npy,
    npz,
    parquet,
    torch_files,
    zarr,
)
from crossfusion.io.sources import paths as places
from crossfusion.io.sources.chunk import Chunk, Source, add_keys, combine_sources, hold_in_memory
from crossfusion.io.sources.feature_order import align_features
from crossfusion.io.sources.manifest_match import list_some
from crossfusion.io.sources.paths import FoundFile, Location

Reader = Callable[[str, Sequence[str], Any], Source]
Keep = Callable[[str], bool]  # whether to read the file of a name

READERS: dict[str, Reader] = {
    ".npy": npy.from_npy,
    ".npz": npz.from_npz,
    **dict.fromkeys(csv.ENDINGS, csv.from_csv),
    ".parquet": parquet.from_parquet,
    ".pq": parquet.from_parquet,
    ".arrow": arrow.from_arrow,
    ".feather": arrow.from_arrow,
    ".ipc": arrow.from_arrow,
    ".h5": hdf5.from_hdf5,
    ".hdf5": hdf5.from_hdf5,
    ".h5ad": hdf5.from_h5ad,
    ".zarr": zarr.from_zarr,
    ".zarr.zip": zarr.from_zarr,
    ".pt": torch_files.from_torch,
    ".pth": torch_files.from_torch,
}
MAX_OPENERS = 16  # files that are opened at a time: what takes time is waiting for the storage

__all__ = ["READERS", "Chunk", "Source", "open_file", "open_files", "open_rows", "open_source"]


def open_file(path: str | os.PathLike[str], by: Sequence[str], vectors: Any = None) -> Source:
    """Source of a file, folder, glob or URL, by the endings of the files."""
    return open_files([path], by, vectors)[0]


def open_files(
    paths: Sequence[str | os.PathLike[str]],
    by: Sequence[str],
    vectors: Any = None,
    *,
    by_position: bool = False,
    keep: Keep | None = None,
) -> list[Source]:
    """Sources of paths whose rows are put together, one for each: columns of the same name are the same feature.

    With `by_position`, features without names stand for the named ones in the same position. With `keep`, files whose
    name it rejects are not opened, and paths that stand for no other file have no source.
    """
    names = as_names(by, "by")
    found = [places.find_files(path, READERS) for path in paths]
    found = found if keep is None else _choose_files(found, keep)
    files = [file for place in found for file in place.files]
    if vectors is not None and {file.ending for file in files} == {".npy"}:
        raise InputError("vectors", vectors, f"names columns, but {found[0].name} has none", "leave it out")
    sources = _align_files(files, _open_all(files, names, vectors), names, by_position)
    _show_tables(found)
    _show_cautions(sources)
    per_place = iter(sources)
    return [_combine_location(place, [next(per_place) for _ in place.files]) for place in found]


def _choose_files(found: Sequence[Location], keep: Keep) -> list[Location]:
    kept = [
        replace(place, files=tuple(file for file in place.files if keep(places.show_path(file.path))))
        for place in found
    ]
    return [place for place in kept if place.files]


def _check_no_repeat(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse a file that two of the paths stand for, whose rows would count twice."""
    seen: dict[str, str] = {}
    for path in paths:
        for file in places.find_files(path, READERS).files:
            real = file.path if places.is_remote(file.path) else os.path.realpath(file.path)
            if real in seen:
                raise InputError(
                    problem=f"{places.show_path(file.path)} would be read twice",
                    remedy="name it, or a folder of it, once",
                )
            seen[real] = file.path


def _open_all(files: Sequence[FoundFile], by: Sequence[str], vectors: Any) -> list[Source]:
    """Sources of files under the factors that their columns and the folders on their paths hold."""
    given = places.read_path_factors(files, by)
    if len(files) == 1:
        return [_open_found(files[0], by, vectors, given[0])]
    pool = ThreadPoolExecutor(MAX_OPENERS)
    try:
        return list(pool.map(lambda file, values: _open_found(file, by, vectors, values), files, given))
    finally:
        pool.shutdown(cancel_futures=True)


def _open_found(file: FoundFile, by: Sequence[str], vectors: Any, given: Mapping[str, Any]) -> Source:
    """Source of one file; what a column says of a factor goes before what the path says of it."""
    read = READERS[file.ending]
    source = read(file.path, [name for name in by if name not in given], vectors)
    columns = [name for name in by if name in given and name in source.columns]
    if columns:
        given = {name: value for name, value in given.items() if name not in columns}
        source = read(file.path, [name for name in by if name not in given], vectors)
    return add_keys(source, given, by) if given else source


def _align_files(
    files: Sequence[FoundFile], sources: list[Source], by: Sequence[str], by_position: bool
) -> list[Source]:
    """The same sources, their features in the order of the first."""
    found = {source.vector: source.name for source in reversed(sources) if source.vector}
    if by and len(found) > 1:  # rows of the same groups, which must be of the same features
        (one, holder), (other, its) = list(found.items())[::-1][:2]
        raise InputError(
            problem=f"the vectors are in {one!r} of {holder}, but in {other!r} of {its}",
            remedy=f"name a column in {arg('vectors')}",
        )

    def reopen(position: int, source: Source, features: Sequence[str]) -> Source:
        wanted = [f"{source.matrix}/{name}" if source.matrix else name for name in features]
        opened = _open_all([files[position]], by, wanted)[0]
        return replace(opened, note=source.note, cautions=source.cautions)

    return align_features(sources, reopen, by_position=by_position)


def _show_tables(found: Sequence[Location]) -> None:
    """Warn about text tables beside arrays, which are not read."""
    tables = [places.show_path(os.path.basename(table)) for place in found for table in place.tables]
    if tables:
        warn(f"text tables beside arrays are not read: {list_some(tables)}", "name a table itself if it holds vectors")


def _show_cautions(sources: Sequence[Source]) -> None:
    """Say what the first file that has something to say says; the others say the same."""
    wary = [source for source in sources if source.cautions]
    others = "" if len(wary) < 2 else f" (likewise in {len(wary) - 1} of the other files)"
    for caution in wary[0].cautions if wary else ():
        warn(f"{caution}{others}")


def _combine_location(place: Location, sources: Sequence[Source]) -> Source:
    """One source of the files of a path; a file without rows may be among several."""
    filled = [source for source in sources if source.rows != 0]
    check_some_rows(len(filled), place.name)
    return combine_sources(place.name, filled) if place.several else filled[0]


def open_source(source: Any, by: Any, vectors: Any = None, *, by_position: bool = False) -> list[Source]:
    """Sources of whatever a user passes: rows with `by` as arrays, or files and tables with `by` as column names."""
    if isinstance(by, Mapping) and not dataloader.is_loader(source):
        if vectors is not None:
            raise InputError(
                "vectors",
                problem="names columns of a file or table",
                remedy=f"leave it out where {arg('by')} holds arrays",
            )
        return [arrays.from_rows(source, by)]
    names = as_names(by, "by", needed=True)
    if dataloader.is_loader(source):
        return [dataloader.from_loader(source, by, vectors)]
    return open_rows(source, names, vectors, by_position=by_position)


def open_rows(
    source: Any, names: Sequence[str], vectors: Any = None, *, by_position: bool = False, keep: Keep | None = None
) -> list[Source]:
    """Sources with the columns of these names as factors; without any name, also rows that have no columns.

    `keep` chooses among files, see `open_files`.
    """
    import pyarrow as pa

    if isinstance(source, str | os.PathLike):
        return open_files([source], names, vectors, by_position=by_position, keep=keep)
    if isinstance(source, list | tuple) and source and all(isinstance(entry, str | os.PathLike) for entry in source):
        _check_no_repeat(source)
        return open_files(source, names, vectors, by_position=by_position, keep=keep)
    if dataloader.is_loader(source):
        return [dataloader.from_loader(source, names, vectors)]
    if data_frames.is_table(source):
        return [data_frames.from_table(source, names, vectors)]
    if not names:
        return [hold_in_memory("x", as_rows(source, "x"), pa.table({}))]
    raise InputError(
        problem=f"{type(source).__name__} has no columns to find {names[0]!r} in",
        remedy="pass by={name: values}, a file or a table",
    )
