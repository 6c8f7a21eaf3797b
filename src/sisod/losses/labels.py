"""Labels of a batch: the part of the image that each pixel belongs to, for cells and blobs."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from sisod.common.arguments import check_choice
from sisod.losses.boxes import refuse_vmap, salient_masks
from sisod.losses.checks import as_array, check_tensor, is_readable
from sisod.scoring.counting.components import nearest_component
from sisod.scoring.partition import Partition, check_partition_settings, cut_mask

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
    """Stack the labels of single images to those of their batch."""
    return torch.from_numpy(np.stack(labels))


def check_labels(labels: Tensor, shape: Sequence[int], parts: LabelKind) -> Tensor:
    """Return labels as (B, H, W); raise for a wrong shape or dtype and, where readable, wrong values."""
    check_tensor(labels, "labels")
    refuse_vmap(labels, "labels")
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
