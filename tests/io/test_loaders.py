"""Rows of a PyTorch DataLoader and of Hugging Face data sets give the same summary as the array they came from."""

import sys
from collections import namedtuple
from typing import Any

import datasets as hf
import numpy as np
import pytest
import torch
from torch.utils import data

import crossfusion as cf
from crossfusion.io.sources import chunk, open_source
from crossfusion.io.summarization import reduce_sources
from tests.helpers import ROOT
from tests.helpers.missing_libraries import without

ROWS, DIM = 211, 5
rng = np.random.default_rng(5)
X = rng.normal(size=(ROWS, DIM))
SITE = rng.choice(["A", "B", "Ç"], ROWS)
DAY = rng.integers(0, 3, ROWS)
EXPECTED = cf.summarize(X, by={"site": SITE, "day": DAY})
Sample = namedtuple("Sample", ["embedding", "site", "day"])


class Rows(data.Dataset[Any]):
    """Samples as dictionaries, tuples or named tuples."""

    def __init__(self, kind=dict, x=None):
        self.kind = kind
        self.x = torch.asarray(X) if x is None else x

    def __len__(self):
        return ROWS

    def __getitem__(self, k):
        values = self.x[k], str(SITE[k]), int(DAY[k])
        if self.kind is dict:
            return {"image": torch.zeros(3, 2, 2), **dict(zip(Sample._fields, values, strict=True))}
        return Sample(*values) if self.kind is Sample else values


class Stream(data.IterableDataset[Any]):
    """Samples that show as they are read, shared out among the workers."""

    def __iter__(self):
        worker = data.get_worker_info()
        start, step = (0, 1) if worker is None else (worker.id, worker.num_workers)
        for k in range(start, ROWS, step):
            yield {"embedding": torch.asarray(X[k]), "site": str(SITE[k]), "day": int(DAY[k])}


def batches(*entries: Any):
    """A loader of batches that are there already."""
    samples: Any = list(entries)
    return data.DataLoader(samples, batch_size=None)


def assert_same(summary, expected=EXPECTED, tolerance=1e-12):
    assert summary.keys.to_pylist() == expected.keys.to_pylist()
    np.testing.assert_array_equal(summary.moments.count, expected.moments.count)
    np.testing.assert_allclose(summary.moments.mean, expected.moments.mean, rtol=tolerance, atol=1e-13)
    np.testing.assert_allclose(summary.moments.sumsq, expected.moments.sumsq, rtol=tolerance, atol=1e-13)


NAMED: dict[str, Any] = {"by": ["site", "day"], "vectors": "embedding"}
FOUND: dict[str, Any] = {"by": ["site", "day"]}
MAPPED: dict[str, Any] = {"by": {"site": 1, "day": "2"}, "vectors": 0}
LOADERS: dict[str, Any] = {
    "dictionaries": lambda: (data.DataLoader(Rows(), batch_size=32), NAMED),
    "vectors found": lambda: (data.DataLoader(Rows(), batch_size=32), FOUND),
    "factors renamed": lambda: (data.DataLoader(Rows(), batch_size=32), {"by": {"site": "site", "day": "day"}}),
    "tuples": lambda: (data.DataLoader(Rows(tuple), batch_size=50), MAPPED),
    "named tuples": lambda: (data.DataLoader(Rows(Sample), batch_size=50), NAMED),
    "shuffled": lambda: (data.DataLoader(Rows(), batch_size=32, shuffle=True), NAMED),
    "one by one": lambda: (data.DataLoader(Rows(), batch_size=1), NAMED),
    "whole batches": lambda: (
        batches({"embedding": torch.asarray(X), "site": SITE, "day": DAY}),
        NAMED,
    ),
    "stream": lambda: (data.DataLoader(Stream(), batch_size=32), NAMED),
    "gradients": lambda: (data.DataLoader(Rows(x=torch.asarray(X).requires_grad_()), batch_size=32), NAMED),
}


@pytest.mark.parametrize("size", [1000, 2**30], ids=["small blocks", "one block"])
@pytest.mark.parametrize("name", LOADERS)
def test_every_loader_gives_the_same_summary(name, size, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    loader, options = LOADERS[name]()
    assert_same(cf.summarize(loader, **options), tolerance=1e-10)


WORKERS = """
import crossfusion as cf
from tests.io import test_loaders as t
for rows in (t.Rows(), t.Stream()):
    loader = t.data.DataLoader(rows, batch_size=20, num_workers=2)
    t.assert_same(cf.summarize(loader, **t.NAMED), tolerance=1e-10)
print("same")
"""


def test_workers_give_the_same_summary(python):
    """In a process of its own, as workers are forks of it."""
    root = ROOT
    assert python(WORKERS, PYTHONPATH=f"{root}:{root / 'src'}", OMP_NUM_THREADS="1") == "same"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
def test_every_type_of_tensor_is_read(dtype):
    x = (torch.asarray(X) * 8).to(getattr(torch, dtype))
    summary = cf.summarize(data.DataLoader(Rows(x=x), batch_size=40), **NAMED)
    exact = cf.summarize(x.double().numpy(), by={"site": SITE, "day": DAY})
    assert_same(summary, exact, tolerance=1e-6)
    assert summary.dtype == {"bfloat16": "float32"}.get(dtype, dtype)


def test_batches_may_give_positions_as_factors():
    loader = data.DataLoader(data.TensorDataset(torch.asarray(X), torch.asarray(DAY)), batch_size=64)
    summary = cf.summarize(loader, by="1")
    assert summary.factors == ("1",)
    np.testing.assert_allclose(summary.moments.mean, cf.summarize(X, by={"1": DAY}).moments.mean, atol=1e-13)


@pytest.mark.parametrize(
    ("make", "rows"),
    [
        (lambda: data.DataLoader(Rows(), batch_size=50), ROWS),
        (lambda: data.DataLoader(Rows(), batch_size=50, drop_last=True), 200),
        (lambda: data.DataLoader(Rows(), batch_size=50, sampler=data.SubsetRandomSampler(range(70))), 70),
        (lambda: data.DataLoader(Rows(), batch_size=50, collate_fn=lambda batch: batch[0]), None),
        (lambda: data.DataLoader(Rows(), batch_sampler=[[0, 1], [2]]), None),
        (lambda: data.DataLoader(Stream(), batch_size=50), None),
    ],
    ids=["all", "whole batches", "some", "of a collate_fn", "of a batch sampler", "stream"],
)
def test_rows_are_known_where_they_can_be(make, rows):
    (source,) = open_source(make(), ["site"], "embedding")
    assert source.rows == rows
    if rows is not None:
        seen: list[int] = []
        reduce_sources([source], progress=seen.append)
        assert sum(seen) == rows


V: dict[str, Any] = {"by": "site", "vectors": "v"}


def entry(**change):
    return {"v": torch.ones(4, 2), "site": ["a", "a", "b", "b"], "w": torch.ones(4, 3)} | change


BAD_LOADERS: dict[str, Any] = {
    "no such factor": (batches(entry()), {"by": "sites", "vectors": "v"}, "no entry 'sites': did you mean 'site'"),
    "no such vectors": (batches(entry()), {"by": "site", "vectors": "emb"}, "'emb': there are 'v', 'site', 'w'"),
    "two candidates": (batches(entry()), {"by": "site"}, "2 entries of rows × features"),
    "no candidate": (batches(entry(v=1, w=2)), {"by": "site"}, "no entry of rows × features"),
    "vectors as factor": (batches(entry()), {"by": "v", "vectors": "v"}, "in vectors and is a factor too"),
    "images": (batches(entry(v=torch.ones(4, 2, 2))), V, r"shape \(4, 2, 2\)"),
    "samples": (batches(entry(v=torch.ones(4))), V, r"shape \(4,\)"),
    "a list": (batches(entry(v=[torch.ones(4)] * 2)), V, "with_format"),
    "complex": (batches(entry(v=torch.ones(4, 2) * 1j)), V, "complex"),
    "too few factors": (batches(entry(site=["a"])), V, "1 entry for 4 rows"),
    "a table as factor": (batches(entry(site=torch.ones(4, 1))), V, "one plain value per row"),
    "one factor for all": (batches(entry(site="a")), V, "one value per row"),
    "a bare tensor": (batches(torch.ones(4, 2)), {"by": "site"}, "is a Tensor"),
    "unequal batches": (
        batches(entry(), entry(v=torch.ones(4, 3))), V, "unequal length, 2 .* row 3 and 3",
    ),
    "not finite": (batches(entry(v=torch.tensor([[1.0, np.nan]] * 4))), V, "row 0, feature 1"),
    "no batches": (batches(), V, "no rows"),
    "several vectors": (batches(entry()), {"by": "site", "vectors": ["v", "w"]}, "one entry"),
    "a position of what": (batches(entry()), {"by": {"site": None}, "vectors": "v"}, "by\\['site'\\]=None"),
    "no factor": (batches(entry()), {"by": {}, "vectors": "v"}, "by is empty"),
    "a data set": (Rows(), {"by": "site"}, "pass DataLoader"),
    "unlike factors": (batches(entry(), entry(site=[1, 1, 2, 2])), V, "different types in one batch and another"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LOADERS)
def test_bad_batches_get_one_sentence(name, refuses):
    loader, options, message = BAD_LOADERS[name]
    with refuses(message):
        cf.summarize(loader, **options)


def test_a_factor_may_be_missing_from_a_batch():
    summary = cf.summarize(batches(entry(site=[None] * 4), entry()), **V)
    assert sorted(summary.to_frame()["count"]) == [2, 2, 4]


def table(kind=None, **more):
    """A data set in memory."""
    kind = hf.List(hf.Value("float64"), length=DIM) if kind is None else kind
    features = hf.Features({"site": hf.Value("string"), "day": hf.Value("int64"), "v": kind})
    return hf.Dataset.from_dict({"site": SITE.tolist(), "day": DAY.tolist(), "v": X.tolist()}, features=features)


def reordered():
    """The same rows by way of another order."""
    order = np.random.default_rng(1).permutation(ROWS)
    columns = {"site": SITE[order].tolist(), "day": DAY[order].tolist(), "v": X[order].tolist()}
    twice = hf.concatenate_datasets([hf.Dataset.from_dict(columns)] * 2)
    return twice.select(np.argsort(order)).shuffle(seed=0)


def samples():
    for k in range(ROWS):
        yield {"site": str(SITE[k]), "day": int(DAY[k]), "v": X[k]}


DATASETS = {
    "fixed": table,
    "list": lambda: table(hf.List(hf.Value("float64"))),
    "sequence": lambda: table(hf.Sequence(hf.Value("float64"))),
    "large list": lambda: table(hf.LargeList(hf.Value("float64"))),
    "as torch": lambda: table().with_format("torch"),
    "as numpy, some columns": lambda: table().with_format("numpy", columns=["v"]),
    "selected and shuffled": reordered,
    "stream of a table": lambda: table().to_iterable_dataset(num_shards=3),
    "stream of samples": lambda: hf.IterableDataset.from_generator(samples),
    "stream as torch": lambda: table().to_iterable_dataset().with_format("torch"),
    "stream, mapped": lambda: hf.IterableDataset.from_generator(samples).map(lambda row: {"v": row["v"] * 1.0}),
}


@pytest.mark.parametrize("size", [1000, 2**30], ids=["small blocks", "one block"])
@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_gives_the_same_summary(name, size, monkeypatch):
    monkeypatch.setattr(chunk, "CHUNK_BYTES", size)
    assert_same(cf.summarize(DATASETS[name](), by=["site", "day"]), tolerance=1e-10)


def test_a_data_set_on_disk_is_read_in_parts(tmp_path, monkeypatch):
    table().save_to_disk(tmp_path / "x")
    stored = hf.load_from_disk(tmp_path / "x")
    monkeypatch.setattr(chunk, "CHUNK_BYTES", 2000)
    (source,) = open_source(stored, ["site", "day"])
    assert source.rows == ROWS
    assert len(source.partitions) > 3
    assert max(one.rows.nbytes for one in source.chunks()) <= 4000
    assert [one.first for one in source.chunks()] == [0, *np.cumsum([len(one.rows) for one in source.chunks()])[:-1]]
    np.testing.assert_array_equal(np.concatenate([one.rows for one in source.chunks()]), X)
    assert_same(cf.summarize(stored, by=["site", "day"]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_narrow_types_are_read_as_they_are(dtype):
    values = (X * 10).astype(dtype)
    features = hf.Features({"site": hf.Value("string"), "v": hf.List(hf.Value(dtype), length=DIM)})
    stored = hf.Dataset.from_dict({"site": SITE.tolist(), "v": list(values)}, features=features)
    summary = cf.summarize(stored, by="site")
    assert summary.dtype == dtype
    exact = cf.summarize(values.astype(float), by={"site": SITE})
    np.testing.assert_allclose(summary.moments.mean, exact.moments.mean, rtol=1e-6, atol=1e-7)


def test_classes_are_their_numbers():
    features = hf.Features({"label": hf.ClassLabel(names=["cat", "dog"]), "v": hf.List(hf.Value("float32"))})
    stored = hf.Dataset.from_dict({"label": [0, 1, 1], "v": [[1.0], [2.0], [3.0]]}, features=features)
    assert cf.summarize(stored, by="label").keys.to_pylist() == [{"label": 0}, {"label": 1}]


def test_numeric_columns_can_be_the_features():
    stored = hf.Dataset.from_dict({"site": SITE.tolist(), **{f"d{k}": X[:, k] for k in range(DIM)}})
    summary = cf.summarize(stored, by="site", vectors="d*")
    np.testing.assert_allclose(summary.moments.mean, cf.summarize(X, by={"site": SITE}).moments.mean, atol=1e-13)


def ragged():
    return hf.Dataset.from_dict({"site": ["a", "b", "c"], "v": [[1.0, 2.0], [1.0, 2.0], [1.0]]})


def matrices():
    features = hf.Features({"site": hf.Value("string"), "v": hf.Array2D((2, 2), "float32")})
    return hf.Dataset.from_dict({"site": ["a"], "v": [[[1.0, 2.0], [3.0, 4.0]]]}, features=features)


BAD_SETS: dict[str, Any] = {
    "no such column": (table, {"by": "sites"}, "no column 'sites': did you mean 'site'"),
    "no such vectors": (table, {"by": "site", "vectors": "emb"}, "no column 'emb'"),
    "no such column of a stream": (DATASETS["stream of samples"], {"by": "place"}, "there are 'site', 'day', 'v'"),
    "ragged": (ragged, {"by": "site"}, "unequal length, first in row 2"),
    "ragged stream": (lambda: ragged().to_iterable_dataset(), {"by": "site"}, "unequal length"),
    "matrices": (matrices, {"by": "site", "vectors": "v"}, "not numbers"),
    "splits": (lambda: hf.DatasetDict(train=table(), test=table()), {"by": "site"}, r"\('train', 'test'\): pass one"),
    "empty": (lambda: table().select([]), {"by": "site"}, "no rows"),
    "empty stream": (lambda: hf.IterableDataset.from_generator(list), {"by": "site"}, "no rows"),
    "transformed": (lambda: table().with_transform(lambda rows: rows), {"by": "site"}, "set_transform"),
    "missing vectors": (
        lambda: hf.Dataset.from_dict({"site": ["a", "b"], "v": [[1.0], None]}), {"by": "site"}, "row 1, feature 0",
    ),
    "factors as arrays": (table, {"by": {"site": SITE}}, "cannot be read|must"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_SETS)
def test_bad_data_sets_get_one_sentence(name, refuses):
    make, options, message = BAD_SETS[name]
    with refuses(message):
        cf.summarize(make(), **options)


def test_a_data_set_in_a_loader_is_read_too(monkeypatch):
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)  # of which older versions of datasets want too much
    loader = data.DataLoader(table().with_format("torch"), batch_size=32)
    assert_same(cf.summarize(loader, by=["site", "day"], vectors="v"), tolerance=1e-5)
    with pytest.raises(cf.InputError, match="with_format"):
        cf.summarize(data.DataLoader(table(), batch_size=32), by="site", vectors="v")


def test_two_threads_or_dask_make_no_difference():
    loader, options = LOADERS["dictionaries"]()
    assert_same(cf.summarize(loader, **options, engine="dask"), tolerance=1e-10)
    assert_same(cf.summarize(table(), by=["site", "day"], engine="dask"))


@pytest.mark.parametrize("name", ["torch", "datasets"])
def test_neither_library_is_loaded_for_other_rows(name, python):
    code = """
import sys, crossfusion as cf, pyarrow as pa
cf.summarize(pa.table({"site": ["a", "b"], "v": [[1.0], [2.0]]}), by="site")
assert "torch" not in sys.modules and "datasets" not in sys.modules
print("read")
"""
    assert python(without(name) + code) == "read"
