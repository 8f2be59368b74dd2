"""Results and progress on a terminal or in a pipe; the benchmarks use it too."""

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich import box, progress
from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDEST = 60  # characters of a cell in a pipe


def show_json(result: Mapping[str, Any]) -> None:
    """Print a result for machines."""
    click.echo(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))


def show_files(paths: Iterable[Path]) -> None:
    """Print where results are."""
    click.echo("\n".join(["written:", *(f"  {path}" for path in paths)]))


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> None:
    """Print a table whose columns in `left` are flush left; in a pipe it is plain text."""
    if not sys.stdout.isatty():
        click.echo(f"{title}\n{render_table(header, rows, left)}")
        return
    table = Table(title=escape(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for position, name in enumerate(header):
        table.add_column(escape(name), justify="left" if position in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    Console(highlight=False).print(table)


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int]) -> str:
    """A table as aligned columns."""
    cells = [[cell if len(cell) <= WIDEST else f"{cell[: WIDEST - 1]}…" for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(row[k].ljust(width) if k in left else row[k].rjust(width) for k, width in enumerate(widths))
        for row in cells
    )
    return "\n".join(line.rstrip() for line in lines)


def terminal_width() -> int:
    """Columns of the terminal; a pipe has no end."""
    return Console().width if sys.stdout.isatty() else 10**6


@contextmanager
def show_steps(what: str) -> Iterator[Callable[[str], None] | None]:
    """A line on a terminal that says what is being done; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True, highlight=False).status(what) as status:
        yield lambda text: status.update(escape(text))


@contextmanager
def show_progress(what: str, total: int, unit: str) -> Iterator[Callable[[int], None] | None]:
    """A bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TextColumn(f"{{task.completed:,.0f}} of {{task.total:,.0f}} {unit}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
