"""What the gallery of tutorials needs beyond its own settings: figures without pyplot, and an order of the pages."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

DPI = 130  # so that a column of 3.4 inches is 442 pixels wide
ORDER = (
    "two_arrays",
    "pathology_lab",
    "single_cells",
    "training",
    "drift",
    "several_hospitals",
    "cluster",
    "where_it_comes_from",
    "what_it_does_not_see",
)


def order(filename: str) -> int:
    """Where a tutorial stands among the others."""
    return ORDER.index(Path(filename).stem)


def scraper(_block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """The figure that a block left under the name `figure`, once, and sharp on dense screens."""
    names = block_vars["example_globals"]
    figure = names.get("figure")
    if not isinstance(figure, Figure) or names.get("_shown") is figure:
        return ""
    names["_shown"] = figure
    path = Path(next(block_vars["image_path_iterator"]))
    dense = path.with_name(f"{path.stem}_2x.png")
    figure.savefig(path, dpi=DPI)
    figure.savefig(dense, dpi=2 * DPI)
    alt = f"The figure of {Path(block_vars['src_file']).stem.replace('_', ' ')}"
    return figure_rst([path], gallery_conf["src_dir"], alt, [{0: path, 2.0: dense}])
