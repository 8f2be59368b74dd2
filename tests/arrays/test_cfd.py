"""The distance of arrays: the paper's formula to the last digits, its bias, imbalance, trimming, labels of any type."""

import datetime as dt
import decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crossfusion as cf
from tests.helpers import reference


def labelled(seed, sizes=(60, 25, 7), dim=4, apart=2.0):
    """Unbalanced groups that lie apart, in random order."""
    draw = np.random.default_rng(seed)
    labels = draw.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = draw.normal(size=(len(labels), dim)) * draw.uniform(0.1, 3, dim)
    return rows + apart * draw.normal(size=(len(sizes), dim))[labels], labels


def assert_fusion(fusion, exact, rel=1e-12):
    assert fusion.distance == pytest.approx(exact.distance, rel=rel)
    assert fusion.unbiased == (exact.unbiased and pytest.approx(exact.unbiased, rel=rel))
    assert fusion.within == pytest.approx(float(exact.within), rel=rel)
    assert fusion.between == pytest.approx(float(exact.between), rel=rel)
    assert fusion.total == pytest.approx(float(exact.within + exact.between), rel=rel)
    assert fusion.score == pytest.approx(float(exact.within / (exact.within + exact.between)), rel=rel)
    assert fusion.overlap == pytest.approx(float(exact.overlap), rel=rel)


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("seed", range(5))
def test_two_arrays_equal_the_definition(seed, weights):
    rows, labels = labelled(seed, sizes=(70, 9), dim=1 + 5 * seed)
    a, b = rows[labels == 0], rows[labels == 1]
    fusion = cf.cfd(a, b, weights=weights)
    assert_fusion(fusion, reference.cfd(rows, labels.tolist(), scheme=weights))
    assert fusion.counts == {"a": 70, "b": 9}
    assert fusion.weights == pytest.approx({"a": 70 / 79, "b": 9 / 79} if weights == "pooled" else {"a": 0.5, "b": 0.5})
    assert float(fusion) == fusion.distance


@pytest.mark.parametrize("weights", ["pooled", "balanced"])
@pytest.mark.parametrize("seed", range(5))
def test_labelled_rows_equal_the_definition_with_and_without_strata(seed, weights):
    rows, labels = labelled(seed)
    given = np.random.default_rng(seed).choice(["x", "y"], len(rows)).tolist()
    assert_fusion(cf.cfd(rows, labels=labels, weights=weights), reference.cfd(rows, labels.tolist(), scheme=weights))
    fusion = cf.cfd(rows, labels=labels, given=given, weights=weights)
    cells = reference.cells(rows, labels.tolist(), given)
    say = reference.weights(cells, weights)
    assert_fusion(fusion, reference.fuse(cells, say, lambda key: key[1]))
    assert fusion.weights == pytest.approx({p: float(sum(w for (g, _), w in say.items() if g == p)) for p in range(3)})
    assert fusion.counts == {0: 60, 1: 25, 2: 7}


@pytest.mark.parametrize("shift", [1e-3, 1e-6, 1e-9])
def test_tiny_shifts_are_seen(shift):
    a = np.random.default_rng(0).normal(size=(500, 8))
    b = a + shift
    exact = reference.cfd(np.concatenate([a, b]), [0] * 500 + [1] * 500).distance
    assert exact > 0
    assert cf.cfd(a, b).distance == pytest.approx(exact, rel=1e-14 / shift + 1e-12, abs=0)


# ---- the bias of the plug-in, and of what is called unbiased


def mean_and_error(values):
    return np.mean(values), np.std(values) / np.sqrt(len(values))


def test_unbiased_meets_the_truth_where_the_plug_in_does_not():
    draw = np.random.default_rng(1)
    shift = np.full(128, 2 / np.sqrt(128))
    found = [cf.cfd(draw.normal(size=(50, 128)), draw.normal(size=(50, 128)) + shift) for _ in range(1500)]
    truth = np.log1p(1 / 128)
    unbiased, error = mean_and_error([fusion.unbiased for fusion in found])
    assert error < 1e-4
    assert abs(unbiased - truth) < 3.5 * error
    assert np.mean([fusion.distance for fusion in found]) == pytest.approx(truth + 1 / 98, abs=5e-4)


def test_unbiased_conditional_and_balanced_with_a_cell_missing():
    draw = np.random.default_rng(2)
    sizes = {("a", 0): 12, ("a", 1): 40, ("b", 0): 25, ("b", 1): 9, ("b", 2): 30, ("c", 1): 15, ("c", 2): 20}
    dim = 64
    centres = {key: draw.normal(scale=0.1, size=dim) + key[1] * draw.normal(size=dim) for key in sizes}
    labels, given = (np.repeat([key[k] for key in sizes], list(sizes.values())) for k in (0, 1))
    means = np.repeat(list(centres.values()), list(sizes.values()), axis=0)
    found = [cf.cfd(draw.normal(means), labels=labels, given=given, weights="balanced") for _ in range(1000)]
    weight = {
        key: float(w)
        for key, w in reference.weights(
            {key: reference.Cell(size, [], []) for key, size in sizes.items()}, "balanced"
        ).items()
    }
    between = 0.0
    for stratum in range(3):
        keys = [key for key in sizes if key[1] == stratum]
        total = sum(weight[key] for key in keys)
        centre = sum(weight[key] * centres[key] for key in keys) / total
        between += sum(weight[key] * float(np.sum((centres[key] - centre) ** 2)) for key in keys)
    truth = np.log1p(between / dim)
    unbiased, error = mean_and_error([fusion.unbiased for fusion in found])
    assert error < truth / 50
    assert abs(unbiased - truth) < 3.5 * error
    assert np.mean([fusion.distance for fusion in found]) > truth + 0.01


def test_imbalance_moves_pooled_but_not_balanced():
    draw = np.random.default_rng(3)
    a, b = draw.normal(size=(1000, 64)), draw.normal(1.0, 1, size=(1000, 64))
    few = b[:20]
    assert cf.cfd(a, b).distance == pytest.approx(0.22, abs=0.01)
    assert cf.cfd(a, few).distance == pytest.approx(0.02, abs=0.005)
    assert cf.cfd(a, b, weights="balanced").distance == pytest.approx(cf.cfd(a, b).distance, rel=1e-12)
    assert cf.cfd(a, few, weights="balanced").unbiased == pytest.approx(cf.cfd(a, b).unbiased, abs=0.02)


# ---- trimming


def by_hand(rows, keys, trim):
    """Rows that trimming keeps: of each cell all but the farthest, the later of equals first."""
    kept = np.ones(len(rows), bool)
    for key in set(keys):
        own = np.array([k for k, value in enumerate(keys) if value == key])
        distance = np.linalg.norm(rows[own] - rows[own].mean(axis=0), axis=1)
        out = own[np.argsort(distance, kind="stable")][len(own) - int(trim * len(own) + 1e-9) :]
        kept[out] = False
    return kept


def test_units_of_one_row_each_ask_for_no_interval():
    x = np.random.default_rng(0).normal(size=(4, 3))
    assert cf.cfd(x[:2], x[2:], units=([1, 2], [3, 4])).to_dict() == cf.cfd(x[:2], x[2:]).to_dict()


def test_trimming_removes_outliers():
    draw = np.random.default_rng(4)
    a, b = draw.normal(size=(200, 16)), draw.normal(1, 1, size=(200, 16))
    clean = cf.cfd(a, b, trim=0.05).distance
    spoiled = a.copy()
    spoiled[::20] += 1e3
    assert cf.cfd(spoiled, b).distance < clean / 10
    assert cf.cfd(spoiled, b, trim=0.05).distance == pytest.approx(clean, rel=0.1)


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("trim", [0.01, 0.1, 0.25, 0.49])
def test_trimming_each_cell_is_leaving_its_farthest_rows_out(trim, strata, route):
    rows, labels = labelled(5)
    given = np.arange(len(rows)) % 2 if strata else None
    kept = by_hand(rows, list(zip(labels, labels if given is None else given, strict=True)), trim)
    rest = None if given is None else given[kept]
    fusion, expected = (
        cf.cfd(rows, labels=labels, given=given, trim=trim),
        cf.cfd(rows[kept], labels=labels[kept], given=rest),
    )
    assert fusion.counts == expected.counts
    assert fusion.distance == pytest.approx(expected.distance, rel=1e-12)
    assert fusion.unbiased == pytest.approx(expected.unbiased, rel=1e-12)


@pytest.mark.parametrize(
    ("number", "trim", "left"), [(10, 0.1, 9), (9, 0.1, 9), (100, 0.29, 71), (3, 0.49, 2), (1, 0.4, 1)]
)
def test_trimming_counts_rows_rounded_down(number, trim, left):
    rows = np.random.default_rng(6).normal(size=(number, 2))
    assert cf.cfd(rows, rows, trim=trim).counts == {"a": left, "b": left}


def test_of_equally_far_rows_the_later_go_first():
    a, b = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([[5.0], [6.0]])
    assert cf.cfd(a, b, trim=0.25) == cf.cfd(a[:3], b)


def test_trimming_nothing_changes_nothing(route):
    rows, labels = labelled(7)
    assert cf.cfd(rows, labels=labels, trim=0) == cf.cfd(rows, labels=labels)
    assert cf.cfd(rows[:20], rows[20:], trim=0.0) == cf.cfd(rows[:20], rows[20:])


def test_trimming_goes_with_dropping(route):
    rows, labels = labelled(8)
    bad = rows * 1e25
    bad[3, 1], bad[10] = np.nan, np.inf
    good = np.isfinite(bad).all(axis=1)
    with pytest.warns(cf.CrossfusionWarning, match="2 of 92 rows"):
        fusion = cf.cfd(bad.astype(np.float32), labels=labels, trim=0.1, nan="drop")
    expected = cf.cfd(rows[good], labels=labels[good], trim=0.1)
    assert (fusion.dropped, fusion.counts) == (2, expected.counts)
    assert fusion.distance == pytest.approx(expected.distance, rel=1e-5)


@pytest.mark.parametrize("trim", [-0.1, 0.5, 1, np.nan, "0.1", True, None])
def test_a_share_to_trim_that_makes_no_sense_is_refused(trim, refuses):
    with refuses("trim="):
        cf.cfd([[1.0]], [[2.0]], trim=trim)


# ---- labels

LABELS: dict[str, list[Any]] = {
    "str": ["b", "a"],
    "empty str": ["", " "],
    "int": [3, -2],
    "bool": [True, False],
    "float": [0.5, -1.5],
    "decimal": [decimal.Decimal("1.5"), decimal.Decimal("-2.5")],
    "date": [dt.date(2024, 1, 2), dt.date(1969, 1, 1)],
    "datetime": [dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(1969, 1, 1)],
    "datetime with zone": [dt.datetime(2024, 1, k, tzinfo=dt.UTC) for k in (1, 2)],
    "time": [dt.time(3), dt.time(1)],
    "timedelta": [dt.timedelta(3), dt.timedelta(-1)],
    "None": ["a", None],
    "int and None": [1, None],
}
MAKERS = {
    "list": list,
    "tuple": tuple,
    "object array": lambda values: np.array([*values, None], object)[:-1],
    "pandas": pd.Series,
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "categorical": pd.Categorical,
}


PAIRS = [(kind, maker) for kind in LABELS for maker in MAKERS]
PAIRS.remove(("int and None", "pandas"))  # pandas itself makes floats of these
if pa.array(pd.Categorical(LABELS["datetime with zone"])).type.value_type.tz is None:
    PAIRS.remove(("datetime with zone", "categorical"))  # older versions of PyArrow lose the zone


@pytest.mark.parametrize(("kind", "maker"), PAIRS)
def test_labels_of_any_type_come_back_as_they_were(kind, maker):
    values = LABELS[kind] * 6
    counts = cf.cfd(np.arange(12.0)[:, None] ** 2, labels=MAKERS[maker](values)).counts
    expected = sorted(v for v in LABELS[kind] if v is not None) + [None] * (None in LABELS[kind])
    assert list(counts) == expected
    assert [type(label) for label in counts] == [type(label) for label in expected]
    assert set(counts.values()) == {6}


DAYS = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]
ARRAYS: dict[str, tuple[Any, list[Any]]] = {
    **{name: (np.array([5, 1], name), [1, 5]) for name in ["i1", "i2", "i4", "i8", "u1", "u8"]},
    "float16": (np.array([5.5, 1], np.float16), [1.0, 5.5]),
    "float32": (np.array([5.5, 1], np.float32), [1.0, 5.5]),
    "int8 from end to end": (np.array([127, -128], np.int8), [-128, 127]),
    "int16 from end to end": (np.array([30_000, -30_000], np.int16), [-30_000, 30_000]),
    "int64 from end to end": (np.array([2**63 - 1, -(2**63)]), [-(2**63), 2**63 - 1]),
    "uint64 at its end": (np.array([2**64 - 1, 2**64 - 3], np.uint64), [2**64 - 3, 2**64 - 1]),
    "not native": (np.array([5, 1], ">i4"), [1, 5]),
    "bytes": (np.array([b"b", b"a"]), ["a", "b"]),
    "strings": (np.array(["b", "a"]), ["a", "b"]),
    "days": (np.array(DAYS[::-1], "datetime64[D]"), [day.date() for day in DAYS]),
    "nanoseconds": (np.array(DAYS[::-1], "datetime64[ns]"), DAYS),
    "masked": (np.ma.masked_array([1, 2], [True, False]), [2, None]),
    "pandas strings": (pd.array(["b", "a"], "string"), ["a", "b"]),
    "pandas integers": (pd.array([1, None], "Int64"), [1, None]),
    "Polars": (pl.Series(["b", "a"]), ["a", "b"]),
    "Polars categories": (pl.Series(["b", "a"], dtype=pl.Categorical), ["a", "b"]),
}
if hasattr(np.dtypes, "StringDType"):  # since NumPy 2
    ARRAYS["new strings"] = (np.array(["b", "a"], np.dtypes.StringDType()), ["a", "b"])


@pytest.mark.parametrize("kind", ARRAYS)
def test_labels_of_any_array_type(kind):
    pair, expected = ARRAYS[kind]
    repeat = 20_000  # many rows, so that integers are numbered by subtraction
    labels = pair[np.tile([0, 1], repeat)]
    counts = cf.cfd(np.arange(2.0 * repeat)[:, None], labels=labels).counts
    assert list(counts) == expected
    assert [type(label) for label in counts] == [type(label) for label in expected]
    assert set(counts.values()) == {repeat}


def test_tensors_as_labels():
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")
    rows = np.arange(8.0)[:, None]
    for labels in (torch.tensor([0, 1] * 4), jax.asarray([0, 1] * 4)):
        assert cf.cfd(rows, labels=labels).counts == {0: 4, 1: 4}


def test_nan_labels_are_missing_and_zero_has_no_sign():
    rows = np.arange(12.0)[:, None]
    assert cf.cfd(rows, labels=[1.0, float("nan"), 2.0] * 4).counts == {1.0: 4, 2.0: 4, None: 4}
    assert cf.cfd(rows, labels=[0.0, -0.0, 1.0] * 4).counts == {0.0: 8, 1.0: 4}


BAD = {
    "one string": "ab",
    "a number": 3,
    "a generator": (k for k in (0, 1)),
    "a set, which has no order": {0, 1},
    "a matrix": np.zeros((2, 1), int),
    "pairs": [("a", "b"), ("c", "d")],
    "strings and numbers": ["a", 1],
    "complex": [1j, 2j],
    "objects": [object(), object()],
    "intervals": pd.arrays.IntervalArray.from_breaks([0, 1, 2]),
    "periods": pd.period_range("2024-01", periods=2, freq="M"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("name", ["labels", "given"])
def test_what_are_no_labels_is_refused(case, name, refuses):
    with refuses(name):
        cf.cfd([[1.0], [2.0]], **{"labels": ["p", "q"], name: BAD[case]})


def test_labels_pair_with_rows(refuses):
    with refuses("labels has 3 entries for 2 rows"):
        cf.cfd([[1.0], [2.0]], labels=[1, 2, 3])
    with refuses("given"):
        cf.cfd([[1.0], [2.0]], labels=[1, 2], given=[1])


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"b": [[1.0]], "labels": [1]},
        {"b": [[1.0]], "given": [1]},
        {"given": [1]},
    ],
)
def test_two_arrays_or_one_with_labels(arguments, refuses):
    with refuses("labels"):
        cf.cfd([[1.0]], **arguments)


def test_results_print_and_serialise():
    fusion = cf.cfd([[0.0], [2.0]], [[2.0], [4.0]])
    assert fusion.to_dict() == {
        "distance": pytest.approx(np.log(2)),
        "unbiased": pytest.approx(np.log(1.25)),
        "score": 0.5,
        "within": 1.0,
        "between": 1.0,
        "total": 2.0,
        "counts": {"a": 2, "b": 2},
        "weights": {"a": 0.5, "b": 0.5},
        "overlap": 1.0,
        "dropped": 0,
        "caution": None,
        "reason": None,
        "excluded": [],
    }
    assert repr(fusion).startswith("Cross-Fusion Distance 0.2231, plug-in 0.6931")
    with pytest.raises(AttributeError):
        fusion.distance = 0.0  # type: ignore[misc]


def test_keys_of_json_stay_apart():
    rows = np.arange(8.0)[:, None]
    assert cf.cfd(rows, labels=["null", None] * 4).to_dict()["counts"] == {'"null"': 4, "null": 4}
    assert cf.cfd(rows, labels=[dt.date(2024, 1, 1), None] * 4).to_dict()["counts"] == {"2024-01-01": 4, "null": 4}


def test_an_anndata_is_rejected_before_anyone_walks_its_cells(monkeypatch):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(np.zeros((4, 2)))
    monkeypatch.setattr(anndata.AnnData, "__getitem__", lambda *_: pytest.fail("walked"))
    with pytest.raises(cf.InputError, match=r"is an AnnData.*adata\.obsm"):
        cf.cfd(adata, labels=[0, 0, 1, 1])
