"""Comma- or tab-separated text, packed or not, read a chunk at a time."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from crossfusion._base import FileError, InputError, arg, check_known, check_once
from crossfusion.io.sources import paths
from crossfusion.io.sources.chunk import Chunk, Source
from crossfusion.io.sources.vector_columns import find_vectors, has_feature_columns, list_numeric_columns, make_chunk

if TYPE_CHECKING:
    import pyarrow as pa

UNREADABLE = "cannot be read as a text table"
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
PARSED_BYTES = 16 * 2**20  # bytes of text that are parsed at a time
ENDINGS = tuple(plain + packed for plain in (".csv", ".tsv") for packed in ("", *CODECS))


def from_csv(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A text table; vectors are its numeric columns that are not factors, or those that `vectors` names.

    The values of the factors are read ahead, since their types show only at the end of the file; of these, only the
    distinct ones are kept.
    """
    import pyarrow as pa

    name = paths.show_path(path)
    with paths.translate_errors(path, UNREADABLE):
        with _open_reader(path) as reader:
            schema = reader.schema
        check_separator(name, schema.names)
        columns = _choose_columns(schema, by, vectors, name)
        kinds, rows = _read_factor_types(path, by) if by else ({}, None)
    cautions = () if vectors is not None else tuple(_warn_about_columns(name, schema, by, columns))
    note = (
        "" if vectors is not None else f"{name}: vectors are its {len(columns)} numeric columns, {_list_names(columns)}"
    )
    each = has_feature_columns(schema, columns)
    kinds |= dict.fromkeys(columns, pa.float64() if each else pa.string())
    read = partial(_read_chunks, path, by, columns, kinds)
    features = tuple(columns) if each else ()
    return Source(name, [read], rows, note, features, columns=tuple(schema.names), cautions=cautions)


def check_separator(name: str, columns: Sequence[str]) -> None:
    """Refuse one column whose name holds another mark that separates columns."""
    if len(columns) == 1 and any(mark in columns[0] for mark in ";\t|"):
        raise FileError(name, f"has one column, {columns[0]!r}", "separate columns by commas, or tabs in a .tsv")


def _choose_columns(schema: "pa.Schema", by: Sequence[str], vectors: Any, name: str) -> list[str]:
    check_known(by, schema.names, "column", name)
    wanted = list_numeric_columns(schema, by) if vectors is None else vectors
    if not wanted:
        raise InputError(
            problem=f"{name} has no numeric columns{' besides ' if by else ''}{', '.join(by)}",
            remedy="write one column per feature",
        )
    if vectors is None:
        check_once(wanted, schema.names, name)
    return find_vectors(schema, by, wanted, name)


@contextmanager
def _open_reader(path: str, types: "dict[str, pa.DataType] | None" = None, wanted: Sequence[str] = ()) -> Iterator[Any]:
    """A stream of batches of some columns, or of all."""
    import pyarrow as pa
    from pyarrow import csv

    kind = paths.find_ending(path)
    codec = next((codec for packed, codec in CODECS.items() if kind.endswith(packed)), None)
    with ExitStack() as stack:
        stream = stack.enter_context(paths.open_arrow(path))
        if codec is not None:
            stream = stack.enter_context(pa.CompressedInputStream(stream, codec))
        reading = csv.open_csv(
            stream,
            csv.ReadOptions(block_size=PARSED_BYTES),
            csv.ParseOptions(delimiter="\t" if kind.startswith(".tsv") else ","),
            csv.ConvertOptions(include_columns=list(wanted) or None, column_types=types, strings_can_be_null=True),
        )
        yield stack.enter_context(reading)


def _warn_about_columns(name: str, schema: "pa.Schema", by: Sequence[str], columns: Sequence[str]) -> Iterator[str]:
    """Columns that may have been meant otherwise: patients and positions are easily taken for features."""
    import pyarrow as pa

    left_out = [column for column in schema.names if column not in by and column not in columns]
    if left_out:
        yield (
            f"{name}: {_list_names(left_out)} left out of the vectors, not being numbers"
            f" throughout; choose others with {arg('vectors')}"
        )
    whole = [column for column in columns if pa.types.is_integer(schema.field(column).type)]
    if whole and len(whole) < len(columns) / 2:
        others = f"choose others with {arg('vectors')}"
        yield f"{name}: {_list_names(whole)} in the vectors although they hold whole numbers; {others}"


def _read_factor_types(path: str, by: Sequence[str]) -> "tuple[dict[str, pa.DataType], int]":
    """Types of the factors, from a look at all of their values, and the number of rows."""
    import pyarrow as pa

    distinct: dict[str, dict[bytes, None]] = {name: {} for name in by}
    rows = 0
    with _open_reader(path, dict.fromkeys(by, pa.binary()), by) as reader:
        for batch in reader:
            rows += batch.num_rows
            for name in by:
                distinct[name].update(dict.fromkeys(batch.column(name).unique().drop_null().to_pylist()))
    return {name: _infer_type(values) for name, values in distinct.items()}, rows


def _infer_type(values: Iterable[bytes]) -> "pa.DataType":
    """Type that fits all values; numbers that would not read back as they stand, such as 007 or 1.10, stay text."""
    import pyarrow as pa
    from pyarrow import csv

    texts = list(values)
    if not texts:
        return pa.string()  # all are missing
    lines = b"\n".join([b"value", *(b'"' + text.replace(b'"', b'""') + b'"' for text in texts)])
    largest = max(2**20, 2 * max(map(len, texts), default=0) + 64)
    options = csv.ReadOptions(block_size=largest, use_threads=False)
    found = csv.read_csv(pa.BufferReader(lines), options, csv.ParseOptions(newlines_in_values=True)).column("value")
    number = pa.types.is_integer(found.type) or pa.types.is_floating(found.type)
    keep = not number or read_back(found, pa.array(texts, pa.binary()).cast(pa.string()))
    return found.type if keep else pa.string()


def read_back(typed: Any, text: Any) -> bool:
    """Whether numbers, written again, are the text they were read from, so that different texts are never one label."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(typed.type):
        return bool(pc.all(pc.equal(typed.cast(pa.string()), text), min_count=0).as_py())
    if not pa.types.is_floating(typed.type):
        return True
    texts = text.unique().drop_null().to_pylist()
    numbers = [float(entry) for entry in texts]
    return len(set(numbers)) == len(texts) and all(map(_is_written_as, numbers, texts))


def _is_written_as(number: float, text: str) -> bool:
    """Whether a program writes a number like this: 2.5, and 2 or 2.0."""
    return text == repr(number) or (number.is_integer() and text == str(int(number)))


def _list_names(columns: Sequence[str]) -> str:
    return ", ".join(columns) if len(columns) <= 4 else f"{', '.join(columns[:3])}, ..., {columns[-1]}"


def _read_chunks(
    path: str, by: Sequence[str], columns: Sequence[str], kinds: "dict[str, pa.DataType]"
) -> Iterator[Chunk]:
    import pyarrow as pa

    first = 0
    with ExitStack() as stack:
        stack.enter_context(paths.translate_errors(path, UNREADABLE))
        for batch in stack.enter_context(_open_reader(path, kinds, [*by, *columns])):
            yield make_chunk(pa.Table.from_batches([batch]), by, columns, paths.show_path(path), first)
            first += batch.num_rows
