"""The objects of ground truths: their boxes, and the cell of every pixel. For the loader's workers."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset, default_collate

from sisod.losses.checks import Target, read_target
from sisod.losses.components import find_objects
from sisod.losses.tracing import raise_if_vmapped
from sisod.scoring.counting.components import nearest_component
from sisod.scoring.loss_options import Mode, PartKind, Weighting


def boxes_of(
    gt: Tensor | ArrayLike,
    *,
    mode: Mode = "binary",
    ignore_index: int | None = None,
    min_area: float = 0.0002,
    connectivity: Literal[4, 8] = 8,
    spatial_dims: int | None = None,
) -> Tensor:
    """Return the boxes of the objects of a batch, or of one image, as integer rows.

    A row is (image, y0, x0, y1, x1), of volumes (image, z0, y0, x0, z1, y1, x1); with several classes
    the class comes after the image. In binary masks the objects are those of `sisod.partition`. Call
    this in the data loader's workers, after augmentation, and leave the rows on the CPU.

    Args:
        gt: binary masks (B, 1, H, W), (B, H, W) or (H, W), values in [0, 1], salient if at least 0.5;
            for `"multilabel"` (B, C, H, W) or (C, H, W); for `"multiclass"` integers (B, H, W) or
            (H, W). Volumes have a depth before the height.
        mode: `"binary"`; `"multilabel"`, a binary mask per class; `"multiclass"`, where class 0 is the
            background and an object is a component of one class.
        ignore_index: value of pixels that belong to nothing.
        min_area: smaller components are no objects: a share of the image, or pixels if an integer; the
            largest of an image is always one.
        connectivity: 8, in volumes the 26 neighbours; or 4, in volumes the 6 that share a face.
        spatial_dims: 2 or 3; by default from the number of dimensions of a batch. A single volume
            needs 3.

    Example:
        >>> gt = torch.zeros(2, 1, 8, 8)
        >>> gt[0, 0, 1:4, 2:6] = 1
        >>> gt[1, 0, 0, 0] = gt[1, 0, 7, 7] = 1
        >>> boxes_of(gt)
        tensor([[0, 1, 2, 4, 6],
                [1, 0, 0, 1, 1],
                [1, 7, 7, 8, 8]])
        >>> boxes_of(torch.tensor([[1, 0, 255, 7]]), mode="multiclass", ignore_index=255)
        tensor([[0, 1, 0, 0, 1, 1],
                [0, 7, 0, 3, 1, 4]])
    """
    options: dict[str, Any] = {"mode": mode, "ignore_index": ignore_index, "min_area": min_area}
    return parts_of(gt, connectivity=connectivity, spatial_dims=spatial_dims, **options)["boxes"]


def labels_of(gt: Tensor | ArrayLike, **options: Any) -> Tensor:
    """Return for every pixel of a batch the index of its cell, (B, H, W); -1 without objects.

    The objects are those of `boxes_of`, in the same order, counted from 0 in every image, and for
    `"multilabel"` in every channel of (B, C, H, W). A pixel has the index of its nearest object, of the
    lower one in a tie.

    Args:
        gt: as for `boxes_of`.
        options: `mode`, `ignore_index`, `min_area` and so on, as for `boxes_of`.

    Example:
        >>> labels_of(torch.tensor([[1.0, 0, 0, 0, 1, 1]]))
        tensor([[[0, 0, 0, 1, 1, 1]]], dtype=torch.int16)
    """
    return parts_of(gt, "cells", **options)["labels"]


def parts_of(
    gt: Tensor | ArrayLike,
    parts: PartKind = "boxes",
    *,
    spatial_dims: int | None = None,
    **options: Any,
) -> dict[str, Tensor]:
    """Return what a loss over these parts takes beside input and target: `boxes` and, if any, `labels`.

    Args:
        gt: as for `boxes_of`.
        parts: as for `SizeInvariantLoss`.
        spatial_dims: as for `boxes_of`.
        options: `mode`, `ignore_index`, `min_area` and so on, as for `boxes_of`.

    Example:
        >>> gt = torch.tensor([[[1.0, 0, 0, 1]]])
        >>> parts_of(gt, "cells")
        {'boxes': tensor([[0, 0, 0, 1, 1],
                [0, 0, 3, 1, 4]]), 'labels': tensor([[[0, 0, 1, 1]]], dtype=torch.int16)}
    """
    weighting = Weighting(parts, **options)
    return parts_in(read_target(torch.as_tensor(gt), weighting, spatial_dims), weighting)


def parts_in(target: Target, weighting: Weighting) -> dict[str, Tensor]:
    """Return what `parts_of` does for a ground truth that was read."""
    raise_if_vmapped(target.truth, "the target")
    objects = find_objects(
        target.salient(), connectivity=weighting.connectivity, min_area=weighting.min_area
    )
    columns: list[NDArray[Any]] = [objects.plane]
    if weighting.mode == "multilabel":
        columns = [*np.divmod(objects.plane, target.channels)]
    elif weighting.mode == "multiclass":
        columns.append(objects.label)
    boxes = torch.from_numpy(np.column_stack([*columns, objects.low, objects.high]))
    if weighting.parts == "boxes":
        return {"boxes": boxes}
    labels, count = objects.index_map(), np.bincount(objects.plane, minlength=objects.shape[0])
    for plane in np.flatnonzero(count):
        labels[plane] = nearest_component(labels[plane], int(count[plane]))
    small = labels.astype(np.int16) if labels.max(initial=0) <= np.iinfo(np.int16).max else labels
    shape = (-1, target.channels, *labels.shape[1:]) if weighting.mode == "multilabel" else labels.shape
    return {"boxes": boxes, "labels": torch.from_numpy(small.reshape(shape))}


def collate_boxes(boxes: Sequence[Tensor | ArrayLike]) -> Tensor:
    """Join the boxes of single images into the rows of their batch.

    For a data loader's `collate_fn`, which stacks images but cannot stack boxes. Each item is what
    `boxes_of` returns for one image, or `Partition.boxes`, four columns without that of the image.

    Example:
        >>> collate_boxes([[[1, 2, 4, 6]], [], [[0, 0, 1, 1], [7, 7, 8, 8]]])
        tensor([[0, 1, 2, 4, 6],
                [2, 0, 0, 1, 1],
                [2, 7, 7, 8, 8]])
    """
    joined = [np.empty((0, 5), dtype=np.int64)]
    for image, item in enumerate(boxes):
        rows = np.asarray(item)
        if rows.size and (rows.ndim != 2 or rows.shape[1] < 4 or rows.dtype.kind not in "iu"):
            raise ValueError(
                f"boxes of image {image} have shape {rows.shape} and dtype {rows.dtype}; expected "
                "integer rows (y0, x0, y1, x1), or those of boxes_of"
            )
        if rows.ndim == 2:
            of_image = rows if rows.shape[1] == 4 else rows[:, 1:]
            joined.append(np.insert(of_image.astype(np.int64), 0, image, axis=1))
    width = max(rows.shape[1] for rows in joined)
    return torch.from_numpy(np.concatenate([rows for rows in joined if rows.shape[1] == width]))


def collate_labels(labels: Sequence[Tensor | NDArray[Any]]) -> Tensor:
    """Stack the labels of single images to those of their batch.

    For a data loader's `collate_fn`. Each item is the labels of one image, without the axis of the
    batch: `labels_of(mask)[0]`.

    Example:
        >>> collate_labels([np.array([[0, 0, 1]]), np.array([[-1, -1, 0]])]).shape
        torch.Size([2, 1, 3])
    """
    return torch.from_numpy(np.stack([np.asarray(item) for item in labels]))


class WithParts(Dataset[Any]):
    """The items of a data set, and of each the parts of its target.

    Items are tuples such as (image, target), which get the parts as their last element, or mappings,
    which get the key `"parts"`. Give the loader `collate` too, because images differ in their number
    of objects.

    Args:
        dataset: with augmentation done; has a length and is indexed.
        loss: a `SizeInvariantLoss`, whose parts are found.
        target: index or key of the target in an item.
        spatial_dims: 3 for volumes.

    Example:
        >>> from sisod.losses import SizeInvariantLoss
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
        loss: nn.Module,
        *,
        target: int | str = 1,
        spatial_dims: int = 2,
    ) -> None:
        self.dataset = dataset
        self.weighting: Weighting = loss.weighting  # type: ignore[assignment]
        self.target = target
        self.spatial_dims = spatial_dims

    def __len__(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __getitem__(self, index: Any) -> Any:
        item: Any = self.dataset[index]
        target = torch.as_tensor(item[self.target])
        parts = parts_in(read_target(target, self.weighting, self.spatial_dims), self.weighting)
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
