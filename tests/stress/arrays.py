"""Python calls with arrays and options that are odd: right by exact arithmetic, or one of our errors in one line."""

import contextlib
import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import crossfusion as cf
from tests.helpers import reference
from tests.stress.judging import Broken

Draw = np.random.Generator
STRICT: dict[str, Any] = {"over": "raise", "divide": "raise", "invalid": "raise"}


def prepare(_folder: Path) -> None:
    """Nothing."""


def case(_folder: Path, _own: Path, draw: Draw, number: int) -> str:
    """An exact comparison now and then, else a call with something odd."""
    return compared(draw) if number % 5 == 0 else asked(draw)


def compared(draw: Draw) -> str:
    """Distances of small clouds, of any scale and offset, against the definition without rounding."""
    groups, rows, dim = int(draw.integers(2, 5)), int(draw.integers(5, 40)), int(draw.integers(1, 6))
    scale, offset = 10.0 ** draw.integers(-6, 7), float(draw.choice([0, 1, -1e3]))
    x = ((draw.normal(size=(rows, dim)) + offset) * scale).astype(draw.choice(["f4", "f8"]))
    labels = np.concatenate([np.arange(groups), draw.integers(0, groups, rows - groups)])
    given = draw.integers(0, 2, rows) if draw.random() < 0.4 else None
    weights = str(draw.choice(["pooled", "balanced"]))
    with np.errstate(all="raise"):
        found = cf.cfd(x, labels=labels, given=given, weights=weights)
    exact = reference.cfd(x, labels.tolist(), None if given is None else given.tolist(), weights)
    loose = 1e-4 if x.dtype == np.float32 else 1e-7
    for name in ("distance", "unbiased"):
        here, there = getattr(found, name), getattr(exact, name) if exact.overlap else None  # nothing is compared
        if (here is None) != (there is None) or (
            there is not None and not math.isclose(here, there, rel_tol=loose, abs_tol=loose)
        ):
            raise Broken(f"{name} {here} instead of {there}: {x.dtype}, {groups} groups, {weights}, scale {scale:g}")
    return "right"


def cloud(draw: Draw) -> Any:
    """Rows, of which about half make sense."""
    rows, dim = int(draw.choice([0, 1, 2, 9, 30])), int(draw.choice([0, 1, 3, 3, 3]))
    x = draw.normal(size=(rows, dim))
    ways: list[Callable[[], Any]] = [
        *([lambda: x] * 6),
        lambda: x.astype(
            str(draw.choice(["f2", "f4", "i1", "u8", "?", "c16", "U3", "S3", "O", "M8[s]", "m8[ns]", ">f8", "g"]))
        ),
        lambda: x * float(draw.choice([0, 1e-320, 1e-160, 1e150, 1e155, 1e300, np.inf, np.nan])),
        lambda: x[::-1, ::-1],
        lambda: np.asfortranarray(x),
        lambda: x[0] if rows else x,
        lambda: x[None],
        lambda: x.tolist(),
        lambda: [[1.0, 2.0], [3.0]],
        lambda: np.ma.masked_array(x, mask=draw.random(x.shape) < 0.2),
        lambda: np.where(draw.random(x.shape) < 0.05, np.nan, x),
        lambda: np.array(list(map(str, range(9)))).reshape(3, 3),
        lambda: (None, 3, "x", True)[rows % 4],
        lambda: {"a": x},
        lambda: iter(x),
        lambda: np.ascontiguousarray(x).data,
        lambda: np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]),
        lambda: np.broadcast_to(x[:1], (7, dim)) if rows else x,
        lambda: _sparse(x),
        lambda: _frame(x),
    ]
    return ways[int(draw.integers(len(ways)))]()


def _sparse(x: np.ndarray) -> Any:
    import scipy.sparse

    return scipy.sparse.csr_array(x)


def _frame(x: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(x)


def labels(draw: Draw, rows: int) -> Any:
    """Groups, of which about half make sense."""
    codes = draw.integers(0, 3, rows)
    ways: list[Callable[[], Any]] = [
        *([lambda: codes] * 5),
        lambda: np.array(["a", "b", ""])[codes],
        lambda: codes.astype(float),
        lambda: np.where(codes == 0, np.nan, codes),
        lambda: [None, "x", 1][0:1] * rows,
        lambda: [{"a": 1}] * rows,
        lambda: np.arange(rows),
        lambda: np.zeros(rows),
        lambda: codes[:-1],
        lambda: codes[:, None],
        lambda: "abc",
        lambda: None,
        lambda: codes.astype("M8[D]"),
        lambda: codes.astype(bool),
        lambda: [b"\xff", "a"] * (rows // 2) + ["a"] * (rows % 2),
        lambda: np.array(["\ud800", "a", "b"], object)[codes],
    ]
    return ways[int(draw.integers(len(ways)))]()


def number(draw: Draw, *sensible: Any) -> Any:
    """A setting, mostly a sensible one."""
    odd = [None, 0, -1, 1.5, 2**70, np.nan, np.inf, "x", "", True, [], [1], np.array([1, 2]), b"1", 1e-300, -0.0]
    return sensible[int(draw.integers(len(sensible)))] if draw.random() < 0.8 else odd[int(draw.integers(len(odd)))]


def asked(draw: Draw) -> str:
    """A call; whatever it is given, it answers or refuses."""
    name = list(QUESTIONS)[int(draw.integers(len(QUESTIONS)))]
    x, y = cloud(draw), cloud(draw)
    rows = x.shape[0] if getattr(x, "shape", ()) else 9
    options: dict[str, Any] = {}
    said, strict = io.StringIO(), draw.random() < 0.2
    try:
        with contextlib.redirect_stderr(said), np.errstate(**(STRICT if strict else {})):
            found = QUESTIONS[name](x, y, labels(draw, rows), labels(draw, rows), draw, options)
    except cf.CrossfusionError as problem:
        line = str(problem)
        if not line.isprintable() or len(line) < 15:
            raise Broken(f"{name}: not one line: {line!r}") from problem
        return "refused"
    except Exception as problem:
        raise Broken(f"{name} of {_told(x)}, {_told(y)}, {options}: {type(problem).__name__}: {problem}") from problem
    _check(found, f"{name} of {_told(x)}, {_told(y)}, {options}")
    return "right"


def _told(x: Any) -> str:
    return f"{type(x).__name__} {getattr(x, 'dtype', '')} {getattr(x, 'shape', '')}"


def _check(found: Any, what: str) -> None:
    """No NaN where a number is, and a text that can be printed."""
    if isinstance(found, float) and math.isnan(found):
        raise Broken(f"{what}: NaN")
    if hasattr(found, "distance") and np.isnan(np.asarray(found.distance, float)).any():
        raise Broken(f"{what}: a distance that is NaN")
    text = repr(found)
    if "\x1b" in text or any(ord(c) >= 0xD800 and ord(c) < 0xE000 for c in text):
        raise Broken(f"{what}: cannot be printed: {text[:200]!r}")


def _cfd(x, y, _g, _h, draw, options):
    options |= {
        "level": number(draw, None, 0.9),
        "trim": number(draw, 0.0, 0.1),
        "weights": number(draw, "pooled", "balanced"),
    }
    return cf.cfd(x, y, **options)


def _labelled(x, _y, g, h, draw, options):
    options |= {"level": number(draw, None, 0.9), "nan": number(draw, "raise", "drop")}
    return cf.cfd(x, labels=g, given=h if draw.random() < 0.3 else None, **options)


def _units(x, _y, g, h, draw, options):
    options |= {"level": number(draw, 0.9)}
    return cf.cfd(x, labels=g, units=h, **options)


def _tested(x, _y, g, h, draw, options):
    options |= {"permutations": number(draw, 9, 19), "seed": number(draw, 0, 5)}
    return cf.permutation_test(x, g, units=h if draw.random() < 0.3 else None, **options)


def _distance(x, y, _g, _h, draw, options):
    options |= {"name": number(draw, *cf.distances)}
    return cf.distance(options["name"], x, y)


def _summarized(x, _y, g, h, draw, options):
    options |= {"min_count": number(draw, 0, 2), "nan": number(draw, "raise", "drop")}
    return cf.summarize(x, by={"site": g, "label": h}, **options)


def _questioned(x, _y, g, h, draw, options):
    summary = cf.summarize(x, by={"site": g, "label": h})
    ways = (
        lambda: summary.cfd("site", given="label"),
        lambda: summary.pairwise(number(draw, "site", ["site", "label"]), level=number(draw, None), weights="balanced"),
        lambda: summary.hierarchy(["site", "label"]),
        lambda: summary.attribution("site", over=number(draw, "features", "label")),
        lambda: summary.test("site", units="label", permutations=number(draw, 9)),
        lambda: summary.one_vs_rest("site"),
        lambda: summary.drift("label", reference=number(draw, "first:1", "previous")),
        lambda: summary + summary.rollup(["site", "label"]),
        lambda: summary.select(site=number(draw, 0, 1)),
    )
    return ways[int(draw.integers(len(ways)))]()


def _ratios(x, _y, g, _h, draw, options):
    options |= {"repeats": number(draw, 2, 3), "seed": number(draw, 0)}
    if isinstance(options["repeats"], int) and options["repeats"] > 9:
        options["repeats"] = 1
    return cf.rdr(x, g, **options)


def _moments(x, _y, g, _h, draw, options):
    return cf.Moments.of(x, *([g] if draw.random() < 0.3 else []))


def _dispersions(x, _y, g, _h, draw, options):
    options |= {"permutations": number(draw, 9)}
    return cf.dispersion_test(x, g, **options)


QUESTIONS = {
    "cfd": _cfd,
    "cfd, labelled": _labelled,
    "cfd, units": _units,
    "permutation_test": _tested,
    "distance": _distance,
    "summarize": _summarized,
    "summary": _questioned,
    "rdr": _ratios,
    "Moments": _moments,
    "dispersion_test": _dispersions,
}
