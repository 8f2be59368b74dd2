"""What the numbers say, in sentences that are made from them."""

from collections.abc import Sequence

import numpy as np

from crossfusion import Study
from crossfusion.study import Association, Evaluation, PageTable
from paper import printed
from paper.real import questions
from paper.real.overview import NONE, mean_ratio, over_pairs, rates, select_studies

CLOSE = 0.05  # difference of correlations that is none


def describe_results(
    found: Sequence[Evaluation], *, intervals: PageTable | None = None, levels: PageTable | None = None
) -> list[str]:
    """Paragraphs about what was found.

    Parameters
    ----------
    found : sequence of Evaluation
        All data sets.
    intervals : Table, optional
        CFD of two scanners with intervals, a row a version.
    levels : Table, optional
        Centres against tissue, of the tiles of five centres.

    Returns
    -------
    list of str
        Sentences; every number in them is computed.
    """
    studies = select_studies(found)
    said = [
        *_describe_prediction(studies),
        *_uncertain(studies),
        *_forms(studies, found),
        *_describe_centering(studies),
    ]
    said += [_versions(r.name, r.study) for r in found if r.study is not None and len(r.study.domains) == 2]
    said += [] if intervals is None else [_with_intervals(intervals)]
    said += _scale(found)
    return said if levels is None else [*said, _tissue(levels)]


def _describe_prediction(studies: dict[str, Study]) -> list[str]:
    """Which distance goes closest with degradation, and where CFD stands."""
    said, near, low, own = [], [], [], {}
    for name, study in studies.items():
        entries = over_pairs(study)
        first = min(entries.values(), key=lambda entry: entry.rank)
        entry = own[name] = entries["cfd"]
        close = sum(first.pearson - other.pearson <= CLOSE for other in entries.values())
        said.append(
            f"{name}: models lose {rates(study)[NONE]:.0%} of their score on average over {entry.points} directed"
            f" pairs. {first.distance} goes closest with it (r = {first.pearson:.2f}; {close} of {len(entries)}"
            f" distances lie within {CLOSE} of that); CFD has r = {entry.pearson:.2f}, place {entry.rank}"
            f"{_limits(entry.pearson_lower, entry.pearson_upper)}."
        )
        near += [name] if first.pearson - entry.pearson <= CLOSE else []
        low += [name] if 2 * entry.rank > len(entries) + 1 else []
    return [*said, _compare_data_sets(own, near, low)] if studies else []


def _compare_data_sets(own: dict[str, Association], near: Sequence[str], low: Sequence[str]) -> str:
    order = sorted(own, key=lambda name: own[name].pearson)
    return (
        f"So CFD goes closest with degradation on {order[-1]} and least on {order[0]}. It is as good as the best,"
        f" within {CLOSE}, on {_join_names(near)}; its place is in the lower half on {_join_names(low)}."
    )


def _uncertain(studies: dict[str, Study]) -> list[str]:
    """Whether intervals tell any distance from CFD."""
    apart, known = [], 0
    for study in studies.values():
        entries = over_pairs(study)
        own = entries["cfd"].pearson_lower, entries["cfd"].pearson_upper
        for entry in entries.values():
            other = entry.pearson_lower, entry.pearson_upper
            known += entry.distance != "cfd" and None not in (*own, *other)
            apart += [entry.distance] if _are_apart(own, other) else []
    if not studies:
        return []
    counts = " or ".join(map(str, sorted({len(study.domains) for study in studies.values()})))
    return [
        f"With {counts} domains a data set, the interval of CFD's correlation overlaps that of the other distance in"
        f" {known - len(apart)} of {known} comparisons: which distance foresees best is not decided by such data."
    ]


def _are_apart(a: tuple[float | None, float | None], b: tuple[float | None, float | None]) -> bool:
    """Whether two intervals have nothing in common; False where one is not known."""
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        return False
    return a[0] > b[1] or b[0] > a[1]


def _limits(low: float | None, high: float | None) -> str:
    return "" if low is None else f", interval {low:.2f} to {high:.2f}"


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none of them"


def _forms(studies: dict[str, Study], found: Sequence[Evaluation]) -> list[str]:
    """What the unbiased and the conditional form change."""
    pairs = {name: over_pairs(study) for name, study in studies.items()}
    gaps = [abs(e["cfd"].pearson - e["cfd_unbiased"].pearson) for e in pairs.values() if "cfd_unbiased" in e]
    said = []
    if gaps:
        change = "less than 0.001" if max(gaps) < 0.001 else f"at most {max(gaps):.3f}"
        said.append(
            f"The unbiased form changes CFD's correlation by {change}, as all pairs of a data set are"
            " measured on equally many rows. It matters where nothing differs: for halves of one domain the plug-in is"
            f" {_range(found, 'cfd')} of the distance of two domains, the unbiased form"
            f" {_range(found, 'cfd_unbiased')}{_describe_unlabeled(found)}."
        )
    given = {name: (e["cfd"], e["cfd_given_label"]) for name, e in pairs.items() if "cfd_given_label" in e}
    if given:
        changes = ", ".join(
            f"{name} from {plain.pearson:.2f} to {fixed.pearson:.2f}" for name, (plain, fixed) in given.items()
        )
        said.append(
            f"Holding labels fixed (which needs the labels of both domains) takes CFD's correlation: {changes}."
        )
    return said


def _range(found: Sequence[Evaluation], distance: str) -> str:
    """Ratios of a distance over data sets."""
    values = [mean_ratio(result, distance, "ratio_of_means") for result in found if result.study is not None]
    return f"{100 * min(values):.1f} to {100 * max(values):.1f} %"


def _describe_unlabeled(found: Sequence[Evaluation]) -> str:
    """The same for data sets without a label, whose rows are not independent."""
    return "".join(
        f"; on {result.name}, where rows of one unit are alike and neither form knows of units,"
        f" {100 * mean_ratio(result, 'cfd', 'ratio_of_means'):.1f} % and"
        f" {100 * mean_ratio(result, 'cfd_unbiased', 'ratio_of_means'):.1f} %"
        for result in found
        if result.study is None and {"cfd", "cfd_unbiased"} <= {*next(iter(result.rdr.values())).distances}
    )


def _describe_centering(studies: dict[str, Study]) -> list[str]:
    """That centring drives CFD to zero, whatever is lost."""
    left = {name: rates(study) for name, study in studies.items() if "center" in study.corrections}
    if not left:
        return []
    losses = ", ".join(f"{name} {loss['center']:.0%} (before {loss[NONE]:.0%})" for name, loss in left.items())
    return [
        "Centring every domain sets CFD to zero by construction, whatever becomes of the task. CDDR after it:"
        f" {losses}. A correlation over corrections mostly says that CFD is zero, or nearly so, after all but one of"
        " them."
    ]


def _versions(name: str, study: Study) -> str:
    """Two domains: as many points as corrections."""
    entry = next(a for a in study.associations if (a.over, a.distance) == ("corrections", "cfd"))
    lost = ", ".join(f"{version} {loss:.1%}" for version, loss in rates(study).items())
    four = printed.exact_pvalue(printed.DISTANCES["CFD"], printed.CDDR)
    ways = [[o for o in study.outcomes if o.train == domain] for domain in study.domains]
    limits = [{o.correction: (o.lower, o.upper) for o in way} for way in ways]
    apart = [version for version in study.corrections if any(_are_apart(way[NONE], way[version]) for way in limits)]
    said = f"Intervals of {_join_names(apart)} lie" if apart else "No version has an interval that lies"
    return (
        f"{name}: CDDR by version: {lost}. {said} apart from that"
        f" of the rows as they are. Over these {entry.points} points CFD has r = {entry.pearson:.2f}"
        f" (one-sided p = {entry.pearson_pvalue or float('nan'):.2f}). So few points make no correlation, and the"
        f" paper's table has four: among their {len(_orders())} orders, its CFD column has p = {four:.2f} and nothing"
        f" could have less than {1 / len(_orders()):.2f}."
    )


def _with_intervals(table: PageTable) -> str:
    values = ", ".join(f"{version} {value} ({limits})" for version, _, value, limits, *_ in table.rows)
    return f"mitos_he: unbiased CFD of the scanners with its {questions.LEVEL:.0%} interval, slides as pairs: {values}."


def _orders() -> range:
    return range(int(np.prod(range(1, len(printed.METHODS) + 1))))


def _scale(found: Sequence[Evaluation]) -> list[str]:
    """That the ratio depends on a measure's scale."""
    said = []
    for result in found:
        names = result.rdr[NONE].distances
        stands = {name: mean_ratio(result, name, "ratio_of_means") for name in names}
        roots = {name: mean_ratio(result, name, "ratio_root") for name in names}
        said.append(f"{result.name} {_place(stands)} and {_place(roots)}")
    return [
        "RDR depends on a measure's scale: CFD grows with the square of a shift, most others with the shift. CFD's"
        " place among all distances that have a ratio, the smallest first, as they stand and with all brought to the"
        f" first power: {', '.join(said)}."
    ]


def _place(values: dict[str, float]) -> str:
    known = sorted(abs(value) for value in values.values() if np.isfinite(value))
    return f"{1 + known.index(abs(values['cfd']))} of {len(known)}"


def _tissue(levels: PageTable) -> str:
    shares = {(row[0], row[1]): row[-2] for row in levels.rows}
    versions = list(dict.fromkeys(row[0] for row in levels.rows))
    parts = ", ".join(f"{v}: {shares[v, 'centre']} centres, {shares[v, 'tile']} tiles of one centre" for v in versions)
    return (
        f"camelyon17_he: the distance between tiles splits into {parts}. Tiles dealt to centres at random would give"
        f" centres about {levels.rows[0][-1]}: with so few tiles, tissue outweighs the centre."
    )
