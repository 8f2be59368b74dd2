"""Relative distance ratios and degradation rates: known answers, units held out, and what is refused."""

# mypy: disable-error-code="arg-type,list-item"

import json
from itertools import combinations

import numpy as np
import pytest

import crossfusion as cf
from crossfusion.evaluation.protocols.halves import split_halves
from crossfusion.evaluation.protocols.scores import METRICS, Predictions


def two(shift, seed=0, n=(120, 120), dim=6):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(sum(n), dim))
    domain = np.repeat(["A", "B"], n)
    x[domain == "B"] += shift
    return x, domain


def of(found, distance, domain):
    return next(entry for entry in found.ratios if (entry.distance, entry.domain) == (distance, domain))


# Ratios


def test_ratios_are_one_without_a_shift_and_small_with_one():
    names = ["cfd", "mmd", "wasserstein"]
    same = cf.rdr(*two(0.0, dim=60), distances=names, repeats=20)
    far = cf.rdr(*two(2.0, dim=60), distances=names, repeats=20)
    for name in names:
        for side in "AB":
            assert of(same, name, side).ratio_of_means == pytest.approx(1, abs=0.15)
            assert of(far, name, side).ratio < 0.6
    assert of(far, "cfd", "A").ratio < 0.02


def test_the_unbiased_distance_has_a_ratio_around_zero_and_it_is_not_clipped():
    found = cf.rdr(*two(1.0), distances=["cfd", "cfd_unbiased"], repeats=60)
    biased, unbiased = of(found, "cfd", "A"), of(found, "cfd_unbiased", "A")
    assert biased.within > 0.005
    assert abs(unbiased.within) < 0.002
    assert unbiased.within_sd > 0
    lowest = cf.rdr(*two(1.0), distances="cfd_unbiased", repeats=2, seed=3)
    assert min(entry.within for entry in lowest.ratios) < 0


def test_all_columns_follow_from_the_halves():
    """The same halves, drawn again by hand."""
    x, domain = two(1.0, n=(30, 50))
    found = cf.rdr(x, domain, distances=["cfd", "mmd"], repeats=4, seed=7)
    draw = np.random.default_rng([7, 0])
    places = [np.flatnonzero(domain == one) for one in "AB"]
    drawn = [split_halves(places, None, None, draw) for _ in range(4)]
    for name, order in (("cfd", 2), ("mmd", 1)):
        within = np.array([cf.distance(name, x[h.b[0]], x[h.b[1]]) for h in drawn])
        across = np.array([cf.distance(name, x[h.a[0]], x[h.b[1]]) for h in drawn])
        entry = of(found, name, "B")
        assert entry.order == order
        assert entry.rows == 15
        assert (entry.within, entry.within_sd) == pytest.approx((within.mean(), within.std(ddof=1)))
        assert (entry.across, entry.across_sd) == pytest.approx((across.mean(), across.std(ddof=1)))
        assert (entry.ratio, entry.ratio_sd) == pytest.approx(((within / across).mean(), (within / across).std(ddof=1)))
        assert entry.ratio_of_means == pytest.approx(within.mean() / across.mean())
        first_order = within / across if order == 1 else np.sqrt(within / across)
        assert (entry.ratio_root, entry.ratio_squared) == pytest.approx((first_order.mean(), (first_order**2).mean()))


def test_halves_are_disjoint_and_of_one_size():
    draw = np.random.default_rng(0)
    rows = [np.arange(31), np.arange(31, 100)]
    for most in (None, 6):
        halves = split_halves(rows, None, most, draw)
        every = [*halves.a, *halves.b]
        assert {len(half) for half in every} == {15 if most is None else 6}
        assert all(not set(p) & set(q) for p, q in combinations(every, 2))
        assert set(halves.a[0]) | set(halves.a[1]) <= set(range(31))


def test_units_go_whole_to_one_half_of_both_domains():
    draw = np.random.default_rng(1)
    unit = np.concatenate([draw.integers(0, 12, 80), draw.integers(4, 16, 60)]).astype(np.int32)
    rows = [np.arange(80), np.arange(80, 140)]
    for _ in range(20):
        halves = split_halves(rows, unit, None, draw)
        a1, a2, b1, b2 = ({*unit[half].tolist()} for half in (*halves.a, *halves.b))
        assert not a1 & a2
        assert not b1 & b2
        assert not a1 & b2  # what the two domains share is never on both sides of a comparison
        assert not a2 & b1
        assert len({len(half) for half in (*halves.a, *halves.b)}) == 1


def test_halves_by_units_are_about_half_of_the_rows():
    draw = np.random.default_rng(2)
    unit = np.repeat(np.arange(12), 10).astype(np.int32)
    rows = [np.arange(60), np.arange(60, 120)]
    assert [len(split_halves(rows, unit, None, draw).a[0]) for _ in range(20)] == [30] * 20


def test_the_same_tissue_on_two_equal_scanners_has_a_ratio_of_one():
    """Tissue differs, scanners do not: paired halves would make the distance across nearly zero."""
    draw = np.random.default_rng(0)
    tissue = np.repeat(np.arange(20), 10)
    content = 3 * draw.normal(size=(20, 4))[tissue]
    x = np.concatenate([content, content]) + 0.1 * draw.normal(size=(400, 4))
    scanner, unit = np.repeat(["S1", "S2"], 200), np.tile(tissue, 2)
    held_out = cf.rdr(x, scanner, units=unit)
    assert of(held_out, "cfd", "S1").ratio_of_means == pytest.approx(1, abs=0.05)


def test_ratios_of_units_are_above_those_of_rows_that_are_alike():
    draw = np.random.default_rng(0)
    unit = np.repeat(np.arange(20), 10)
    domain = np.repeat(["A", "B"], 100)
    x = draw.normal(size=(20, 4))[unit] + 0.3 * draw.normal(size=(200, 4)) + 2 * (domain == "B")[:, None]
    rows, units = cf.rdr(x, domain), cf.rdr(x, domain, units=unit)
    assert of(units, "cfd", "A").within > 3 * of(rows, "cfd", "A").within


def test_options_pairs_and_seeds():
    draw = np.random.default_rng(0)
    x, domain = draw.normal(size=(120, 3)), np.repeat(["A", "B", "C"], 40)
    found = cf.rdr(x, domain, distances={"mmd": {"bandwidth": 0.5}}, repeats=3, pairs=[("C", "A")])
    assert [(entry.pair, entry.domain) for entry in found.ratios] == [(("C", "A"), "C"), (("C", "A"), "A")]
    other = cf.rdr(x, domain, distances={"mmd": {"bandwidth": 5.0}}, repeats=3, pairs=[("C", "A")])
    assert found.ratios[0].within != other.ratios[0].within
    assert cf.rdr(x, domain, repeats=3, seed=1) == cf.rdr(x, domain, repeats=3, seed=1)
    assert cf.rdr(x, domain, repeats=3, seed=1) != cf.rdr(x, domain, repeats=3, seed=2)
    assert len(cf.rdr(x, domain, repeats=2).sides) == 6


def test_ratios_go_to_tables_and_json():
    seen: list[str] = []
    found = cf.rdr(*two(1.0), distances=["cfd", "mmd"], repeats=3, progress=seen.append)
    assert seen == ["A–B: pair 1 of 1"]
    header, rows = found.table()
    assert header == ["distance", "A in A–B", "B in A–B"]
    assert [row[0] for row in rows] == ["cfd", "mmd"]
    assert "±" in rows[0][1]
    assert "±" not in found.table("ratio_squared")[1][0][1]
    frame = found.to_frame()
    assert list(frame.columns[:3]) == ["group_a", "group_b", "domain"]
    assert len(frame) == 4
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["ratios"][0]["pair"] == ["A", "B"]
    assert repr(found).startswith("Relative distance ratio, mean ± sd of 3 random halves")
    negative = cf.rdr(*two(1.0), distances="cfd_unbiased", repeats=20)
    assert negative.to_dict()["ratios"][0]["ratio_root"] is None


def test_what_has_no_ratio_is_refused(refuses):
    x, domain = two(1.0)
    with refuses("x has values whose squares exceed the range of float64"):
        cf.cddr(np.full((8, 2), 1e200), [0, 1] * 4, [0, 0, 1, 1] * 2)
    with refuses("no distance 'mdm': did you mean 'mmd'"):
        cf.rdr(x, domain, distances=["mdm"])
    with refuses("no distance 'cfd_given_label'"):
        cf.rdr(x, domain, distances=["cfd_given_label"])
    with refuses("'mmd' has no option 'width': "):
        cf.rdr(x, domain, distances={"mmd": {"width": 1}})
    with refuses("distances is empty"):
        cf.rdr(x, domain, distances=[])
    with refuses(r"distances=\[\['cfd'\]\] must be the name of a distance"):
        cf.rdr(x, domain, distances=[["cfd"]])
    with refuses("names a distance twice"):
        cf.rdr(x, domain, distances=["cfd", "cfd"])
    with refuses("repeats=1"):
        cf.rdr(x, domain, repeats=1)
    with refuses("rows=1"):
        cf.rdr(x, domain, rows=1)
    with refuses("domain 'B' has 3 rows"):
        cf.rdr(x[:123], domain[:123])
    with refuses("domain 'A' has one unit"):
        cf.rdr(x, domain, units=np.where(domain == "A", 0, np.arange(240)))
    with refuses("pairs names 'Z', which is not a domain: there are 'A', 'B'"):
        cf.rdr(x, domain, pairs=[("A", "Z")])
    with refuses("two different domains"):
        cf.rdr(x, domain, pairs=[("A", "A")])
    with refuses("must hold pairs"):
        cf.rdr(x, domain, pairs=[("A", "B", "A")])
    with refuses("what='share' is not a column"):
        cf.rdr(x, domain, repeats=2).table("share")


# Degradation


def labelled(shift, seed=0, n=150, classes=3):
    """Classes along one axis; the second domain is moved along it."""
    draw = np.random.default_rng(seed)
    y, domain = np.tile(np.arange(classes), 2 * n // classes), np.repeat(["A", "B"], n)
    x = draw.normal(size=(2 * n, 4))
    x[:, 0] += 4 * y + shift * (domain == "B")
    return x, y, domain


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_scikit_learn(metric):
    from sklearn import metrics

    draw = np.random.default_rng(0)
    truth, fold = draw.integers(0, 3, 90), np.repeat([0, 1, 2], 30)
    score = np.round(draw.dirichlet([1, 1, 1], 90), 1)  # with ties
    times = np.stack([np.ones(90), draw.integers(0, 4, 90)])
    said = Predictions(np.arange(90), truth, score.argmax(axis=1), fold, score)
    found = METRICS[metric](said, 3, times)
    for k, weight in enumerate(times.astype(int)):
        rows = np.repeat(np.arange(90), weight)
        if metric == "auc":
            expected = np.mean(
                [
                    metrics.roc_auc_score(truth[own] == c, score[own, c])
                    for own in (rows[fold[rows] == f] for f in range(3))
                    for c in range(3)
                ]
            )
        elif metric == "f1_macro":
            expected = metrics.f1_score(truth[rows], score[rows].argmax(axis=1), average="macro")
        else:
            expected = metrics.accuracy_score(truth[rows], score[rows].argmax(axis=1))
        assert found[k] == pytest.approx(expected)


@pytest.mark.parametrize("metric", METRICS)
def test_rates_grow_with_the_shift(metric):
    rates = [cf.cddr(*labelled(shift), metric=metric, draws=50).drops[0].cddr for shift in (0.0, 2.0, 6.0)]
    assert abs(rates[0]) < 0.05
    assert rates[0] < rates[1] - 0.005 < rates[2]


def test_a_rate_and_its_interval():
    found = cf.cddr(*labelled(2.0), draws=400)
    assert [(drop.train, drop.test) for drop in found.drops] == [("A", "B"), ("B", "A")]
    for drop in found.drops:
        assert drop.cddr == pytest.approx((drop.within - drop.cross) / drop.within)
        assert drop.lower < drop.cddr < drop.upper
        assert (drop.rows_train, drop.rows_test, drop.labels) == (150, 150, (0, 1, 2))
    wide = cf.cddr(*labelled(2.0), draws=400, level=0.99).drops[0]
    assert wide.upper - wide.lower > found.drops[0].upper - found.drops[0].lower
    nothing = cf.cddr(*labelled(0.0), draws=400).drops[0]
    assert nothing.lower < 0 < nothing.upper


def test_units_make_intervals_wider():
    draw = np.random.default_rng(0)
    x, y, domain = labelled(1.5, n=300)
    unit = np.arange(600) // 15
    x = x + 1.5 * draw.normal(size=(40, 4))[unit]
    rows, units = (cf.cddr(x, y, domain, units=u, draws=400).drops[0] for u in (None, unit))
    assert units.upper - units.lower > 1.3 * (rows.upper - rows.lower)


def test_tissue_that_was_trained_on_is_held_out_on_the_other_scanner():
    """A model that knows tissues by heart would be right about all of them on the other scanner."""
    from sklearn.neighbors import KNeighborsClassifier

    draw = np.random.default_rng(0)
    tissue = np.repeat(np.arange(60), 3)
    content, label = 5 * draw.normal(size=(60, 3))[tissue], draw.integers(0, 2, 60)[tissue]
    x = np.concatenate([content, content]) + 0.01 * draw.normal(size=(360, 3))
    y, scanner, unit = np.tile(label, 2), np.repeat(["S1", "S2"], 180), np.tile(tissue, 2)
    model = KNeighborsClassifier(1)
    leaked = cf.cddr(x, y, scanner, model=model, metric="accuracy", draws=50)
    held_out = cf.cddr(x, y, scanner, model=model, metric="accuracy", units=unit, draws=50)
    assert leaked.drops[0].cross > 0.99
    assert held_out.drops[0].cross == pytest.approx(held_out.drops[0].within, abs=0.02)
    assert held_out.drops[0].cross < 0.75
    half = np.arange(360) < 270  # tissues 30 and up are on the first scanner only
    fewer = cf.cddr(x[half], y[half], scanner[half], model=model, metric="accuracy", units=unit[half], draws=50)
    assert max(drop.cross for drop in fewer.drops) < 0.8


def test_shared_units_are_resampled_for_both_scores_at_once():
    """Nearly the same rows on both scanners are predicted nearly alike, so there is little to be unsure about."""
    x, y, _ = labelled(0.0)
    scanner, rows = np.repeat(["S1", "S2"], 300), np.concatenate([x, x + 0.05 * np.roll(x, 7, axis=0)])
    shared, apart = (
        cf.cddr(rows, np.tile(y, 2), scanner, units=unit, draws=200).drops[0]
        for unit in (np.tile(np.arange(300), 2), np.arange(600))
    )
    assert shared.upper - shared.lower < 0.5 * (apart.upper - apart.lower)
    assert shared.within < 1


def test_resamples_that_are_all_alike_give_no_interval():
    x, y, _ = labelled(0.0)
    unit, scanner = np.tile(np.arange(300), 2), np.repeat(["S1", "S2"], 300)
    found = cf.cddr(np.concatenate([x, x]), np.tile(y, 2), scanner, units=unit, draws=50)
    drop = found.drops[0]
    assert drop.cddr == pytest.approx(0, abs=1e-12)
    assert np.isnan([drop.lower, drop.upper]).all()
    assert found.to_dict()["drops"][0]["lower"] is None


def test_what_predicts_no_classes_is_refused(refuses):
    from sklearn.cluster import KMeans
    from sklearn.linear_model import Ridge

    x, y, domain = labelled(0.0)
    for model in (Ridge(), KMeans(2)):
        with refuses("predicts no classes"):
            cf.cddr(x, y, domain, model=model)


def test_domains_at_distance_zero_in_some_halves():
    x = np.random.default_rng(0).normal(size=(60, 3))
    found = cf.rdr(x, np.repeat(["A", "B", "C"], 20), distances=["classifier"], repeats=10)
    assert all(np.isfinite(entry.ratio_of_means) or entry.across == 0 for entry in found.ratios)


def test_rows_that_are_not_finite_are_named_by_their_correction(refuses):
    x, y, domain = labelled(0.0)
    broken = x.copy()
    broken[3, 1] = np.nan
    with refuses(r"corrections\['mine'\] has NaN"):
        cf.degradation_study(x, y, domain, distances="cfd", corrections={"none": x, "mine": broken}, draws=10)


def test_tables_are_shown_as_text():
    from crossfusion.study import published_tables

    assert "&lt;script&gt;" in published_tables.format_markdown_table(["a"], [["<script>alert(1)</script>"]])


def test_only_labels_that_both_domains_have():
    x, y, domain = labelled(0.0)
    more = np.where((domain == "A") & (np.arange(300) % 5 == 0), 9, y)
    drops = cf.cddr(x, more, domain, draws=20).drops
    assert all(drop.labels == (0, 1, 2) for drop in drops)
    assert {drop.rows_train for drop in drops} == {120, 150}
    third = np.where(np.arange(300) >= 250, "C", domain)
    alone = np.where(third == "C", 7, y)
    with pytest.warns(cf.CrossfusionWarning, match="fewer than two labels in common are left out: A–C, B–C"):
        assert len(cf.cddr(x, alone, third, draws=20).drops) == 2


def test_rates_go_to_tables_and_json():
    seen: list[str] = []
    found = cf.cddr(*labelled(2.0), draws=20, progress=seen.append, pairs=[("B", "A")])
    assert seen == ["B → A: pair 1 of 1"]
    assert list(found.to_frame()["labels"]) == [3]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["drops"][0]["labels"] == [0, 1, 2]
    assert repr(found).splitlines()[2].split()[:2] == ["B", "A"]
    assert found.to_dict() == cf.cddr(*labelled(2.0), draws=20, pairs=[("B", "A")]).to_dict()


def test_what_has_no_rate_is_refused(refuses):
    from sklearn.svm import LinearSVC

    x, y, domain = labelled(1.0)
    with refuses("metric='f1' is not known"):
        cf.cddr(x, y, domain, metric="f1")
    with refuses("folds=1"):
        cf.cddr(x, y, domain, folds=1)
    with refuses("level=None"):
        cf.cddr(x, y, domain, level=None)
    with refuses("y has 1 distinct values"):
        cf.cddr(x, np.zeros(300), domain)
    with refuses("y has 2 entries"):
        cf.cddr(x, [0, 1], domain)
    with refuses("y has 1 missing values"):
        cf.cddr(x, [None, *y[1:]], domain)
    with refuses("no two domains have two labels in common"):
        cf.cddr(x, np.where(domain == "A", y, y + 10), domain)
    with refuses("'A' and 'B' have fewer than two labels in common"):
        cf.cddr(x, np.where(domain == "A", y, y + 10), domain, pairs=[("A", "B")])
    with refuses("label '0' has 4 rows in domain 'A' for folds=5"):
        cf.cddr(x, np.where((y == 0) & (np.arange(300) > 11) & (domain == "A"), 1, y), domain)
    with refuses("domain 'A' has 3 units for folds=5"):
        cf.cddr(x, y, domain, units=np.arange(300) // 50)
    with refuses("is not a scikit-learn classifier"):
        cf.cddr(x, y, domain, model="svm")
    with refuses("each pair once"):
        cf.cddr(x, y, domain, pairs=[("A", "B"), ("A", "B")])
    svm = cf.cddr(x, y, domain, model=LinearSVC(), metric="auc", draws=20)
    assert svm.drops[0].within > 0.6
