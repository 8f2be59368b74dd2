"""The verdict of a report, on rows whose groups differ as planted."""

from typing import Any

import numpy as np
import pytest

import crossfusion as cf
from crossfusion.report.name_text import find_prefix, format_plural, join_names, strip_marks

NAMES = ("Aarhus", "Bonn", "Cork", "Delft", "Essen")
ASKED: dict[str, Any] = {"between": "site", "units": "patient", "permutations": 199}


def sites(*offsets, units=8, rows=20, seed=1):
    """Rows of as many sites as there are offsets, of which each moves one site along its own feature."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(len(offsets) * units), rows)
    site = patient // units
    x = rng.normal(size=(len(site), 12)) + 0.2 * rng.normal(size=(len(offsets) * units, 12))[patient]
    for k, offset in enumerate(offsets):
        x[site == k, k] += offset
    return x, {"site": np.array(NAMES)[site], "patient": patient, "tissue": rng.integers(0, 2, len(site))}


def judge(x, by, **options):
    found = cf.Report(x, by=by, **ASKED | options).to_dict()
    return found["verdict"] | {"said": strip_marks(found["verdict"]["sentence"]), "next": found["next"]}


def test_one_site_that_differs_is_named():
    found = judge(*sites(0, 0, 2, 0))
    assert found["said"] == (
        "Cork differs from the other three sites; between Aarhus, Bonn and Delft there is no significant separation."
    )
    assert (found["outlying"], found["status"]) == (["Cork"], "neutral")


def test_two_sites_that_differ_are_named():
    found = judge(*sites(0, 2, 3, 0, 0))
    assert set(found["outlying"]) == {"Bonn", "Cork"}
    assert found["said"].endswith("between Aarhus, Delft and Essen there is no significant separation.")


def test_where_all_differ_it_says_so():
    assert judge(*sites(3, 3, 3, 3))["said"] == "All four sites differ from each other."


def test_where_none_differ_it_says_so_and_how_to_show_agreement():
    found = judge(*sites(0, 0, 0, 0))
    assert found["said"] == "No significant separation between the four sites."
    assert "--fused-within" in found["next"][0]


@pytest.mark.parametrize(("margin", "status"), [(0.05, "good"), (0.0001, "open")])
def test_agreement_is_shown_or_not(margin, status):
    found = judge(*sites(0, 0, 0, 0), expect="fused", fused_within=margin)
    assert found["status"] == status
    assert found["agreed"] == (status == "good")
    said = {"good": "The four sites agree within 0.05.", "open": "not shown to agree within 0.0001."}
    assert said[status] in found["said"]


def test_batches_that_differ_are_not_as_expected():
    assert judge(*sites(0, 0, 2, 0), expect="fused")["status"] == "bad"


def test_classes_should_be_apart():
    x, by = sites(3, 3, 3, 3)
    assert judge(x, by, expect="apart")["status"] == "good"
    x, by = sites(3, 0, 0, 3)  # Bonn and Cork agree
    found = judge(x, by, expect="apart")
    assert found["status"] == "bad"
    assert found["said"] == "Bonn and Cork are not significantly separated; the other five pairs are."
    ranks = cf.Report(x, by=by, expect="apart", **ASKED).to_dict()["ranks"]
    assert sorted(ranks["order"][:2]) == sorted(ranks["outlying"]) == [1, 2]
    assert [ranks["closest"][k] for k in (1, 2)] == [2, 1]
    assert judge(*sites(0, 0, 0, 0), expect="apart")["status"] == "bad"


def test_two_groups_are_named():
    assert judge(*sites(0, 3))["said"] == "Aarhus and Bonn differ."
    assert judge(*sites(0, 0))["said"] == "No significant separation between Aarhus and Bonn."


def test_without_inference_nothing_is_claimed():
    x, by = sites(0, 0, 3, 0)
    summary = cf.summarize(x, by={"site": by["site"]})
    found = cf.Report(summary, between="site").to_dict()["verdict"]
    assert (found["kind"], found["outlying"]) == ("untested", [])
    assert "was not tested" in found["sentence"]


def test_too_few_units_name_no_one():
    """Three units of each site: a test of two sites can never be significant."""
    found = judge(*sites(3, 3, 3, 3, units=3))
    assert found["outlying"] == []


def test_words_of_batches_come_only_where_they_are_meant():
    x, by = sites(0, 0, 2, 0)
    asked = ASKED | {"given": "tissue"}
    neutral = cf.Report(x, by=by, **asked).to_html().partition("</style>")[2].partition("<script")[0].lower()
    assert not [
        word for word in ("batch versus", "biology", "to preserve", "tile", "corner is best") if word in neutral
    ]
    assert "batch versus biology" in cf.Report(x, by=by, expect="fused", **asked).to_html().lower()


def test_the_adjusted_view_has_no_effect_of_the_stratum():
    rng = np.random.default_rng(0)
    site, tissue = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    tissue[site == 0] = rng.integers(0, 10, (site == 0).sum()) == 0  # another mix of tissues
    x = rng.normal(size=(900, 6)) + 8.0 * tissue[:, None] * np.eye(6)[0] + 2.0 * (site == 2)[:, None] * np.eye(6)[1]
    by = {"site": site, "tissue": tissue}
    views = cf.Report(x, by=by, between="site", given="tissue", permutations=9).to_dict()["projection"]
    assert [entry["name"] for entry in views["factors"]] == ["site", "tissue"]
    spread = {}
    for name, view in views["views"].items():
        means, points = np.array(view["means"][1]), np.array(view["at"])
        spread[name] = np.linalg.norm(means[0] - means[1]) / points.std(axis=0).max()
    assert spread["plain"] > 1.5
    assert spread["adjusted"] < 0.4
    gap = np.array(views["views"]["adjusted"]["means"][0])
    apart = np.linalg.norm(gap[:, None] - gap, axis=2)
    assert apart[0, 1] < apart[0, 2] / 4
    assert apart[0, 1] < apart[1, 2] / 4


def test_the_card_of_separability_is_that_of_the_library():
    x, by = sites(0, 0, 2, 0)
    card = cf.Report(x, by=by, **ASKED).to_dict()["cards"][-1]
    assert card["value"] == f"{100 * card['result']['accuracy']:.0f}%"
    assert card["result"]["by"] == "units"
    assert "chance 25%" in card["interval"]
    alone = cf.Report(cf.summarize(x, by=by), **ASKED).to_dict()["cards"][-1]
    assert (alone["value"], alone["result"]) == ("–", None)
    assert "needs rows" in alone["text"]


def test_ranks_are_those_of_one_vs_rest():
    x, by = sites(0, 0, 2, 0)
    ranks = cf.Report(x, by=by, **ASKED).to_dict()["ranks"]
    expected = cf.summarize(x, by=by).one_vs_rest("site", units="patient", level=0.95, weights="balanced")
    assert ranks["unbiased"] == pytest.approx([each.unbiased for each in expected.values()])
    assert ranks["upper"] == pytest.approx([each.interval[1] for each in expected.values() if each.interval])
    assert ranks["order"][0] == ranks["outlying"][0] == 2


@pytest.mark.parametrize(
    ("name", "plural"),
    [
        ("site", "sites"), ("class", "classes"), ("batch", "batches"), ("day", "days"), ("assay", "assays"),
        ("laboratory", "laboratories"), ("status", "\u2068status\u2069 groups"), ("a b", "\u2068a b\u2069 groups"),
        ("<b>", "\u2068<b>\u2069 groups"),
    ],
)  # fmt: skip
def test_groups_have_a_plural_or_are_called_groups(name, plural):
    assert format_plural([name]) == plural


def test_names_share_a_start_only_up_to_a_word():
    assert find_prefix(["hospital_01", "hospital_02"]) == "hospital_"
    assert find_prefix(["Aarhus", "Aachen"]) == ""
    assert find_prefix(["site 1", "site 12"]) == "site "
    assert find_prefix(["site ", "site 1"]) == ""
    assert find_prefix(["only"]) == ""
    assert strip_marks(join_names(list("ABCDEFGH"))) == "A, B, C, D, E and 3 more"


def blocks(*tissues):
    """Rows of sites that hold some of the tissues each, of which the last differs by far if it is compared."""
    rng = np.random.default_rng(3)
    by = [(NAMES[k], f"{k}-{p}", t) for k, own in enumerate(tissues) for p in range(8) for t in own for _ in range(10)]
    site, patient, tissue = (np.array(column) for column in zip(*by, strict=True))
    x = rng.normal(size=(len(site), 8)) + 2.0 * tissue[:, None]
    return x + 2.0 * (site == NAMES[len(tissues) - 1])[:, None], {"site": site, "patient": patient, "tissue": tissue}


@pytest.mark.parametrize("expect", ["fused", "apart"])
def test_a_group_without_a_common_stratum_is_not_said_to_agree_or_to_differ(expect):
    found = judge(*blocks((0, 1), (0, 1), (0, 1), (2,)), given="tissue", expect=expect, fused_within=0.1)
    who = {
        "fused": "The three comparable sites agree within 0.1",
        "apart": "No significant separation between the three comparable sites",
    }
    assert found["said"] == f"{who[expect]}; Delft shares no tissue with another site group."
    assert found["status"] == {"fused": "open", "apart": "bad"}[expect]
    assert (found["outlying"], found["rest"]) == ([], ["Aarhus", "Bonn", "Cork"])


def test_outlying_groups_keep_their_places_beside_a_group_that_is_not_compared():
    x, by = blocks((2,), (0, 1), (0, 1), (0, 1))
    found = judge(x, by, given="tissue")
    assert found["said"] == (
        "Delft differs from the other two comparable sites; between Bonn and Cork there is no significant separation;"
        " Aarhus shares no tissue with another site group."
    )
    assert (found["outlying"], found["rest"]) == (["Delft"], ["Bonn", "Cork"])
    ranks = cf.Report(x, by=by, given="tissue", expect="apart", **ASKED).to_dict()["ranks"]
    assert ranks["outlying"] == [1, 2]  # and not Aarhus, which has no closest one


def test_pairs_without_a_common_stratum_are_not_counted():
    found = judge(*blocks((0,), (0,), (1,), (1,)), given="tissue")
    assert found["said"] == (
        "The four sites differ: 1 of 2 pairs that are compared is significantly separated; 4 of 6 pairs share no"
        " tissue, so they are not compared."
    )


@pytest.mark.parametrize(
    ("tissues", "end"),
    [
        (((0, 0, 0, 1), (0, 1, 1, 1)), "; adjusting for tissue reduces the CFD by "),
        (((0, 1), (0, 2)), "; this covers all rows, the adjusted CFD only strata with several groups (50.0% of the"),
        (((0, 1), (0, 1)), "; adjusting for tissue does not reduce it."),
    ],
)
def test_the_effect_of_adjusting_is_stated_only_for_the_same_rows(tissues, end):
    x, by = blocks(*tissues)
    headline = cf.Report(x, by=by, given="tissue", **ASKED).to_dict()["headline"]
    assert any(end in strip_marks(each) for each in headline if each.startswith("Unadjusted")), headline


def test_the_effect_of_adjusting_is_not_stated_where_nothing_is_shown():
    x, by = sites(0, 0)
    headline = cf.Report(x, by=by, given="tissue", **ASKED).to_dict()["headline"]
    assert [each for each in headline if "adjusting" in each] == []


def test_two_groups_without_variance_within_are_separated():
    site = np.repeat(["A", "B"], 20)
    found = judge((site == "A")[:, None] * np.ones((40, 3)), {"site": site}, units=None, expect="apart")
    assert (found["said"], found["status"]) == ("A and B are separated.", "good")
