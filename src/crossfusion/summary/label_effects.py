"""What a version does to single labels and pairs of labels, against a reference version."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossfusion._base import FloatArray, InputError, arrow, as_names, factors
from crossfusion.fusion import Fusion, Pairwise, Record, split_by_stratum
from crossfusion.summary.moment_table import Factors
from crossfusion.summary.summary import Summary

MIN_KEPT = 0.5  # of the reference's distance between two labels: less is lost
NOISE = 3  # times the bias of the plug-in, which a distance may be too small by
COLLAPSED_SHARE = 0.05  # of a label's spread in the reference, relative to all labels: less has collapsed
MAX_PAIRED_LABELS = 500  # labels that are compared pair by pair


@dataclass(frozen=True)
class Loss(Record):
    """Biology of the reference that one version lost.

    Parameters
    ----------
    labels : tuple
        The two labels of a pair, one label, or no label, for all labels together.
    kind : {"closer", "collapsed"}
        "closer" if the distance between the two labels, between the one label and all others, or between all labels is
        less than half of the reference's; "collapsed" if the rows of the one label barely vary anymore.
    """

    labels: tuple[Hashable, ...]
    kind: str


@dataclass(frozen=True)
class LabelEffect(Record):
    """Both distances of one label in one version: how far its groups are apart, and how far it is from other labels.

    Parameters
    ----------
    version : str
        The version.
    label : value
        The label, a value of ``given``.
    rows, groups : int
        Number of rows with this label, and of groups that contain such rows.
    batch : Fusion or None
        Distance between the groups among the rows of this label; None if there is only one group.
    biology : float
        Unbiased distance between this label and all others, within groups.
    kept : float
        `biology` as a share of the reference's; NaN if that is not above 0.
    """

    version: str
    label: Hashable
    rows: int
    groups: int
    batch: Fusion | None
    biology: float
    kept: float


@dataclass(frozen=True, eq=False)
class LabelPairs(Record):
    """Distances between all pairs of labels in each version, against the reference.

    Parameters
    ----------
    labels : tuple of pairs
        The two labels of each pair.
    biology : array of shape (versions, pairs)
        Unbiased distance between the two labels alone, within groups; NaN if no group contains both.
    kept : array of shape (versions, pairs)
        `biology` as a share of the reference's; NaN where the reference shows no distance beyond its sampling error.
    lost : array of shape (versions, pairs)
        Whether less than half is kept, beyond the sampling error.
    """

    labels: tuple[tuple[Hashable, Hashable], ...]
    biology: FloatArray
    kept: FloatArray
    lost: Any


def compare_label_pairs(
    versions: Mapping[str, Summary], between: Factors, given: Factors, reference: str, weights: str, scale: str | None
) -> LabelPairs | None:
    """Compare the distances of all pairs of labels with the reference; None if there are too many labels."""
    if len(next(iter(versions.values())).rollup(given)) > MAX_PAIRED_LABELS:
        return None
    found = [version.pairwise(given, given=between, weights=weights, scale=scale) for version in versions.values()]
    upper = np.triu_indices(len(found[0].labels), 1)
    labels = tuple((found[0].labels[a], found[0].labels[b]) for a, b in zip(*upper, strict=True))
    plug_in, biology = (
        np.array([_read_pairs(pairs, name)[upper] for pairs in found]) for name in ("distance", "unbiased")
    )
    own = list(versions).index(reference)
    return LabelPairs(labels, biology, *compare_kept(biology, plug_in, own))


def _read_pairs(pairs: Pairwise, name: str) -> FloatArray:
    return np.where(pairs.overlap > 0, getattr(pairs, name), np.nan)


def compare_kept(biology: FloatArray, plug_in: FloatArray, reference: int) -> tuple[FloatArray, Any]:
    """Compute the share of the reference's distance that is left, and whether less than half is, beyond the noise."""
    with np.errstate(invalid="ignore"):  # infinity less infinity
        noise = NOISE * (plug_in - biology)
    before = np.where(biology[reference] > noise[reference], biology[reference], np.nan)
    with np.errstate(invalid="ignore"):  # infinity over infinity
        kept = biology / before
        lost = biology + noise < MIN_KEPT * before
    kept[reference] = np.where(np.isnan(before), np.nan, 1.0)
    lost[reference] = False
    return kept, lost


def find_losses(
    versions: Mapping[str, Summary],
    between: Factors,
    given: Factors,
    reference: str,
    *,
    all_labels: Sequence[Fusion],
    rest: Sequence[Mapping[Hashable, Fusion]],
    pairs: LabelPairs | None,
) -> list[tuple[Loss, ...]]:
    """Find what each version lost: pairs of labels, single labels (by `rest`), and all labels together."""
    own, names = list(versions).index(reference), list(rest[0])
    merged = _find_lost([list(found.values()) for found in rest], own)
    gone = _find_lost([[found] for found in all_labels], own)
    collapsed = find_collapsed(versions, between, given, reference)
    return [
        (
            *(() if pairs is None else (Loss(pairs.labels[p], "closer") for p in np.flatnonzero(pairs.lost[k]))),
            *(Loss((names[p],), "closer") for p in np.flatnonzero(merged[k]) if len(names) > 2),  # two are a pair
            *(Loss((label,), "collapsed") for label in collapsed[k]),
            *([Loss((), "closer")] if gone[k, 0] else []),
        )
        for k in range(len(versions))
    ]


def _find_lost(fusions: Sequence[Sequence[Fusion]], reference: int) -> Any:
    """Find the distances of each version that are less than half of the reference's."""
    unbiased, plug_in = (np.array([read_distances(row, name) for row in fusions]) for name in ("unbiased", "distance"))
    return compare_kept(unbiased, plug_in, reference)[1]


def read_distances(fusions: Iterable[Fusion], name: str) -> FloatArray:
    """Read one distance of several comparisons, NaN where there is none."""
    return np.array([np.nan if (v := getattr(fusion, name)) is None else v for fusion in fusions])


def find_collapsed(
    versions: Mapping[str, Summary], between: Factors, given: Factors, reference: str
) -> list[tuple[Hashable, ...]]:
    """Find the labels of each version whose rows barely vary anymore, compared with the other labels."""
    spread = {name: _measure_spread(version, between, given) for name, version in versions.items()}
    names = factors.list_labels(next(iter(versions.values())).rollup(given).keys)
    with np.errstate(invalid="ignore", divide="ignore"):
        left = [own / spread[reference] for own in spread.values()]
    return [tuple(names[k] for k in np.flatnonzero(share < COLLAPSED_SHARE)) for share in left]


def _measure_spread(version: Summary, between: Factors, given: Factors) -> FloatArray:
    """Measure the variance of each label's rows within groups, over the mean of all labels."""
    design = version._make_design(given, between)
    rows = np.bincount(design.group, weights=design.cells.count)
    spread = np.bincount(design.group, weights=design.cells.count * design.cells.dispersion) / rows
    mean = float(spread.mean())
    return np.asarray(spread / mean if mean > 0 else np.ones_like(spread))


def measure_labels(
    versions: Mapping[str, Summary],
    between: Factors,
    given: Factors,
    reference: str,
    *,
    rest: Sequence[Mapping[Hashable, Fusion]],
    units: Factors | None,
    weights: str,
    level: float | None,
    min_units: int,
    scale: str | None,
) -> tuple[LabelEffect, ...]:
    """Measure both distances of each label in each version, in the order of the labels."""
    options: dict[str, Any] = {"units": units, "weights": weights, "level": level, "min_units": min_units}
    options |= {"scale": scale}
    apart = dict(zip(versions, rest, strict=True))
    found = []
    for name, version in versions.items():
        for label, own in _split_by_label(version, given):
            groups = len(own.rollup(between))
            batch = _compare_groups(own, between, options) if groups > 1 else None
            biology, before = (np.nan if (v := apart[of][label].unbiased) is None else v for of in (name, reference))
            kept = biology / before if before > 0 else np.nan
            found.append(LabelEffect(name, label, int(own.moments.count.sum()), groups, batch, biology, kept))
    return tuple(found)


def _split_by_label(version: Summary, given: Factors) -> Iterator[tuple[Hashable, Summary]]:
    """The rows of each label."""
    code, labels = factors.encode(version.keys.select(list(as_names(given, "given"))))
    for label, members in zip(factors.list_labels(labels), split_by_stratum(code), strict=True):
        yield label, version._replace_cells(version.keys.take(arrow.from_numbers(members)), version.moments[members])


def _compare_groups(summary: Summary, between: Factors, options: Mapping[str, Any]) -> Fusion:
    """Distance between groups; without an unbiased one if the units give no error."""
    try:
        return summary.cfd(between, **options)
    except InputError:
        return replace(summary.cfd(between, weights=options["weights"], scale=options["scale"]), unbiased=None)
