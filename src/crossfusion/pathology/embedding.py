"""Tiles to a table of embeddings: read, normalize and prepare on threads, ahead of the encoder."""

import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, NonFiniteError, arg, check_whole, threads
from crossfusion._version import __version__
from crossfusion.pathology.encoders import Encoder
from crossfusion.pathology.encoders import encoder as encoder_by_name
from crossfusion.pathology.images import compute_digest
from crossfusion.pathology.normalizers import Normalizer
from crossfusion.pathology.normalizers import normalizer as normalizer_by_name
from crossfusion.pathology.resumable_output import (
    FORMAT,
    VECTOR_COLUMN,
    OutputChunks,
    check_target,
    read_facts,
    write_output,
)
from crossfusion.pathology.tiles import Tile

SAVE_SECONDS = 20.0  # seconds of work between two chunks that are kept
MAX_CHUNK_BYTES = 2**28  # bytes of vectors in a chunk
BATCHES_AHEAD = 2  # batches that are read before the encoder asks for them
RESERVED_COLUMNS = ("key", "file", VECTOR_COLUMN)

Prepared = tuple[NDArray[np.float32], bool]


def embed(
    tiles: Sequence[Tile],
    out: str | os.PathLike[str],
    *,
    encoder: str | Encoder,
    normalizer: str | Normalizer | None = None,
    batch: int = 32,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """Encode tiles and write their vectors and factors to a Parquet file.

    Parameters
    ----------
    tiles : sequence of Tile
        Tiles to encode, with unique keys and the same factors.
    out : path
        The Parquet file to write, atomically. Repeating the call resumes interrupted work.
    encoder : str or Encoder
        See :func:`encoder`.
    normalizer : str or Normalizer, optional
        See :func:`normalizer`; none by default.
    batch : int
        Number of images per forward pass.
    workers : int, optional
        Number of threads that read, normalize and prepare tiles; by default one per core.
    progress : callable, optional
        Called with the number of tiles encoded since the last call.

    Returns
    -------
    Path
        The file: one text column per factor, then ``key``, ``file`` and ``embedding`` (a fixed-size list of float32).
        The schema metadata ``crossfusion.embedding`` records encoder, normalizer, version, and the number of images
        that the normalizer left unchanged.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from PIL import Image
    >>> from crossfusion.pathology.embedding import embed
    >>> from crossfusion.pathology.tiles import Tile
    >>> folder = tempfile.mkdtemp()
    >>> tiles = []
    >>> for k in range(4):
    ...     Image.fromarray(np.full((64, 64, 3), 40 * k, np.uint8)).save(f"{folder}/{k}.png")
    ...     tiles.append(Tile(f"{folder}/{k}.png", str(k), {"scanner": "AB"[k % 2]}))
    >>> path = embed(tiles, f"{folder}/embedding.parquet", encoder="random")
    >>> import crossfusion as cf
    >>> cf.summarize(path, by="scanner").dim
    256
    """
    path = Path(out)
    check_whole(batch, "batch")
    check_whole(1 if workers is None else workers, "workers")
    check_target(path)
    factors = _check_tiles(tiles)
    encode = encoder_by_name(encoder) if isinstance(encoder, str) else encoder
    normalize = normalizer_by_name(normalizer or "none") if not isinstance(normalizer, Normalizer) else normalizer
    facts = _describe_work(tiles, encode, normalize)
    if path.exists() and (read_facts(path) or {}).get("about") == facts["about"]:
        return path  # all is done
    chunks = OutputChunks(path, facts["about"], encode.dim)
    with chunks.lock():
        if progress is not None and chunks.rows:
            progress(chunks.rows)
        run = _Run(tiles, encode, normalize, chunks, progress)
        run.encode_rest(batch, workers or threads.thread_count())
        write_output(path, tiles, factors, chunks, facts, encode.dim)
    chunks.remove()
    return path


def _check_tiles(tiles: Sequence[Tile]) -> list[str]:
    """Names of the factors of tiles that can stand in one table."""
    if not tiles:
        raise InputError(problem="there are no tiles to encode", remedy="check the data and the layout")
    key, times = Counter(tile.key for tile in tiles).most_common(1)[0]
    if times > 1:
        raise InputError(problem=f"{times} tiles have the key {key!r}", remedy="give each its own")
    factors = list(tiles[0].factors)
    for tile in tiles:
        if set(tile.factors) != set(factors):
            said = ", ".join(tile.factors) or "none"
            raise InputError(
                problem=f"the tile {tile.key!r} has the factors {said}, others have {', '.join(factors) or 'none'}",
                remedy="give all tiles the same",
            )
    for name in factors:
        if name in RESERVED_COLUMNS:
            raise InputError(
                problem=f"{name!r} is a column of every table of embeddings", remedy="give the factor another name"
            )
    return factors


def _describe_work(tiles: Sequence[Tile], encode: Encoder, normalize: Normalizer) -> dict[str, Any]:
    """What is done and with what; `about` is the same only for the same work on the same files."""
    files = {name: _stat_file(name) for name in dict.fromkeys(tile.file for tile in tiles)}
    work = [FORMAT, encode.name, encode.tag, encode.dim, normalize.name, normalize.tag]
    each = ([tile.key, tile.file, dict(tile.factors), tile.box, tile.size, files[tile.file]] for tile in tiles)
    return {
        "format": FORMAT,
        "creator": f"crossfusion {__version__}",
        "encoder": encode.name,
        "encoder_tag": encode.tag,
        "normalizer": normalize.name,
        "normalizer_tag": normalize.tag,
        "dim": encode.dim,
        "tiles": len(tiles),
        "about": compute_digest([json.dumps(work), *(json.dumps(entry) for entry in each)]),
    }


def _stat_file(name: str) -> tuple[int, int]:
    try:
        found = os.stat(name)
    except OSError as problem:
        raise FileError(
            name, f"cannot be read ({problem.strerror or problem})", "check the path and the rights to read it"
        ) from problem
    return found.st_size, found.st_mtime_ns


@dataclass
class _Run:
    """The work from where it was interrupted."""

    tiles: Sequence[Tile]
    encode: Encoder
    normalize: Normalizer
    chunks: OutputChunks
    progress: Callable[[int], None] | None
    waiting: list[tuple[NDArray[np.float32], NDArray[np.bool_]]] = field(default_factory=list)

    def encode_rest(self, batch: int, workers: int) -> None:
        """Encode what is left, batch by batch, and keep it as it comes."""
        kept = time.monotonic()
        start = self.chunks.rows
        try:
            for prepared in self._prepare_batches(start, batch, workers):
                vectors = self.encode.encode(np.stack([pixels for pixels, _ in prepared]))
                self._check(vectors, start)
                self.waiting.append((vectors, np.array([unchanged for _, unchanged in prepared])))
                start += len(prepared)
                if self.progress is not None:
                    self.progress(len(prepared))
                if (
                    time.monotonic() > kept + SAVE_SECONDS
                    or 4 * self.encode.dim * (start - self.chunks.rows) > MAX_CHUNK_BYTES
                ):
                    self._save()
                    kept = time.monotonic()
        finally:
            self._save()

    def _save(self) -> None:
        if self.waiting:
            vectors, unchanged = (np.concatenate(column) for column in zip(*self.waiting, strict=True))
            self.chunks.add(vectors, unchanged)
            self.waiting.clear()

    def _prepare_batches(self, start: int, batch: int, workers: int) -> Iterator[list[Prepared]]:
        """Prepared tiles, a few batches ahead of who takes them."""
        with _open_threads(workers) as pool:
            coming: deque[list[Future[Prepared]]] = deque()
            for first in range(start, len(self.tiles), batch):
                coming.append([pool.submit(self._prepare, tile) for tile in self.tiles[first : first + batch]])
                if len(coming) > BATCHES_AHEAD:
                    yield [future.result() for future in coming.popleft()]
            for futures in coming:
                yield [future.result() for future in futures]

    def _prepare(self, tile: Tile) -> Prepared:
        image, unchanged = self.normalize.apply(tile.read())
        return self.encode.prepare(image), unchanged

    def _check(self, vectors: NDArray[np.float32], start: int) -> None:
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            tile = self.tiles[start + int(np.argmin(finite))]
            raise NonFiniteError(
                problem=f"the encoder {self.encode.name!r} gives NaN or infinite values for the tile {tile.key!r}"
                f" of {tile.file}",
                remedy=f"look at the image, or try {arg('precision', 'float32')}",
            )


@contextmanager
def _open_threads(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads whose waiting work is dropped when the work ends early."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
