"""Text of errors and warnings in which arguments are marked, so that each interface can name them in its own words."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

_SECRET = os.urandom(8).hex()  # drawn by each process, so that no text of a user can be taken for a mark
_START, _NEXT, _END = (f"{sign}{_SECRET}" for sign in "\ue000\ue001\ue002")
MAX_VALUE_LENGTH = 400  # characters of a value that are shown


class Argument(NamedTuple):
    """An argument that a message names, with its value as Python writes it where the message shows one."""

    name: str
    value: str | None = None

    @property
    def python(self) -> str:
        """How Python writes it."""
        return self.name if self.value is None else f"{self.name}={self.value}"

    def __str__(self) -> str:
        """The mark that stands for it in the text of a message."""
        return _mark(self)


class Spelling(NamedTuple):
    """Words that differ between Python and the command line."""

    python: str
    typed: str

    def __str__(self) -> str:
        """The mark that stands for them in the text of a message."""
        return _mark(self)


Part = str | Argument | Spelling
NO_VALUE: Any = type("NoValue", (), {"__repr__": lambda _: "NO_VALUE", "__reduce__": lambda _: "NO_VALUE"})()
_KINDS = {"=": Argument, "|": Spelling}


def arg(name: str, value: Any = NO_VALUE) -> Argument:
    """Mark an argument in an f-string that becomes part of a message.

    >>> from crossfusion._base.errors import InputError
    >>> str(InputError("level", 0.9, "needs units", f"pass {arg('units')}, or {arg('level', None)}"))
    'level=0.9 needs units: pass units, or level=None'
    """
    return Argument(name, None if value is NO_VALUE else show_value(value))


def show_value(value: Any) -> str:
    """A value as Python writes it, cut where it is too long to read; NumPy scalars as plain numbers.

    >>> show_value("a"), len(show_value([0] * 9999))
    ("'a'", 403)
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    try:
        text = repr(value)
    except Exception:  # whatever the __repr__ of a user's object raises: the message matters more
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}..."


def parse_marks(text: str) -> tuple[Part, ...]:
    """Split a text at its marks into plain text, arguments and spellings."""
    first, *marked = text.split(_START)
    parts: list[Part] = [first]
    for each in marked:
        mark, _, after = each.partition(_END)
        parts += [_KINDS[mark[0]](*mark[1:].split(_NEXT)), after]
    return tuple(part for part in parts if part)


def render_parts(parts: Sequence[Part], show: Callable[[Argument | Spelling], str] | None = None) -> str:
    """Text of the parts in the words of Python, or in those that `show` gives."""
    show = show or (lambda part: part.python)
    return escape_unprintable("".join(part if isinstance(part, str) else show(part) for part in parts))


def escape_unprintable(text: str) -> str:
    r"""A text in one line that any terminal can print, whatever names of files and columns are in it.

    >>> print(escape_unprintable("a\udcff\n\x1b"), escape_unprintable("\ud800é"))
    a\xff\n\x1b \ud800é
    """
    with suppress(UnicodeEncodeError):  # names of files may not be text; halves of a character are escaped below
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _mark(part: Argument | Spelling) -> str:
    kind = "=" if isinstance(part, Argument) else "|"
    return f"{_START}{kind}{_NEXT.join(field for field in part if field is not None)}{_END}"
