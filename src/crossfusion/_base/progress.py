"""How far a long run is: a bar on a terminal or in a notebook, which goes when the work is done; nothing in a pipe."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PAUSE = 0.25  # seconds between two states of a bar in a notebook, and before the first
BAR = (
    '<div style="font: 0.875rem system-ui, sans-serif; display: flex; gap: 0.75em; align-items: center">'
    '<span>{what}</span><progress aria-label="{what}"{state}></progress><span>{count}</span></div>'
)
Progress = Callable[[int], None]


@contextmanager
def show_progress(
    what: str, total: int | None, unit: str = "rows", wanted: bool | None = None
) -> Iterator[Progress | None]:
    """Show a bar while something is done, and yield what is called with each number of units done, or None.

    By default, only notebooks show a bar; if it is wanted, terminals do too.
    """
    if wanted is not False and (show := _find_display()) is not None:
        with _show_in_notebook(show, what, total, unit) as advance:
            yield advance
    elif wanted and sys.stderr is not None and sys.stderr.isatty():
        with show_on_terminal(what, total, unit) as advance:
            yield advance
    else:
        yield None


@contextmanager
def show_on_terminal(what: str, total: int | None, unit: str = "rows") -> Iterator[Progress]:
    """Show a bar on standard error."""
    from rich import progress as bars
    from rich.console import Console
    from rich.text import Text

    class _Rate(bars.ProgressColumn):
        def render(self, task: bars.Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:,.{'3g' if task.speed < 100 else '0f'}} {unit}/s")

    share = "{task.completed:,.0f} of {task.total:,.0f} " if total is not None else "{task.completed:,.0f} "
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(),
        bars.TextColumn(share + unit),
        _Rate(),
        *([] if total is None else [bars.TimeRemainingColumn()]),
    )
    with bars.Progress(*columns, console=Console(stderr=True, highlight=False), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _find_display() -> Callable[..., Any] | None:
    """Find the function that displays objects in the running notebook; None outside of notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    found: Callable[..., Any] = display
    return found


@contextmanager
def _show_in_notebook(show: Callable[..., Any], what: str, total: int | None, unit: str) -> Iterator[Progress]:
    """Show a bar below the cell; it appears after a moment only, so that short work shows nothing."""
    handle = show({"text/html": "", "text/plain": ""}, raw=True, display_id=True)
    done, shown = 0, time.monotonic()

    def advance(number: int) -> None:
        nonlocal done, shown
        done += number
        if time.monotonic() - shown >= PAUSE:
            shown = time.monotonic()
            handle.update({"text/html": _make_bar(what, done, total, unit), "text/plain": ""}, raw=True)

    try:
        yield advance
    finally:
        handle.update({"text/html": "", "text/plain": ""}, raw=True)


def _make_bar(what: str, done: int, total: int | None, unit: str) -> str:
    state = "" if total is None else f' value="{done}" max="{total}"'
    count = f"{done:,} {unit}" if total is None else f"{done:,} of {total:,} {unit}"
    return BAR.format(what=what, state=state, count=count)
