"""Which label belongs to which row where both come from pandas: by index, and never by position against the index."""

import sys
from typing import Any

from crossfusion._base.errors import InputError

REMEDY = "pass {0}.to_numpy() if it is in the order of the rows"


def align_index(name: str, rows: Any, /, **columns: Any) -> tuple[Any, ...]:
    """Return columns with one entry per row, those with a pandas index in the order of the rows' index.

    Entries go by position unless both sides have an index. Equal indexes change nothing; the same index in another
    order reorders the column. Indexes that do not say which entry belongs to which row are rejected, and so are columns
    whose indexes are the same in different orders beside rows without an index.
    """
    index = _find_index(rows)
    if index is None:
        _check_orders({column: _find_index(values) for column, values in columns.items()})
        return tuple(columns.values())
    return tuple(_align_column(name, index, column, values) for column, values in columns.items())


def _align_column(name: str, index: Any, column: str, values: Any) -> Any:
    """Return a column in the order of the rows' index."""
    own = _find_index(values)
    if own is None or len(own) != len(index) or own.equals(index):
        return values  # a wrong length has a message of its own
    if not (index.is_unique and own.is_unique):
        raise _make_error(column, name, "differs from", "repeats entries, so it cannot be matched")
    order = own.get_indexer(index)
    if (order < 0).any():
        raise _make_error(column, name, "has other entries than")
    return values.iloc[order]


def check_index(name: str, rows: Any, /, **columns: Any) -> None:
    """Reject columns whose pandas index differs from that of the rows, where entries go by position only."""
    index = _find_index(rows)
    for column, values in columns.items():
        own = _find_index(values)
        if index is not None and own is not None and len(own) == len(index) and not own.equals(index):
            raise _make_error(column, name, "differs from")


def _find_index(values: Any) -> Any:
    """Return the index of a pandas object; None for anything else. Who passes one has imported pandas."""
    pandas = sys.modules.get("pandas")
    return values.index if pandas is not None and isinstance(values, pandas.DataFrame | pandas.Series) else None


def _check_orders(indexes: dict[str, Any]) -> None:
    """Reject columns with the same index in different orders: one of them is not in the order of the rows."""
    known = {column: index for column, index in indexes.items() if index is not None and index.is_unique}
    first = next(iter(known), "")
    for column, own in known.items():
        same = len(own) == len(known[first]) and (own.get_indexer(known[first]) >= 0).all()
        if same and not own.equals(known[first]):
            raise _make_error(column, first, "is in another order than")


def _make_error(column: str, holder: str, how: str, more: str = "") -> InputError:
    problem = f"has a pandas index that {how} the index of {holder}{' and ' if more else ''}{more}"
    return InputError(column, problem=problem, remedy=REMEDY.format(column))
