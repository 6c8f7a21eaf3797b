"""Runs of wrapped modules with bad luck: stopped, loaded by another factory, exported at their size."""

import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import error_message, run

torch = pytest.importorskip("torch", reason="extra torch is not installed")
pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import losses, same_weights, write_data  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sisod import networks  # noqa: E402
from sisod.common.exceptions import InputError, UsageError  # noqa: E402
from sisod.training.module import SaliencyModule, update_average  # noqa: E402
from sisod.training.recipe import find_recipe  # noqa: E402
from sisod.training.train import Machine, TrainingRequest, train  # noqa: E402

SIZE = 32


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("wrapped") / "made", 8)


def fit(data: Path, out: Path, module: nn.Module, *settings: str, resume: bool = False) -> None:
    recipe = find_recipe("tiny", [f"data.size={SIZE}", "train.epochs=2", "train.batch=4", *settings])
    request = TrainingRequest(data=data, out=out, resume=resume)
    train(recipe, request, Machine(workers=0), network=module)


def dropping() -> nn.Module:
    """Return a module with dropout, and always the same weights."""
    torch.manual_seed(5)
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Dropout(0.5), nn.Conv2d(8, 1, 1))


def test_dropout_and_average_are_the_same_after_resuming(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    average = "train.ema=0.9"
    fit(data, tmp_path / "whole", dropping(), average)
    step = SaliencyModule.training_step

    def stopped(self: SaliencyModule, batch: Any, index: int) -> Any:
        if self.global_step == 3:  # in the middle of the second epoch
            raise InputError("stopped")
        return step(self, batch, index)

    with monkeypatch.context() as patched:
        patched.setattr(SaliencyModule, "training_step", stopped)
        with pytest.raises(InputError, match="stopped"):
            fit(data, tmp_path / "cut", dropping(), average)
    for command in (
        ("predict", tmp_path / "cut", data / "image", "maps"),
        ("export", tmp_path / "cut", "x.onnx"),
    ):
        assert "has no network yet, because its training is not finished" in error_message(run(*command))
    fit(data, tmp_path / "cut", dropping(), average, resume=True)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    same_weights(tmp_path / "cut", tmp_path / "whole")


def test_dropout_differs_between_epochs(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    step = SaliencyModule.training_step

    def noted(self: SaliencyModule, batch: Any, index: int) -> Any:
        loss = step(self, batch, index)
        drawn.append(float(torch.rand(())))
        return loss

    monkeypatch.setattr(SaliencyModule, "training_step", noted)
    fit(data, tmp_path / "run", dropping())
    assert len(set(drawn)) == 4


class TwoMaps(nn.Module):
    """Probabilities: one map that is trained, and one that is 0.5 everywhere."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 1, 1)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return both."""
        logits = self.conv(x)
        return [logits.sigmoid(), (0 * logits).sigmoid()]


def test_maps_are_read_as_in_the_training(data: Path, tmp_path: Path) -> None:
    wrapped = networks.wrap(
        TwoMaps(), size=48, output=0, activation="none", normalize="minmax", mean=(0.5, 0.5, 0.5)
    )
    fit(data, tmp_path / "run", wrapped)
    again = networks.from_pretrained(tmp_path / "run", factory=TwoMaps)  # with the defaults of wrap
    assert again.config() | {"source": None} == wrapped.config()
    image = torch.rand(1, 3, 8, 8)
    torch.testing.assert_close(again(image)[0], wrapped.eval()(image)[0])


def test_a_module_cannot_learn_the_labels_of_ldf(data: Path, tmp_path: Path) -> None:
    recipe = find_recipe("ldf-lite", ["network.encoder_weights=none", "data.size=32"])
    request = TrainingRequest(data=data, out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"\[labels\] is for .* Conv2d learns masks only; use another"):
        train(recipe, request, Machine(workers=0), network=nn.Conv2d(3, 1, 1))
    assert not (tmp_path / "run").exists()


def test_the_average_of_tied_weights_moves_once() -> None:
    def tied(value: float) -> nn.Module:
        layer = nn.Linear(1, 1)
        nn.init.constant_(layer.weight, value)
        return nn.ModuleDict({"first": layer, "second": layer})

    averaged, network = tied(1.0), tied(2.0)
    update_average(averaged, network, 0.75)
    assert averaged.state_dict()["second.weight"].item() == 1.25


class OneSize(nn.Module):
    """Takes images of one size only, like a transformer with fixed positions."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.position = nn.Conv2d(3, 1, 1), nn.Parameter(torch.zeros(1, 1, SIZE, SIZE))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.conv(x) + self.position
        return logits


ONE_SIZE = """
from MODULE import OneSize
from sisod import networks


def build():
    return networks.wrap(OneSize(), size=32)
"""


def test_a_module_of_one_size_is_exported_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxscript", reason="extra onnx is not installed")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    Path("one_size_factory.py").write_text(ONE_SIZE.replace("MODULE", __name__), encoding="utf-8")
    networks.wrap(OneSize(), size=SIZE).save_pretrained("net")
    command = ("export", "net", "net.onnx", "--factory", "one_size_factory:build")
    result = run(*command)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "OneSize, any batch of 32 x 32: net.onnx\n"
    message = error_message(run(*command, "--overwrite", "--height", "40"))
    assert message.startswith("OneSize cannot be exported for images of 40 x 32 (RuntimeError: ")
