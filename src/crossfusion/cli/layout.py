"""Where the columns of a table go on a terminal: numbers are never cut, names give way, and long headers wrap."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

LABEL_WIDTH = 60  # characters of a name or a remark at most
MIN_WIDTH = 8  # characters of a name at least
COLUMN_GAP = 3  # between two columns
EDGES = 2  # characters at both ends of a line


@dataclass(frozen=True)
class Layout:
    """The width of each column, and the columns of each block: one, or several below one another."""

    widths: Mapping[int, int]
    blocks: Sequence[Sequence[int]]

    @property
    def width(self) -> int:
        """Width of the widest block."""
        return max(measure_block(self.widths, block) for block in self.blocks)


def plan_columns(header: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[int], room: int) -> Layout:
    """Fit columns into a terminal of `room` characters; those in `left` hold text and may be cut.

    Headers wrap and names are cut if that lets all columns stand side by side. If not, the table goes on in further
    blocks, each of which begins with the names again.
    """
    columns = list(zip(header, *rows, strict=True))
    for wrapped in (False, True):
        widths = {k: _measure_column(column, wrapped) for k, column in enumerate(columns)}
        numbers = sum(width for k, width in widths.items() if k not in left)
        names = {k: min(widths[k], LABEL_WIDTH) for k in left if k < len(columns)}
        spare = room - EDGES - numbers - COLUMN_GAP * (len(columns) - 1)
        least = {k: min(MIN_WIDTH, width) for k, width in names.items()} if wrapped else names
        if spare >= sum(least.values()):
            return Layout(widths | share_widths(names, spare), [range(len(columns))])
    return _split_columns(widths, names, room)


def _split_columns(widths: Mapping[int, int], names: Mapping[int, int], room: int) -> Layout:
    """Arrange columns in blocks that each begin with the names."""
    first = next((k for k in widths if k not in names), len(widths))
    keys = {k: names[k] for k in range(first)}
    rest = [k for k in widths if k >= first]
    widest = max(widths[k] for k in rest if k not in names)
    spare = min(room // 3, room - EDGES - widest - COLUMN_GAP * len(keys))  # more for the numbers, in fewer blocks
    own = dict(widths) | share_widths(keys, spare) | {k: min(names[k], spare) for k in rest if k in names}
    blocks = [[*keys]]
    for k in rest:
        if len(blocks[-1]) > len(keys) and measure_block(own, [*blocks[-1], k]) > room:
            blocks.append([*keys])
        blocks[-1].append(k)
    return Layout(own, blocks)


def measure_block(widths: Mapping[int, int], block: Sequence[int]) -> int:
    """Width of columns side by side."""
    return sum(widths[k] for k in block) + COLUMN_GAP * (len(block) - 1) + EDGES


def share_widths(needs: Mapping[int, int], room: int) -> dict[int, int]:
    """Widths of columns: what each needs, or an equal share of what the others leave.

    >>> share_widths({0: 5, 1: 30, 2: 60}, 65)
    {0: 5, 1: 30, 2: 30}
    """
    widths: dict[int, int] = {}
    for column in sorted(needs, key=needs.__getitem__):
        share = (room - sum(widths.values())) // (len(needs) - len(widths))
        widths[column] = min(needs[column], max(MIN_WIDTH, share))
    return widths


def wrap_words(text: str, width: int) -> list[str]:
    """Break a header into lines at its spaces.

    >>> wrap_words("adjusted p (holm)", 8)
    ['adjusted', 'p (holm)']
    """
    lines: list[str] = []
    for word in text.split(" "):
        if lines and measure_text(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def measure_text(text: str) -> int:
    """Places that a text takes; wide characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def _measure_column(column: Sequence[str], wrapped: bool) -> int:
    """Width of the cells of a column, and of its header or of the header's longest word."""
    header, *cells = column
    names = header.split(" ") if wrapped else [header]
    return max(map(measure_text, [*names, *cells]))
