"""Files as the commands read them: reduced to a summary, or whole."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion import factors, storage
from crossfusion.cli import output
from crossfusion.collect import collect
from crossfusion.sources import Source, open_file
from crossfusion.sources.block import in_memory
from crossfusion.summary import Summary, read_summary
from crossfusion.validation import NAN, FiniteCheck, check_option, check_some_rows, finite_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from crossfusion.kernels import CodeArray


def is_summary(path: Path) -> bool:
    """Whether a file holds a summary."""
    return path.suffix.lower() in storage.ENDINGS and storage.facts_of(path) is not None


def summary_of(path: Path, by: Sequence[str], vectors: str | None, nan: str) -> Summary:
    """Read a summary, or make one of a file."""
    return read_summary(path) if is_summary(path) else reduced([_open(path, by, vectors)], nan=nan)


def reduced(sources: Sequence[Source], *, nan: str) -> Summary:
    """Summary of sources, with notes and a bar while they are read."""
    output.show_notes(source.note for source in sources)
    with output.progress("reading", _rows(sources)) as progress:
        return collect(sources, nan=nan, progress=progress)


def _rows(sources: Sequence[Source]) -> int | None:
    """How many rows there will be, if that is known."""
    known = [source.rows for source in sources if source.rows is not None]
    return sum(known) if len(known) == len(sources) else None


def whole(path: Path, by: Sequence[str], vectors: str | None, nan: str) -> "tuple[Any, pa.Table]":
    """All rows of a file in one array, and their factors."""
    import numpy as np
    import pyarrow as pa

    check_option(nan, NAN, "nan")
    source = _open(path, by, vectors)
    output.show_notes([source.note])
    blocks = list(source.blocks())
    check_some_rows(len(blocks), source.name)
    rows = blocks[0].rows if len(blocks) == 1 else np.concatenate([block.rows for block in blocks])
    keys = pa.concat_tables([block.keys for block in blocks], promote_options="permissive")
    finite, check = finite_rows(rows), FiniteCheck(source.name)
    check.see(rows, None if finite.all() else finite)
    return (rows[finite], keys.filter(pa.array(finite))) if check.settle(nan) else (rows, keys)


def rows_of(
    path: Path, between: Sequence[str], given: Sequence[str], vectors: str | None, nan: str
) -> "tuple[Summary, Any, CodeArray, CodeArray | None]":
    """A file's summary by some factors, its rows, and the code of each row's group and, if there are any, stratum."""
    rows, keys = whole(path, [*between, *given], vectors, nan)
    group, _ = factors.encode(keys.select(list(between)))
    stratum = factors.encode(keys.select(list(given)))[0] if given else None
    return collect([in_memory(str(path), rows, keys)]), rows, group, stratum


def _open(path: Path, by: Sequence[str], vectors: str | None) -> Source:
    return open_file(path, list(dict.fromkeys(by)), vectors)
