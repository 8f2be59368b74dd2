"""Stain normalisers: what they match, what they leave alone, and networks from files."""

# mypy: disable-error-code="misc,name-defined"

import warnings

import numpy as np
import pytest
from PIL import Image

import crossfusion as cf
from crossfusion.pathology.images import compute_densities, is_stained
from crossfusion.pathology.normalizers import Normalizer, normalizer
from crossfusion.pathology.stains import choose_reference
from crossfusion.pathology.tiles import Tile
from tests.helpers.stained_images import BLANK, HE, OTHER, export, real_images, stained

torch = pytest.importorskip("torch", reason="install the extra pathology")
torchstain = pytest.importorskip("torchstain.numpy.normalizers", reason="install the extra pathology")
STAINS = ("reinhard", "macenko")


def statistics(image, name="macenko"):
    """What a normaliser matches: the whole image, or what is stained of it."""
    density = compute_densities(image)
    return density[slice(None) if name == "reinhard" else is_stained(density)].mean(axis=0)


class Channels(torch.nn.Module):
    """Exchanges red and blue, which is its own inverse."""

    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Conv2d(3, 3, 1, bias=False)
        self.mix.weight.data = torch.eye(3).flip(0)[:, :, None, None].clone()

    def forward(self, x):
        return self.mix(x)


class Half(torch.nn.Module):
    def forward(self, x):
        return x[:, :, ::2, ::2]


class Doubled(torch.nn.Module):
    def forward(self, x):
        return 2 * x


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Networks in both formats."""
    folder = tmp_path_factory.mktemp("networks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the format is an old one
        for name, module in {"channels": Channels(), "half": Half(), "doubled": Doubled()}.items():
            torch.jit.script(module).save(folder / f"{name}.pt")
    export(Channels(), folder / "channels.onnx", torch.zeros(2, 3, 16, 16))
    return folder


@pytest.mark.parametrize("name", STAINS)
def test_images_of_another_laboratory_look_like_the_reference(name):
    reference, image = stained(1), stained(2, OTHER, amount=0.7)
    to_reference = normalizer(name, reference)
    found = to_reference(image)
    assert found.dtype == np.uint8
    assert found.shape == image.shape
    before, after = (np.abs(statistics(i, name) - statistics(reference, name)).max() for i in (image, found))
    assert after < 0.35 * before
    assert np.corrcoef(found[..., 1].ravel(), image[..., 1].ravel())[0, 1] > 0.95  # the tissue is where it was
    assert to_reference.unchanged == 0


@pytest.mark.parametrize("name", STAINS)
def test_reference_stays_as_it_is(name):
    reference = stained(1)
    assert np.abs(normalizer(name, reference)(reference).astype(int) - reference).mean() < 3


def test_macenko_is_that_of_torchstain():
    peer, reference = torchstain.NumpyMacenkoNormalizer(), stained(1)
    peer.fit(reference)
    for image in (stained(2, OTHER), stained(3), stained(4, OTHER, amount=0.6)):
        expected = peer.normalize(image, stains=False)[0].astype(int)
        found = normalizer("macenko", reference)(image).astype(int)
        dark = expected < 250  # above, torchstain lets values of more than 255 come round
        assert np.abs(found - expected)[dark].max() <= 1
        assert dark.mean() > 0.5


def test_macenko_finds_the_colours_of_the_stains():
    """An image of the same amounts in other colours becomes the image in the reference's colours."""
    amounts_alike = stained(5, HE), stained(5, OTHER)
    found = normalizer("macenko", amounts_alike[0])(amounts_alike[1])
    before, after = (np.abs(i.astype(int) - amounts_alike[0]).mean() for i in (amounts_alike[1], found))
    assert after < 0.6 * before


SPECK = BLANK.copy()
SPECK[:4, :4] = (120, 60, 130)
ONE_COLOUR = np.full((64, 64, 3), (150, 90, 160), np.uint8)
GREY = np.repeat(np.random.default_rng(0).integers(20, 200, (64, 64, 1)), 3, axis=2).astype(np.uint8)
DEGENERATE = {
    "glass": BLANK,
    "white": np.full((64, 64, 3), 255, np.uint8),
    "black": np.zeros((64, 64, 3), np.uint8),
    "speck": SPECK,
    "one colour": ONE_COLOUR,
    "one pixel": np.full((1, 1, 3), 90, np.uint8),
    "grey": GREY,
}


@pytest.mark.parametrize("name", STAINS)
@pytest.mark.parametrize("image", DEGENERATE.values(), ids=DEGENERATE)
def test_images_without_two_stains_are_left_alone_and_counted(name, image):
    to_reference = normalizer(name, stained(1))
    found, unchanged = to_reference.apply(image)
    np.testing.assert_array_equal(found, image)
    assert unchanged
    assert (to_reference.unchanged, to_reference.seen) == (1, 1)
    assert "1 of 1 images left" in repr(to_reference)


def test_macenko_does_not_scale_up_a_stain_that_is_hardly_there():
    """Nearly all is glass, so that 99 % of the pixels have no haematoxylin at all."""
    image = BLANK.copy()
    amounts = np.zeros((120, 2))
    amounts[:90, 1], amounts[90:, 0] = np.linspace(0.8, 1.2, 90), np.linspace(0.8, 1.6, 30)
    image.reshape(-1, 3)[:120] = 240 * np.exp(-amounts @ OTHER)
    assert normalizer("macenko", stained(1)).apply(image)[1]


@pytest.mark.parametrize("name", STAINS)
@pytest.mark.parametrize("seed", range(12))
def test_odd_images_never_make_a_warning_or_another_shape(name, seed):
    draw = np.random.default_rng(seed)
    image = stained(seed, OTHER, amount=draw.choice([0.05, 0.2, 3.0]), side=int(draw.integers(24, 80)))
    image[: int(draw.integers(0, len(image)))] = draw.integers(0, 256, 3)
    found = normalizer(name, stained(1))(image)
    assert found.shape == image.shape
    assert found.dtype == np.uint8


@pytest.mark.parametrize("name", STAINS)
def test_references_that_cannot_serve_are_refused(name, refuses, tmp_path):
    with refuses("needs a reference image"):
        normalizer(name)
    with refuses("no tissue with two stains"):
        normalizer(name, BLANK)
    with refuses("must be an RGB image"):
        normalizer(name, np.zeros((8, 8)))
    with refuses("reference.png", cf.FileError):
        normalizer(name, tmp_path / "reference.png")


def test_a_reference_is_a_file_an_array_or_a_tile(tmp_path):
    image, path = stained(1), tmp_path / "reference.png"
    Image.fromarray(image).save(path)
    tile = Tile(str(path), "reference", {})
    found = [normalizer("macenko", reference) for reference in (image, path, str(path), tile)]
    assert len({entry.tag for entry in found}) == 1
    assert normalizer("macenko", stained(2)).tag != found[0].tag


def test_the_chosen_reference_is_the_most_ordinary(tmp_path):
    tiles = []
    for amount in (0.3, 0.9, 1.0, 1.1, 2.5):
        path = tmp_path / f"{amount}.png"
        Image.fromarray(stained(7, amount=amount)).save(path)
        tiles.append(Tile(str(path), str(amount), {}))
    Image.fromarray(BLANK).save(tmp_path / "blank.png")
    tiles += [Tile(str(tmp_path / "blank.png"), f"blank {k}", {}) for k in range(9)]
    assert choose_reference(tiles).key == "1.0"


def test_a_reference_needs_tissue(tmp_path, refuses):
    Image.fromarray(BLANK).save(tmp_path / "blank.png")
    with refuses("none of 1 tiles has tissue"):
        choose_reference([Tile(str(tmp_path / "blank.png"), "blank", {})])
    with refuses("none of 0 tiles"):
        choose_reference([])


@pytest.mark.parametrize("kind", ["onnx:channels.onnx", "torchscript:channels.pt"])
@pytest.mark.parametrize("values", ["0..1", "-1..1", "0..255"])
def test_networks_from_files_keep_the_values_they_state(files, kind, values):
    kind, _, name = kind.partition(":")
    image = stained(3, side=40)
    exchange = normalizer(f"{kind}:{files / name}@{values}")
    np.testing.assert_array_equal(exchange(image), image[..., ::-1])
    np.testing.assert_array_equal(exchange(BLANK), BLANK)
    assert exchange.unchanged == 1
    said = normalizer(f"{kind}:{files / name}", values=values)
    assert said.tag == exchange.tag
    np.testing.assert_array_equal(said(image), image[..., ::-1])


def test_the_range_matters_and_is_clipped(files):
    image = stained(3)
    plain, centred = (normalizer(f"torchscript:{files / 'doubled.pt'}@{values}")(image) for values in ("0..1", "-1..1"))
    np.testing.assert_array_equal(plain, np.minimum(2 * image.astype(int), 255))
    assert (centred < plain).any()


def test_networks_that_cannot_serve_are_refused(files, refuses, tmp_path):
    with refuses("nothing says which values"):
        normalizer(f"onnx:{files / 'channels.onnx'}")
    with refuses("two say which values"):
        normalizer(f"onnx:{files / 'channels.onnx'}@0..1", values="-1..1")
    with refuses("'0..2' does not say"):
        normalizer(f"onnx:{files / 'channels.onnx'}", values="0..2")
    with refuses("does not exist", cf.FileError):
        normalizer("onnx:nowhere.onnx@0..1")
    (tmp_path / "text.onnx").write_text("no network")
    with refuses("not a readable ONNX file", cf.FileError):
        normalizer(f"onnx:{tmp_path / 'text.onnx'}@0..1")
    with refuses("not a readable TorchScript file", cf.FileError):
        normalizer(f"torchscript:{tmp_path / 'text.onnx'}@0..1")
    with refuses("use a network that keeps both"):
        normalizer(f"torchscript:{files / 'half.pt'}@0..1")(stained(1))
    with refuses("device='tpu' is not a known device"):
        normalizer(f"torchscript:{files / 'half.pt'}@0..1", device="tpu")
    with refuses("device='tpu' is not a known device"):
        normalizer(f"onnx:{files / 'channels.onnx'}@0..1", device="tpu")


def test_a_network_of_one_size_says_so(refuses, tmp_path):
    import onnx
    from onnx import TensorProto, helper

    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])
    same = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 32, 32])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "same", [image], [same])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "same.onnx"
    )
    same_size = normalizer(f"onnx:{tmp_path / 'same.onnx'}@0..1")
    image = stained(1, side=32)
    np.testing.assert_array_equal(same_size(image), image)
    with refuses("takes images of 32 × 32 pixels, not 40 × 40"):
        same_size(stained(1, side=40))


def test_a_normalizer_keeps_the_size(refuses):
    with refuses("use one that keeps the size"):
        Normalizer("smaller", lambda image: image[1:])(BLANK)


def test_names_are_known(refuses):
    with refuses("did you mean 'macenko'"):
        normalizer("macenco")
    with refuses("must be an RGB image"):
        normalizer("none")(np.zeros((4, 4, 4), np.uint8))
    image = stained(1)
    np.testing.assert_array_equal(normalizer("none")(image), image)


@pytest.mark.parametrize("name", STAINS)
def test_real_scanners_come_nearer(name):
    images = real_images("mitos_he/patches", 40)
    groups = {letter: [i for path, i in images.items() if path.name.startswith(letter)] for letter in "AH"}
    assert min(map(len, groups.values())) >= 3
    to_reference = normalizer(name, groups["H"][0])

    def gap(change):
        means = [np.mean([statistics(change(i)) for i in group], axis=0) for group in groups.values()]
        return np.abs(means[0] - means[1]).max()

    assert gap(to_reference) < 0.7 * gap(lambda image: image)
    assert to_reference.unchanged == 0
