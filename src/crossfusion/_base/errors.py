"""Everything that crossfusion raises or warns with.

Each is made of the argument, its value, what is wrong, and the way out; Python and the command line put the same object
in their own words.
"""

import errno
import json
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any

from crossfusion._base.messages import NO_VALUE, Argument, Part, Spelling, arg, parse_marks, render_parts, show_value

SHORTAGES = (errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
SHORTAGE_TEXTS = (
    "Cannot allocate memory",
    "Resource temporarily unavailable",
    "start new thread",
    "Too many open files",
    "out of memory",
)
RAN_SHORT = "cannot be read: too little memory, threads or open files are left for it, or it is damaged"


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


class Message:
    """What an error or a warning says, as an object that each interface puts in its own words."""

    argument: str | None = None
    value: Any = None
    _parts: tuple[tuple[Part, ...], ...] = ((), (), ())  # the subject, the problem, the remedy

    def _say(self, subject: Argument | str | None, problem: str, remedy: str) -> None:
        if not problem:
            raise TypeError(f"{type(self).__name__} needs a problem: say what is wrong")
        first: tuple[Part, ...] = (subject,) if isinstance(subject, Argument) else parse_marks(subject or "")
        self._parts = first, parse_marks(problem), parse_marks(remedy)

    @property
    def problem(self) -> str:
        """What is wrong, with the argument or in general."""
        return render_parts(self._parts[1])

    @property
    def remedy(self) -> str:
        """How to fix it; empty if the problem already says so."""
        return render_parts(self._parts[2])

    @property
    def sentence(self) -> tuple[Part, ...]:
        """The whole message, as a list of texts and arguments."""
        subject, problem, remedy = self._parts
        return (*subject, *((" ",) if subject else ()), *problem, *((": ",) if remedy else ()), *remedy)

    @property
    def marked(self) -> str:
        """The whole message, to be quoted in another message, which renders the arguments."""
        return "".join(map(str, self.sentence))

    def render(self, show: Callable[[Argument | Spelling], str] | None = None) -> str:
        """Render the message as one line.

        Parameters
        ----------
        show : callable, optional
            Renders an Argument or a Spelling as text; by default as Python code.

        Returns
        -------
        str
            Such as "level=2 must be ...: remedy".
        """
        return render_parts(self.sentence, show)

    def __str__(self) -> str:
        return self.render()


class CrossfusionError(Message, Exception):
    """Base class of all errors raised on purpose by crossfusion.

    Parameters
    ----------
    argument : str or None
        The argument at fault, or the name of the object that holds the values; None if there is no single one.
    value : object
        The value that was passed, if it helps to understand the problem.
    problem : str
        What is wrong, following the argument and its value: "must be 1 or more".
    remedy : str
        How to fix it: "pass a whole number".
    """

    def __init__(self, argument: str | None = None, value: Any = NO_VALUE, problem: str = "", remedy: str = "") -> None:
        self.argument, self.value = argument, None if value is NO_VALUE else value
        self._say(None if argument is None else arg(argument, value), problem, remedy)
        super().__init__(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        state = dict(self.__dict__)
        try:
            pickle.dumps(self.value)
        except Exception:  # a client or a model, say, of which another process can show no more than this
            state["value"] = show_value(self.value)
        return _restore, (type(self), *self.args), state


def _restore(kind: type[CrossfusionError], *args: Any) -> CrossfusionError:
    return kind.__new__(kind, *args)


class InputError(CrossfusionError, ValueError):
    """An argument is invalid.

    The attributes `argument`, `value`, `problem` and `remedy` hold the parts of the message.

    >>> error = InputError("level", 2, "must be below 1", "pass 0.95")
    >>> print(error, "|", error.argument, error.remedy)
    level=2 must be below 1: pass 0.95 | level pass 0.95
    """


class NonFiniteError(InputError):
    """Rows contain NaN or infinite values."""


class FileError(CrossfusionError, ValueError):
    """A file is missing, damaged, or of an unexpected kind.

    Parameters
    ----------
    path : str, path-like or None
        The file or folder, or a location in it; None if there is no single one.
    problem : str
        What is wrong, following the path: "does not exist".
    remedy : str
        What to do about it.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, problem: str = "", remedy: str = "") -> None:
        super().__init__(problem=problem, remedy=remedy)
        self.path = None if path is None else os.fspath(path)
        self._say(self.path, problem, remedy)
        self.args = (str(self),)


class EngineError(CrossfusionError, RuntimeError):
    """A cluster lost workers or did not complete the work, so there is no result.

    Parameters
    ----------
    problem : str
        What happened.
    remedy : str
        What to do about it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem=problem, remedy=remedy)


class MissingDependencyError(CrossfusionError, ImportError):
    """An optional library is not installed.

    Parameters
    ----------
    library : str
        The library that could not be imported.
    extra : str or None
        The extra of crossfusion that installs it; None if none does, because of its license.
    purpose : str
        What it is needed for.
    """

    def __init__(self, library: str, extra: str | None, purpose: str) -> None:
        package = library if extra is None else f"'crossfusion[{extra}]'"
        super().__init__(problem=f"{purpose} needs {library}, which is not installed", remedy=f"pip install {package}")


def dump_error(error: CrossfusionError) -> str:
    """An error as JSON, for a process that should not unpickle anything; its value becomes text."""
    facts = error.__dict__ | {"value": None if error.value is None else show_value(error.value)}
    return json.dumps([type(error).__name__, facts | {"_parts": [list(map(_as_list, each)) for each in error._parts]}])


def load_error(text: str) -> CrossfusionError:
    """The error that `dump_error` wrote."""
    name, facts = json.loads(text)
    kinds = (InputError, NonFiniteError, FileError, EngineError, MissingDependencyError)
    kind = {each.__name__: each for each in kinds}.get(name, CrossfusionError)
    error = kind.__new__(kind)
    error.__dict__.update(facts, _parts=tuple(tuple(map(_as_part, each)) for each in facts["_parts"]))
    error.args = (str(error),)
    return error


def _as_list(part: Part) -> str | list[str | None]:
    return part if isinstance(part, str) else [type(part).__name__, *part]


def _as_part(entry: Any) -> Part:
    return entry if isinstance(entry, str) else {"Argument": Argument, "Spelling": Spelling}[entry[0]](*entry[1:])


class CrossfusionWarning(Message, UserWarning):
    """A result that is correct but easily misread.

    Parameters
    ----------
    problem : str
        What is easily misread.
    remedy : str
        What to do about it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        self._say(None, problem, remedy)
        super().__init__(str(self))


def warn(problem: str, remedy: str = "") -> None:
    """Warn on the line outside of crossfusion that led here, however deep it was found out."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        level, frame = level + 1, frame.f_back
    warnings.warn(CrossfusionWarning(problem, remedy), stacklevel=level)
