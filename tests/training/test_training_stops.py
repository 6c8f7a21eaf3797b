"""Errors that stop a training run: the sentence that is printed, and that no checkpoint is lost."""

import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="extra torch is not installed")
pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import SMALL, same_data, same_weights, train_tiny, write_data  # noqa: E402
from torch import nn  # noqa: E402

from sisod.common.exceptions import InputError, InputWarning, UsageError  # noqa: E402
from sisod.losses import PlainLoss  # noqa: E402
from sisod.training.data import CheckedSamples  # noqa: E402
from sisod.training.module import SaliencyModule  # noqa: E402
from sisod.training.recipe import BALANCED_LOSS, find_recipe  # noqa: E402
from sisod.training.train import Machine, TrainingRequest, train  # noqa: E402
from sisod.training.trainer import read_metrics  # noqa: E402


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("stops") / "made", 16, black=True)


def test_a_loss_that_is_no_number_stops(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = ("optimizer.lr=1e9", "schedule.warmup_steps=0", "train.clip=0", "train.batch=2")
    message = r"^(the loss is (nan|inf) at step \d+ \(epoch \d+, batch \d+\), with the images scene\d+"
    with pytest.raises(
        InputError, match=message + "|.* of the network is not finite after step)"
    ) as caught:
        train_tiny(data, out, *settings)
    assert "no checkpoint yet; lower optimizer.lr, or set train.clip" in str(caught.value)


@same_data
def test_a_good_checkpoint_is_not_written_over(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    end = SaliencyModule.training_step

    def poisoned(self: SaliencyModule, batch: Any, index: int) -> Any:
        if self.current_epoch == 1 and index == 1:
            with torch.no_grad():
                next(self.network.parameters()).fill_(float("nan"))
        return end(self, batch, index)

    monkeypatch.setattr(SaliencyModule, "training_step", poisoned)
    last = out / "checkpoints" / "last.ckpt"
    with pytest.raises(InputError) as caught:
        train_tiny(data, out, val=data)
    assert re.match(
        r"the loss is nan at step 4 \(epoch 2, batch 2\), with the images ", str(caught.value)
    )
    assert f"the last good checkpoint is {str(last)!r}" in str(caught.value)
    assert torch.load(last, weights_only=True)["global_step"] == 2
    monkeypatch.undo()
    resumed = train_tiny(data, out, resume=True, val=data)
    whole = train_tiny(data, tmp_path / "whole", val=data)
    assert (out / "metrics.csv").read_text() == (tmp_path / "whole" / "metrics.csv").read_text()
    assert resumed["scores"] == whole["scores"]
    assert resumed["best_si_mae"] == whole["best_si_mae"] <= whole["scores"]["si_mae"]
    same_weights(out, tmp_path / "whole")


def test_a_file_that_breaks_later_is_named_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sisod.training import train as module

    root = write_data(tmp_path / "made", 8)
    image = root / "image" / "scene003.jpg"
    image.write_bytes(image.read_bytes()[:-300])
    monkeypatch.setattr(module, "check_samples", lambda samples, **_: CheckedSamples(samples))
    request, machine = module.TrainingRequest(data=root, out=tmp_path / "run"), module.Machine(workers=1)
    with pytest.raises(InputError) as caught:
        module.train(find_recipe("tiny", SMALL), request, machine)
    message = f"{str(image)!r} is not an image that can be read, or is cut short; replace the file"
    assert str(caught.value) == message


def test_an_interruption_is_raised(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(SaliencyModule, "training_step", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            train_tiny(data, tmp_path / "run")
    finally:
        signal.signal(signal.SIGINT, handler)  # Lightning turns it off


@same_data
def test_the_last_epoch_is_validated(data: Path, tmp_path: Path) -> None:
    train_tiny(data, tmp_path / "run", "train.epochs=3", "train.validate_every=2", val=data)
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    assert [row["epoch"] for row in rows if row["si_mae"]] == ["2", "3"]


def test_images_of_both_sets_are_counted(data: Path, tmp_path: Path) -> None:
    val = write_data(tmp_path / "val", 3)
    for kind, end in (("image", "jpg"), ("mask", "png")):
        (val / kind / f"scene002.{end}").rename(val / kind / f"other.{end}")
    (val / "image" / "scene001.jpg").write_bytes((val / "image" / "scene000.jpg").read_bytes() + b"\0")
    message = r"^2 of the 3 images to validate on are trained on too \(other, scene000\)"
    with pytest.warns(InputWarning, match=message):
        train_tiny(data, tmp_path / "run", "train.epochs=1", val=val)


class _Scaled(nn.Module):
    """A loss of one's own with a number, a tensor, and what it prints."""

    weight: Any

    def __init__(self, factor: float = 1.0, weight: float = 1.0, text: str = "") -> None:
        super().__init__()
        self.factor, self._text = factor, text
        self.register_buffer("weight", torch.tensor(weight))

    def extra_repr(self) -> str:
        return self._text

    def forward(self, logits: Any, gt: Any, boxes: Any) -> Any:  # noqa: ARG002
        return self.factor * self.weight * (logits[0] - gt).square().mean()


def test_a_run_goes_on_with_the_same_loss_of_ones_own_only(data: Path, tmp_path: Path) -> None:
    recipe, request = find_recipe("tiny", SMALL), TrainingRequest(data=data, out=tmp_path / "run")
    record = train(recipe, request, Machine(workers=0), criterion=_Scaled())
    assert record["config"]["criterion"]["class"] == "_Scaled"
    again = replace(request, resume=True)
    assert train(recipe, again, Machine(workers=0), criterion=_Scaled())["steps"] == record["steps"]
    others: tuple[tuple[Any, str], ...] = (
        (_Scaled(factor=2), "attributes.factor"),
        (_Scaled(weight=2), "tensors"),
        (_Scaled(text="own"), "repr"),
        (PlainLoss("mse"), "class"),
        (None, "class"),
    )
    for other, key in others:
        with pytest.raises(InputError, match=rf"is another run: criterion\.{key} was"):
            train(recipe, again, Machine(workers=0), criterion=other)


def test_a_factor_of_the_encoder_without_effect_is_said(data: Path, tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match=r"encoder_factor is 0\.1"):
        train(
            find_recipe("tiny", [*SMALL, "schedule.encoder_factor=0.1"]),
            TrainingRequest(data=data, out=tmp_path / "run"),
            Machine(workers=0),
            network=nn.Conv2d(3, 1, 1),
        )


def test_the_balanced_loss_has_the_same_name_in_python(data: Path, tmp_path: Path) -> None:
    settings = ("train.epochs=1", "loss.min_area=3")
    asked = train_tiny(data, tmp_path / "python", *settings, loss="balanced")["config"]
    by_settings = train_tiny(data, tmp_path / "set", *settings, *BALANCED_LOSS)["config"]
    assert asked == by_settings


LDF = ("network.encoder_weights=none", "train.batch=2")


def test_a_refused_run_leaves_nothing(data: Path, tmp_path: Path) -> None:
    for settings in (['network.frozen=["stem"]'], ['loss.terms=["bcee"]'], ["train.batch=64"]):
        with pytest.raises(InputError):
            train_tiny(data, tmp_path / "new" / "run", *settings)
    with pytest.raises(InputError, match=r"has no folders body and detail; expected the folder labels"):
        train_tiny(data, tmp_path / "new" / "run", *LDF, recipe="ldf-lite", labels=tmp_path)
    with pytest.raises(UsageError, match=r"^--labels is for networks that learn body and detail; tiny "):
        train_tiny(data, tmp_path / "new" / "run", labels=tmp_path)
    with pytest.raises(UsageError, match="--resume goes on with a run and --overwrite begins again"):
        train_tiny(data, tmp_path / "new" / "run", resume=True, overwrite=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
