"""The only place that checks what users pass in."""

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion.errors import InputError, NonFiniteError, warn
from crossfusion.stretched import Stretched

BLOCK = 8 * 2**20  # bytes looked at in one go when non-finite values are searched for
NAN = ("raise", "drop")  # what can be done about rows that are not finite
DROP = "leave those rows out with nan='drop'"  # the usual way out of rows that are not finite
LARGEST = 1e140  # extent of two clouds whose squared distances, and sums of them, float64 can hold
CPU = (1, 3)  # DLPack devices whose memory NumPy can read: CPU and page-locked CPU


def as_rows(values: Any, name: str) -> Any:
    """Return rows × features as a NumPy array, or as CSR if sparse, without a copy where that is possible."""
    sparse = sys.modules.get("scipy.sparse")  # who passes a sparse matrix has imported it already
    if sparse is not None and sparse.issparse(values):
        rows = values.tocsr() if values.ndim == 2 else values
    elif isinstance(values, Stretched):
        rows = values
    else:
        rows = _as_array(values, name)
    numeric = rows.dtype.kind in "fiub" or rows.dtype.name == "bfloat16"
    if not numeric or rows.dtype.itemsize > 8:
        raise InputError(f"{name} must hold numbers of up to 64 bits, not {rows.dtype}: convert it with astype(float)")
    if rows.ndim != 2:
        hint = "reshape(-1, 1) makes one feature of it" if rows.ndim == 1 else "flatten the features of each row"
        raise InputError(f"{name} must be two-dimensional, rows × features, but has shape {rows.shape}: {hint}")
    if rows.shape[1] == 0:
        raise InputError(f"{name} has rows without features, shape {rows.shape}: pass at least one feature")
    return rows


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InputError(f"{name} is a masked array with masked entries: use filled(numpy.nan) and nan='drop'")
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # without the habits of subclasses
    try:
        device = values.__dlpack_device__()[0] if hasattr(values, "__dlpack_device__") else CPU[0]
        if device in CPU:
            return _view(values.detach() if hasattr(values, "detach") else values)
    except (TypeError, ValueError, RuntimeError, BufferError) as problem:
        said = str(problem).splitlines()[0]
        raise InputError(f"{name} cannot be read as an array ({said}): pass rows × features") from problem
    raise InputError(f"{name} lives on an accelerator: move it to main memory first, with .cpu() or device_get")


def _view(values: Any) -> NDArray[Any]:
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


def as_clouds(a: Any, b: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two clouds of finite rows of the same features, as C-ordered float64."""
    rows = {"a": as_rows(a, "a"), "b": as_rows(b, "b")}
    check_same_dim({name: values.shape[1] for name, values in rows.items()})
    for name, values in rows.items():
        if not isinstance(values, np.ndarray):
            raise InputError(f"{name} is sparse, which only the distances called cfd take: pass {name}.toarray()")
        check_some_rows(values.shape[0], name)
    clouds = np.ascontiguousarray(rows["a"], np.float64), np.ascontiguousarray(rows["b"], np.float64)
    low, high = (float(extreme(list(map(extreme, clouds)))) for extreme in (np.min, np.max))  # NaN if any value is
    if not np.isfinite([low, high]).all():
        for name, values in rows.items():
            finite_only(values, name, "raise", f"leave those rows out, {name}[np.isfinite({name}).all(axis=1)]")
    _check_squarable(high - low)
    return clouds


def _check_squarable(extent: float) -> None:
    """Refuse clouds whose squared distances leave the range of float64 at either end."""
    if extent > LARGEST or 0 < extent < 1 / LARGEST:
        way = "down" if extent > 1 else "up"
        raise InputError(
            f"a and b extend over {extent:.0e}, so that squared distances leave the range of float64: scale both {way}"
        )


def finite_only(rows: NDArray[Any], name: str, nan: str, way_out: str = DROP) -> NDArray[Any]:
    """Rows that are finite, if the others may be left out."""
    finite = finite_rows(rows)
    check = FiniteCheck(name)
    check.see(rows, None if finite.all() else finite)
    return rows[finite] if check.settle(nan, way_out) else rows


def check_same_dim(dims: dict[str, int]) -> None:
    """Refuse rows of different numbers of features."""
    if len(set(dims.values())) > 1:
        said = ", ".join(f"{name} has {dim}" for name, dim in dims.items())
        raise InputError(f"the numbers of features differ ({said}): compare embeddings of the same model")


def check_same_factors(names: Mapping[str, Sequence[str]]) -> None:
    """Refuse summaries by different factors; their order does not matter."""
    if len({frozenset(factors) for factors in names.values()}) > 1:
        said = ", ".join(f"{name} has {' and '.join(factors)}" for name, factors in names.items())
        raise InputError(f"the factors differ ({said}): summarize by the same ones, or roll up to them")


def check_same_tags(tags: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse summaries of rows that were made in different ways, and say in which."""
    for tag in sorted({tag for entries in tags.values() for tag in entries}):
        values = {name: entries.get(tag) for name, entries in tags.items()}
        if len(set(values.values())) > 1:
            said = ", ".join(f"{name} has {'none' if value is None else repr(value)}" for name, value in values.items())
            raise InputError(f"the tag {tag!r} differs ({said}): add up only rows that were made in the same way")


def check_some_rows(count: float, name: str) -> None:
    """Refuse a group without rows."""
    if not count > 0:
        raise InputError(f"{name} has no rows: a distance needs at least one row in each group")


def check_option(value: Any, allowed: Sequence[str], name: str) -> None:
    """Refuse a value that is none of the named options."""
    if not isinstance(value, str) or value not in allowed:
        raise InputError(f"{name}={value!r} is not an option: choose {' or '.join(map(repr, allowed))}")


def check_fraction(value: float, name: str) -> None:
    """Refuse a share outside [0, 0.5)."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value < 0.5:
        raise InputError(f"{name}={value!r} must be a share from 0 up to, but not including, 0.5")


def check_level(value: Any) -> None:
    """Refuse a confidence level that is none."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (number and 0.5 <= value <= 1 - 1e-9):
        raise InputError(
            f"level={value!r} must be a confidence level from 0.5 up to, but not including, 1, such as 0.95"
        )


def check_rate(value: Any, name: str) -> None:
    """Refuse what is not a rate of errors."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if value is not None and not (number and 1e-6 <= value <= 0.5):
        raise InputError(f"{name}={value!r} must be a rate of false alarms from 0.000001 to 0.5, such as 0.01")


def check_positive(value: Any, name: str) -> None:
    """Refuse what is not a finite number above zero."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    too_large = isinstance(value, int) and value > sys.float_info.max
    if not number or too_large or not 0 < value < np.inf:
        raise InputError(f"{name}={repr(value)[:40]} must be a finite number above 0")


def check_whole(value: Any, name: str, least: int = 1) -> None:
    """Refuse what is not a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r} must be a whole number, {least} or more")


def check_min_count(value: Any) -> None:
    """Refuse what is not a whole number of rows."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InputError(f"min_count={value!r} must be a whole number of rows, 0 or more")


def check_wait(value: Any) -> None:
    """Refuse what is not a number of seconds."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not 0 <= value < np.inf:
        raise InputError(f"wait={value!r} must be a number of seconds, 0 or more")


def check_length(length: int, expected: int, name: str, of: str) -> None:
    """Refuse labels that do not pair with the rows."""
    if length != expected:
        raise InputError(f"{name} has {length} entries for {expected} rows of {of}: pass one entry a row")


def check_known(wanted: Iterable[str], known: Collection[str], what: str, holder: str) -> None:
    """Refuse names that do not exist, and suggest the one that was meant."""
    for name in wanted:
        if not isinstance(name, Hashable) or name not in known:
            near = get_close_matches(str(name), list(known), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, known)) or 'none'}"
            raise InputError(f"{holder} has no {what} {name!r}: {hint}")


def check_once(wanted: Iterable[str], names: Sequence[str], holder: str) -> None:
    """Refuse columns whose name stands for two."""
    times = Counter(names)
    for name in wanted:
        if times[name] > 1:
            raise InputError(f"{holder} has {times[name]} columns called {name!r}: rename them apart")


def as_names(value: str | Sequence[str] | None, name: str) -> tuple[str, ...]:
    """One name or several, as a tuple; the same name twice is refused."""
    several = isinstance(value, Iterable) and not isinstance(value, str)
    names: tuple[Any, ...] = () if value is None else tuple(value) if several else (value,)
    if not all(isinstance(entry, str) for entry in names):
        raise InputError(f"{name}={value!r} must be a factor name or a list of factor names")
    if len(set(names)) < len(names):
        raise InputError(f"{name}={value!r} names a factor twice: name each once")
    return names


def as_tags(value: Any) -> dict[str, str]:
    """Tags as a mapping of text to text, in the order of their names."""
    if not isinstance(value, Mapping) or not all(isinstance(entry, str) for pair in value.items() for entry in pair):
        raise InputError(f"tags={value!r} must map text to text, such as {{'encoder': 'virchow'}}")
    if not all(name.strip() for name in value):
        raise InputError(f"tags={value!r} has a tag without a name: name it, such as {{'encoder': 'virchow'}}")
    return dict(sorted(value.items()))


def as_frequency(values: Any, rows: int) -> NDArray[np.float64]:
    """How often each row counts."""
    try:
        frequency = np.asarray(values, np.float64)
    except (TypeError, ValueError) as problem:
        raise InputError(f"frequency cannot be read as numbers ({problem}): pass one number a row") from problem
    if frequency.shape != (rows,):
        raise InputError(f"frequency has shape {frequency.shape} for {rows} rows: pass one number a row")
    if not np.all(np.isfinite(frequency)) or np.any(frequency < 0):
        raise InputError("frequency must be finite and not negative: 0 leaves a row out")
    return frequency


def row_blocks(rows: Any, size: int = BLOCK) -> Iterable[tuple[int, Any]]:
    """Stretches of rows of a few megabytes each, with the index of their first row."""
    if isinstance(rows, Stretched):
        start = 0
        for stretch in rows:
            yield start, stretch
            start += len(stretch)
        return
    step = max(1, size // (8 * rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        yield start, rows[start : start + step]


def finite_rows(rows: Any) -> NDArray[np.bool_]:
    """Which rows hold only finite values."""
    masks = [
        np.isfinite(block.astype(np.float64, copy=False)).all(axis=1)
        if isinstance(block, np.ndarray)
        else _finite_sparse(block)
        for _, block in row_blocks(rows)
    ]
    return np.concatenate([np.ones(0, bool), *masks])


def _finite_sparse(block: Any) -> NDArray[np.bool_]:
    owner = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    bad = np.bincount(owner[~np.isfinite(block.data)], minlength=block.shape[0])
    return np.asarray(bad == 0)


class FiniteCheck:
    """Counts and locates rows that are not finite, over any number of blocks, and says so once.

    Parameters
    ----------
    name : str
        What the rows are called in messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = self.bad = 0
        self.where = ""

    def see(self, rows: Any, finite: NDArray[np.bool_] | None, first: int = 0) -> None:
        """Take note of rows, of which the first has this index: which of them are finite (None: all)."""
        if finite is not None:
            if not self.bad:
                self.where = self._first(rows, finite, first)
            self.bad += len(finite) - int(finite.sum())
        self.rows += rows.shape[0]

    def _first(self, rows: Any, finite: NDArray[np.bool_], start: int) -> str:
        first = int(np.flatnonzero(~finite)[0])
        if isinstance(rows, Stretched):
            row = rows.row(first)
        else:
            row = rows[first] if isinstance(rows, np.ndarray) else rows[[first]].toarray()[0]
        feature = int(np.flatnonzero(~np.isfinite(row.astype(np.float64)))[0])
        return f"row {start + first}, feature {feature}"

    def settle(self, nan: str, way_out: str = DROP, so_far: bool = False) -> int:
        """Raise, or warn and return the number of rows left out."""
        if self.bad == 0:
            return 0
        rows = f"the first {self.rows}" if so_far else f"{self.rows}"
        found = f"NaN or infinite values in {self.bad} of {rows} rows, the first in {self.where} (from 0)"
        if nan == "raise":
            raise NonFiniteError(f"{self.name} has {found}: mend them, or {way_out}")
        warn(f"{self.name} has {found}: those rows are left out")
        return self.bad
