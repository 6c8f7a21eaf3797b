"""Maps -> losses: size-invariant losses for PyTorch, in which every object has the same weight.

Use `BalancedLoss()(input, target)` or `SizeInvariantLoss("bce", "dice")(input, target)` in place of the
plain loss; see `docs/losses.md`.
"""

from sisod.common.exceptions import require

try:
    import torch  # noqa: F401
except ModuleNotFoundError:
    require("sisod.losses", "torch")
    raise  # it is installed but broken

from sisod.losses.loss import (
    BalancedLoss,
    PlainLoss,
    SizeInvariantLoss,
    plain_loss,
    size_invariant_loss,
)
from sisod.losses.objects import (
    WithParts,
    boxes_of,
    collate_boxes,
    collate_labels,
    labels_of,
    parts_of,
)
from sisod.losses.terms import dice, focal, region_term, tversky
from sisod.losses.weighting import weight_map

__all__ = [
    "BalancedLoss",
    "PlainLoss",
    "SizeInvariantLoss",
    "WithParts",
    "boxes_of",
    "collate_boxes",
    "collate_labels",
    "dice",
    "focal",
    "labels_of",
    "parts_of",
    "plain_loss",
    "region_term",
    "size_invariant_loss",
    "tversky",
    "weight_map",
]
