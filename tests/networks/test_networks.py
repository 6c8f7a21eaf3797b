"""What every network must do: one suite over the registry; the numbers of the fact sheet."""

import re
from functools import cache
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from helpers.meta_networks import image_on_meta, on_meta
from torch import Tensor, nn

from sisod import networks
from sisod.common.exceptions import InputError
from sisod.networks.architectures.ldf import split_label
from sisod.networks.network import Network
from sisod.networks.registry import FACTS
from sisod.networks.specs import IMAGENET, LITE, InputSpec

torch.set_num_threads(1)  # on a shared machine two would wait for each other
NAMES = networks.names()
WITH_ENCODERS = tuple(name for name in NAMES if name != "tiny")
# every pair of network and encoder there is
PAIRS = [(name, "resnet50") for name in NAMES] + [(name, "efficientnet_lite0") for name in WITH_ENCODERS]
SIZES = ((384, 384), (352, 352), (320, 320), (351, 287))


@cache
def built(name: str, encoder: str = "resnet50") -> Network:
    """A network with random weights that every test may use and must leave in eval mode."""
    torch.manual_seed(0)
    return networks.create(name, encoder=encoder).eval()


def light(name: str) -> Network:
    """With the small encoder, where the decoder is what matters."""
    return built(name, "efficientnet_lite0") if name in WITH_ENCODERS else built(name)


def small(name: str) -> tuple[int, int]:
    """A small odd size, even at stride 16, which GateNet needs; PoolNet needs 8 pixels there."""
    return (127, 159) if name == "poolnet" else (95, 63)


def images(batch: int, size: tuple[int, int]) -> Tensor:
    return torch.randn(batch, 3, *size, generator=torch.Generator().manual_seed(1))


def backward(maps: tuple[Tensor, ...]) -> None:
    """From a loss that no symmetry cancels."""
    torch.manual_seed(2)
    torch.autograd.backward([(logits * torch.randn_like(logits)).mean() for logits in maps])


# ------------------------------------------------------------------------------------------- contract


@pytest.mark.parametrize(("name", "encoder"), PAIRS)
@torch.no_grad()
@pytest.mark.slow
def test_maps_have_the_size_of_the_input(name: str, encoder: str) -> None:
    network = on_meta(name, encoder)
    for size in SIZES:
        maps = network(image_on_meta(2, size))
        assert isinstance(maps, tuple)
        assert [tuple(logits.shape) for logits in maps] == [(2, 1, *size)] * len(network.targets)


@pytest.mark.parametrize(("name", "encoder"), PAIRS)
@torch.no_grad()
@pytest.mark.slow
def test_logits_of_a_real_run(name: str, encoder: str) -> None:
    """Finite, different from pixel to pixel, and of an image whatever it is batched with."""
    network = built(name, encoder)
    two = images(2, small(name))
    maps = network(two)
    alone = network(two[:1])
    for logits, single in zip(maps, alone, strict=True):
        assert logits.shape == (2, 1, *small(name))
        assert logits.isfinite().all()
        assert logits.std() > 0
        scale = float(logits.abs().max())
        torch.testing.assert_close(logits[:1] / scale, single / scale, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_every_parameter_gets_a_gradient(name: str) -> None:
    """In eval mode: a bias before a norm that uses batch statistics has none to speak of."""
    network = built(name)
    network.zero_grad()
    backward(network(images(1, small(name))))
    without = set()
    for key, parameter in network.named_parameters():
        if parameter.requires_grad and (parameter.grad is None or not parameter.grad.any()):
            without.add(key)
    unused = {key for key, _ in network.named_parameters() if key.startswith(network.unused)}
    assert without == unused
    network.zero_grad()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_a_training_step(name: str) -> None:
    """In train mode, at 160 x 160, with the smallest batch that is allowed; statistics move."""
    batch = 2 if name == "gatenet" else 1
    network = light(name)
    in_eval = len(network(images(1, (160, 160))))
    before = {key: value.clone() for key, value in network.named_buffers()}
    try:
        maps = network.train()(images(batch, (160, 160)))
        backward(maps)
    finally:
        network.eval()
    assert len(maps) == in_eval
    for key, parameter in network.named_parameters():
        if parameter.requires_grad and not key.startswith(network.unused):
            assert parameter.grad is not None, key
            assert parameter.grad.isfinite().all(), key
    network.zero_grad()
    moved = {key for key, value in network.named_buffers() if not value.equal(before[key])}
    fixed = {"edn": ("encoder.",), "poolnet": ("",)}.get(name, network.unused)
    assert moved == {key for key in before if not key.startswith(fixed)}
    network.load_state_dict(before, strict=False)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_bfloat16_autocast(name: str) -> None:
    network = light(name)  # a processor without bfloat16 is slow at it
    x = images(1, small(name))
    full = network(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = network(x)
    for exact, coarse in zip(full, half, strict=True):
        assert coarse.isfinite().all()
        assert (coarse.float() - exact).abs().mean() < 0.1 * exact.abs().mean()


@pytest.mark.parametrize("name", ["edn", "poolnet"])
@torch.no_grad()
def test_encoder_norms_are_fixed(name: str) -> None:
    """EDN's are buffers; PoolNet's are parameters that do not train and stay in eval mode."""
    network = built(name)
    norms = {key: value for key, value in network.encoder.named_parameters() if "bn" in key}
    assert bool(norms) == (name == "poolnet")
    assert not any(value.requires_grad for value in norms.values())
    x = images(1, (32, 32))
    stem = network.encoder(x)[0]
    assert network.train().encoder(x)[0].equal(stem)
    network.eval()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PyTorch's own compiler
@torch.no_grad()
@pytest.mark.slow
def test_compiled() -> None:
    """As one graph. The default backend would go on to compile C++ for the better part of a minute."""
    network = built("tiny")
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    x = images(1, (64, 64))
    for ours, theirs in zip(network(x), compiled(x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_which_maps_are_what() -> None:
    assert networks.find("ldf").targets == ("mask", "body", "detail", "mask", "body", "detail")
    for name in NAMES:
        targets = networks.find(name).targets
        assert targets[0] == "mask"
        assert name == "ldf" or set(targets) == {"mask"}
        labels = networks.find(name).split_mask(np.zeros((8, 8), np.uint8))
        assert tuple(labels) == networks.find(name).auxiliary_targets()
        assert networks.find(name).auxiliary_targets() == (("body", "detail") if name == "ldf" else ())


# --------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"name": "endn"}, "unknown network 'endn'; did you mean 'edn'? available: edn, fpn, "),
        ({"name": "edn", "encoder": "resnet"}, "unknown encoder 'resnet'; did you mean 'resnet50'?"),
        ({"name": "tiny", "encoder": "efficientnet_lite0"}, "tiny has an encoder of its own"),
        ({"name": "tiny", "encoder_weights": "imagenet"}, "tiny has no pretrained encoder"),
    ],
)
def test_wrong_names(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(InputError, match=re.escape(expected)):
        networks.create(**arguments)


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("gatenet", (400, 300), (416, 320)),
        ("poolnet", (96, 200), (128, 200)),
        ("icon", (32, 64), (48, 64)),
        ("ldf", (40, 28), (40, 32)),
    ],
)
def test_sizes_that_do_not_fit(name: str, size: tuple[int, int], expected: tuple[int, int]) -> None:
    network = on_meta(name)
    with pytest.raises(InputError, match=f"resize the input to {expected[0]} x {expected[1]}"):
        network(image_on_meta(1, size))
    network(image_on_meta(1, expected))


def test_gatenet_trains_on_two_images_or_more() -> None:
    with torch.device("meta"):
        network = networks.create("gatenet")
    with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
        network(image_on_meta(1, (64, 64)))


# ------------------------------------------------------------------------------------- what goes in


def test_input_spec_by_hand() -> None:
    """One pixel, red 255, green 51, blue 0."""
    pixel = torch.tensor([255, 51, 0], dtype=torch.uint8).view(1, 3, 1, 1)
    rgb = IMAGENET.apply(pixel).flatten().tolist()
    expected = [(1.0 - 0.485) / 0.229, (0.2 - 0.456) / 0.224, (0.0 - 0.406) / 0.225]
    assert rgb == pytest.approx(expected, abs=1e-6)
    bgr = InputSpec("bgr", 255.0, (1.0, 2.0, 3.0), (1.0, 1.0, 2.0))
    assert bgr.apply(pixel).flatten().tolist() == [-1.0, 49.0, 126.0]
    assert bgr.apply(pixel.float() / 255).flatten().tolist() == pytest.approx([-1.0, 49.0, 126.0])


def test_input_spec_follows_the_encoder_unless_told_and_is_checked() -> None:
    assert built("poolnet").input_spec == IMAGENET
    assert built("poolnet", "efficientnet_lite0").input_spec == LITE
    own = InputSpec("bgr", 255.0, (1.0, 2.0, 3.0), (1.0, 1.0, 1.0))
    assert networks.create("tiny", input_spec=own).input_spec == own
    for wrong in (torch.zeros(1, 1, 4, 4), torch.zeros(3, 4, 4, dtype=torch.int64)):
        with pytest.raises(InputError, match=r"\(..., 3, height, width\) and be uint8 or floating"):
            IMAGENET.apply(wrong)
    for options, expected in (({"order": "gbr"}, "order .* 'gbr'"), ({"std": (1.0,)}, "std .* got 1")):
        with pytest.raises(InputError, match=expected):
            InputSpec(**options)


# --------------------------------------------------------------------------------- the labels of LDF


def test_split_label_by_hand() -> None:
    """A 3 x 3 object widens to 7 x 7, whose pixels are 1, 2, 3, 4 away from the outside."""
    mask = np.zeros((11, 11), dtype=bool)
    mask[4:7, 4:7] = True
    body, detail = split_label(mask)
    rings = [int(255 * (distance / 4) ** 0.5) for distance in (1, 2, 3, 4)]  # 127, 180, 220, 255
    expected = np.zeros((11, 11), dtype=np.uint8)
    for ring, value in enumerate(rings):
        expected[2 + ring : 9 - ring, 2 + ring : 9 - ring] = value
    assert body.tolist() == expected.tolist()
    assert detail.tolist() == np.where(mask, 255 - expected, 0).tolist()


def test_split_label_by_its_formula() -> None:
    """Against distances pixel by pixel, in the exact sense where they run straight or diagonally."""
    rng = np.random.default_rng(3)
    mask = cv2.blur(rng.integers(0, 256, (40, 30), dtype=np.uint8), (9, 9))
    mask = np.where(mask > 127, np.uint8(255), np.uint8(0))
    body, detail = split_label(mask)
    padded = np.pad(mask.astype(float), 2, mode="reflect")
    blurred = [[round(padded[r : r + 5, c : c + 5].mean()) for c in range(30)] for r in range(40)]
    near = np.array(blurred) > 0
    outside = np.argwhere(~near)
    away = np.zeros(near.shape)
    for r, c in np.argwhere(near):
        away[r, c] = np.hypot(*(outside - (r, c)).T).min()
    exact = 255 * np.sqrt(away / away.max())
    assert np.abs(body - exact).max() <= 4  # the chamfer is within a few grey levels
    assert (body[~near] == 0).all()
    assert (detail == np.clip(mask.astype(int) - body, 0, 255)).all()


def test_split_label_at_the_extremes() -> None:
    black, white = np.zeros((6, 6), dtype=np.uint8), np.full((6, 6), 255, dtype=np.uint8)
    assert [part.max() for part in split_label(black)] == [0, 0]
    body, detail = split_label(white)
    assert (body == 255).all()
    assert (detail == 0).all()


# ------------------------------------------------------------------- numbers of the fact sheet

# parameters, those with a gradient, float buffers, state-dict entries, GMACs at 384, maps
HEADLINES = {
    "edn": (42_845_381, 42_845_381, 152_384, 954, 20.306, 5),
    "icon": (33_088_859, 33_088_859, 57_616, 582, 24.807, 5),
    "gatenet": (128_629_796, 128_629_796, 74_880, 524, 161.915, 2),
    "ldf": (25_150_147, 25_150_147, 56_832, 543, 18.369, 6),
    "poolnet": (68_261_057, 68_207_937, 53_120, 358, 109.903, 1),
}


def n_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("name", HEADLINES)
def test_headline_numbers(name: str) -> None:
    network = on_meta(name)
    parameters, trained, buffers, entries, gmacs, maps = HEADLINES[name]
    assert n_parameters(network) == parameters
    assert sum(p.numel() for p in network.parameters() if p.requires_grad) == trained
    assert sum(b.numel() for b in network.buffers() if b.is_floating_point()) == buffers
    assert len(network.state_dict()) == entries
    assert f"{network.count_macs((384, 384)) / 1e9:.3f}" == f"{gmacs:.3f}"
    assert len(network.targets) == maps


def test_unused_parameters_are_those_of_the_sheet() -> None:
    icon = on_meta("icon")
    unused = sum(p.numel() for key, p in icon.named_parameters() if key.startswith(icon.unused))
    assert unused == 41_346
    assert [name for name in networks.names() if networks.find(name).unused] == ["icon"]


def test_facts_are_listed_for_every_network() -> None:
    assert tuple(FACTS) == networks.names()
    for name, facts in FACTS.items():
        assert facts.name == name
        assert networks.find(name).facts is facts
        # the caption of `sisod networks` names the origins of published weights
        assert (facts.origin != "sisod") == bool(networks.find(name).published_inputs)


def test_taps_of_the_three_trunks() -> None:
    sides = {
        variant: [tap.shape[-1] for tap in on_meta(name).encoder(image_on_meta(1, (384, 384)))]
        for variant, name in (("A", "edn"), ("B", "gatenet"), ("C", "poolnet"))
    }
    assert sides == {
        "A": [192, 96, 48, 24, 12],
        "B": [192, 96, 48, 24, 24],
        "C": [192, 97, 49, 25, 25],
    }


@pytest.mark.parametrize("name", sorted(HEADLINES))
def test_small_encoder_makes_small_networks(name: str) -> None:
    network = on_meta(name, "efficientnet_lite0")
    assert n_parameters(network.encoder) <= 2_958_848
    assert n_parameters(network) < 10_000_000
    assert network.count_macs((160, 160)) < 2_000_000_000
