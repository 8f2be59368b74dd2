"""What is read, and how: as a table by name, by commands, from folders, from elsewhere, with a manifest."""

import http.server
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import numpy as np

import crossfusion as cf
from tests.fuzz import samples
from tests.fuzz.odd import ODD, Odd, write_odd_manifest

Read = Callable[[Path, Path], Any]  # from what the format wrote, and the file in it that was broken


@dataclass(frozen=True)
class Format:
    """How a format's files are written, read and, by a command, asked."""

    file: str  # or folder
    write: Callable[[Path], None]
    vectors: str | None = None
    read: Read | None = None  # unless what was written is summarized
    commands: tuple[Callable[[Path, Path], list[str]], ...] = ()  # unless it is asked for its distances
    breaks: Callable[[Path], bool] = field(default=lambda _path: True)  # which files of a folder
    odd: Odd | None = None
    odd_file: str = ""  # the one of a folder that odd content goes to
    inside: tuple[str, ...] = ()  # names of the files of a folder of which each is read by itself
    large: bool = False  # is read as larger files are
    isolated: bool = False  # each broken file is read in a process of its own

    def targets(self, path: Path) -> list[Path]:
        """Files that may be broken."""
        return [path] if path.is_file() else sorted(e for e in path.rglob("*") if e.is_file() and self.breaks(e))

    def ask(self, path: Path, target: Path) -> None:
        """Read as a user does; what cannot be read raises one of our errors."""
        summary = self._summary(path, target)
        if not summary.moments.is_finite():
            raise AssertionError("moments are not finite")

    def _summary(self, path: Path, target: Path) -> Any:
        return self.read(path, target) if self.read else cf.summarize(path, by="site", vectors=self.vectors)

    def command(self, path: Path, target: Path, draw: np.random.Generator) -> list[str]:
        """Arguments of a command that reads it."""
        if self.commands:
            return self.commands[int(draw.integers(len(self.commands)))](path, target)
        return ["matrix", str(path), "--between", "site", *vectors_option(self.vectors), "--json"]


def vectors_option(vectors: str | None) -> list[str]:
    return ["--vectors", vectors] if vectors else []


def read_target(_path: Path, target: Path) -> Any:
    """The broken file by itself."""
    return cf.summarize(target, by="site", vectors="v*" if target.name.startswith(("x.csv", "x.tsv")) else "v")


def ask_target(_path: Path, target: Path) -> list[str]:
    vectors = "v*" if target.name.startswith(("x.csv", "x.tsv")) else "v"
    return ["matrix", str(target), "--between", "site", "--vectors", vectors, "--json"]


def read_memory(_path: Path, target: Path) -> Any:
    import fsspec

    fsspec.filesystem("memory").pipe(f"/fuzz/{target.name}", target.read_bytes() if target.exists() else b"")
    return read_url(f"memory://fuzz/{target.name}", target)


def read_url(url: str, target: Path) -> Any:
    return cf.summarize(url, by="site", vectors="v*" if target.suffix == ".csv" else "v")


class _Ranges(http.server.BaseHTTPRequestHandler):
    """A server that can send a part of a file, whatever its name."""

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._send(with_content=True)

    def do_HEAD(self) -> None:
        self._send(with_content=False)

    def _send(self, with_content: bool) -> None:
        path = Path(os.fsdecode(unquote_to_bytes(self.path)))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        low, high = (int(span[1]), min(int(span[2]) + 1, len(content))) if span else (0, len(content))
        self.send_response(206 if span else 200)
        self.send_header("Accept-Ranges", "bytes")
        if span:
            self.send_header("Content-Range", f"bytes {low}-{high - 1}/{len(content)}")
        self.send_header("Content-Length", str(max(0, high - low)))
        self.end_headers()
        if with_content:
            self.wfile.write(content[low:high])


@cache
def _address() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Ranges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def read_http(_path: Path, target: Path) -> Any:
    return read_url(_address() + quote(str(target), errors="surrogateescape"), target)


def read_with_manifest(path: Path, target: Path) -> Any:
    vectors = path / "x.parquet"
    if target.name == "files.csv":
        return cf.summarize(vectors, by="site", manifest=target, on="file")
    by_order = target.is_file() and target.stat().st_size % 2 == 1  # every now and then
    on = None if by_order else "id"
    return cf.summarize(vectors, by="site", manifest=target, on=on)


def ask_with_manifest(path: Path, target: Path) -> list[str]:
    on = "file" if target.name == "files.csv" else "id"
    files = [str(path / "x.parquet"), "--manifest", str(target), "--on", on]
    return ["matrix", *files, "--between", "site", "--json"]


def append(path: Path, _target: Path) -> list[str]:
    rows = path.with_name("rows.csv")
    samples.write_text(rows)
    return ["summarize", str(rows), "--by", "site", "--append", "-o", str(path), "--json"]


def merge(path: Path, _target: Path) -> list[str]:
    whole = path.with_name("other.parquet")
    samples.write_summary(whole)
    return ["merge", str(path), str(whole), "-o", str(path.with_name("merged.parquet")), "--json"]


def matrix(path: Path, _target: Path) -> list[str]:
    return ["matrix", str(path), "--between", "site", "--json"]


def compare(path: Path, _target: Path) -> list[str]:
    return ["compare", str(path), str(path), "--json"]


def read_pair(path: Path, _target: Path) -> Any:
    """Rows without columns have no factors but a manifest's."""
    return cf.summarize(path, by="site", manifest=samples.wide())


FORMATS: dict[str, Format] = {
    "npy": Format("x.npy", samples.write_npy, read=read_pair, commands=(compare,), odd=ODD["npy"]),
    "npz": Format("x.npz", samples.write_npz, odd=ODD["npz"]),
    "npz, packed": Format("x.npz", samples.write_packed, "v"),
    "csv": Format("x.csv", samples.write_text, odd=ODD["csv"]),
    "text, packed": Format("x", samples.write_texts, read=read_target, commands=(ask_target,), inside=samples.TEXTS),
    "parquet": Format("x.parquet", samples.write_parquet, "v", odd=ODD["parquet"]),
    "parquet, wide": Format("x.parquet", samples.write_wide, "v*"),
    "parquet, large": Format("x.parquet", samples.write_parquet, "v", large=True),
    "parquet, large and wide": Format("x.parquet", samples.write_many_columns, "v*", large=True),
    "summary": Format(
        "x.parquet",
        samples.write_summary,
        read=lambda path, _target: cf.read_summary(path),
        commands=(matrix, merge, append),
    ),
    "arrow": Format("x.arrow", samples.write_arrow, odd=ODD["arrow"]),
    "stream": Format("x.arrow", samples.write_stream, "v"),
    "feather": Format("x.feather", samples.write_feather, "v*"),
    "hdf5": Format("x.h5", samples.write_hdf5, odd=ODD["hdf5"], isolated=True),
    "hdf5, tree": Format("x.h5", samples.write_hdf5_tree, odd=ODD["hdf5, tree"], isolated=True),
    "h5ad": Format("x.h5ad", samples.write_h5ad, isolated=True),
    "h5ad, obsm": Format("x.h5ad", samples.write_h5ad, "obsm/v", isolated=True),
    "zarr": Format("x.zarr", samples.write_zarr, odd=ODD["zarr"]),
    "zarr, old": Format("x.zarr", samples.write_old_zarr),
    "zarr, zip": Format("x.zarr.zip", samples.write_zarr),
    "pt": Format("x.pt", samples.write_pt, odd=ODD["pt"]),
    "pt, old": Format("x.pt", samples.write_old_pt),
    "lake": Format("x", samples.write_lake, "v*"),
    "manifest": Format(
        "x",
        samples.write_manifests,
        read=read_with_manifest,
        commands=(ask_with_manifest,),
        breaks=lambda path: path.name != "x.parquet",
        odd=write_odd_manifest,
        odd_file="m.parquet",
    ),
    "memory": Format("x", samples.write_some, read=read_memory, commands=(ask_target,)),
    "http": Format("x", samples.write_some, read=read_http, commands=(ask_target,)),
}
