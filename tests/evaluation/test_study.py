"""The degradation study: equal samples, held-out tests, correlations that know their domains, and its tables."""

# mypy: disable-error-code="union-attr,operator,arg-type,misc"

import json
from itertools import permutations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.evaluation.protocols import association, study_figure
from crossfusion.io.sources.all_rows import Rows
from crossfusion.study import published, published_tables
from paper import printed
from tests.helpers.command_line import fails, run, run_json

QUICK = {"folds": 3, "draws": 20, "repeats": 2}


def sites(shifts=(0.0, 0.5, 1.5, 3.0), seed=0, n=60):
    """Domains that lie farther and farther along the axis that tells the labels apart."""
    draw = np.random.default_rng(seed)
    domain = np.repeat([f"S{k}" for k in range(len(shifts))], n)
    y = np.tile([0, 1], len(domain) // 2)
    x = draw.normal(size=(len(domain), 3))
    x[:, 0] += 3 * y + np.repeat(shifts, n)
    return x, y, domain


@pytest.fixture(scope="module")
def study():
    x, y, domain = sites()
    return cf.degradation_study(
        x, y, domain, distances=["cfd", "mmd", "chamfer"], corrections=["none", "center", "combat"], **QUICK
    )


def of(found, over, correction, distance):
    return next(a for a in found.associations if (a.over, a.correction, a.distance) == (over, correction, distance))


def test_every_directed_pair_after_every_correction(study):
    assert len(study.outcomes) == 3 * 12
    assert study.corrections == ("none", "center", "combat")
    assert study.distances == ("cfd", "mmd", "chamfer")
    cells = {(o.correction, o.train, o.test): o for o in study.outcomes}
    for (correction, train, test), outcome in cells.items():
        assert outcome.distances == cells[correction, test, train].distances
        assert outcome.cddr == pytest.approx((outcome.within - outcome.cross) / outcome.within)
    assert cells["none", "S0", "S3"].cddr > 0.2 > cells["none", "S0", "S1"].cddr
    assert all(abs(outcome.cddr) < 0.15 for key, outcome in cells.items() if key[0] == "center")


def test_a_table_or_a_file_is_as_good_as_arrays(tmp_path):
    x, y, domain = sites()
    unit = np.arange(len(y)) // 2
    asked = {"distances": ["cfd"], "corrections": ["none"], **QUICK}
    columns = {"scanner": domain, "tumour": y, "patient": unit, "embedding": list(x)}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    expected = cf.degradation_study(x, y, domain, units=unit, **asked)
    names = {"domain": "scanner", "label": "tumour", "units": "patient"}
    for table in (pd.DataFrame(columns), pa.table(columns), tmp_path / "rows.parquet"):
        assert cf.degradation_study(table, **names, **asked) == expected
    with pytest.raises(cf.InputError, match="no column 'scaner'"):
        cf.degradation_study(pa.table(columns), **names | {"domain": "scaner"}, **asked)


def test_groups_that_read_the_same_are_refused():
    """ "a / b" beside "c" reads as "a" beside "b / c" does."""
    keys = pa.table({"site": ["a / b", "a"], "scanner": ["c", "b / c"]})
    with pytest.raises(cf.InputError, match="site, scanner have names that read the same"):
        Rows(np.zeros((2, 1)), keys).values(["site", "scanner"])


def test_arrays_and_columns_do_not_mix():
    x, y, domain = sites()
    for call in (lambda: cf.degradation_study(x), lambda: cf.degradation_study(x, y, domain, label="tumour")):
        with pytest.raises(cf.InputError, match=r"arrays, .* or a table with the names"):
            call()
    with pytest.raises(cf.InputError, match="units of a table must be the name"):
        cf.degradation_study(pa.table({"d": domain, "l": y}), domain="d", label="l", units=y)


def test_centring_leaves_cfd_nothing_to_foresee_with(study):
    """Domains of one size are measured whole, so that CFD is zero and not rounding."""
    centred = [o for o in study.outcomes if o.correction == "center"]
    assert {o.distances["cfd"] for o in centred} == {0.0}
    assert all(o.distances["chamfer"] > 0 for o in centred)
    found = of(study, "pairs", "center", "cfd")
    assert np.isnan(found.pearson)
    assert found.pearson_pvalue is None
    assert found.rank == 3


def test_scores_are_those_of_cddr(study):
    drops = cf.cddr(*sites(), folds=3, draws=20).drops
    found = [o for o in study.outcomes if o.correction == "none"]
    assert [(o.train, o.test, o.within, o.cross, o.lower) for o in found] == [
        (d.train, d.test, d.within, d.cross, d.lower) for d in drops
    ]


def test_a_distance_that_foresees_is_found_to_do_so(study):
    for name in study.distances:
        found = of(study, "pairs", "none", name)
        assert found.points == 12
        assert found.pearson > 0.8
        assert found.pearson_pvalue == pytest.approx(1 / 24)
    assert of(study, "all", None, "cfd").points == 36
    assert of(study, "corrections", None, "cfd").points == 3
    assert "4 domains and 3 corrections" in study.caution


def test_rows_of_all_domains_are_equally_many():
    x, y, domain = sites(n=60)
    kept = np.flatnonzero((domain != "S3") | (np.arange(len(x)) % 3 == 0))
    found = cf.degradation_study(x[kept], y[kept], domain[kept], distances="cfd", corrections="none", **QUICK)
    assert found.rows == 20
    capped = cf.degradation_study(x, y, domain, distances="cfd", corrections="none", rows=15, **QUICK)
    assert capped.rows == 15
    whole = cf.degradation_study(x, y, domain, distances="cfd", corrections="none", **QUICK)
    a, b = (x[domain == name] for name in ("S0", "S1"))
    assert whole.outcomes[0].distances["cfd"] == pytest.approx(cf.cfd(a, b).distance)


def test_distances_within_labels():
    x, y, domain = sites()
    found = cf.degradation_study(
        x, y, domain, distances=["cfd_given_label", "cfd_given_label_unbiased"], corrections="none", **QUICK
    )
    pair = np.isin(domain, ["S0", "S2"])
    expected = cf.cfd(x[pair], labels=domain[pair], given=y[pair])
    outcome = next(o for o in found.outcomes if (o.train, o.test) == ("S0", "S2"))
    assert outcome.distances["cfd_given_label"] == pytest.approx(expected.distance)
    assert outcome.distances["cfd_given_label_unbiased"] == pytest.approx(expected.unbiased)


def test_corrected_rows_can_be_passed():
    x, y, domain = sites()
    ready = {"raw": x, "mine": cf.correct(x, domain, "center"), "coral": "coral"}
    mine = cf.degradation_study(x, y, domain, distances="mmd", corrections=ready, **QUICK)
    named = cf.degradation_study(x, y, domain, distances="mmd", corrections=["none", "center", "coral"], **QUICK)
    assert mine.corrections == ("raw", "mine", "coral")
    assert [(o.distances, o.cddr) for o in mine.outcomes] == [(o.distances, o.cddr) for o in named.outcomes]


# Correlations


def test_correlations_are_those_of_scipy():
    from scipy import stats

    draw = np.random.default_rng(0)
    for _ in range(5):
        x, y = draw.normal(size=12), np.round(draw.normal(size=12), 0)
        assert association.pearson(x, y) == pytest.approx(stats.pearsonr(x, y)[0])
        assert association.spearman(x, y) == pytest.approx(stats.spearmanr(x, y)[0])
    assert np.isnan(association.pearson(x, np.ones(12)))
    assert np.isnan(association.pearson(x[:2], y[:2]))


def grids(domains, seed, strength):
    """Distances and rates that share domains: a rate has an effect of its source and of its target."""
    draw = np.random.default_rng(seed)
    place = draw.normal(size=(domains, 2))
    distance = np.linalg.norm(place[:, None] - place, axis=2)
    effects = draw.normal(size=(2, domains)) / 2
    rate = strength * distance + effects[0][:, None] + effects[1] + draw.normal(size=distance.shape) / 2
    for cells in (distance, rate):
        np.fill_diagonal(cells, np.nan)
    return distance[None], rate[None]


def correlate(distance, rate, most=999):
    names = association.Permutations(True, False, most, 0)
    return association.correlate(
        distance, rate, association.pearson, association.list_points, level=0.95, permutations=names
    )


def test_the_pvalue_exchanges_names_of_domains():
    distance, rate = grids(4, 0, 1.0)
    off = ~np.eye(4, dtype=bool)
    by_hand = [
        np.corrcoef(distance[0][np.ix_(order, order)][off], rate[0][off])[0, 1] for order in permutations(range(4))
    ]
    assert correlate(distance, rate).pvalue == pytest.approx(np.mean(np.array(by_hand) >= by_hand[0] - 1e-12))
    drawn = correlate(*grids(7, 0, 1.0), most=99).pvalue
    assert round(drawn * 100) == pytest.approx(drawn * 100)  # of random ones, the observed one counts


def test_under_no_association_pvalues_are_not_small_too_often():
    small = [correlate(*grids(5, seed, 0.0)).pvalue <= 0.1 for seed in range(200)]
    assert 0.04 < np.mean(small) < 0.17


def test_intervals_hold_what_they_promise():
    """Many domains give the truth; rows of pairs taken as independent would be far too sure."""
    truth = np.mean([association.pearson(*association.list_points(*grids(150, seed, 0.8))) for seed in range(3)])
    found = [correlate(*grids(8, seed, 0.8), most=1) for seed in range(150)]
    inside = np.mean([entry.lower <= truth <= entry.upper for entry in found])
    assert inside > 0.92
    assert np.median([entry.upper - entry.lower for entry in found]) < 1


def test_there_is_no_interval_of_three_domains():
    found = correlate(*grids(3, 0, 1.0))
    assert found.lower is None
    assert found.upper is None
    assert found.pvalue >= 1 / 6
    assert correlate(*grids(2, 0, 1.0)).pvalue is None  # two points, and one distance


def test_there_is_no_interval_without_an_error():
    """Ranks of few points may stay the same whichever domain is left out: that is no certainty."""
    x = np.array([0.0, 1.0, 3.0, 7.0])
    distance = np.abs(x[:, None] - x) + np.diag([np.nan] * 4)
    rate = distance + 0.01 * np.tri(4)
    names = association.Permutations(True, False, 99, 0)
    found = association.correlate(
        distance[None], rate[None], association.spearman, association.list_points, level=0.95, permutations=names
    )
    assert 0.9 < found.value < 1
    assert found.lower is None


# Tables, figures, files


def test_a_study_goes_to_tables_and_json(study):
    header, rows = study.table()
    assert header == ["correction", "cfd", "mmd", "chamfer", "cross macro F1", "CDDR"]
    assert [row[0] for row in rows] == ["none", "center", "combat", "correlation with CDDR"]
    mean = np.mean([o.cddr for o in study.outcomes if o.correction == "none"])
    assert float(rows[0][-1]) == pytest.approx(mean, abs=1e-4)
    assert float(rows[-1][1]) == pytest.approx(of(study, "corrections", None, "cfd").pearson, abs=1e-4)
    assert [row[0] for row in study.correlations("pairs", "none")[1]] == sorted(
        study.distances, key=lambda name: of(study, "pairs", "none", name).rank
    )
    assert len(study.to_frame()) == 36
    assert len(study.correlations_frame()) == 15
    plain = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert plain["outcomes"][0]["distances"].keys() == {"cfd", "mmd", "chamfer"}
    assert plain["associations"][0]["pearson_pvalue"] == pytest.approx(1 / 24)
    assert "caution: correlations rest on 4 domains" in repr(study)


def test_printed_tables_say_where_they_stand():
    tables = published.tables()
    assert tables["rdr"]["where"] == "table 2, section 5.1"
    assert all(tables[name]["where"] and tables[name]["what"] for name in ("rdr", "degradation", "within", "across"))
    assert published.RDR["CFD"][0] == 0.0021
    assert printed.WITHIN["UNI"]["Hausdorff"] == printed.Printed(43.3893, 2.25711, 5)


def test_our_tables_stand_beside_the_papers(study):
    x, _, domain = sites()
    found = cf.rdr(x, domain, distances=["cfd", "energy"], repeats=3, pairs=[("S0", "S3")])
    cells = published_tables.format_ratios(found, printed="midog")
    lines = published_tables.format_markdown_table(*cells).splitlines()
    assert lines[0].startswith("| distance | S0 in S0–S3 | S3 in S0–S3 | paper: ACS in ACS–HS |")
    assert lines[2].endswith("| 0.0020 | 0.0013 | 0.0030 | 0.0033 |")
    assert lines[3].endswith("| – | – | – | – |")  # the paper has no energy distance
    appendix = published_tables.format_markdown_table(*published_tables.format_distances(found, printed="camelyon16"))
    assert "| paper: within RAD | 0.00027 ± 0.00005 | – |" in appendix
    assert "| across S0–S3 |" in appendix
    table = published_tables.format_markdown_table(*published_tables.format_study(study, printed="midog")).splitlines()
    assert "| paper: Macenko | 0.2243 | 0.4981 | 35.3897 | 0.4820 | 0.1204 |" in table
    assert table[-1].startswith("| paper: correlation with CDDR, four points | 0.8868 | 0.8142 | 0.6130 |")
    assert len({line.count("|") for line in table}) == 1


@pytest.mark.parametrize(
    ("printed", "sources", "columns"),
    [(None, [], []), ("camelyon16", ["RAD", "UNI"], [0, 1]), ("midog", ["ACS", "HS", "HX"], [2, 3, 4, 5])],
)
def test_printed_numbers_stand_beside_their_own_data_set_only(study, printed, sources, columns):
    x, _, domain = sites()
    found = cf.rdr(x, domain, distances=["cfd"], repeats=3, pairs=[("S0", "S3")])
    header, [row] = published_tables.format_ratios(found, printed=printed)
    assert header[3:] == [f"paper: {published.COLUMNS[k]}" for k in columns]
    assert row[3:] == [f"{published.RDR['CFD'][k]:.4f}" for k in columns]
    _, turned = published_tables.format_ratios_by_side(found, printed=printed)
    assert [[f"paper: {published.COLUMNS[k]}", f"{published.RDR['CFD'][k]:.4f}"] for k in columns] == turned[2:]
    _, appendix = published_tables.format_distances(found, printed=printed)
    within = [line[0] for line in appendix if line[0].startswith("paper: within")]
    assert within == [f"paper: within {source}" for source in sources]
    across = {line[0][len("paper: across ") :] for line in appendix if line[0].startswith("paper: across")}
    assert across == {published.COLUMNS[k].split(" in ")[1] for k in columns}
    _, rows = published_tables.format_study(study, printed=printed)
    assert any(line[0].startswith("paper: ") for line in rows) == (printed == "midog")


def test_the_figure_is_written_whole(study, tmp_path):
    for ending in ("png", "svg", "pdf"):
        study_figure.save_study_figure(study, tmp_path / f"study.{ending}")
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "study.svg").read_text()
    study_figure.save_study_figure(study, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text
    drawn = study.plot()
    assert sum(axes.axison for axes in drawn.axes) == 3
    with pytest.raises(cf.FileError, match="does not fit a figure"):
        study_figure.save_study_figure(study, tmp_path / "study.txt")


def test_what_cannot_be_studied_is_refused(refuses):
    x, y, domain = sites()
    with refuses("no correction 'coral2': did you mean 'coral'"):
        cf.degradation_study(x, y, domain, corrections=["coral2"])
    with refuses("names a correction twice"):
        cf.degradation_study(x, y, domain, corrections=["none", "none"])
    with refuses("corrections is empty"):
        cf.degradation_study(x, y, domain, corrections=[])
    with refuses(r"corrections\['mine'\] has 10 entries for 240 rows"):
        cf.degradation_study(x, y, domain, corrections={"mine": x[:10]})
    with refuses("no distance 'cfd_given_labels': did you mean 'cfd_given_label'"):
        cf.degradation_study(x, y, domain, distances=["cfd_given_labels"])
    with refuses("rows=1"):
        cf.degradation_study(x, y, domain, rows=1)
    found = cf.degradation_study(x, y, domain, distances="cfd", corrections="none", **QUICK)
    with refuses("over='both' is not known"):
        found.correlations("both")
    with refuses("correction='coral' is not in this study"):
        found.correlations("pairs", "coral")


# The commands


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    x, y, domain = sites(shifts=(0.0, 1.0, 3.0))
    unit = np.arange(len(x)) // 4
    for name, rows in {"raw": x, "centred": cf.correct(x, domain, "center")}.items():
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 3)
        table = pa.table({"site": domain, "label": y, "slide": unit, "embedding": vectors})
        pq.write_table(table, folder / f"{name}.parquet")
    cf.summarize(x, by={"site": domain}).write(folder / "summary.parquet")
    return folder


def test_the_commands_print_what_the_functions_give(files):
    x, y, domain = sites(shifts=(0.0, 1.0, 3.0))
    unit, raw = np.arange(len(x)) // 4, files / "raw.parquet"
    found = run_json("rdr", raw, "--between", "site", "--units", "slide", "--distance", "cfd,mmd", "--repeats", 3)
    expected = cf.rdr(x, domain, distances=["cfd", "mmd"], units=unit, repeats=3)
    assert found == json.loads(json.dumps(expected.to_dict()))
    text = run("rdr", raw, "--between", "site", "--distance", "mmd", "--option", "bandwidth=2", "--repeats", 3).stdout
    assert "as square" in text
    asked = ("--between", "site", "--label", "label")
    found = run_json("cddr", raw, *asked, "--units", "slide", "--metric", "auc", "--folds", 3)
    assert found == json.loads(json.dumps(cf.cddr(x, y, domain, units=unit, metric="auc", folds=3).to_dict()))
    assert "Degradation of the macro F1 of label between site" in run("cddr", raw, *asked).stdout


def test_the_command_of_a_study(files):
    asked = ("--between", "site", "--label", "label", "--distance", "cfd,cfd_given_label", "--folds", 3, "--repeats", 2)
    plot = files / "study.png"
    text = run("degradation", files / "raw.parquet", *asked, "--correction", "none,center", "--plot", plot).stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert "Correlation with CDDR over pairs, center" in text
    assert "caution:" in text
    own = run_json("degradation", f"none={files}/raw.parquet", f"center={files}/centred.parquet", *asked)
    named = run_json("degradation", files / "raw.parquet", *asked, "--correction", "none,centre")  # its name in 0.1
    assert {outcome["correction"] for outcome in named["outcomes"]} == {"none", "center"}
    assert own["associations"][0] == named["associations"][0]
    assert [o["cddr"] for o in own["outcomes"]] == pytest.approx([o["cddr"] for o in named["outcomes"]])


def test_commands_refuse_in_one_line(files):
    raw = files / "raw.parquet"
    asked = ("--between", "site", "--label", "label")
    assert "is a summary, which has no rows" in fails("rdr", files / "summary.parquet", "--between", "site")
    assert "no distance 'cdf': did you mean 'cfd'" in fails("rdr", raw, "--between", "site", "--distance", "cdf")
    assert "--repeats 1 must be" in fails("rdr", raw, "--between", "site", "--repeats", 1)
    assert "--metric f1 is not known" in fails("cddr", raw, *asked, "--metric", "f1")
    assert "does not fit a figure" in fails("degradation", raw, *asked, "--plot", files / "x.txt")
    assert "no correction 'corl'" in fails("degradation", raw, *asked, "--correction", "corl")
    both = (f"a={raw}", f"b={files}/centred.parquet")
    assert "--correction goes with one file" in fails("degradation", *both, *asked, "--correction", "none")
    assert "is not NAME=FILE" in fails("degradation", both[0], raw, *asked)
