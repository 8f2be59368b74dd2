"""Evaluations of data sets: the same numbers as the protocols, kept in pieces, as files and a page."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import crossfusion as cf
from crossfusion.study import Dataset, Plan, evaluate, evaluate_all, published, tasks, write_page

PLAN = Plan.quick(distances=("cfd", "cfd_unbiased", "mmd", "chamfer", "hausdorff"), folds=2, draws=20, permutations=50)
EVIL = "<C> & | co"


def made_up(seed=0, name="made_up", label=True):
    """Three sites, one of them with a name that HTML and Markdown would take for their own, and rows moved twice."""
    draw = np.random.default_rng(seed)
    domain, y = np.repeat(["A", "B", EVIL], 40), np.tile(["u", "v"], 60)
    x = draw.normal(size=(120, 3)) + 2 * (y == "v")[:, None] + np.repeat([0.0, 0.5, 2.0], 40)[:, None]
    versions = {"center": "center", "doubled": 2 * x}
    return Dataset(name, versions, x, domain.tolist(), y.tolist() if label else None, note="Made up.")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return evaluate(replace(made_up(), printed="midog"), tmp_path_factory.mktemp("evaluation"), PLAN, workers=1)


def test_numbers_are_those_of_the_protocols(found):
    data = made_up()
    ratios = cf.rdr(data.x, data.domain, distances=list(PLAN.distances), repeats=PLAN.halves, rows=PLAN.rows)
    assert found.rdr["none"].to_dict() == ratios.to_dict()
    assert list(found.rdr) == ["none", "doubled"]
    study = cf.degradation_study(
        data.x,
        data.label,
        data.domain,
        distances=[*PLAN.distances, *PLAN.within_labels],
        corrections={"none": "none", "center": "center", "doubled": 2 * data.x},
        folds=PLAN.folds,
        rows=PLAN.rows,
        repeats=PLAN.repeats,
        draws=PLAN.draws,
        permutations=PLAN.permutations,
    )
    assert found.study.to_dict() == study.to_dict()


def test_files_hold_the_numbers_and_the_papers(found):
    names = {"rdr.md", "appendix.md", "cddr.md", "study.md", "correlations.md", "results.json", "scatter.png"}
    assert names <= {path.name for path in found.folder.iterdir()}
    kept = json.loads((found.folder / "results.json").read_text())
    assert kept == found.to_dict()
    study = (found.folder / "study.md").read_text()
    assert "| paper: Macenko |" in study
    assert "&lt;C&gt; &amp; \\| co" in (found.folder / "rdr.md").read_text()
    cells = [row for row in (found.folder / "rdr.md").read_text().splitlines() if row.startswith("| cfd |")]
    stands, root = (row.split(" | ")[-1].rstrip(" |") for row in cells[:2])
    assert float(root) == pytest.approx(float(stands) ** 0.5, abs=1e-4), "the paper's ratios are brought to our scale"
    assert float(stands) == published.RDR["CFD"][-1]


def test_what_is_done_is_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setattr("crossfusion.study.evaluation.write_files", lambda found: None)  # for speed
    first = evaluate(made_up(), tmp_path, PLAN, workers=1)
    done = []

    def noted(piece):
        done.append(piece.title)
        return tasks.compute(piece)

    monkeypatch.setattr("crossfusion.study.evaluation.compute", noted)
    again = evaluate(made_up(), tmp_path, PLAN, workers=1)
    assert (done, again.to_dict()) == ([], first.to_dict())
    evaluate(made_up(), tmp_path, replace(PLAN, permutations=20), workers=1)
    assert done == [], "correlations are put together anew"
    evaluate(made_up(), tmp_path, replace(PLAN, folds=3), workers=1)
    assert len(done) == 3, "ratios do not depend on folds"
    assert all("study" in title for title in done)
    done.clear()
    changed = made_up(seed=1)
    evaluate(replace(changed, versions=made_up().versions), tmp_path, PLAN, workers=1)
    assert {title.split(" of ")[1] for title in done} == {"none", "center", "doubled"}
    done.clear()
    piece = next((tmp_path / "made_up" / "pieces").glob("study-none*"))
    piece.write_text(piece.read_text()[:100])
    evaluate(replace(changed, versions=made_up().versions), tmp_path, PLAN, workers=1)
    assert done == ["made_up, study of none"]


def test_workers_change_nothing(found, tmp_path):
    other = evaluate(replace(made_up(), printed="midog"), tmp_path, PLAN, workers=2)
    assert other.to_dict() == found.to_dict()


def test_without_labels_there_are_ratios_only(tmp_path):
    some = [(made_up(label=False), PLAN), (made_up(name="other", label=False), PLAN)]
    first, second = evaluate_all(some, tmp_path, workers=1)
    assert first.study is None
    assert {path.name for path in second.folder.iterdir()} == {"appendix.md", "pieces", "rdr.md", "results.json"}
    page = write_page(tmp_path, "Ratios", [first, second], command="x").read_text(encoding="utf-8")
    texts = [page, *(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.md"))]
    for named in ("| paper: ", ">paper: ", "are printed in"):
        assert not any(named in text for text in texts), "the paper has no numbers for these data"


class Page(HTMLParser):
    """Tags and text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_a_page_is_whole_and_escapes_names(found):
    path = write_page(found.folder, "A <title>", [found], command="crossfusion 'x'", points=["1 < 2"])
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert "c" not in {tag for tag, _ in page.tags}
    assert not {"script", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert all(attrs["src"].startswith("data:image/") for tag, attrs in page.tags if tag == "img")
    text = " ".join(page.text)
    for said in (EVIL, "A <title>", "1 < 2", "paper: Macenko", "crossfusion 'x'"):
        assert said in text


def test_a_data_set_of_the_paper_is_one_of_its_own(refuses):
    with refuses("printed='pacs' is not known: choose 'camelyon16' or 'midog'"):
        Dataset("pacs", {}, np.zeros((2, 2)), ["A", "B"], printed="pacs")


def test_a_name_is_a_folders(refuses):
    with refuses("is not a valid name of a data set"):
        Dataset("../up", {}, np.zeros((2, 2)), ["A", "B"])
