"""How groups mix in regions: mutual information against plain formulas, its laws, its interval, and bad input."""

import json

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score, normalized_mutual_info_score

import crossfusion as cf
from crossfusion.fusion import measure_entropy, measure_information
from tests.helpers.command_line import run, run_json


def make_rows(rows=600, shift=2.0, units=20, effect=0.3, seed=0):
    """Rows of two groups from units, whose means are equal after centering, in regions along two features."""
    draw = np.random.default_rng(seed)
    unit = np.arange(rows) % units
    group = unit % 2
    x = draw.normal(size=(rows, 4)) + effect * draw.normal(size=(units, 4))[unit]
    x[:, 0] += shift * group * draw.choice([-1, 1], rows)
    x -= np.stack([x[group == k].mean(axis=0) for k in (0, 1)])[group]
    region = np.digitize(x[:, 0], [-2, -1, 0, 1, 2]) * 2 + (x[:, 1] > 0)
    by = {"batch": np.array(["a", "b"])[group], "donor": unit, "label": np.arange(rows) % 3, "region": region}
    return x, by


def summarize(**options):
    x, by = make_rows(**options)
    return cf.summarize(x, by=by)


def draw_counts(seed, units=10, regions=24, concentration=20.0, separation=0.0, rows=60):
    """A summary of units whose shares of the regions vary, and the information of their expected shares."""
    share = np.random.default_rng(7)
    base = share.normal(size=regions)
    apart = np.stack([base, base + separation * share.normal(size=regions)])
    expected = np.exp(apart) / np.exp(apart).sum(axis=1, keepdims=True)
    draw = np.random.default_rng(seed)
    group = np.repeat([0, 1], units)
    own = [draw.dirichlet(concentration * expected[k]) for k in group]
    region = np.concatenate([draw.choice(regions, rows, p=p) for p in own])
    by = {"batch": np.repeat(group, rows), "donor": np.repeat(np.arange(2 * units), rows), "region": region}
    whole = expected.mean(axis=0)
    true = np.sum(expected / 2 * np.log(expected / whole)) / np.log(2)
    return cf.summarize(np.zeros((len(region), 1)) + region[:, None], by=by), float(true)


def test_plug_in_equals_scikit_learn():
    x, by = make_rows()
    found = cf.summarize(x, by=by).mixing("batch")
    entropy = np.log(2)
    assert found.plug_in == pytest.approx(mutual_info_score(by["batch"], by["region"]) / entropy, rel=1e-12)
    for k in range(3):
        own = by["label"] == k
        table = np.zeros((2, 12))
        np.add.at(table, ((by["batch"][own] == "b").astype(int), by["region"][own]), 1)
        stratum = np.zeros(2, int)
        expected = mutual_info_score(by["batch"][own], by["region"][own])
        assert measure_information(table, stratum).sum() == pytest.approx(expected, rel=1e-12)
        part = normalized_mutual_info_score(by["batch"][own], by["region"][own], average_method="min")
        entropies = measure_entropy(table.sum(axis=1), stratum), measure_entropy(table.sum(axis=0), np.zeros(12, int))
        assert expected / min(entropies) == pytest.approx(part, rel=1e-12)


def test_adjusted_information_is_the_mean_over_strata():
    x, by = make_rows()
    found = cf.summarize(x, by=by).mixing("batch", given="label")
    inside = [mutual_info_score(by["batch"][by["label"] == k], by["region"][by["label"] == k]) for k in range(3)]
    assert found.plug_in == pytest.approx(np.mean(inside) / np.log(2), rel=1e-12)


def test_correction_for_chance_is_the_mean_over_permutations_of_units():
    summary = summarize()
    found = summary.mixing("batch", units="donor", permutations=499)
    _, by = make_rows()
    draw, drawn = np.random.default_rng(5), []
    for _ in range(499):
        group = draw.permutation(np.arange(20) % 2)
        drawn.append(mutual_info_score(group[by["donor"]], by["region"]))
    chance, entropy = np.mean(drawn), np.log(2)
    expected = (found.plug_in * entropy - chance) / (entropy - chance)
    assert found.information == pytest.approx(expected, abs=4 * np.std(drawn) / np.sqrt(499) / entropy * 1.5)
    rows = summary.mixing("batch", permutations=499)
    assert rows.information > found.information  # rows scatter less than units


@pytest.mark.parametrize("units", [None, "donor"])
def test_mixed_groups_are_near_0_and_separate_groups_are_1(units):
    values = [draw_counts(seed, units=8)[0].mixing("batch", units=units, permutations=39) for seed in range(40)]
    corrected = np.array([found.information for found in values])
    if units:
        assert abs(corrected.mean()) < 4 * corrected.std() / np.sqrt(40)
        assert np.mean([found.pvalue <= 0.05 for found in values]) < 0.2
    assert np.mean([found.plug_in for found in values]) > corrected.mean() + 0.01
    x, by = make_rows()
    apart = cf.summarize(x, by=by | {"region": by["region"] + 100 * (by["batch"] == "b")})
    found = apart.mixing("batch", units="donor", level=0.95)
    assert (found.information, found.plug_in, found.alone) == pytest.approx((1, 1, 1))
    assert all(region.only in ("a", "b") for region in found.regions)
    assert found.interval is not None
    assert found.interval[1] <= 1


def test_the_confidence_of_the_interval_is_said():
    said = repr(summarize().mixing("batch", units="donor", level=0.9))
    assert "interval   90% confidence, standard error 0." in said
    assert "confidence" not in repr(summarize().mixing("batch", units="donor"))


def test_equal_rows_mix_exactly():
    x, by = make_rows()
    twice = {name: np.r_[values, values] for name, values in by.items()}
    twice["batch"] = np.repeat(["a", "b"], len(x))
    found = cf.summarize(np.r_[x, x], by=twice).mixing("batch")
    assert found.plug_in == pytest.approx(0, abs=1e-12)
    assert found.pvalue == 1
    assert found.information <= 0


@pytest.mark.parametrize(("separation", "least"), [(0.0, 0.9), (0.5, 0.9), (1.5, 0.85)])
def test_the_interval_covers_the_information_of_the_expected_shares(separation, least):
    inside, near, stderr = [], [], []
    for seed in range(60):
        summary, true = draw_counts(seed, separation=separation)
        found = summary.mixing("batch", units="donor", level=0.95, permutations=59)
        assert found.interval is not None
        inside.append(found.interval[0] <= true + 1e-12 and true <= found.interval[1])
        near.append(found.information - true)
        stderr.append(found.stderr)
    assert np.mean(inside) >= least
    assert abs(np.mean(near)) < 0.5 * np.std(near) + 0.01
    assert 0.7 < np.mean(stderr) / np.std(near) < 2.5


def test_units_in_both_groups_and_strata():
    x, by = make_rows()
    crossed = by | {"donor": np.arange(len(x)) // 30}
    found = cf.summarize(x, by=crossed).mixing("batch", units="donor", given="label", level=0.9)
    assert found.interval is not None
    assert found.interval[0] < found.information < found.interval[1]
    assert found.pvalue == pytest.approx(1 / 200)


def test_laws():
    x, by = make_rows()
    whole = cf.summarize(x, by=by).mixing("batch", units="donor", level=0.95)
    parts = [cf.summarize(x[k::3], by={name: values[k::3] for name, values in by.items()}) for k in range(3)]
    merged = sum(parts).mixing("batch", units="donor", level=0.95)
    scaled = cf.summarize(x * [1, 50, 0.1, 3], by=by).mixing("batch", units="donor", level=0.95)
    order = np.random.default_rng(1).permutation(12)
    renamed = cf.summarize(x, by=by | {"region": order[by["region"]]}).mixing("batch", units="donor", level=0.95)
    for other in (merged, scaled, renamed):
        assert other.interval is not None
        found = (other.information, other.plug_in, other.pvalue, *other.interval)
        assert whole.interval is not None
        assert found == pytest.approx((whole.information, whole.plug_in, whole.pvalue, *whole.interval), rel=1e-9)
    swapped = {"a": "b", "b": "a"}
    flipped = cf.summarize(x, by=by | {"batch": [swapped[name] for name in by["batch"]]})
    assert flipped.mixing("batch").plug_in == pytest.approx(whole.plug_in, rel=1e-12)


def test_the_distance_is_composition_and_shift_within_regions():
    summary = summarize()
    found = summary.mixing("batch", given="label")
    inside = summary.cfd("batch", given=["label", "region"]).unbiased
    whole = summary.cfd("batch", given="label").unbiased
    assert whole is not None
    assert inside is not None
    assert (found.cfd, found.shift) == pytest.approx((whole, inside), rel=1e-12)
    assert found.composition == pytest.approx(whole - inside, rel=1e-9)


def test_the_table_of_regions():
    x, by = make_rows()
    summary = cf.summarize(x, by=by)
    found = summary.mixing("batch")
    frame = found.to_frame()
    assert frame["part"].is_monotonic_decreasing
    assert frame["part"].sum() == pytest.approx(1)
    assert frame["rows"].sum() == len(x)
    assert frame["share of a"].sum() == pytest.approx(1)
    first = found.regions[0]
    own = by["region"] == first.region
    assert first.shares["b"] == pytest.approx(np.mean(by["region"][by["batch"] == "b"] == first.region))
    several = next(region for region in found.regions if region.cfd is not None)
    own = by["region"] == several.region
    assert several.cfd == pytest.approx(cf.cfd(x[own], labels=by["batch"][own]).unbiased, rel=1e-9)
    assert found.alone == pytest.approx(sum(region.rows for region in found.regions if region.only) / len(x))
    assert float(found) == found.information
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert "from 0 (mixed) to 1 (separate)" in repr(found)


def test_centered_groups_are_at_distance_0_but_do_not_mix():
    found = summarize(shift=3.0).mixing("batch", units="donor", level=0.95)
    assert abs(found.cfd or 0) < 0.02
    assert found.interval is not None
    assert found.interval[0] > 0.1


def test_small_groups_are_left_out_and_lonely_units_are_said():
    x, by = make_rows()
    more = {name: np.r_[values, values[:5]] for name, values in by.items()}
    more["batch"], more["donor"] = np.r_[by["batch"], ["c"] * 5], np.r_[by["donor"], [99] * 5]
    with pytest.warns(cf.CrossfusionWarning, match="fewer than 2 units"):
        found = cf.summarize(np.r_[x, x[:5]], by=more).mixing("batch", units="donor", level=0.95)
    assert [entry.group for entry in found.excluded] == ["c"]
    assert found.labels == ("a", "b")
    assert found.plug_in == pytest.approx(cf.summarize(x, by=by).mixing("batch").plug_in, rel=1e-12)
    lonely = cf.summarize(x, by=by | {"region": by["donor"]}).mixing("batch", units="donor")
    assert lonely.caution is not None
    assert lonely.caution.startswith("most rows lie in regions with rows of one unit only")
    assert lonely.information == pytest.approx(0, abs=1e-9)  # units do not share regions, whatever their groups
    assert lonely.pvalue == 1


def test_the_codebook_gives_the_regions():
    x, by = make_rows()
    by = {"batch": by["batch"], "donor": by["donor"]}
    found = cf.summarize(x, by=by, lens=cf.lens.codebook(x, regions=16)).mixing("batch", units="donor", level=0.9)
    assert len(found.regions) == 16
    assert found.pvalue < 0.01


def test_real_cells_are_unmixed_after_centering_each_batch():
    import os
    from pathlib import Path

    import pyarrow.parquet as pq

    path = (
        Path(os.environ.get("CROSSFUSION_DATA", Path(__file__).parents[3] / "shared" / "data")) / "sc_mixology.parquet"
    )
    if not path.exists():
        pytest.skip(f"{path} is absent")
    table = pq.read_table(path)
    x = np.asarray(table["embedding"].combine_chunks().flatten()).reshape(len(table), -1)
    batch = np.array(table["batch"].to_pylist())
    centered = cf.correct(x, batch, "center")
    raw, corrected = (
        cf.summarize(rows, by={"batch": batch}, lens=cf.lens.codebook(rows)).mixing("batch") for rows in (x, centered)
    )
    assert corrected.cfd is not None
    assert abs(corrected.cfd) < 0.005
    assert 0.3 < corrected.information < raw.information
    assert corrected.pvalue == 1 / 200


U, R = np.arange(600) % 20, np.arange(600) % 7  # units and regions


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s, x: cf.summarize(x, by={"batch": np.arange(600) % 2}).mixing("batch"), "no factor 'region'"),
        (lambda s, x: s.mixing("region"), "between='region' is what groups are compared over"),
        (lambda s, x: s.mixing("batch", given=["label", "region"]), "given='region'"),
        (lambda s, x: s.mixing("batch", level=0.95), "needs units"),
        (lambda s, x: s.mixing("batch", units="donor", level=95), "level=95"),
        (lambda s, x: s.mixing("batch", permutations=0), "permutations=0"),
        (lambda s, x: s.mixing("batch", seed=-1), "seed=-1"),
        (lambda s, x: s.mixing("nothing"), "nothing"),
        (lambda s, x: s.select(batch="a").mixing("batch"), "only one group"),
        (lambda s, x: s.select(region=3).mixing("batch"), "all rows lie in one region"),
        (lambda s, x: s.mixing("batch", given="donor"), "no stratum holds two"),
        (
            lambda s, x: cf.summarize(x, by={"a": U % 2, "b": U % 2, "u": U, "region": R}).mixing(
                "a", given="b", units="u"
            ),
            "no stratum holds two",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, said):
    x, by = make_rows()
    with pytest.raises(cf.InputError) as caught:
        call(cf.summarize(x, by=by), x)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command(tmp_path):
    x, by = make_rows()
    np.savez(tmp_path / "rows.npz", x=x, batch=by["batch"], donor=by["donor"])
    figure = tmp_path / "map.svg"
    shown = run("mixing", tmp_path / "rows.npz", "--between", "batch", "--plot", figure, "--top", "2").stdout
    assert "from 0 (mixed) to 1 (separate)" in shown
    assert figure.stat().st_size > 1000
    options = ("--between", "batch", "--units", "donor", "--level", "0.9")
    found = run_json("mixing", tmp_path / "rows.npz", *options)
    assert found["interval"][0] <= found["information"] <= found["interval"][1]
    assert len(found["regions"]) == 64
    cf.summarize(x, by={"batch": by["batch"]}).write(tmp_path / "summary.parquet")
    said = run("mixing", tmp_path / "summary.parquet", "--between", "batch", code=2).stderr
    assert "no factor 'region'" in said
