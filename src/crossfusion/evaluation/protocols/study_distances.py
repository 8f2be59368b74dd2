"""The distances of a study: every pair of domains, after every correction."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from crossfusion._base import CodeArray, align_index, as_names, as_rows, check_known, check_length, label_text
from crossfusion.evaluation.correctors import correct, corrections, respell_correction
from crossfusion.evaluation.correctors.domains import Domains, as_domains
from crossfusion.evaluation.correctors.harmony import load_harmony
from crossfusion.evaluation.protocols.degradation_result import Drop
from crossfusion.evaluation.protocols.measures import LabeledRows, Measure, zero_if_rounding
from crossfusion.evaluation.protocols.study_result import Outcome

Corrector = Callable[[Domains, Any], Domains]


def as_correctors(asked: Any, x: Any, rows: int) -> dict[str, Corrector]:
    """Corrections by name: what each makes of the rows. Those that cannot be had are refused before any work."""
    if not isinstance(asked, Mapping) or not asked:
        names = map(respell_correction, as_names(asked, "corrections", "correction", needed=True))
        asked = {name: name for name in names}
    return {str(name): _make_corrector(str(name), value, x, rows) for name, value in asked.items()}


def _make_corrector(name: str, value: Any, x: Any, rows: int) -> Corrector:
    if isinstance(value, str):
        value = respell_correction(value)
        check_known([value], list(corrections), "correction", "crossfusion")
        if value == "harmony":
            load_harmony()
        return lambda found, domain: as_domains(correct(found.x, domain, value), domain)
    (value,) = align_index("x", x, **{f"corrections[{name!r}]": value})
    ready = as_rows(value, f"corrections[{name!r}]")
    check_length(len(ready), rows, f"corrections[{name!r}]", "x")
    return lambda _, domain: as_domains(ready, domain, f"corrections[{name!r}]")


def measure_pairs(
    found: Domains,
    label: CodeArray,
    measures: Sequence[Measure],
    size: int,
    repeats: int,
    seed: int,
    tell: Callable[[str], None],
) -> dict[frozenset[int], dict[str, float]]:
    """Each distance of each pair of domains: the average over random samples of `size` rows of both."""
    values = {}
    for a, b in combinations(range(len(found.names)), 2):
        tell(f"distances of {label_text(found.names[a])} and {label_text(found.names[b])}")
        draw = np.random.default_rng([seed, a, b])
        whole = all(found.counts[k] == size for k in (a, b))
        sampled = []
        for _ in range(1 if whole else repeats):
            rows = [draw.choice(found.rows(k), size, replace=False) for k in (a, b)]
            groups = [LabeledRows(found.x[own], label[own]) for own in rows]
            sampled.append([zero_if_rounding(measure.name, measure.call(*groups)) for measure in measures])
        means = np.mean(sampled, axis=0).tolist()
        values[frozenset((a, b))] = dict(zip((measure.name for measure in measures), means, strict=True))
    return values


def make_outcome(correction: str, distances: Mapping[str, float], lost: Drop) -> Outcome:
    """One row of a study."""
    return Outcome(
        correction, lost.train, lost.test, distances, lost.within, lost.cross, lost.cddr, lost.lower, lost.upper
    )
