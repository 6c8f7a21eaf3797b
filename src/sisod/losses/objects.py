"""The objects of ground truths: their boxes, and the cell of every pixel. For the loader's workers."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sisod.common.arguments import check_choice
from sisod.losses.cells import nearest_objects
from sisod.losses.checks import salient_classes
from sisod.losses.components import find_objects
from sisod.losses.tracing import as_array, raise_if_vmapped
from sisod.scoring.loss_options import Mode, PartKind, Weighting

LabelKind = Literal["cells", "blobs"]


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


def labels_of(gt: Tensor | ArrayLike, parts: LabelKind = "cells", **options: Any) -> Tensor:
    """Return for every pixel of a batch the index of its part, (B, H, W); -1 for none.

    The objects are those of `boxes_of`, in the same order, counted from 0 in every image, and for
    `"multilabel"` in every channel of (B, C, H, W). For `"cells"` a pixel has the index of its nearest
    object, of the lower one in a tie. For `"blobs"` a pixel of an object has its index and all others
    have -1. Without objects all labels are -1.

    Args:
        gt: as for `boxes_of`.
        parts: `"cells"` or `"blobs"`, as for `SizeInvariantLoss`.
        options: `mode`, `ignore_index`, `min_area` and so on, as for `boxes_of`.

    Example:
        >>> gt = torch.tensor([[1.0, 0, 0, 0, 1, 1]])
        >>> labels_of(gt, "cells")
        tensor([[[0, 0, 0, 1, 1, 1]]], dtype=torch.int16)
        >>> labels_of(gt, "blobs")
        tensor([[[ 0, -1, -1, -1,  1,  1]]], dtype=torch.int16)
    """
    check_choice("parts", parts, ("cells", "blobs"))
    return parts_of(gt, parts, **options)["labels"]


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
    tensor = torch.as_tensor(gt)
    raise_if_vmapped(tensor, "the target")
    classes, channels = salient_classes(
        tensor.detach(), weighting.mode, weighting.ignore_index, spatial_dims
    )
    return parts_in(classes, channels, weighting)


def parts_in(classes: Tensor, channels: int, weighting: Weighting) -> dict[str, Tensor]:
    """Return the parts of class maps (planes, *spatial), of which `channels` belong to an image."""
    raise_if_vmapped(classes, "the target")
    objects = find_objects(
        as_array(classes), connectivity=weighting.connectivity, min_area=weighting.min_area
    )
    columns: list[NDArray[Any]] = [objects.plane]
    if weighting.mode == "multilabel":
        columns = [*np.divmod(objects.plane, channels)]
    elif weighting.mode == "multiclass":
        columns.append(objects.label)
    boxes = torch.from_numpy(np.column_stack([*columns, objects.low, objects.high]))
    if weighting.parts == "boxes":
        return {"boxes": boxes}
    labels = objects.index_map()
    if weighting.parts == "cells":
        labels = nearest_objects(labels, objects)
    small = labels.astype(np.int16) if labels.max(initial=0) <= np.iinfo(np.int16).max else labels
    shape = (-1, channels, *labels.shape[1:]) if weighting.mode == "multilabel" else labels.shape
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
    arrays = [np.asarray(item) for item in boxes]
    joined = []
    for image, rows in enumerate(arrays):
        if rows.size == 0:
            continue
        if rows.ndim != 2 or not 4 <= rows.shape[1] <= 8 or rows.dtype.kind not in "iu":
            raise ValueError(
                f"boxes of image {image} have shape {rows.shape} and dtype {rows.dtype}; expected "
                "integer rows (y0, x0, y1, x1), or those of boxes_of"
            )
        of_image = rows if rows.shape[1] == 4 else rows[:, 1:]
        joined.append(np.insert(of_image.astype(np.int64), 0, image, axis=1))
    if joined:
        return torch.from_numpy(np.concatenate(joined))
    width = max((rows.shape[1] for rows in arrays if rows.ndim == 2), default=5)
    return torch.empty((0, max(width, 5)), dtype=torch.int64)


def collate_labels(labels: Sequence[Tensor | NDArray[Any]]) -> Tensor:
    """Stack the labels of single images to those of their batch.

    For a data loader's `collate_fn`. Each item is the labels of one image, without the axis of the
    batch: `labels_of(mask)[0]`.

    Example:
        >>> collate_labels([np.array([[0, 0, 1]]), np.array([[-1, -1, 0]])]).shape
        torch.Size([2, 1, 3])
    """
    return torch.from_numpy(np.stack([np.asarray(item) for item in labels]))
