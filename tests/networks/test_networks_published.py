"""Published weights load strictly, and give the maps of an independent implementation."""

import pytest
import torch
from helpers import published_networks
from torch import Tensor

from sisod import networks
from sisod.common.exceptions import InputError
from sisod.networks.specs import IMAGENET, InputSpec

torch.set_num_threads(1)  # on a shared machine two would wait for each other
ENTRIES = {"edn": 954, "icon": 582, "gatenet": 524, "ldf": 543, "poolnet": 358}
FIGURES = ((124.55, 118.90, 102.94), (56.77, 55.97, 57.50))


@pytest.fixture(scope="module")
def ldf_state() -> dict[str, Tensor]:
    """A state dict as published; LDF's is the smallest."""
    weights = published_networks.Weights()
    with torch.no_grad():
        published_networks.ldf(weights, torch.zeros(1, 3, 32, 32))
    return dict(weights)


@pytest.mark.parametrize("name", published_networks.NETWORKS)
@torch.no_grad()
@pytest.mark.slow
def test_maps_are_the_published_ones(name: str) -> None:
    """Within 1e-5 at 384 x 384 in single precision, and to the last digits in double."""
    # nothing normalises PoolNet's decoder: its logits would reach 3, and rounding errors with them
    weights = published_networks.Weights(seed=1, gain=0.9 if name == "poolnet" else 1.0)
    image = torch.randn(1, 3, 384, 384, generator=torch.Generator().manual_seed(2))
    expected = published_networks.NETWORKS[name](weights, image)
    assert len(weights) == ENTRIES[name]
    network = networks.load_published(name, weights).eval()
    for ours, theirs in _pairs(name, network(image), expected):
        assert theirs.std() > 0.01  # or there would be nothing to compare
        assert (ours - theirs).abs().max() <= 1e-5
    # without rounding in the way, what is left over would be another network
    side = 128 if name == "poolnet" else 64
    small = image[:, :, :side, :side].double()
    for key, value in weights.items():
        weights[key] = value.double()
    expected = published_networks.NETWORKS[name](weights, small)
    for ours, theirs in _pairs(name, network.double()(small), expected):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)


def _pairs(name: str, maps: tuple[Tensor, ...], expected: list[Tensor]) -> list[tuple[Tensor, Tensor]]:
    """Our maps, the prediction first, each with the published one."""
    order = published_networks.ORDER[name]
    return [(ours, expected[index]) for ours, index in zip(maps, order, strict=True)]


def test_files_of_data_parallel_training_and_older_ones_load(ldf_state: dict[str, Tensor]) -> None:
    odd = {
        f"module.{key}": value.half() if value.is_floating_point() else value
        for key, value in ldf_state.items()
        if not key.endswith("num_batches_tracked")
    }
    odd["module.bkbone.fc.weight"] = torch.zeros(1000, 2048)
    odd["module.bkbone.fc.bias"] = torch.zeros(1000)
    network = networks.load_published("ldf", odd)
    assert network.state_dict()["encoder.bn1.num_batches_tracked"] == 0
    assert network.state_dict()["head_body.bias"].dtype == torch.float32


def test_every_tensor_must_find_its_place(ldf_state: dict[str, Tensor]) -> None:
    broken = dict(ldf_state)
    del broken["linearb.bias"]
    broken["linearc.bias"] = torch.zeros(1)
    broken["lineard.bias"] = torch.zeros(2)
    expected = (
        r"ldf checkpoint: the weights do not fit this LDF: 1 missing \(head_body.bias\); "
        r"1 not known \(linearc.bias\); 1 of another shape or .* \(head_detail.bias \(2,\)"
    )
    with pytest.raises(InputError, match=expected):
        networks.load_published("ldf", broken)


def test_what_published_weights_expect_of_an_image(ldf_state: dict[str, Tensor]) -> None:
    expected = {
        ("edn", "authors"): IMAGENET,
        ("edn", "si-sod"): IMAGENET,
        ("gatenet", "authors"): IMAGENET,
        ("gatenet", "si-sod"): IMAGENET,
        ("icon", "authors"): InputSpec("bgr", 255.0, *FIGURES),
        ("icon", "si-sod"): IMAGENET,
        ("ldf", "authors"): InputSpec("rgb", 255.0, *FIGURES),
        ("poolnet", "authors"): InputSpec(
            "bgr", 255.0, (104.00699, 116.66877, 122.67892), (1.0, 1.0, 1.0)
        ),
        ("poolnet", "si-sod"): IMAGENET,
    }
    found = {
        (name, origin): spec
        for name in networks.names()
        for origin, spec in networks.find(name).published_inputs.items()
    }
    assert found == expected
    assert networks.load_published("ldf", ldf_state).input_spec == expected["ldf", "authors"]
    for name, origin in (("ldf", "si-sod"), ("tiny", "authors")):
        with pytest.raises(InputError, match=f"weights of {name} '{origin}'"):
            networks.load_published(name, ldf_state, origin=origin)
