"""What is done of a long embedding, kept beside its output until the output is whole."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock
import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, files
from crossfusion.pathology.images import compute_digest
from crossfusion.pathology.tiles import Tile
from crossfusion.summary import storage

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_KEY = b"crossfusion.embedding"
FORMAT = 1
VECTOR_COLUMN = "embedding"
ROW_GROUP_SIZE = 65_536  # of a row group at most
OutputChunk = tuple[NDArray[np.float32], NDArray[np.bool_]]  # vectors, and which images were left as they are


class OutputChunks:
    """Vectors of the first tiles, in files of a folder beside the output.

    Parameters
    ----------
    target : Path
        The output.
    about : str
        Digest of tiles, encoder and normalizer: chunks of anything else are not gone on with.
    dim : int
        Features of a vector.
    """

    def __init__(self, target: Path, about: str, dim: int) -> None:
        self.folder = target.with_name(f".{target.name}.{about[:8]}.parts")
        self._dim = dim
        self.rows = 0

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from the same work."""
        lock = filelock.FileLock(self.folder / "lock", timeout=0)
        try:
            self.folder.mkdir(exist_ok=True)
            lock.acquire()
        except filelock.Timeout as problem:
            raise FileError(
                self.folder, "is in use by another process that makes the same output", "wait for it"
            ) from problem
        except OSError as problem:
            raise files.make_write_error(self.folder, problem) from problem
        try:
            self.rows = self._count_rows()
            yield
        finally:
            lock.release()
            if not self.rows:
                self.remove()

    def _count_rows(self) -> int:
        """How many of the first rows there are; chunks that do not join them are removed."""
        rows = 0
        for path in self._list_files():
            if int(path.stem) != rows or (chunk := _read_chunk(path, self._dim)) is None:
                path.unlink()
            else:
                rows += len(chunk[0])
        return rows

    def _list_files(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.npz"))

    def add(self, vectors: NDArray[np.float32], unchanged: NDArray[np.bool_]) -> None:
        """Keep the next rows: all of them or nothing."""

        def write(temporary: str) -> None:
            with open(temporary, "wb") as file:
                np.savez(file, vectors=vectors, unchanged=unchanged, checksum=compute_digest([vectors, unchanged]))

        files.write_whole(self.folder / f"{self.rows:012d}.npz", write)
        self.rows += len(vectors)

    def read(self) -> Iterator[OutputChunk]:
        """All that is kept, in order."""
        for path in self._list_files():
            chunk = _read_chunk(path, self._dim)
            if chunk is None:
                raise FileError(path, "was damaged while the output was made from it", "give the same command again")
            yield chunk

    def remove(self) -> None:
        """Remove what was kept."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _read_chunk(path: Path, dim: int) -> OutputChunk | None:
    """A chunk; None if it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            vectors, unchanged = kept["vectors"], kept["unchanged"]
            whole = str(kept["checksum"]) == compute_digest([vectors, unchanged]) and vectors.shape == (
                len(unchanged),
                dim,
            )
    except Exception:
        return None
    return (vectors, unchanged) if whole else None


def write_output(
    path: Path, tiles: Sequence[Tile], factors: Sequence[str], chunks: OutputChunks, facts: Mapping[str, Any], dim: int
) -> None:
    """Put tiles and vectors together in one Parquet file: all of it or nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = dict(facts) | {"unchanged": sum(int(unchanged.sum()) for _, unchanged in chunks.read())}
    names = [*factors, "key", "file"]
    fields = [*((name, pa.string()) for name in names), (VECTOR_COLUMN, pa.list_(pa.float32(), dim))]
    schema = pa.schema(fields, metadata={METADATA_KEY: json.dumps(about).encode()})

    def write(temporary: str) -> None:
        with (
            open(temporary, "wb") as file,
            pq.ParquetWriter(file, schema, use_dictionary=names, write_page_checksum=True) as writer,
        ):
            for start, vectors in _regroup_rows(chunks):
                writer.write_table(_make_table(tiles[start : start + len(vectors)], factors, vectors, schema))

    files.write_whole(path, write)


def _regroup_rows(chunks: OutputChunks) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Vectors in groups of the same numbers of rows, wherever the work was interrupted."""
    start, held = 0, np.empty((0, 0), np.float32)
    for vectors, _ in chunks.read():
        held = np.concatenate([held, vectors]) if len(held) else vectors
        while len(held) >= ROW_GROUP_SIZE:
            yield start, held[:ROW_GROUP_SIZE]
            start, held = start + ROW_GROUP_SIZE, held[ROW_GROUP_SIZE:]
    if len(held) or not start:
        yield start, held


def _make_table(
    tiles: Sequence[Tile], factors: Sequence[str], vectors: NDArray[np.float32], schema: "pa.Schema"
) -> Any:
    import pyarrow as pa

    columns: list[Any] = [pa.array([tile.factors[name] for tile in tiles], pa.string()) for name in factors]
    columns += [pa.array([tile.key for tile in tiles]), pa.array([tile.file for tile in tiles])]
    columns.append(
        pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(vectors).reshape(-1)), vectors.shape[1])
    )
    return pa.Table.from_arrays(columns, schema=schema)


def read_facts(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """What an output says of itself; None if the file is none that `embed` wrote."""
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
        facts = json.loads(metadata[METADATA_KEY])
    except Exception:
        return None
    return facts if isinstance(facts, dict) else None


def check_target(path: Path) -> None:
    """Refuse, before any work, an output that would replace something else."""
    if path.suffix.lower() not in storage.FILE_ENDINGS:
        raise FileError(path, "has an ending that does not fit embeddings", f"use {' or '.join(storage.FILE_ENDINGS)}")
    files.check_folder(path)
    if path.exists() and (not path.is_file() or (path.stat().st_size and read_facts(path) is None)):
        raise FileError(path, "exists and was not made by embed", "choose another name, or delete it first")
