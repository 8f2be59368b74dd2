"""Layouts without a data set of their own: a manifest, folders of images, whole-slide files."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath

from crossfusion._base import FileError, check_known, check_once
from crossfusion.io import list_some, paths
from crossfusion.pathology.slide_files import (
    IMAGE_ENDINGS,
    SLIDE_ENDINGS,
    TIFF_ENDINGS,
    explain_read_errors,
    open_slide_file,
)
from crossfusion.pathology.survey import Survey
from crossfusion.pathology.tile_settings import TileSettings
from crossfusion.pathology.tiles import Tile
from crossfusion.pathology.tissue import cut_slide

FILE_COLUMN = "file"  # the column of a manifest that names images and slides
GROUP_FACTOR = "group"  # the factor of folders that are not named after one
READABLE_ENDINGS = (*SLIDE_ENDINGS, *TIFF_ENDINGS, *IMAGE_ENDINGS)
ChooseTiles = Callable[[Sequence[Tile]], list[Tile]]


def read_table(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """Rows of a CSV or TSV file, all values as the text that stands there."""
    paths.check_file(path)
    with paths.translate_errors(str(path)):
        content = path.read_bytes()
        try:
            lines = io.StringIO(content.decode("utf-8-sig"), newline="")
        except UnicodeDecodeError as problem:
            raise FileError(paths.show_path(path), "is not text", "name a table as CSV or TSV, in UTF-8") from problem
        rows = csv.reader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",", strict=True)
        header = next(rows, [])
        check_known(needed, header, "column", paths.show_path(path))
        check_once(header, header, paths.show_path(path))
        found = []
        for row in rows:
            if row and len(row) != len(header):
                raise FileError(
                    paths.show_path(path),
                    f"has {len(row)} values for {len(header)} columns in line {rows.line_num}",
                    "fix it",
                )
            found += [dict(zip(header, row, strict=True))] if row else []
    if not found:
        raise FileError(paths.show_path(path), "has no rows", "name a file in each")
    return found


def read_manifest(data: str, cut: TileSettings, survey: Survey) -> list[Tile]:
    """Images and slides that a table names, beside it or below; its other columns are factors."""
    table = Path(data) / "manifest.csv" if os.path.isdir(data) else Path(data)
    rows = read_table(table, [FILE_COLUMN])
    names = [row.pop(FILE_COLUMN) for row in rows]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise FileError(
            paths.show_path(table), f"names {len(twice):,} files twice ({list_some(twice)})", "keep one row each"
        )
    files = [str(table.parent / name) if name else "" for name in names]
    check_exist(files, names, paths.show_path(table))
    return [tile for entry in zip(files, names, rows, strict=True) for tile in _list_tiles(*entry, cut, survey)]


def check_exist(files: Sequence[str], names: Sequence[str], holder: str) -> None:
    """Refuse files that do not exist, all in one message."""
    missing = [name or "(empty)" for file, name in zip(files, names, strict=True) if not os.path.isfile(file)]
    if missing:
        raise FileError(
            holder,
            f"names {len(missing):,} files of {len(files):,} that do not exist ({list_some(missing)})",
            "add them, or take them out",
        )


def read_folder(data: str, cut: TileSettings, survey: Survey) -> list[Tile]:
    """Images below a folder; folders called key=value give factors, otherwise the folder of an image is its group."""
    files, factors = _find_files(data)
    named = [{GROUP_FACTOR: PurePath(file.path).parent.name} for file in files] if not any(factors) else factors
    entries = zip((file.path for file in files), _make_keys(files, data), named, strict=True)
    return [tile for entry in entries for tile in _list_tiles(*entry, cut, survey)]


def read_slides(data: str, cut: TileSettings, survey: Survey) -> list[Tile]:
    """Tiles of whole-slide files, of one or of those below a folder, with `slide` and folders key=value as factors."""
    files, factors = _find_files(data)
    tiles = []
    for file, key, known in zip(files, _make_keys(files, data), factors, strict=True):
        tiles += list_slide_tiles(file.path, key, {"slide": str(PurePath(key).with_suffix("")), **known}, cut, survey)
    return tiles


def _find_files(data: str) -> tuple[Sequence[paths.FoundFile], list[dict[str, str]]]:
    """Files in the order of their names, and the factors that all their folders are named after."""
    files = paths.find_files(data, READABLE_ENDINGS).files
    names = list(dict.fromkeys(name for file in files for name in file.factors))
    paths.read_path_factors(files, names)  # refuses files of which some have a factor and some do not
    return files, [{name: file.factors[name] or "" for name in names} for file in files]


def _make_keys(files: Sequence[paths.FoundFile], data: str) -> list[str]:
    """Paths of files below the data, with the same slashes everywhere."""
    folder = data if os.path.isdir(data) else os.path.commonpath([os.path.dirname(file.path) for file in files])
    return [PurePath(os.path.relpath(file.path, folder or ".")).as_posix() for file in files]


def _list_tiles(path: str, key: str, factors: Mapping[str, str], cut: TileSettings, survey: Survey) -> list[Tile]:
    """An image whole, or the tiles of a slide: what has smaller levels, or the ending of one."""
    ending = PurePath(path).suffix.lower()
    if ending not in (*TIFF_ENDINGS, *SLIDE_ENDINGS):
        survey.finish_file()
        return [Tile(path, key, factors)]
    return list_slide_tiles(path, key, factors, cut, survey, whole=ending in TIFF_ENDINGS)


def list_slide_tiles(
    path: str,
    key: str,
    factors: Mapping[str, str],
    cut: TileSettings,
    survey: Survey,
    *,
    whole: bool = False,
    choose: ChooseTiles | None = None,
) -> list[Tile]:
    """Those tiles of one slide that `choose` takes, by default no more than are wanted.

    `whole` leaves a file with one level in one piece.
    """
    with explain_read_errors(path):
        picture = open_slide_file(path)
        try:
            if whole and picture.levels == 1:
                return [Tile(path, key, factors)]
            slide = cut_slide(picture, key, factors, cut)
        finally:
            picture.close()
            survey.finish_file()
    chosen = cut.sample(slide.tiles, key) if choose is None else choose(slide.tiles)
    survey.add(slide, chosen)
    return chosen
