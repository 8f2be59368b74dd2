"""Checksums of the cells of a summary, of its file, and of a batch of rows that was added to it.

They detect accidents, such as a bad copy or a cell edited by hand, but not deliberate changes.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from crossfusion.moments import Moments

if TYPE_CHECKING:
    import pyarrow as pa

HASHED_DIGITS = 6  # significant digits that identify a batch; equal rows read on other threads agree in more
ROUNDING = 1e-20  # share of the squared mean below which a squared deviation is the rounding of float64


def hash_cells(keys: "pa.Table", moments: Moments) -> list[str]:
    """Hash each cell: its factor values, then count, mean and sumsq as little-endian float64."""
    fields = [np.ascontiguousarray(values, "<f8") for values in (moments.count[:, None], moments.mean, moments.sumsq)]
    found = []
    for position, key in enumerate(_encode_keys(keys)):
        cell = blake2b(key, digest_size=8)
        for values in fields:
            cell.update(values[position].data)
        found.append(cell.hexdigest())
    return found


def _encode_keys(keys: "pa.Table") -> list[bytes]:
    """Encode the factor values of each cell as typed text, such as ``str:A``, each after its length in four bytes."""
    columns = [keys.column(name).to_pylist() for name in keys.column_names]
    texts = [[f"{type(value).__name__}:{value}".encode() for value in column] for column in columns]
    return [b"".join(len(text).to_bytes(4, "little") + text for text in cell) for cell in zip(*texts, strict=True)]


def hash_file(facts: Mapping[str, Any], factors: Sequence[str], cells: Sequence[str]) -> str:
    """Hash a file: its cells in any order, the names of the factors, and the other facts."""
    said = json.dumps([{**facts, "checksum": None}, list(factors)], sort_keys=True)
    return blake2b("\n".join([said, *sorted(cells)]).encode(), digest_size=16).hexdigest()


def hash_batch(
    keys: "pa.Table", moments: Moments, tags: Mapping[str, str], features: Sequence[str] | None = None
) -> str:
    """Hash a summary, such that equal rows give equal hashes whatever the threads, chunks and order of reading.

    Factors, groups, counts and tags go in as they are; of the moments, whose last digits depend on how the rows were
    read, four rounded numbers.
    """
    names = sorted(keys.column_names)
    values = _encode_keys(keys.select(names))
    order = np.array(sorted(range(len(values)), key=values.__getitem__))
    said = [
        names,
        sorted(tags.items()),
        moments.dim,
        moments.count[order].tolist(),
    ]
    with np.errstate(over="ignore", invalid="ignore"):  # of values whose squares overflow
        said.append(_describe_moments(moments, np.argsort(order), _weigh_features(moments.dim, features)))
    return blake2b(b"".join([json.dumps(said).encode(), *(values[k] for k in order)]), digest_size=8).hexdigest()


def hash_rows_in_cells(keys: "pa.Table", moments: Moments, features: Sequence[str] | None = None) -> dict[str, int]:
    """Hash each cell with several different rows, and map hashes to positions; equal rows mostly give equal hashes."""
    values = _encode_keys(keys.select(sorted(keys.column_names)))
    spread = moments.sumsq.sum(axis=1)
    mixture = moments.mean @ _weigh_features(moments.dim, features)
    digits = HASHED_DIGITS - 1
    return {
        f"{values[k].hex()} {moments.count[k]:.0f} {spread[k]:.{digits}e} {mixture[k]:.{digits}e}": k
        for k in np.flatnonzero((moments.count > 1) & (spread > 0)).tolist()
    }


def _weigh_features(dim: int, features: Sequence[str] | None) -> NDArray[Any]:
    """Compute a weight for each feature: by its name, so that their order does not matter, or by its position."""
    weights = np.cos(np.arange(1, dim + 1))
    return weights if features is None else weights[np.argsort(np.argsort(features))]


def _describe_moments(cells: Moments, rank: NDArray[Any], feature: NDArray[Any]) -> list[str]:
    """Describe moments by rounded numbers: the spread, its share within cells, and two mixtures of means."""
    rows = cells.count.sum()
    center = cells.count @ cells.mean / rows
    gap = cells.mean - center
    within = cells.sumsq.sum()
    spread = within + np.einsum("ij,ij->i", gap, gap) @ cells.count
    if spread < ROUNDING * rows * (center @ center):  # nothing but rounding: rows that are all the same
        within = spread = 0.0
    unit = np.sqrt(spread / rows) or np.sqrt(center @ center) or 1.0
    weight = np.cos(rank) * cells.count / rows
    mixtures = center @ feature / unit, weight @ (gap @ feature) / unit
    shares = (within / spread if spread else 0.0), *mixtures
    return [
        f"{spread:.{HASHED_DIGITS - 1}e}",
        *(f"{round(share, HASHED_DIGITS) + 0.0:.{HASHED_DIGITS}f}" for share in shares),
    ]
