"""What lenses let CFD see: spread, hidden features, MMD, multivariate analysis of variance; and that nothing is seen in
data where there is nothing to see."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.multivariate.manova import MANOVA

import crossfusion as cf

ROWS, DIM = 4000, 64


def two_groups(seed, rows=ROWS, dim=DIM):
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(2 * rows, dim)), np.repeat(["a", "b"], rows)


def test_a_kernel_sees_spread_where_means_are_equal():
    _, x, group = two_groups(0)
    x[group == "b"] *= 1.15
    plain = cf.cfd(x, labels=group, level=0.95)
    seen = cf.cfd(x, labels=group, level=0.95, lens=cf.lens.kernel(x))
    assert plain.interval[0] == 0
    assert 0.0015 < seen.interval[0] < seen.unbiased < seen.interval[1] < 0.0025
    assert cf.permutation_test(x, group, lens=cf.lens.kernel(x, features=64), permutations=99).pvalue == 0.01


def test_standardized_features_show_what_a_large_one_hides():
    _, x, group = two_groups(1, 1000)
    x[:, -1] *= 60
    x[group == "b", :16] += 0.8
    plain = cf.cfd(x, labels=group, level=0.95)
    seen = cf.cfd(x, labels=group, level=0.95, lens=cf.lens.standardize(x, by={"group": group}))
    assert plain.interval[0] == 0
    assert seen.interval[0] > 0.03
    expected = np.log1p(16 * 0.4**2 / 64)
    assert seen.unbiased == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("bandwidth", [5.0, 12.0])
def test_between_is_the_mean_discrepancy_of_the_same_kernel(bandwidth):
    _, x, group = two_groups(2, 1500, 16)
    x[group == "b", 0] += 0.7
    x[group == "b", 1] *= 1.5
    lens = cf.lens.kernel(x, features=8192, bandwidth=bandwidth)
    summary = cf.summarize(x, by={"group": group}, lens=lens)
    a, b = (x[group == name] for name in "ab")
    biased = cf.distance("mmd", a, b, bandwidth=bandwidth) ** 2
    assert summary.cfd("group").between == pytest.approx(biased / 4, rel=0.03)
    found = summary.cfd("group")
    errors = summary.moments.sumsq.sum(axis=1) / summary.moments.count / (summary.moments.count - 1)
    unbiased = cf.distance("mmd2_unbiased", a, b, bandwidth=bandwidth)
    assert 4 * found.between - errors.sum() == pytest.approx(unbiased, rel=0.03)


def test_orthogonal_frequencies_err_less_than_independent_ones():
    from crossfusion.lens.random_features import draw_frequencies

    rng = np.random.default_rng(0)
    gap = rng.normal(size=(50, 32))
    gap *= 1.2 / np.linalg.norm(gap, axis=1, keepdims=True)  # where the kernel is about a half
    draws = [np.cos(gap @ draw_frequencies(32, 32, seed)).mean(axis=1) for seed in range(200)]
    independent = [np.cos(gap @ np.random.default_rng(seed).normal(size=(32, 32))).mean(axis=1) for seed in range(200)]
    np.testing.assert_allclose(np.mean(draws, axis=0), np.exp(-(1.2**2) / 2), atol=0.01)
    assert np.std(draws, axis=0).mean() < 0.6 * np.std(independent, axis=0).mean()


@pytest.fixture(scope="module")
def manova():
    """Three groups of correlated features, and what statsmodels makes of them."""
    rng = np.random.default_rng(4)
    group = np.repeat(["a", "b", "c"], [100, 80, 120])
    x = rng.normal(size=(300, 5)) @ rng.normal(size=(5, 5)) + (group == "a")[:, None] * [0.5, 0, 0, 0.2, 0]
    frame = pd.DataFrame(x, columns=list("vwxyz")).assign(group=group)
    found = MANOVA.from_formula("v + w + x + y + z ~ group", frame).mv_test().results["group"]["stat"]["Value"]
    return x, group, found.astype(float)


def test_whitened_cfd_is_the_hotelling_lawley_trace(manova):
    x, group, found = manova
    lens = cf.lens.whiten(x, by={"group": group}, shrinkage=0.0)
    trace = 5 * np.expm1(cf.cfd(x, labels=group, lens=lens).distance)
    assert trace == pytest.approx(found["Hotelling-Lawley trace"], abs=1e-8)


def test_a_shift_across_the_main_axis_shows_through_whitening():
    rng, _, group = two_groups(5, 500, 1)
    x = rng.normal(size=(1000, 1)) * 5 + 0.2 * rng.normal(size=(1000, 30))
    x[group == "b"] += 0.1 * rng.choice([-1, 1], 30)
    plain, seen = (
        cf.cfd(x, labels=group, level=0.95, lens=lens) for lens in (None, cf.lens.whiten(x, by={"group": group}))
    )
    assert plain.interval[0] < 0.001
    assert seen.interval[0] > 0.03


FITTED = {
    "unit": lambda x, group: cf.lens.unit(),
    "standardize": lambda x, group: cf.lens.standardize(x, by={"group": group}),
    "whiten": lambda x, group: cf.lens.whiten(x, by={"group": group}),
    "kernel": lambda x, group: cf.lens.kernel(x, features=64),
}


@pytest.mark.parametrize("name", FITTED)
def test_nothing_is_seen_where_there_is_nothing(name):
    rejected, bias, draws = 0, [], 60
    for seed in range(draws):
        _, x, group = two_groups(100 + seed, 60, 8)
        found = cf.cfd(x, labels=group, level=0.95, lens=FITTED[name](x, group))
        rejected += found.interval[0] > 0
        bias.append(found.unbiased)
    assert rejected <= 8  # of 60 at 2.5 %, beyond which is less than 0.03 % of binomials
    assert abs(np.mean(bias)) < 4 * np.std(bias) / np.sqrt(draws)


def test_drift_keeps_the_lens_of_its_reference(tmp_path, refuses):
    rng = np.random.default_rng(6)
    weeks = np.repeat(np.arange(12), 200)
    x = rng.normal(size=(2400, 8)) * np.where(weeks < 11, 1, 1.8)[:, None]
    lens = cf.lens.kernel(x[weeks < 8], features=128)
    file = tmp_path / "weeks.parquet"
    for week in range(12):
        cf.append_summary(cf.summarize(x[weeks == week], by={"week": weeks[weeks == week]}, lens=lens), file)
    summary = cf.read_summary(file)
    assert summary.lens == lens.digest
    assert summary.drift("week", reference=list(range(8))).alarm.tolist()[-1]
    assert not cf.summarize(x, by={"week": weeks}).drift("week", reference=list(range(8))).alarm[-1]
    with refuses("the lenses differ"):
        cf.append_summary(cf.summarize(x[:100] + 1, by={"week": [12] * 100}, lens=cf.lens.unit()), file)


def test_a_report_shows_mapped_rows():
    _, x, group = two_groups(7, 300, 8)
    x[group == "b"] *= 1.5
    lens = cf.lens.kernel(x, features=64)
    found = cf.Report(x, by={"group": group}, between="group", lens=lens, permutations=99).to_dict()
    assert found["about"]["lens"] == lens.digest
    assert found["about"]["features"] == 64
    assert found["distances"]["plain"]["interval"][0] > 0
    assert found["distances"]["plain"]["unbiased"] == pytest.approx(cf.cfd(x, labels=group, lens=lens).unbiased)
    assert lens.digest in cf.Report(x, by={"group": group}, between="group", lens=lens, permutations=99).to_html()


def test_cells_of_anndata_are_seen_through_a_lens(refuses):
    anndata = pytest.importorskip("anndata")
    import crossfusion.anndata

    _, x, group = two_groups(8, 300, 8)
    x[:, -1] *= 50
    x[group == "b", 0] += 1
    cells = anndata.AnnData(x, obs=pd.DataFrame({"batch": group}, index=map(str, range(600))))
    lens = cf.lens.standardize(x, by={"batch": group})
    for given in (lens, {"X": lens}):
        board = crossfusion.anndata.cfd(cells, batch_key="batch", lens=given)
        assert board.batch[0].unbiased == pytest.approx(cf.cfd(x, labels=group, lens=lens).unbiased)
    with refuses("no embedding 'X_pca'"):
        crossfusion.anndata.cfd(cells, batch_key="batch", lens={"X_pca": lens})
    with refuses("is not a lens"):
        crossfusion.anndata.cfd(cells, batch_key="batch", lens="unit")
