"""ICON: integrity of objects by diverse features, channel gates and capsules that vote.

Paper: Zhuge et al., Salient Object Detection via Integrity Learning, IEEE TPAMI 2022, arXiv:2101.07663;
the form with ResNet-50 (ICON-R). Authors' code and weights: github.com/mczhuge/ICON (MIT). Reimplemented
from the published facts. Index 1 is the deepest level. The capsules are those of Hinton et al., Matrix
Capsules with EM Routing, ICLR 2018, with ICON's constants.
"""

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F  # noqa: N812  (the name everybody knows it by)
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
from sisod.networks.specs import IMAGENET, InputSpec

_WIDTH = 64
_GATE_REDUCTION = 8
_N_HEADS = 5
_LEAST = 48  # of height and width: the capsules' 5 x 5 convolution needs 3 pixels at stride 16
_CAPSULES = 8  # in and out
_POSE = 4  # a pose is a 4 x 4 matrix
_KERNEL = 3
_STRIDE = 2
_ITERATIONS = 3
_EPS = 1e-12


class DFA(nn.Module):
    """Diverse feature aggregation: a plain, a cross-shaped and an atrous convolution side by side."""

    def __init__(self, width_in: int, width: int) -> None:
        super().__init__()
        self.plain = nn.Conv2d(width_in, width, 3, padding=1)
        self.cross = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width_in, width, kernel, padding=(kernel[0] // 2, kernel[1] // 2), bias=False),
                nn.BatchNorm2d(width),
            )
            for kernel in ((3, 3), (3, 1), (1, 3))
        )
        self.atrous = conv_norm(width_in, width, 3, dilation=2, act=nn.PReLU)
        self.merge = conv_norm(3 * width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of the decoder's width."""
        cross = sum(branch(x) for branch in self.cross)
        out: Tensor = self.merge(torch.cat([self.plain(x), cross, self.atrous(x)], dim=1))
        return out


class ICE(nn.Module):
    """Integrity channel enhancement: a gate computed from the energies of all channels scales each.

    The second of the three inputs repeats the first: released weights were trained like that.
    `mask` is in the published weights, but no output depends on it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cross = conv_norm(3 * width, width, 3, bias=False)
        narrow = width // _GATE_REDUCTION
        self.gate = nn.Sequential(
            nn.Conv2d(width, narrow, 1),
            nn.LayerNorm([narrow, 1, 1]),
            nn.ReLU(),
            nn.Conv2d(narrow, width, 1),
        )
        self.mask = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor, finer: Tensor | None = None) -> Tensor:
        """Return the level with its channels scaled; `finer` is the next finer level."""
        third = x if finer is None else resize(finer, x)
        y = self.cross(torch.cat([x, x, third], dim=1))
        energy = _at_least_single(y).square().sum(dim=(2, 3), keepdim=True)
        out: Tensor = y * self.gate((energy + 1e-5).sqrt().to(y.dtype))
        return out


class EMRouting(nn.Module):
    """Capsules of 3 x 3 neighbours vote for the poses of the capsules at every second position."""

    def __init__(self) -> None:
        super().__init__()
        n_votes = _KERNEL * _KERNEL * _CAPSULES
        self.weight = nn.Parameter(torch.empty(n_votes, _CAPSULES, _POSE, _POSE))
        self.beta_u = nn.Parameter(torch.zeros(1, 1, _CAPSULES, 1))
        self.beta_a = nn.Parameter(torch.zeros(1, 1, _CAPSULES))
        nn.init.kaiming_uniform_(self.weight)

    def forward(self, pose: Tensor, activation: Tensor) -> Tensor:
        """Return the poses that the votes agree on.

        Args:
            pose: (B, 128, H, W), channel = capsule * 16 + element.
            activation: (B, 8, H, W) in [0, 1].
        """
        votes = _at_least_single(self._votes(pose))
        routed = self._route(votes, _neighbours(_at_least_single(activation), 1).squeeze(-1))
        height, width = (-(-side // _STRIDE) for side in pose.shape[-2:])
        return routed.view(pose.shape[0], height, width, pose.shape[1]).permute(0, 3, 1, 2)

    def _votes(self, pose: Tensor) -> Tensor:
        """Return (positions, 72, 8, 16): each neighbour's pose times its matrix for each capsule."""
        poses = _neighbours(pose, _POSE * _POSE)
        matrices = poses.reshape(*poses.shape[:2], _POSE, _POSE)
        return torch.einsum("nixk,ijky->nijxy", matrices, self.weight).flatten(-2)

    def _route(self, votes: Tensor, activation: Tensor) -> Tensor:
        """Return the mean pose of each capsule, (positions, 1, 8, 16), after three rounds."""
        share = torch.ones_like(votes[..., 0])  # r_ij
        for iteration in range(_ITERATIONS):
            # M: mean and variance of the votes of each capsule
            weight = share * activation[..., None]
            mass = weight.sum(dim=1, keepdim=True)
            part = (weight / (mass + _EPS))[..., None]
            mean = (part * votes).sum(dim=1, keepdim=True)
            distance = (votes - mean).square()
            variance = (part * distance).sum(dim=1, keepdim=True) + _EPS
            if iteration == _ITERATIONS - 1:
                break
            # E: votes are reassigned to the capsules that explain them; common factors cancel
            inverse_temperature = 0.01 * (1 - 0.95 ** (iteration + 1))
            log_variance = variance.log()
            cost = (self.beta_u + 0.5 * log_variance).sum(dim=-1) * mass
            log_active = F.logsigmoid(inverse_temperature * (self.beta_a - cost))
            log_likelihood = -(0.5 * log_variance + distance / (2 * variance)).sum(dim=-1)
            share = (log_likelihood + log_active).softmax(dim=-1)
        return mean


def _at_least_single(x: Tensor) -> Tensor:
    """Return the tensor in float32 or better: float16 is too coarse for sums of many squares."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _neighbours(x: Tensor, elements: int) -> Tensor:
    """Return (B * positions, 72, elements): of each position 9 neighbours with 8 capsules each."""
    columns = F.unfold(x, _KERNEL, padding=1, stride=_STRIDE)
    split = columns.reshape(x.shape[0], _CAPSULES, elements, _KERNEL * _KERNEL, columns.shape[-1])
    return split.permute(0, 4, 3, 1, 2).flatten(2, 3).flatten(0, 1)


class PWV(nn.Module):
    """Part-whole verification: capsules of the three deep levels vote on what belongs together.

    `fuse1` is in the published weights, but no output depends on it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.merge = conv_norm(3 * width, width, 3, bias=False)
        pose_width = _CAPSULES * _POSE * _POSE
        # padding 1 with a kernel of 5 removes two rows and columns
        self.activation = _conv_bn(width, _CAPSULES, 5)
        self.pose = _conv_bn(width, pose_width, 5)
        self.routing = EMRouting()
        self.routed_norm = nn.BatchNorm2d(pose_width)
        self.rebuild = conv_norm(pose_width, width, 3, bias=False)
        self.join = nn.ModuleList(conv_norm(2 * width, width, 3, bias=False) for _ in range(3))
        self.fuse1 = two_convs(width, width)
        self.fuse2 = two_convs(width, width)
        self.fuse3 = two_convs(width, width)

    def forward(self, x1: Tensor, x2: Tensor, x3: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the three levels, all at the size of the second, and the pose feature."""
        levels = (resize(x1, x2), x2, resize(x3, x2))
        merged = self.merge(torch.cat(levels, dim=1))
        routed = self.routing(self.pose(merged), self.activation(merged).sigmoid())
        pose = self.rebuild(self.routed_norm(routed))
        whole = resize(pose, x2)
        y1, y2, y3 = (
            join(torch.cat([level, whole], dim=1)) for join, level in zip(self.join, levels, strict=True)
        )
        y2 = self.fuse2(y2 * y1) + y2
        y3 = self.fuse3(y3 * y2) + y3
        return y1, y2, y3, pose


class ICON(Network):
    """Five maps: the finest level, then the deeper three from the deepest on, and the pose feature.

    Args:
        encoder: `"resnet50"`, as published, or `"efficientnet_lite0"`.
        input_spec: how images are prepared, if not as for the encoder's ImageNet weights.

    Example:
        >>> with torch.device("meta"):  # shapes without numbers
        ...     maps = ICON("efficientnet_lite0").eval()(torch.empty(1, 3, 64, 96))
        >>> len(maps), tuple(maps[0].shape)
        (5, (1, 1, 64, 96))
    """

    facts: ClassVar[Facts] = FACTS["icon"]
    targets: ClassVar[tuple[Target, ...]] = ("mask", "mask", "mask", "mask", "mask")
    published_inputs: ClassVar[Mapping[str, InputSpec]] = {
        # BGR images normalised with mean and std of RGB: released weights were trained like that
        "authors": InputSpec("bgr", 255.0, (124.55, 118.90, 102.94), (56.77, 55.97, 57.50)),
        "si-sod": IMAGENET,
    }
    unused = ("ice1.mask.", "ice2.mask.", "pwv.fuse1.")
    renames = (
        (r"encoder\.", "encoder."),
        (r"(dfa\d)\.oriConv\.", r"\1.plain."),
        *conv_norm_rules(r"(dfa\d)\.asyConv\.square_{}\.", r"\1.cross.0."),
        *conv_norm_rules(r"(dfa\d)\.asyConv\.ver_{}\.", r"\1.cross.1."),
        *conv_norm_rules(r"(dfa\d)\.asyConv\.hor_{}\.", r"\1.cross.2."),
        (r"(dfa\d)\.atrConv\.", r"\1.atrous."),
        *conv_norm_rules(r"(dfa\d)\.{}2d\.", r"\1.merge."),
        *conv_norm_rules(r"(ice\d)\.{}_cross\.", r"\1.cross."),
        (r"(ice\d)\.conv_mask\.", r"\1.mask."),
        (r"(ice\d)\.channel_add_conv\.", r"\1.gate."),
        *conv_norm_rules(r"pwv\.{}_trans\.", "pwv.merge."),
        *conv_norm_rules(r"pwv\.{}_m\.", "pwv.activation."),
        *conv_norm_rules(r"pwv\.{}_pose\.", "pwv.pose."),
        (r"pwv\.emrouting\.W$", "pwv.routing.weight"),
        (r"pwv\.emrouting\.(beta_[ua])$", r"pwv.routing.\1"),
        (r"pwv\.bn_caps\.", "pwv.routed_norm."),
        *conv_norm_rules(r"pwv\.{}_rec\.", "pwv.rebuild."),
        *(rule for n in (1, 2, 3) for rule in conv_norm_rules(rf"pwv\.{{}}{n}\.", f"pwv.join.{n - 1}.")),
        (r"pwv\.(fuse\d)\.", r"pwv.\1."),
        (r"fuse\.", "fuse."),
        *((rf"predtrans{n}\.", f"heads.{n - 1}.") for n in range(1, 6)),
    )

    def __init__(self, encoder: str = "resnet50", input_spec: InputSpec | None = None) -> None:
        super().__init__(encoder, input_spec)
        trunk = create_encoder(encoder)
        width = decoder_width(encoder, _WIDTH)
        deepest_first = trunk.channels[:0:-1]
        self.dfa1, self.dfa2, self.dfa3, self.dfa4 = (DFA(width_in, width) for width_in in deepest_first)
        self.ice1 = ICE(width)
        self.ice2 = ICE(width)
        self.pwv = PWV(width)
        self.fuse = two_convs(width, width)
        self.heads = nn.ModuleList(nn.Conv2d(width, 1, 3, padding=1) for _ in range(_N_HEADS))
        init_kaiming(self)
        self.encoder = trunk  # initialised by itself

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return five logit maps: the finest, then those of levels 1, 2, 3 and of the pose."""
        _, level4, level3, level2, level1 = self.encoder(x)
        check_fits(min(level2.shape[-2:]) >= 3, x, "icon", least=_LEAST)
        x1, x2, x3, x4 = self.dfa1(level1), self.dfa2(level2), self.dfa3(level3), self.dfa4(level4)
        # each module is used for two levels, with the same weights
        y1, y2 = self.ice1(x1), self.ice1(x2, x3)
        y3, y4 = self.ice2(x3, x4), self.ice2(x4)
        z1, z2, z3, pose = self.pwv(y1, y2, y3)
        z3 = resize(z3, y4)
        z4 = self.fuse(y4 * z3) + y4
        features = (z1, z2, z3, z4, pose)
        first, second, third, finest, of_pose = (
            resize(head(feature), x) for head, feature in zip(self.heads, features, strict=True)
        )
        return finest, first, second, third, of_pose


def _conv_bn(width_in: int, width: int, kernel: int) -> nn.Sequential:
    conv = nn.Conv2d(width_in, width, kernel, padding=1, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(width))
