"""Statistics of ground truth masks: sizes and numbers of objects, and rho and rho' of Theorem 4.2."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.common.grid import Grid, number
from sisod.common.progress import progress_bar
from sisod.data.images import read_mask
from sisod.data.pairs import files_by_name
from sisod.scoring.protocols import Protocol


@dataclass(frozen=True, eq=False)
class MaskStatistics:
    """Statistics of a folder of masks.

    Attributes:
        n_objects: number of frames, one value per image.
        shares: share of the image that a component covers, one value per component.
        fills: share of its frame that a component fills, one value per component.
        salient: salient share of an image, one value per image with objects.
    """

    n_objects: NDArray[np.int64]
    shares: NDArray[np.float64]
    fills: NDArray[np.float64]
    salient: NDArray[np.float64]

    @property
    def rho(self) -> float:
        """Rho of Theorem 4.2, the least fill of a frame; NaN without objects."""
        return float(self.fills.min()) if len(self.fills) else math.nan

    @property
    def rho_image(self) -> float:
        """Rho' of Theorem 4.2, the least salient share of an image; NaN without objects."""
        return float(self.salient.min()) if len(self.salient) else math.nan

    def size_groups(self) -> NDArray[np.int64]:
        """Number of objects in each of the paper's ten groups, 0-10 % ... 90-100 % of the image."""
        return np.histogram(self.shares, bins=np.arange(11) / 10)[0]

    def number_groups(self) -> dict[str, int]:
        """Number of images with 0, 1, 2, 3, 4, and 5 or more objects."""
        counts = np.bincount(np.minimum(self.n_objects, 5), minlength=6).tolist()
        return dict(zip(("0", "1", "2", "3", "4", "5+"), counts, strict=True))


def mask_statistics(gt_root: str | Path, protocol: Protocol) -> MaskStatistics:
    """Return the statistics of a folder of masks."""
    files = files_by_name(gt_root)
    if not files:
        raise InputError(f"{str(gt_root)!r} has no image files; expected a folder of masks")
    n_objects, shares, fills, salient = [], [], [], []
    with progress_bar("reading masks", len(files)) as advance:
        for file in files.values():
            mask = read_mask(gt_root, file.path, level=protocol.gt_level)
            parts = protocol.partition(mask)
            n_objects.append(len(parts))
            shares.append(parts.areas / mask.size)
            fills.append(parts.areas / parts.frame_areas)
            if len(parts):
                salient.append(float(mask.mean()))
            advance(1)
    return MaskStatistics(
        np.array(n_objects), np.concatenate(shares), np.concatenate(fills), np.array(salient)
    )


def statistics_grids(statistics: MaskStatistics) -> tuple[Grid, Grid, Grid]:
    """Return tables of an overview, of objects by size, and of images by number of objects."""
    n_images, n_objects = len(statistics.n_objects), len(statistics.shares)
    overview = (
        ("images", str(n_images)),
        ("objects", str(n_objects)),
        ("objects per image, mean", f"{float(statistics.n_objects.mean()):.2f}"),
        ("rho, least fill of a frame", number(statistics.rho)),
        ("rho', least salient share of an image", number(statistics.rho_image)),
    )
    sizes = tuple(
        (f"{10 * i}-{10 * i + 10} % of the image", str(count), f"{count / max(1, n_objects):.1%}")
        for i, count in enumerate(statistics.size_groups().tolist())
    )
    numbers = tuple(
        (group, str(count), f"{count / n_images:.1%}")
        for group, count in statistics.number_groups().items()
    )
    return (
        Grid(("statistic", "value"), overview, n_text=1),
        Grid(("size of the object", "objects", "share"), sizes, n_text=1),
        Grid(("objects in the image", "images", "share"), numbers, n_text=1),
    )
