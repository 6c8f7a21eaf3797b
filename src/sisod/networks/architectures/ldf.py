"""LDF: one branch for the bodies of objects and one for their details, which exchange features.

Paper: Wei et al., Label Decoupling Framework for Salient Object Detection, CVPR 2020, arXiv:2008.11048.
Authors' code and weights: github.com/weijun88/LDF (no licence file). Reimplemented from the published
facts.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import cv2
import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
from numpy.typing import NDArray
from torch import Tensor, nn

from sisod.networks.architectures import (
    check_fits,
    conv_norm,
    init_kaiming,
    resize,
    two_convs,
)
from sisod.networks.checkpoints import conv_norm_rules
from sisod.networks.encoders import create_encoder, decoder_width
from sisod.networks.network import Network, Target
from sisod.networks.registry import FACTS, Facts
from sisod.networks.specs import InputSpec

_WIDTH = 64
_N_LEVELS = 4
_LEAST = 32  # of height and width: the interaction halves three times from stride 4 on
_BLUR = 5  # side of the box filter that widens the mask before the distance transform


class Decoder(nn.Module):
    """Top-down decoder: each level adds the upsampled output of the deeper one; run once per pass."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.levels = nn.ModuleList(conv_norm(width, width, 3) for _ in range(_N_LEVELS))

    def forward(self, features: list[Tensor], feedback: list[Tensor] | None = None) -> Tensor:
        """Return the finest map; both lists start with the deepest level."""
        above: Tensor | None = None
        for index, (level, feature) in enumerate(zip(self.levels, features, strict=True)):
            here = feature if feedback is None else feature + resize(feedback[index], feature)
            above = level(here if above is None else here + resize(above, here))
        assert above is not None  # noqa: S101  (for the type checker)
        return above


class Interaction(nn.Module):
    """Encodes the features of both branches together and returns feedback for each of them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            conv_norm(2 * width if level == 0 else width, width, 3) for level in range(_N_LEVELS)
        )
        self.body = nn.ModuleList(conv_norm(width, width, 3) for _ in range(_N_LEVELS))
        self.detail = nn.ModuleList(conv_norm(width, width, 3) for _ in range(_N_LEVELS))

    def forward(self, body: Tensor, detail: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Return the feedback for the body and for the detail decoder, deepest first."""
        x = self.down[0](torch.cat([body, detail], dim=1))
        levels = [x]
        for down in self.down[1:]:
            x = down(F.max_pool2d(x, 2))
            levels.append(x)
        bodies = [conv(level) for conv, level in zip(self.body, levels, strict=True)]
        details = [conv(level) for conv, level in zip(self.detail, levels, strict=True)]
        return bodies[::-1], details[::-1]


class LDF(Network):
    """Six maps: mask of the second pass; body, detail, mask of the first; body, detail of the second.

    `targets` says what each map learns; `split_label` derives the labels from a mask.

    Args:
        encoder: `"resnet50"`, as published, or `"efficientnet_lite0"`.
        input_spec: how images are prepared, if not as for the encoder's ImageNet weights.

    Example:
        >>> with torch.device("meta"):  # shapes without numbers
        ...     maps = LDF("efficientnet_lite0").eval()(torch.empty(1, 3, 64, 96))
        >>> len(maps), tuple(maps[0].shape)
        (6, (1, 1, 64, 96))
    """

    facts: ClassVar[Facts] = FACTS["ldf"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "body", "detail", "mask", "body", "detail")
    published_inputs: ClassVar[Mapping[str, InputSpec]] = {
        "authors": InputSpec("rgb", 255.0, (124.55, 118.90, 102.94), (56.77, 55.97, 57.50))
    }
    # the authors' `encoder` is the interaction, their `conv2d` a reduction
    renames = (
        (r"bkbone\.", "encoder."),
        *((rf"conv{n}b\.", f"reduce_body.{5 - n}.") for n in range(2, 6)),
        *((rf"conv{n}d\.", f"reduce_detail.{5 - n}.") for n in range(2, 6)),
        *conv_norm_rules(r"decoderb\.{}(\d)\.", r"decoder_body.levels.\1."),
        *conv_norm_rules(r"decoderd\.{}(\d)\.", r"decoder_detail.levels.\1."),
        *(
            rule
            for n in range(1, 5)
            for end, part in (("", "down"), ("b", "body"), ("d", "detail"))
            for rule in conv_norm_rules(rf"encoder\.{{}}{n}{end}\.", f"interaction.{part}.{n - 1}.")
        ),
        (r"linearb\.", "head_body."),
        (r"lineard\.", "head_detail."),
        (r"linear\.", "head_mask."),
    )

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        trunk = create_encoder(encoder)
        width = decoder_width(encoder, _WIDTH)
        deepest_first = trunk.channels[:0:-1]
        self.reduce_body = nn.ModuleList(two_convs(width_in, width) for width_in in deepest_first)
        self.reduce_detail = nn.ModuleList(two_convs(width_in, width) for width_in in deepest_first)
        self.decoder_body = Decoder(width)
        self.decoder_detail = Decoder(width)
        self.interaction = Interaction(width)
        self.head_body = nn.Conv2d(width, 1, 3, padding=1)
        self.head_detail = nn.Conv2d(width, 1, 3, padding=1)
        self.head_mask = nn.Sequential(
            *conv_norm(2 * width, width, 3), nn.Conv2d(width, 1, 3, padding=1)
        )
        init_kaiming(self)
        self.encoder = trunk  # initialised by itself

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return six logit maps in the order of `targets`; both passes share decoders and heads."""
        deepest_first = self.encoder(x)[:0:-1]
        check_fits(min(deepest_first[-1].shape[-2:]) >= 8, x, "ldf", least=_LEAST)
        bodies = [conv(level) for conv, level in zip(self.reduce_body, deepest_first, strict=True)]
        details = [conv(level) for conv, level in zip(self.reduce_detail, deepest_first, strict=True)]
        body1, detail1 = self.decoder_body(bodies), self.decoder_detail(details)
        for_body, for_detail = self.interaction(body1, detail1)
        body2 = self.decoder_body(bodies, for_body)
        detail2 = self.decoder_detail(details, for_detail)
        first, second = self._heads(body1, detail1), self._heads(body2, detail2)
        return tuple(resize(logits, x) for logits in (second[2], *first, *second[:2]))

    @staticmethod
    def split_mask(mask: NDArray[Any]) -> dict[str, NDArray[np.uint8]]:
        """Return the body and the detail label of a mask, see `split_label`."""
        body, detail = split_label(mask)
        return {"body": body, "detail": detail}

    def _heads(self, body: Tensor, detail: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mask = self.head_mask(torch.cat([body, detail], dim=1))
        return self.head_body(body), self.head_detail(detail), mask


def split_label(mask: NDArray[Any]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Return the body and the detail label of a mask, both in 0..255.

    The body is the root of the distance to the object's edge, scaled to 255; the detail is the rest of
    the mask. As in the authors' script, and unlike in their paper, the body extends two pixels beyond
    the object, and the maximum is that of the image, not of each object. If no pixel is farther than
    that from an object, there is no edge and the body is 255 everywhere.

    Args:
        mask: (height, width), bool or uint8 in 0..255.

    Example:
        >>> mask = np.zeros((7, 7), dtype=np.uint8)
        >>> mask[3, 3] = 255
        >>> body, detail = split_label(mask)
        >>> body[3].tolist()  # distances 1, 2, 3, 2, 1 from the widened object's edge
        [0, 147, 208, 255, 208, 147, 0]
        >>> int(detail.max())
        0
    """
    grey = np.where(mask, np.uint8(255), np.uint8(0)) if mask.dtype == np.bool_ else mask
    near = cv2.blur(grey, (_BLUR, _BLUR))
    if near.all():
        body = np.full(grey.shape, 255, dtype=np.uint8)
    else:
        root = np.sqrt(cv2.distanceTransform(near, cv2.DIST_L2, 5))
        scaled = root / max(root.max(), np.float32(1e-12)) * np.float32(255)
        body = np.floor(scaled).astype(np.uint8)
    return body, np.where(grey > body, grey - body, np.uint8(0))
