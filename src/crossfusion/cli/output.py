"""Results on a terminal, in a pipe, or as JSON."""

import csv
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossfusion._base import escape_unprintable, show_on_terminal, text_table
from crossfusion.cli import layout
from crossfusion.plots import saving

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # with which a formula of a spreadsheet begins
WORDS = ("alarm", "standing")  # last columns that hold text
MIN_BAR = 8  # characters; a shorter longest bar is left out
BAR_WIDTH = 20  # characters of the longest bar
BAR_EIGHTHS = ("", *"▏▎▍▌▋▊▉")  # the last character of a bar
HEAT_COLORS = ("green", "cyan", "yellow", "magenta", "red")  # from together to apart
HEAT_EDGES = (0.01, 0.05, 0.2, 0.7)  # of the distance: 1 %, 5 %, 18 % and half of the variance between the groups


def show_json(result: dict[str, Any]) -> None:
    """Print a result for machines."""
    plain = (sys.stdout.encoding or "utf-8").lower().replace("_", "-") not in ("utf-8", "utf8")
    click.echo(json.dumps(result, indent=2, ensure_ascii=plain, allow_nan=False))


def show_csv(header: Sequence[str], rows: Sequence[Sequence[Any]], names: Collection[int] = ()) -> None:
    """Print a table for machines; undefined values are empty, and columns in `names` hold what users named."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(
        ["" if cell is None else neutralize(cell) if k in names else cell for k, cell in enumerate(row)] for row in rows
    )


def neutralize(name: str) -> str:
    """Put an apostrophe before a name that a spreadsheet would run as a formula.

    >>> neutralize("=1+1"), neutralize("tumor")
    ("'=1+1", 'tumor')
    """
    return f"'{name}" if name.startswith(FORMULA_SIGNS) else name


def write_plot(plot: Path | None, drawn: Callable[[], Any]) -> None:
    """Write a figure, if one was asked for."""
    if plot is not None:
        saving.write_figure(drawn(), plot)


def choose_color(distance: float) -> str:
    """Color of a distance."""
    return HEAT_COLORS[sum(distance > edge for edge in HEAT_EDGES)]


def show_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[Sequence[str]] | None = None,
    left: Collection[int] = (0,),
    bars: Sequence[float | None] | None = None,
) -> None:
    """Print a table for people; columns in `left` are flush left.

    It is colored on a terminal that has room for it, and plain elsewhere. On a terminal rows end in bars, where these
    have values; rows without one are the last. Names are cut to fit; a last column of text wraps.
    """
    title, header = escape_unprintable(title), [escape_unprintable(name) for name in header]
    rows = [[escape_unprintable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        click.echo(f"{title}\n{text_table(header, rows, left=left)}")
        return
    if header[-1] in WORDS:
        left = (*left, len(header) - 1)
    room = find_terminal_width()
    plan = layout.plan_columns(header, rows, left, room)
    if plan.width > room:
        click.echo(f"{title}\n{text_table(header, rows, left=left)}")
        return
    styles = styles or [[""] * len(header)] * len(rows)
    spare = min(BAR_WIDTH, room - plan.width - layout.COLUMN_GAP)
    drawn = make_bars(bars, spare) if bars is not None and spare >= MIN_BAR and len(plan.blocks) == 1 else []
    console = make_console()
    console.print(title, style="bold", markup=False, highlight=False)
    for block in plan.blocks:
        console.print(_make_block(block, plan, header, rows, styles, left, drawn))


def _make_block(
    block: Sequence[int],
    plan: layout.Layout,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    styles: Sequence[Sequence[str]],
    left: Collection[int],
    bars: Sequence[tuple[str, str]],
) -> "Table":
    """Columns side by side; a last column of text wraps, all others keep to one line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for k in block:
        width, wraps = plan.widths[k], k in left and k == len(header) - 1
        justify: Any = "left" if k in left else "right"
        names = Text("\n".join(layout.wrap_words(header[k], width)))
        table.add_column(names, width=width, justify=justify, no_wrap=not wraps, overflow="ellipsis")
    if bars:
        table.add_column(no_wrap=True, overflow="crop")
    for number, (row, style) in enumerate(zip(rows, styles, strict=True)):
        cells = [Text(row[k], style=style[k]) for k in block]
        table.add_row(*cells, *(Text(*bar) for bar in bars[number : number + 1]))
    return table


def make_bars(values: Sequence[float | None], width: int = BAR_WIDTH) -> list[tuple[str, str]]:
    """Bars as text, the longest of this width, with their colors: below zero red."""
    known = [0.0 if value is None or not math.isfinite(value) else float(value) for value in values]
    top = max(map(abs, known), default=0.0)
    if top == 0:
        return []
    eighths = [round(8 * width * abs(value) / top) for value in known]
    texts = ["█" * (own // 8) + BAR_EIGHTHS[own % 8] for own in eighths]
    return [(text, "red" if value < 0 else "cyan") for text, value in zip(texts, known, strict=True)]


def make_console(stderr: bool = False) -> "Console":
    """Console of standard output or standard error."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False)


def find_terminal_width() -> int:
    """Columns for people; a pipe has no end."""
    return make_console().width if sys.stdout.isatty() else 10**6


def show_notes(notes: Iterable[str]) -> None:
    """On a terminal, say what was decided without being asked."""
    for note in filter(None, notes):
        if sys.stderr.isatty():
            click.echo(f"crossfusion: {note}; --vectors chooses others", err=True)


@contextmanager
def show_steps(what: str) -> Iterator[Callable[[str], None] | None]:
    """A line on a terminal that says what is being done, and goes when the work is done; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.markup import escape

    with make_console(stderr=True).status(what) as status:
        yield lambda text: status.update(escape(text))


@contextmanager
def show_progress(what: str, total: int | None, unit: str = "rows") -> Iterator[Callable[[int], None] | None]:
    """A bar on a terminal, which goes when the work is done; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    with show_on_terminal(what, total, unit) as advance:
        yield advance
