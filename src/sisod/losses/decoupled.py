"""The loss of networks that learn more than masks: one loss for the masks, another for the rest."""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from sisod.losses.checks import Maps


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

    Call with `logits`, the sequence of maps or a mapping from target to maps; `gt`, a mapping from
    target to labels; and `boxes` and `labels` of the mask, as for `SizeInvariantLoss`.
    """

    def __init__(self, mask_loss: nn.Module, auxiliary_loss: nn.Module, targets: Sequence[str]) -> None:
        super().__init__()
        self.mask_loss = mask_loss
        self.auxiliary_loss = auxiliary_loss
        self.targets = tuple(targets)

    def forward(
        self,
        logits: Mapping[str, Maps] | Sequence[Tensor],
        gt: Mapping[str, Tensor],
        boxes: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of a batch, a scalar."""
        kinds = tuple(dict.fromkeys(self.targets))
        maps = logits if isinstance(logits, Mapping) else self._group_by_target(logits)
        for name, mapping in (("logits", maps), ("gt", gt)):
            if not isinstance(mapping, Mapping) or set(mapping) != set(kinds):
                given = sorted(mapping) if isinstance(mapping, Mapping) else type(mapping).__name__
                raise ValueError(f"{name} is {given}; expected a mapping of {', '.join(kinds)}")
        found = {} if labels is None else {"labels": labels}  # a loss of your own may not take them
        total: Tensor = self.mask_loss(maps["mask"], gt["mask"], boxes, **found)
        for kind in kinds:
            if kind != "mask":
                total = total + self.auxiliary_loss(maps[kind], gt[kind])
        return total / self.targets.count("mask")

    def _group_by_target(self, logits: Sequence[Tensor]) -> dict[str, Maps]:
        if len(logits) != len(self.targets):
            raise ValueError(
                f"logits are {len(logits)} maps; expected {len(self.targets)} "
                f"({', '.join(self.targets)}), or a mapping from each of these names to its maps"
            )
        grouped: dict[str, list[Tensor]] = {}
        for target, map_ in zip(self.targets, logits, strict=True):
            grouped.setdefault(target, []).append(map_)
        return dict(grouped)
