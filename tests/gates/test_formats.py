"""What other programs read: JUnit XML, annotations of GitHub Actions, a section of MultiQC."""

import json
from xml.etree import ElementTree

import pytest

import crossfusion as cf
from tests.helpers.policies import make_data

HOSTILE = 'a,b: "<b>&amp;%0A\n\x1b::error::'


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    x, by = make_data()
    path = tmp_path_factory.mktemp("policy") / "policy.toml"
    path.write_text(
        '[[rule]]\nname = "holds"\nbetween = "scanner"\nmax = 9\n'
        f'[[rule]]\nname = {json.dumps(HOSTILE)}\nbetween = "scanner"\nmax = 0.001\n'
        '[[rule]]\nname = "unknown"\nbetween = "site"\nmax = 9\n'
    )
    return cf.check(path, x, by=by)


def test_junit(result):
    root = ElementTree.fromstring(result.to_junit().encode())
    (suite,) = root
    for element in (root, suite):
        assert [element.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    holds, broken, unknown = suite
    assert [[child.tag for child in case] for case in suite] == [
        ["system-out"],
        ["failure", "system-out"],
        ["error", "system-out"],
    ]
    assert broken.get("name") == 'a,b: "<b>&amp;%0A\\n\\x1b::error::'
    assert broken.find("failure").get("message") == result.outcomes[1].message
    assert "did you mean" in unknown.find("error").get("message") or "there are" in unknown.find("error").get("message")
    assert holds.get("classname") == result.policy
    assert holds.find("system-out").text == result.outcomes[0].message


def test_annotations(result):
    lines = result.to_github().splitlines()
    assert len(lines) == 3
    assert [line.split(" ", 1)[0] for line in lines] == ["::notice", "::error", "::error"]
    head, _, message = lines[1].removeprefix("::error ").partition("::")
    properties = dict(entry.split("=", 1) for entry in head.split(","))
    assert properties == {
        "file": result.policy,
        "line": "5",
        "title": 'a%2Cb%3A "<b>&amp;%250A\\n\\x1b%3A%3Aerror%3A%3A (broken)',
    }
    assert message.startswith("CFD at most 0.001: CFD of 3 groups is ")


def test_a_caution_of_a_rule_that_holds_is_a_warning():
    x, by = make_data()
    by["patient"] = [
        999 if name == "S3" else patient for name, patient in zip(by["scanner"], by["patient"], strict=True)
    ]
    rule = {"between": "scanner", "units": "patient", "max": 9, "incomparable": "ignore"}
    with pytest.warns(cf.CrossfusionWarning, match="left out: S3"):
        found = cf.check({"rule": [rule]}, x, by=by)
    assert found.exit_code == 0
    (line,) = found.to_github().splitlines()
    assert line.startswith("::warning file=policy,title=")
    assert "caution: excluded: S3 (1): fewer than 2 units" in line


def test_multiqc(result):
    section = json.loads(json.dumps(result.to_multiqc(), allow_nan=False))
    assert section["plot_type"] == "table"
    assert list(section["data"]) == ["1", "2", "3"]
    assert section["data"]["2"]["rule"] == "a,b: &quot;&lt;b&gt;&amp;amp;%0A\\n\\x1b::error::"
    assert [row["status"] for row in section["data"].values()] == ["holds", "broken", "unanswered"]
    for row in section["data"].values():
        assert set(row) <= set(section["headers"])
    assert section["data"]["1"]["estimate"] == result.outcomes[0].estimate


def test_a_figure_of_the_estimates(result):
    figure = result.plot()
    assert next(text.get_text() for text in figure.axes[0].get_yticklabels()) == "holds"
