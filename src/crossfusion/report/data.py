"""What a report is made of: a summary, and some of the rows where there are any."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from crossfusion._base import LOST_GROUPS, CrossfusionWarning, InputError, RowLens, arg, check_lens, map_rows
from crossfusion.io import Rows, Sample, Source, open_sources, reduce_sources
from crossfusion.report.question import Question
from crossfusion.summary import Summary, read_summary, storage


@dataclass(frozen=True)
class ReportData:
    """A summary by all factors of a question, and what else is known."""

    summary: Summary
    question: Question
    rows: Rows | None = None  # some of the rows, of all versions
    seen: int = 0  # rows that these were drawn from
    lost: tuple[str, ...] = ()  # what was said of groups none of whose rows could be used

    @property
    def whole(self) -> bool:
        """Whether the rows are all there are."""
        return self.rows is not None and len(self.rows.x) == self.seen - self.summary.dropped


def read_data(
    source: Any,
    question: Question,
    by: Mapping[str, Any] | None,
    vectors: Any,
    nan: str,
    lens: RowLens | None = None,
) -> ReportData:
    """A summary, and some of the rows if there are any."""
    check_lens(lens, adds_factors=False)
    if isinstance(source, str | os.PathLike) and storage.is_summary(source):
        source = read_summary(source)
    if isinstance(source, Summary):
        if by is not None or vectors is not None or lens is not None:
            raise InputError(
                problem=f"{arg('by')}, {arg('vectors')} and {arg('lens')} apply only to rows",
                remedy="leave them out if source is a summary",
            )
        return ReportData(source, question)
    if by is not None:
        missing = [name for name in question.factors if name not in by]
        if missing:
            raise InputError(
                "by", problem=f"lacks {missing[0]!r}", remedy="pass an array for each factor that is named"
            )
        by = {name: by[name] for name in question.factors}
    sources, _ = open_sources(source, list(question.factors) if by is None else by, vectors)
    reduce = partial(reduce_sources, nan=nan, lens=lens)
    return summarize_and_sample(sources, question, reduce, lens)


def summarize_and_sample(
    sources: Sequence[Any],
    question: Question,
    reduce: Callable[[Sequence[Any]], Summary],
    lens: RowLens | None = None,
) -> ReportData:
    """Sources reduced to a summary, with some of their rows drawn on the way where they pass through this process.

    `lens` is the one that `reduce` applies; the drawn rows are seen through it too.
    """
    sample = Sample(question.seed)
    here = all(isinstance(source, Source) for source in sources)
    summary, lost = _record_lost_groups(lambda: reduce(sample.watch(sources) if here else sources))
    rows = sample.rows()
    if rows is not None and lens is not None:
        rows = replace(rows, x=map_rows(lens, rows.x, "the sample"), features=summary.features or ())
    return ReportData(summary, question, rows, sample.seen, lost)


def _record_lost_groups(work: Callable[[], Summary]) -> tuple[Summary, tuple[str, ...]]:
    """What some work gives, and its warnings of lost groups, which the page repeats."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrossfusionWarning)
        summary = work()
    for entry in caught:
        warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    said = (str(entry.message) for entry in caught)
    return summary, tuple(text for text in said if text.startswith(LOST_GROUPS))
