"""The command `crossfusion`. Exit codes: 0, 1 for an alarm, 2 for bad input, with one line on what to do."""

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import click

from crossfusion.errors import CrossfusionError, CrossfusionWarning

NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())  # newer versions of click call this an error


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit.

    Parameters
    ----------
    arguments : list of str, optional
        What follows the program's name; by default what the shell passed.
    """
    warnings.showwarning = _shows_warnings(arguments)
    warnings.simplefilter("always", CrossfusionWarning)
    if sys.stdout is None:
        fail("standard output is closed: leave it open")
    try:
        from crossfusion.cli.commands import cli

        cli.main(arguments, prog_name="crossfusion", standalone_mode=False)
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
        fail(_said(str(problem), arguments))
    except (KeyboardInterrupt, click.Abort):
        _interrupted()
    except MemoryError:
        fail("there is not enough memory for this: summarize to fewer groups, or select some")
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
        sys.exit(0)
    except OSError as problem:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what cannot be written must not be tried again at exit
        fail(f"{problem.strerror or problem}: check the space and rights where this writes")


def fail(message: str, code: int = 2) -> None:
    """Print one line to standard error and exit.

    Parameters
    ----------
    message : str
        What is wrong and the way out.
    code : int
        Exit code.
    """
    line = " ".join(message.split()).encode("utf-8", "backslashreplace").decode()  # names of files may be no text
    print(f"crossfusion: {line}", file=sys.stderr)
    sys.exit(code)


def _interrupted() -> None:
    """Say so and exit at once: threads of Dask, which cannot be stopped, would be waited for."""
    try:
        fail("interrupted; files are whole or not there", code=130)
    finally:
        sys.stderr.flush()
        os._exit(130)


def _said(message: str, arguments: list[str] | None) -> str:
    """A message of the library in the words of the command line."""
    from crossfusion.cli.commands import cli
    from crossfusion.cli.wording import as_options, command_of

    words = sys.argv[1:] if arguments is None else arguments
    return as_options(message, command_of(cli, words), words)


def _shows_warnings(arguments: list[str] | None) -> Callable[..., None]:
    """What Python calls with each warning; the same is said once."""
    shown = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, CrossfusionWarning) and str(message) not in shown:
            shown.add(str(message))
            print(f"crossfusion: warning: {_said(str(message), arguments)}", file=sys.stderr)

    return show
