"""Networks of your own, trained by a recipe: a factory, a model of Transformers, a module in Python."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import error_message, run

torch = pytest.importorskip("torch", reason="extra torch is not installed")
pytest.importorskip("lightning", reason="extra torch is not installed")

from helpers.training_runs import losses, train_tiny, weights, write_data  # noqa: E402

from sisod import networks  # noqa: E402
from sisod.common.exceptions import InputError, UsageError  # noqa: E402
from sisod.training.recipe import find_recipe, write_toml  # noqa: E402
from sisod.training.train import Machine, TrainingRequest, train  # noqa: E402

MODULE = """
import torch
from torch import nn
from sisod import networks


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.encoder = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.side, self.head = nn.Conv2d(width, 1, 1), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        y = self.norm(self.encoder(x)).relu()
        return [self.side(y), self.head(y)]


def build(width=4):
    return networks.wrap(Net(width), output=-1, mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25))


def plain():
    return nn.Conv2d(3, 1, 1)


def broken():
    raise RuntimeError("no weights")


class Bad(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind, self.conv = kind, nn.Conv2d(3, 1, 1)

    def forward(self, x):
        y = self.conv(x)
        if self.kind == "shape":
            return y.flatten(1)
        if self.kind == "nan":
            return y * float("nan")
        if self.kind == "raises":
            raise ValueError("wrong size")
        return y.detach()


def bad(kind):
    return Bad(kind)


def frozen():
    return plain().requires_grad_(False)


open("imported", "w").close()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write the module into a folder that it can be imported from, under a name of its own."""
    import sys

    name = f"own_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("own") / "made", 8)


def recipe_file(tmp_path: Path, network: str) -> Path:
    """Write the recipe of tiny with another section [network]."""
    text = write_toml(find_recipe("tiny", ["data.size=32", "train.epochs=2", "train.batch=4"]))
    path = tmp_path / "own.toml"
    path.write_text(f"[network]\n{network}\n" + text[text.index("[data]") :], encoding="utf-8")
    return path


def card(folder: Path | str) -> str:
    """Return the README of a saved network on one line."""
    return " ".join(Path(folder, "README.md").read_text(encoding="utf-8").split())


def test_a_factory_is_trained_and_predicts(data: Path, tmp_path: Path, module: str) -> None:
    path = recipe_file(tmp_path, f'factory = "{module}:build"\narguments = {{ width = 6 }}')
    recipe = find_recipe(path, ["train.epochs=1"], factory=f"{module}:build")
    assert not Path("imported").exists()  # reading runs nothing
    train(recipe, TrainingRequest(data=data, out=tmp_path / "run"), Machine(workers=0))
    assert len(losses(tmp_path / "run")) == 2
    assert weights(tmp_path / "run")["module.head.weight"].shape[1] == 6
    # the recipe that the run stores is the same one
    stored = tmp_path / "run" / "recipe.toml"
    assert find_recipe(stored, factory=f"{module}:build").tables() == recipe.tables()
    result = run("predict", "run", str(data / "image"), "maps", "--factory", f"{module}:build")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "8 maps of Net in maps\n"
    assert "a module of your own with `factory=`" in card("run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["source"] == f"py:{module}:build"
    assert config["arguments"] == {"width": 6}
    assert config["input_spec"]["mean"] == [0.5, 0.5, 0.5]


def test_code_runs_only_if_the_user_names_it(data: Path, tmp_path: Path, module: str) -> None:
    path = recipe_file(tmp_path, f'factory = "{module}:build"')
    options = ("--data", str(data), "--workers", "0", "--devices", "1")
    result = run("train", str(path), *options, "--out", "run")
    message = error_message(result, exit_codes=(2,))
    assert message.endswith(f"if you trust it, repeat the command with --factory {module}:build")
    path = recipe_file(tmp_path, f'name = "py:{module}:build"')  # the same by another key
    assert run("train", str(path), *options, "--out", "run").exit_code == 2
    assert not Path("imported").exists()
    named = ("--factory", f"{module}:build", "--set", "train.epochs=1")
    assert run("train", str(path), *options, "--out", "run", *named).exit_code == 0
    Path("imported").unlink()
    import sys

    del sys.modules[module]
    for command in (
        ("predict", "run", str(data / "image"), "maps"),
        ("export", "run", "own.onnx"),
        ("calibrate", "run"),
    ):
        message = error_message(run(*command), exit_codes=(2,))
        assert f"repeat the command with --factory {module}:build" in message, command
    with pytest.raises(UsageError, match="is a network of your own"):
        networks.from_pretrained("run")
    assert not Path("imported").exists()
    loaded = networks.from_pretrained("run", factory=f"{module}:build")
    assert Path("imported").exists()
    assert loaded.config()["source"] == f"py:{module}:build"


def test_a_factory_replaces_the_network_of_any_recipe(module: str) -> None:
    recipe = find_recipe("edn", ['network.frozen=["module.encoder"]'], factory=f"{module}:build")
    assert (recipe.network.name, recipe.network.factory) == ("", f"{module}:build")
    assert recipe.network.frozen == ("module.encoder",)
    by_setting = find_recipe("edn", [f"network.factory={module}:build"])
    assert by_setting.network.factory == f"{module}:build"
    short = find_recipe("edn", ["network.name=timm:convnext_tiny"]).network
    assert (short.name, short.encoder) == ("fpn", "timm:convnext_tiny")


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("broken", {}, "RuntimeError: no weights"),
        ("bad", {"kind": "shape"}, "(2, 1024)"),
        ("bad", {"kind": "raises"}, "ValueError: wrong size"),
        ("bad", {"kind": "nan"}, "Bad cannot be trained: its maps are not finite"),
        ("bad", {"kind": "detached"}, "Bad cannot be trained: its maps pass on no gradient"),
    ],
)
def test_a_factory_that_cannot_be_trained(
    function: str, arguments: dict[str, Any], message: str, module: str, data: Path, tmp_path: Path
) -> None:
    from dataclasses import replace

    recipe = find_recipe("tiny", ["data.size=32"], factory=f"{module}:{function}")
    recipe = replace(recipe, network=replace(recipe.network, arguments=arguments))
    with pytest.raises(InputError) as error:
        train(recipe, TrainingRequest(data=data, out=tmp_path / "run"), Machine(workers=0))
    assert message in str(error.value).replace(module, "M")
    assert not (tmp_path / "run").exists()


def test_a_module_of_python_is_trained_and_loaded_again(data: Path, tmp_path: Path) -> None:
    from torch import nn

    def build() -> nn.Module:
        head = nn.Conv2d(4, 1, 1)
        nn.init.constant_(head.bias, -2.0)  # type: ignore[arg-type]
        return nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), head)

    recipe = find_recipe("tiny", ["data.size=32", "train.epochs=1"])
    request = TrainingRequest(data=data, out=tmp_path / "run")
    train(recipe, request, Machine(workers=0), network=networks.wrap(build()))
    with pytest.raises(UsageError, match="and sisod runs code only if you name it"):
        networks.from_pretrained(tmp_path / "run")
    again = networks.from_pretrained(tmp_path / "run", factory=build)
    assert torch.equal(
        again.state_dict()["module.0.weight"], weights(tmp_path / "run")["module.0.weight"]
    )


@pytest.fixture
def segformer(tmp_path: Path) -> Path:
    """A tiny SegFormer with random weights, as a folder of Transformers."""
    transformers = pytest.importorskip("transformers", reason="extra hf is not installed")
    config = transformers.SegformerConfig(
        num_labels=2, depths=[1] * 4, hidden_sizes=[8, 8, 8, 8], decoder_hidden_size=8,
        num_attention_heads=[1, 1, 1, 1],
    )  # fmt: skip
    transformers.SegformerForSemanticSegmentation(config).save_pretrained(tmp_path / "segformer")
    size = {"height": 64, "width": 64}
    settings = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": size, "do_resize": True}
    path = tmp_path / "segformer" / "preprocessor_config.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return tmp_path / "segformer"


def test_a_model_of_transformers_is_fine_tuned(data: Path, tmp_path: Path, segformer: Path) -> None:
    import shutil

    out = tmp_path / "run"
    train_tiny(data, out, f"network.name=hf:{segformer}", "data.size=64", "train.epochs=1")
    shutil.rmtree(segformer)  # the run is complete in itself
    network = networks.from_pretrained(out)
    assert network.input_spec.mean == (0.5, 0.5, 0.5)
    for key, value in weights(out).items():
        assert torch.equal(network.state_dict()[key], value)
    result = run("predict", str(out), str(data / "image"), str(tmp_path / "maps"))
    assert result.exit_code == 0, result.stderr


def test_wrong_arguments_of_a_kind(data: Path, tmp_path: Path) -> None:
    message = r"\[network\] arguments of hf:x: unknown key 'deep'; expected activation"
    with pytest.raises(InputError, match=message):
        train_tiny(data, tmp_path / "run", "network.name=hf:x", "network.arguments={deep=1}")
    settings = ("network.name=hf:x", "network.arguments={trust_remote_code=true}")
    with pytest.raises(
        UsageError, match="cannot allow remote code; load the model in a factory of yours"
    ):
        train_tiny(data, tmp_path / "run", *settings)


def test_an_encoder_of_timm_is_trained(data: Path, tmp_path: Path) -> None:
    pytest.importorskip(
        "timm", reason="timm cannot be imported here; see make wide", exc_type=ImportError
    )
    settings = ("network.name=timm:test_convnext", "network.encoder_weights=none", "train.ema=0.9")
    train_tiny(data, tmp_path / "run", *settings, "data.size=64", "train.epochs=1", recipe="fpn-lite")
    network = networks.from_pretrained(tmp_path / "run")
    assert network.config()["encoder"] == "timm:test_convnext"
    result = run("predict", str(tmp_path / "run"), str(data / "image"), str(tmp_path / "maps"))
    assert result.exit_code == 0, result.stderr
