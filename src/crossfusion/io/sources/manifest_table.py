"""The table of a manifest: a file or a frame, of which the key and the factors are kept in memory."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion._base import FileError, InputError, check_known, check_once, count_text, escape_unprintable, factors
from crossfusion.io.sources import data_frames, file_names, paths
from crossfusion.io.sources.csv import CODECS, check_separator, read_back
from crossfusion.io.sources.manifest_match import list_some

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class Manifest:
    """The key of each row, None where rows go by order, and the factors that were asked for."""

    name: str
    names: tuple[str, ...]  # of all its columns
    factors: "pa.Table"
    rows: int
    on: str | None = None
    keys: "pa.Array | None" = None

    def alike(self, values: "pa.Array", holder: str) -> "tuple[pa.Array, pa.Array]":
        """Values of the vectors' key and keys of the manifest, as one type: whole numbers match their text."""
        import pyarrow as pa

        assert self.keys is not None  # joined by key
        kinds = values.type, self.keys.type
        if kinds[0] == kinds[1]:
            return values, self.keys
        text = [pa.types.is_string(kind) for kind in kinds]
        whole = [pa.types.is_integer(kind) for kind in kinds]
        if pa.types.is_null(kinds[0]):
            return values.cast(kinds[1]), self.keys
        if all(one or other for one, other in zip(text, whole, strict=True)):
            common = pa.string() if any(text) else pa.int64()
            try:
                return values.cast(common), self.keys.cast(common)
            except pa.ArrowInvalid:
                return values.cast(pa.string()), self.keys.cast(pa.string())  # beyond 64 bits with a sign
        raise InputError(
            problem=f"{self.on!r} holds {kinds[0]} in {holder} but {kinds[1]} in {self.name}, which never match",
            remedy="convert one",
        )

    @cached_property
    def _texts(self) -> list[str]:
        import pyarrow as pa

        assert self.keys is not None  # joined by file
        return [str(key) for key in self.keys.cast(pa.string()).to_pylist()]

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        return file_names.index_names(self._texts)

    @cached_property
    def _base_names(self) -> dict[str, int]:
        return file_names.index_base_names(self._texts)

    def __getstate__(self) -> dict[str, Any]:
        """State without the cached indexes, which each process builds if it needs them."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def find_row(self, file: str) -> int | None:
        """Row that names a file by the end of its path, or by its base name where no two rows share one.

        Endings of slides and data may differ, or be left out.
        """
        hits = {name: self._named[name] for name in file_names.list_file_names(file) if name in self._named}
        if not hits:
            return self._base_names.get(file_names.find_base_name(file))
        exact = [row for name, rows in hits.items() for row in rows if self._texts[row] == name]
        found = sorted({*next(iter(hits.values())), *exact})
        if len(found) > 1:
            raise InputError(
                problem=f"{file} is named by {len(found)} rows of {self.name}"
                f" ({list_some(self._texts[row] for row in found)})",
                remedy="keep one of them",
            )
        return found[0]

    def find_key(self, row: int) -> Any:
        """Key of a row, for messages."""
        assert self.keys is not None
        return self.keys[row].as_py()


def read_manifest(manifest: Any, on: str | None, by: Sequence[str]) -> Manifest:
    """Key and factors of a manifest, checked: a key is there in every row, and once."""
    import pyarrow as pa

    is_file = isinstance(manifest, str | os.PathLike)
    name = escape_unprintable(str(manifest)) if is_file else "the manifest"
    if not is_file and not data_frames.is_table(manifest):
        raise InputError(
            "manifest",
            problem=f"of type {type(manifest).__name__} is not a table",
            remedy="pass a path, or a pandas or PyArrow table",
        )
    names, read = _open_file(Path(manifest)) if is_file else data_frames.list_columns(manifest)
    check_known([on] if on is not None else [], names, "column", name)
    wanted = list(dict.fromkeys([*([on] if on is not None else []), *(entry for entry in by if entry in names)]))
    check_once(wanted, names, name)
    table = read(wanted or names[:1])
    kept = pa.table({entry: factors.as_plain(table.column(entry), entry) for entry in wanted if entry in by})
    keys = None if on is None else _check_keys(factors.as_plain(table.column(on), on), on, name)
    return Manifest(name, tuple(names), kept, table.num_rows, on, keys)


def _check_keys(keys: "pa.Array", on: str, name: str) -> "pa.Array":
    import pyarrow.compute as pc

    if keys.null_count:
        first = pc.index(pc.is_null(keys), True).as_py()
        raise InputError(
            problem=f"{name} has {count_text(keys.null_count, 'row')} without {on!r}, the first in row {first}",
            remedy="fill it in",
        )
    counts = keys.value_counts()
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1)).to_pylist()
    if twice:
        raise InputError(
            problem=f"{name} has {count_text(len(twice), 'key')} in {on!r} more than once ({list_some(twice)})",
            remedy="keep one row each",
        )
    return keys


def _open_file(path: Path) -> tuple[list[str], Any]:
    """Names of a file's columns, and a function that reads some of them."""
    endings = [ending.lower() for ending in path.suffixes]
    ending = next((entry for entry in reversed(endings) if entry not in CODECS), "")
    paths.check_file(path, f"manifest {path}")
    with _translate_errors(path):
        if ending in TEXT:
            return _open_text(path, TEXT[ending])
        if ending in (".parquet", ".pq"):
            return _open_parquet(path)
        if ending in (".feather", ".arrow"):
            return _open_feather(path)
    raise FileError(
        problem=f"manifest {path} has an ending that is not known", remedy="use .csv, .tsv, .parquet or .feather"
    )


def _translate_errors(path: Path) -> AbstractContextManager[None]:
    return paths.translate_errors(f"manifest {path}", "cannot be read")


def _open_parquet(path: Path) -> tuple[list[str], Any]:
    import pyarrow.parquet as pq

    def read(names: list[str]) -> "pa.Table":
        with _translate_errors(path), paths.open_arrow(str(path)) as file:
            return _validate(pq.read_table(file, columns=names))

    with paths.open_arrow(str(path)) as file:
        return list(pq.read_schema(file).names), read


def _open_feather(path: Path) -> tuple[list[str], Any]:
    from pyarrow import feather

    with paths.open_arrow(str(path)) as file:
        table = _validate(feather.read_table(file))
    return table.column_names, table.select


def _validate(table: "pa.Table") -> "pa.Table":
    """The same table; what a damaged file says of lengths and offsets is taken at its word otherwise."""
    table.validate(full=True)
    return table


def _open_text(path: Path, delimiter: str) -> tuple[list[str], Any]:
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)

    def read(names: list[str]) -> "pa.Table":
        with _translate_errors(path):
            return _read_text(path, names, parse)

    with _unpack(path) as file, csv.open_csv(file, parse_options=parse) as reader:
        names = list(reader.schema.names)
    check_separator(f"manifest {path}", names)
    return names, read


@contextmanager
def _unpack(path: Path) -> Iterator[Any]:
    """A text file to read from, whatever its name and however it is packed."""
    import pyarrow as pa

    codec = CODECS.get(path.suffix.lower())
    with paths.open_arrow(str(path)) as file:
        if codec is None:
            yield file
        else:
            with pa.CompressedInputStream(file, codec) as stream:
                yield stream


def _read_text(path: Path, names: list[str], parse: Any) -> "pa.Table":
    """Columns of a text table; numbers that would not read back as they stand, such as 007 or 1.10, stay text."""
    import pyarrow as pa
    from pyarrow import csv

    as_text = csv.ConvertOptions(
        include_columns=names, column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True
    )
    as_found = csv.ConvertOptions(include_columns=names, strings_can_be_null=True)
    with _unpack(path) as file:
        text = csv.read_csv(file, parse_options=parse, convert_options=as_text)
    with _unpack(path) as file:
        typed = csv.read_csv(file, parse_options=parse, convert_options=as_found)
    for position, name in enumerate(names):
        if not read_back(typed.column(name), text.column(name)):
            typed = typed.set_column(position, name, text.column(name))
    return typed
