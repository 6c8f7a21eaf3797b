"""Losses by the name of one of the paper's networks, and of networks that learn more than masks."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from sisod.common.arguments import check_known
from sisod.losses.checks import Maps

# the paper's appendix, "Optimization Details for Different Backbones"; GateNet and PoolNet may have any
# of bce, mse and l1 there, and have bce in the code of their authors
_PAPER_TERMS = {
    "edn": ("bce", "dice"),
    "icon": ("bce", "iou"),
    "gatenet": ("bce",),
    "ldf": ("bce", "iou"),
    "poolnet": ("bce",),
}
# what each output map of a network learns, for those of the paper that learn more than masks
_PAPER_TARGETS = {"ldf": ("mask", "body", "detail", "mask", "body", "detail")}


def paper_loss(
    name: str, mask_loss: Callable[..., nn.Module], plain_loss: Callable[..., nn.Module]
) -> nn.Module:
    """Return the loss of a network of the paper.

    Args:
        name: of the network.
        mask_loss: makes the loss of the mask maps from the terms that the paper gives them.
        plain_loss: makes that of body and detail maps.
    """
    check_known("network", name, _PAPER_TERMS)
    loss = mask_loss(*_PAPER_TERMS[name])
    if name not in _PAPER_TARGETS:
        return loss
    return DecoupledLoss(loss, plain_loss("bce"), _PAPER_TARGETS[name])


class DecoupledLoss(nn.Module):
    """The sum of the losses of all output maps, divided by the number of mask maps.

    A network that decouples its labels predicts, in every pass, a mask and auxiliary maps such as body
    and detail. Only masks hold objects to weigh alike: auxiliary labels are distances, and the paper
    does not mention them, so they keep the loss of the network's own paper, and so does the mean over
    passes.

    Args:
        mask_loss: of the mask maps, called with `boxes` and, if there are any, `labels`.
        auxiliary_loss: of all other maps.
        targets: what each map of the network learns, such as mask, body, detail, in the order of its
            output.

    Call with `input`, the sequence of maps or a mapping from target to maps; `target`, a mapping from
    target to labels; and `boxes` and `labels` of the mask, as for `SizeInvariantLoss`.
    """

    def __init__(self, mask_loss: nn.Module, auxiliary_loss: nn.Module, targets: Sequence[str]) -> None:
        super().__init__()
        self.mask_loss = mask_loss
        self.auxiliary_loss = auxiliary_loss
        self.targets = tuple(targets)

    def forward(
        self,
        input: Mapping[str, Maps] | Sequence[Tensor],  # noqa: A002  (PyTorch's name)
        target: Mapping[str, Tensor],
        boxes: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        kinds = tuple(dict.fromkeys(self.targets))
        maps = input if isinstance(input, Mapping) else self._group_by_target(input)
        for name, mapping in (("input", maps), ("target", target)):
            if not isinstance(mapping, Mapping) or set(mapping) != set(kinds):
                given = sorted(mapping) if isinstance(mapping, Mapping) else type(mapping).__name__
                raise ValueError(f"{name} is {given}; expected a mapping of {', '.join(kinds)}")
        found = {} if labels is None else {"labels": labels}  # a loss of your own may not take them
        total: Tensor = self.mask_loss(maps["mask"], target["mask"], boxes, **found)
        for kind in kinds:
            if kind != "mask":
                total = total + self.auxiliary_loss(maps[kind], target[kind])
        return total / self.targets.count("mask")

    def _group_by_target(self, maps: Sequence[Tensor]) -> dict[str, Maps]:
        if len(maps) != len(self.targets):
            raise ValueError(
                f"input is {len(maps)} maps; expected {len(self.targets)} "
                f"({', '.join(self.targets)}), or a mapping from each of these names to its maps"
            )
        grouped: dict[str, list[Tensor]] = {}
        for target, map_ in zip(self.targets, maps, strict=True):
            grouped.setdefault(target, []).append(map_)
        return dict(grouped)
