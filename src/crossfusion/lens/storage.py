"""Lenses in files: the arrays of their steps as safetensors, which hold no code, and everything else as JSON."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossfusion._base import (
    RAN_SHORT,
    FileError,
    FloatArray,
    check_folder,
    first_line,
    load,
    ran_short,
    write_whole,
)
from crossfusion._version import __version__

if TYPE_CHECKING:
    from crossfusion.lens.step import Step

FORMAT = 1
METADATA_KEY = "crossfusion_lens"
FILE_ENDING = ".safetensors"
PURPOSE = "a file of a lens"


def compute_digest(steps: "Iterable[Step]") -> str:
    """Digest of everything that decides how rows are mapped."""
    found = blake2b(digest_size=8)
    for step in steps:
        found.update(json.dumps([FORMAT, step.kind, step.facts()], sort_keys=True).encode())
        for name, values in sorted(step.arrays().items()):
            found.update(json.dumps([name, values.dtype.str, values.shape]).encode())
            found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def write(path: str | os.PathLike[str], steps: "Sequence[Step]", digest: str) -> None:
    """Write steps and their digest."""
    save = load("safetensors.numpy", "safetensors", "lens", PURPOSE).save
    if Path(path).suffix.lower() != FILE_ENDING:
        raise FileError(path, "has an ending that does not fit a lens", f"use {FILE_ENDING}")
    check_folder(path)
    about = {"format": FORMAT, "digest": digest, "creator": f"crossfusion {__version__}"}
    about["steps"] = [{"kind": step.kind, **step.facts()} for step in steps]
    arrays = {
        f"{position}.{name}": np.ascontiguousarray(values)
        for position, step in enumerate(steps)
        for name, values in step.arrays().items()
    }
    content = save(arrays, metadata={METADATA_KEY: json.dumps(about)})
    write_whole(path, lambda temporary: _fill(temporary, content))


def _fill(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)


def read_steps(path: str | os.PathLike[str], kinds: "Iterable[type[Step]]") -> "tuple[Step, ...]":
    """Read the steps that `write` wrote, of these kinds; reject any other file."""
    about, arrays = _read_content(path)
    version = about.get("format")
    if type(version) is not int or version < 1:
        raise FileError(path, f"is a damaged lens (its format is {version!r})", "write it again")
    if version > FORMAT:
        raise FileError(path, f"has format {version}, newer than the {FORMAT} known here", "upgrade crossfusion")
    try:
        known = {kind.kind: kind for kind in kinds}
        steps = tuple(
            _make_step(known[entry["kind"]], entry, _select(arrays, position))
            for position, entry in enumerate(about["steps"])
        )
        used = sum(len(step.arrays()) for step in steps)
        if not steps or used != len(arrays) or compute_digest(steps) != about["digest"]:
            raise ValueError("its content is not what was written, by its digest")
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise FileError(path, f"is a damaged lens ({first_line(problem)})", "write it again") from problem
    return steps


def _read_content(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, FloatArray]]:
    """What a file says about a lens, and its arrays."""
    safe_open = load("safetensors", "safetensors", "lens", PURPOSE).safe_open
    if not os.path.isfile(path):
        raise FileError(path, "is not a plain file" if os.path.exists(path) else "does not exist", "check the path")
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            metadata = file.metadata() or {}
            about = json.loads(metadata[METADATA_KEY]) if METADATA_KEY in metadata else None
            names = [] if about is None else list(file.keys())
            arrays = {name: file.get_tensor(name) for name in names}
    except Exception as problem:  # damage causes errors of many kinds
        said = RAN_SHORT if ran_short(problem) else "is not a safetensors file that can be read"
        raise FileError(path, f"{said} ({first_line(problem)})", "check the file, or write the lens again") from problem
    if not isinstance(about, dict):
        raise FileError(path, "is not a lens", "write one with lens.write, or 'crossfusion lens fit'")
    return about, arrays


def _select(arrays: dict[str, FloatArray], position: int) -> dict[str, FloatArray]:
    start = f"{position}."
    return {name.removeprefix(start): values for name, values in arrays.items() if name.startswith(start)}


def _make_step(kind: "type[Step]", entry: dict[str, Any], arrays: dict[str, FloatArray]) -> "Step":
    facts = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    del facts["kind"]
    if {*facts, *arrays} != {field.name for field in fields(kind)}:
        raise ValueError(f"a step of kind {kind.kind!r} has other fields")
    make: Any = kind
    step: Step = make(**facts, **arrays)
    return step
