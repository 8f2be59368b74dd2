"""Permutation tests: the peers' statistics, every rearrangement by brute force, and the level that they promise."""

import itertools
import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse, stats
from scipy.spatial.distance import pdist, squareform
from skbio import DistanceMatrix
from skbio.stats.distance import permanova, permdisp
from sklearn.metrics import calinski_harabasz_score
from statsmodels.stats.multitest import multipletests
from threadpoolctl import threadpool_limits

import crossfusion as cf
from crossfusion._base import threads
from crossfusion.inference.permutation import exchangeable, grouped_sums, sums
from tests.helpers.command_line import fails, run, run_json


def distance_matrix(x):
    return DistanceMatrix(squareform(pdist(x)))


def labelled(groups, shift, least=10):
    draw = np.random.default_rng(groups)
    labels = draw.permutation(np.repeat(np.arange(groups), least + 7 * np.arange(groups)))
    return draw.normal(size=(len(labels), 6)) + shift * draw.normal(size=(groups, 6))[labels], labels


def same_chance(p, q, number):
    """Two estimates of one p-value, from so many permutations each."""
    middle = (p + q) / 2
    return abs(p - q) <= 4 * np.sqrt(2 * middle * (1 - middle) / number)


# ---- peers


@pytest.mark.parametrize("groups", [2, 5])
def test_statistic_and_p_value_are_those_of_permanova(groups):
    x, labels = labelled(groups, shift=0.12)
    found = cf.permutation_test(x, labels, permutations=1999, statistic="pseudo-f")
    with threadpool_limits(1):  # its threads are slower than one on so few rows
        expected = permanova(distance_matrix(x), labels.astype(str), permutations=1999, seed=1)
    assert found.statistic == pytest.approx(expected["test statistic"], rel=1e-10)
    assert found.statistic == pytest.approx(calinski_harabasz_score(x, labels), rel=1e-10)
    assert found.distance == cf.cfd(x, labels=labels).distance
    assert 0.005 < found.pvalue < 0.5
    assert same_chance(found.pvalue, expected["p-value"], 1999)


@pytest.mark.parametrize(("groups", "scale"), [(2, 1.05), (3, 1.0)])
def test_dispersion_is_that_of_permdisp(groups, scale):
    x, labels = labelled(groups, shift=1, least=90)
    x[labels == 0] *= scale
    found = cf.dispersion_test(x, labels, permutations=1999)
    options = {"test": "centroid", "dimensions": len(x), "warn_neg_eigval": False, "seed": 1}
    expected = permdisp(distance_matrix(x), labels.astype(str), permutations=0, **options)
    assert found.statistic == pytest.approx(expected["test statistic"], rel=1e-10)
    # the peer exchanges rows, so that positions enter: take them out
    x -= np.stack([x[labels == g].mean(axis=0) for g in range(groups)])[labels]
    expected = permdisp(distance_matrix(x), labels.astype(str), permutations=1999, **options)
    assert found.statistic == pytest.approx(expected["test statistic"], rel=1e-10)
    assert 0.02 < found.pvalue < 0.98
    assert same_chance(found.pvalue, expected["p-value"], 1999)


@pytest.mark.parametrize(("method", "name"), [("holm", "holm"), ("bh", "fdr_bh")])
@pytest.mark.parametrize("number", [1, 2, 30])
def test_adjusted_p_values_are_those_of_statsmodels(method, name, number):
    pvalues = np.random.default_rng(number).uniform(size=number) ** 3
    pvalues[number // 2 :] = np.round(pvalues[number // 2 :], 1)  # ties
    expected = multipletests(pvalues, method=name)[1]
    assert cf.adjusted_pvalues(pvalues, method=method) == pytest.approx(expected, rel=1e-12)


def test_adjusted_p_values_keep_their_shape_and_what_was_not_tested(refuses):
    found = cf.adjusted_pvalues([[np.nan, 0.01], [0.02, np.nan]])
    assert np.array_equal(found, [[np.nan, 0.02], [0.02, np.nan]], equal_nan=True)
    assert cf.adjusted_pvalues([]).shape == (0,)
    with refuses("method='bonferroni'"):
        cf.adjusted_pvalues([0.1], method="bonferroni")
    with refuses("outside of 0 to 1"):
        cf.adjusted_pvalues([1.5])
    with refuses("cannot be read"):
        cf.adjusted_pvalues(["small"])


# ---- every rearrangement


UNIT = np.array([0, 0, 1, 2, 2, 2, 3, 4, 5, 5, 6, 6])
SITE = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0])
DAY = np.array([0, 0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1])  # units 5 and 6 lie in both
SLIDE = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
SCANNER = np.array([0, 0, 1, 0, 1, 1, 0, 1, 2, 2, 2, 0])
BLOCK = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
THREE = np.array([0, 1, 0, 1, 1, 0, 2, 0, 1, 2, 0, 0])
ROW = np.arange(12)

DESIGNS: dict[str, tuple[Any, ...]] = {
    "rows": (SITE[3:10], {}, ROW[3:10], np.zeros(7, int)),
    "rows in strata": (THREE[2:10], {"given": BLOCK[2:10]}, ROW[2:10], BLOCK[2:10]),
    "units": (SITE[:10], {"units": UNIT[:10]}, UNIT[:10], np.zeros(10, int)),
    "units in strata": (SITE, {"units": UNIT, "given": DAY}, UNIT, np.array([0, 0, 0, 1, 1, 1, 0, 1, 2, 2, 2, 2])),
    "pairs": (SCANNER, {"pairs": SLIDE}, 3 * SLIDE + SCANNER, SLIDE),
    "pairs in strata": (SCANNER, {"pairs": SLIDE, "given": BLOCK, "min_units": 1}, 3 * SLIDE + SCANNER, SLIDE),
}


def pseudo_f(x, labels, strata, total=None):
    cells = len(np.unique(np.stack([labels, strata]), axis=1).T)
    parts = len(np.unique(strata))
    fusion = cf.cfd(x, labels=labels, given=strata)
    within = fusion.within if total is None else total - fusion.between
    return fusion.between / within * (len(x) - cells) / (cells - parts)


def landed(x, labels, item, moved, strata):
    """Rows of which each cell of item and stratum has the mean that moves there."""
    cells = {(c, s): (item == c) & (strata == s) for c in np.unique(item) for s in np.unique(strata)}
    new = x.copy()
    for (code, stratum), rows in cells.items():
        if rows.any():
            new[rows] += x[cells[moved[code], stratum]].mean(axis=0) - x[rows].mean(axis=0)
    return new


def welch(x, labels, strata, unit):
    """W*d of each stratum, from the squared errors of means, weighted by the separation expected by chance."""
    entries = pd.DataFrame(x).groupby([strata, labels, unit])
    mean, rows = entries.mean(), entries.size()
    spreads: dict[int, Any] = {}
    groups: dict[int, Any] = {}
    for (stratum, label), n in rows.groupby(level=[0, 1]):
        own, p = mean.loc[stratum, label].to_numpy(), (n / n.sum()).to_numpy()
        centered = np.sum(p**2 * np.square(own - p @ own).sum(axis=1))
        spreads[stratum, label] = centered / (np.sum(p**2) - 2 * np.sum(p**3) + np.sum(p**2) ** 2) if len(n) > 1 else 0
        groups.setdefault(stratum, {})[label] = (p @ own, n.sum(), np.sum(p**2), len(n) - 1)
    strata = {s: found for s, found in groups.items() if len(found) > 1}
    everywhere = [(groups[s][k][3], spreads[s, k]) for s in strata for k in groups[s]]
    found, weights = [], []
    for s, cells in strata.items():
        here = [(cells[k][3], spreads[s, k]) for k in cells]
        freedom, variance = np.array(here if sum(f for f, _ in here) else everywhere).T
        pooled, total = freedom @ variance / freedom.sum(), freedom.sum()
        error = np.array([c[2] * (spreads[s, k] if c[3] else pooled) for k, c in cells.items()])
        freedom = np.array([c[3] or total for c in cells.values()])
        mu, n = np.array([c[0] for c in cells.values()]), np.array([c[1] for c in cells.values()])
        w, k = 1 / error, len(cells)
        h = np.sum((1 - w / w.sum()) ** 2 / freedom)
        apart = [w[i] * w[j] * np.sum((mu[i] - mu[j]) ** 2) for i, j in itertools.combinations(range(k), 2)]
        found.append(sum(apart) / w.sum() / (k - 1) / (1 + 2 * (k - 2) / (k**2 - 1) * h))
        weights.append(np.sum(n * (1 - n / n.sum()) * error))
    return np.average(found, weights=weights)


def brute_force(x, labels, item, block, strata, paired, unit=None):
    """Statistic of each order of the items' labels within blocks, by permuting everything, equal labels or not."""
    first = {code: np.flatnonzero(item == code)[0] for code in np.unique(item)}
    blocks = [[code for code in first if block[first[code]] == b] for b in np.unique(block)]
    found: dict[bytes, Any] = {}
    for orders in itertools.product(*(itertools.permutations(members) for members in blocks)):
        moved = dict(zip(itertools.chain(*blocks), itertools.chain(*orders), strict=True))
        new = np.array([labels[first[moved[code]]] for code in item])
        found.setdefault(new.tobytes(), (new, moved))
    if unit is not None:
        if paired:
            rows = [landed(x, labels, item, move, strata) for _, move in found.values()]
            return np.array([welch(new, labels, strata, unit) for new in rows])
        return np.array([welch(x, new, strata, unit) for new, _ in found.values()])
    if paired:
        total = cf.cfd(x, labels=labels, given=strata).total
        return np.array(
            [pseudo_f(landed(x, labels, item, move, strata), labels, strata, total) for _, move in found.values()]
        )
    return np.array([pseudo_f(x, new, strata) for new, _ in found.values()])


@pytest.mark.parametrize("statistic", ["welch", "pseudo-f"])
@pytest.mark.parametrize("design", DESIGNS)
def test_every_rearrangement_is_looked_at_where_they_are_few(design, statistic):
    labels, options, item, block = DESIGNS[design]
    x = np.random.default_rng(7).normal(size=(len(labels), 3)) + labels[:, None]
    strata = options.get("given", np.zeros(len(labels), int))
    unit = options.get("units", options.get("pairs", np.arange(len(labels)))) if statistic == "welch" else None
    expected = brute_force(x, labels, item, block, strata, "pairs" in options, unit)
    options = options | {"statistic": statistic}
    found = cf.permutation_test(x, labels, permutations=len(expected) - 1, **options)
    assert found.statistic_name == statistic
    assert found.exact
    assert found.permutations == len(expected) == len(found.null)
    assert np.sort(found.null) == pytest.approx(np.sort(expected), rel=1e-10)
    observed = pseudo_f(x, labels, strata) if unit is None else welch(x, labels, strata, unit)
    assert found.statistic == pytest.approx(observed, rel=1e-12)
    assert found.pvalue == pytest.approx(np.mean(expected >= found.statistic * (1 - 1e-9)))
    assert found.pvalue == np.mean(found.null >= found.statistic)
    assert not cf.permutation_test(x, labels, permutations=len(expected) - 2, **options).exact


@pytest.mark.parametrize("design", DESIGNS)
def test_random_rearrangements_are_as_frequent_as_they_should_be(design):
    labels, options = DESIGNS[design][:2]
    x = np.random.default_rng(7).normal(size=(len(labels), 3)) + labels[:, None]
    every = cf.permutation_test(x, labels, permutations=5000, **options).null
    few = {"permutations": min(len(every) - 2, 200)} | options
    several = [cf.permutation_test(x, labels, seed=seed, **few).null for seed in range(30)]
    values, position = np.unique(np.round(every, 8), return_inverse=True)
    index = np.searchsorted(values, np.round(np.concatenate(several), 8) - 1e-7)
    counted = np.bincount(index, minlength=len(values))
    expected = np.bincount(position) / len(every) * counted.sum()
    assert stats.chisquare(counted, expected).pvalue > 1e-4


def test_ties_count():
    x = np.repeat([[0.1], [0.7]], 4, axis=0)
    found = cf.permutation_test(x, [0, 0, 0, 1, 0, 1, 1, 1], permutations=49)
    tied = cf.permutation_test(x, [0, 0, 0, 1, 0, 1, 1, 1], permutations=69)
    assert tied.exact
    assert tied.pvalue == (2 * 16 + 2) / 70
    assert found.pvalue == (np.sum(found.null >= found.statistic) + 1) / 50
    apart = cf.permutation_test(x, [0] * 4 + [1] * 4, permutations=69)
    assert apart.statistic == np.inf
    assert apart.pvalue == 2 / 70
    assert cf.permutation_test(np.ones((8, 2)), [0] * 4 + [1] * 4).pvalue == 1


# ---- the same answer however it is found


def example(rows=300, dim=5):
    draw = np.random.default_rng(1)
    unit = draw.integers(0, 40, rows)
    by = {"site": unit % 3, "tissue": draw.integers(0, 2, rows), "unit": unit, "scanner": draw.integers(0, 2, rows)}
    return draw.normal(size=(rows, dim)) + 0.3 * draw.normal(size=(40, dim))[unit], by


def same(found, expected):
    assert found.pvalue == expected.pvalue
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-11)
    assert found.distance == pytest.approx(expected.distance, rel=1e-11)
    assert found.null == pytest.approx(expected.null, rel=1e-9)


def test_seeds_reproduce():
    x, by = example()
    first, again, other = (cf.permutation_test(x, by["site"], seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.null, again.null)
    assert not np.array_equal(first.null, other.null)
    assert len(np.unique(first.null)) == 999


@pytest.mark.parametrize("options", [{}, {"given": "tissue"}, {"units": "unit"}, {"pairs": "unit"}], ids=str)
def test_how_work_is_cut_changes_nothing(options, monkeypatch):
    x, by = example()
    labels = by["scanner" if "pairs" in options else "site"]
    arguments = {name: by[factor] for name, factor in options.items()}

    def ask():
        return cf.permutation_test(x, labels, permutations=99, **arguments)

    expected = ask()
    for module, name, value in (
        (sums, "TILE_BYTES", 700),
        (sums, "MAX_BYTES", 1),
        (sums, "MAX_BATCH", 32),
        (sums, "thread_count", lambda: 3),
        (threads, "_load_blas", lambda: None),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            same(ask(), expected)


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(sums, "MAX_BATCH", 10**9)
    for threads_ in (1, 2, 8):
        monkeypatch.setattr(sums, "thread_count", lambda number=threads_: number)
        for items, dim in ((10**3, 1), (10**5, 256), (10**6, 1024)):
            step = sums._choose_batch_size(items, 1, dim, 10**6)
            tile = sums._choose_tile_rows(dim)
            used = step * (items + 9 * tile + 40 * dim) + 24 * tile * dim
            assert threads_ * used <= max(sums.MAX_BYTES, threads_ * 20 * items)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool"])
def test_any_type_of_rows(dtype):
    x, by = example()
    rows = np.clip(8 * x, 0, 200).astype(dtype) if dtype != "bool" else x > 0
    expected = cf.permutation_test(rows.astype(float), by["site"])
    for given in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        same(cf.permutation_test(given, by["site"]), expected)
    units = {"units": by["unit"]}
    same(cf.permutation_test(rows, by["site"], **units), cf.permutation_test(rows * 1.0, by["site"], **units))


def test_sparse_rows_and_offsets():
    x, by = example()
    x[x < 0.5] = 0
    expected = cf.permutation_test(x, by["site"], given=by["tissue"])
    same(cf.permutation_test(sparse.csr_array(x), by["site"], given=by["tissue"]), expected)
    far = cf.permutation_test(x + 1e6, by["site"], given=by["tissue"])
    assert far.pvalue == expected.pvalue
    assert far.null == pytest.approx(expected.null, rel=1e-6)


@pytest.mark.parametrize("wide", [False, True], ids=["sums", "rows"])
def test_a_summary_answers_as_the_rows_do(wide):
    x, by = example(rows=90 if wide else 600)
    summary = cf.summarize(x, by=by)
    same(summary.test("site", units="unit"), cf.permutation_test(x, by["site"], units=by["unit"]))
    found = summary.test("site", given="tissue", units="unit", permutations=99, seed=5)
    same(found, cf.permutation_test(x, by["site"], units=by["unit"], given=by["tissue"], permutations=99, seed=5))
    same(summary.test("scanner", units=["unit"]), cf.permutation_test(x, by["scanner"], pairs=by["unit"]))
    paired = cf.permutation_test(x, by["scanner"], pairs=by["unit"], given=by["tissue"])
    same(summary.test("scanner", given="tissue", units="unit"), paired)
    assert found.distance == pytest.approx(summary.cfd("site", given="tissue").distance, rel=1e-12)
    both = [f"{a}{b}" for a, b in zip(by["scanner"], by["tissue"], strict=True)]
    same(summary.test(["scanner", "tissue"], units="unit"), cf.permutation_test(x, both, pairs=by["unit"]))


def test_few_rows_a_pair_and_one_row_a_pair_agree():
    draw = np.random.default_rng(0)
    x, pair, label = draw.normal(size=(40, 3)), np.repeat(np.arange(20), 2), np.tile([0, 1], 20)
    for statistic, factor in (("pseudo-f", 118 / 38), ("welch", 1.0)):
        once = cf.permutation_test(x, label, pairs=pair, statistic=statistic)
        thrice = [np.repeat(values, 3, axis=0) for values in (x, label, pair)]
        several = cf.permutation_test(*thrice[:2], pairs=thrice[2], statistic=statistic)
        assert several.pvalue == once.pvalue
        assert several.statistic == pytest.approx(once.statistic * factor, rel=1e-10)


def test_results_print_and_go_to_json():
    x, by = example()
    found = cf.permutation_test(x, by["site"], permutations=19)
    assert json.loads(json.dumps(found.to_dict())) == {
        "statistic": found.statistic,
        "pvalue": found.pvalue,
        "permutations": 19,
        "null": found.null.tolist(),
        "distance": found.distance,
        "exact": False,
        "statistic_name": "welch",
        "caution": None,
        "excluded": [],
    }
    assert "(19 permutations)" in repr(found)


# ---- bad input


X = np.arange(24.0).reshape(12, 2)
TWO = np.arange(12) % 2
UNITS = np.arange(12) // 6 * 2 + TWO  # two of each label; those of one lie in a stratum more
STRATA = np.where(TWO == 0, np.arange(12) // 2 % 2, 0)
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "one label": ({"labels": np.zeros(12)}, "only one group"),
    "one row each": ({"labels": np.arange(12)}, "every group has one row"),
    "one row each in strata": ({"labels": TWO, "given": np.arange(12) // 2}, "every group has one row"),
    "confounded": ({"labels": TWO, "given": TWO}, "no stratum holds two"),
    "lengths": ({"labels": TWO[1:]}, "labels has 11 entries for 12 rows"),
    "lengths of units": ({"labels": TWO, "units": TWO[1:]}, "differ in length"),
    "crossed units": ({"labels": TWO, "units": np.arange(12) // 2}, "pass them as pairs of permutation_test"),
    "one unit a label": ({"labels": TWO, "units": np.where(TWO, 0, np.arange(12) + 1)}, "fewer than two groups"),
    "nested pairs": ({"labels": TWO, "pairs": np.arange(12)}, "no pair has two labels"),
    "pairs without a value": ({"labels": TWO, "pairs": [None, *UNITS[1:]]}, "pairs has missing values"),
    "short pairs": ({"labels": TWO, "pairs": UNITS[1:]}, "differ in length .*'pairs': 11"),
    "units and pairs": ({"labels": TWO, "units": TWO, "pairs": TWO}, "cannot be combined"),
    "no freedom": ({"labels": TWO, "units": UNITS, "given": STRATA}, "arranged in only one way"),
    "no permutations": ({"labels": TWO, "permutations": 0}, "permutations=0"),
    "endless permutations": ({"labels": TWO, "permutations": 2**70}, "would never end"),
    "half a permutation": ({"labels": TWO, "permutations": 9.5}, "permutations=9.5"),
    "seed": ({"labels": TWO, "seed": -1}, "seed=-1"),
    "statistic": ({"labels": TWO, "statistic": "t"}, "statistic='t' is not known"),
    "no seed": ({"labels": TWO, "seed": None}, "seed=None"),
    "labels": ({"labels": None}, "labels must hold one value per row"),
}  # fmt: skip


def test_units_that_a_test_within_units_leaves_out_are_told():
    patient, rows = np.arange(40) // 4, np.random.default_rng(0).normal(size=(40, 2))
    site = np.where(patient < 5, "A", "B")
    site[:2] = "B"  # by mistake
    with pytest.warns(cf.CrossfusionWarning, match="1 of 10 units are in several of the compared groups"):
        cf.summarize(rows, by={"site": site, "patient": patient}).test("site", units="patient")


@pytest.mark.parametrize("name", BAD)
def test_bad_input_says_what_to_do(name, refuses):
    options, message = BAD[name]
    with refuses(message):
        cf.permutation_test(X, **options)


@pytest.mark.parametrize("test", [cf.permutation_test, cf.dispersion_test])
def test_rows_that_are_not_finite_are_refused(test, refuses):
    bad = X.copy()
    bad[3, 1] = np.nan
    for options in ({}, {"units": np.arange(12)}):
        with refuses("1 of 12 rows, the first in row 3, feature 1 .* leave them out", cf.NonFiniteError):
            test(bad, TWO, **options)
    with refuses("no rows"):
        test(X[:0], [])


def test_a_summary_needs_units(refuses):
    summary = cf.summarize(X, by={"p": TWO, "u": np.arange(12) // 3})
    with refuses("no rows, so a test needs units"):
        summary.test("p")
    with refuses("did you mean 'u'|no factor"):
        summary.test("p", units="uu")
    with refuses("'p' is in units and in between"):
        summary.test("p", units=["u", "p"])
    with refuses("permutations=0"):
        summary.test("p", units="u", permutations=0)


# ---- the command


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("test")
    x, by = example()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])
    pq.write_table(pa.table(by | {"embedding": vectors}), folder / "x.parquet", row_group_size=70)
    bad = x.copy()
    bad[5] = np.inf
    np.savez(folder / "bad.npz", x=bad, **by)
    cf.summarize(x, by=by).write(folder / "s.parquet")
    return folder


def test_the_command_answers_as_python_does(files):
    x, by = example()
    summary = cf.summarize(x, by=by)
    for options, expected in {
        "--between site": cf.permutation_test(x, by["site"]),
        "--between site --given tissue --seed 3": cf.permutation_test(x, by["site"], given=by["tissue"], seed=3),
        "--between site --given tissue --units unit": summary.test("site", given="tissue", units="unit"),
        "--between scanner --pairs unit --permutations 99": summary.test("scanner", units="unit", permutations=99),
    }.items():
        for name in ("x.parquet", "s.parquet"):
            if "unit" in options or name == "x.parquet":
                found = run_json("test", files / name, *options.split())
                assert list(found)[-4:] == ["statistic", "pvalue", "permutations", "exact"]
                assert found["distance"] == pytest.approx(expected.distance, rel=1e-10)
                assert found["pvalue"] == expected.pvalue
                assert found["statistic"] == pytest.approx(expected.statistic, rel=1e-10)
    shown = run("test", files / "s.parquet", "--between", "site", "--units", "unit").stdout
    assert "permuting unit" in shown
    assert "random permutations" in shown


def test_bad_calls_are_one_line(files, tmp_path):
    np.savez(tmp_path / "single.npz", x=np.eye(4), site=["A"] * 4)
    assert "there is only one group to compare ('A')" in fails("test", tmp_path / "single.npz", "--between", "site")
    assert "name the units with --units" in fails("test", files / "s.parquet", "--between", "site")
    assert "cannot be combined" in fails(
        "test", files / "x.parquet", *["--between", "site", "--units", "unit", "--pairs", "unit"]
    )
    assert "no unit was measured in two" in fails(
        "test", files / "x.parquet", *["--between", "site", "--pairs", "unit"]
    )
    assert "--nan drop" in fails("test", files / "bad.npz", "--between", "site")
    assert "--permutations 0" in fails("test", files / "x.parquet", *["--between", "site", "--permutations", "0"])
    done = run("test", files / "bad.npz", "--between", "site", "--nan", "drop", "--json")
    assert "1 of 300 rows" in done.stderr


# ---- many groups


def many_groups(case):
    """Arguments of a test whose groups are summed by themselves, or by products; units of different sizes."""
    draw = np.random.default_rng(5)
    labels = np.concatenate([np.arange(14), draw.integers(0, 13, 386)])  # one group has a single row
    x = draw.normal(size=(400, 3)) + 0.2 * labels[:, None] + 1e6
    strata = draw.integers(0, 3, 400)
    strata[:14] = 0
    unit = draw.integers(0, 90, 400)
    label_of_unit = draw.permutation(np.arange(90) % 14)
    return {
        "rows": (x, labels, {}),
        "float32": ((x - 1e6).astype(np.float32), labels, {}),
        "sparse": (sparse.csr_array(np.maximum(x - 1e6, 0)), labels, {}),
        "strata": (x, labels, {"given": strata}),
        "units": (x, label_of_unit[unit], {"units": unit}),
        "units in strata": (x, label_of_unit[unit], {"units": unit, "given": np.arange(400) % 2}),
        "pairs": (x, labels, {"pairs": unit % 20}),
    }[case]


@pytest.mark.filterwarnings("ignore:left out")  # the group of a single row
@pytest.mark.parametrize("statistic", ["welch", "pseudo-f", "dispersion"])
@pytest.mark.parametrize("case", ["rows", "float32", "sparse", "strata", "units", "units in strata", "pairs"])
def test_many_groups_have_the_statistics_of_few(monkeypatch, case, statistic):
    x, labels, options = many_groups(case)
    if statistic == "dispersion" and case == "pairs":
        pytest.skip("there is no such test of spread")
    test = cf.dispersion_test if statistic == "dispersion" else cf.permutation_test
    options |= {"permutations": 37} | ({} if statistic == "dispersion" else {"statistic": statistic})
    products = test(x, labels, **options)
    monkeypatch.setattr(grouped_sums.GroupedSums, "pays", staticmethod(lambda *_: True))
    grouped = test(x, labels, **options)
    assert grouped.null == pytest.approx(products.null, rel=1e-7)
    assert (grouped.statistic, grouped.pvalue) == (products.statistic, products.pvalue)


def test_the_rows_are_read_once_per_permutation_however_many_groups_there_are(monkeypatch):
    read = []
    reduce_rows = grouped_sums.kernel.reduce_rows

    def count(rows, *rest, **options):
        read.append(len(rows))
        return reduce_rows(rows, *rest, **options)

    monkeypatch.setattr(grouped_sums, "MIN_NUMBERS", 0)
    monkeypatch.setattr(grouped_sums.kernel, "reduce_rows", count)
    draw = np.random.default_rng(0)
    for groups in (20, 100):
        read.clear()
        cf.permutation_test(draw.normal(size=(600, 2)), np.arange(600) % groups, permutations=10)
        assert read == [600] * 11  # and once for the observed groups


def test_items_of_the_same_strata_have_the_same_code_numbered_as_they_first_occur():
    draw = np.random.default_rng(0)
    for strata in (1, 2, 5):
        item = np.concatenate([np.arange(60), draw.integers(0, 60, 100)])
        stratum = draw.integers(0, strata, 160)
        known: dict[Any, int] = {}
        sets = [frozenset(stratum[item == k].tolist()) for k in range(60)]
        expected = [known.setdefault(entry, len(known)) for entry in sets]
        if strata > 1:  # otherwise an item's only stratum is its code
            assert exchangeable.encode_strata_sets(item, stratum).tolist() == expected
