"""The paper's first figure from data: what of a transport plan is translation, and what is deformation."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crossfusion import FileError, __version__, distance, wasserstein_decomposition
from crossfusion.study import figure, make_folder, plain_value, save_figure, set_figure_style, write_text
from paper.arrays import FloatArray
from paper.checks import check_seed, load_library

ROWS = 90  # of each cloud: enough to show a shape, few enough to follow single lines of the plan
SHIFT = np.array([4.6, 1.2])
DISPLACEMENTS = np.linspace(0, 8, 17)  # how far the second cloud is moved, its shape kept
DEFORMATIONS = np.linspace(0, 2, 11)  # from the shape of the first cloud (0) to that of the second (1) and beyond
FIRST, SECOND, PLAN, ARROW = "#0072b2", "#d55e00", "#9aa3ad", "#1c2127"


def run(out: Path, *, seed: int = 0, progress: Callable[[str], None] | None = None) -> dict[str, Any]:
    """Draw the figure, sweep displacement and deformation, and write both.

    Parameters
    ----------
    out : path
        Folder of ``decomposition.json``, ``decomposition.png`` and ``decomposition.svg``; made if it does not exist.
    seed : int
        Seed of the clouds.
    progress : function, optional
        Shown a line about each step.

    Returns
    -------
    dict
        What the JSON file holds: the parts for the clouds drawn and for each step of both sweeps.
    """
    check_seed(seed)
    tell = progress or (lambda _: None)
    make_folder(out)
    tell("decomposition: clouds, plan and sweeps")
    a, b = draw_clouds(seed)
    found: dict[str, Any] = {
        "version": __version__,
        "seed": seed,
        "rows": ROWS,
        "example": measure_parts(a, b),
        "displacement": _sweep(DISPLACEMENTS, lambda step: measure_parts(a, _move(a, b, step))),
        "deformation": _sweep(DEFORMATIONS, lambda step: measure_parts(a, _deform(a, b, step))),
    }
    write_text(out / "decomposition.json", json.dumps(plain_value(found), indent=1) + "\n")
    tell("decomposition: figure")
    with set_figure_style():
        save_figure(draw(a, b, found), out, "decomposition")
    return found


def read(out: Path) -> dict[str, Any]:
    """Numbers that `run` wrote.

    Parameters
    ----------
    out : path
        The folder.

    Returns
    -------
    dict
        As `run` returns it.
    """
    path = out / "decomposition.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise FileError(path, f"is not readable ({problem})", "run 'python -m paper decomposition'") from problem
    if not (isinstance(found, dict) and all(_is_sweep(found.get(name)) for name in ("displacement", "deformation"))):
        raise FileError(path, "does not hold a decomposition", "run 'python -m paper decomposition'")
    return found


def _is_sweep(steps: Any) -> bool:
    """Whether something read from a file is a sweep: steps with both parts and a distance that can be divided by."""
    names = ("translation", "deformation", "distance")
    try:
        values = np.array([[step[name] for name in names] for step in steps], dtype=float)
    except (TypeError, KeyError, ValueError, IndexError):
        return False
    return bool(values.size and np.isfinite(values).all() and (values >= 0).all() and (values[:, 2] > 0).all())


def draw_clouds(seed: int) -> tuple[FloatArray, FloatArray]:
    """Two clouds in the plane: a tilted ellipse, and a crescent some way off.

    Parameters
    ----------
    seed : int
        Seed of both.

    Returns
    -------
    tuple of two arrays of shape (rows, 2)
        The clouds.
    """
    draw_from = np.random.default_rng(seed)
    ellipse = draw_from.normal(size=(ROWS, 2)) @ np.array([[0.9, 0.5], [0.0, 0.5]])
    angle = draw_from.uniform(-0.55 * np.pi, 0.75 * np.pi, ROWS)
    radius = 3.6 + 0.3 * draw_from.normal(size=ROWS)
    crescent = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return ellipse - ellipse.mean(axis=0), crescent - crescent.mean(axis=0) + SHIFT


def measure_parts(a: FloatArray, b: FloatArray) -> dict[str, float]:
    """Both parts of the squared distance, and the distance computed without them.

    Parameters
    ----------
    a, b : array of shape (rows, dim)
        The clouds.

    Returns
    -------
    dict
        ``translation`` and ``deformation`` (squares), and ``distance``, from its own plan between the clouds as they
        lie, so that whether the parts add up to it is a question to the data.
    """
    found = wasserstein_decomposition(a, b)
    return {
        "translation": found.translation,
        "deformation": found.deformation,
        "distance": distance("wasserstein", a, b),
    }


def _move(a: FloatArray, b: FloatArray, step: float) -> FloatArray:
    """The second cloud with its mean at a distance from the first one's."""
    moved: FloatArray = b - b.mean(axis=0) + a.mean(axis=0) + step * SHIFT / np.linalg.norm(SHIFT)
    return moved


def _deform(a: FloatArray, b: FloatArray, step: float) -> FloatArray:
    """A cloud on the way from the first one's shape to the second one's, with the mean of the second."""
    plan = transport_plan(a - a.mean(axis=0), b - b.mean(axis=0))
    partner = (b - b.mean(axis=0))[plan.argmax(axis=1)]
    shape: FloatArray = (1 - step) * (a - a.mean(axis=0)) + step * partner + b.mean(axis=0)
    return shape


def transport_plan(a: FloatArray, b: FloatArray) -> FloatArray:
    """Optimal plan between two clouds, for squared distances."""
    squares = np.sum((a[:, None] - b[None]) ** 2, axis=2)
    plan: FloatArray = load_library("ot", "POT", "reproduce", "a transport plan").emd([], [], squares)
    return plan


def _sweep(steps: FloatArray, measure: Callable[[float], dict[str, float]]) -> list[dict[str, float]]:
    return [{"step": float(step), **measure(float(step))} for step in steps]


def draw(a: FloatArray, b: FloatArray, found: Mapping[str, Any]) -> Any:
    """Figure of the clouds, their plan, its two parts, and both sweeps.

    Parameters
    ----------
    a, b : array of shape (rows, 2)
        The clouds.
    found : mapping
        As `run` returns it.

    Returns
    -------
    matplotlib.figure.Figure
        Four panels.
    """
    drawn = figure(12.5, 9.2)
    grid = drawn.subplots(2, 2, gridspec_kw={"height_ratios": [1.25, 1]})
    example = found["example"]
    total = example["distance"] ** 2
    _plan_panel(grid[0, 0], a, b, arrow=True)
    share = example["translation"] / total
    grid[0, 0].set_title(f"Plan: W₂² = {total:.2f}; arrow: translation² {example['translation']:.2f}, {share:.0%}")
    _plan_panel(grid[0, 1], a - a.mean(axis=0), b - b.mean(axis=0), arrow=False)
    grid[0, 1].set_title(f"Plan of the centred clouds: deformation² {example['deformation']:.2f}, {1 - share:.0%}")
    _sweep_panel(grid[1, 0], found["displacement"], "distance of the means, shape kept")
    _sweep_panel(grid[1, 1], found["deformation"], "from shape A (0) to shape B (1) and beyond, means kept")
    handles, labels = grid[1, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4)
    return drawn


def _plan_panel(axes: Any, a: FloatArray, b: FloatArray, *, arrow: bool) -> None:
    """Clouds joined by the plan, with the way from mean to mean."""
    plan = transport_plan(a, b)
    for i, j in np.argwhere(plan > plan.max() * 1e-6):
        axes.plot(*zip(a[i], b[j], strict=True), color=PLAN, linewidth=0.6, alpha=0.8, zorder=1)
    for rows, colour, name in ((a, FIRST, "A"), (b, SECOND, "B")):
        axes.scatter(*rows.T, s=22, color=colour, label=f"cloud {name}", zorder=2, edgecolors="white", linewidths=0.4)
        axes.scatter(*rows.mean(axis=0), s=130, color=colour, marker="X", zorder=4, edgecolors="white")
    if arrow:
        ends = a.mean(axis=0), b.mean(axis=0)
        style = {"arrowstyle": "-|>", "color": ARROW, "linewidth": 2, "shrinkA": 7, "shrinkB": 7, "mutation_scale": 18}
        axes.annotate("", xy=ends[1], xytext=ends[0], arrowprops=style, zorder=3)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.legend(loc="upper left", handletextpad=0.2)


def _sweep_panel(axes: Any, steps: Sequence[Mapping[str, float]], label: str) -> None:
    """Squares as stacked areas, the distance computed on its own as points, and what the sum of roots would be."""
    x = [step["step"] for step in steps]
    translation, deformation = (np.array([step[part] for step in steps]) for part in ("translation", "deformation"))
    areas = axes.stackplot(x, deformation, translation, colors=["#8fb8d8", "#f2b78c"])
    for area, text in zip(areas, ("deformation²", "translation²"), strict=True):
        area.set_label(text)
    axes.plot(
        x,
        [step["distance"] ** 2 for step in steps],
        "o",
        color=ARROW,
        markersize=4.5,
        label="W₂², own plan",
        clip_on=False,
    )
    roots = (np.sqrt(translation) + np.sqrt(deformation)) ** 2
    axes.plot(x, roots, "--", color="#8a2be2", linewidth=1.6, label="if the roots added")
    axes.set_xlabel(label)
    axes.set_ylabel("square of the distance")
    axes.margins(x=0)
    axes.set_ylim(bottom=0)
