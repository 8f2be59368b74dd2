"""Summaries as each release wrote them, kept in `tests/golden`; run as a module, it adds those of this version.

A folder holds files of summaries and `answers.json`: what the version that wrote them answered, by file. Only what has
one right answer is asked: moments and the distances that follow from them, not limits of intervals, which may improve.
"""

import datetime as dt
import decimal
import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa

import crossfusion as cf
from crossfusion._base.text import plain_value

FOLDER = Path(__file__).parents[1] / "golden"
ANSWERS = "answers.json"
HOSTILE = ["<b>&</b>", "", 'a,b\n"c"\t\'', "שלום", "ä" * 80, None]


def drawn(seed, number=240, dim=5, offset=0.0):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(number, dim)) * np.linspace(0.5, 2, dim) + offset


def types():
    """Two values of every type a factor may have."""
    day, second = dt.date(2024, 2, 28), dt.datetime(2024, 2, 28, 23, 59, 59, 999_999)
    yield "text", ["A", "B"]
    yield "integer", pa.array([-1, 2**53 + 1], pa.int64())
    yield "small", pa.array([0, 255], pa.uint8())
    yield "real", [0.1, float("-inf")]
    yield "flag", [False, True]
    yield "date", [day, dt.date(1969, 12, 31)]
    yield "time", [second, second.replace(year=1969)]
    yield "zoned", pa.array([second, second.replace(year=1969)], pa.timestamp("us", "Europe/Berlin"))
    yield "clock", [dt.time(1, 2, 3), dt.time(23, 0)]
    yield "span", [dt.timedelta(days=1), dt.timedelta(seconds=-1)]
    yield "decimal", [decimal.Decimal("1.10"), decimal.Decimal("-2.25")]
    yield "category", pa.array(["x", "y"]).dictionary_encode()


def every_type():
    """Factors of every type, each with missing values, in a dozen groups."""
    rng, x = drawn(1)
    picks = {name: pa.array(np.tile(rng.choice([0, 1, 1, None], 12), len(x) // 12), pa.int64()) for name, _ in types()}
    return cf.summarize(x, by={name: pa.array(values).take(picks[name]) for name, values in types()})


def names():
    """Names and values that are no plain words, and rows far from the origin."""
    rng, x = drawn(2, offset=1e6)
    by = {'größe, "1"': [HOSTILE[k] for k in rng.integers(0, 6, len(x))], " ": rng.integers(0, 2, len(x))}
    return cf.summarize(x, by=by)


def units(seed=3, country="A"):
    """Patients of two sites, by tissue and week, float32, with rows that were dropped."""
    rng, x = drawn(seed)
    x = (x + rng.normal(size=(8, 5))[np.arange(len(x)) // 30]).astype("float32")
    x[::50, 0] = np.nan
    by = {"site": [f"{country}{k // 120}" for k in range(len(x))], "tissue": rng.choice(["stroma", "tumour"], len(x))}
    by |= {"patient": [f"{country}{k // 30}" for k in range(len(x))], "week": np.arange(len(x)) % 4}
    return cf.summarize(x, by=by, nan="drop", tags={"encoder": "virchow", "stain": "<H&E>"})


def merged():
    """Of two countries, with small groups merged."""
    return cf.merge_summaries([units(), units(4, "B")], min_count=3, small="merge")


def write(folder):
    """Write the summaries of this version, one of them in two steps."""
    warnings.simplefilter("ignore", cf.CrossfusionWarning)  # of rows and groups that are left out on purpose
    for make in (every_type, names, units, merged):
        make().write(folder / f"{make.__name__}.parquet")
    for part in (units(5, "A"), units(6, "B")):
        cf.append_summary(part, folder / "appended.parquet")
    (folder / ".appended.parquet.lock").unlink(missing_ok=True)


def answers(summary):
    """What has one right answer, of any summary."""
    about = ("dim", "dtype", "dropped", "factors", "batches", "tags")
    found = {
        "about": {name: plain_value(getattr(summary, name)) for name in about},
        "types": {field.name: str(field.type) for field in summary.keys.schema},
        "keys": [[str(value) for value in row.values()] for row in summary.keys.to_pylist()],
        "moments": {name: getattr(summary.moments, name).tolist() for name in ("count", "mean", "sumsq")},
        "hierarchy": summary.hierarchy(list(summary.factors)).to_dict(),
        "attribution": summary.attribution(summary.factors[0]).to_dict(),
        "pairwise": summary.pairwise(summary.factors[0], weights="balanced").to_dict(),
    }
    given = {name: summary.factors[1 - k] for k, name in enumerate(summary.factors[:2])}
    found["cfd"] = {name: summary.cfd(name).to_dict() for name in summary.factors}
    found["given"] = {name: summary.cfd(name, given=other).to_dict() for name, other in given.items()}
    return json.loads(json.dumps(found))


def read(folder):
    """Answers of now to every file of a folder."""
    return {file.name: answers(cf.read_summary(file)) for file in sorted(folder.glob("*.parquet"))}


def as_text(found):
    """JSON, one line a file."""
    lines = [f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def add(folder):
    """Add a folder, whole or not at all; what is kept is never changed."""
    if folder.exists():
        sys.exit(f"{folder} is there already: what a release wrote is kept as it is")
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary, "made")
        made.mkdir()
        write(made)
        (made / ANSWERS).write_text(as_text(read(made)), encoding="utf-8")
        made.rename(folder)
    print(f"added {folder}")


if __name__ == "__main__":
    add(FOLDER / cf.__version__)
