"""How often the alarm sounds where nothing drifts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import crossfusion as cf
from benchmarks.drift.streams import Stream
from crossfusion.study import compute_all, count_workers
from paper.arrays import FloatArray
from paper.checks import check_whole

RATES = [
    "reference",
    "rows",
    "features",
    "effects",
    "ρ",
    "compared with",
    "at 0.01",
    "± se",
    "at 0.05",
    "± se",
    "any, holm 0.05",
    "change at 0.05",
    "kept",
]
FULL, QUICK = 200, 30  # streams of each kind
PROMISED = (0.01, 0.05)
SURE = 2.0  # standard errors that a share may lie above the rate before it counts as too high
AHEAD = 8
SEED = 2  # 0, 7 and 8 gave streams on which the alarm was chosen: these are others


def kinds(quick: bool) -> list[tuple[Stream, str]]:
    """The streams, and what each window is compared with."""
    usual = Stream(ahead=AHEAD, dim=64, effect=4.0, directions=4)
    if quick:
        few = [replace(usual, rho=rho) for rho in (0.0, 0.5)]
        return [(replace(usual, effect=0.0), "first"), *((stream, "first") for stream in few)]
    found = [(replace(usual, effect=0.0, reference=number), "first") for number in (4, 8, 16)]
    for number, rho in product((4, 8, 16), (0.0, 0.5, 0.8)):
        found.append((replace(usual, reference=number, rho=rho), "first"))
    found += [(replace(usual, reference=number, rho=0.8, directions=2), "first") for number in (8, 16)]
    found += [(replace(usual, reference=number, rho=0.9), "first") for number in (8, 16)]
    for directions, dim in ((1, 8), (8, 8), (1, 256), (256, 256)):
        found.append((replace(usual, dim=dim, directions=directions, rho=0.5), "first"))
    found += [(replace(usual, effect=effect, rho=0.5), "first") for effect in (0.5, 30.0)]
    patients = replace(usual, patients=10, rho=0.5)
    found += [(patients, "first"), (replace(patients, effect=0.0), "first"), (patients, "first, units")]
    found += [(patients, "first, windows of 3"), (replace(usual, rho=0.5), "first, given label")]
    return found + [(replace(usual, rho=rho), "previous") for rho in (0.0, 0.5, 0.8)]


def rates(
    *, quick: bool = False, draws: int | None = None, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Draw streams without drift and count alarms.

    Parameters
    ----------
    quick : bool
        A few kinds of streams, and few of each.
    draws : int, optional
        Streams of each kind.
    progress : function, optional
        Called with the number of kinds that have been finished since the last call.

    Returns
    -------
    dict
        A title, the names of the columns, and the rows as text.
    """
    number = (QUICK if quick else FULL) if draws is None else draws
    check_whole(number, "draws", least=2)
    asked = kinds(quick)
    found: dict[Any, FloatArray] = {}
    for kind, pvalues in compute_all(partial(_pvalues, draws=number), asked, count_workers()):
        found[kind] = pvalues
        if progress is not None:
            progress(1)
    rows = [_row(stream, told, found[stream, told]) for stream, told in asked]
    title = f"Share of windows with an alarm where nothing drifts: {number} streams a row, {AHEAD} periods ahead each"
    return {"title": title, "header": RATES, "rows": rows}


def _pvalues(kind: tuple[Stream, str], draws: int) -> FloatArray:
    """P-values, a row a stream; that of the change is the last."""
    stream, told = kind
    return np.array(list(_streams(stream, told, draws)))


def _streams(stream: Stream, told: str, draws: int) -> Iterator[FloatArray]:
    week = np.repeat(np.arange(stream.periods), stream.rows)
    patient = week * stream.rows + np.tile(stream.patient(), stream.periods)
    label = np.tile(np.arange(stream.rows) // (stream.rows // 2), stream.periods)
    reference = "previous" if told == "previous" else f"first:{stream.reference}"
    options: dict[str, Any] = {"reference": reference}
    options |= {"units": "patient"} if "units" in told else {}
    options |= {"given": "label"} if "given" in told else {}
    options |= {"window": 3} if "windows" in told else {}
    for number in range(draws):
        rows = stream.draw([SEED, number, stream.reference, stream.dim]).reshape(len(week), stream.dim)
        summary = cf.summarize(rows, by={"week": week, "patient": patient, "label": label})
        drift = summary.drift("week", **options)
        assert drift.pvalue is not None
        change = np.nan if drift.change is None or drift.change.pvalue is None else drift.change.pvalue
        yield np.append(drift.pvalue[-AHEAD + options.get("window", 1) - 1 :], change)


def _row(stream: Stream, told: str, pvalues: FloatArray) -> list[str]:
    cells, kept = [], True
    for rate in PROMISED:
        share = (pvalues[:, :-1] <= rate).mean(axis=1)
        mean, error = float(share.mean()), float(share.std(ddof=1) / np.sqrt(len(share)))
        cells += [f"{mean:.4f}", f"{error:.4f}"]
        kept &= mean <= rate + SURE * error
    any_window = np.mean([cf.adjusted_pvalues(own).min() <= PROMISED[1] for own in pvalues[:, :-1]])
    kept &= any_window <= PROMISED[1] + SURE * np.sqrt(PROMISED[1] * (1 - PROMISED[1]) / len(pvalues))
    change = "–" if np.isnan(pvalues[:, -1]).any() else f"{np.mean(pvalues[:, -1] <= PROMISED[1]):.3f}"
    rows = f"{stream.rows}" + (f" of {stream.patients} patients" if stream.patients else "")
    effects = "none" if not stream.effect else f"{stream.effect:g} in {stream.directions} directions"
    about = [f"{stream.reference}", rows, f"{stream.dim}", effects, f"{stream.rho:g}", told]
    return [*about, *cells, f"{any_window:.3f}", change, "yes" if kept else "NO"]
