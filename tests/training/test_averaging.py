"""The average of the weights, precision of the recipe and torch.compile: options of [train]."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="extra torch is not installed")
lightning = pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import (  # noqa: E402
    losses,
    predicted_scores,
    same_data,
    same_weights,
    train_tiny,
    weights,
    write_data,
)

from sisod.training import module as training_module  # noqa: E402
from sisod.training.module import update_average  # noqa: E402
from sisod.training.recipe import find_recipe  # noqa: E402
from sisod.training.train import Machine, TrainingRequest, train  # noqa: E402

EMA = "train.ema=0.9"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("averaging") / "made", 16)


def states(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Collect copies of the trained weights after every step."""
    collected: list[dict[str, Any]] = []
    step = lightning.LightningModule.optimizer_step

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        if not collected:
            collected.append({k: v.clone() for k, v in self.network.state_dict().items()})
        step(self, *arguments, **options)
        collected.append({k: v.clone() for k, v in self.network.state_dict().items()})

    monkeypatch.setattr(lightning.LightningModule, "optimizer_step", noted)
    return collected


def test_the_saved_network_is_the_average(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And averaging does not change the training."""
    settings = ("train.batch=4", "train.epochs=3")
    with monkeypatch.context() as patched:
        seen = states(patched)
        train_tiny(data, tmp_path / "with", EMA, *settings)
    assert len(seen) == 1 + 12
    expected = {key: value.double() for key, value in seen[0].items()}
    for n, state in enumerate(seen[1:]):
        decay = min(0.9, (1 + n) / (10 + n))
        expected = {k: decay * v + (1 - decay) * state[k].double() for k, v in expected.items()}
    saved = weights(tmp_path / "with")
    assert saved.keys() == seen[0].keys()
    for key, value in saved.items():
        torch.testing.assert_close(value.double(), expected[key], rtol=1e-5, atol=1e-6)
    assert any(float((saved[key] - seen[-1][key]).abs().max()) > 1e-4 for key in saved)
    train_tiny(data, tmp_path / "without", *settings)
    assert losses(tmp_path / "with") == losses(tmp_path / "without")
    last = torch.load(tmp_path / "with" / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    for key, value in weights(tmp_path / "without").items():
        assert torch.equal(last[f"network.{key}"], value)
        assert torch.equal(last[f"averaged.{key}"], saved[key])


@same_data
def test_validation_and_the_best_checkpoint_are_of_the_average(data: Path, tmp_path: Path) -> None:
    record = train_tiny(data, tmp_path / "run", EMA, "train.epochs=1", val=data)
    scores = predicted_scores(tmp_path / "run", data, tmp_path / "maps")
    assert record["scores"]["mae"] == pytest.approx(scores["mae"], abs=1e-6)
    best = torch.load(tmp_path / "run" / "checkpoints" / "best.ckpt", weights_only=True)["state_dict"]
    assert torch.equal(weights(tmp_path / "run")["heads.0.weight"], best["averaged.heads.0.weight"])


def test_statistics_are_averaged_and_counters_copied() -> None:
    averaged, network = torch.nn.BatchNorm2d(1), torch.nn.BatchNorm2d(1)
    network(torch.full((1, 1, 2, 2), 8.0))
    network(torch.full((1, 1, 2, 2), 8.0))
    expected = 0.25 * network.running_mean
    update_average(averaged, network, 0.75)
    assert torch.equal(averaged.running_mean, expected)
    assert int(averaged.num_batches_tracked) == 2


def test_precision_is_the_recipes_unless_the_machine_has_one(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precisions = []
    fit = lightning.Trainer.fit

    def noted(self: Any, *arguments: Any, **options: Any) -> None:
        precisions.append(self.precision)
        fit(self, *arguments, **options)

    monkeypatch.setattr(lightning.Trainer, "fit", noted)
    recipe = find_recipe("tiny", ["data.size=32", "train.epochs=1", "train.precision=bf16-mixed"])
    for name, precision in (("half", None), ("full", "32-true")):
        request = TrainingRequest(data=data, out=tmp_path / name)
        train(recipe, request, Machine(workers=0, precision=precision))
    assert precisions == ["bf16-mixed", "32-true"]
    assert {value.dtype for value in weights(tmp_path / "half").values()} == {torch.float32}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own compiler
def test_compiled_training_has_the_same_names_and_losses(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the backend that compiles no C++, which would take the better part of a minute."""
    monkeypatch.setattr(training_module, "COMPILE_BACKEND", "aot_eager")
    for name, compiled in (("compiled", "true"), ("eager", "false")):
        recipe = find_recipe(
            "tiny", ["data.size=32", "train.epochs=1", EMA, f"train.compile={compiled}"]
        )
        torch.manual_seed(0)
        layers = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.Conv2d(4, 1, 1)
        network, request = torch.nn.Sequential(*layers), TrainingRequest(data=data, out=tmp_path / name)
        train(recipe, request, Machine(workers=0), network=network)
    assert losses(tmp_path / "compiled") == pytest.approx(losses(tmp_path / "eager"), rel=1e-5)
    same_weights(tmp_path / "compiled", tmp_path / "eager", tolerance=1e-4)
    keys = torch.load(tmp_path / "compiled" / "checkpoints" / "last.ckpt", weights_only=True)
    assert not [key for key in keys["state_dict"] if "_orig_mod" in key]
