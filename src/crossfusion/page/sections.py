"""The sections of a page."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from crossfusion.hierarchy import Hierarchy
from crossfusion.kernels import FloatArray
from crossfusion.page import figures
from crossfusion.page.answers import Answers, value
from crossfusion.page.markup import Table, element, escaped, named, number, percent, scrolling, table
from crossfusion.pairwise import Pairwise

SHOWN = 12  # groups of a matrix; of more, those with the most rows are shown
BESIDE = 5  # groups up to which two matrices fit beside each other
PLUG_IN = '<span class="mark" title="plug-in: a group of one row has no unbiased value">*</span>'


def headline(title: str, answers: Answers) -> str:
    """What was found, in words with numbers."""
    between, given = named(answers.between), named(answers.given)
    facts = [
        (f"CFD({between})", value(answers.plain), f"between {between} groups as the rows come"),
        (f"CFD({between} | {given})", value(answers.adjusted), f"between {between} groups of the same {given}"),
        (f"CFD({given} | {between})", value(answers.biology), f"between {given} groups of the same {between}"),
    ]
    tiles = "".join(
        element("div", element("dt", name) + element("dd", element("b", number(found)) + element("span", text)))
        for name, found, text in facts
    )
    lead = element("p", _finding(answers), class_="lead")
    meaning = element(
        "p",
        "Cross-Fusion Distance (CFD) is the logarithm of the whole variance over the variance within groups: 0 where"
        " the groups’ means agree, 0.69 where half of the variance lies between them.",
        class_="note",
    )
    return element("header", element("h1", escaped(title)) + lead + element("dl", tiles, class_="tiles") + meaning)


def _finding(answers: Answers) -> str:
    between, given = named(answers.between), named(answers.given)
    plain, adjusted = value(answers.plain), value(answers.adjusted)
    before, after = number(plain), number(adjusted)
    if answers.adjusted.overlap == 0:
        return (
            f"No {given} is found in two {between} groups: the two are fully confounded, and what separates the"
            f" {between} groups (a distance of {before}) cannot be told from {given}."
        )
    if max(plain, adjusted) <= 0:
        return f"The {between} groups are together: their distance is {before}, and {after} within one {given}."
    apart = f"The {between} groups lie {before} apart, {_of_variance(plain)}"
    if not 0 < plain < math.inf or adjusted >= plain:
        fixed = f"Within one {given} they lie {after} apart, {_of_variance(adjusted)}"
        return f"{apart}. {fixed}: a different mix of {given} does not explain it."
    fixed = f"Within one {given} {after} is left, {_of_variance(adjusted)}"
    share = percent(min(1.0, 1 - adjusted / plain))
    return f"{apart}. {fixed}: {share} of the distance is a different mix of {given}, not {between} itself."


def _of_variance(distance: float) -> str:
    """The distance as a share of variance, 1 − exp(−CFD)."""
    return f"{percent(max(0.0, -math.expm1(-distance)))} of the variance"


def matrices(answers: Answers) -> str:
    """Distances of all pairs, plain and given, on one scale of colour."""
    counts = np.array(list(answers.plain.counts.values()))
    chosen = sorted(np.argsort(-counts, kind="stable")[:SHOWN].tolist())
    found = [_values(pairs) for pairs in (answers.plain_pairs, answers.adjusted_pairs)]
    finite = [v for values in found for v in values[np.ix_(chosen, chosen)].flat if math.isfinite(v)]
    top = max([*finite, 0.0])
    between, given = named(answers.between), named(answers.given)
    captions = (f"CFD({between}), as the rows come", f"CFD({between} | {given}), within one {given}")
    shown = "".join(
        _heat_map(pairs, values, chosen, top, caption)
        for pairs, values, caption in zip((answers.plain_pairs, answers.adjusted_pairs), found, captions, strict=True)
    )
    layout = "pair" if len(chosen) <= BESIDE else "stack"
    notes = element("p", " ".join(_notes(answers, len(chosen))))
    return _section("Which groups lie apart", notes, element("div", shown, class_=layout))


def _notes(answers: Answers, shown: int) -> list[str]:
    """How to read the matrices."""
    notes = [
        "Unbiased distances; 0 is together. Colour grows with the square root of the distance, alike in both tables."
    ]
    if any(np.isnan(pairs.unbiased).any() for pairs in (answers.plain_pairs, answers.adjusted_pairs)):
        notes.append("An asterisk marks the plug-in, where a group of one row leaves no unbiased value.")
    if (answers.adjusted_pairs.overlap == 0).any():
        notes.append(f"A dash stands where no {named(answers.given)} holds both groups.")
    groups = len(answers.plain.counts)
    if shown < groups:
        notes.append(f"Shown are the {shown} of {groups:,} groups with the most rows.")
    return notes


def _values(pairs: Pairwise) -> FloatArray:
    """What is shown: unbiased, else plug-in, and NaN where nothing is compared."""
    values = np.where(np.isnan(pairs.unbiased), pairs.distance, pairs.unbiased)
    return np.where(pairs.overlap == 0, np.nan, values)


def _heat_map(pairs: Pairwise, values: FloatArray, chosen: Sequence[int], top: float, caption: str) -> str:
    names = [named(pairs.labels[i]) for i in chosen]
    head = element("td") + "".join(element("th", name, scope="col") for name in names)
    body = ""
    for i, name in zip(chosen, names, strict=True):
        cells = "".join(_cell(values[i, j], i == j, top, bool(np.isnan(pairs.unbiased[i, j]))) for j in chosen)
        body += element("tr", element("th", name, scope="row") + cells)
    inner = element("caption", caption) + element("thead", element("tr", head)) + element("tbody", body)
    return scrolling(element("table", inner, class_="heat"))


def _cell(distance: float, diagonal: bool, top: float, plug_in: bool) -> str:
    if diagonal:
        return element("td", "0", class_="self")
    if math.isnan(distance):
        return element("td", "–", class_="self")
    heat = 1.0 if math.isinf(distance) else math.sqrt(max(distance, 0.0) / top) if top > 0 else 0.0
    return element("td", number(distance) + (PLUG_IN if plug_in else ""), style=f"--heat:{heat:.3f}")


def hierarchies(answers: Answers) -> str:
    """How levels add up, without the labels and below them."""
    given = named(answers.given)
    captions = ("As the rows come", f"{given} first: each level within one {given}")
    shown = "".join(
        element("div", _levels(found, caption, answers.colours))
        for found, caption in zip(answers.hierarchies, captions, strict=True)
    )
    text = "Each level is what its groups add within the levels above it. The levels add up to the whole, exactly."
    if any(found.unbiased is None for found in answers.hierarchies):
        text += " A dash stands where a group of one row leaves no unbiased value."
    return _section("Where the separation comes from", element("p", text), element("div", shown, class_="pair"))


def _levels(found: Hierarchy, caption: str, colours: Mapping[str, int]) -> str:
    rows = [
        [_coloured(entry.level, colours), number(entry.distance), number(entry.unbiased), percent(entry.share)]
        for entry in found.levels
    ]
    rows.append([element("b", "whole"), element("b", number(found.distance)), number(found.unbiased), ""])
    return figures.bar(found, colours) + table(caption, ["level", "plug-in", "unbiased", "share"], rows)


def _coloured(name: str, colours: Mapping[str, int]) -> str:
    return figures.swatch(colours[name]) + named(name)


def plane(answers: Answers) -> str:
    """Batches against biology."""
    given = named(answers.given)
    text = (
        f"A point far to the left is a batch factor whose groups are fused within one {given}; a point far up is one"
        f" within which the {given} groups stay apart: the upper left corner is where one wants to be. Rings are the"
        f" same factors before adjusting, CFD(batch) and CFD({given}); dashed lines are the part of both that is"
        " confounded."
    )
    rows = [
        [
            _coloured(batch.name, answers.colours),
            *map(number, map(value, (batch.plain, batch.adjusted, batch.biology))),
        ]
        for batch in answers.batches
    ]
    header = ["batch", "CFD(batch)", f"CFD(batch | {given})", f"CFD({given} | batch)"]
    caption = "The same in numbers"
    if any(batch.adjusted.overlap == 0 or batch.biology.overlap == 0 for batch in answers.batches):
        caption += "; a dash where no group is shared, so nothing can be compared"
    numbers = table(caption, header, rows, class_="wrap")
    shown = element("div", figures.plane(answers)) + element("div", numbers)
    return _section("Batch versus biology", element("p", text), element("div", shown, class_="pair"))


def extra(entry: Table) -> str:
    """A table of the caller's."""
    header, *rows = [[escaped(cell) for cell in row] for row in (entry.header, *entry.rows)]
    return _section(escaped(entry.title), element("div", table(escaped(entry.caption), header, rows), class_="column"))


def limits(answers: Answers) -> str:
    """Where these numbers mislead, with numbers."""
    between, given = named(answers.between), named(answers.given)
    adjusted, balanced = answers.adjusted, answers.balanced
    entries = [
        ("CFD sees means, not shapes.", "Groups of equal mean are at distance 0, however different their spread."),
        (
            "Pooled weights follow the rows.",
            f"Sampling one group more changes the distance. CFD({between} | {given}) is {number(value(adjusted))}"
            f" pooled and {number(value(balanced))} with the same weight for every group.",
        ),
        (
            "The plug-in is biased upwards,",
            f"the more so the fewer rows a group has. CFD({between} | {given}) is {number(adjusted.distance)} plug-in"
            f" and {number(adjusted.unbiased)} unbiased, if rows are independent. Rows of one patient often are not.",
        ),
        (
            "Only shared strata are compared.",
            f"{percent(adjusted.overlap)} of the weight lies in {given} groups that hold several {between} groups;"
            " the rest adds nothing.",
        ),
    ]
    items = "".join(element("li", f"{element('b', name)} {text}") for name, text in entries)
    return _section("What these numbers do not say", element("ul", items))


def _section(title: str, *parts: str) -> str:
    return element("section", element("h2", title) + "".join(parts))
