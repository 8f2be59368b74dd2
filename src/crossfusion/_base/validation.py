"""Checks of arguments that users pass."""

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base.errors import InputError, first_line
from crossfusion._base.feature_names import NamedRows, match_columns
from crossfusion._base.finite import require_finite
from crossfusion._base.lazy_rows import LazyRows
from crossfusion._base.messages import arg
from crossfusion._base.text import count_text

MAX_EXTENT = 1e140  # range of values whose squared distances, and sums of them, float64 can hold
CPU_DEVICES = (1, 3)  # DLPack devices whose memory NumPy can read: CPU and page-locked CPU


def as_rows(values: Any, name: str) -> Any:
    """Return rows × features as a NumPy array, or as CSR if sparse, without a copy where that is possible."""
    _check_no_anndata(values, name)
    values = values.rows if isinstance(values, NamedRows) else values
    sparse = sys.modules.get("scipy.sparse")  # who passes a sparse matrix has imported it already
    if sparse is not None and sparse.issparse(values):
        rows = values.tocsr() if values.ndim == 2 else values
    elif isinstance(values, LazyRows):
        rows = values
    else:
        rows = _as_array(values, name)
        rows = _stack_vectors(rows, name) if rows.dtype == object and rows.ndim == 1 else rows
    numeric = rows.dtype.kind in "fiub" or rows.dtype.name == "bfloat16"
    if not numeric or rows.dtype.itemsize > 8:
        raise InputError(
            name,
            problem=f"must hold numbers of up to 64 bits, not {rows.dtype}",
            remedy="convert it with astype(float)",
        )
    if rows.ndim != 2:
        hint = "reshape(-1, 1) makes one feature of it" if rows.ndim == 1 else "flatten the features of each row"
        raise InputError(
            name, problem=f"must be two-dimensional, rows × features, but has shape {rows.shape}", remedy=hint
        )
    if rows.shape[1] == 0:
        raise InputError(
            name, problem=f"has rows without features, shape {rows.shape}", remedy="pass at least one feature"
        )
    return rows


def _check_no_anndata(values: Any, name: str) -> None:
    """Reject an AnnData, which NumPy would walk cell by cell; who passes one has imported its library."""
    library = sys.modules.get("anndata")
    if library is not None and isinstance(values, library.AnnData):
        raise InputError(
            name,
            problem="is an AnnData, which holds several matrices",
            remedy="pass one, such as adata.obsm['X_pca'] or adata.X, or call crossfusion.anndata.cfd",
        )


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(
            name,
            problem="is a masked array with masked entries",
            remedy=f"use filled(numpy.nan) and {arg('nan', 'drop')}",
        )
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # without the habits of subclasses
    try:
        device = values.__dlpack_device__()[0] if hasattr(values, "__dlpack_device__") else CPU_DEVICES[0]
        if device in CPU_DEVICES:
            return _view_array(values.detach() if hasattr(values, "detach") else values)
    except (TypeError, ValueError, RuntimeError, BufferError) as problem:
        said = first_line(problem)
        raise InputError(
            name, problem=f"cannot be read as an array ({said})", remedy="pass rows × features"
        ) from problem
    raise InputError(
        name, problem="lives on an accelerator", remedy="move it to main memory first, with .cpu() or device_get"
    )


def _stack_vectors(vectors: NDArray[Any], name: str) -> NDArray[Any]:
    """Stack a column of vectors, as a pandas Series holds them; anything else is returned as it is."""
    filled = np.array([_is_vector(vector) for vector in vectors], bool)
    if not filled.any():
        return vectors
    if not filled.all():
        problem = f"has no vector in {np.sum(~filled):,} of {len(filled):,} rows, first in row {filled.argmin()}"
        raise InputError(name, problem=problem, remedy="leave those rows out, with their labels")
    try:
        return np.array(list(vectors))
    except ValueError as problem:
        raise InputError(
            name, problem="holds vectors of unequal length", remedy="pass embeddings of one model"
        ) from problem


def _is_vector(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) and getattr(value, "ndim", 1) > 0


def _view_array(values: Any) -> NDArray[Any]:
    if hasattr(values, "__dlpack__") and not any(
        hasattr(values, name) for name in ("__array__", "__array_interface__")
    ):
        return np.from_dlpack(values)
    try:
        return np.asarray(values)
    except TypeError:
        if hasattr(values, "float"):  # a tensor of a type that NumPy does not know, such as bfloat16
            return np.asarray(values.float())
        raise


def check_no_labels(b: Any, rows: int) -> None:
    """Reject labels passed in place of the second array, with a message that says so."""
    listed = isinstance(b, list | tuple) and all(map(np.isscalar, b))
    flat = getattr(b, "ndim", 2) == 1 and not any(map(_is_vector, islice(b, 1)))
    if (listed or flat) and len(b) == rows > 0:
        raise InputError(
            "b", problem="has one value for each row of a, as labels do", remedy="pass them by name, cfd(x, labels=...)"
        )


def as_row_pair(a: Any, b: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Convert two arrays of finite rows with the same features to C-ordered float64."""
    rows = {"a": as_rows(a, "a"), "b": as_rows(b, "b")}
    check_same_dim({name: values.shape[1] for name, values in rows.items()})
    rows["b"] = match_columns(a, b, rows["b"])
    for name, values in rows.items():
        if not isinstance(values, np.ndarray):
            raise InputError(
                name, problem="is sparse, which only the distances called cfd take", remedy=f"pass {name}.toarray()"
            )
        check_some_rows(values.shape[0], name)
    arrays = np.ascontiguousarray(rows["a"], np.float64), np.ascontiguousarray(rows["b"], np.float64)
    low, high = (float(extreme(list(map(extreme, arrays)))) for extreme in (np.min, np.max))  # NaN if any value is
    if not np.isfinite([low, high]).all():
        for name, values in rows.items():
            require_finite(values, name, "raise", f"leave those rows out, {name}[np.isfinite({name}).all(axis=1)]")
    _check_squarable(high - low)
    return arrays


def _check_squarable(extent: float) -> None:
    """Reject rows whose squared distances overflow or underflow float64."""
    if extent > MAX_EXTENT or 0 < extent < 1 / MAX_EXTENT:
        way = "down" if extent > 1 else "up"
        raise InputError(
            problem=f"a and b extend over {extent:.0e}, so that squared distances leave the range of float64",
            remedy=f"scale both {way}",
        )


def check_same_dim(dims: dict[str, int]) -> None:
    """Reject different numbers of features."""
    if len(set(dims.values())) > 1:
        said = ", ".join(f"{name} has {dim}" for name, dim in dims.items())
        raise InputError(
            problem=f"the numbers of features differ ({said})", remedy="compare embeddings of the same model"
        )


def check_same_factors(names: Mapping[str, Sequence[str]]) -> None:
    """Reject summaries by different factors; the order does not matter."""
    if len({frozenset(factors) for factors in names.values()}) > 1:
        said = ", ".join(f"{name} has {' and '.join(factors)}" for name, factors in names.items())
        raise InputError(
            problem=f"the factors differ ({said})", remedy="summarize by the same ones, or roll up to them"
        )


def check_same_tags(tags: Mapping[str, Mapping[str, str]]) -> None:
    """Reject summaries with different tags."""
    for tag in sorted({tag for entries in tags.values() for tag in entries}):
        values = {name: entries.get(tag) for name, entries in tags.items()}
        if len(set(values.values())) > 1:
            said = ", ".join(f"{name} has {'none' if value is None else repr(value)}" for name, value in values.items())
            raise InputError(
                problem=f"the tag {tag!r} differs ({said})", remedy="add up only rows that were made in the same way"
            )


def check_same_lens(lenses: Mapping[str, str | None]) -> None:
    """Reject summaries of rows to which different maps were applied."""
    if len(set(lenses.values())) > 1:
        said = ", ".join(f"{name} has {lens or 'none'}" for name, lens in lenses.items())
        raise InputError(problem=f"the lenses differ ({said})", remedy="apply the same one to all rows")


def check_some_rows(count: float, name: str) -> None:
    """Reject a group without rows."""
    if not count > 0:
        raise InputError(name, problem="has no rows", remedy="a distance needs at least one row in each group")


def check_option(value: Any, allowed: Sequence[str], name: str) -> None:
    """Reject a value that is not one of the options."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(name, value, "is not known", f"choose {' or '.join(map(repr, allowed))}")


def is_real(value: Any) -> bool:
    """Return whether a value is a Python or NumPy number; booleans are not."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_fraction(value: Any, name: str, below: float = 0.5) -> None:
    """Reject a value that is not a share from 0 up to a limit."""
    if not is_real(value) or not 0 <= value < below:
        raise InputError(name, value, f"must be a share from 0 up to, but not including, {below:g}")


def check_level(value: Any, *, needed: bool = False) -> None:
    """Reject an invalid confidence level; None means no interval, unless one is needed."""
    if (value is not None or needed) and not (is_real(value) and 0.5 <= value <= 1 - 1e-9):
        raise InputError(
            "level", value, "must be a confidence level from 0.5 up to, but not including, 1, such as 0.95"
        )


def check_rate(value: Any, name: str) -> None:
    """Reject an invalid rate of false alarms; None means no alarm."""
    if value is not None and not (is_real(value) and 1e-6 <= value <= 0.5):
        raise InputError(
            name,
            value,
            f"must be a rate of false alarms from 0.000001 to 0.5, such as 0.01, or {arg(name, None)} for no alarm",
        )


def check_positive(value: Any, name: str) -> None:
    """Reject a value that is not a finite number above zero."""
    too_large = isinstance(value, int) and value > sys.float_info.max
    if not is_real(value) or too_large or not 0 < value < np.inf:
        raise InputError(name, value, "must be a finite number above 0")


def check_whole(value: Any, name: str, least: int = 1) -> None:
    """Reject a value that is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(name, value, f"must be a whole number, {least} or more")


def check_seed(value: Any, below: float = np.inf) -> None:
    """Reject an invalid seed; scikit-learn accepts seeds below 2³² only."""
    check_whole(value, "seed", least=0)
    if value >= below:
        raise InputError("seed", value, f"must be below {below:,}, as scikit-learn has it")


def check_wait(value: Any) -> None:
    """Reject a value that is not a number of seconds."""
    if not is_real(value) or not 0 <= value < np.inf:
        raise InputError("wait", value, "must be a number of seconds, 0 or more")


def check_length(length: int, expected: int, name: str, of: str) -> None:
    """Reject labels that do not match the rows in number."""
    if length != expected:
        raise InputError(
            name,
            problem=f"has {length} {'entry' if length == 1 else 'entries'} for {count_text(expected, 'row')} of {of}",
            remedy="pass one entry per row",
        )


def check_known(wanted: Iterable[str], known: Collection[str], what: str, holder: str) -> None:
    """Reject unknown names, and suggest the closest one."""
    for name in wanted:
        if not isinstance(name, Hashable) or name not in known:
            near = get_close_matches(str(name), list(known), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known)) or 'none'}"
            raise InputError(problem=f"{holder} has no {what} {name!r}", remedy=hint)


def check_once(wanted: Iterable[str], names: Sequence[str], holder: str) -> None:
    """Reject column names that occur twice."""
    times = Counter(names)
    for name in wanted:
        if times[name] > 1:
            raise InputError(problem=f"{holder} has {times[name]} columns called {name!r}", remedy="rename them apart")


def as_names(
    value: str | Iterable[Any] | None, name: str, what: str = "factor", *, needed: bool = False
) -> tuple[str, ...]:
    """Convert one name or several to a tuple; reject duplicates, and no name if one is needed."""
    one = f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
    several = isinstance(value, Iterable) and not isinstance(value, str)
    names: tuple[Any, ...] = () if value is None else tuple(value) if several else (value,)
    if not all(isinstance(entry, str) for entry in names):
        raise InputError(name, value, f"must be the name of {one}, or a list of such names")
    if len(set(names)) < len(names):
        raise InputError(name, value, f"names {one} twice", "name each once")
    if needed and not names:
        raise InputError(name, problem="is empty", remedy=f"name at least one {what}")
    if "" in names:
        raise InputError(name, value, "has an empty name", f"name {one}")
    return names


def as_tags(value: Any) -> dict[str, str]:
    """Convert tags to a dict of text to text, sorted by name."""
    if not isinstance(value, Mapping) or not all(isinstance(entry, str) for pair in value.items() for entry in pair):
        raise InputError("tags", value, "must map text to text, such as {'encoder': 'virchow'}")
    if not all(name.strip() for name in value):
        raise InputError("tags", value, "has a tag without a name", "name it, such as {'encoder': 'virchow'}")
    return dict(sorted(value.items()))


def check_tags(tags: Mapping[str, str], by: Iterable[str]) -> None:
    """Reject a tag with the name of a factor."""
    for name in by:
        if name in tags:
            raise InputError("tags", problem=f"has {name!r}, which is a factor too", remedy="rename the tag")


def as_frequency(values: Any, rows: int) -> NDArray[np.float64]:
    """Convert frequencies of rows to an array, and check them."""
    try:
        frequency = np.asarray(values, np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(
            "frequency", problem=f"cannot be read as numbers ({problem})", remedy="pass one number per row"
        ) from problem
    if frequency.shape != (rows,):
        raise InputError(
            "frequency",
            problem=f"has shape {frequency.shape} for {count_text(rows, 'row')}",
            remedy="pass one number per row",
        )
    if not np.all(np.isfinite(frequency)) or np.any(frequency < 0):
        raise InputError("frequency", problem="must be finite and not negative", remedy="0 leaves a row out")
    return frequency
