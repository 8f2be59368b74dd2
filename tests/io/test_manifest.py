"""Metadata in a table of its own: by key, by file, by order, and exactly which keys are missing on either side."""

import gzip
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import crossfusion as cf
from crossfusion.io.reduction import reduce_partition
from crossfusion.io.sources import READERS, chunk, manifest, open_rows, sql
from crossfusion.io.sources import manifest_match as matching
from crossfusion.io.sources.file_names import list_stems
from crossfusion.io.summarization import reduce_sources

ROWS, DIM, SLIDES = 180, 4, 9
rng = np.random.default_rng(9)
X = rng.normal(size=(ROWS, DIM))
SLIDE = np.repeat(np.arange(SLIDES), ROWS // SLIDES)
SITE = np.array(["A", "B", "C"])[SLIDE % 3]
LABEL = rng.choice(["t", "n"], ROWS)
NAMES = np.array([f"s{k}" for k in range(SLIDES)])
EXPECTED = cf.summarize(X, by={"site": SITE, "label": LABEL})
BY_SITE = cf.summarize(X, by={"site": SITE})
TABLE = pa.table({"slide": NAMES[SLIDE], "label": LABEL, "v": X.tolist()})
SLIDES_CSV = pa.table({"slide": NAMES[::-1], "site": np.array(["A", "B", "C"])[np.arange(SLIDES) % 3][::-1]})


def summarize(source, by, table, on=None, vectors=None, **options):
    joined = manifest.join(partial(open_rows, source, vectors=vectors), table, on, by)
    return reduce_sources(joined.sources, joined=joined, **options)


def assert_same(summary, expected):
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=1e-12, atol=1e-14)


def write_gz(table, path):
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    path.write_bytes(gzip.compress(sink.getvalue().to_pybytes()))


WRITERS = {
    "m.csv": pyarrow.csv.write_csv,
    "m.tsv": lambda table, path: table.to_pandas().to_csv(path, sep="\t", index=False),
    "m.csv.gz": write_gz,
    "m.parquet": pq.write_table,
    "m.feather": pyarrow.feather.write_feather,
}


@pytest.fixture(params=[1, 600, 2**30])
def _blocks(request, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("source", ["table", "reader", "parquet", "query"])
def test_factors_join_by_key(source, tmp_path):
    path = tmp_path / "v.parquet"
    pq.write_table(TABLE, path, row_group_size=50)
    if source == "query":
        joined = manifest.join(
            lambda names: [sql.from_sql(f"from '{path}'", names)], SLIDES_CSV, "slide", ["site", "label"]
        )
        return assert_same(reduce_sources(joined.sources, joined=joined), EXPECTED)
    given = {"table": TABLE, "reader": TABLE.to_reader(7), "parquet": path}[source]
    return assert_same(summarize(given, ["site", "label"], SLIDES_CSV, "slide"), EXPECTED)


@pytest.mark.parametrize("name", WRITERS)
def test_manifests_are_files(name, tmp_path):
    WRITERS[name](SLIDES_CSV.append_column("note", pa.array(["x"] * SLIDES)), tmp_path / name)
    assert_same(summarize(TABLE, ["site", "label"], tmp_path / name, "slide"), EXPECTED)
    assert_same(summarize(TABLE, "site", str(tmp_path / name), "slide"), BY_SITE)


@pytest.mark.parametrize(
    "make", [pa.Table.to_pandas, pl.from_arrow, pa.Table.to_reader, lambda table: pl.from_arrow(table).lazy()]
)
def test_manifests_are_frames(make):
    assert_same(summarize(TABLE, ["site", "label"], make(SLIDES_CSV), "slide"), EXPECTED)


def test_the_manifest_wins_where_both_have_a_factor():
    table = TABLE.append_column("site", pa.array(["old"] * ROWS))
    assert_same(summarize(table, ["site", "label"], SLIDES_CSV, "slide"), EXPECTED)
    by_slide = summarize(table, "slide", SLIDES_CSV, "slide")
    assert by_slide.keys["slide"].to_pylist() == sorted(NAMES)


# --- files -----------------------------------------------------------------------------------------------------------


def save_slides(folder):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.npy" for name in NAMES]
    for number, path in enumerate(paths):
        np.save(path, X[number == SLIDE])
    return paths


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("form", ["s{}", "s{}.npy", "in/s{}.npy", "in/s{}", "{folder}/s{}.npy"])
def test_factors_join_by_file(form, tmp_path):
    paths = save_slides(tmp_path / "in")
    keys = [form.format(k, folder=tmp_path / "in") for k in range(SLIDES)]
    table = pa.table({"file": keys, "site": np.array(["A", "B", "C"])[np.arange(SLIDES) % 3]})
    assert_same(summarize(paths, "site", table, "file"), BY_SITE)
    joined = manifest.join(lambda names: [chunk.combine_sources("in", open_rows(paths, names))], table, "file", "site")
    assert_same(reduce_sources(joined.sources, joined=joined), BY_SITE)


def test_files_with_tables_of_their_own_join_by_file(tmp_path):
    paths = []
    for number, name in enumerate(NAMES):
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(TABLE.filter(pa.array(number == SLIDE)).drop_columns(["slide"]), paths[-1])
    assert_same(summarize(paths, ["site", "label"], SLIDES_CSV, "slide"), EXPECTED)


def test_numbered_files_join_by_number(tmp_path):
    np.save(tmp_path / "7.npy", X)
    assert_same(
        summarize(tmp_path / "7.npy", "site", pa.table({"file": [7], "site": ["A"]}), "file"),
        cf.summarize(X, by={"site": ["A"] * ROWS}),
    )


def test_a_manifest_of_another_separator_says_so(tmp_path, refuses):
    (tmp_path / "slides.csv").write_text("file;site\ns1.svs;A\n")
    np.save(tmp_path / "s1.npy", np.zeros((2, 2)))
    with refuses("has one column, 'file;site': separate columns by commas", cf.FileError):
        cf.summarize(tmp_path / "s1.npy", by="site", manifest=tmp_path / "slides.csv", on="file")


def test_files_that_the_manifest_lacks_are_named_before_reading(tmp_path, refuses):
    paths = save_slides(tmp_path / "in")
    table = pa.table({"file": [f"s{k}" for k in range(2, SLIDES)], "site": ["A"] * (SLIDES - 2)})
    paths[5].write_bytes(paths[5].read_bytes()[:-8])
    with refuses(
        r"names 2 of the files in 'file' neither by path nor by name \(.*s0.npy, .*s1.npy\),"
        r" and has others without vectors \(s5, s6, s7, s8\), and 'file' is no"
    ):
        manifest.join(partial(open_rows, paths[:5]), table, "file", "site")

    def hidden(names):  # which files there are shows when they are read
        return [replace(chunk.combine_sources("in", open_rows(paths[:5], names)), files=())]

    joined = manifest.join(hidden, table, "file", "site")
    with refuses(r"lacks 2 of the vectors' keys in 'file' \(.*s0.npy, .*s1.npy\)"):
        reduce_sources(joined.sources, joined=joined)


def test_files_and_keys_must_be_one_to_one(tmp_path, refuses):
    paths = save_slides(tmp_path / "in") + save_slides(tmp_path / "too")
    keys = pa.table({"file": NAMES, "site": ["A"] * SLIDES})
    with refuses(r"has one row for .*in/s0.npy and .*too/s0.npy, file='s0': name them by path"):
        summarize(paths, "site", keys, "file")
    twice = pa.table({"file": ["s0", "s0.npy"], "site": ["A", "B"]})
    with refuses(r"s0.npy is named by 2 rows of the manifest \(s0, s0.npy\): keep one"):
        summarize(paths[:1], "site", twice, "file")


def save_all(folder, *names):
    """One row per file: its position."""
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with (folder / name).open("wb") as file:
            np.save(file, [[float(number)]])
    return [folder / name for name in names]


def means_by_site(paths, keys, **options):
    table = pa.table({"slide": keys, "site": [f"site {k}" for k in range(len(keys))]})
    found = summarize(paths, "site", table, "slide", **options)
    return dict(zip(found.keys["site"].to_pylist(), found.moments.mean[:, 0].tolist(), strict=True))


@pytest.mark.parametrize(
    "form", ["{}.svs", "{}.SVS", "{}.ome.tiff", "{}.ndpi", "raw/{}.mrxs", "/mnt/slides/{}.svs", "D:\\slides\\{}.svs"]
)
def test_slides_match_their_features_without_the_endings(form, tmp_path):
    paths = save_all(tmp_path / "features", "a.npy", "b.npy")
    assert means_by_site(paths, [form.format("a"), form.format("b")]) == {"site 0": 0, "site 1": 1}


def test_only_known_endings_are_left_out(tmp_path, refuses):
    paths = save_all(tmp_path, "patient.1.npy", "patient.2.npy")
    assert means_by_site(paths, ["patient.2", "patient.1"]) == {"site 0": 1, "site 1": 0}
    for keys in (["patient"], ["patient.3", "patient.4"]):
        with refuses(r"names 2 of the files in 'slide' neither by path nor by name"):
            means_by_site(paths, keys)
    assert {ending for ending in READERS if list_stems(f"x{ending}")[-1] != "x"} == set()


def test_base_names_that_two_rows_share_match_nothing(tmp_path, refuses):
    paths = save_all(tmp_path / "features", "A/slide.npy", "B/slide.npy")
    assert means_by_site(paths, ["B/slide.svs", "A/slide.svs"]) == {"site 0": 1, "site 1": 0}
    with refuses("names 1 of the files in 'slide' neither by path nor by name"):
        means_by_site(paths[:1], ["C/slide.svs", "D/slide.svs"])
    with refuses("has one row for .*A/slide.npy and .*B/slide.npy, slide='raw/slide.svs': name them by path"):
        means_by_site(paths, ["raw/slide.svs"])


def test_slides_that_differ_in_the_ending_only_are_ambiguous(tmp_path, refuses):
    paths = save_all(tmp_path, "a.npy", "a.svs.npy")
    with refuses(r"a.npy is named by 2 rows of the manifest \(a.svs, a.tif\): keep one of them"):
        means_by_site(paths[:1], ["a.svs", "a.tif"])
    with pytest.warns(cf.CrossfusionWarning, match="1 key in 'slide' without vectors: a.tif"):
        assert means_by_site(paths[1:], ["a.svs", "a.tif"]) == {"site 0": 1}


# --- order -----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("source", ["array", "npy", "files", "together", "reader", "table"])
def test_factors_join_by_order(source, tmp_path):
    rows = pa.table({"site": SITE, "n": np.arange(ROWS)})
    np.save(tmp_path / "x.npy", X)
    paths = save_slides(tmp_path / "in")
    sources = {"array": X, "npy": tmp_path / "x.npy", "files": paths, "reader": TABLE.to_reader(11), "table": TABLE}
    if source == "together":
        joined = manifest.join(lambda names: [chunk.combine_sources("in", open_rows(paths, names))], rows, None, "site")
        return assert_same(reduce_sources(joined.sources, joined=joined), BY_SITE)
    assert_same(summarize(sources[source], "site", rows), BY_SITE)
    if source == "table":
        assert_same(summarize(TABLE, ["site", "label"], rows), EXPECTED)
    return None


def test_by_order_the_numbers_of_rows_must_agree(tmp_path, refuses):
    short, long = (pa.table({"site": ["A"] * number}) for number in (ROWS - 1, ROWS + 1))
    with refuses("the manifest has 179 rows for 180 vectors: without on"):
        manifest.join(partial(open_rows, X), short, None, "site")
    with refuses("the manifest has 179 rows, but there are 180 vectors or more"):
        summarize(TABLE.to_reader(), "site", short)
    with refuses("the manifest has 181 rows for 180 vectors"):
        summarize(TABLE.to_reader(), "site", long)
    with refuses("does not tell how many rows it has"):
        streams = [open_rows(TABLE.to_reader(), [])[0] for _ in range(2)]
        manifest.join(lambda names: streams, long, None, "site")
    with refuses("are not counted: name a key in on"):
        streams = [open_rows(TABLE.to_reader(), [])[0] for _ in range(2)]
        joined = manifest.join(lambda names: [chunk.combine_sources("two", streams)], long, None, "site")
        reduce_sources(joined.sources, joined=joined)


# --- keys that are missing -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_blocks")
def test_keys_that_the_manifest_lacks_are_all_named(refuses):
    few = SLIDES_CSV.filter(pa.array([name not in ("s1", "s4", "s8") for name in SLIDES_CSV["slide"].to_pylist()]))
    with refuses(r"the manifest lacks 3 of the vectors' keys in 'slide' \(s1, s4, s8\): add rows"):
        summarize(TABLE, "site", few, "slide")
    with refuses(r"lacks 3 .* \(s1, s4, s8\)"):
        summarize(TABLE.to_reader(13), "site", few, "slide")
    with refuses(r"lacks 1 of the vectors' keys in 'slide' \(\(missing\)\)"):
        gone = pa.array([None if k < 3 else name for k, name in enumerate(NAMES[SLIDE])])
        summarize(TABLE.set_column(0, "slide", gone), "site", SLIDES_CSV, "slide")


def test_keys_without_vectors_are_all_named():
    with pytest.warns(cf.CrossfusionWarning, match=r"has 2 keys in 'slide' without vectors: s0, s1$"):
        summary = summarize(TABLE.slice(40), "site", SLIDES_CSV, "slide")
    assert_same(summary, cf.summarize(X[40:], by={"site": SITE[40:]}))


def test_of_many_keys_a_few_are_named(monkeypatch, refuses):
    table = pa.table({"id": [f"k{k:04}" for k in range(300)], "v": [[1.0]] * 300})
    one = pa.table({"id": ["k0000"], "site": ["A"]})
    with refuses(r"lacks 299 of .* \(k0001, k0002, k0003, k0004, k0005 and 294 more\)"):
        summarize(table, "site", one, "id")
    full = pa.table({"id": table["id"], "site": ["A"] * 300})
    with pytest.warns(cf.CrossfusionWarning, match=r"has 299 keys .*: k0001, .*, k0005 and 294 more$"):
        summarize(table.slice(0, 1), "site", full, "id")
    monkeypatch.setattr(matching, "MAX_MISSING_KEYS", 150)
    monkeypatch.setattr(manifest, "MAX_MISSING_KEYS", 150)
    with refuses(r"lacks at least 150 of .* and at least 145 more"):
        summarize(table, "site", one, "id")


def test_only_matched_files_are_read(tmp_path, refuses):
    paths = save_all(tmp_path, "a.npy", "b.npy", "c.npy")
    paths[2].write_bytes(b"never opened")
    table = pa.table({"slide": ["a.svs", "b.svs"], "site": ["A", "B"]})
    options = {"by": "site", "manifest": table, "on": "slide"}
    with pytest.warns(cf.CrossfusionWarning, match=r"does not name 1 file, which are left out: .*c.npy$"):
        assert cf.summarize(tmp_path, **options, only_matched=True).moments.mean.tolist() == [[0], [1]]
    with refuses("names 1 of the files .*pass only_matched=True to leave them out"):
        cf.summarize(save_all(tmp_path, "a.npy", "b.npy", "c.npy"), **options)
    with refuses("names none of the 1 files in 'slide'"):
        cf.summarize(paths[2], **options, only_matched=True)


@pytest.mark.usefixtures("_blocks")
def test_only_matched_rows_are_read(refuses):
    few = SLIDES_CSV.filter(pa.array([name != "s1" for name in SLIDES_CSV["slide"].to_pylist()]))
    kept = SLIDE != 1
    with pytest.warns(
        cf.CrossfusionWarning, match="lacks 1 of the vectors' keys in 'slide', whose rows are left out: s1"
    ):
        found = cf.summarize(TABLE.to_reader(7), "site", manifest=few, on="slide", only_matched=True)
    assert_same(found, cf.summarize(X[kept], by={"site": SITE[kept]}))
    with refuses("lacks 9 of the vectors' keys"):
        other = pa.table({"slide": ["t"], "site": ["A"]})
        cf.summarize(TABLE, "site", manifest=other, on="slide", only_matched=True)


def test_only_matched_goes_with_a_key(refuses):
    for options in ({}, {"manifest": pa.table({"site": SITE})}):
        with refuses("only_matched leaves out rows that have no match in a manifest: name its key column in on"):
            cf.summarize(TABLE, "site", only_matched=True, **options)


def test_parts_are_matched_in_any_process():
    few = SLIDES_CSV.slice(0, 8)
    joined = manifest.join(partial(open_rows, TABLE), few, "slide", "site")
    (part,) = joined.sources[0].partitions
    piece = pickle.loads(pickle.dumps(reduce_partition(pickle.loads(pickle.dumps(part)), "x")))
    assert piece.match.missing == {"s0"}
    assert piece.match.used.tolist() == list(range(8))


# --- types and bad manifests -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [pa.int8(), pa.int64(), pa.string(), pa.large_string(), pa.uint64()])
@pytest.mark.parametrize("right", [pa.int32(), pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_whole_numbers_match_their_text(left, right):
    keys = pa.array(np.arange(SLIDES).astype(str)).cast(right)
    table = pa.table({"slide": pa.array(SLIDE).cast(left), "v": X.tolist()})
    assert_same(summarize(table, "site", pa.table({"slide": keys, "site": ["A", "B", "C"] * 3}), "slide"), BY_SITE)


def test_numbers_with_leading_zeros_stay_text(tmp_path, refuses):
    (tmp_path / "m.csv").write_text("pid,site\n007,A\n008,B\n")
    table = pa.table({"pid": ["007", "008"], "v": [[1.0], [2.0]]})
    assert summarize(table, "site", tmp_path / "m.csv", "pid").moments.mean.tolist() == [[1.0], [2.0]]
    with refuses(r"lacks 2 of .* \(7, 8\)"):
        summarize(table.set_column(0, "pid", pa.array([7, 8])), "site", tmp_path / "m.csv", "pid")


def test_versions_in_a_text_manifest_stay_text(tmp_path):
    (tmp_path / "m.csv").write_text("version\n1.1\n1.10\n2.0\n")
    found = cf.summarize(np.ones((3, 1)), "version", manifest=tmp_path / "m.csv")
    assert found.keys["version"].to_pylist() == ["1.1", "1.10", "2.0"]


NO_TABLE = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("table", "on", "by", "message"),
    [
        (
            pa.table({"slide": ["a", "b", "a"], "site": ["A"] * 3}),
            "slide",
            "site",
            r"1 key in 'slide' more than once \(a\)",
        ),
        (
            pa.table({"slide": ["a", None], "site": ["A"] * 2}),
            "slide",
            "site",
            "1 row without 'slide', the first in row 1",
        ),
        (SLIDES_CSV, "slid", "site", "the manifest has no column 'slid': did you mean 'slide'"),
        (SLIDES_CSV, "slide", "sites", r"by='sites' is not a column of the manifest \(there are slide, site\), nor of"),
        (SLIDES_CSV, "slide", [], "by is empty"),
        (SLIDES_CSV, "slide", {"site": SITE}, "by names columns of the manifest"),
        (SLIDES_CSV, 3, "site", "on=3 must be the name"),
        (NO_TABLE, "slide", "site", "manifest of type ndarray is not a table"),
        (
            pa.table({"slide": [1.5], "site": ["A"]}),
            "slide",
            "site",
            "'slide' holds string in the table but double in the",
        ),
        (
            pa.table({"other": ["s1"], "site": ["A"]}),
            "other",
            "site",
            "on='other' is not a column of the vectors' table, and",
        ),
        (pd.DataFrame({"slide": ["a"], "site": [["A"]]}), "slide", "site", "one plain value per row"),
    ],
)
def test_bad_manifests_get_one_sentence(table, on, by, message, refuses):
    with refuses(message):
        summarize(TABLE, by, table, on)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.csv", b"", "cannot be read"),
        ("m.csv", b"slide,site\ns1,A\ns2\n", "cannot be read"),
        ("m.parquet", b"PAR1", "cannot be read"),
        ("m.feather", b"nothing", "cannot be read"),
        ("m.xlsx", b"", "ending that is not known: use .csv"),
        ("m.csv.gz", b"not gzip", "cannot be read"),
    ],
)
def test_bad_files_get_one_sentence(name, content, message, tmp_path, refuses):
    (tmp_path / name).write_bytes(content)
    with refuses(message, cf.FileError):
        summarize(TABLE, "site", tmp_path / name, "slide")
    with refuses("does not exist", cf.FileError):
        summarize(TABLE, "site", tmp_path / "nothing.csv", "slide")


def test_a_chunk_carries_no_more_of_a_manifest_than_it_needs(tmp_path):
    for name, rows in zip(NAMES, np.split(X, SLIDES), strict=True):
        np.save(tmp_path / f"{name}.npy", rows[:3])
    joined = manifest.join(partial(open_rows, tmp_path, vectors=None), SLIDES_CSV, "slide", ["site"])
    chunks = [chunk for source in joined.sources for partition in source.partitions for chunk in partition()]
    assert len(chunks) == SLIDES
    for found in chunks:
        column = found.keys.column("site").chunk(0)
        assert not pa.types.is_dictionary(column.type) or len(column.dictionary) <= len(column)
