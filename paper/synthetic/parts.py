"""The study in pieces: each is computed by itself, and kept as one file that says what it was made with."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossfusion import InputError, __version__
from crossfusion.study import write_table
from paper.synthetic.measures import NAMES, measure
from paper.synthetic.populations import pairs, seed_of
from paper.synthetic.settings import VARIANTS, Settings

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"crossfusion.synthetic"
DRAWS = 1  # number of the way in which populations are drawn: raise it when the same seed gives other rows
BLOCK = 5  # trials of a piece, the same whatever the number of trials, so that more trials add pieces
KEYS = ("experiment", "variant", "dim", "size", "level", "trial", "seed")


@dataclass(frozen=True)
class Part:
    """Some trials of one experiment at one dimension and size."""

    experiment: str
    variant: str
    dim: int
    size: int
    start: int
    stop: int

    @property
    def name(self) -> str:
        """Name of the file."""
        what = "-".join(filter(None, (self.experiment, self.variant)))
        return f"{what}-d{self.dim}-n{self.size}-t{self.start:03d}-{self.stop:03d}.parquet"

    def count(self, settings: Settings) -> int:
        """Number of pairs."""
        return len(settings.levels(self.experiment)) * (self.stop - self.start)

    def cost(self, settings: Settings) -> float:
        """How long it takes, in no unit."""
        return self.count(settings) * self.size**2 * (self.dim + 100.0)

    def made_with(self, settings: Settings) -> dict[str, Any]:
        """All that its numbers depend on: two parts go together if this is equal."""
        exact = self.size <= settings.exact_up_to
        transport: dict[str, Any] = {"transport": "exact"}
        if not exact:
            transport = {"transport": "sinkhorn", "epsilon": settings.epsilon, "tolerance": settings.tolerance}
        return {"version": __version__, "draws": DRAWS} | settings.choices(self.experiment) | transport


def parts_of(settings: Settings) -> list[Part]:
    """All pieces that settings ask for, in the order of the results."""
    starts = range(0, settings.trials, BLOCK)
    return [
        Part(experiment, variant, dim, size, start, min(start + BLOCK, settings.trials))
        for experiment in settings.experiments
        for variant in VARIANTS.get(experiment, ("",))
        for dim in settings.dims
        for size in settings.sizes
        for start in starts
    ]


def compute(settings: Settings, part: Part) -> "pa.Table":
    """Draw and measure the pairs of a piece."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(_rows(settings, part)), schema())


def _rows(settings: Settings, part: Part) -> Iterator[dict[str, Any]]:
    about = {name: getattr(part, name) for name in ("experiment", "variant", "dim", "size")}
    for trial in range(part.start, part.stop):
        drawn = pairs(settings, part.experiment, part.dim, part.size, trial, variant=part.variant)
        for level, (a, b) in drawn:
            found = measure(settings, part.experiment, part.size, a, b)
            yield about | {"level": level, "trial": trial, "seed": seed_of(trial)} | found


def schema() -> "pa.Schema":
    """Columns of the results: a row a trial and level."""
    import pyarrow as pa

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    kinds = dict(zip(KEYS, (text, text, whole, whole, number, whole, whole), strict=True))
    return pa.schema([*kinds.items(), *((name, number) for name in NAMES)])


def write_part(folder: Path, part: Part, settings: Settings, table: "pa.Table") -> None:
    """Keep a finished piece."""
    about = json.dumps(part.made_with(settings)).encode()
    write_table(folder / part.name, table.replace_schema_metadata({KEY: about}))


def read_part(folder: Path, part: Part, settings: Settings) -> "pa.Table | None":
    """A piece that was kept, or None if it is missing or damaged; one of other settings is refused."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(folder / part.name, page_checksum_verification=True).read()
        about = json.loads(table.schema.metadata[KEY])
    except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
        return None
    _check_same(folder.parent, part, about, part.made_with(settings))
    table = table.replace_schema_metadata(None)
    whole = table.schema.equals(schema()) and table.num_rows == part.count(settings)
    return table if whole else None


def _check_same(folder: Path, part: Part, there: Any, here: dict[str, Any]) -> None:
    if there == here:
        return
    there = there if isinstance(there, dict) else {}
    name = next((name for name in here if there.get(name) != here[name]), "other settings")
    raise InputError(
        problem=f"{folder} holds results of {part.experiment} made with other settings"
        f" ({name} {there.get(name)} there, {here.get(name)} here)",
        remedy="choose another folder, or delete that one",
    )
