"""Parameters, buffers, state-dict entries and multiply-adds are exactly those of the fact sheet."""

import pytest
import torch
from helpers.meta_networks import image_on_meta, on_meta
from torch import nn

from sisod import networks
from sisod.networks.registry import FACTS

torch.set_num_threads(1)  # on a shared machine two would wait for each other
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
