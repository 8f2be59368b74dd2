"""The command `crossfusion`. Exit codes: 0, 1 for an alarm, 2 for bad input, with one line on what to do."""

import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import click

from crossfusion._base import CrossfusionError, CrossfusionWarning, escape_unprintable, ran_short
from crossfusion.cli.wording import find_command, make_wording  # while files can still be opened

ARGUMENTS = "crossfusion.arguments"  # where a context keeps what was typed
__all__ = ["main", "run"]
NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())  # newer versions of click call this an error
NO_MEMORY = "there is not enough memory for this: summarize to fewer groups, or select some"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        What follows the program's name; by default what the shell passed.
    """
    run(None, "crossfusion", arguments)


def run(group: click.Group | None, name: str, arguments: list[str] | None = None) -> None:
    """Run a group of commands, by default those of `crossfusion`, and exit.

    Parameters
    ----------
    group : click.Group or None
        The commands.
    name : str
        What the program is called.
    arguments : list of str, optional
        What follows the program's name; by default what the shell passed.
    """
    reserve = []
    try:
        reserve.append(bytearray(2**20))  # given back where memory ends, so that this can be said
        warnings.showwarning = _make_warning_handler(group, arguments)
        warnings.simplefilter("always", CrossfusionWarning)
        sys.unraisablehook = _show_unraisable
        _make_printable()
        (group or _commands()).main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as problem:
        if isinstance(problem, NO_COMMAND):
            print(problem.format_message())
            sys.exit(2)
        name = problem.ctx.command_path if problem.ctx is not None else "crossfusion"
        fail(f"{problem.format_message()} See '{name} --help'.")
    except click.ClickException as problem:
        fail(problem.format_message())
    except CrossfusionError as problem:
        fail(_render_message(problem, group, arguments))
    except (KeyboardInterrupt, click.Abort):
        _end_interrupted()
    except (MemoryError, SystemError):  # of which Python itself raises the second where memory ends
        reserve.clear()
        fail(NO_MEMORY)
    except RuntimeError as problem:
        reserve.clear()
        if not ran_short(problem):
            raise
        fail(NO_MEMORY)
    except ImportError as problem:
        reserve.clear()
        if isinstance(problem.__cause__, KeyboardInterrupt):  # compiled modules turn it into this while they load
            _end_interrupted()
        fail(f"a library cannot be loaded ({problem}): there is too little memory, or it must be installed again")
    except BrokenPipeError:  # the reader, such as head, has seen enough
        end_output()
        sys.exit(0)
    except OSError as problem:
        sys.stdout = io.StringIO()
        fail(f"{problem.strerror or problem}: check the space and rights where this writes")


def _make_printable() -> None:
    """Let any text be printed in any encoding, and nothing where standard error is closed."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        fail("standard output is closed: leave it open")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def end_output() -> None:
    """Print nothing more, nor at exit what could not be printed before."""
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()


def fail(message: str, code: int = 2) -> None:
    """Print one line to standard error and exit."""
    print(f"crossfusion: {escape_unprintable(' '.join(message.split()))}", file=sys.stderr)
    sys.exit(code)


def _end_interrupted() -> None:
    """Say so and exit at once: threads of Dask, which cannot be stopped, would be waited for."""
    try:
        fail("interrupted; no partial files are left behind", code=130)
    finally:
        sys.stderr.flush()
        os._exit(130)


def _show_unraisable(raised: "sys.UnraisableHookArgs") -> None:
    """What a library had to ignore: for want of memory, of which the error that follows tells, or an interruption."""
    if issubclass(raised.exc_type, KeyboardInterrupt):
        once_more = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))  # where it can be raised
        once_more.daemon = True
        once_more.start()
    elif not issubclass(raised.exc_type, MemoryError):
        sys.__unraisablehook__(raised)


def _commands() -> click.Group:
    from crossfusion.cli.commands import cli

    return cli


def _render_message(
    message: CrossfusionError | CrossfusionWarning, group: click.Group | None, typed: list[str] | None
) -> str:
    """A message of the library in the words of the command line."""
    words = sys.argv[1:] if typed is None else typed
    return message.render(make_wording(find_command(group or _commands(), words), words))


def _make_warning_handler(group: click.Group | None, arguments: list[str] | None) -> Callable[..., None]:
    """What Python calls with each warning; the same is said once."""
    shown = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if isinstance(message, CrossfusionWarning) and str(message) not in shown:
            shown.add(str(message))
            print(f"crossfusion: warning: {_render_message(message, group, arguments)}", file=sys.stderr)

    return show
