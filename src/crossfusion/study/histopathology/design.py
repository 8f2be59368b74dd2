"""What a study of tissue compares: which factor is the domain, which the label, and what is independent."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossfusion._base import InputError, arg, check_known, check_whole, label_text
from crossfusion.evaluation import as_measures, cddr, check_cddr_options, rdr
from crossfusion.pathology import Tile
from crossfusion.study import published
from crossfusion.study.dataset import Plan

NONE = ("none",)  # asked for instead of a factor: there is none
KNOWN: Mapping[str, Mapping[str, Sequence[str]]] = {  # of each layout the first factor that is there
    "midog": {"between": ["scanner"], "label": ["label"], "units": ["slide"]},
    "camelyon16": {"between": ["centre"], "label": ["label", "kind"], "units": ["slide"]},
    "slides": {"label": ["label"], "units": ["slide"]},
    "folder": {"between": ["group"], "label": ["label"], "units": ["slide"]},
    "manifest": {"label": ["label"], "units": ["slide"]},
}


@dataclass(frozen=True)
class Design:
    """Factors that a study goes by."""

    between: tuple[str, ...]  # factors whose combinations are the domains
    label: tuple[str, ...]  # what a model predicts; without any, there is no model
    units: tuple[str, ...]  # what is independent; without any, each tile is

    def values(self, tiles: Sequence[Tile]) -> dict[str, list[str] | None]:
        """Domain, label and unit of each tile, as text; None where there is no such factor."""
        named = {"domain": self.between, "label": self.label, "units": self.units}
        return {what: _join_factors(tiles, names) if names else None for what, names in named.items()}

    def find_printed(self, layout: str) -> str | None:
        """The data set of the paper that a study by these factors is of; None if it has no numbers for them."""
        known = KNOWN[layout]
        same = self.between == tuple(known.get("between", ())) and set(self.label) <= set(known["label"])
        return layout if layout in published.DATASETS and same else None

    def __str__(self) -> str:
        named = {"domains": self.between, "labels": self.label, "units": self.units}
        return ", ".join(f"{what} by {' and '.join(names)}" for what, names in named.items() if names)


def _join_factors(tiles: Sequence[Tile], names: Sequence[str]) -> list[str]:
    return [label_text(tuple(tile.factors[name] for name in names)) for tile in tiles]


def find_design(
    layout: str,
    tiles: Sequence[Tile],
    *,
    between: Sequence[str] = (),
    label: Sequence[str] = (),
    units: Sequence[str] = (),
) -> Design:
    """The factors of a study: those that are asked for, else those that the layout is known to have."""
    there = list(tiles[0].factors)
    found = {}
    for what, asked in {"between": between, "label": label, "units": units}.items():
        names = tuple(asked) or _default_factors(layout, what, there)
        if names == NONE and "none" not in there:
            names = ()
        check_known(names, there, "factor", "the data")
        found[what] = names
    if not found["between"]:
        raise InputError(
            "between", problem="is missing", remedy=f"name the factor whose values are compared, of {', '.join(there)}"
        )
    if not found["units"] and tuple(units) != NONE:
        raise InputError(
            "units",
            problem="is missing",
            remedy=f"name what is independent, such as the slide, of {', '.join(there)}; or"
            f" {arg('units', 'none')} if every tile is",
        )
    return Design(**found)


def _default_factors(layout: str, what: str, there: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in KNOWN[layout].get(what, ()) if name in there)[:1]


def check_plan(plan: Plan) -> None:
    """Refuse settings of an evaluation that are none."""
    as_measures(plan.distances)
    check_cddr_options(plan.metric, plan.folds, plan.level, plan.draws, plan.seed)
    check_whole(plan.rows, "rows", 2)
    check_whole(plan.halves, "repeats", 2)


def rehearse(design: Design, tiles: Sequence[Tile], plan: Plan) -> None:
    """Go through the protocols with made-up rows, so that what they refuse is refused before any tile is encoded."""
    values: dict[str, Any] = design.values(tiles)
    for what, names in {"domain": design.between, "label": design.label}.items():
        _check_two(values[what], names, what)
    if design.label == ("kind",) and "test" in values["label"]:
        raise InputError(
            problem="the kind of some slides is 'test', which is not a label",
            remedy=f"give their kind in {arg('centres')}, or {arg('label', 'none')}",
        )
    x = np.random.default_rng(0).normal(size=(len(tiles), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when it is done in earnest
        rdr(x, values["domain"], units=values["units"], repeats=2, rows=plan.rows)
        if values["label"] is not None:
            options: dict[str, Any] = {"units": values["units"], "folds": plan.folds, "metric": plan.metric}
            cddr(x, values["label"], values["domain"], draws=2, **options)


def _check_two(values: Any, names: Sequence[str], what: str) -> None:
    if values is not None and len(set(values)) < 2:
        option = arg("between" if what == "domain" else "label")
        others = "" if what == "domain" else ", or none"
        raise InputError(
            problem=f"all {len(values):,} tiles have the {', '.join(names)} {values[0]!r}, so there is nothing to"
            " compare",
            remedy=f"name another factor by {option}{others}, or add tiles",
        )
