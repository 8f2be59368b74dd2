"""Batches of a PyTorch `DataLoader`: dictionaries, named tuples, or tuples whose entries are called "0", "1", ...

Who passes a loader has imported PyTorch, so it is looked up among the loaded modules.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from crossfusion._base import InputError, arg, as_names, check_known, check_length, factors
from crossfusion.io.sources import huggingface
from crossfusion.io.sources.chunk import Chunk, Source
from crossfusion.io.sources.rechunk import rechunk

NAME = "the DataLoader"
HOLDER = "a batch of the DataLoader"


def is_loader(source: Any) -> bool:
    """Whether this is a DataLoader, or a data set of PyTorch, of which there should be one."""
    data = sys.modules.get("torch.utils.data")
    known = data is not None and isinstance(source, data.DataLoader | data.Dataset)
    return known and not huggingface.is_dataset(source)  # some of which are data sets of PyTorch too


def from_loader(loader: Any, by: Any, vectors: Any = None) -> Source:
    """Source of one partition; `by`: entries of the batches that are factors, or a mapping from factors to entries."""
    import torch.utils.data as data

    if isinstance(loader, data.Dataset):
        raise InputError(
            problem="a data set of PyTorch gives its rows one by one",
            remedy="pass DataLoader(dataset, batch_size=1024)",
        )
    entries = _name_factors(by)
    wanted = _check_entry(vectors, "vectors") if vectors is not None else None
    if wanted in entries.values():
        raise InputError(
            problem=f"{wanted!r} is in {arg('vectors')} and is a factor too", remedy=f"leave it out of {arg('vectors')}"
        )
    return Source(NAME, [partial(_read_chunks, loader, entries, wanted)], _count_rows(loader), here=True)


def _name_factors(by: Any) -> dict[str, str]:
    """Entry of the batches that holds each factor."""
    if isinstance(by, Mapping):
        named = {name: _check_entry(entry, f"by[{name!r}]") for name, entry in by.items()}
        as_names([*named], "by")
        return named
    return {name: name for name in as_names(by, "by")}


def _check_entry(value: Any, name: str) -> str:
    """Name of an entry; a position stands for its number as text."""
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(
            name, value, "must be the name of one entry of the batches, or its position", "such as 'label' or 1"
        )
    return str(value)


def _count_rows(loader: Any) -> int | None:
    """How many rows there will be, where the loader puts samples together as PyTorch does by itself."""
    from torch.utils.data import BatchSampler, IterableDataset, default_collate

    usual = loader.collate_fn is default_collate and type(loader.batch_sampler) is BatchSampler
    if not usual or isinstance(loader.dataset, IterableDataset) or not hasattr(loader.sampler, "__len__"):
        return None
    return len(loader) * int(loader.batch_size) if loader.drop_last else len(loader.sampler)


def _read_chunks(loader: Any, by: Mapping[str, str], vectors: str | None) -> Iterator[Chunk]:
    """Batches put together to chunks."""
    return rechunk(_read_batches(loader, by, vectors), NAME)


def _read_batches(loader: Any, by: Mapping[str, str], vectors: str | None) -> Iterator[Chunk]:
    import pyarrow as pa

    first = 0
    for batch in loader:
        entries = _name_entries(batch)
        check_known(by.values(), entries, "entry", HOLDER)
        vectors = _find_vectors(entries, by) if vectors is None else vectors
        check_known([vectors], entries, "entry", HOLDER)
        rows = _as_rows(entries[vectors], vectors)
        keys = {name: _as_factor(entries[entry], entry, rows.shape[0]) for name, entry in by.items()}
        if rows.shape[0]:
            yield Chunk(rows, pa.table(keys), first)
        first += rows.shape[0]


def _name_entries(batch: Any) -> dict[str, Any]:
    """Entries of a batch by name, or by position."""
    if isinstance(batch, Mapping):
        return {str(name): value for name, value in batch.items()}
    if hasattr(batch, "_asdict"):
        return dict(batch._asdict())
    if isinstance(batch, list | tuple):
        return {str(position): value for position, value in enumerate(batch)}
    raise InputError(
        problem=f"{HOLDER} is a {type(batch).__name__}, which has no entries to name",
        remedy="let the data set or collate_fn give dictionaries or tuples of vectors and factors",
    )


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _find_vectors(entries: Mapping[str, Any], by: Mapping[str, str]) -> str:
    """The only entry of rows × features."""
    used = set(by.values())
    flat = [name for name, value in entries.items() if _is_array(value) and len(value.shape) == 2 and name not in used]
    if len(flat) != 1:
        number = f"{len(flat)} entries" if flat else "no entry"
        said = f"{number} of rows × features (there are {', '.join(map(repr, flat or entries))})"
        raise InputError(problem=f"{HOLDER} has {said}", remedy=f"name the one with the vectors in {arg('vectors')}")
    return flat[0]


def _as_rows(value: Any, name: str) -> Any:
    """Rows of a batch in main memory, of a type that NumPy knows."""
    if not _is_array(value):
        raise InputError(
            problem=f"entry {name!r} of {HOLDER} is a {type(value).__name__}, not a tensor",
            remedy="stack the vectors in collate_fn, or, of a Hugging Face data set, use with_format('torch')",
        )
    if len(value.shape) != 2:
        raise InputError(
            problem=f"entry {name!r} of {HOLDER} has shape {tuple(value.shape)}",
            remedy="vectors need rows × features, so encode or flatten each sample, and let the loader make batches",
        )
    return _as_numpy(value, name)


def _as_numpy(value: Any, name: str) -> Any:
    """An array in main memory."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    if value.layout is not torch.strided or value.is_complex() or value.is_quantized:
        raise InputError(
            problem=f"entry {name!r} of {HOLDER} is sparse, quantized or complex",
            remedy="give dense tensors of numbers",
        )
    plain = value.detach().cpu()
    try:
        return plain.numpy()
    except TypeError:  # bfloat16 and narrower
        return plain.float().numpy()


def _as_factor(value: Any, name: str, rows: int) -> Any:
    """Values of a factor for the rows of a batch."""
    if _is_array(value):
        if len(value.shape) != 1:
            raise InputError(
                problem=f"entry {name!r} of {HOLDER} has shape {tuple(value.shape)}",
                remedy="a factor needs one plain value per row",
            )
        value = _as_numpy(value, name)
    column = factors.as_column(value, f"entry {name!r} of {HOLDER}")
    check_length(len(column), rows, f"entry {name!r} of {HOLDER}", "its vectors")
    return column
