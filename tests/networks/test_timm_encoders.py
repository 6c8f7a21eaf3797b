"""Encoders of timm below the feature pyramid. They run where timm can be imported (`make wide`)."""

from pathlib import Path
from typing import Any

import pytest
import torch

from sisod import networks
from sisod.common.exceptions import InputError, MissingExtraError, UsageError
from sisod.networks import encoders
from sisod.networks.checkpoints import write_state

torch.set_num_threads(1)
ENCODER = "timm:test_convnext"  # 0.2 million parameters, made for tests


def test_without_timm_the_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sisod.common.exceptions.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError) as error:
        encoders._timm()
    assert str(error.value) == (
        "an encoder of timm needs timm; install it with: pip install 'sisod[timm]'"
    )


def test_only_the_pyramid_takes_encoders_of_timm() -> None:
    with pytest.raises(UsageError, match=f"unknown encoder '{ENCODER}'"):
        networks.create("edn", encoder=ENCODER)


@pytest.fixture
def timm() -> Any:
    """Skip, by name, where timm or the torchvision that it needs cannot be imported."""
    return pytest.importorskip(
        "timm", reason="timm cannot be imported here; see make wide", exc_type=ImportError
    )


@pytest.mark.parametrize("encoder", [ENCODER, "timm:test_mambaout", "timm:test_resnet"])
@pytest.mark.usefixtures("timm")
def test_maps_gradients_and_files(encoder: str, tmp_path: Path) -> None:
    """Channels first and last; four levels and five."""
    torch.manual_seed(0)
    network = networks.create("fpn", encoder=encoder).eval()
    x = torch.randn(2, 3, 95, 63)
    maps = network(x)
    assert [tuple(logits.shape) for logits in maps] == [(2, 1, 95, 63)] * 4
    torch.autograd.backward([(logits * torch.randn_like(logits)).mean() for logits in maps])
    without = [key for key, value in network.named_parameters() if value.grad is None]
    assert without == []
    network.save_pretrained(tmp_path / "saved")
    again = networks.from_pretrained(tmp_path / "saved")
    assert again.config() == network.config()
    assert torch.equal(again(x)[0], network(x)[0])


@pytest.mark.usefixtures("timm")
def test_swin_takes_multiples_of_its_patches() -> None:
    with torch.device("cpu"), torch.no_grad():
        network = networks.create("fpn", encoder="timm:swin_tiny_patch4_window7_224").eval()
        assert network(torch.zeros(1, 3, 64, 96))[0].shape == (1, 1, 64, 96)
        with pytest.raises(InputError) as error:
            network(torch.zeros(1, 3, 63, 96))
    assert str(error.value) == (
        "timm:swin_tiny_patch4_window7_224 cannot take 63 x 96 (Input height (63) should be "
        "divisible by patch size (4).); use a multiple of 32 as size"
    )


@pytest.mark.usefixtures("timm")
def test_input_is_prepared_as_for_its_weights() -> None:
    spec = networks.create("fpn", encoder="timm:test_resnet").input_spec
    own = networks.create("fpn", encoder="timm:test_convnext").input_spec
    assert spec.mean == own.mean == (0.5, 0.5, 0.5)
    assert networks.create("fpn").input_spec == networks.create("edn").input_spec


def test_local_weights_fill_every_tensor(timm: Any, tmp_path: Path) -> None:
    whole = timm.create_model("test_convnext", num_classes=7)
    write_state(tmp_path / "whole.safetensors", whole.state_dict(), {})
    network = networks.create("fpn", encoder=ENCODER, encoder_weights=tmp_path / "whole.safetensors")
    x = torch.randn(1, 3, 64, 64)
    expected = whole.eval().forward_intermediates(x, intermediates_only=True)
    for ours, theirs in zip(network.eval().encoder(x), expected[-4:], strict=True):
        torch.testing.assert_close(ours, theirs)
    state = whole.state_dict()
    del state["stem.0.weight"]
    write_state(tmp_path / "part.safetensors", state, {})
    with pytest.raises(InputError, match=r"1 missing \(stem\.0\.weight\)"):
        network.load_encoder(tmp_path / "part.safetensors")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("convnext_tinny", "unknown encoder of timm 'convnext_tinny'; did you mean 'convnext_tiny'?"),
        ("hf-hub:timm/resnet18", "unknown encoder of timm 'hf-hub:timm/resnet18'"),
        ("local-dir:.", "unknown encoder of timm 'local-dir:.'"),
        ("test_vit", "timm:test_vit gives maps at the strides 16, 16"),
    ],
)
@pytest.mark.usefixtures("timm")
def test_what_is_no_encoder(name: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        networks.create("fpn", encoder=f"timm:{name}")
    assert message in str(error.value)


def test_weights_that_cannot_be_fetched(timm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    create = timm.create_model

    def offline(name: str, **options: Any) -> Any:
        if options.get("pretrained"):
            raise FileNotFoundError("no connection")
        return create(name, **options)

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(InputError, match=r"test_convnext cannot be created \(FileNotFoundError"):
        networks.create("fpn", encoder=ENCODER, encoder_weights="imagenet")
