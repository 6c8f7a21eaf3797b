"""Boxes and labels of the objects of a batch: components as in the evaluation, cells, blobs."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sisod.common.arguments import check_choice
from sisod.losses.checks import as_array, check_tensor, check_unit_range, is_batched, is_readable
from sisod.scoring.counting.components import nearest_component
from sisod.scoring.partition import Partition, check_partition_settings, cut_mask


def boxes_of(
    gt: Tensor | ArrayLike, *, connectivity: Literal[4, 8] = 8, min_area: float = 0.0002
) -> Tensor:
    """Return the boxes of a batch of masks, or of one mask, as rows (image, y0, x0, y1, x1).

    The components are those of `sisod.partition`: 8-connected, without those below `min_area` but
    always with the largest. Call it in the data loader's workers, after augmentation. The rows are on
    the CPU, whatever the device of `gt`; leave them there: the loss then knows the number of boxes of
    each image without waiting for the device.

    Args:
        gt: (B, 1, H, W), (B, H, W) or one mask (H, W), values in [0, 1]; salient if at least 0.5.
        connectivity: as for `sisod.partition`.
        min_area: as for `sisod.partition`.

    Example:
        >>> gt = torch.zeros(2, 1, 8, 8)
        >>> gt[0, 0, 1:4, 2:6] = 1
        >>> gt[1, 0, 0, 0] = gt[1, 0, 7, 7] = 1
        >>> boxes_of(gt)
        tensor([[0, 1, 2, 4, 6],
                [1, 0, 0, 1, 1],
                [1, 7, 7, 8, 8]])
    """
    check_partition_settings(kind="boxes", connectivity=connectivity, min_area=min_area, alpha="ratio")
    return collate_boxes(
        [
            cut_mask(np.ascontiguousarray(mask), connectivity=connectivity, min_area=min_area).boxes
            for mask in as_array(salient_masks(gt))
        ]
    )


def salient_masks(gt: Tensor | ArrayLike) -> Tensor:
    """Return a batch of masks, or one mask, as booleans (B, H, W) on the CPU."""
    tensor = torch.as_tensor(gt)
    raise_if_vmapped(tensor, "gt")
    masks = tensor.detach().cpu()
    if masks.ndim not in (2, 3, 4) or (masks.ndim == 4 and masks.shape[1] != 1):
        raise ValueError(
            f"gt has shape {tuple(masks.shape)}; expected (B, 1, H, W), (B, H, W) or (H, W)"
        )
    check_unit_range(masks, "gt")
    return (masks if masks.dtype == torch.bool else masks >= 0.5).reshape(-1, *masks.shape[-2:])


def collate_boxes(boxes: Sequence[Tensor | ArrayLike]) -> Tensor:
    """Join the boxes of single images into the rows of their batch.

    For a data loader's `collate_fn`, which stacks images but cannot stack boxes. Each item is what
    `boxes_of` returns for one mask, or `Partition.boxes`, without the column of the image.

    Example:
        >>> collate_boxes([[[1, 2, 4, 6]], [], [[0, 0, 1, 1], [7, 7, 8, 8]]])
        tensor([[0, 1, 2, 4, 6],
                [2, 0, 0, 1, 1],
                [2, 7, 7, 8, 8]])
    """
    joined = [np.empty((0, 5), dtype=np.int64)]
    for image, item in enumerate(boxes):
        rows = np.asarray(item)
        if rows.size == 0:
            continue
        if rows.ndim != 2 or rows.shape[1] not in (4, 5) or rows.dtype.kind not in "iu":
            raise ValueError(
                f"boxes of image {image} have shape {rows.shape} and dtype {rows.dtype}; "
                "expected integer rows (y0, x0, y1, x1)"
            )
        corners = rows[:, -4:].astype(np.int64)
        joined.append(np.insert(corners, 0, image, axis=1))
    return torch.from_numpy(np.concatenate(joined))


def check_boxes(boxes: Tensor, shape: Sequence[int]) -> None:
    """Raise if boxes have a wrong shape or dtype or, where values may be read, are outside the image."""
    check_tensor(boxes, "boxes")
    if boxes.ndim != 2 or boxes.shape[1] != 5 or boxes.is_floating_point() or boxes.dtype == torch.bool:
        raise ValueError(
            f"boxes has shape {tuple(boxes.shape)} and dtype {boxes.dtype}; expected integer rows "
            "(image, y0, x0, y1, x1); collate_boxes joins the boxes of single images"
        )
    if not is_readable(boxes):
        raise_if_vmapped(boxes, "boxes")
        return
    n_images, height, width = shape
    image, y0, x0, y1, x1 = rows = as_array(boxes).T
    valid = (image >= 0) & (image < n_images)
    valid &= (y0 >= 0) & (y0 < y1) & (y1 <= height) & (x0 >= 0) & (x0 < x1) & (x1 <= width)
    if not valid.all():
        index = int(np.argmin(valid))
        raise ValueError(
            f"boxes row {index} is {tuple(rows[:, index].tolist())}; expected (image, y0, x0, y1, x1) "
            f"inside {n_images} images of {height} x {width}, y0 < y1 and x0 < x1"
        )


def raise_if_vmapped(tensor: Tensor, name: str) -> None:
    """Raise if `torch.func.vmap` maps over a tensor."""
    if not torch.compiler.is_compiling() and is_batched(tensor):
        raise ValueError(
            f"torch.func.vmap maps over {name}, but images differ in their number of objects; map "
            "over the logits only, with boxes=boxes_of(gt) or labels=labels_of(gt) computed outside, or "
            "loop over the images"
        )


LabelKind = Literal["cells", "blobs"]
PartLabels = NDArray[np.int16] | NDArray[np.int32]
_SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)


def labels_of(
    gt: Tensor | ArrayLike,
    parts: LabelKind = "cells",
    *,
    connectivity: Literal[4, 8] = 8,
    min_area: float = 0.0002,
) -> Tensor:
    """Return for every pixel of a batch of masks the index of its part, (B, H, W); -1 for none.

    The objects are those of `boxes_of`, in the same order. For `"cells"` a pixel has the index of its
    nearest object, of the lower one in a tie. For `"blobs"` a pixel of an object has its index and all
    others have -1. In a mask without objects all labels are -1. Call it in the data loader's workers,
    after augmentation.

    Args:
        gt: as for `boxes_of`.
        parts: `"cells"` or `"blobs"`, as for `SizeInvariantLoss`.
        connectivity: as for `sisod.partition`.
        min_area: as for `sisod.partition`.

    Example:
        >>> gt = torch.tensor([[1.0, 0, 0, 0, 1, 1]])
        >>> labels_of(gt, "cells")
        tensor([[[0, 0, 0, 1, 1, 1]]], dtype=torch.int16)
        >>> labels_of(gt, "blobs")
        tensor([[[ 0, -1, -1, -1,  1,  1]]], dtype=torch.int16)
    """
    check_choice("parts", parts, ("cells", "blobs"))
    check_partition_settings(kind="boxes", connectivity=connectivity, min_area=min_area, alpha="ratio")
    return collate_labels(
        [
            partition_labels(
                cut_mask(np.ascontiguousarray(mask), connectivity=connectivity, min_area=min_area), parts
            )
            for mask in as_array(salient_masks(gt))
        ]
    )


def partition_labels(partition: Partition, parts: LabelKind) -> PartLabels:
    """Return the labels of the frames of a partition, (H, W); see `labels_of`."""
    index = partition.index_map()
    if parts == "cells" and len(partition):
        index = nearest_component(index, partition.boxes)
    return index.astype(np.int16) if len(partition) <= np.iinfo(np.int16).max else index


def collate_labels(labels: Sequence[PartLabels]) -> Tensor:
    """Stack the labels of single images to those of their batch.

    For a data loader's `collate_fn`. Each item is what `labels_of` returns for one mask, as an array.

    Example:
        >>> collate_labels([np.array([[0, 0, 1]]), np.array([[-1, -1, 0]])]).shape
        torch.Size([2, 1, 3])
    """
    return torch.from_numpy(np.stack(labels))


def check_labels(labels: Tensor, shape: Sequence[int], parts: LabelKind) -> Tensor:
    """Return labels as (B, H, W); raise for a wrong shape or dtype and, where readable, wrong values."""
    check_tensor(labels, "labels")
    raise_if_vmapped(labels, "labels")
    planes = labels.squeeze(1) if labels.ndim == 4 and labels.shape[1] == 1 else labels
    if planes.shape != torch.Size(shape) or planes.dtype not in _SIGNED:
        raise ValueError(
            f"labels has shape {tuple(labels.shape)} and dtype {labels.dtype}; expected signed integers "
            f"of shape {tuple(shape)}, the part of every pixel, as from labels_of"
        )
    if is_readable(planes):
        _check_values(planes.flatten(1), parts)
    return planes


def _check_values(labels: Tensor, parts: LabelKind) -> None:
    """Raise for values below -1 and the labels of the other kind; rows of labels are images."""
    low, high = labels.amin(dim=1), labels.amax(dim=1)
    if int(low.min()) < -1:
        raise ValueError(
            f"labels holds {int(low.min())}; expected the index of a part, >= 0, or -1 for none"
        )
    advice = f"but parts is {parts!r}; give labels=labels_of(gt, {parts!r})"
    if parts == "cells" and bool(((low < 0) & (high >= 0)).any()):
        raise ValueError(f"labels has pixels of no part (-1) beside parts, as blobs have, {advice}")
    if parts == "blobs" and bool(((low >= 0) & (high > 0)).any()):
        raise ValueError(f"labels has an image of parts without background, as cells have, {advice}")
