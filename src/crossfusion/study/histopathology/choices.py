"""What is asked of a study of tissue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crossfusion._base import FileError, InputError, arg, check_known
from crossfusion.evaluation import corrections as known_corrections
from crossfusion.evaluation import respell_correction
from crossfusion.study.histopathology.versions import PLAIN, needs_reference, parse_normalizers


@dataclass(frozen=True)
class Choices:
    """What is asked for.

    Parameters
    ----------
    layout : str
        Of the data: its usual factors.
    encoder : str
        As ``crossfusion embed`` takes it.
    normalizers : sequence of str
        SPEC or NAME=SPEC each; ``none`` is always there.
    between, label, units : sequence of str
        Factors, where they are not those of the layout; ``none`` for no label or no units.
    reference : str, optional
        A file, or FACTOR=VALUE.
    corrections : sequence of str
        Of the embeddings, names of ``crossfusion.corrections``.
    embeddings : mapping of str to path
        Files made elsewhere of the same tiles, by the names that tables are to show.
    device, precision : str
        As in ``encoder``.
    batch, workers
        As in ``embed``; as many processes evaluate.
    """

    layout: str
    encoder: str
    normalizers: Sequence[str] = ()
    between: Sequence[str] = ()
    label: Sequence[str] = ()
    units: Sequence[str] = ()
    reference: str | None = None
    corrections: Sequence[str] = ()
    embeddings: Mapping[str, Path] = field(default_factory=dict)
    device: str = "auto"
    precision: str = "auto"
    batch: int = 32
    workers: int | None = None

    def specs(self) -> dict[str, str]:
        """Normalizers by name; whatever is asked for twice or is not known is refused here, before any work."""
        found = parse_normalizers(self.normalizers)
        check_known(
            map(respell_correction, self.corrections),
            [name for name in known_corrections if name != PLAIN],
            "correction",
            "crossfusion",
        )
        names = [*found, *self.embeddings, *self.corrections]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                problem=f"two versions are called {twice!r}", remedy="tell them apart as NAME=SPEC or NAME=FILE"
            )
        for name, path in self.embeddings.items():
            if not path.is_file():
                raise FileError(path, "does not exist", f"check the path after {arg('embeddings')} {name}=")
        if self.reference is not None and not needs_reference(found):
            raise InputError(
                "reference", problem="goes with the normalizers reinhard and macenko", remedy="leave it out"
            )
        return found
