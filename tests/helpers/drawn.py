"""Results whose pictures are kept in `tests/pictures`; run as a module, it draws them anew."""

import sys
from pathlib import Path

import numpy as np

import crossfusion as cf
from crossfusion.plots import saving

FOLDER = Path(__file__).parents[1] / "pictures"
DPI = 100
HOSTILE = ("$\\frac{1}{0}$", "a" * 300, "<b>&</b>\n%s", "שלום", "#_{^~}")


def rows(groups=("A", "B", "C", "D"), size=60, dim=6):
    """Rows of groups, by patients of two tissues, over weeks."""
    rng = np.random.default_rng(7)
    number = size * len(groups)
    code, patient = np.repeat(np.arange(len(groups)), size), np.arange(number) // 10
    tissue = np.where(rng.random(number) < 0.5, "tumour", "stroma")
    x = rng.normal(size=(number, dim)) + 0.3 * rng.normal(size=(number // 10, dim))[patient]
    x += (0.45 * rng.normal(size=(len(groups), dim)))[code] + (tissue == "tumour")[:, None] * np.linspace(1, 0, dim)
    return x, {"site": np.array(groups, object)[code].tolist(), "patient": patient, "tissue": tissue}


def made(groups=("A", "B", "C", "D"), **options):
    x, by = rows(groups, **options)
    return cf.summarize(x, by=by)


def methods(given="tissue", units="patient"):
    x, by = rows()
    site = np.array([ord(name) for name in by["site"]])
    versions = {"raw": 1.0, "half": 0.5, "a third of it, with a long name": 1 / 3, "none": 0.0}
    means = {name: x[site == name].mean(axis=0) for name in np.unique(site)}
    gap = np.array([means[name] for name in site]) - x.mean(axis=0)
    summaries = {name: cf.summarize(x - (1 - share) * gap, by=by) for name, share in versions.items()}
    return cf.compare_corrections(summaries, between="site", given=given, units=units)


def drift(**options):
    rng = np.random.default_rng(1)
    week = np.repeat(np.arange(1, 15), 80)
    x = rng.normal(size=(len(week), 16)) + (0.15 * rng.normal(size=(15, 16)))[week]
    x[week >= 12, 3] += 3.0
    return cf.summarize(x, by={"week": week, "patient": np.arange(len(week)) // 4}).drift(
        "week", reference="first:6", **options
    )


def projection(groups=("A", "B", "C", "D"), size=60):
    x, by = rows(groups, size)
    return cf.summarize(x, by=by).project("site", rows=x, labels=by["site"])


def mixing(groups=("A", "B", "C", "D"), **options):
    x, by = rows(groups)
    region = np.digitize(x[:, 0], [-1, -0.3, 0.3, 1]) * 3 + np.digitize(x[:, 1], [-0.5, 0.5])
    return cf.summarize(x, by=by | {"region": region}).mixing("site", **options)


def separability(groups=("A", "B", "C", "D")):
    x, by = rows(groups)
    return cf.separability(x, by["site"], given=by["tissue"], units=by["patient"])


def protocol(measure):
    x, by = rows(("A", "B"))
    if measure == "rdr":
        return cf.rdr(x, by["site"], distances=["cfd", "mmd", "energy"], repeats=9)
    return cf.cddr(x, by["tissue"], by["site"])


MANY = tuple(f"site {k}" for k in range(30))
DRAWINGS = {
    "matrix": lambda: made().pairwise("site").plot(),
    "matrix_many": lambda: made(MANY, size=10).pairwise("site").plot("distance"),
    "matrix_hostile": lambda: made(HOSTILE, size=20).pairwise("site").plot(),
    "forest": lambda: made().pairwise("site", given="tissue", units="patient", level=0.95).plot_forest(),
    "forest_hostile": lambda: made(HOSTILE, size=20).pairwise("site").plot_forest(),
    "forest_many": lambda: made(MANY, size=10).pairwise("site").plot_forest(),
    "hierarchy": lambda: made().hierarchy(["site", "tissue", "patient"]).plot(),
    "attribution": lambda: made().attribution("site").plot(4),
    "attribution_units": lambda: made().attribution("site", over="patient").plot(),
    "methods": lambda: methods().plot(),
    "methods_batch": lambda: methods(given=None).plot(),
    "null": lambda: made().test("site", units="patient", permutations=199).plot(),
    "drift": lambda: drift(units="patient").plot(),
    "drift_previous": lambda: drift(alarm=None).plot(),
    "projection": lambda: projection().plot(),
    "projection_many": lambda: projection(MANY, 20).plot(),
    "projection_means": lambda: made(("A", "B")).project("site").plot(),
    "geometry": lambda: made().geometry("site").plot(),
    "mixing": lambda: mixing().plot(),
    "mixing_hostile": lambda: mixing(HOSTILE).plot(),
    "fusion": lambda: made().cfd("site", units="patient", level=0.95).plot(),
    "decomposition": lambda: cf.Decomposition(3.0, 1.0).plot(),
    "rdr": lambda: protocol("rdr").plot(),
    "cddr": lambda: protocol("cddr").plot(),
}


def main(folder):
    folder.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        saving.write_figure(draw(), folder / f"{name}.png", DPI)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
