"""The MCP server as a client of the same SDK sees it, over standard input and output."""

import os
import sys

import anyio
import h5py
import numpy as np
import pytest
from mcp import Client, StdioServerParameters, stdio_client

import crossfusion as cf
from crossfusion.mcp.answers import MAX_ANSWER, MAX_ENTRIES, MAX_TEXT, answer, bound
from crossfusion.mcp.folder import Folder
from crossfusion.mcp.server import TOOLS
from tests.helpers.command_line import fails
from tests.helpers.policies import BROKEN, HOLDS, make_data

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
GROUPS = {"between": ["scanner"], "given": ["tissue"], "units": ["patient"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    folder = tmp_path_factory.mktemp("served") / "data [1]"
    folder.mkdir()
    x, by = make_data()
    np.savez(folder / "x.npz", x=x, **by)
    np.savez(outside / "secret.npz", x=x, **by)
    for name in ("S1", "S3"):
        np.save(folder / f"{name}.npy", x[by["scanner"] == name])
    cf.summarize(x, by=by).write(folder / "summary.parquet")
    (folder / "policy.toml").write_text(HOLDS + BROKEN)
    (folder / "link.npz").symlink_to(outside / "secret.npz")
    (folder / "nested").mkdir()
    (folder / "nested" / "all").symlink_to(outside)
    with h5py.File(outside / "secret.h5", "w") as file:
        file["features"] = x
    with h5py.File(folder / "linked.h5", "w") as file:
        file["features"] = h5py.ExternalLink(str(outside / "secret.h5"), "/features")
    layout = h5py.VirtualLayout(x.shape, x.dtype)
    layout[:] = h5py.VirtualSource(str(outside / "secret.h5"), "features", x.shape)
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_group("deep").create_virtual_dataset("features", layout)
    return folder


def ask(folder, *calls):
    """Answers of one server to some calls, after a list of its tools."""
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "crossfusion", "mcp", str(folder)], env=environment
    )

    async def run():
        async with Client(stdio_client(server)) as client:
            tools = (await client.list_tools()).tools
            return tools, [await client.call_tool(name, arguments) for name, arguments in calls]

    return anyio.run(run)


def test_every_question_has_the_answer_of_the_library(folder):
    path = {"path": "x.npz"}
    calls = {
        "list_files": {},
        "describe": {"path": "summary.parquet"},
        "report": path | GROUPS,
        "groups": {"path": "summary.parquet", "level": 0.9} | GROUPS,
        "matrix": path | GROUPS | {"level": 0.9},
        "compare": {"path_a": "S1.npy", "path_b": "S3.npy", "level": 0.95},
        "test": path | GROUPS | {"permutations": 99},
        "separability": path | GROUPS,
        "hierarchy": path | {"levels": ["tissue", "scanner"]},
        "attribution": path | {"between": ["scanner"], "over": "patient"},
        "drift": path | {"time": "week", "reference": "first:6", "given": ["tissue"]},
        "check": path | {"policy": "policy.toml"},
    }
    tools, answers = ask(folder, *calls.items())
    assert [tool.name for tool in tools] == list(TOOLS) == list(calls)
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    assert not any(found.is_error for found in answers)
    found = dict(zip(calls, (each.structured_content for each in answers), strict=True))
    text, values = ({name: each.get(key) for name, each in found.items()} for key in ("text", "values"))

    x, by = make_data()
    summary = cf.summarize(x, by=by)
    asked = {"given": "tissue", "units": "patient"}
    assert {entry["path"] for entry in found["list_files"]["files"]} == {
        "S1.npy", "S3.npy", "linked.h5", "policy.toml", "summary.parquet", "virtual.h5", "x.npz",
    }  # fmt: skip
    assert values["describe"]["factors"]["scanner"] == {"number": 3, "first": ["S1", "S2", "S3"]}
    assert values["groups"] == summary.cfd("scanner", **asked, level=0.9, weights="balanced").to_dict()
    pairs = summary.pairwise("scanner", **asked, level=0.9).to_frame().sort_values("unbiased", ascending=False)
    assert [entry["unbiased"] for entry in values["matrix"]["pairs"]] == pytest.approx(pairs["unbiased"].tolist())
    expected = cf.cfd(x[by["scanner"] == "S1"], x[by["scanner"] == "S3"], level=0.95)
    assert values["compare"]["interval"] == pytest.approx(expected.interval)
    assert values["test"]["pvalue"] == summary.test("scanner", **asked, permutations=99).pvalue
    accuracy = cf.separability(x, by["scanner"], given=by["tissue"], units=by["patient"]).accuracy
    assert values["separability"]["accuracy"] == pytest.approx(accuracy)
    assert values["hierarchy"]["unbiased"] == pytest.approx(summary.hierarchy(["tissue", "scanner"]).unbiased)
    assert len(values["attribution"]["largest_first"]) == 40
    assert values["drift"]["alarm"] == summary.drift("week", reference="first:6", given="tissue").alarm.tolist()
    assert [rule["status"] for rule in values["check"]["rules"]] == ["holds", "broken"]
    assert "scanner" in text["report"]
    assert str(folder) not in "".join(each.content[0].text for each in answers)


@pytest.mark.parametrize(
    "path",
    [
        "../outside",
        "link.npz",
        "nested",
        "nested/all/secret.npz",
        "/etc/passwd",
        "x.npz\0",
        "",
        "file:///etc/passwd",
        "..",
    ],
)
def test_nothing_outside_of_the_folder_is_reached(folder, path):
    with pytest.raises(cf.FileError, match=r"is not a relative path in the folder|leads out of the folder"):
        Folder(folder).find(path)


def test_paths_are_relative(folder):
    assert Folder(folder).find("x.npz") == folder / "x.npz"
    with pytest.raises(cf.FileError, match="is not a relative path"):
        Folder(folder).find(str(folder / "x.npz"))


def test_files_that_refer_to_other_files_are_refused(folder):
    with pytest.raises(cf.FileError, match=r"linked\.h5 refers to another file in /features"):
        Folder(folder).find("linked.h5")
    with pytest.raises(cf.FileError, match=r"virtual\.h5 refers to another file in /deep/features"):
        Folder(folder).find("virtual.h5")


def test_errors_are_one_sentence_and_warnings_are_part_of_the_answer(folder):
    calls = [
        ("matrix", {"path": "link.npz", "between": ["scanner"]}),
        ("matrix", {"path": "x.npz", "between": ["scaner"]}),
        ("matrix", {"path": "x.npz"}),
        ("separability", {"path": "summary.parquet", "between": ["scanner"]}),
        ("test", {"path": "x.npz", "between": ["scanner"], "units": ["patient"], "permutations": 0}),
        ("unknown", {}),
        ("groups", {"path": "x.npz", "between": ["week"], "given": ["patient"], "units": ["tissue"]}),
        ("matrix", {"path": "x.npz", "between": ["week"], "given": ["patient"]}),
    ]
    answers = ask(folder, *calls)[1]
    said = [found.content[0].text for found in answers if found.is_error]
    assert said[:6] == [
        "link.npz leads out of the folder: name a file in it",
        "x.npz has no array 'scaner': did you mean 'scanner'?",
        "between: Field required",
        "summary.parquet is a summary, which has no rows: name a file of rows",
        "permutations: Input should be greater than or equal to 1",
        "Unknown tool: unknown",
    ]
    assert not any("\n" in text or "Traceback" in text for text in said)
    assert "pairs of groups are fully confounded with given" in answers[-1].structured_content["warnings"][0]
    assert answers[-1].structured_content["values"]["pairs"]["of"] == 66


def test_answers_have_a_bounded_size():
    plain = str
    assert bound(list(range(MAX_ENTRIES + 1)), plain) == {"first": list(range(MAX_ENTRIES)), "of": MAX_ENTRIES + 1}
    assert bound(dict.fromkeys(range(MAX_ENTRIES + 3), 0), plain)["left_out"] == 3
    assert bound("a" * (MAX_TEXT + 5), plain).endswith("a … (5 more characters)")
    found = answer("text", [["a" * MAX_TEXT] * MAX_ENTRIES] * 2, [], plain)
    assert found["values"] == {"left_out": found["values"]["left_out"]}
    assert f"{2 * MAX_ENTRIES * MAX_TEXT:,}"[:2] in found["values"]["left_out"]
    assert MAX_ANSWER < 2 * MAX_ENTRIES * MAX_TEXT


def test_a_folder_that_is_not_there(tmp_path):
    assert "none is not a folder: name the folder whose files may be read" in fails("mcp", tmp_path / "none")
