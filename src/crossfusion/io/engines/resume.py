"""What is done of a long read, kept in a file, so that the same command goes on where it was interrupted."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

from crossfusion._base import CrossfusionError, FileError
from crossfusion._version import __version__
from crossfusion.io.reduction import Reduction, RowCounts, RunningSum, merge_reductions
from crossfusion.summary import Summary, storage

SAVE_SECONDS = 20.0  # seconds between two states that are kept
MIN_WORK_RATIO = 20  # times as long as keeping a state takes, at the least, for the work between two
MIN_WORK_SECONDS = 5.0  # seconds of work that are worth keeping when it is interrupted


class Checkpoint:
    """Keeps the sum of the partitions that are done.

    Parameters
    ----------
    target : Path
        What the work will write; the state is kept beside it, under a name of its own for each `about`.
    about : object
        What is read and how, as plain values: only a state of the very same is gone on with.
    """

    def __init__(self, target: Path, about: Any) -> None:
        self.rows = 0  # that were read before
        self._about = blake2b(json.dumps([__version__, about], default=str).encode(), digest_size=16).hexdigest()
        self.path = target.with_name(f".{target.name}.{self._about[:8]}.resume")
        self._begun = time.monotonic()
        self._next = self._begun + SAVE_SECONDS

    def load(self, sources: int) -> list[tuple[int, Reduction]] | None:
        """For each source, how many of its partitions are done, and their sum; None where nothing of use was kept."""
        if not self.path.exists():
            return None
        try:
            keys, moments, facts = storage.read(self.path, unfinished=True)
            kept = facts[storage.RESUME_FACT]
            if kept["about"] != self._about or len(kept["sources"]) != sources:
                return None
            found = [(number, Reduction(name, None, RowCounts(**seen))) for number, name, seen in kept["sources"]]
        except (CrossfusionError, KeyError, TypeError, ValueError):
            return None
        whole = Summary(keys, moments, facts["dtype"]).with_features(facts["features"])
        number, first = found[0]
        self.rows = sum(reduction.seen.rows for _, reduction in found)
        return [(number, Reduction(first.name, whole, first.seen)), *found[1:]]  # which source it is of does not matter

    def look(self, totals: Sequence[RunningSum]) -> None:
        """Keep the state if it is time to."""
        if time.monotonic() > self._next:
            self._keep(totals)

    def keep_interrupted(self, totals: Sequence[RunningSum]) -> None:
        """Keep the state of work that ends here, if it is worth it."""
        if time.monotonic() > self._begun + MIN_WORK_SECONDS:
            self._keep(totals)

    def _keep(self, totals: Sequence[RunningSum]) -> None:
        start = time.monotonic()
        reductions = [total.total() for total in totals]
        whole = merge_reductions(reductions)
        if whole.summary is not None and not whole.lost and whole.match is None:
            sources = [
                [total.number, reduction.name, asdict(total.seen)]
                for total, reduction in zip(totals, reductions, strict=True)
            ]
            facts = {"dtype": whole.summary.dtype, "dropped": 0, "tags": {}, "batches": []}
            facts["features"] = None if whole.summary.features is None else list(whole.summary.features)
            facts |= {
                "creator": f"crossfusion {__version__}",
                storage.RESUME_FACT: {"about": self._about, "sources": sources},
            }
            with suppress(FileError):  # a full disk shows when the result is written; until then, work goes on
                storage.write(self.path, whole.summary.keys, whole.summary.moments, facts)
                self.path.chmod(0o600)  # groups that are too small to be shared are in it
        cost = time.monotonic() - start
        self._next = time.monotonic() + max(SAVE_SECONDS, MIN_WORK_RATIO * cost)

    def done(self) -> None:
        """Forget what was kept."""
        self.path.unlink(missing_ok=True)
