"""Factors that a manifest, a table of its own, holds for vectors that are kept elsewhere.

A row of the manifest belongs to the vectors whose key it has in the column `on`; where the vectors have no such column,
to those in the file that it names; without `on`, to the vector in the same place. A factor comes from the manifest if
that has a column of its name, otherwise from the table of the vectors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import InputError, LazyRows, Spelling, arg, arrow, as_names, count_text, factors, warn
from crossfusion.io.sources import data_frames, sql
from crossfusion.io.sources.chunk import Chunk, Partition, Source
from crossfusion.io.sources.manifest_match import MAX_MISSING_KEYS, Match, list_some, merge_matches
from crossfusion.io.sources.manifest_table import Manifest, read_manifest

if TYPE_CHECKING:
    import pyarrow as pa

NAMELESS = ("x", data_frames.NAME, sql.NAME)  # sources that are no files
Open = Callable[..., list[Source]]  # sources with the columns of these names; `keep` chooses files
_ONLY_MATCHED = Spelling("pass only_matched=True to leave them out", "give --only-matched to leave them out")
_NO_MATCH_REMEDY = "check the keys, or name another column"


@dataclass(frozen=True)
class ManifestJoin:
    """Sources whose chunks have their factors, and what is to be checked once all of them are read."""

    sources: list[Source]
    manifest: Manifest
    only_matched: bool = False  # vectors that the manifest does not name are left out

    def settle(self, matches: Iterable[Match | None], rows: int) -> None:
        """Name the keys that are missing: an error or a warning for those of vectors, a warning for the manifest's."""
        manifest = self.manifest
        if manifest.keys is None:
            return _check_row_count(rows, manifest)
        match = merge_matches(matches) or Match()
        number = f"{'at least ' if match.more else ''}{len(match.missing):,}"
        if match.missing and self.only_matched and len(match.used):
            warn(
                f"{manifest.name} lacks {number} of the vectors' keys in {manifest.on!r}, whose rows are left out:"
                f" {list_some(match.missing, match.more)}"
            )
        elif match.missing:
            raise InputError(
                problem=f"{manifest.name} lacks {number} of the vectors' keys in {manifest.on!r}"
                f" ({list_some(match.missing, match.more)}){_describe_unused(manifest, match.used)}",
                remedy=_NO_MATCH_REMEDY if self.only_matched else f"add rows for them, or {_ONLY_MATCHED}",
            )
        _check_files(match, manifest)
        unused = np.setdiff1d(np.arange(len(manifest.keys)), match.used)
        if len(unused):
            keys = manifest.keys.take(unused).to_pylist()
            number = count_text(len(unused), "key")
            warn(f"{manifest.name} has {number} in {manifest.on!r} without vectors: {list_some(keys)}")
        return None


def _describe_unused(manifest: Manifest, used: Any) -> str:
    """Keys of a manifest that have no vectors, for a message that names what the vectors lack."""
    assert manifest.keys is not None  # joined by key or file
    unused = np.setdiff1d(np.arange(len(manifest.keys)), used)
    return (
        f", and has others without vectors ({list_some(manifest.keys.take(unused).to_pylist())})" if len(unused) else ""
    )


def join(opened: Open, manifest: Any, on: str | None, by: Any, *, only_matched: bool = False) -> ManifestJoin:
    """Sources with the factors `by`; `opened` opens them with the columns that it is given.

    With `only_matched`, files and rows that the manifest does not name are left out.
    """
    if not isinstance(by, str | list | tuple):
        raise InputError(
            "by",
            problem="names columns of the manifest or of the vectors' table",
            remedy=f"pass names where {arg('manifest')} is given",
        )
    names = as_names(by, "by", needed=True)
    if on is not None and not isinstance(on, str):
        raise InputError("on", on, "must be the name of the manifest's key column, or left out to join by order")
    check_only_matched(only_matched, on)
    table = read_manifest(manifest, on, names)
    own = [name for name in names if name not in table.factors.column_names]
    if on is None:
        return ManifestJoin(_join_by_order(_open_own(opened, own, table), table, names), table)
    try:
        sources = opened([on, *own])
    except InputError:
        open_own = _open_matched if only_matched else _open_own
        sources = _join_by_file(open_own(opened, own, table), table, names)
        return ManifestJoin(sources, table, only_matched)
    details = table, names, only_matched
    return ManifestJoin([_add_factors(source, _join_by_key, *details) for source in sources], table, only_matched)


def check_only_matched(only_matched: bool, on: str | None) -> None:
    """Refuse to leave out what has no match where nothing is matched by key."""
    if only_matched and on is None:
        raise InputError(
            "only_matched",
            problem="leaves out rows that have no match in a manifest",
            remedy=f"name its key column in {arg('on')}, or leave it out",
        )


def _open_matched(opened: Open, own: Sequence[str], table: Manifest) -> list[Source]:
    """Sources of the files that the manifest names; says which others are left out."""
    left_out: dict[str, None] = {}

    def keep(file: str) -> bool:
        if table.find_row(file) is None:
            left_out[file] = None
        return file not in left_out

    sources = _open_own(partial(opened, keep=keep), own, table)
    if left_out and not sources:
        raise InputError(
            problem=f"{table.name} names none of the {len(left_out):,} files in {table.on!r} ({list_some(left_out)})"
            f"{_describe_unused(table, [])}",
            remedy=_NO_MATCH_REMEDY,
        )
    if left_out:
        number = count_text(len(left_out), "file")
        warn(f"{table.name} does not name {number}, which are left out: {list_some(left_out)}")
    return sources


def _open_own(opened: Open, own: Sequence[str], table: Manifest) -> list[Source]:
    """Sources with factors of their own, or an error that says where these were looked for."""
    try:
        return opened(own)
    except InputError as problem:
        if not own:
            raise
        raise InputError(
            "by",
            own[0],
            f"is not a column of {table.name} (there are {', '.join(table.names)}), nor of the vectors' own table",
            problem.marked,
        ) from problem


def _add_factors(source: Source, how: Callable[..., Iterator[Chunk]], *details: Any) -> Source:
    return replace(
        source, partitions=[partial(how, partition, *details, source.name) for partition in source.partitions]
    )


def _merge_factors(
    chunk: Chunk, known: "pa.Table", names: Sequence[str], rows: "pa.Array", match: Match | None
) -> Chunk:
    """The same rows with the factors of these rows of a table, and their own."""
    import pyarrow as pa

    def find(name: str) -> Any:
        if name not in known.column_names:
            return chunk.keys.column(name)
        levels = known.column(name).chunk(0)
        # a chunk that is smaller than the table must not cost as much as the table
        return levels.take(rows) if len(rows) < len(levels) else pa.DictionaryArray.from_arrays(rows, levels)

    return replace(chunk, keys=pa.table({name: find(name) for name in names}), match=match)


def _join_by_key(
    partition: Partition, table: Manifest, names: Sequence[str], only_matched: bool, source: str
) -> Iterator[Chunk]:
    """Chunks whose rows hold the key; with `only_matched`, the rows whose key the manifest has."""
    import pyarrow.compute as pc

    for chunk in partition():
        values = factors.as_plain(chunk.keys.column(table.on), str(table.on))
        values, keys = table.alike(values, chunk.file or source)
        rows = pc.index_in(values, value_set=keys)
        lacking = values.filter(pc.is_null(rows)).unique().to_pylist()
        used = np.unique(rows.drop_null().to_numpy()).astype(np.int64)
        match = Match(used, missing=frozenset(lacking[:MAX_MISSING_KEYS]), more=len(lacking) > MAX_MISSING_KEYS)
        if only_matched and lacking:
            chunk, rows = _select_rows(chunk, pc.is_valid(rows)), rows.drop_null()
        yield _merge_factors(chunk, table.factors, names, rows, match)


def _select_rows(chunk: Chunk, kept: "pa.Array") -> Chunk:
    rows = np.asarray(chunk.rows) if isinstance(chunk.rows, LazyRows) else chunk.rows
    return replace(chunk, rows=rows[np.flatnonzero(kept)], keys=chunk.keys.filter(kept))


def _join_by_file(sources: Sequence[Source], table: Manifest, names: Sequence[str]) -> list[Source]:
    """Sources whose files the manifest names; what is known of them before reading is checked at once."""
    known = [file for source in sources for file in source.files or (source.name,) if Path(file).is_file()]
    if any(source.name in NAMELESS for source in sources):
        raise InputError(
            "on", table.on, "is not a column of the vectors' table, and there is no file to match", "name another"
        )
    found = {file: table.find_row(file) for file in known}
    lacking = [file for file, row in found.items() if row is None]
    if lacking:
        used = [row for row in found.values() if row is not None]
        raise InputError(
            problem=f"{table.name} names {len(lacking):,} of the files in {table.on!r} neither by path nor by"
            f" name ({list_some(lacking)}){_describe_unused(table, used)},"
            f" and {table.on!r} is not a column of theirs",
            remedy=f"add rows for them, {_ONLY_MATCHED}, or name another column",
        )
    _check_files(Match(files=frozenset((row, file) for file, row in found.items() if row is not None)), table)
    return [_add_factors(source, _add_file_factors, table, names) for source in sources]


def _add_file_factors(partition: Partition, table: Manifest, names: Sequence[str], source: str) -> Iterator[Chunk]:
    """Chunks whose file is the key."""
    import pyarrow as pa

    for chunk in partition():
        file = chunk.file or source
        row = table.find_row(file)
        number = chunk.rows.shape[0]
        rows = pa.nulls(number, pa.int32()) if row is None else arrow.from_numbers(np.zeros(number, np.int32))
        match = Match(missing=frozenset([file])) if row is None else Match(np.array([row]), frozenset([(row, file)]))
        yield _merge_factors(chunk, table.factors.slice(row or 0, 1), names, rows, match)


def _check_files(match: Match, manifest: Manifest) -> None:
    """Refuse a key that stands for two files."""
    first: dict[int, str] = {}
    for row, file in sorted(match.files):
        if first.setdefault(row, file) != file:
            key = manifest.find_key(row)
            raise InputError(
                problem=f"{manifest.name} has one row for {first[row]} and {file}, {manifest.on}={key!r}",
                remedy="name them by path",
            )


def _join_by_order(sources: Sequence[Source], table: Manifest, names: Sequence[str]) -> list[Source]:
    """Sources whose rows, taken together, are those of the manifest in the same order."""
    joined, before = [], 0
    for position, source in enumerate(sources):
        if source.rows is None and position < len(sources) - 1:
            raise InputError(
                problem=f"{source.name} does not tell how many rows it has, so those of {sources[position + 1].name}"
                f" cannot be counted in {table.name}",
                remedy=f"name a key in {arg('on')}",
            )
        joined.append(_add_factors(source, _add_ordered_factors, table, names, before))
        before += source.rows or 0
    if all(source.rows is not None for source in sources):
        _check_row_count(before, table)
    return joined


def _add_ordered_factors(
    partition: Partition, table: Manifest, names: Sequence[str], before: int, source: str
) -> Iterator[Chunk]:
    """Chunks whose place among all rows is the key."""
    for chunk in partition():
        if chunk.before is None:
            raise InputError(
                problem=f"the rows before those of {chunk.file or source} are not counted",
                remedy=f"name a key in {arg('on')}",
            )
        start = before + chunk.before + chunk.first
        stop = start + chunk.rows.shape[0]
        if stop > table.rows:
            raise InputError(
                problem=f"{table.name} has {count_text(table.rows, 'row')}, but there are {stop:,} vectors or more",
                remedy=f"they must be as many, or have a key in {arg('on')}",
            )
        yield _merge_factors(chunk, table.factors, names, arrow.from_numbers(np.arange(start, stop)), None)


def _check_row_count(rows: int, manifest: Manifest) -> None:
    if rows != manifest.rows:
        raise InputError(
            problem=f"{manifest.name} has {count_text(manifest.rows, 'row')} for {count_text(rows, 'vector')}",
            remedy=f"without {arg('on')}, they must be as many",
        )
