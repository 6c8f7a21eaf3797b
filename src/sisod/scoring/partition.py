"""Mask -> components -> frames and background: the partition behind every size-invariant value."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.common.arguments import check_choice, is_number, short_repr
from sisod.common.exceptions import UsageError
from sisod.scoring.arrays import Integers, Mask, Window, as_array, as_mask
from sisod.scoring.counting.components import (
    NO_COMPONENTS,
    Boxes,
    Components,
    in_order,
    label_instances,
    label_mask,
    nearest_component,
)

Kind = Literal["boxes", "voronoi"]
Alpha = Literal["ratio", "union"] | float


@dataclass(frozen=True)
class Frame:
    """One object's part of the image: its component's tight box, half-open."""

    index: int
    y0: int
    x0: int
    y1: int
    x1: int
    component_area: int

    @property
    def window(self) -> Window:
        """The pair of slices that cuts the frame out of an array."""
        return slice(self.y0, self.y1), slice(self.x0, self.x1)

    @property
    def area(self) -> int:
        """Pixels of the box, S_k in the paper."""
        return (self.y1 - self.y0) * (self.x1 - self.x0)


@dataclass(frozen=True, eq=False)
class Partition:
    """Frames and background of one ground truth.

    Attributes:
        boxes: one row y0, x0, y1, x1 per frame, half-open, ordered by top then left.
        areas: pixels of each frame's component (not of its box).
        frame_areas: pixels of each frame, S_k: of its box, or of its Voronoi region.
        shape: height and width of the image.
        background_area: pixels in no frame.
        alpha_terms: numerator and denominator of alpha, kept apart so that one frame makes the
            size-invariant value of a separable metric equal the plain one exactly.
        regions: index of every pixel's Voronoi region; None for boxes.
        components: the components of the ground truth, also those without a frame.
        framed: which of the components each frame belongs to.
    """

    boxes: Boxes
    areas: Integers
    frame_areas: Integers
    shape: tuple[int, int]
    background_area: int
    alpha_terms: tuple[float, float]
    regions: NDArray[np.int32] | None = None
    components: Components = NO_COMPONENTS
    framed: NDArray[np.intp] = field(default_factory=lambda: NO_COMPONENTS.first)

    def __len__(self) -> int:
        return len(self.boxes)

    def __iter__(self) -> Iterator[Frame]:
        return iter(self.frames)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames as objects, in the order of `boxes`."""
        rows = zip(self.boxes.tolist(), self.areas.tolist(), strict=True)
        return tuple(
            Frame(index, y0, x0, y1, x1, area) for index, ((y0, x0, y1, x1), area) in enumerate(rows)
        )

    @property
    def background(self) -> Mask:
        """True for pixels in no frame."""
        return self.outside_boxes if self.regions is None else np.zeros(self.shape, dtype=np.bool_)

    @property
    def size(self) -> int:
        """Pixels of the image."""
        return self.shape[0] * self.shape[1]

    @property
    def disjoint(self) -> bool:
        """Whether no two frames overlap."""
        return int(self.frame_areas.sum()) + self.background_area == self.size

    @cached_property
    def outside_boxes(self) -> Mask:
        """True for pixels outside every component's bounding box; for boxes this is the background."""
        return _outside(self.boxes, self.shape)

    def salient_shares(self, mask: Mask) -> NDArray[np.float64]:
        """Return the salient share of every frame, of which rho of Theorem 4.2 is the least.

        All salient pixels of a frame count, as in the theorem's proof, not only those of its component.
        """
        if self.regions is not None:
            counts = np.bincount(self.regions[mask], minlength=len(self))
        else:
            counts = np.array([np.count_nonzero(mask[frame.window]) for frame in self], dtype=np.int64)
        return counts / self.frame_areas

    def index_map(self) -> NDArray[np.int32]:
        """Return the index of the frame whose component each pixel belongs to; -1 for none."""
        return self.components.index_map(self.framed)

    @property
    def alpha(self) -> float:
        """Weight of the background beside frames of weight one; 1 for an image without frames."""
        numerator, denominator = self.alpha_terms
        return numerator / denominator


def partition(
    gt: ArrayLike | None = None,
    *,
    labels: ArrayLike | None = None,
    kind: Kind = "boxes",
    connectivity: Literal[4, 8] = 8,
    min_area: float = 0.0002,
    alpha: Alpha = "ratio",
) -> Partition:
    """Cut a ground truth into one frame per component.

    Frames may overlap; a pixel counts in every frame that contains it. The background is every pixel
    in no frame.

    Args:
        gt: ground truth mask (see `docs/metrics.md` for the types), unless `labels` is given.
        labels: instance label map instead of a mask: integers, 0 is background, one frame per label.
        kind: `"boxes"`, the paper's frames, or `"voronoi"`: every pixel belongs to the nearest
            component, there is no background.
        connectivity: of the components of a mask, 8 or 4.
        min_area: smaller components get no frame. A float is a share of the image, an int is pixels.
            If none is large enough the largest is kept.
        alpha: `"ratio"` (background over the sum of the frames' areas), `"union"` (over the framed
            area) or a number.

    Example:
        A 3x3 object and a single pixel, on a 6x8 image:

        >>> gt = np.zeros((6, 8), dtype=bool)
        >>> gt[1:4, 1:4] = True
        >>> gt[5, 7] = True
        >>> partition(gt).boxes
        array([[1, 1, 4, 4],
               [5, 7, 6, 8]])
        >>> partition(gt).alpha  # 38 background pixels over 10 framed ones
        3.8
    """
    if (gt is None) == (labels is None):
        raise TypeError("partition needs either gt or labels, not both and not none")
    check_partition_settings(kind=kind, connectivity=connectivity, min_area=min_area, alpha=alpha)
    if labels is not None:
        return cut_labels(labels, kind=kind, min_area=min_area, alpha=alpha)
    assert gt is not None  # noqa: S101  (for the type checker)
    return cut_mask(as_mask(gt), kind=kind, connectivity=connectivity, min_area=min_area, alpha=alpha)


def check_partition_settings(
    *, kind: object, connectivity: object, min_area: float, alpha: Alpha
) -> None:
    """Raise if one of the settings of a partition is not valid."""
    check_choice("kind", kind, get_args(Kind))
    if not isinstance(connectivity, int | np.integer) or connectivity not in (4, 8):
        raise UsageError(f"connectivity must be 4 or 8, got {short_repr(connectivity)}")
    least_area(min_area, 1)
    check_alpha(alpha)


def cut_mask(
    mask: Mask,
    *,
    kind: Kind = "boxes",
    connectivity: Literal[4, 8] = 8,
    min_area: float = 0.0002,
    alpha: Alpha = "ratio",
    keep_ties: bool = False,
) -> Partition:
    """Cut a boolean mask by checked settings.

    If no component is large enough, `keep_ties` keeps every largest one, not only the first.
    """
    components = label_mask(mask, connectivity)
    return _cut(components, mask.shape, min_area=min_area, keep_ties=keep_ties, kind=kind, alpha=alpha)


def cut_labels(
    labels: ArrayLike,
    *,
    kind: Kind = "boxes",
    min_area: float = 0.0002,
    alpha: Alpha = "ratio",
    keep_ties: bool = False,
) -> Partition:
    """Cut an instance label map: one frame per label, connected or not."""
    array = as_array(labels, "labels")
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.size == 0 or array.min() < 0:
        least = f" and the least value {array.min()}" if array.size else ""
        raise ValueError(
            f"labels has dtype {array.dtype}, shape {array.shape}{least}; expected integers, (height, "
            "width), 0 for background and others above"
        )
    components = label_instances(array)
    return _cut(components, array.shape, min_area=min_area, keep_ties=keep_ties, kind=kind, alpha=alpha)


def least_area(min_area: float, size: int) -> int:
    """Return the least area in pixels of a component with a frame, in an image of `size` pixels."""
    is_int = isinstance(min_area, int | np.integer)
    if not is_number(min_area) or not 0 <= min_area <= (math.inf if is_int else 1):
        raise UsageError(
            "min_area must be an int >= 0 (pixels) or a float in [0, 1] (share of the image), got "
            f"{short_repr(min_area)}"
        )
    if is_int:
        return int(min_area)
    # the tolerance keeps a rounded product like 0.0002 * 120000 from requiring a 25th pixel
    return math.ceil(min_area * size - 1e-9)


def _cut(
    components: Components,
    shape: tuple[int, ...],
    *,
    min_area: float,
    keep_ties: bool,
    kind: Kind,
    alpha: Alpha,
) -> Partition:
    areas, first = components.areas, components.first
    kept = np.flatnonzero(areas >= least_area(min_area, math.prod(shape)))
    if not len(kept) and len(areas):
        kept = np.flatnonzero(areas == areas.max())
        if not keep_ties:
            kept = kept[[np.argmin(first[kept])]]
    kept = in_order(components, kept)
    boxes = components.boxes[kept]
    regions = None
    frame_areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    background_area = 0
    if kind == "boxes" or not len(kept):
        background_area = int(np.count_nonzero(_outside(boxes, shape)))
    else:
        regions = nearest_component(components.index_map(kept), len(kept))
        frame_areas = np.bincount(regions.ravel(), minlength=len(kept))
    return Partition(
        boxes=boxes,
        areas=components.areas[kept],
        frame_areas=frame_areas,
        shape=(shape[0], shape[1]),
        background_area=background_area,
        alpha_terms=alpha_terms(alpha, background_area, math.prod(shape), int(frame_areas.sum())),
        regions=regions,
        components=components,
        framed=kept,
    )


def check_partition(partition: object, shape: tuple[int, ...]) -> None:
    """Raise if frames of the caller are not those of an image of this shape."""
    if not isinstance(partition, Partition) or partition.shape != shape:
        found = (
            f"of shape {partition.shape}" if isinstance(partition, Partition) else short_repr(partition)
        )
        raise ValueError(
            f"partition is {found} but gt has shape {shape}; make it with sisod.partition from the same "
            "ground truth"
        )


def _outside(boxes: Boxes, shape: tuple[int, ...]) -> Mask:
    outside = np.ones(shape, dtype=np.bool_)
    for y0, x0, y1, x1 in boxes.tolist():
        outside[y0:y1, x0:x1] = False
    return outside


def check_alpha(alpha: Alpha) -> None:
    """Raise if alpha is neither a known name nor a number >= 0."""
    named = isinstance(alpha, str) and alpha in ("ratio", "union")
    if not named and not (is_number(alpha) and 0 <= float(alpha) < math.inf):
        raise ValueError(f"alpha must be 'ratio', 'union' or a number >= 0, got {short_repr(alpha)}")


def alpha_terms(alpha: Alpha, background_area: int, size: int, frame_area: int) -> tuple[float, float]:
    """Return the numerator and the denominator of alpha (see `Partition`).

    Args:
        alpha: the choice.
        background_area: pixels in no frame.
        size: pixels of the image.
        frame_area: sum of the pixels of all frames; 0 without frames.
    """
    if frame_area == 0:  # all the weight on the background: the plain value
        return 1.0, 1.0
    if background_area == 0:
        return 0.0, float(frame_area)
    if not isinstance(alpha, str):
        return float(alpha), 1.0
    framed = frame_area if alpha == "ratio" else size - background_area
    return float(background_area), float(framed)
