"""What the hunt expects to be refused: each kind with the words that name the argument, in Python and in a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import crossfusion as cf
from tests.hunt.recipes import Messy, Recipe, make
from tests.hunt.routes import FACTORS, feature_names, from_plain, make_frame, run_command

SEEDS = (1, 2, 3)
Call = Callable[[Messy, Path], Any]


def plain(seed: int) -> Messy:
    """A data set that nothing is wrong with yet."""
    return make(Recipe(seed, "text", "text", "random", "plain", "arrays"))


def of_rows(change: Callable[[Any], Any]) -> Call:
    """Summarize rows after a change."""
    return lambda data, _: cf.summarize(change(data.rows), by={"site": data.site})


def of_labels(change: Callable[[list[Any]], Any]) -> Call:
    """Compare groups after a change of their labels."""
    return lambda data, _: cf.cfd(data.rows, labels=change(data.site))


def of_sums(change: Callable[[Messy], cf.Summary]) -> Call:
    """Add a summary of other rows."""
    return lambda data, folder: from_plain(data, folder) + change(data)


def of_text(change: Callable[[str], str]) -> Call:
    """Read a text table after a change of its text."""

    def call(data: Messy, folder: Path) -> Any:
        text = make_frame(data)[[*FACTORS, *feature_names(data)]].to_csv(index=False)
        (folder / "rows.csv").write_bytes(change(text).encode("latin-1"))
        return cf.summarize(folder / "rows.csv", by="site", vectors=feature_names(data))

    return call


def of_join(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Call:
    """Join a table of labels after a change of it."""

    def call(data: Messy, _: Path) -> Any:
        tiles = [f"tile {k}" for k in range(len(data.rows))]
        manifest = change(pd.DataFrame({"tile": tiles, "site": data.site}))
        frame = pd.DataFrame({"tile": tiles, "embedding": list(data.rows)})
        return cf.summarize(frame, by="site", vectors="embedding", manifest=manifest, on="tile")

    return call


def with_nan(rows: Any) -> Any:
    """Rows of which the fourth has a NaN."""
    rows = rows.copy()
    rows[3, 0] = np.nan
    return rows


def without_some(data: Messy) -> list[Any]:
    """Patients of which one is missing."""
    return [None, *data.patient[1:]]


def append_twice(data: Messy, folder: Path) -> None:
    """Add the same rows once more."""
    for _ in range(2):
        cf.append_summary(from_plain(data, folder), folder / "weeks.parquet")


REFUSALS: dict[str, tuple[str, Call]] = {
    "mixed labels": ("^labels must hold one plain value per row", of_labels(lambda site: [1, *site[1:]])),
    "long numbers as floats": (
        "^labels holds float64 numbers of 9,007,199,254,740,992 or more",
        of_labels(lambda site: pd.Series([2**53 + k % 2 for k in range(len(site) - 1)] + [None])),
    ),
    "long numbers beside infinity": (
        "^labels holds float64 numbers of 9,007,199,254,740,992 or more",
        of_labels(lambda site: [np.inf, *(2.0**53 + k % 2 for k in range(len(site) - 1))]),
    ),
    "numbers as short floats": (
        "^labels holds float32 numbers of 16,777,216 or more",
        of_labels(lambda site: np.float32(2**24) + np.arange(len(site), dtype=np.float32) % 2),
    ),
    "too few labels": ("^labels has 39 entries for 40 rows", of_labels(lambda site: site[:-1])),
    "labels in two columns": (
        r"^labels must hold one value per row, but has shape",
        of_labels(lambda site: np.array([site, site]).T),
    ),
    "labels in a set": ("^labels must hold one value per row", of_labels(set)),
    "labels of other rows": (
        "labels.* index",
        lambda data, _: cf.cfd(
            pd.DataFrame(data.rows), labels=pd.Series(data.site, index=[f"t{k}" for k in range(40)])
        ),
    ),
    "one group": ("only one group to compare", of_labels(lambda site: ["A"] * len(site))),
    "NaN": ("^x has NaN or infinite values in 1 of 40 rows, the first in row 3", of_rows(with_nan)),
    "nothing but NaN": (
        "^x has no rows",
        lambda data, _: cf.summarize(np.nan * data.rows, by={"site": data.site}, nan="drop"),
    ),
    "masked entries": ("^x is a masked array", of_rows(lambda rows: np.ma.masked_array(rows, rows > 0))),
    "complex numbers": ("^x must hold numbers", of_rows(lambda rows: rows + 1j)),
    "text as numbers": ("^x must hold numbers", of_rows(lambda rows: rows.astype(str))),
    "objects": ("^x must hold numbers", of_rows(lambda rows: rows.astype(object))),
    "one dimension": ("^x must be two-dimensional", of_rows(lambda rows: rows[:, 0])),
    "no features": ("^x has rows without features", of_rows(lambda rows: rows[:, :0])),
    "squares out of range": ("^x has values whose squares exceed", of_rows(lambda rows: 1e200 * rows)),
    "a missing unit": (
        "^units has missing values",
        lambda data, _: cf.cfd(data.rows, labels=data.site, units=without_some(data), level=0.9),
    ),
    "a missing unit of a summary": (
        "^patient has missing values",
        lambda data, _: cf.summarize(data.rows, by={"site": data.site, "patient": without_some(data)}).cfd(
            "site", units="patient"
        ),
    ),
    "a reserved name": (
        "factor cannot be called 'count'",
        lambda data, _: cf.summarize(data.rows, by={"count": data.site}),
    ),
    "an unknown factor": ("no factor 'sites'", lambda data, folder: from_plain(data, folder).cfd("sites")),
    "an unknown weighting": (
        "^weights='equal' is not known",
        lambda data, folder: from_plain(data, folder).cfd("site", weights="equal"),
    ),
    "compared and adjusted for": (
        "'site' is in between and in given",
        lambda data, folder: from_plain(data, folder).cfd("site", given="site"),
    ),
    "other factors": (
        "the factors differ",
        of_sums(lambda data: cf.summarize(data.rows, by={"site": data.site})),
    ),
    "other features": (
        "numbers of features differ",
        of_sums(lambda data: cf.summarize(np.hstack([data.rows, data.rows]), by=data.factors)),
    ),
    "other tags": (
        "the tag 'encoder' differs",
        of_sums(lambda data: cf.summarize(data.rows, by=data.factors, tags={"encoder": "b"})),
    ),
    "other types": (
        "a factor has values of different types",
        of_sums(lambda data: cf.summarize(data.rows, by=data.factors | {"site": list(range(len(data.site)))})),
    ),
    "the same rows twice": ("already contains these rows", append_twice),
    "the same summary twice": (
        "summary 2 holds rows that summary 1 holds too",
        lambda data, folder: cf.merge_summaries([from_plain(data, folder)] * 2),
    ),
    "a missing column": (
        "no column 'place'",
        lambda data, _: cf.summarize(make_frame(data), by="place", vectors=feature_names(data)),
    ),
    "a column twice": (
        "2 columns called 'e0'",
        lambda data, _: cf.summarize(
            pd.concat([make_frame(data), make_frame(data)[["e0"]]], axis=1), by="site", vectors="e0"
        ),
    ),
    "a frame without rows": (
        "the table has no rows",
        lambda data, _: cf.summarize(make_frame(data)[:0], by="site", vectors=feature_names(data)),
    ),
    "another separator": ("separate columns by commas", of_text(lambda text: text.replace(",", ";"))),
    "ragged lines": ("cannot be read as a text table", of_text(lambda text: text + "A,B\n")),
    "another encoding": ("^site holds bytes that are not UTF-8", of_text(lambda text: text.replace("\n", "\n\xc4", 1))),
    "a key twice": ("1 key in 'tile' more than once", of_join(lambda table: pd.concat([table, table[:1]]))),
    "a key that is not there": ("lacks 1 of the vectors' keys in 'tile'", of_join(lambda table: table[1:])),
    "a row without a key": (
        "1 row without 'tile'",
        of_join(lambda table: table.assign(tile=[None, *table.tile[1:]])),
    ),
    "keys of another type": ("'tile' holds", of_join(lambda table: table.assign(tile=np.arange(len(table)) + 0.5))),
    "labels for other rows": (
        "39 rows for 40 vectors",
        lambda data, _: cf.summarize(data.rows, by="site", manifest=pd.DataFrame({"site": data.site[1:]})),
    ),
}


@pytest.mark.filterwarnings("ignore::crossfusion.CrossfusionWarning")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", REFUSALS)
def test_bad_data_are_refused_by_name(kind: str, seed: int, tmp_path: Path) -> None:
    message, call = REFUSALS[kind]
    with pytest.raises(cf.CrossfusionError, match=message) as caught:
        call(plain(seed), tmp_path)
    assert "\n" not in str(caught.value)


TYPED = {
    "a missing column": (["--by", "place", "--vectors", "e*"], "no column 'place'"),
    "no vectors": (["--by", "site", "--vectors", "x*"], "no column for --vectors 'x*'"),
    "NaN": (["--by", "site", "--vectors", "e*"], "NaN or infinite values"),
    "a reserved name": (["--by", "count", "--vectors", "e*"], "cannot be called 'count'"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", TYPED)
def test_bad_commands_end_with_one_line(kind: str, seed: int, tmp_path: Path) -> None:
    typed, message = TYPED[kind]
    data = plain(seed)
    frame = make_frame(data).assign(e0=with_nan(data.rows)[:, 0], count="A")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    code, printed, said = run_command("summarize", tmp_path / "rows.csv", *typed, "-o", tmp_path / "s.parquet")
    assert (code, printed) == (2, "")
    errors = [line for line in said.splitlines() if not line.startswith("crossfusion: warning: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert not (tmp_path / "s.parquet").exists()
