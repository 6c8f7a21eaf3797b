"""Modules of other people as networks: what they may return, what their values mean, what is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sisod import networks
from sisod.common.exceptions import InputError, UsageError
from sisod.networks.checkpoints import read_safetensors
from sisod.networks.specs import CONFIG_KEY, NetworkConfig
from sisod.networks.wrapped import WrappedNetwork, wrap


class Returns(nn.Module):
    """A module that returns whatever a function of its input returns."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> Any:
        """Return what the function does."""
        return self.function(x * self.scale)


@dataclass
class Output:
    """What a module of Transformers returns."""

    logits: Tensor
    loss: Tensor | None = None


IMAGES = torch.linspace(-3, 3, 2 * 3 * 4 * 6).view(2, 3, 4, 6)
RED = IMAGES[:, :1]


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda x: x[:, :1], 0),
        (lambda x: x[:, 0], 0),  # (B, H, W)
        (lambda x: {"out": x[:, :1], "aux": x[:, 1:2]}, "out"),
        (lambda x: Output(logits=x[:, :1]), "logits"),
        (lambda x: {"a": {"b": x[:, :1]}}, lambda result: result["a"]["b"]),
    ],
)
def test_a_module_with_one_map(function: Callable[[Tensor], Any], output: Any) -> None:
    maps = wrap(Returns(function), output=output)(IMAGES)
    assert len(maps) == 1
    torch.testing.assert_close(maps[0], RED)


def three(x: Tensor) -> list[Tensor]:
    return [x[:, :1], x[:, 1:2], x[:, 2:]]


@pytest.mark.parametrize(
    ("output", "order"),
    [(0, [0, 1, 2]), (-1, [2, 0, 1]), (1, [1, 0, 2]), (lambda maps: maps[::-1], [2, 1, 0])],
)
def test_the_prediction_comes_first_and_the_others_stay(output: Any, order: list[int]) -> None:
    network = wrap(Returns(three), output=output)
    maps = network(IMAGES)
    for map_, channel in zip(maps, order, strict=True):
        torch.testing.assert_close(map_, IMAGES[:, channel : channel + 1])
    torch.stack([map_.sum() for map_ in maps]).sum().backward()  # type: ignore[no-untyped-call]
    assert network.get_parameter("module.scale").grad is not None


def test_smaller_maps_are_enlarged_to_the_input() -> None:
    network = wrap(Returns(lambda x: x[:, :1, ::2, ::2]))
    expected = nn.functional.interpolate(RED[:, :, ::2, ::2], size=(4, 6), mode="bilinear")
    torch.testing.assert_close(network(IMAGES)[0], expected)


def test_probabilities_become_logits_and_come_back() -> None:
    network = wrap(Returns(lambda x: x[:, :1].sigmoid()), activation="none").eval()
    logits = network(IMAGES)[0]
    torch.testing.assert_close(logits, RED, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(network.saliency(logits), RED.sigmoid())


def test_certain_probabilities_have_finite_logits() -> None:
    network = wrap(Returns(lambda x: (x[:, :1] > 0).float()), activation="none").eval()
    logits = network(IMAGES)[0]
    assert bool(logits.isfinite().all())
    assert set((network.saliency(logits) * 255).round().flatten().tolist()) == {0, 255}


@pytest.mark.parametrize(("classes", "options", "channel"), [(3, {"channel": 0}, 0), (2, {}, 1)])
def test_softmax_of_a_class(classes: int, options: dict[str, Any], channel: int) -> None:
    """Of two classes, the second is the object."""
    network = wrap(Returns(lambda x: x[:, :classes]), activation="softmax", **options)
    probs = network.saliency(network(IMAGES)[0])
    torch.testing.assert_close(probs, IMAGES[:, :classes].softmax(dim=1)[:, channel : channel + 1])


def test_minmax_stretches_each_map_but_a_constant_one() -> None:
    network = wrap(Returns(three), output=0, normalize="minmax")
    logits = torch.tensor([[[[0.0, 1.0], [2.0, -1.0]]], [[[0.5, 0.5], [0.5, 0.5]]]])
    probs = network.saliency(logits)
    assert (float(probs[0].min()), float(probs[0].max())) == (0.0, 1.0)
    torch.testing.assert_close(probs[1], logits[1].sigmoid())
    torch.testing.assert_close(network(IMAGES)[0], RED)  # training sees what the module returned
    torch.testing.assert_close(network.saliency(logits[0, 0]), probs[0, 0])  # as predict calls it


def test_size_mean_and_std_are_those_given() -> None:
    network = wrap(Returns(three), size=32, mean=(0.5, 0.5, 0.5), std=(0.25, 0.5, 1.0))
    assert network.input_size == (32, 32)
    assert network.input_spec.apply(torch.ones(3, 1, 1)).flatten().tolist() == [2.0, 1.0, 0.5]
    assert wrap(Returns(three), size=(24, 32)).input_size == (24, 32)
    assert wrap(Returns(three)).input_size is None
    assert wrap(Returns(three)).input_spec == networks.create("tiny").input_spec


def test_the_config_says_what_decides_the_maps() -> None:
    network = wrap(Returns(three), size=32, output=-1, activation="none", normalize="minmax", channel=0)
    config = network.config()
    assert (config["network"], config["encoder"]) == ("wrapped", "Returns")
    assert (config["size"], config["output"]) == ((32, 32), -1)
    assert config["output_spec"] == {"activation": "none", "normalize": "minmax", "channel": 0}
    assert wrap(Returns(three), output=three).config()["output"] == "three"


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (three, {"output": 3}, "a list, in which output=3 finds no map (IndexError"),
        (three, {"output": 1.5}, "output=1.5 finds no map (TypeError"),
        (lambda x: {"out": x}, {"output": "logits"}, "a dict of out, in which output='logits' finds no"),
        (lambda x: Output(x), {"output": "loss"}, "returns a NoneType among its maps"),
        (lambda x: x.mean(), {}, "a tensor of shape () and type torch.float32 among its maps"),
        (lambda x: x[:1, :1], {}, "a tensor of shape (1, 1, 4, 6)"),
        (lambda x: x[:, :1].int(), {}, "and type torch.int32 among its maps"),
        (lambda x: x, {"channel": 3}, "have 3 channels, the activation is sigmoid and the channel 3"),
        (lambda x: x, {"activation": "softmax"}, "have 3 channels, the activation is softmax"),
        (lambda x: x[:, :1], {"activation": "softmax"}, "have 1 channels, the activation is softmax"),
        (
            lambda x: x[:, :1],
            {"activation": "none"},
            "from -3 to 0.986, and the activation none",
        ),
    ],
)
def test_what_is_no_map_is_refused(
    function: Callable[[Tensor], Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        wrap(Returns(function), **options).eval()(IMAGES)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "relu"}, "activation must be 'sigmoid', 'softmax' or 'none', got 'relu'"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"mean": (124, 116, 104.5)}, "mean is of values in [0, 1], got (124"),
        ({"std": (1, 1, 0)}, "every value of std must be a number above 0"),
        ({"channel": -1}, "channel must be at least 0, got -1"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        wrap(Returns(three), **options)
    assert message in str(caught.value)


def test_what_is_no_foreign_module_is_refused() -> None:
    for module in (3, networks.create("tiny")):
        with pytest.raises(UsageError, match="only a PyTorch module of yours can be wrapped"):
            wrap(module)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Returns has no pretrained encoder"):
        wrap(Returns(three)).load_encoder("imagenet")


def test_weights_are_saved_with_the_config(tmp_path: Path) -> None:
    network = networks.wrap(Returns(three), output=-1)
    assert isinstance(network, WrappedNetwork)
    network.save_pretrained(tmp_path)
    tensors, header = read_safetensors(tmp_path / "model.safetensors")
    assert NetworkConfig.parse(header[CONFIG_KEY], source="").output == -1
    assert list(tensors) == ["module.scale"]
