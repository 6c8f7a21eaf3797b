"""Statistics of ground truth masks: sizes and numbers of objects, and rho and rho' of Theorem 4.2."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sisod.analysis.groups import size_columns, size_edges
from sisod.common.streams import progress_bar
from sisod.data.pairs import find_masks
from sisod.data.truths import BINARY_MASK, TruthFormat, read_truth
from sisod.scoring.arrays import has_grey_area
from sisod.scoring.protocols import Protocol, find_protocol


@dataclass(frozen=True, eq=False)
class MaskStatistics:
    """Statistics of a folder of masks.

    Attributes:
        n_objects: number of frames, one value per image.
        shares: share of the image that a component covers, one value per component.
        frame_salient: salient share of a frame, one value per frame.
        salient: salient share of an image, one value per image with objects.
        n_left_out: number of components without a frame, below the protocol's `min_area`.
        n_grey: masks that are grey in more than the edges of their objects.
        n_emptied: those of them that have no salient pixel.
    """

    n_objects: NDArray[np.int64]
    shares: NDArray[np.float64]
    frame_salient: NDArray[np.float64]
    salient: NDArray[np.float64]
    n_left_out: int = 0
    n_grey: int = 0
    n_emptied: int = 0

    @property
    def n_components(self) -> int:
        """Number of components of all masks."""
        return len(self.shares) + self.n_left_out

    @property
    def rho(self) -> float:
        """Rho of Theorem 4.2, the least salient share of a frame; NaN without objects."""
        return float(self.frame_salient.min()) if len(self.frame_salient) else math.nan

    @property
    def rho_image(self) -> float:
        """Rho' of Theorem 4.2, the least salient share of an image; NaN without objects."""
        return float(self.salient.min()) if len(self.salient) else math.nan

    def size_groups(self) -> NDArray[np.int64]:
        """Number of objects in each of the paper's ten groups, 0-10 % ... 90-100 % of the image."""
        return np.histogram(self.shares, bins=np.arange(11) / 10)[0]

    def log_size_groups(self) -> dict[str, int]:
        """Number of objects in groups of about equal ratio of sizes, which tell small ones apart."""
        edges = size_edges("log")
        counts = np.histogram(self.shares, bins=edges)[0].tolist()
        return dict(zip(size_columns(edges)["group"], counts, strict=True))

    def number_groups(self) -> dict[str, int]:
        """Number of images with 0, 1, 2, 3, 4, and 5 or more objects."""
        counts = np.bincount(np.minimum(self.n_objects, 5), minlength=6).tolist()
        return dict(zip(("0", "1", "2", "3", "4", "5+"), counts, strict=True))


def mask_statistics(
    gt_root: str | Path,
    protocol: str | Protocol = "default",
    *,
    gt_suffix: str = "",
    names: Sequence[str] | None = None,
    meaning: TruthFormat = BINARY_MASK,
) -> MaskStatistics:
    """Return the statistics of a folder of masks.

    Args:
        gt_root: folder or URL of the masks.
        protocol: as for `sisod.score`.
        gt_suffix: end of every mask's name that is not part of the image's, like `_mask`.
        names: only these images.
        meaning: of the values of the masks.
    """
    protocol = find_protocol(protocol)
    files = find_masks(gt_root, gt_suffix=gt_suffix, names=names)
    n_left_out = n_grey = n_emptied = 0
    n_objects, shares, frame_salient, salient = [], [], [], []
    with progress_bar("reading masks", len(files)) as advance:
        for file in files.values():
            truth = read_truth(gt_root, file.path, meaning)
            mask = truth.mask(level=protocol.gt_level)
            if has_grey_area(truth.array):
                n_grey += 1
                n_emptied += not mask.any()
            parts = protocol.partition(mask, truth.labels)
            n_objects.append(len(parts))
            shares.append(parts.areas / mask.size)
            frame_salient.append(parts.salient_shares(mask))
            n_left_out += len(parts.components) - len(parts)
            if len(parts):
                salient.append(float(mask.mean()))
            advance(1)
    sizes, frames = np.concatenate(shares), np.concatenate(frame_salient)
    counts = (n_left_out, n_grey, n_emptied)
    return MaskStatistics(np.array(n_objects), sizes, frames, np.array(salient), *counts)
