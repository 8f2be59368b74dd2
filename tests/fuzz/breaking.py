"""Ways in which files break."""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.fuzz import samples
from tests.fuzz.samples import DIM, ROWS

FOREIGN: dict[str, Callable[[Path], None]] = {  # by name, since some libraries ask for an ending
    "x.npy": samples.write_npy,
    "x.npz": samples.write_npz,
    "x.csv.zst": samples.write_text,
    "x.parquet": samples.write_parquet,
    "x.arrow": samples.write_arrow,
    "x.h5": samples.write_hdf5,
}


def truncate(data: bytearray, draw: np.random.Generator) -> bytes:
    ends = [0, 1, 8, int(draw.integers(len(data))), len(data) - 1, len(data) - 8]
    return bytes(data[: ends[int(draw.integers(len(ends)))]])


def flip(data: bytearray, draw: np.random.Generator) -> bytes:
    """A few bits, often where files say what is in them: at the start and at the end."""
    for _ in range(draw.integers(1, 9)):
        near = int(draw.integers(min(200, len(data))))
        place = [near, len(data) - 1 - near, int(draw.integers(len(data)))][int(draw.integers(3))]
        data[place] ^= 1 << int(draw.integers(8))
    return bytes(data)


def overwrite(data: bytearray, draw: np.random.Generator) -> bytes:
    start, size = int(draw.integers(len(data))), int(draw.integers(1, 64))
    fill = draw.choice([0, 255, -1])
    noise = draw.bytes(size) if fill < 0 else bytes([int(fill)]) * size
    return bytes(data[:start]) + noise + bytes(data[start + size :])


def cut_out(data: bytearray, draw: np.random.Generator) -> bytes:
    start, size = int(draw.integers(len(data))), int(draw.integers(1, 200))
    return bytes(data[:start] + data[start + size :])


def repeat(data: bytearray, draw: np.random.Generator) -> bytes:
    start, size = int(draw.integers(len(data))), int(draw.integers(1, 200))
    return bytes(data[: start + size] + data[start:])


def enlarge(data: bytearray, draw: np.random.Generator) -> bytes:
    """Numbers in text, such as declared sizes, become huge."""
    places = list(re.finditer(rb"\d+", bytes(data)))
    if not places:
        return truncate(data, draw)
    place = places[int(draw.integers(len(places)))]
    huge = draw.choice([b"99999999999", b"4294967296", b"1000000000", b"-1", b"1e308", b"nan"])
    return bytes(data[: place.start()]) + bytes(huge) + bytes(data[place.end() :])


def enlarge_binary(data: bytearray, draw: np.random.Generator) -> bytes:
    """Small binary numbers, such as counts, become huge."""
    for _ in range(200):
        place = int(draw.integers(max(1, len(data) - 8)))
        if data[place] in (ROWS, DIM, 20, 25) and not any(data[place + 1 : place + 4]):
            width = int(draw.choice([3, 4, 7]))
            data[place + 1 : place + width] = draw.bytes(width - 1)
            return bytes(data)
    return flip(data, draw)


def foreign(_data: bytearray, draw: np.random.Generator) -> bytes:
    """Something else under this name."""
    name = list(FOREIGN)[int(draw.integers(len(FOREIGN)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        FOREIGN[name](path)
        return path.read_bytes()


def no_text(data: bytearray, draw: np.random.Generator) -> bytes:
    """Bytes that are not UTF-8 where names are."""
    return bytes(data).replace(b"site", bytes(draw.choice([b"s\xff\xfee", b"\xc3(te", b"si\x00e"])))


MUTATIONS = (truncate, flip, flip, overwrite, cut_out, repeat, enlarge, enlarge_binary, foreign, no_text)


def break_file(path: Path, draw: np.random.Generator) -> str:
    """Break a file; says how."""
    if draw.random() < 0.02:
        path.unlink()
        return f"{path.name} removed"
    mutation = MUTATIONS[int(draw.integers(len(MUTATIONS)))]
    data = path.read_bytes()
    path.write_bytes(mutation(bytearray(data), draw) if data else b"\n")
    return f"{mutation.__name__} {path.name}"
