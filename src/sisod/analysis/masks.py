"""What a data set is like: sizes and numbers of its objects, and the theorem's two shares."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sisod.common.errors import InputError
from sisod.common.progress import progress_bar
from sisod.data.images import read_mask
from sisod.data.pairs import files_by_name
from sisod.scoring.protocols import Protocol

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, eq=False)
class MaskStatistics:
    """Statistics of a folder of masks.

    Attributes:
        n_objects: frames of each image.
        shares: of the image, for each component.
        fills: of its frame, for each component: rho of Theorem 4.2 is the least.
        salient: salient share of each image that has any: rho' is the least.
    """

    n_objects: NDArray[np.int64]
    shares: NDArray[np.float64]
    fills: NDArray[np.float64]
    salient: NDArray[np.float64]

    @property
    def rho(self) -> float:
        """Least share of a frame that its component fills; NaN without objects."""
        return float(self.fills.min()) if len(self.fills) else math.nan

    @property
    def rho_image(self) -> float:
        """Least share of an image that is salient; NaN without objects."""
        return float(self.salient.min()) if len(self.salient) else math.nan

    def size_groups(self) -> NDArray[np.int64]:
        """Number of objects in each of the paper's ten groups, 0-10 % ... 90-100 % of the image."""
        return np.histogram(self.shares, bins=np.arange(11) / 10)[0]

    def number_groups(self) -> dict[str, int]:
        """Number of images with no, 1, 2, 3, 4, and 5 or more objects."""
        counts = np.bincount(np.minimum(self.n_objects, 5), minlength=6).tolist()
        return dict(zip(("0", "1", "2", "3", "4", "5+"), counts, strict=True))


def mask_statistics(gt_root: str | Path, protocol: Protocol) -> MaskStatistics:
    """Read every mask of a folder."""
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


def statistics_tables(found: MaskStatistics) -> "list[Table]":
    """Return what the command prints: an overview, then objects by size, images by number."""
    from rich.table import Table

    overview = Table(show_header=False)
    mean = float(found.n_objects.mean())
    for name, value in (
        ("images", str(len(found.n_objects))),
        ("objects", str(len(found.shares))),
        ("objects per image, mean", f"{mean:.2f}"),
        ("rho, least fill of a frame", _share(found.rho)),
        ("rho', least salient share of an image", _share(found.rho_image)),
    ):
        overview.add_row(name, value)
    sizes = Table("size of the object", "objects", "share")
    for group, count in enumerate(found.size_groups().tolist()):
        share = count / max(1, len(found.shares))
        sizes.add_row(f"{10 * group}-{10 * group + 10} % of the image", str(count), f"{share:.1%}")
    numbers = Table("objects in the image", "images", "share")
    for number, count in found.number_groups().items():
        numbers.add_row(number, str(count), f"{count / len(found.n_objects):.1%}")
    return [overview, sizes, numbers]


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
