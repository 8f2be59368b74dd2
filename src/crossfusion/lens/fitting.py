"""The rows that a lens is fitted on: read in chunks, as moments, as a sample, or once more around the group means."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crossfusion._base import (
    NAN_OPTIONS,
    CodeArray,
    FloatArray,
    InputError,
    arg,
    as_names,
    check_lens,
    check_option,
    factors,
    find_finite_rows,
    map_lazily,
    map_rows,
    split_rows,
)
from crossfusion.io import ManifestJoin, Sample, Source, add_keys, engines, open_rows, open_sources, reduce_sources
from crossfusion.lens.composition import Lens
from crossfusion.lens.step import Step
from crossfusion.summary import Summary

ALL_ROWS = "rows"  # the factor by which all rows are one group
SAMPLE_BYTES = 256 * 2**20  # bytes of the rows that a lens is fitted on, at most
SAMPLE_ROWS = 20_000  # number of these


@dataclass(frozen=True)
class Training:
    """Sources of the rows that a lens is fitted on.

    Parameters
    ----------
    sources : list of Source
        The rows. What an engine reads by its own means has moments, but no sample.
    groups : tuple of str
        Factors whose values define groups; none if all rows are one group.
    nan : {"raise", "drop"}
        What to do about rows that are not finite.
    after : Lens or None
        The lens through which they are seen.
    engine : object
        Who reads them.
    joined : ManifestJoin or None
        The manifest that has been joined to them.
    """

    sources: Sequence[Any]
    groups: tuple[str, ...] = ()
    nan: str = "raise"
    after: Lens | None = None
    engine: Any = "local"
    joined: ManifestJoin | None = None

    @cached_property
    def summary(self) -> Summary:
        """Moments of the groups."""
        return self._reduce(self.sources)

    def _reduce(self, sources: Sequence[Any]) -> Summary:
        grouped = [] if self.groups else [add_keys(source, {ALL_ROWS: 0}, [ALL_ROWS]) for source in sources]
        options = {"engine": self.engine, "nan": self.nan, "joined": self.joined, "lens": self.after}
        found = reduce_sources(grouped or sources, **options)
        return found.rollup(self.groups) if self.groups else found.rollup([ALL_ROWS])

    def draw(self, seed: int, rows: int = SAMPLE_ROWS) -> tuple[Summary, NDArray[Any], Any]:
        """Moments of the groups, some of the rows, seen through the lens, and the factors of these, in one pass."""
        if self._readable:
            sample = Sample(seed, rows, SAMPLE_BYTES)
            summary, drawn = self._reduce(sample.watch(self.sources)), sample.rows()
            assert drawn is not None  # as there are moments
        else:
            (source,), summary = self.sources, self.summary
            drawn = engines.draw(source, rows, float(summary.moments.count.sum()), seed, self.engine)
        x = drawn.x if self.after is None else map_rows(self.after, drawn.x, "the sample")
        return summary, np.asarray(x), drawn.keys

    def draw_gaps(self, seed: int, rows: int) -> FloatArray:
        """Some of the rows, as differences from the mean of their group."""
        summary, sample, keys = self.draw(seed, rows)
        place = {label: k for k, label in enumerate(factors.list_labels(summary.keys))}
        gaps: FloatArray = sample - summary.moments.mean[self._encode(keys, len(sample), place)]
        return gaps

    @property
    def _readable(self) -> bool:
        """Whether the rows pass through this process, or Dask or Spark keeps them."""
        return all(isinstance(source, Source) for source in self.sources)

    def gaps(self) -> Iterator[FloatArray]:
        """All finite rows, as differences from the mean of their group, some at a time, in a second pass.

        Of what Dask or Spark keeps, a sample.
        """
        if not self._readable:
            yield self.draw_gaps(0, SAMPLE_ROWS)
            return
        place = {label: k for k, label in enumerate(factors.list_labels(self.summary.keys))}
        mean = self.summary.moments.mean
        for source in self.sources:
            for chunk in source.chunks():
                codes = self._encode(chunk.keys, chunk.rows.shape[0], place)
                rows = chunk.rows if self.after is None else map_lazily(self.after, chunk.rows, source.name)
                for start, block in split_rows(rows):
                    dense = block if isinstance(block, np.ndarray) else block.toarray()
                    finite = find_finite_rows(dense)
                    yield (dense - mean[codes[start : start + len(dense)]])[finite]

    def _encode(self, keys: Any, rows: int, place: Mapping[Any, int]) -> CodeArray:
        """Positions of the rows' groups in the summary; those of groups without a finite row do not matter."""
        if not self.groups:
            return np.zeros(rows, np.int32)
        codes, present = factors.encode(keys.select(list(self.groups)))
        return np.array([place.get(label, 0) for label in factors.list_labels(present)], np.int32)[codes]

    def follow(self, step: Step) -> Lens:
        """The lens of the step, after the one that the rows are seen through."""
        return Lens((step,)) if self.after is None else self.after | Lens((step,))


def open_training(source: Any, by: Any, vectors: Any, nan: str, after: Any) -> Training:
    """Open the source that a user passed."""
    check_option(nan, NAN_OPTIONS, "nan")
    check_lens(after, name="after")
    if after is not None and not isinstance(after, Lens):
        raise InputError("after", after, "is not a lens of crossfusion.lens", "make one with its functions")
    engine = engines.choose_engine("auto", source)
    if by is None and len(getattr(source, "shape", ())) == 2 and vectors is None:
        by = {ALL_ROWS: np.zeros(source.shape[0], np.int8)}  # which keeps the names of the columns
    if by is None:
        return Training(_open_ungrouped(source, vectors, engine), nan=nan, after=after)
    names = as_names([*by] if isinstance(by, Mapping) else by, "by", needed=True)
    sources, _ = open_sources(source, by if isinstance(by, Mapping) else names, vectors, engine=engine)
    return Training(sources, names, nan, after, engine)


def _open_ungrouped(source: Any, vectors: Any, engine: Any) -> Sequence[Any]:
    if engine != "local":
        raise InputError(
            "source",
            problem="is a table of Dask or Spark, which is read by groups only",
            remedy=f"pass a sample of its rows in memory or, to standardize or whiten, groups in {arg('by')}",
        )
    return open_rows(source, (), vectors)
