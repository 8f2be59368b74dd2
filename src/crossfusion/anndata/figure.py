"""The picture of a leaderboard: batches against biology, and the batches within each label."""

from typing import Any

import numpy as np

from crossfusion._base import FloatArray
from crossfusion.anndata.leaderboard import Leaderboard
from crossfusion.plots import style

LABEL_LENGTH = 60  # characters of a name
MAX_LABELS = 24  # labels that are shown, those of most cells


def draw_leaderboard(board: Leaderboard) -> Any:
    """Figure of a leaderboard: two panels with labels, one without."""
    labels = _find_largest_labels(board)
    if board.biology is None:
        drawn = style.make_figure(6.4, 1.6 + 0.42 * len(board.embeddings))
        _draw_embeddings(drawn.subplots(), board)
        return drawn
    height = max(4.4, 1.6 + 0.3 * len(labels)) + 0.25 * (len(board.embeddings) // 4)
    drawn = style.make_figure(10.4, height)
    plane, strip = drawn.subplots(1, 2, width_ratios=(1.15, 1))
    _draw_plane(plane, board)
    _draw_labels(strip, board, labels)
    _, names = plane.get_legend_handles_labels()
    points = [bars.lines[0] for bars in plane.containers]
    drawn.legend(points, names, loc="outside lower center", ncols=min(len(names), 5), frameon=False, fontsize=10)
    return drawn


def _pick_look(k: int) -> dict[str, Any]:
    return {
        "color": style.PANEL_COLORS[k % len(style.PANEL_COLORS)],
        "marker": style.PANEL_MARKERS[k % len(style.PANEL_MARKERS)],
    }


def _style_axes(axes: Any) -> None:
    """Without what does not tell anything."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(style.MUTED)
    axes.tick_params(colors=style.MUTED, labelcolor=style.INK, labelsize=10)
    axes.grid(color=style.GRID, linewidth=0.8)
    axes.set_axisbelow(True)


def _measure_error_bars(columns: dict[str, Any], name: str) -> FloatArray | None:
    """Lengths of the lines on both sides of the points, if there are intervals."""
    if f"{name}_lower" not in columns:
        return None
    ends = np.array([columns[name] - columns[f"{name}_lower"], columns[f"{name}_upper"] - columns[name]])
    return np.asarray(np.maximum(ends, 0.0))


def _draw_plane(axes: Any, board: Leaderboard) -> None:
    columns = board.columns()
    across, up = (_measure_error_bars(columns, name) for name in ("batch", "biology"))
    for k in board._order():
        axes.errorbar(
            columns["batch"][k],
            columns["biology"][k],
            xerr=None if across is None else across[:, [k]],
            yerr=None if up is None else up[:, [k]],
            linestyle="none",
            markersize=9,
            elinewidth=1.4,
            label=style.format_name(board.embeddings[k], LABEL_LENGTH),
            zorder=3,
            **style.mark_front(_pick_look(k), filled=len(board.embeddings) == 1 or bool(board.standing[k].front)),
        )
    _style_axes(axes)
    axes.axvline(0, color=style.MUTED, linewidth=0.8, zorder=1)
    axes.margins(0.12)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))  # half of the biology is half as high
    batch, label = style.format_name(board.batch_key), style.format_name(board.label_key)
    axes.set_xlabel(f"batches apart: CFD({batch} | {label})", color=style.INK, fontsize=11)
    axes.set_ylabel(f"labels apart: CFD({label} | {batch})", color=style.INK, fontsize=11)
    complete = len(board.standing) == 1 or all(entry.front for entry in board.standing)
    filled = "" if complete else "; filled: on the front"
    axes.set_title(f"← batches fused, ↑ biology kept{filled}", loc="left", color=style.INK, fontsize=11)


def _find_largest_labels(board: Leaderboard) -> list[Any]:
    """Labels that several batches have, those of most cells, in the order of their values."""
    own = [row for row in board.labels if row.embedding == board.embeddings[0] and row.fusion is not None]
    chosen = {row.label for row in sorted(own, key=lambda row: -row.cells)[:MAX_LABELS]}
    return [row.label for row in own if row.label in chosen]


def _draw_labels(axes: Any, board: Leaderboard, labels: list[Any]) -> None:
    """One line per label, one point per embedding."""
    for k, name in enumerate(board.embeddings):
        found = {row.label: row.fusion for row in board.labels if row.embedding == name}
        values = [np.nan if (own := found[label]) is None or own.unbiased is None else own.unbiased for label in labels]
        axes.plot(values, range(len(labels)), linestyle="none", markersize=7, alpha=0.85, **_pick_look(k), zorder=3)
    _style_axes(axes)
    axes.grid(axis="y", visible=False)
    axes.axvline(0, color=style.MUTED, linewidth=0.8, zorder=1)
    for place in range(len(labels)):
        axes.axhline(place, color=style.GRID, linewidth=0.8, zorder=0)
    axes.set_yticks(range(len(labels)), [style.format_name(label, LABEL_LENGTH) for label in labels])
    axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
    axes.set_xlabel(
        f"CFD({style.format_name(board.batch_key)}) among the cells of a label", color=style.INK, fontsize=11
    )
    shared = len({row.label for row in board.labels if row.fusion is not None})
    shown = "each label" if shared == len(labels) else f"the {len(labels)} largest of {shared} labels"
    axes.set_title(f"batches within {shown}", loc="left", color=style.INK, fontsize=11)


def _draw_embeddings(axes: Any, board: Leaderboard) -> None:
    """One line per embedding, where there are no labels."""
    columns = board.columns()
    errors, order = _measure_error_bars(columns, "batch"), board._order()
    for place, k in enumerate(order):
        axes.errorbar(
            columns["batch"][k],
            place,
            xerr=None if errors is None else errors[:, [k]],
            markersize=9,
            elinewidth=1.4,
            **_pick_look(k),
        )
    _style_axes(axes)
    axes.axvline(0, color=style.MUTED, linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(order)), [style.format_name(board.embeddings[k], LABEL_LENGTH) for k in order])
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xlabel(f"batches apart: CFD({style.format_name(board.batch_key)})", color=style.INK, fontsize=11)
