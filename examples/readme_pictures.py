"""Draw the pictures of the README, for light and dark pages: `make example-readme`.

The first is drawn from the demo's rows. The second shows ratios that `make bench` and `make reproduce` left in `docs`.
"""

import argparse
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

import crossfusion as cf
from crossfusion.demo import make_population

DOCS = Path(__file__).parent.parent / "docs"
INKS = {"light": ("#1f2328", "#59636e", "#d1d9e0"), "dark": ("#f0f6fc", "#9198a1", "#3d444d")}  # ink, muted, faint
COLORS = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#b35a90"),
    "dark": ("#56b4e9", "#f0883e", "#3fb98c", "#e39ac5"),
}
STYLE = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "crossfusion",
}
TABLE = "reproduction/runtime.md"  # its columns: 100, 1,000, 10,000, ... rows per group
SAME, OTHER = "the same number, or its test", "other distances"
BARS = (  # what it is, whose, where its ratio is written
    (SAME, "the obvious NumPy", "bench_moments.txt", r"obvious NumPy +([\d.]+)"),
    (SAME, "scikit-learn, Calinski–Harabasz", "bench_moments.txt", r"calinski_harabasz_score +([\d.]+)"),
    (SAME, "scib-metrics, PCR, 10⁶ cells", "bench_integration.txt", r"PCR comparison +[\d.]+ +([\d.]+)"),
    (SAME, "scikit-bio, PERMANOVA, 10⁴ rows", "bench_permutations.txt", r"permanova +10,000 +256 +2 +([\d.]+)"),
    (OTHER, "Chamfer, 10⁴ rows per group", TABLE, r"Chamfer \|(?:[^|]+\|){2} ([\d.]+)"),
    (OTHER, "energy, 10⁴ rows per group", TABLE, r"Energy \|(?:[^|]+\|){2} ([\d.]+)"),
    (OTHER, "Wasserstein, 10³ rows per group", TABLE, r"\| Wasserstein \|(?:[^|]+\|){1} ([\d.]+)"),
    (OTHER, "MMD, 10⁴ rows per group", TABLE, r"MMD \|(?:[^|]+\|){2} ([\d.]+)"),
)


def read_ratio(name: str, pattern: str) -> float:
    """Read a ratio from a file of the docs."""
    found = re.search(pattern, (DOCS / name).read_text())
    if not found:
        raise SystemExit(f"docs/{name} has nothing like {pattern}: run make bench or make reproduce, or change BARS")
    return float(found[1])


def speed(theme: str) -> Figure:
    """Times of other libraries, as multiples of ours."""
    ink, muted, faint = INKS[theme]
    figure = Figure(figsize=(7, 2.9), layout="constrained")
    axes = figure.subplots()
    values = [read_ratio(name, pattern) for _, _, name, pattern in BARS]
    places = [k + 0.9 * (kind == OTHER) for k, (kind, *_) in enumerate(BARS)]
    colors = [COLORS[theme][kind == OTHER] for kind, *_ in BARS]
    axes.barh(places, [value - 1 for value in values], left=1, color=colors, height=0.68)
    for place, value in zip(places, values, strict=True):
        axes.text(value * 1.08, place, f"× {value:,.0f}", va="center", color=ink)
    for kind, first in ((SAME, -0.8), (OTHER, places[-1] - 3.85)):
        axes.text(1.03, first, kind, va="center", color=muted, fontsize=8)
    axes.set_yticks(places, [label for _, label, *_ in BARS], color=ink)
    axes.set(xscale="log", xlim=(1, 8000), ylim=(places[-1] + 0.6, -1.3))
    axes.set_xlabel("time as a multiple of crossfusion's, same data and machine", color=muted)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.tick_params(which="both", length=0, labelcolor=muted)
    axes.tick_params(axis="y", labelcolor=ink)
    axes.grid(axis="x", color=faint, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    return figure


def fused(theme: str) -> Figure:
    """The demo's sites, unadjusted and adjusted for tissue: their rows, and how the variance splits."""
    table, _ = make_population(0)
    x = np.stack(table["embedding"].to_numpy())
    site, label = (np.asarray(table[name].to_pylist()) for name in ("site", "label"))
    means = {name: x[label == name].mean(axis=0) for name in np.unique(label)}
    within = x - np.array([means[name] for name in label])
    summary = cf.summarize(x, by={"site": site, "label": label})
    figure = Figure(figsize=(7, 3.3), layout=ConstrainedLayoutEngine(h_pad=0.08))
    panels = figure.subplots(2, 2, height_ratios=(8, 1))
    _panel(panels[:, 0], x, site, "unadjusted: CFD(site)", "of the variance", summary.cfd("site"), theme)
    adjusted = summary.cfd("site", given="label")
    title = "adjusted for tissue: CFD(site | tissue)"
    _panel(panels[:, 1], within, site, title, "of the variance within a tissue", adjusted, theme)
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside lower center", ncols=4, frameon=False, labelcolor=INKS[theme][0], handletextpad=0.1
    )
    return figure


def _panel(panels: Any, x: Any, site: Any, title: str, variance: str, found: cf.Fusion, theme: str) -> None:
    """Rows on the plane that separates the sites most, above a bar that splits the variance."""
    ink, muted, faint = INKS[theme]
    cloud, bar = panels
    shown = np.random.default_rng(0).choice(len(x), 1200, replace=False)
    plane = cf.summarize(x, by={"site": site}).project("site", rows=x[shown], labels=site[shown])
    colors = np.array(COLORS[theme])
    cloud.scatter(*np.asarray(plane.points).T, s=5, c=colors[plane.codes], alpha=0.4, linewidths=0, rasterized=True)
    for k, name in enumerate(plane.labels):
        cloud.plot(*plane.means[k], "o", color=colors[k], markeredgecolor=ink, markersize=8, label=name)
    cloud.set_title(f"{title} = {found.unbiased:.3f}", color=ink, fontsize=10)
    cloud.set(xticks=[], yticks=[], aspect="equal", xlim=(-2.1, 2.1), ylim=(-1.7, 1.3))
    cloud.spines[:].set_color(faint)
    within = np.exp(-(found.unbiased or 0.0))
    bar.barh(0, within, color=faint)
    bar.barh(0, 1 - within, left=within, color=COLORS[theme][1])
    text = f"sites explain {1 - within:.1%} {variance}"
    bar.text(0.5, -1.1, text, ha="center", va="center", color=muted, fontsize=9)
    bar.set(xlim=(0, 1), ylim=(-1.6, 0.5))
    bar.axis("off")


def main() -> None:
    """Draw them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DOCS / "readme")
    folder = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        for theme in INKS:
            for draw in (speed, fused):
                path = folder / f"{draw.__name__}-{theme}.svg"
                draw(theme).savefig(path, dpi=200, transparent=True, metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
