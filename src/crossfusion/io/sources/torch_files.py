"""Tensors that torch.save wrote, memory-mapped; nothing but tensors and plain containers is unpickled."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from crossfusion._base import FileError, InputError, arg, as_names, check_known, check_length, factors, optional
from crossfusion.io.sources import paths
from crossfusion.io.sources.array_stores import cut_by_step, read_keys, translate_errors
from crossfusion.io.sources.chunk import Chunk, Source
from crossfusion.io.sources.factor_columns import Column

FILE_KIND = "a file of torch tensors"


def from_torch(path: str, by: Sequence[str], vectors: Any = None) -> Source:
    """A two-dimensional tensor; or a dictionary of one, with tensors or lists of factor values."""
    called = paths.show_path(path)
    with translate_errors(path, FILE_KIND):
        content = _load(path)
        name = _find_rows(content, called, by, vectors)
        rows = _check_tensor(content if name is None else content[name], f"{called}: {name}" if name else called)
        for factor in by:
            check_length(
                _open_column(content[factor], factor).length, rows.shape[0], f"{factor} of {called}", str(name)
            )
        cuts = cut_by_step(rows.shape[0], rows.shape[1] * max(rows.element_size(), 4), 1)  # bfloat16 becomes float32
        if not _is_mappable(path):  # a partition more would load all of it once more
            cuts = [(0, int(rows.shape[0]), cuts[0][2])]
        read = partial(_read_chunks, path, name, tuple(by))
        return Source(called, [partial(read, *cut) for cut in cuts], int(rows.shape[0]))


def _is_mappable(path: str) -> bool:
    """Whether a file is here, under a name that torch can open, and in the format of version 1.6 and later."""
    if paths.is_remote(path) or not paths.has_name(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _load(path: str) -> Any:
    """Content of a file, memory-mapped where that is possible."""
    torch = optional.load("torch", "PyTorch", "torch", "reading .pt files")
    try:
        if _is_mappable(path):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        with paths.open_binary(path) as file:
            return torch.load(file, map_location="cpu", weights_only=True)
    except Exception as problem:
        if "weights_only" in str(problem) or "Weights only" in str(problem):
            raise FileError(
                paths.show_path(path),
                "holds other objects than tensors, numbers, text and plain containers of these, or is damaged",
                "save a dictionary of tensors",
            ) from problem
        raise


def _find_rows(content: Any, path: str, by: Sequence[str], vectors: Any) -> str | None:
    """Key of the tensor that holds the rows; None where the file is that tensor itself."""
    torch = optional.load("torch", "PyTorch", "torch", "reading .pt files")
    if torch.is_tensor(content):
        if by or vectors is not None:
            name = by[0] if by else vectors
            raise InputError(
                problem=f"{path} is one tensor without names, so {name!r} is not in it", remedy="save a dictionary"
            )
        return None
    if not isinstance(content, dict):
        raise InputError(
            problem=f"{path} holds {type(content).__name__}", remedy="save a tensor, or a dictionary of tensors"
        )
    known = [key for key in content if isinstance(key, str)]
    check_known(by, known, "entry", path)
    if vectors is not None:
        names = as_names(vectors, "vectors", "tensor")
        check_known(names, known, "entry", path)
        if len(names) != 1:
            raise InputError("vectors", vectors, f"must be the name of one tensor of {path}, rows × features")
        return names[0]
    flat = [key for key in known if torch.is_tensor(content[key]) and content[key].ndim == 2 and key not in by]
    if len(flat) != 1:
        raise InputError(
            problem=f"{path} has {len(flat)} two-dimensional tensors",
            remedy=f"name the one with the rows in {arg('vectors')}",
        )
    return flat[0]


def _check_tensor(rows: Any, holder: str) -> Any:
    """A tensor of rows × features whose values are all in the file."""
    torch = optional.load("torch", "PyTorch", "torch", "reading .pt files")
    if not torch.is_tensor(rows) or rows.ndim != 2:
        found = f"has shape {tuple(rows.shape)}" if torch.is_tensor(rows) else f"is {type(rows).__name__}"
        raise InputError(problem=f"{holder} {found}", remedy="vectors need a tensor of rows × features")
    if rows.layout is not torch.strided or rows.is_quantized or rows.is_complex() or rows.is_meta:
        raise InputError(
            problem=f"{holder} is sparse, quantized, complex or without values", remedy="save a dense tensor of numbers"
        )
    if rows.untyped_storage().nbytes() < rows.numel() * rows.element_size():
        raise FileError(holder, "repeats values that are stored once", "save it after .contiguous()")
    return rows


def _open_column(values: Any, name: str) -> Column:
    """A tensor or list of factor values."""
    torch = optional.load("torch", "PyTorch", "torch", "reading .pt files")
    if torch.is_tensor(values):
        if values.ndim != 1 or values.is_complex() or values.layout is not torch.strided:
            raise InputError(
                problem=f"{name} has shape {tuple(values.shape)}", remedy="a factor needs one plain value per row"
            )
        values = values.detach()
    elif not isinstance(values, list | tuple):
        raise InputError(
            problem=f"{name} is {type(values).__name__}",
            remedy="a factor needs a tensor or a list with one value per row",
        )
    return Column(len(values), lambda start, stop: factors.as_column(_as_plain(values[start:stop]), name))


def _as_plain(values: Any) -> Any:
    """Values of a type that NumPy knows, or a list as it is."""
    if isinstance(values, list | tuple):
        return values
    return _as_numpy(values)


def _as_numpy(values: Any) -> Any:
    try:
        return values.detach().numpy()
    except TypeError:  # bfloat16 and narrower
        return values.detach().float().numpy()


def _read_chunks(path: str, name: str | None, by: tuple[str, ...], start: int, stop: int, size: int) -> Iterator[Chunk]:
    with translate_errors(path, FILE_KIND):
        content = _load(path)
        rows = _check_tensor(content if name is None else content[name], path)
        columns = {factor: _open_column(content[factor], factor) for factor in by}
        for first in range(start, stop, size):
            last = min(first + size, stop)
            yield Chunk(_as_numpy(rows[first:last]), read_keys(columns, first, last), first)
