"""Parameters, buffers, state-dict entries and multiply-adds are exactly those of the fact sheet."""

import pytest
import torch
from helpers.meta_networks import image_on_meta, on_meta
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

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
TRUNK = {
    "encoder": 23_508_032,
    "encoder.conv1": 9_408,
    "encoder.bn1": 128,
    "encoder.layer1": 215_808,
    "encoder.layer2": 1_219_584,
    "encoder.layer3": 7_098_368,
    "encoder.layer4": 14_964_736,
}
# a name, or several whose sum the sheet gives
PARAMETERS: dict[str, dict[str, int]] = {
    "edn": {
        "encoder": 23_454_912,
        "extreme5": 4_595_712,
        "extreme6": 3_284_992,
        "lateral top_down fuse": 11_508_384,
        "lateral": 1_060_432,
        "top_down": 249_040,
        "fuse": 10_198_912,
        "heads": 1_381,
        **{f"heads.{i}": n for i, n in enumerate((33, 65, 257, 513, 513))},
        **{
            f"lateral.{i}": n
            for i, n in enumerate((1_072, 8_288, 65_920, 262_912, 525_056, 65_728, 131_456))
        },
        **{f"top_down.{i}": n for i, n in enumerate((1_072, 8_288, 65_920, 131_840, 33_536, 8_384))},
        **{
            f"fuse.{i}.{block}": n
            for i, n in enumerate((13_632, 53_888, 530_432, 2_117_632, 2_117_632, 133_120, 133_120))
            for block in (0, 1)
        },
    },
    "icon": {
        **TRUNK,
        "dfa1": 4_436_801,
        "dfa2": 2_274_113,
        "dfa3": 1_192_769,
        "dfa4": 652_097,
        "ice1": 111_897,
        "ice2": 111_897,
        "ice1.gate.1": 16,
        "ice1.mask": 65,
        "pwv": 757_152,
        "fuse": 41_216,
        "pwv.merge.0": 110_592,
        "pwv.merge.1": 128,
        "pwv.activation.0": 12_800,
        "pwv.activation.1": 16,
        "pwv.pose.0": 204_800,
        "pwv.pose.1": 256,
        "pwv.routing": 9_232,
        "pwv.routed_norm": 256,
        "pwv.rebuild.0": 73_728,
        "pwv.rebuild.1": 128,
        **{f"pwv.join.{i}": 73_856 for i in range(3)},
        **{f"pwv.fuse{i}": 41_216 for i in (1, 2, 3)},
        **{f"heads.{i}": 577 for i in range(5)},
    },
    "gatenet": {
        **TRUNK,
        "gates": 16_417_168,
        **{f"gates.{i}": n for i, n in enumerate((2_306, 185_667, 739_971, 3_098_692, 12_390_532))},
        "transition.4": 81_027_080,
        "transition.4.0": 81_026_055,
        "transition.4.0.reduce": 9_438_721,
        "transition.4.0.point": 2_100_225,
        **{f"transition.4.0.atrous.{i}": 18_877_441 for i in range(3)},
        "transition.4.0.pooled": 2_100_225,
        "transition.4.0.merge": 10_491_905,
        "transition.4.0.out": 262_656,
        **{f"transition.{i}": n for i, n in enumerate((37_057, 147_649, 590_209, 2_360_065))},
        **{f"decoder.{i}": n for i, n in enumerate((577, 37_057, 73_921, 295_297, 1_180_417))},
        "parallel": 2_955_267,
    },
    "ldf": {
        **TRUNK,
        **{f"reduce_body.{i}": n for i, n in enumerate((168_192, 102_656, 69_888, 53_504))},
        **{f"reduce_detail.{i}": n for i, n in enumerate((168_192, 102_656, 69_888, 53_504))},
        "reduce_body reduce_detail": 788_480,
        "decoder_body": 148_224,
        "decoder_detail": 148_224,
        "interaction": 481_536,
        "head_body": 577,
        "head_detail": 577,
        "head_mask": 74_497,
    },
    "poolnet": {
        **TRUNK,
        "encoder guidance guides": 40_088_640,
        "guidance.reduce": 1_048_576,
        **{f"guidance.pooled.{i}": 262_144 for i in range(3)},
        "guidance.merge": 9_437_184,
        "guides": 5_308_416,
        "convert": 1_777_664,
        "fam": 26_394_624,
        **{f"fam.{i}": n for i, n in enumerate((11_796_480, 8_847_360, 2_949_120, 2_211_840, 589_824))},
        "score": 129,
    },
}
# GMACs, as text to keep the sheet's number of decimals
MACS: dict[str, dict[str, str]] = {
    "edn": {
        "encoder": "12.011",
        "extreme5": "0.222",
        "extreme6": "0.037",
        "lateral top_down fuse": "8.034",
        "heads": "0.003",
    },
    "icon": {
        "encoder": "12.011",
        "dfa1": "0.639",
        "dfa2": "1.309",
        "dfa3": "2.746",
        "dfa4": "6.002",
        "ice1": "0.080",
        "ice2": "1.274",
        "pwv": "0.357",
        "fuse": "0.377",  # 40,960 x 96 x 96 = 377,487,360, which the sheet rounds up
    },
    "gatenet": {
        "encoder": "18.24",
        "encoder.layer4": "8.61",
        "transition.4": "15.55",
        "gates": "12.42",
        "transition.0 transition.1 transition.2 transition.3": "5.44",
        "decoder": "1.38",
        "parallel": "108.89",
    },
    "ldf": {
        "encoder": "12.011",
        "reduce_body reduce_detail": "1.469",
        "decoder_body": "0.902",
        "decoder_detail": "0.902",
        "interaction": "1.693",
        "head_mask": "1.370",
        "head_body head_detail": "0.021",
    },
    "poolnet": {
        "encoder guidance guides": "62.737",
        "encoder": "19.024",
        "convert": "2.216",
        **{f"fam.{i}": n for i, n in enumerate(("3.395", "4.694", "11.545", "18.091", "7.219"))},
    },
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


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_of_every_submodule(name: str) -> None:
    network = on_meta(name)
    found = {
        parts: sum(n_parameters(network.get_submodule(part)) for part in parts.split())
        for parts in PARAMETERS[name]
    }
    assert found == PARAMETERS[name]


@pytest.mark.parametrize("name", MACS)
def test_multiply_adds_of_every_submodule(name: str) -> None:
    network = on_meta(name)
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        network(image_on_meta(1, (384, 384)))
    flops = {
        path.partition(".")[2]: sum(counts.values())
        for path, counts in counter.get_flop_counts().items()
    }

    def gmacs(part: str) -> float:
        """Of a module, or of all parts of a list, which is never called itself."""
        if part in flops:
            return flops[part] / 2e9
        return sum(gmacs(f"{part}.{child}") for child, _ in network.get_submodule(part).named_children())

    found = {
        parts: f"{sum(gmacs(part) for part in parts.split()):.{len(text.partition('.')[2])}f}"
        for parts, text in MACS[name].items()
    }
    assert found == MACS[name]


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


def test_tiny_is_small() -> None:
    assert n_parameters(on_meta("tiny")) < 1_000_000


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
