"""A data set whose parts are found after augmentation, in the workers of the data loader."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch.utils.data import Dataset, default_collate

from sisod.losses.loss import PlainLoss, SizeInvariantLoss
from sisod.losses.objects import collate_boxes, collate_labels, parts_of


class WithParts(Dataset[Any]):
    """The items of a data set, and of each the parts of its target.

    Items are tuples such as (image, target), which get the parts as their last element, or mappings,
    which get the key `"parts"`. Give the loader `collate` too, because images differ in their number
    of objects.

    Args:
        dataset: with augmentation done; has a length and is indexed.
        loss: the parts are those of this loss.
        target: index or key of the target in an item.
        spatial_dims: 3 for volumes.

    Example:
        >>> import torch
        >>> from torch.utils.data import DataLoader
        >>> mask = torch.zeros(1, 8, 8)
        >>> mask[0, 2:4, 2:4] = 1
        >>> loss = SizeInvariantLoss("bce", "dice")
        >>> data = WithParts([(torch.rand(3, 8, 8), mask)] * 4, loss)
        >>> loader = DataLoader(data, batch_size=2, collate_fn=data.collate)
        >>> for images, masks, parts in loader:
        ...     loss(torch.zeros(2, 1, 8, 8), masks, **parts)
        tensor(0.8931)
        tensor(0.8931)
    """

    def __init__(
        self,
        dataset: Dataset[Any] | Sequence[Any],
        loss: SizeInvariantLoss | PlainLoss,
        *,
        target: int | str = 1,
        spatial_dims: int = 2,
    ) -> None:
        self.dataset = dataset
        self.weighting = loss.weighting
        self.target = target
        self.spatial_dims = spatial_dims

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: Any) -> Any:
        item: Any = self.dataset[index]
        weighting = self.weighting
        parts = parts_of(
            item[self.target],
            weighting.parts,
            mode=weighting.mode,
            ignore_index=weighting.ignore_index,
            min_area=weighting.min_area,
            connectivity=weighting.connectivity,
            spatial_dims=self.spatial_dims,
        )
        return {**item, "parts": parts} if isinstance(item, Mapping) else (*item, parts)

    @staticmethod
    def collate(items: Sequence[Any]) -> Any:
        """Stack items as PyTorch does, and join their parts."""
        if isinstance(items[0], Mapping):
            others = [{key: value for key, value in item.items() if key != "parts"} for item in items]
            return {**default_collate(others), "parts": _join([item["parts"] for item in items])}
        return [*default_collate([item[:-1] for item in items]), _join([item[-1] for item in items])]


def _join(parts: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    joined = {"boxes": collate_boxes([part["boxes"] for part in parts])}
    if "labels" in parts[0]:
        joined["labels"] = collate_labels([part["labels"][0] for part in parts])
    return joined
