"""A table of moments as one Parquet file: a column for each factor, then count, mean and sumsq."""

import json
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion.errors import FileError
from crossfusion.moments import Moments

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1
KEY = b"crossfusion"
ENDINGS = (".parquet", ".pq")
MOMENTS = ("count", "mean", "sumsq")


def write_whole(path: str | os.PathLike[str], write: Callable[[str], None]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place: all of it or nothing."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise FileError(f"{path} cannot be written: it is not a plain file, so choose another name")
    try:
        temporary = str(target.with_name(f".{target.name}.{secrets.token_hex(8)}"))
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        try:
            write(temporary)
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise FileError(f"{path} cannot be written: {problem.strerror or problem}") from problem


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text: all of it or nothing."""

    def write(temporary: str) -> None:
        Path(temporary).write_text(text, encoding="utf-8", newline="\n")

    write_whole(path, write)


def check_target(path: Path, inputs: Sequence[Path]) -> None:
    """Refuse, before any work, an output that would replace something other than a summary."""
    if path.suffix.lower() not in ENDINGS:
        raise FileError(f"{path} has an ending that does not fit a summary: use {' or '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise FileError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.exists() and any(file.exists() and path.samefile(file) for file in inputs):
        raise FileError(f"{path} is one of the inputs: choose another name for the output")
    if path.exists() and (not path.is_file() or (path.stat().st_size and _is_foreign(path))):
        raise FileError(f"{path} exists and is not a summary: choose another name, or delete it first")


def _is_foreign(path: Path) -> bool:
    try:
        return facts_of(path) is None
    except FileError:
        return True


def to_table(keys: "pa.Table", moments: Moments) -> "pa.Table":
    """Factor columns and moments side by side."""
    import pyarrow as pa

    def vectors(values: Any) -> "pa.Array":
        flat = pa.array(np.ascontiguousarray(values).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, moments.dim)

    table = keys.append_column("count", pa.array(moments.count))
    return table.append_column("mean", vectors(moments.mean)).append_column("sumsq", vectors(moments.sumsq))


def write(path: str | os.PathLike[str], keys: "pa.Table", moments: Moments, facts: Mapping[str, Any]) -> None:
    """Write keys, moments and facts about them."""
    import pyarrow.parquet as pq

    about = json.dumps({"format": FORMAT, "dim": moments.dim, **facts})
    table = to_table(keys, moments).replace_schema_metadata({KEY: about.encode()})
    write_whole(
        path,
        lambda temporary: pq.write_table(table, temporary, use_dictionary=keys.column_names, write_page_checksum=True),
    )


def facts_of(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What a summary file says of itself, or None if the file is readable Parquet but not a summary."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
    except FileNotFoundError as problem:
        raise FileError(f"{path} does not exist: check the path") from problem
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise FileError(f"{path} is not a readable Parquet file ({_first_line(problem)})") from problem
    try:
        facts = json.loads(metadata[KEY]) if KEY in metadata else None
    except ValueError as problem:
        raise FileError(f"{path} is a damaged summary: what it says of itself is not JSON; write it again") from problem
    return facts if facts is None or isinstance(facts, dict) else {}


def read(path: str | os.PathLike[str]) -> tuple["pa.Table", Moments, dict[str, Any]]:
    """Read what `write` wrote; refuse anything else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    facts = facts_of(path)
    if facts is None:
        raise FileError(f"{path} is not a crossfusion summary: make one from it with 'crossfusion summarize'")
    version = facts.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise FileError(f"{path} has format {version}, newer than the {FORMAT} known here: upgrade crossfusion")
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read().combine_chunks()
        moments = _moments(table, facts)
        np.dtype(facts["dtype"]), int(facts["dropped"])
        keys = table.drop_columns(list(MOMENTS)).replace_schema_metadata(None)
        if not keys.num_columns:
            raise ValueError("there are no factors")
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError, AttributeError) as problem:
        raise FileError(f"{path} is a damaged summary ({_first_line(problem)}): write it again") from problem
    return keys, moments, facts


def _moments(table: "pa.Table", facts: Mapping[str, Any]) -> Moments:
    """Moments in a table, checked: numbers that no rows could have are refused."""
    count, mean, sumsq = (table.column(name) for name in MOMENTS)
    shape = table.num_rows, facts["dim"]

    def vectors(column: Any) -> Any:
        values = column.combine_chunks()
        if values.null_count or values.type.list_size != facts["dim"]:
            raise ValueError("a vector is missing or of another length")
        return values.flatten().to_numpy(zero_copy_only=False).reshape(shape)

    if str(count.type) != "double":
        raise ValueError(f"count holds {count.type}")
    moments = Moments(count.to_numpy(), vectors(mean), vectors(sumsq))
    if not (np.all(moments.count > 0) and np.isfinite(moments.count).all() and moments.is_finite()):
        raise ValueError("a count is not positive or a moment is not finite")
    if np.any(moments.sumsq < 0):
        raise ValueError("a sum of squares is negative")
    return moments


def _first_line(problem: BaseException) -> str:
    return str(problem).splitlines()[0] if str(problem) else type(problem).__name__
