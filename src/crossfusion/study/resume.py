"""Studies in pieces: each is kept as one file that says what it was made with, and nothing is computed twice."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from crossfusion._base import files
from crossfusion.study.workers import computed


class Piece(Protocol):
    """A part of a study that is computed by itself."""

    @property
    def title(self) -> str:
        """What it is, for people."""

    @property
    def cost(self) -> float:
        """How long it takes, in no unit."""

    def path(self, out: Path) -> Path:
        """Its file in the folder of the study."""

    def made_with(self) -> dict[str, Any]:
        """All that its numbers depend on."""


P = TypeVar("P", bound=Piece)


def keep(out: Path, piece: Piece, found: Mapping[str, Any]) -> None:
    """Keep a finished piece."""
    text = json.dumps({"made_with": piece.made_with(), "found": found}, ensure_ascii=False, allow_nan=False)
    files.write_text(piece.path(out), text + "\n")


def kept(out: Path, piece: Piece) -> dict[str, Any] | None:
    """A piece that was kept; None if it is missing, damaged, or of other rows or settings."""
    try:
        there = json.loads(piece.path(out).read_text(encoding="utf-8"))
        same = there["made_with"] == json.loads(json.dumps(piece.made_with()))
        found: dict[str, Any] = there["found"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if same else None


def all_found(
    out: Path,
    pieces: Sequence[P],
    compute: Callable[[P], dict[str, Any]],
    workers: int,
    tell: Callable[[str], None],
) -> list[tuple[P, Mapping[str, Any]]]:
    """What every piece found, in their order; the longest that are missing begin first."""
    results = [kept(out, piece) for piece in pieces]
    missing = sorted((k for k, result in enumerate(results) if result is None), key=lambda k: -pieces[k].cost)
    at = {id(pieces[k]): k for k in missing}
    todo = [pieces[k] for k in missing]
    tell(f"{len(pieces) - len(todo)} of {len(pieces)} pieces done")
    source = ((piece, compute(piece)) for piece in todo) if workers == 1 else computed(compute, todo, workers)
    with closing(source) as finished:
        for piece, result in finished:
            keep(out, piece, result)
            results[at.pop(id(piece))] = result
            tell(f"{len(pieces) - len(at)} of {len(pieces)} pieces done, last {piece.title}")
    return [(piece, result) for piece, result in zip(pieces, results, strict=True) if result is not None]


def digest(parts: Sequence[Any]) -> str:
    """A short name for arrays and texts."""
    found = blake2b(digest_size=12)
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind == "f":
            found.update(f"{part.dtype.str}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).data)
        else:
            found.update(json.dumps(part if isinstance(part, str) else [str(value) for value in part]).encode())
    return found.hexdigest()
