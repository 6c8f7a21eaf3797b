"""LDF's loss: its mask maps by one loss, its body and detail maps by plain cross-entropy."""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from sisod.losses.checks import Maps

_KINDS = ("mask", "body", "detail")
# what LDF's maps are, the prediction first
TARGETS = ("mask", "body", "detail", "mask", "body", "detail")


class DecoupledLoss(nn.Module):
    """Half the sum of the losses of LDF's six maps, two each of mask, body and detail.

    Only masks have objects to be fair to: body and detail labels are distances, and the paper says
    nothing of them, so they keep the loss of the LDF paper, and so does the factor of one half.

    Call with `logits`, a mapping from mask, body and detail to maps, or the sequence of LDF's six;
    `gt`, a mapping from the same names to labels; and `boxes` of the mask.
    """

    def __init__(self, mask_loss: nn.Module, label_loss: nn.Module) -> None:
        super().__init__()
        self.mask_loss = mask_loss
        self.label_loss = label_loss

    def forward(
        self,
        logits: Mapping[str, Maps] | Sequence[Tensor],
        gt: Mapping[str, Tensor],
        boxes: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        maps = logits if isinstance(logits, Mapping) else _by_kind(logits)
        for what, names in (("logits", maps), ("gt", gt)):
            if not isinstance(names, Mapping) or set(names) != set(_KINDS):
                came = sorted(names) if isinstance(names, Mapping) else type(names).__name__
                raise ValueError(
                    f"{what} of 'ldf' is {came}; expected a mapping of mask, body and detail"
                )
        total: Tensor = self.mask_loss(maps["mask"], gt["mask"], boxes)
        for kind in ("body", "detail"):
            total = total + self.label_loss(maps[kind], gt[kind])
        return total / 2


def _by_kind(logits: Sequence[Tensor]) -> dict[str, Maps]:
    if len(logits) != len(TARGETS):
        raise ValueError(
            f"logits of 'ldf' are {len(logits)} maps; expected {len(TARGETS)} ({', '.join(TARGETS)}), "
            "or a mapping of mask, body and detail"
        )
    return {
        kind: [map_ for map_, target in zip(logits, TARGETS, strict=True) if target == kind]
        for kind in _KINDS
    }
