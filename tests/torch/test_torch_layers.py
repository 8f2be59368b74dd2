"""Distances layer by layer: those of the activations themselves, and a model that is left as it was."""

import json
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import crossfusion as cf

torch = pytest.importorskip("torch", reason="install the extra torch")

from torch import nn  # noqa: E402

from crossfusion.torch import Layers, layerwise_cfd  # noqa: E402

ROWS = 60
DOMAIN = np.array(["art", "photo", "sketch"])[np.arange(ROWS) % 3]
LABEL = np.arange(ROWS) // 3 % 2
PATIENT = np.arange(ROWS) // 5


class Attention(nn.Module):
    """Gives a tuple, as layers of attention do."""

    def forward(self, x):
        return x * 2, None, x.mean()


class Named(nn.Module):
    """Gives a dict, as models of transformers do."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)

    def forward(self, x):
        return {"ids": torch.zeros(len(x), dtype=torch.long), "state": self.inner(x)}


class Odd(nn.Module):
    """Layers of all kinds: one that is called twice, and one never; outputs that are tuples, dicts or numbers."""

    def __init__(self):
        super().__init__()
        self.convolve = nn.Conv2d(1, 6, 3)
        self.relu = nn.ReLU(inplace=True)
        self.attention = Attention()
        self.named = Named()
        self.loss = nn.MSELoss()
        self.unused = nn.Linear(2, 2)
        self.drop = nn.Dropout(0.5)
        self.windows = nn.Flatten(0, 1)

    def forward(self, x):
        x = self.drop(self.relu(self.convolve(x)))
        tokens = x.flatten(2).transpose(1, 2)
        tokens, *_ = self.attention(self.relu(tokens - 0.1))
        self.windows(tokens)
        state = self.named(tokens.mean(1))["state"]
        return self.loss(state, torch.zeros_like(state))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Odd()


@pytest.fixture(scope="module")
def images():
    rng = np.random.default_rng(0)
    shift = 0.5 * (DOMAIN == "photo") + LABEL
    return torch.tensor(rng.normal(size=(ROWS, 1, 5, 5)) + shift[:, None, None, None], dtype=torch.float32)


def batches(images, size=16):
    for rows in np.split(np.arange(ROWS), range(size, ROWS, size)):
        yield {
            "image": images[rows],
            "domain": DOMAIN[rows].tolist(),
            "label": torch.tensor(LABEL[rows]),
            "patient": PATIENT[rows],
        }


def activations(model, images):
    model.eval()
    with torch.no_grad():
        convolved = model.convolve(images)
        first = torch.relu(convolved)
        tokens = torch.relu(first.flatten(2).transpose(1, 2) - 0.1)
        state = model.named.inner(2 * tokens.mean(1))
    return {
        "convolve": convolved.mean(dim=(2, 3)),
        "relu": first.mean(dim=(2, 3)),
        "drop": first.mean(dim=(2, 3)),
        "relu:2": tokens.mean(dim=1),
        "attention": 2 * tokens.mean(dim=1),
        "named.inner": state,
    }


OPTIONS: dict[str, Any] = {"inputs": "image", "between": "domain", "given": "label"}


def test_every_layer_has_the_distance_of_its_activations(model, images):
    found = layerwise_cfd(model, batches(images), **OPTIONS)
    wanted = activations(model, images)
    assert found.names == tuple(wanted)
    assert found.dims == (6, 6, 6, 6, 6, 4)
    assert set(found.skipped) == {"loss", "unused", "windows"}
    assert found.strata is not None
    for fusion, strata, values in zip(found.fusions, found.strata, wanted.values(), strict=True):
        own = cf.cfd(values.numpy(), labels=DOMAIN, given=LABEL)
        assert fusion.distance == pytest.approx(own.distance, rel=1e-4)  # sums of float32 in another order
        assert fusion.unbiased == pytest.approx(own.unbiased, rel=1e-4)
        assert fusion.counts == own.counts
        assert strata.distance == pytest.approx(cf.cfd(values.numpy(), labels=LABEL, given=DOMAIN).distance, rel=1e-4)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_batches_do_not_matter(images, size):
    torch.manual_seed(0)
    model = Odd().double()
    found = layerwise_cfd(model, batches(images.double(), size), layers=["convolve", "named.inner"], **OPTIONS)
    for fusion, name in zip(found.fusions, found.names, strict=True):
        own = cf.cfd(activations(model, images.double())[name].numpy(), labels=DOMAIN, given=LABEL)
        assert fusion.distance == pytest.approx(own.distance, rel=1e-10)


def test_parts_of_a_batch_by_position_function_and_keys(images):
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 3)).eval()
    wanted = cf.cfd(model(images).detach().numpy(), labels=LABEL).distance
    pairs = [(images[rows], LABEL[rows]) for rows in np.split(np.arange(ROWS), 4)]
    options: dict[str, Any] = {"layers": "1"}
    ways = [
        layerwise_cfd(model, pairs, between=1, **options),
        layerwise_cfd(model, pairs, between=lambda batch: batch[1], inputs=lambda batch: (batch[0],), **options),
        layerwise_cfd(
            model, batches(images), between="label", inputs=lambda batch: {"input": batch["image"]}, **options
        ),
        layerwise_cfd(model, [{"input": x, "y": y} for x, y in pairs], between="y", inputs=["input"], **options),
    ]
    assert [way.fusions[0].distance for way in ways] == pytest.approx([wanted] * 4, rel=1e-5)


def test_pooling(images):
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU()).eval()
    values = model(images).detach()
    ways: dict[Any, Any] = {
        "mean": values.mean(dim=(2, 3)),
        "flatten": values.flatten(1),
        (lambda x: x.amax(dim=(2, 3))): values.amax(dim=(2, 3)),
    }
    for pool, wanted in ways.items():
        found = layerwise_cfd(model, [(images, DOMAIN.tolist())], between=1, layers="1", pool=pool)
        assert found.dims == (wanted.shape[1],)
        assert found.fusions[0].distance == pytest.approx(cf.cfd(wanted.numpy(), labels=DOMAIN).distance, rel=1e-5)


def test_narrow_activations_are_pooled_in_float32(images):
    model = nn.Sequential(nn.Conv2d(1, 2, 3)).eval().bfloat16()
    values = model(images.bfloat16()).detach().float().mean(dim=(2, 3))
    found = layerwise_cfd(model, [(images.bfloat16(), LABEL)], between=1)
    assert found.fusions[0].distance == pytest.approx(cf.cfd(values.numpy(), labels=LABEL).distance, rel=1e-5)


def test_patterns_name_steps_of_the_path(model, images, refuses):
    model = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(25, 4), nn.Linear(4, 4)), nn.Linear(4, 2))
    pairs = [(images, LABEL)]
    assert layerwise_cfd(model, pairs, between=1, layers=["1.*", "2"]).names == ("1.0", "1.1", "2")
    assert layerwise_cfd(model, pairs, between=1, layers="*").names == ("0", "1", "2")
    wrong: Any = 3
    with refuses("model must be a torch.nn.Module, not int: pass the network itself"):
        layerwise_cfd(wrong, [], between=1)
    with refuses("layers=3 must be the name of a layer, or a list of such names"):
        layerwise_cfd(model, [], between=1, layers=wrong)
    with refuses("the model has no layer '1.10': did you mean '1.1'"):
        layerwise_cfd(model, pairs, between=1, layers="1.10")


def state_of(model):
    return [(m.training, len(m._forward_hooks), torch.is_grad_enabled()) for m in model.modules()]


def test_model_is_left_as_it_was(model, images, refuses):
    model.train()
    model.relu.eval()  # part of a model may be frozen
    before = state_of(model)
    weights = {name: values.clone() for name, values in model.state_dict().items()}
    layerwise_cfd(model, batches(images), **OPTIONS)
    assert state_of(model) == before
    with refuses("between='site' is not in the batches, which have the keys 'image', 'domain', 'label', 'patient'"):
        layerwise_cfd(model, batches(images), inputs="image", between="site")
    with pytest.raises(RuntimeError, match="channels"):
        layerwise_cfd(model, [(images.repeat(1, 2, 1, 1), LABEL)], between=1)
    assert state_of(model) == before
    assert all(torch.equal(values, weights[name]) for name, values in model.state_dict().items())


def test_intervals_count_units(model, images, refuses):
    found = layerwise_cfd(model, batches(images), units="patient", level=0.9, layers="convolve", **OPTIONS)
    by = {"domain": DOMAIN, "label": LABEL, "patient": PATIENT}
    summary = cf.summarize(activations(model, images)["convolve"].numpy(), by=by)
    own = summary.cfd("domain", given="label", units="patient", level=0.9)
    assert found.fusions[0].interval == pytest.approx(own.interval, rel=1e-3, abs=1e-6)
    assert found.fusions[0].unbiased == pytest.approx(own.unbiased, rel=1e-3)
    assert "90% interval" in repr(found)
    assert {"lower", "strata_upper"} <= set(found.to_frame())
    with refuses("level=0.9 needs units"):
        layerwise_cfd(model, batches(images), level=0.9, **OPTIONS)


def test_a_layer_that_does_not_vary_is_named(images, refuses):
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 3), nn.Threshold(1e9, 0.0))
    with refuses("layer '2' does not vary within groups: leave it out of layers"):
        layerwise_cfd(model, batches(images), units="patient", level=0.9, **OPTIONS)


def test_rows_that_are_not_finite(images, refuses):
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 3))
    broken = images.clone()
    broken[7] = torch.nan
    pairs = [(broken[rows], LABEL[rows]) for rows in np.split(np.arange(ROWS), 4)]
    with refuses("layer '1' has NaN or infinite values in 1 of 60 rows, the first in row 7", cf.NonFiniteError):
        layerwise_cfd(model, pairs, between=1, layers="1")
    with pytest.warns(cf.CrossfusionWarning, match="those rows are left out"):
        found = layerwise_cfd(model, pairs, between=1, layers="1", nan="drop")
    assert found.fusions[0].dropped == 1


@pytest.mark.parametrize(
    ("layers", "pattern"),
    [
        ("windows", "layer 'windows' gave 144 rows for a batch of 16: leave it out of layers"),
        ("loss", "layer 'loss' gave no tensor of rows for a batch of 16"),
        ("unused", "layer 'unused' was called for 0 of 4 batches"),
        ([], "layers is empty"),
        ("lose", "the model has no layer 'lose': did you mean 'loss'"),
    ],
)
def test_named_layers_that_cannot_be_used_are_refused(model, images, layers, pattern, refuses):
    with refuses(pattern):
        layerwise_cfd(model, batches(images), layers=layers, **OPTIONS)


def test_bad_input_is_refused(images, refuses):
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 3))
    pair = [(images, LABEL)]
    with refuses("pool='max' is not known"):
        layerwise_cfd(model, pair, between=1, pool="max")
    with refuses("pool gave shape .* it must give one vector per row"):
        layerwise_cfd(model, pair, between=1, pool=lambda x: x.sum())
    with refuses("loader has no batches"):
        layerwise_cfd(model, [], between=1)
    with refuses("between=2 is not in the batches, which have 2 entries: pass a position from 0 to 1"):
        layerwise_cfd(model, pair, between=2)
    with refuses("between=1.5 must be a key or a position"):
        layerwise_cfd(model, pair, between=1.5)
    with refuses("inputs must say what the model is called with where a batch is of type dict"):
        layerwise_cfd(model, [{"x": images, "y": LABEL}], between="y")
    with refuses("there is only one group to compare"):
        layerwise_cfd(model, [(images, np.zeros(ROWS, int))], between=1)
    with refuses(r"no layer gives one vector for each row of a batch \('0' gave \d+ rows for a batch of 5\)"):
        layerwise_cfd(model, [(images, LABEL[:5])], between=1)
    with refuses(r"inputs=\[0\] must be keys of the batches"):
        layerwise_cfd(model, pair, between=1, inputs=[0])  # type: ignore[list-item]
    with refuses("no layer gives one vector for each row"):
        layerwise_cfd(nn.Flatten(0), pair, between=1)
    with refuses("layer '0' gave 16 features after 25 before"):
        layerwise_cfd(nn.Sequential(nn.Flatten()), [*pair, (images[..., :4, :4], LABEL)], between=1)


def test_a_compiled_model_is_seen_as_it_is(images):
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 3), nn.ReLU())
    wanted = layerwise_cfd(model, [(images, LABEL)] * 2, between=1)
    found = layerwise_cfd(torch.compile(model, backend="eager"), [(images, LABEL)] * 2, between=1)
    assert found.names == tuple(f"_orig_mod.{name}" for name in wanted.names)
    for one, other in zip(found.fusions, wanted.fusions, strict=True):
        assert one.distance == pytest.approx(other.distance, rel=1e-6)


def test_named_tuples_are_positions(images):
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(25, 2)

        def forward(self, image, _label):
            return self.inner(image.flatten(1))

    named: Any = namedtuple("named", ["image", "label"])
    batch = named(images, LABEL)
    assert len(layerwise_cfd(Pair(), [batch], between=1, inputs=lambda batch: batch)) == 1


def test_progress_is_told_the_rows(model, images):
    told: list[int] = []
    layerwise_cfd(model, batches(images), progress=told.append, **OPTIONS)
    assert told == [16, 16, 16, 12]


@pytest.fixture
def table(model, images):
    return layerwise_cfd(model, batches(images), **OPTIONS)


def test_table_prints_and_converts(table):
    lines = repr(table).splitlines()
    assert lines[0] == "CFD(domain | label) of 6 layers"
    assert lines[1].split() == ["layer", "depth", "dim", "distance", "unbiased", "CFD(label", "|", "domain)"]
    assert lines[2].split()[:3] == ["convolve", "1", "6"]
    assert lines[-1] == "left out because they do not give one vector per row: windows, loss, unused"
    frame = table.to_frame()
    assert list(frame) == ["layer", "depth", "dim", "distance", "unbiased", "strata_distance", "strata_unbiased"]
    assert frame["distance"].tolist() == [fusion.distance for fusion in table.fusions]
    plain = json.loads(json.dumps(table.to_dict()))
    assert plain["fusions"][2]["distance"] == table.fusions[2].distance
    assert plain["between"] == "domain"
    assert len(table) == 6


def test_plot_draws_every_layer(table, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = table.plot()
    (axes,) = drawn.axes
    lines = {line.get_label(): line.get_ydata().tolist() for line in axes.lines if line.get_label()[0] != "_"}
    assert lines == {
        "CFD(domain | label)": [fusion.unbiased for fusion in table.fusions],
        "CFD(label | domain)": [fusion.unbiased for fusion in table.strata],
    }
    assert [text.get_text() for text in axes.get_xticklabels()] == list(table.names)
    drawn.savefig(tmp_path / "layers.png")
    assert table.plot(axes=axes) is drawn
    assert len(axes.lines) == 6, "drawn on what was passed"


def test_plot_of_many_layers_numbers_them(table):
    pytest.importorskip("matplotlib")
    many = Layers(names=table.names * 20, dims=table.dims * 20, fusions=table.fusions * 20)
    (axes,) = many.plot().axes
    assert axes.get_xlabel() == "layer, in the order of calls"
    assert np.size(axes.lines[0].get_ydata()) == 120
