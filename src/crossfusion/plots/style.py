"""How plots look: one column wide, colors for all eyes, text that stays text, and no global state of Matplotlib."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crossfusion._base import InputError, label_text, optional

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.4, 7.0  # inches: one column of a journal, and two
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#1c2127")  # Okabe and Ito's
MAX_COLORED_GROUPS = len(COLORS)  # groups that have a color of their own; of more, the others share one
MARKERS = "osD^vPX"
PANEL_COLORS = (COLORS[-1], *COLORS[:-1], "#8a2be2")  # of several panels: the uncorrected points come first, in ink
PANEL_MARKERS = "osD^vPX*"
INK, MUTED, GRID, FAINT = "#1c2127", "#6b7580", "#e3e6ea", "#c3cad1"
NEAR, FAR = COLORS[0], COLORS[1]
NAME_LENGTH = 22  # characters of a name
BASE_STYLE = {
    "font.family": ["DejaVu Sans", "sans-serif"],  # the first comes with Matplotlib: the same figure everywhere
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "legend.frameon": False,
    "svg.hashsalt": "crossfusion",  # else the names inside an SVG change from run to run
}
MANY_PANELS = 9  # beyond which panels stand closer
WIDE = BASE_STYLE | {"font.size": 11, "axes.titlesize": 12}  # of studies, which have panels
STYLE = BASE_STYLE | {
    "font.size": 8.4,  # so that "small" is 7
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.2,
    "legend.handlelength": 1.4,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
    "legend.borderaxespad": 0.0,
    "figure.dpi": 144,
    "savefig.dpi": 300,
    "svg.fonttype": "none",  # text can be searched and edited
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}


def make_metadata(ending: str) -> dict[str, None]:
    """Metadata of a file without date and maker, so that the same numbers give the same bytes."""
    return dict.fromkeys({"png": ["Software"], "svg": ["Date", "Creator"], "pdf": ["CreationDate"]}.get(ending, []))


def load_matplotlib() -> Any:
    """The library, or what installs it."""
    return optional.load("matplotlib", "matplotlib", "plots", "drawing a figure")


def make_figure(width: float, height: float) -> Any:
    """An empty figure in inches, in the style that holds when it is drawn."""
    module = optional.load("matplotlib.figure", "matplotlib", "plots", "drawing a figure")
    return module.Figure(figsize=(width, height), layout="constrained")


def make_styled_figure(width: float, height: float, look: dict[str, Any] = STYLE) -> Any:
    """An empty figure in inches, which keeps its style."""
    load_matplotlib()
    from crossfusion.plots.styled_figure import StyledFigure

    drawn = StyledFigure(figsize=(width, height), layout="constrained")
    drawn.style = look
    return drawn


@contextmanager
def open_axes(axes: Any, height: float, width: float = COLUMN) -> Iterator[Any]:
    """The axes that were given, as they are; or those of a new figure, while the style holds."""
    if axes is not None:
        axes_type = optional.load("matplotlib.axes", "matplotlib", "plots", "drawing a figure").Axes
        if not isinstance(axes, axes_type):
            raise InputError("axes", axes, "must be Matplotlib axes", "pass those of plt.subplots(), or leave it out")
        yield axes
        return
    with load_matplotlib().rc_context(STYLE):
        yield make_styled_figure(width, height).subplots()


def find_figure(axes: Any) -> "Figure":
    """The whole figure that axes belong to."""
    found: Any = axes.figure
    while found is not found.figure:  # a part of a figure knows its whole
        found = found.figure
    drawn: Figure = found
    return drawn


def format_name(label: Any, longest: int = NAME_LENGTH) -> str:
    """A name that fits beside an axis, of a long one both ends; a dollar is a dollar, and no formula begins there."""
    text, tail = label_text(label), longest // 3
    return (text if len(text) <= longest else f"{text[: longest - tail - 1]}…{text[-tail:]}").replace("$", r"\$")


def pick_look(k: int) -> dict[str, Any]:
    """Color and marker of the k-th of several; marker and color both tell."""
    return {"color": COLORS[k % len(COLORS)], "marker": MARKERS[(k + k // len(COLORS)) % len(MARKERS)]}


def draw_zero_line(axes: Any, vertical: bool = True, at: float = 0.0) -> None:
    """A line at no distance."""
    (axes.axvline if vertical else axes.axhline)(at, color=MUTED, linewidth=0.6, zorder=1)


def draw_band(axes: Any, place: Any, limits: Any, color: Any, alpha: float, **more: Any) -> None:
    """Intervals along a line: an area, or a bar where there is one place only."""
    if len(place) == 1:
        axes.vlines(place, *limits, color=color, alpha=2 * alpha, linewidth=4, **more)
    else:
        axes.fill_between(place, *limits, color=color, alpha=alpha, linewidth=0, **more)


def keep_label_inside(axes: Any) -> None:
    """Move the words below a narrow axis to the left, where they would leave the figure."""
    figure = find_figure(axes)
    figure.draw_without_rendering()
    if axes.xaxis.label.get_window_extent().x1 > figure.bbox.x1:
        axes.set_xlabel(axes.get_xlabel(), loc="right")


def label_rows(axes: Any, names: list[str]) -> None:
    """Names at the left, the first one at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)


def mark_front(look: dict[str, Any], *, filled: bool) -> dict[str, Any]:
    """Look of a point: filled on the front, hollow elsewhere."""
    if filled:
        return look | {"markeredgecolor": "white", "markeredgewidth": 0.6}
    return look | {"markerfacecolor": "white", "markeredgewidth": 1.2}
