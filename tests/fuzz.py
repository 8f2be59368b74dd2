"""Broken files by the thousand: run as `python -m tests.fuzz FORMAT COUNT SEED`, in a process that may die of it.

Each case writes a file, breaks it, and reads it. A summary of finite numbers is right, and so is one of our errors in
one line; anything else is printed as a finding, and makes the exit code 1.
"""

import contextlib
import gzip
import io
import json
import re
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

import crossfusion as cf
from crossfusion.cli import main

ROWS, DIM = 60, 4
SECONDS, MEGABYTES = 20, 700
rng = np.random.default_rng(5)
X = rng.normal(size=(ROWS, DIM))
SITE = np.array([f"site {k % 3}" for k in range(ROWS)])


def table(vectors: pa.Array | None = None) -> pa.Table:
    vectors = pa.array(X.tolist(), pa.list_(pa.float64(), DIM)) if vectors is None else vectors
    return pa.table({"site": SITE, "v": vectors})


def wide() -> pa.Table:
    return pa.table({"site": SITE, **{f"v{k}": X[:, k] for k in range(DIM)}})


def write_npy(path: Path) -> None:
    np.save(path, X)


def write_npz(path: Path) -> None:
    np.savez(path, v=X, site=SITE)


def write_packed(path: Path) -> None:
    np.savez_compressed(path, v=X, site=SITE)


def write_csv(path: Path) -> None:
    pyarrow.csv.write_csv(wide(), path)


def write_gz(path: Path) -> None:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(wide(), sink)
    path.write_bytes(gzip.compress(sink.getvalue()))


def write_parquet(path: Path) -> None:
    pq.write_table(table(), path, row_group_size=25)


def write_wide(path: Path) -> None:
    pq.write_table(wide(), path, compression="zstd")


def write_summary(path: Path) -> None:
    cf.summarize(X, by={"site": SITE}).write(path)


def write_arrow(path: Path) -> None:
    with pa.ipc.new_file(path, table().schema) as sink:
        sink.write_table(table(), max_chunksize=20)


def write_stream(path: Path) -> None:
    with pa.ipc.new_stream(path, table().schema) as sink:
        sink.write_table(table(), max_chunksize=20)


def write_feather(path: Path) -> None:
    pyarrow.feather.write_feather(wide(), str(path))


def write_hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file.create_dataset("v", data=X, chunks=(20, DIM), compression="gzip")
        file.create_dataset("site", data=SITE.astype("S"))


def write_h5ad(path: Path) -> None:
    import anndata
    import pandas as pd
    from scipy import sparse

    names = pd.Index([f"site {k}" for k in range(3)], dtype=object)
    index = pd.Index([f"cell {k}" for k in range(ROWS)], dtype=object)
    obs = pd.DataFrame({"site": pd.Categorical.from_codes(np.arange(ROWS) % 3, names)}, index=index)
    var = pd.DataFrame(index=pd.Index([f"gene {k}" for k in range(DIM)], dtype=object))
    anndata.AnnData(sparse.csr_matrix(np.round(X)), obs=obs, var=var, obsm={"v": X}).write_h5ad(path)


def write_zarr(path: Path) -> None:
    import zarr

    group = zarr.open_group(str(path), mode="w")
    group.create_array("v", shape=X.shape, chunks=(20, DIM), dtype="f8")[:] = X
    group.create_array("site", shape=(ROWS,), dtype="i8")[:] = np.arange(ROWS) % 3


def write_pt(path: Path) -> None:
    import torch

    torch.save({"v": torch.tensor(X), "site": torch.arange(ROWS) % 3}, path)


Writer = Callable[[Path], None]
FORMATS: dict[str, tuple[str, Writer, str | None]] = {
    "npy": ("x.npy", write_npy, None),
    "npz": ("x.npz", write_npz, None),
    "npz, packed": ("x.npz", write_packed, "v"),
    "csv": ("x.csv", write_csv, None),
    "csv.gz": ("x.csv.gz", write_gz, "v*"),
    "parquet": ("x.parquet", write_parquet, "v"),
    "parquet, wide": ("x.parquet", write_wide, "v*"),
    "summary": ("x.parquet", write_summary, None),
    "arrow": ("x.arrow", write_arrow, None),
    "stream": ("x.arrow", write_stream, "v"),
    "feather": ("x.feather", write_feather, "v*"),
    "hdf5": ("x.h5", write_hdf5, None),
    "h5ad": ("x.h5ad", write_h5ad, None),
    "h5ad, obsm": ("x.h5ad", write_h5ad, "obsm/v"),
    "zarr": ("x.zarr", write_zarr, None),
    "pt": ("x.pt", write_pt, None),
}


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


def write_odd_npz(path: Path, draw: np.random.Generator) -> None:
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
    group.create_array("site", shape=(ROWS,), dtype="i8")[:] = np.arange(ROWS) % 3


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


ODD: dict[str, Callable[[Path, np.random.Generator], None]] = {
    "npy": lambda path, draw: np.save(path, odd_array(draw)),
    "npz": write_odd_npz,
    "parquet": lambda path, draw: pq.write_table(odd_table(draw), path),
    "arrow": write_odd_arrow,
    "hdf5": write_odd_hdf5,
    "zarr": write_odd_zarr,
    "pt": write_odd_pt,
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


def foreign(data: bytearray, draw: np.random.Generator) -> bytes:
    """Something else under this name."""
    other = list(FORMATS.values())[int(draw.integers(len(FORMATS)))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / other[0]
        other[1](path)
        return b"\x00" * 100 if path.is_dir() else path.read_bytes()


def no_text(data: bytearray, draw: np.random.Generator) -> bytes:
    """Bytes that are not UTF-8 where names are."""
    return bytes(data).replace(b"site", bytes(draw.choice([b"s\xff\xfee", b"\xc3(te", b"si\x00e"])))


MUTATIONS = (truncate, flip, flip, overwrite, cut_out, repeat, enlarge, enlarge_binary, foreign, no_text)


def break_file(path: Path, draw: np.random.Generator) -> str:
    """Break a file, or one of those in a folder; says how."""
    target = path
    if path.is_dir():
        inner = sorted(entry for entry in path.rglob("*") if entry.is_file())
        target = inner[int(draw.integers(len(inner)))]
        if draw.random() < 0.1:
            target.unlink()
            return f"{target.name} removed"
    mutation = MUTATIONS[int(draw.integers(len(MUTATIONS)))]
    target.write_bytes(mutation(bytearray(target.read_bytes()), draw))
    return f"{mutation.__name__} {target.name}"


def read(path: Path, vectors: str | None) -> None:
    """Read as a user does; what cannot be read raises one of our errors."""
    summary = cf.summarize(path, by="site", vectors=vectors)
    if not summary.moments.is_finite():
        raise AssertionError("moments are not finite")


def judge(path: Path, vectors: str | None, name: str, as_command: bool) -> str:
    """What is wrong with how a file was read; nothing, if it was read or refused in one line."""
    signal.alarm(SECONDS)
    try:
        if name == "summary":
            cf.read_summary(path)
        elif name == "npy" or as_command:
            return judge_command(path, vectors, name)
        else:
            read(path, vectors)
    except cf.CrossfusionError as problem:
        return "" if str(problem) and "\n" not in str(problem) else f"more than one line: {problem!r}"
    except BaseException as problem:
        return f"{type(problem).__name__}: {problem}"
    finally:
        signal.alarm(0)
    return ""


def judge_command(path: Path, vectors: str | None, name: str) -> str:
    extra = ["--vectors", vectors] if vectors else []
    command = (
        ["compare", str(path), str(path), "--json"]
        if name == "npy"
        else ["matrix", str(path), "--between", "site", *extra, "--json"]
    )
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code: object = 0
        try:
            main(command)
        except SystemExit as done:
            code = done.code or 0
    lines = [line for line in err.getvalue().splitlines() if not line.startswith("crossfusion: warning: ")]
    if code == 0:
        json.loads(out.getvalue())
        return ""
    right = code == 2 and len(lines) == 1 and lines[0].startswith("crossfusion: ")
    return "" if right else f"exit code {code} and {err.getvalue()!r}"


def run(name: str, count: int, seed: int) -> int:
    """Read broken files of a format; returns the number of findings."""
    warnings.simplefilter("ignore")
    file, write, vectors = FORMATS[name]
    findings = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        whole, path = Path(folder) / f"whole-{file}", Path(folder) / file
        write(whole)
        good = judge(whole, vectors, name, as_command=False)
        if good:
            print(f"{name}: the file itself: {good}", flush=True)
            return 1
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for case in range(count):
            draw = np.random.default_rng([seed, case])
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            how = "odd content"
            if name in ODD and case % 4 == 3:
                ODD[name](path, draw)
            else:
                shutil.copytree(whole, path) if whole.is_dir() else shutil.copy(whole, path)
                how = break_file(path, draw)
            print(f"{name} {seed} {case}: {how}", file=sys.__stderr__, flush=True)  # the last line tells of a crash
            found = judge(path, vectors, name, as_command=case % 10 == 0)
            if found:
                findings += 1
                print(f"{name} {seed} {case}: {how}: {found[:300]}", flush=True)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if grown > MEGABYTES:
        print(f"{name}: memory grew by {grown:.0f} MB", flush=True)
        findings += 1
    return findings


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no answer within {SECONDS} seconds")


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _too_long)
    sys.exit(min(1, run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
