"""Files that are whole, but hold something that is not rows and factors."""

import io
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.samples import DIM, NUMBER, ROWS, SITE, X, write_hdf5_tree

Odd = Callable[[Path, np.random.Generator], None]


def odd_vectors(draw: np.random.Generator) -> pa.Array:
    """A column that is whole but not what vectors are."""
    ragged = [row[: 1 + k % DIM] for k, row in enumerate(X.tolist())]
    holes = [None if k % 7 == 0 else row for k, row in enumerate(X.tolist())]
    inner = [[None, *row[1:]] if k % 5 == 0 else row for k, row in enumerate(X.tolist())]
    choices: list[pa.Array] = [
        pa.array(ragged),
        pa.array(holes),
        pa.array(inner),
        pa.array([[] for _ in range(ROWS)], pa.list_(pa.float64())),
        pa.array([None] * ROWS, pa.list_(pa.float32(), DIM)),
        pa.array([[row] for row in X.tolist()]),
        pa.array([[str(value) for value in row] for row in X.tolist()]),
        pa.array([{"a": 1.0}] * ROWS),
        pa.array(["text"] * ROWS),
        pa.array([b"\xff\x00"] * ROWS),
        pa.array([None] * ROWS),
        pa.array([[True, False]] * ROWS),
        pa.array([[1e308, -1e308, 1e308, 0.0]] * ROWS),
        pa.array([[float("nan")] * DIM] * ROWS),
        pa.array([[2**62, -(2**62)]] * ROWS),
        pa.array(X[:, 0].tolist()).cast(pa.decimal128(38, 10), safe=False),
        pa.array(range(ROWS), pa.timestamp("ns")),
    ]
    return choices[int(draw.integers(len(choices)))]


def odd_keys(draw: np.random.Generator) -> pa.Array:
    choices: list[pa.Array] = [
        pa.array(SITE),
        pa.array([[1]] * ROWS),
        pa.array([{"a": k} for k in range(ROWS)]),
        pa.array([b"\xff\xfe"] * ROWS),
        pa.array([None] * ROWS),
        pa.array(["<b>\n\u202e" + "x" * 10_000] * ROWS),
        pa.array([float("nan"), float("inf")] * (ROWS // 2)),
        pa.array(range(ROWS), pa.duration("s")),
    ]
    return choices[int(draw.integers(len(choices)))]


def odd_table(draw: np.random.Generator) -> pa.Table:
    keep = int(draw.choice([0, 1, ROWS, ROWS, ROWS]))
    return pa.table({"site": odd_keys(draw), "v": odd_vectors(draw)}).slice(0, keep)


def odd_array(draw: np.random.Generator) -> np.ndarray:
    choices: list[np.ndarray] = [
        X[:, 0],
        X[None],
        X[:0],
        X[:, :0],
        X.astype(complex),
        X.astype("S8"),
        X.astype(np.longdouble),
        X.astype(bool),
        np.full((ROWS, DIM), np.nan),
        np.full((ROWS, DIM), 1e308),
        np.array(3.0),
        X[:7],
    ]
    return choices[int(draw.integers(len(choices)))]


def write_odd_npy(path: Path, draw: np.random.Generator) -> None:
    if draw.random() < 0.2:
        path.write_bytes(huge_array(draw))
    else:
        np.save(path, odd_array(draw))


def huge_array(draw: np.random.Generator) -> bytes:
    """A file that declares more than it holds, or than any machine does."""
    shape = [(10**12, DIM), (DIM, 10**12), (2**62, 2**62), (2**33, 0), (10**9, DIM)][int(draw.integers(5))]
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": "<f8"})
    return file.getvalue() + X.tobytes()


def write_odd_npz(path: Path, draw: np.random.Generator) -> None:
    if draw.random() < 0.2:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("v.npy", huge_array(draw))
            archive.writestr("site.npy", huge_array(draw))
        return
    site = [SITE, SITE.astype(object), SITE[:3], SITE.reshape(2, -1), X.astype("V8")[:, 0]][int(draw.integers(5))]
    np.savez(path, v=odd_array(draw), site=site)


def write_odd_arrow(path: Path, draw: np.random.Generator) -> None:
    made = odd_table(draw)
    with pa.ipc.new_file(path, made.schema) as sink:
        sink.write_table(made)


def write_odd_hdf5(path: Path, draw: np.random.Generator) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        if draw.random() < 0.2:
            file.create_dataset("v", shape=(10**11, DIM), chunks=(1000, DIM), dtype="f8")  # declared, never written
        else:
            values = odd_array(draw)
            file.create_dataset("v", data=values.astype("f8") if values.dtype == np.longdouble else values)
        file.create_dataset("site", data=[SITE.astype("S"), X, np.arange(7), b"x"][int(draw.integers(4))])


def write_odd_zarr(path: Path, draw: np.random.Generator) -> None:
    import zarr

    group = zarr.open_group(str(path), mode="w")
    shape = [(10**11, DIM), (ROWS,), (0, DIM), (ROWS, DIM, 2), (ROWS, 0)][int(draw.integers(5))]
    group.create_array("v", shape=shape, chunks=tuple(min(20, max(1, size)) for size in shape), dtype="f8")
    group.create_array("site", shape=(ROWS,), dtype="i8")[:] = NUMBER


def write_odd_pt(path: Path, draw: np.random.Generator) -> None:
    import torch

    choices: list[object] = [
        torch.tensor(X),
        {"v": torch.tensor(X), "site": X},
        {"v": torch.tensor(X).to(torch.complex64), "site": list(SITE)},
        {"v": torch.tensor(X)[0], "site": [1]},
        {"v": torch.tensor(X).to_sparse(), "site": list(range(ROWS))},
        {"v": torch.zeros(0, DIM), "site": torch.zeros(0)},
        {3: torch.tensor(X), "site": ["a"] * ROWS},
        ["v", "site"],
        Path("x"),
        {"v": torch.tensor(X), "site": torch.tensor(X)},
        {"v": torch.empty(ROWS, DIM, device="meta"), "site": ["a"] * ROWS},
    ]
    torch.save(choices[int(draw.integers(len(choices)))], path)


def write_odd_text(path: Path, draw: np.random.Generator) -> None:
    """Lines that do not fit each other, or are no table at all."""
    lines = [f"{site},{','.join(map(str, row))}" for site, row in zip(SITE, X.tolist(), strict=True)]
    head = "site,v0,v1,v2,v3"
    wrong = int(draw.integers(1, ROWS))
    choices: list[bytes] = [
        "\n".join([head, *lines[:wrong], "a,b", *lines[wrong:]]).encode(),
        "\n".join([head, *lines[:wrong], f"{lines[0]},1,2,3", *lines[wrong:]]).encode(),
        "\n".join([head, *lines[:wrong], "site 0,x,y,z,w", *lines[wrong:]]).encode(),
        "\n".join([head, *lines[:wrong], 'site 0,"1,2,3,4', *lines[wrong:]]).encode(),
        "\n".join([head, *lines[:wrong], ",,,,", *lines[wrong:]]).encode(),
        "\n".join([head, *lines[:wrong], "site 0,nan,inf,-inf,1e999", *lines[wrong:]]).encode(),
        "\n".join(["site,v0,v0,v2,v3", *lines]).encode(),
        "\n".join([",,,,", *lines]).encode(),
        "\n".join([head, *lines]).encode("utf-16"),
        "\n".join([head, *lines]).replace("site 1", "s\u00efte").encode("latin-1"),
        (head + "\n").encode(),
        head.encode(),
        b"\xef\xbb\xbf\n\n\n",
        b"\n" * 1000,
        b'"' * 999,
        ("site," + ",".join(f"v{k}" for k in range(2_000))).encode() + b"\n" + b"1," * 2_000,
        b"site,v0\n" + b"x" * 2**21 + b",1\n",
    ]
    path.write_bytes(choices[int(draw.integers(len(choices)))])


def write_odd_manifest(path: Path, draw: np.random.Generator) -> None:
    """Keys that are not there, not once, or of another kind."""
    ids = [f"id {k}" for k in range(ROWS)]
    choices: list[object] = [
        ids[:7],
        ["id 0"] * ROWS,
        [None] * ROWS,
        list(range(ROWS)),
        [*ids[:-1], None],
        [[key] for key in ids],
        [{"a": key} for key in ids],
        [key.encode() + b"\xff" for key in ids],
        [float(k) for k in range(ROWS)],
        [],
    ]
    keys = pa.array(choices[int(draw.integers(len(choices)))])
    pq.write_table(pa.table({"id": keys, "site": odd_keys(draw).slice(0, len(keys))}), path)


def write_endless(path: Path, draw: np.random.Generator) -> None:
    """HDF5 that h5py reads for ever: free space that leads back to itself, or a text that takes no space."""
    write_hdf5_tree(path, latest=False)
    data = bytearray(path.read_bytes())
    if draw.random() < 0.5:
        for heap in re.finditer(b"HEAP", bytes(data)):
            free, place = struct.unpack_from("<QQ", data, heap.start() + 16)
            struct.pack_into("<Q", data, place + free, free)  # the first free piece is its own successor
    else:
        for texts in re.finditer(b"GCOL", bytes(data)):
            at = texts.start() + 16 + 24 * int(draw.integers(3))
            data[at : at + 16] = bytes(16)
    path.write_bytes(data)


ODD: dict[str, Odd] = {
    "npy": write_odd_npy,
    "npz": write_odd_npz,
    "csv": write_odd_text,
    "parquet": lambda path, draw: pq.write_table(odd_table(draw), path),
    "arrow": write_odd_arrow,
    "hdf5": write_odd_hdf5,
    "hdf5, tree": write_endless,
    "zarr": write_odd_zarr,
    "pt": write_odd_pt,
}
