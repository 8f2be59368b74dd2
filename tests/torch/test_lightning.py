"""The callback in real trainers: what it logs is the distance of the activations."""

import csv
import os
import subprocess
import sys

import pytest

import crossfusion as cf
from tests.helpers import PATIENCE, ROOT
from tests.helpers.missing_libraries import without

torch = pytest.importorskip("torch", reason="install the extra lightning")
pytest.importorskip("crossfusion.torch.lightning", reason="install the extra lightning", exc_type=ImportError)

import lightning.pytorch as pl  # noqa: E402
from lightning.pytorch.loggers import CSVLogger, WandbLogger  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from crossfusion.torch import CrossFusionCallback  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:The '.*_dataloader' does not have many workers"),
    pytest.mark.filterwarnings("ignore:The number of training batches .* is smaller than the logging interval"),
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec:FutureWarning"),  # PyTorch's, of Lightning
]
QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False, "logger": False}


def rows(seed, number=40):
    generator = torch.Generator().manual_seed(seed)
    domain, label = torch.arange(number) % 2, torch.arange(number) // 2 % 3
    x = torch.randn(number, 4, generator=generator) + 0.5 * domain[:, None] + label[:, None]
    return x, label, domain


def model_of(base):
    class Model(base):  # type: ignore[misc, valid-type]
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.encoder = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU())
            self.head = torch.nn.Linear(6, 3)
            self.seen = []

        def training_step(self, batch, _):
            x, label, *_rest = batch
            values = self.encoder(x)
            self.seen.append((values.detach(), batch[2]))
            return torch.nn.functional.cross_entropy(self.head(values), label)

        def validation_step(self, batch, _):
            self.encoder(batch[0])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Model()


def loader(seed, number=40):
    return DataLoader(TensorDataset(*rows(seed, number)), batch_size=16)


def fitted(tmp_path, *callbacks, library=pl, epochs=2, **options):
    model = model_of(library.LightningModule)
    trainer = library.Trainer(
        accelerator="cpu", max_epochs=epochs, default_root_dir=tmp_path, callbacks=list(callbacks), **(QUIET | options)
    )
    trainer.fit(model, loader(0), loader(1, 50))
    return model, trainer


def hooks(model):
    return sum(len(module._forward_hooks) for module in model.modules())


def test_values_are_those_of_the_activations(tmp_path):
    callback = CrossFusionCallback(["encoder", "head"], between=2, num_groups=2, stages=["val", "train"])
    model, trainer = fitted(tmp_path, callback)
    x, _, domain = rows(1, 50)
    with torch.no_grad():
        values = model.encoder(x)
    logged = {name: value.item() for name, value in trainer.callback_metrics.items() if "cfd" in name}
    assert set(logged) == {
        "val_cfd/encoder",
        "train_cfd/encoder",
        "train_cfd/head",
    }  # validation calls no head
    assert logged["val_cfd/encoder"] == pytest.approx(cf.cfd(values.numpy(), labels=domain.numpy()).distance, rel=1e-5)
    own = [torch.cat(parts).numpy() for parts in zip(*model.seen[3:], strict=True)]  # of the second epoch
    assert logged["train_cfd/encoder"] == pytest.approx(cf.cfd(own[0], labels=own[1]).distance, rel=1e-5)
    assert hooks(model) == 0
    assert list(tmp_path.iterdir()) == []


def test_given_and_unbiased(tmp_path):
    callback = CrossFusionCallback(
        "enc*", between=lambda batch: batch[2], num_groups=2, given=1, num_given=3, unbiased=True, weights="balanced"
    )
    model, trainer = fitted(tmp_path, callback, epochs=1)
    x, label, domain = rows(1, 50)
    with torch.no_grad():
        values = model.encoder(x).numpy()
    own = cf.cfd(values, labels=domain.numpy(), given=label.numpy(), weights="balanced").unbiased
    assert trainer.callback_metrics["val_cfd/encoder"].item() == pytest.approx(own, rel=1e-4)


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch's, while it compiles
def test_a_compiled_layer_is_watched_as_it_is(tmp_path):
    found = []
    for compiled in (False, True):
        model = model_of(pl.LightningModule)
        if compiled:
            model.encoder.compile(backend="eager")
        callback = CrossFusionCallback("encoder.*", between=2, num_groups=2, stages=["train", "val"])
        trainer = pl.Trainer(accelerator="cpu", max_epochs=1, default_root_dir=tmp_path, callbacks=[callback], **QUIET)
        trainer.fit(model, loader(0), loader(1, 50))
        found.append({name: value.item() for name, value in trainer.callback_metrics.items()})
    assert found[0].keys() == found[1].keys()
    assert "val_cfd/encoder.0" in found[0]
    assert found[1] == pytest.approx(found[0], rel=1e-5)


def test_every_epoch_is_in_the_log(tmp_path):
    callback = CrossFusionCallback("encoder", between=2, num_groups=2)
    fitted(tmp_path, callback, epochs=3, logger=CSVLogger(tmp_path, name="", version="run"))
    with open(tmp_path / "run" / "metrics.csv") as file:
        values = [float(row["val_cfd/encoder"]) for row in csv.DictReader(file) if row["val_cfd/encoder"]]
    assert len(values) == len(set(values)) == 3  # none of the check before training, none added up over epochs


@pytest.mark.filterwarnings("ignore")  # of the tracker
def test_a_tracker_gets_what_is_logged(tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    logger = WandbLogger(project="crossfusion", save_dir=tmp_path, offline=True)
    callback = CrossFusionCallback("encoder", between=2, num_groups=2)
    _, trainer = fitted(tmp_path, callback, logger=logger)
    kept = dict(logger.experiment.summary)
    logger.experiment.finish()
    assert kept["val_cfd/encoder"] == pytest.approx(trainer.callback_metrics["val_cfd/encoder"].item(), rel=1e-6)


def test_older_name_of_the_library_does_too(tmp_path):
    older = pytest.importorskip("pytorch_lightning")
    callback = CrossFusionCallback("encoder", between=2, num_groups=2)
    _, trainer = fitted(tmp_path, callback, library=older, epochs=1)
    assert trainer.callback_metrics["val_cfd/encoder"] > 0


def test_hooks_go_when_training_breaks(tmp_path, refuses):
    callback = CrossFusionCallback("encoder", between=2, num_groups=1, stages="train")
    model = model_of(pl.LightningModule)
    trainer = pl.Trainer(accelerator="cpu", max_epochs=1, default_root_dir=tmp_path, callbacks=[callback], **QUIET)
    with refuses("labels has numbers up to 1, beyond num_groups=1"):
        trainer.fit(model, loader(0), loader(1))
    assert hooks(model) == 0


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ({"layers": "encoding"}, "the model has no layer 'encoding': did you mean 'encoder'"),
        ({"between": 5}, "between=5 is not in the batches, which have 3 entries"),
        (
            {"between": lambda batch: ["a"] * len(batch[0])},
            "between must give whole numbers from 0, one per row, not list",
        ),
        ({"pool": lambda x: x[:1]}, "layer 'encoder' gave 1 rows for a batch of 16"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(tmp_path, options, pattern, refuses):
    callback = CrossFusionCallback(**({"layers": "encoder", "between": 2, "num_groups": 2} | options))
    with refuses(pattern):
        fitted(tmp_path, callback)


def test_options_are_checked_at_once(refuses):
    with refuses("stages='test' must be 'val', 'train' or a list of both"):
        CrossFusionCallback("encoder", between=2, num_groups=2, stages="test")
    with refuses("given and num_given go together"):
        CrossFusionCallback("encoder", between=2, num_groups=2, given=1)
    with refuses("num_groups=0 must be a whole number"):
        CrossFusionCallback("encoder", between=2, num_groups=0)


SCRIPT = """
import crossfusion.torch.lightning  # before Lightning, for whichever build of torchvision is there
import lightning.pytorch as pl
import torch
from crossfusion.torch import CrossFusionCallback
from tests.torch.test_lightning import QUIET, loader, model_of
if __name__ == "__main__":
    torch.set_num_threads(1)
    callback = CrossFusionCallback("encoder", between=2, num_groups=2)
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1, callbacks=[callback], **QUIET)
    model = model_of(pl.LightningModule)
    trainer.validate(model, loader(1, 50), verbose=False)
    with open(f"rank{trainer.global_rank}", "w") as file:
        file.write(str(trainer.callback_metrics["val_cfd/encoder"].item()))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()  # threads of it that are still running at the end would abort the process
"""


def test_two_processes_log_what_one_does(tmp_path):
    (tmp_path / "run.py").write_text(SCRIPT)
    root = str(ROOT)
    paths = os.pathsep.join([root, os.path.dirname(os.path.dirname(cf.__file__))])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, str(tmp_path / "run.py")]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, env=environment | {"PYTHONPATH": paths}
    )
    assert done.returncode == 0, done.stderr
    values = [float((tmp_path / name).read_text()) for name in ("rank0", "rank1")]
    x, _, domain = rows(1, 50)
    with torch.no_grad():
        own = cf.cfd(model_of(pl.LightningModule).encoder(x).numpy(), labels=domain.numpy()).distance
    assert values == pytest.approx([own, own], rel=1e-5)


def test_missing_lightning_is_named(python):
    code = """
import crossfusion as cf, crossfusion.torch
try:
    crossfusion.torch.CrossFusionCallback
except cf.MissingDependencyError as problem:
    print(problem)
"""
    hidden = without("lightning") + without("pytorch_lightning").replace("Hidden", "Hidden2")
    expected = "CrossFusionCallback needs Lightning, which is not installed: pip install 'crossfusion[lightning]'"
    assert python(hidden + code) == expected
