"""Everything that crossfusion raises or warns with.

Each message is one sentence that names the argument, what is wrong with it, and the way out.
"""

import errno
import sys
import warnings
from contextlib import suppress

SHORTAGES = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
SHORTAGE_TEXTS = (
    "Cannot allocate memory",
    "Resource temporarily unavailable",
    "start new thread",
    "Too many open files",
    "out of memory",
)
RAN_SHORT = "cannot be read: too little memory, threads or open files are left for it, or it is damaged"


def escape_unprintable(text: str) -> str:
    r"""A text in one line that any terminal can print, whatever names of files and columns are in it.

    >>> print(printable("a\udcff\n\x1b"), printable("\ud800é"))
    a\xff\n\x1b \ud800é
    """
    with suppress(UnicodeEncodeError):  # names of files may be no text; halves of a character are escaped below
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def first_line(problem: BaseException) -> str:
    r"""First line of what an error says, or else its kind.

    >>> first_line(ValueError("no number\n at all")), first_line(KeyError())
    ('no number', 'KeyError')
    """
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)


def ran_short(problem: BaseException) -> bool:
    """Whether something ran out, so that what went wrong need not be the fault of a file."""
    if isinstance(problem, MemoryError) or getattr(problem, "errno", None) in SHORTAGES:
        return True
    return any(text in str(problem) for text in SHORTAGE_TEXTS)  # some libraries pass on no more than this


class CrossfusionError(Exception):
    """Base class of all errors raised on purpose by crossfusion."""

    def __str__(self) -> str:
        """The message."""
        return escape_unprintable(super().__str__())


class InputError(CrossfusionError, ValueError):
    """An argument that cannot be used as it is."""


class NonFiniteError(InputError):
    """Rows that hold NaN or infinite values."""


class FileError(CrossfusionError, ValueError):
    """A file that is missing, damaged, or not what it was taken for."""


class EngineError(CrossfusionError, RuntimeError):
    """Workers of a cluster that were lost, or that did not do all of the work: there is no result."""


class MissingDependencyError(CrossfusionError, ImportError):
    """An optional library that is not installed.

    Parameters
    ----------
    library : str
        The library that could not be imported.
    extra : str or None
        The extra of crossfusion that installs it; None if none does, because of its licence.
    purpose : str
        What it is needed for.
    """

    def __init__(self, library: str, extra: str | None, purpose: str) -> None:
        package = library if extra is None else f"'crossfusion[{extra}]'"
        super().__init__(f"{purpose} needs {library}, which is not installed: pip install {package}")
        self._parts = library, extra, purpose

    def __reduce__(self) -> tuple[type["MissingDependencyError"], tuple[str, str | None, str]]:
        return type(self), self._parts  # so that a worker process can pass it on


class CrossfusionWarning(UserWarning):
    """A result that is right but easily misread."""


def warn(message: str) -> None:
    """Warn on the line outside of crossfusion that led here, however deep it was found out."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(escape_unprintable(message), CrossfusionWarning, stacklevel=level)
