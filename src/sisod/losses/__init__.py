"""Maps -> losses: for PyTorch, size-invariant, every object weighs alike, whatever its size.

`SizeInvariantLoss("bce", "dice")(logits, gt)` in place of the plain loss is all it takes; see
`docs/losses.md`.
"""

from sisod.common.errors import require

try:
    import torch  # noqa: F401
except ModuleNotFoundError:
    require("sisod.losses", "torch")
    raise  # it is there and broken

from sisod.losses.boxes import boxes_of, collate_boxes
from sisod.losses.loss import PlainLoss, SizeInvariantLoss, plain_loss, size_invariant_loss
from sisod.losses.terms import region_term
from sisod.losses.weight_maps import weight_map

__all__ = [
    "PlainLoss",
    "SizeInvariantLoss",
    "boxes_of",
    "collate_boxes",
    "plain_loss",
    "region_term",
    "size_invariant_loss",
    "weight_map",
]
