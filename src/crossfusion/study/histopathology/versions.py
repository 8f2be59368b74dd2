"""Versions of a data set: the same tiles through one encoder after each normalization, each kept in a file."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import FileError, InputError, check_known, count_text, make_folder
from crossfusion.io import list_some
from crossfusion.io import paths as places
from crossfusion.pathology import NETWORKS, VECTOR_COLUMN, Encoder, Normalizer, Tile, check_target, embed, read_facts

PLAIN = "none"
SAFE = re.compile(r"[\w.+-]{1,60}")  # names that are names of files everywhere
Rows = NDArray[np.float32]
Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None] | None]]


@dataclass(frozen=True)
class EmbeddingFile:
    """A file of embeddings, and what is to be said of it."""

    name: str
    path: Path
    taken_over: bool
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        size = f"{count_text(self.facts.get('tiles', 0), 'tile')} × {count_text(self.facts.get('dim', 0), 'feature')}"
        return f"{self.name}: {size} {'taken over from' if self.taken_over else 'in'} {self.path}"


def hide_progress(_what: str, _total: int) -> AbstractContextManager[None]:
    """No bar."""
    return nullcontext()


def parse_normalizers(specs: Sequence[str]) -> dict[str, str]:
    """Normalizers by the names that tables show: NAME=SPEC, or a SPEC that has a name of its own."""
    found = {PLAIN: PLAIN}
    for text in specs:
        name, spec = _split_spec(text)
        if not SAFE.fullmatch(name):
            raise InputError(
                "normalizer", problem=f"has the name {name!r}", remedy="use letters, digits and . _ + - in NAME=SPEC"
            )
        if name in found and (name, spec) != (PLAIN, PLAIN):
            raise InputError("normalizer", problem=f"has two called {name!r}", remedy="tell them apart as NAME=SPEC")
        if name != spec and name in (PLAIN, "reinhard", "macenko"):
            raise InputError(
                "normalizer",
                problem=f"calls {spec!r} {name!r}, which is another's name",
                remedy="choose one of its own",
            )
        found[name] = spec
    return found


def _split_spec(text: str) -> tuple[str, str]:
    name, equals, spec = text.partition("=")
    if equals and ":" not in name:
        return name.strip(), spec.strip()
    kind, colon, rest = text.partition(":")
    return (PurePath(rest.rpartition("@")[0] or rest).stem, text) if colon and kind in NETWORKS else (text, text)


def needs_reference(specs: Mapping[str, str]) -> bool:
    """Whether any of them matches images with a reference."""
    return any(spec in ("reinhard", "macenko") for spec in specs.values())


def embed_versions(
    tiles: Sequence[Tile],
    folder: Path,
    *,
    encoder: Encoder,
    normalizers: Mapping[str, Normalizer],
    batch: int = 32,
    workers: int | None = None,
    bar: Bar = hide_progress,
    tell: Callable[[str], None] | None = None,
) -> list[EmbeddingFile]:
    """Encode the tiles after each normalization; files of the same work are taken over."""
    make_folder(folder)
    paths = {name: folder / f"{name}.parquet" for name in normalizers}
    for path in paths.values():
        check_target(path)
    found = []
    for name, normalize in normalizers.items():
        path = paths[name]
        before = path.stat().st_mtime_ns if path.exists() else None
        with bar(f"encoding {name}", len(tiles)) as progress:
            options: dict[str, Any] = {"batch": batch, "workers": workers, "progress": progress}
            embed(tiles, path, encoder=encoder, normalizer=normalize, **options)
        found.append(EmbeddingFile(name, path, path.stat().st_mtime_ns == before, read_facts(path) or {}))
        if tell is not None:
            tell(str(found[-1]))
    return found


def read_embeddings(path: Path, tiles: Sequence[Tile]) -> Rows:
    """Vectors of a file in the order of the tiles, by their keys."""
    import pyarrow.parquet as pq

    with places.translate_errors(str(path), "cannot be read as Parquet"):
        table = pq.ParquetFile(path)
        check_known(["key", VECTOR_COLUMN], table.schema_arrow.names, "column", str(path))
        found = table.read(columns=["key", VECTOR_COLUMN])
    place = {key: number for number, key in enumerate(found.column("key").to_pylist())}
    missing = [tile.key for tile in tiles if tile.key not in place]
    if missing:
        raise FileError(
            path, f"lacks {len(missing):,} of {len(tiles):,} tiles ({list_some(missing)})", "make it of the same tiles"
        )
    if len(place) < found.num_rows:
        raise FileError(path, f"has {count_text(found.num_rows - len(place), 'key')} twice", "keep one row each")
    column = found.column(VECTOR_COLUMN).combine_chunks()
    try:
        flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float32, copy=False)
        vectors = flat.reshape(found.num_rows, -1)
    except (AttributeError, TypeError, ValueError) as problem:
        raise FileError(
            path, f"has no vectors of one length in {VECTOR_COLUMN!r}", "write a list of numbers per row"
        ) from problem
    return np.ascontiguousarray(vectors[[place[tile.key] for tile in tiles]])
