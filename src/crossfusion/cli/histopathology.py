"""The study of tissue on the user's slides: its options, and the chain from tiles to files."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from crossfusion._base import FileError, arg
from crossfusion.cli import options, output
from crossfusion.cli.embed import encoder_option, network_options, stain_option
from crossfusion.cli.options import find_typed_command, parse_named_files
from crossfusion.cli.protocol_options import METRIC_NAMES, UNITS_USE, choose_distances, correction_option
from crossfusion.cli.tiles import Tiling, tile_options

QUICK_TILES = 10  # tiles of a slide with --quick
PER_SLIDE = 100  # of a whole slide, which has thousands
PLANNED = ("rows", "halves", "metric", "folds", "seed")  # options of the evaluation
WHOLE = ("camelyon16", "slides")  # layouts of whole slides


def _parse_files(_context: Any, _parameter: click.Parameter, values: Sequence[str]) -> dict[str, Path]:
    return {name: Path(file) for name, file in parse_named_files(values).items()}


OPTIONS = (
    click.option(
        "--data", required=True, metavar="DIR|FILE", help="The data set: a folder or a manifest, depending on --layout."
    ),
    encoder_option,
    options.names_option(
        "--normalizer",
        "Stain normalizers, such as macenko,stainfuser=onnx:FILE@0..1; none is always included.  [default: macenko]",
    ),
    stain_option,
    correction_option("[default: none]"),
    click.option(
        "--embeddings",
        multiple=True,
        callback=_parse_files,
        metavar="NAME=FILE",
        help="Existing embeddings of the same tiles; may be repeated.",
    ),
    options.names_option(
        "--between", "Factors that define the groups to compare.  [default: scanner or centre, by layout]"
    ),
    options.names_option("--label", "Factors that a model predicts, or none.  [default: label]"),
    options.units_option(f"{UNITS_USE}; or none", "  [default: slide]"),
    options.distance_option("[default: those that are fast enough]"),
    options.number_option("--rows", None, "Maximum number of rows per domain in a distance.  [default: 1000]"),
    click.option(
        "--repeats", "halves", type=int, metavar="N", help="Number of random splits into halves.  [default: 50]"
    ),
    click.option("--metric", metavar=METRIC_NAMES, help="Score of the model.  [default: f1_macro]"),
    options.number_option("--folds", None, "Number of cross-validation folds.  [default: 5; 3 with --quick]"),
    options.seed_option("everything random"),
    network_options,
    options.number_option(
        "--workers", None, "Number of threads that read, and of processes that evaluate.  [default: one per core]"
    ),
    options.quick_option(f"{QUICK_TILES} tiles per slide, small settings"),
)


def study_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All options of the study but where it goes; those of the tiles come as one argument, `tiling`."""
    wrapped = tile_options(command)
    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def run(tiling: Tiling, data: str, out: Path, quick: bool, **asked: Any) -> list[Path]:
    """The whole chain: tiles, embeddings, evaluation, files."""
    from crossfusion.study import histopathology as study

    plan = _plan(
        quick,
        {"distances": list(choose_distances(asked.pop("distance"), {}))} | {name: asked.pop(name) for name in PLANNED},
    )
    asked["normalizers"] = asked.pop("normalizer") or ["none", "macenko"]
    asked["corrections"] = asked.pop("correction")
    choices = study.Choices(layout=tiling.layout, **asked)
    choices.specs()
    study.check_plan(plan)
    if not Path(data).exists():
        raise FileError(problem=f"{arg('data', data)} does not exist", remedy="name the folder of the data set")
    with warnings.catch_warnings():
        if tiling.per_slide is None:
            warnings.filterwarnings("ignore", "per_slide has no effect")
        tiles = _limit_tiles(tiling, quick).read(data, out / "tissue")
    with output.show_steps("checking") as tell:
        ready = study.prepare(tiles, out, choices, plan, tell=tell)
    bar = partial(output.show_progress, unit="tiles")
    made = study.encode(ready, out, choices, bar=bar, tell=click.echo)
    with output.show_steps("evaluating") as tell:
        found = study.evaluate(made, out, tiling.layout, plan, workers=choices.workers, tell=tell)
    return study.write(out, choices, made, found, command=find_typed_command())


def _plan(quick: bool, given: dict[str, Any]) -> Any:
    from crossfusion.study import Plan

    chosen = {name: value for name, value in given.items() if value not in (None, [])}
    return Plan.quick(**chosen) if quick else Plan(**{"rows": 1000} | chosen)


def _limit_tiles(tiling: Tiling, quick: bool) -> Tiling:
    """No more tiles of a slide than are asked for, or than such a study takes."""
    usual = QUICK_TILES if quick else PER_SLIDE if tiling.layout in WHOLE else None
    return tiling if tiling.per_slide is not None else replace(tiling, per_slide=usual)


def _default_folder(context: click.Context, _parameter: click.Parameter, value: Path | None) -> Path:
    """Folder of the study; small settings have one of their own, so that they never pass for the full ones."""
    return value or Path("histopathology-quick" if context.params.get("quick") else "histopathology")


@click.command()
@study_options
@options.folder_option("  [default: histopathology; histopathology-quick with --quick]", callback=_default_folder)
def histopathology(out: Path, **asked: Any) -> None:
    """Evaluate distances and stain normalizers on slides.

    The study measures RDR and CDDR after each normalizer and writes an HTML page. By default, it samples 100 tiles per
    whole slide (camelyon16, slides); --per-slide changes the number. To resume an interrupted study, run the same
    command again.

    \b
    Examples:
      crossfusion histopathology --data MIDOG/ --layout midog --encoder virchow
      crossfusion histopathology --data CAMELYON16/ --layout camelyon16 --encoder virchow --quick
      crossfusion histopathology --data manifest.csv --between scanner --label tumour --units slide \\
        --encoder efficientnet_lite0 --normalizer macenko,stainfuser=onnx:sf.onnx@0..1
    """
    try:
        written = run(out=out, **asked)
    except KeyboardInterrupt:
        click.echo("crossfusion: what is done is kept: the same command goes on from there", err=True)
        raise
    click.echo("\n".join(["written:", *(f"  {path}" for path in written)]))
