"""From tiles to tables: encode after each normalization, then ratios, degradation and correlations of all of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crossfusion._base import make_folder
from crossfusion.pathology import Encoder, Normalizer, Tile, find_reference, normalizer
from crossfusion.pathology import encoder as encoder_by_name
from crossfusion.study import published
from crossfusion.study.dataset import Dataset, Evaluation, Plan
from crossfusion.study.evaluation import evaluate_all
from crossfusion.study.histopathology import examples
from crossfusion.study.histopathology.choices import Choices
from crossfusion.study.histopathology.design import Design, find_design, rehearse
from crossfusion.study.histopathology.versions import (
    PLAIN,
    Bar,
    EmbeddingFile,
    Rows,
    embed_versions,
    hide_progress,
    needs_reference,
    read_embeddings,
)

TILES = "tiles"  # appended to the name of a data set whose halves are of tiles, as in the paper, not of units


AS_PAPER = (
    "Halves are random halves of the tiles, as in the paper: tiles of one slide lie in both, so that halves are more"
    " alike than slides are."
)


@dataclass(frozen=True)
class Setup:
    """Everything that encoding takes, checked."""

    tiles: Sequence[Tile]  # what is encoded
    design: Design  # the factors of the study
    encoder: Encoder  # one for all versions
    normalizers: Mapping[str, Normalizer]  # by name
    embeddings: Mapping[str, Rows]  # ready-made vectors, in the order of the tiles
    reference: str | None  # what Reinhard and Macenko match
    pictures: Path  # what the normalizers make of an ordinary tile of each domain


@dataclass(frozen=True)
class Embeddings:
    """Versions of the tiles.

    Parameters
    ----------
    ready : Ready
        What they were made of.
    made : sequence of Made
        Files, in the order of the versions.
    versions : mapping of str to array or str
        Vectors in the order of the tiles, or the name of a correction; ``none`` is first.
    """

    ready: Setup
    made: Sequence[EmbeddingFile]
    versions: Mapping[str, Rows | str]


def prepare(
    tiles: Sequence[Tile], out: Path, choices: Choices, plan: Plan, *, tell: Callable[[str], None] | None = None
) -> Setup:
    """Check everything that can be checked before a tile is encoded."""
    say = tell or (lambda _: None)
    specs = choices.specs()
    design = find_design(choices.layout, tiles, between=choices.between, label=choices.label, units=choices.units)
    say("checking domains, labels and units")
    rehearse(design, tiles, plan)
    ready = {name: read_embeddings(path, tiles) for name, path in choices.embeddings.items()}
    say("looking for a reference")
    reference = find_reference(choices.reference, tiles) if needs_reference(specs) else None
    normalizers = {name: normalizer(spec, reference, device=choices.device) for name, spec in specs.items()}
    say(f"loading {choices.encoder}")
    encoder = encoder_by_name(choices.encoder, device=choices.device, precision=choices.precision)
    say("drawing samples")
    shown = examples.choose_examples(tiles, design.values(tiles)["domain"] or [])
    pictures = examples.draw_examples(make_folder(out) / "samples.png", shown, normalizers)
    return Setup(tiles, design, encoder, normalizers, ready, _describe_reference(reference, design), pictures)


def _describe_reference(reference: Path | Tile | None, design: Design) -> str | None:
    """A reference as people read it."""
    if not isinstance(reference, Tile):
        return None if reference is None else str(reference)
    return f"the tile {reference.key} of {(design.values([reference])['domain'] or [''])[0]}"


def encode(
    ready: Setup, out: Path, choices: Choices, *, bar: Bar = hide_progress, tell: Callable[[str], None] | None = None
) -> Embeddings:
    """Encode tiles after each normalization; files of the same work are taken over."""
    options: dict[str, Any] = {"batch": choices.batch, "workers": choices.workers, "bar": bar, "tell": tell}
    made = embed_versions(
        ready.tiles, out / "embeddings", encoder=ready.encoder, normalizers=ready.normalizers, **options
    )
    versions: dict[str, Rows | str] = {entry.name: read_embeddings(entry.path, ready.tiles) for entry in made}
    versions |= {**ready.embeddings, **{name: name for name in choices.corrections}}
    return Embeddings(ready, made, versions)


def evaluate(
    encoded: Embeddings,
    out: Path,
    name: str,
    plan: Plan,
    *,
    workers: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[Evaluation]:
    """Ratios, degradation and correlations; ratios also with halves of tiles, as the paper has them."""
    values: dict[str, Any] = encoded.ready.design.values(encoded.ready.tiles)
    x: Any = encoded.versions[PLAIN]
    design = encoded.ready.design
    printed = design.find_printed(name)
    note = _describe_design(design, printed)
    tasks = [(Dataset(name, encoded.versions, x, **values, note=note, printed=printed), plan)]
    if design.units:
        own = _select_rows(encoded.versions)
        alone = Dataset(f"{name}_{TILES}", own, x, values["domain"], note=AS_PAPER, printed=printed)
        tasks.append((alone, plan))
    return evaluate_all(tasks, out, workers=workers, progress=tell)


def _select_rows(versions: Mapping[str, Rows | str]) -> dict[str, Rows | str]:
    return {name: value for name, value in versions.items() if not isinstance(value, str)}


def _describe_design(design: Design, printed: str | None) -> str:
    said = str(design)
    text = [f"{said[:1].upper()}{said[1:]}."]
    if design.units:
        text.append(f"Each {' × '.join(design.units)} goes whole to one half, and to training or to testing.")
    if not design.label:
        text.append("Without a label there is no model, so there are ratios only.")
    if printed is not None:
        sources = published.DATASETS[printed]
        text.append(f"In print, {_list(sources)} are {_list(sources.values())}.")
    return " ".join(text)


def _list(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}"
