"""The results as figures: the paper's five panels, their raw values, and what goes beyond the paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crossfusion.study import figure, make_folder, save_figure
from paper.synthetic.levels import levels
from paper.synthetic.measures import NAMES
from paper.synthetic.panels import Panel, Row, draw
from paper.synthetic.run import read
from paper.synthetic.tables import describe_setting

MAIN = ("cfd", "wasserstein", "sinkhorn", "mmd", "hausdorff", "chamfer")
FIVE = ("displacement", "dispersion", "scaling", "topology", "outliers")
RAW = ("energy", "gaussian_wasserstein", "sliced_wasserstein")
UNIT = {
    "relative": "measure / its first level",
    "mean": "measure",
    "shift": "change from the first level / its sd",
}


def _list_panels(quantity: str, extra: Sequence[str]) -> list[Panel]:
    """The paper's panels; trimming is shown where it is meant to help."""
    trimmed = {"outliers": ("cfd_trimmed",)}
    return [
        Panel(name, "sigma" if name == "topology" else "", quantity, (*MAIN, *extra, *trimmed.get(name, ())))
        for name in FIVE
    ]


def _beyond() -> list[Panel]:
    cfds = ("cfd_unbiased", "cfd_balanced", "cfd_balanced_unbiased")
    return [
        Panel("topology", "sigma", "relative", (*MAIN, *RAW)),
        Panel("topology", "dispersion", "relative", (*MAIN, *RAW)),
        Panel("outliers", "", "relative", ("cfd", "cfd_unbiased", "cfd_trimmed", "mmd", *RAW)),
        Panel("imbalance", "", "relative", (*MAIN, *cfds)),
        Panel("covariance", "", "relative", (*MAIN, *RAW)),
        Panel("covariance", "", "shift", (*MAIN, "cfd_unbiased", *RAW, "classifier")),
    ]


FIGURES = {
    "relative": ("Each measure relative to its first level", _list_panels("relative", ("cfd_unbiased",)), 5),
    "values": ("Values of the measures", _list_panels("mean", ("cfd_unbiased", *RAW)), 5),
    "beyond": ("Beyond the paper", _beyond(), 3),
}
"""Figures by the start of their file names: title, panels, and panels a row."""


def write_figures(out: Path) -> list[Path]:
    """Draw the results in a folder, three figures for each dimension and size.

    Parameters
    ----------
    out : path
        The folder that `run` filled.

    Returns
    -------
    list of path
        The files in its folder ``figures``, PNG and SVG.

    Notes
    -----
    Bands are ± two Monte Carlo standard errors. A line is missing where its first level cannot be told from zero.
    """
    rows = _add_shift(levels(read(out)).to_pylist())
    folder = make_folder(out / "figures")
    paths = []
    for dim, size in dict.fromkeys((row["dim"], row["size"]) for row in rows):
        here = [row for row in rows if (row["dim"], row["size"]) == (dim, size)]
        for name, (title, panels, columns) in FIGURES.items():
            drawn = _figure(f"{title} ({describe_setting(dim, size)})", panels, columns, here)
            if drawn is not None:
                paths += save_figure(drawn, folder, f"{name}-d{dim}-n{size}")
    return paths


def _add_shift(rows: Sequence[Row]) -> list[Row]:
    """Rows with the change from the first level in its standard deviations: whether a single sample would show it."""
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = tuple(row[name] for name in ("experiment", "variant", "dim", "size", "measure"))
        start = first.setdefault(key, row)
        row["shift"] = (row["mean"] - start["mean"]) / start["sd"] if start["sd"] and row["mean"] is not None else None
        row["shift_stderr"] = None
    return list(rows)


def _figure(title: str, panels: Sequence[Panel], columns: int, rows: Sequence[Row]) -> Any:
    """A figure of those panels that there are results for, with one legend; None if there is none."""
    found = [(panel, lines) for panel in panels if (lines := panel.lines(rows))]
    if not found:
        return None
    columns = min(columns, len(found))
    height = -(-len(found) // columns)
    drawn = figure(max(3.4 * columns, 6.8), 3.5 * height + 1.3)
    axes = drawn.subplots(height, columns, squeeze=False).ravel()
    handles: dict[str, Any] = {}
    for place, (axis, (panel, lines)) in enumerate(zip(axes, found, strict=False)):
        handles |= draw(axis, panel, lines, letter="abcdefgh"[place])
        if place % columns == 0 or panel.quantity != found[place - 1][0].quantity:
            axis.set_ylabel(UNIT[panel.quantity])
    for axis in axes[len(found) :]:
        axis.set_axis_off()
    drawn.suptitle(title, fontsize=13)
    _add_legend(drawn, handles, columns)
    return drawn


def _add_legend(figure: Any, handles: dict[str, Any], columns: int) -> None:
    """One for all panels, below them, in the order of the tables."""
    names = [name for name in NAMES.values() if name in handles]
    place = {"loc": "outside lower center", "ncols": min(columns + 2, 7, len(names)), "frameon": False}
    figure.legend([handles[name] for name in names], names, **place)
