"""Structure measure and multi-scale IoU.

Like every metric of pixels, each takes the pixels and the frames, and returns the image's value followed
by one value per frame (multi-scale IoU, which has no size-invariant form, the image's alone).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Mask, Values, Window
from sisod.scoring.families.family import EPS, WHOLE, Pixels
from sisod.scoring.partition import Frame


@dataclass(frozen=True)
class Moments:
    """Number, mean, and sum of squared deviations from the mean."""

    count: float
    mean: float
    spread: float

    @classmethod
    def from_values(cls, values: Values) -> "Moments":
        """Return the moments of values."""
        if len(values) == 0:
            return cls(0.0, 0.0, 0.0)
        count = float(len(values))
        if values.min() == values.max():  # constant: a rounded mean must not give a spread
            return cls(count, float(values[0]), 0.0)
        mean = float(values.sum()) / count
        return cls(count, mean, float(((values - mean) ** 2).sum()))

    def plus(self, other: "Moments") -> "Moments":
        """Return the moments of both sets together."""
        count = self.count + other.count
        if count == 0 or other.count == 0:
            return self
        step = other.mean - self.mean
        share = other.count / count
        spread = self.spread + other.spread + step * step * self.count * share
        return Moments(count, self.mean + step * share, spread)


@dataclass(frozen=True, slots=True)
class GreyMoments:
    """The same of the grey levels of an 8-bit map, from integers: each is rounded only once."""

    range: int  # level of p = 1
    count: int
    first: int  # sum of the levels
    second: int  # sum of their squares

    @property
    def mean(self) -> float:
        """Mean of p."""
        return self.first / (self.count * self.range) if self.count else 0.0

    @property
    def spread(self) -> float:
        """Sum of squared deviations of p from the mean."""
        if self.count == 0:
            return 0.0
        return (self.count * self.second - self.first**2) / (self.count * self.range**2)

    def plus(self, other: "GreyMoments") -> "GreyMoments":
        """Return the moments of both sets together."""
        sums = self.count + other.count, self.first + other.first, self.second + other.second
        return GreyMoments(self.range, *sums)


Regions = Sequence[tuple[Any, Any]]  # moments of the pixels not salient and salient, of each quadrant


def s_measure(pixels: Pixels, frames: Sequence[Frame], *, alpha: float = 0.5) -> Values:
    """Structure measure (Fan et al., ICCV 2017), object and region similarity in equal parts."""
    windows = [WHOLE, *(frame.window for frame in frames)]
    regions: Sequence[Regions]
    if pixels.pred.dtype == np.uint8:
        low, high = pixels.ends
        if kernel.is_usable(pixels.gt):
            sums = kernel.quadrant_moments(pixels.pred, pixels.gt, pixels.boxes(frames), low)
        else:
            sums = [_count(pixels.pred[window], pixels.gt[window], low) for window in windows]
        regions = [
            [
                (GreyMoments(high - low, *outside), GreyMoments(high - low, *inside))
                for outside, inside in quadrants
                if outside[0] + inside[0]
            ]
            for quadrants in sums
        ]
    else:
        p = pixels.values()
        regions = [_measured(p[window], pixels.gt[window]) for window in windows]
    return np.array([_s_of_regions(quadrants, alpha) for quadrants in regions])


def _measured(p: Values, gt: Mask) -> Regions:
    parts = [(p[part], gt[part]) for part in quarter(gt)]
    return [(Moments.from_values(p[~gt]), Moments.from_values(p[gt])) for p, gt in parts if gt.size]


def _count(grey: NDArray[np.uint8], gt: Mask, low: int) -> list[list[list[int]]]:
    """Return number, sum and sum of squares of the levels: quadrants x classes x 3."""
    levels = grey.astype(np.int64) - low
    parts = [[levels[part][gt[part] == salient] for salient in (False, True)] for part in quarter(gt)]
    return [[[len(p), int(p.sum()), int((p * p).sum())] for p in classes] for classes in parts]


def quarter(gt: Mask) -> list[Window]:
    """Return the four parts around the centroid of the salient pixels; some may be empty.

    Without salient pixels the first part is all.

    Example:
        >>> quarter(np.array([[False, True, False, False]]))[1]
        (slice(0, 1, None), slice(2, 4, None))
    """
    height, width = gt.shape
    y, x = height, width
    if n_salient := np.count_nonzero(gt):
        y = round(int(np.arange(height) @ np.count_nonzero(gt, axis=1)) / n_salient) + 1
        x = round(int(np.arange(width) @ np.count_nonzero(gt, axis=0)) / n_salient) + 1
    rows, columns = (slice(0, y), slice(y, height)), (slice(0, x), slice(x, width))
    return [(r, c) for r in rows for c in columns]


def _s_of_regions(regions: Regions, alpha: float) -> float:
    outside, inside = regions[0]
    for others in regions[1:]:
        outside, inside = outside.plus(others[0]), inside.plus(others[1])
    if inside.count == 0:
        return float(1 - outside.mean)
    if outside.count == 0:
        return float(inside.mean)
    size = inside.count + outside.count
    share = inside.count / size
    foreground, background = _object(inside.mean, inside), _object(1 - outside.mean, outside)
    object_similarity = share * foreground + (1 - share) * background
    region_similarity = sum(
        (negative.count + positive.count) / size * _region(negative, positive)
        for negative, positive in regions
    )
    return float(max(0.0, alpha * object_similarity + (1 - alpha) * region_similarity))


def _object(mean: float, values: Any) -> float:
    deviation = math.sqrt(values.spread / (values.count - 1)) if values.count > 1 else 0.0
    return 2 * mean / (mean * mean + 1 + deviation + EPS)


def _region(negative: Any, positive: Any) -> float:
    """Return SSIM without its constants: 1 if both are constant and black, 0 if only one is constant."""
    both = negative.plus(positive)
    g_mean = positive.count / both.count
    # sums of (g - mean)^2 and of (p - mean)(g - mean), for g of 0 and 1
    g_spread = positive.count * (1 - g_mean)
    joint = g_spread * (positive.mean - negative.mean)
    numerator = 4 * both.mean * g_mean * joint / (both.count - 1 + EPS)
    denominator = (both.mean**2 + g_mean**2) * (both.spread + g_spread) / (both.count - 1 + EPS)
    if numerator != 0:
        return float(numerator / (denominator + EPS))
    return 1.0 if denominator == 0 else 0.0


def multiscale_iou(pixels: Pixels, frames: Sequence[Frame]) -> Values:  # noqa: ARG001
    """Multi-scale IoU of edges at p > 0.5 (Ahmadzadeh et al., ICIP 2021), as PySODMetrics."""
    if not pixels.gt.any():
        return np.full(1, np.nan)
    pred_edges, gt_edges = edge_pyramid(pixels.binary), edge_pyramid(pixels.gt)
    return np.array([compare_edges(pred_edges, gt_edges)])


def edge_pyramid(mask: Mask) -> list[Mask]:
    """Return the edges of a mask at ten scales: cells of 1, 2, 4 ... 512 pixels that hold an edge."""
    scales = [_edges(mask)]
    for _ in range(9):
        scales.append(_halved(scales[-1]))
    return scales


def compare_edges(pred_edges: Sequence[Mask], gt_edges: Sequence[Mask]) -> float:
    """Return the area under the curve of edge recall over the scales; one is added to both counts."""
    ratios = [
        (np.count_nonzero(pred & gt) + 1) / (np.count_nonzero(gt) + 1)
        for pred, gt in zip(pred_edges, gt_edges, strict=True)
    ]
    return float(np.trapezoid(ratios, dx=1 / (len(ratios) - 1)))


def _edges(mask: Mask) -> Mask:
    """Return the pixels with a Sobel gradient other than zero, on an image padded with zeros."""
    grey, zeros = mask.view(np.uint8), cv2.BORDER_CONSTANT
    dx = cv2.Sobel(grey, cv2.CV_16S, 1, 0, borderType=zeros)
    dy = cv2.Sobel(grey, cv2.CV_16S, 0, 1, borderType=zeros)
    return np.asarray((dx != 0) | (dy != 0))


def _halved(cells: Mask) -> Mask:
    """Join cells 2 x 2, counted from the lower right corner; a cell is set if any of its parts is."""
    height, width = cells.shape
    even = np.zeros((height + height % 2, width + width % 2), dtype=np.bool_)
    even[height % 2 :, width % 2 :] = cells
    rows = even[0::2] | even[1::2]
    return np.asarray(rows[:, 0::2] | rows[:, 1::2])
