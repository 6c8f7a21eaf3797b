"""The scorer that computes what the paper's released codes do, to compare with its published tables.

They differ from the paper's equations in many places (docs/compat.md lists them). Prediction and
ground truth are resized to a grid of 384 x 384, the ground truth keeps its grey values, and every
threshold curve has 100 points. The two codes, SI-SOD and SI_Metric, resize the ground truth differently.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sisod.scoring.arrays import Map, Mask, Values, as_array, as_map, as_mask, looks_binary, unit_values
from sisod.scoring.counting.histograms import LEVELS
from sisod.scoring.metrics import PAPER_KEYS, MetricChoice, check_metric, find_metrics, listed_keys
from sisod.scoring.partition import Partition
from sisod.scoring.protocols import Protocol
from sisod.scoring.scores import INVERTED_AUC, Scores, object_geometry

Grey = NDArray[np.float32]
Boxes = list[tuple[int, int, int, int]]

_SIDE = 384
_EPSILON = 1e-20
_THRESHOLDS = np.linspace(0, 1, 100, dtype=np.float32)


@dataclass(frozen=True)
class OfficialScorer:
    """Scores as a released code computes them."""

    keys: tuple[str, ...]
    protocol: Protocol

    def ground_truth(self, gt: ArrayLike) -> NDArray[Any]:
        """Check a ground truth and return it with its grey values."""
        as_mask(gt)
        return as_array(gt, "gt")

    def measure(
        self,
        pred: Map,
        gt: NDArray[Any],
        partition: Partition | None = None,
        *,
        labels: NDArray[np.integer] | None = None,
    ) -> Scores:
        """Score one pair on the grid; the two may differ in shape.

        Of the object table only boxes (on the grid), sizes and `mae` are defined, the rest is NaN: the
        regions of F and AUC are not the objects. There are no curves of 256 thresholds.
        """
        if partition is not None or labels is not None:
            given = "partition=" if labels is None else "labels"
            raise ValueError(
                f"the paper's released code cuts frames itself; leave out {given}, or the protocol"
            )
        mask = as_mask(gt)
        p, g = _unit(pred), _unit(as_map(gt))
        if self.protocol.released_code == "SI_Metric":  # it resizes both as 8-bit images
            p, g = (
                _resize(np.rint(255 * grey).astype(np.uint8), cv2.INTER_LINEAR) / np.float32(255)
                for grey in (p, g)
            )
        else:
            p, g = _resize(p, cv2.INTER_LINEAR), _resize(g, cv2.INTER_NEAREST)
        parts = _cut(mask, self.protocol.min_area)
        values, n_objects = _values(p, g, parts), len(parts.boxes)
        return Scores(
            keys=self.keys,
            values=np.array([[values[key] for key in self.keys]]),
            curve_names=("f", "si_f"),
            curves=np.full((1, 2, LEVELS), np.nan),
            objects=_objects(p, g, parts),
            predicted={},
            object_counts={},
            shapes=np.array([mask.shape]),
            n_objects=np.array([n_objects]),
            alphas=np.array([parts.alpha]),
            looks_binary=np.array([looks_binary(pred)]),
            looks_inverted=np.array([n_objects > 0 and values["auc"] < INVERTED_AUC]),
            n_tiny=np.array([0]),  # the released code has no such rule
            n_left_out=np.array([parts.n_components - n_objects]),
        )

    def finish(self, images: Sequence[Scores]) -> Scores:
        """Join the scores of a batch."""
        joined: dict[str, Any] = {
            field.name: np.concatenate([getattr(image, field.name) for image in images])
            for field in fields(Scores)
            if isinstance(getattr(images[0], field.name), np.ndarray)
        }
        objects = {
            column: np.concatenate([image.objects[column] for image in images])
            for column in images[0].objects
        }
        return replace(images[0], **joined, objects=objects)


def find_official_metrics(metrics: MetricChoice) -> tuple[str, ...]:
    """Return the chosen keys among those of the released code; None and `"all"` are all of them."""
    if metrics is None or listed_keys(metrics) == ("all",):
        return PAPER_KEYS
    keys = find_metrics(metrics)
    for key in keys:
        check_metric(key, PAPER_KEYS, what="metric of the paper's released code")
    return keys


@dataclass(frozen=True, eq=False)
class _Parts:
    """The frames on the grid.

    Attributes:
        boxes: half-open y0, x0, y1, x1 of the components that are still there after the resize.
        areas: their pixels on the grid.
        bits: bit of each box in the code map: its index among the components before the resize.
        n_components: number of components of the mask.
    """

    boxes: Boxes
    areas: list[int]
    bits: list[int]
    n_components: int

    def background(self) -> Mask:
        """Pixels with code 0."""
        outside = np.ones((_SIDE, _SIDE), dtype=np.bool_)
        for y0, x0, y1, x1 in self.boxes:
            outside[y0:y1, x0:x1] = False
        return outside

    @property
    def alpha(self) -> float:
        """Weight of the background: its area over that of all boxes together; 1 without boxes."""
        n_outside = int(self.background().sum())
        return n_outside / (_SIDE**2 - n_outside) if self.boxes else 1.0

    def regions(self) -> list[Mask]:
        """Return where the code map **equals** 1, 2, 3 ... up to its number of bits.

        Code 1 is the first box alone and 2 the second, but 3 is the overlap of these two, 4 the third
        alone. Such small codes only have low bits, so no large integer is ever needed.
        """
        n_codes = max(self.bits, default=-1) + 1
        n_low = n_codes.bit_length()
        low = np.zeros((_SIDE, _SIDE), dtype=np.int64)
        for bit, (y0, x0, y1, x1) in zip(self.bits, self.boxes, strict=True):
            # a higher bit makes the code larger than all codes below
            low[y0:y1, x0:x1] += 2 ** min(bit, n_low)
        return [region for code in range(1, n_codes + 1) if (region := low == code).any()]


def _unit(array: NDArray[np.generic]) -> Grey:
    return unit_values(array, normalize="none").astype(np.float32)


def _resize(grey: NDArray[np.float32 | np.uint8], interpolation: int) -> Grey:
    return np.asarray(cv2.resize(grey, (_SIDE, _SIDE), interpolation=interpolation), dtype=np.float32)


def _cut(mask: Mask, least_area: float) -> _Parts:
    count, labels = cv2.connectedComponents(mask.astype(np.uint8), connectivity=4, ltype=cv2.CV_32S)
    order, first = np.unique(labels, return_index=True)
    areas = np.bincount(labels.ravel(), minlength=count)
    in_raster_order = [int(label) for label in order[np.argsort(first)] if label > 0]
    kept = [label for label in in_raster_order if areas[label] >= least_area] or in_raster_order[:1]
    # nearest neighbour, as for the grey values; float32 represents the labels exactly
    small = _resize(np.asarray(labels, dtype=np.float32), cv2.INTER_NEAREST)
    boxes, sizes, bits = [], [], []
    for bit, label in enumerate(kept):
        ys, xs = np.nonzero(small == label)
        if len(ys):
            boxes.append((int(ys.min()), int(xs.min()), int(ys.max()) + 1, int(xs.max()) + 1))
            sizes.append(len(ys))
            bits.append(bit)
    return _Parts(boxes, sizes, bits, len(in_raster_order))


def _values(p: Grey, g: Grey, parts: _Parts) -> dict[str, float]:
    error = np.abs(p.astype(np.float64) - g)
    low, high = p.min(), p.max()
    stretched = (p - low + np.float32(_EPSILON)) / (high - low + np.float32(_EPSILON))
    reached, reached_stretched = _reached(p), _reached(stretched)
    regions = parts.regions() or [np.ones((_SIDE, _SIDE), dtype=np.bool_)]
    f_curve = _f_curve(*_count(reached_stretched, g))
    f_regions = [_f_curve(*_count(reached_stretched, g, region)) for region in regions]
    return {
        "mae": float(error.mean()),
        "si_mae": _si_mae(error, parts),
        "auc": _auc(*_count(reached, g)),
        "si_auc": float(np.mean([_auc(*_count(reached, g, region)) for region in regions])),
        "f_mean": float(f_curve.mean()),
        "si_f_mean": float(np.mean([curve.mean() for curve in f_regions])),
        "f_max_image": float(f_curve.max()),
        "si_f_max_frame": float(np.mean([curve.max() for curve in f_regions])),
        "e_mean": _e_mean(reached, g),
    }


def _si_mae(error: Values, parts: _Parts) -> float:
    if not parts.boxes:
        return float(error.mean())
    terms = [float(error[y0:y1, x0:x1].mean()) for y0, x0, y1, x1 in parts.boxes]
    outside = parts.background()
    if not outside.any():
        return float(np.mean(terms))
    terms.append(parts.alpha * float(error[outside].mean()))
    return sum(terms) / (len(terms) + parts.alpha)  # the background is one of the terms


def _reached(p: Grey) -> NDArray[np.int64]:
    """Return how many thresholds each pixel reaches."""
    return np.searchsorted(_THRESHOLDS, p, side="right")


def _f_curve(hits: Values, predicted: Values, truth: float) -> Values:
    """Return F at every threshold from what `_count` returns."""
    precision, recall = hits / (predicted + 1), hits / (truth + 1)
    total = 0.3 * precision + recall
    f = np.divide(1.3 * precision * recall, total, out=np.zeros_like(total), where=total > 0)
    return np.asarray(f)


def _auc(hits: Values, predicted: Values, truth: float) -> float:
    """Return the area under the curve from what `_count` returns."""
    tpr = hits / (truth + 1)
    fpr = (predicted - hits) / (_SIDE**2 - truth + 1)
    # already sorted: TPR and FPR only rise as the threshold falls
    return float(np.trapezoid(tpr[::-1], fpr[::-1]))


def _count(
    reached: NDArray[np.int64], g: Grey, region: Mask | None = None
) -> tuple[Values, Values, float]:
    """Return the sum of the ground truth over the predicted pixels and their number, per threshold.

    They are followed by the sum of the ground truth. Counts are of the whole grid, as if everything
    outside the region were 0.
    """
    inside = reached.ravel() if region is None else reached[region]
    truth = (g.ravel() if region is None else g[region]).astype(np.float64)
    hits, predicted = _above(inside, truth), _above(inside, np.ones_like(truth))
    predicted[0] += _SIDE**2 - len(inside)  # a 0 reaches the first threshold, which is 0
    return hits, predicted, float(truth.sum())


def _above(reached: NDArray[np.int64], weights: Values) -> Values:
    """Return the sum of the weights of the pixels at or above each threshold."""
    sums = np.bincount(reached, weights=weights, minlength=len(_THRESHOLDS) + 1)
    return np.asarray(sums[::-1].cumsum()[::-1][1:])


def _e_mean(reached: NDArray[np.int64], g: Grey) -> float:
    """Return the mean E, from the number of pixels of each grey value that reach each threshold."""
    greys, grey_index = np.unique(g, return_inverse=True)
    pairs = grey_index.ravel() * (len(_THRESHOLDS) + 1) + reached.ravel()
    counts = np.bincount(pairs, minlength=len(greys) * (len(_THRESHOLDS) + 1))
    counts = counts.reshape(len(greys), -1).astype(np.float64)
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    below = counts.sum(axis=1, keepdims=True) - above
    truth = greys.astype(np.float64)[:, None] - float(g.mean(dtype=np.float64))
    mean = above.sum(axis=0) / g.size
    total = above * _alignment(1 - mean, truth) + below * _alignment(-mean, truth)
    return float((total.sum(axis=0) / (g.size - 1)).mean())


def _alignment(f: Values, h: Values) -> Values:
    x = 2 * f * h / (f * f + h * h + _EPSILON)
    return (1 + x) ** 2 / 4


def _objects(p: Grey, g: Grey, parts: _Parts) -> dict[str, NDArray[np.generic]]:
    boxes = np.array(parts.boxes, dtype=np.int64).reshape(-1, 4)
    areas = np.array(parts.areas, dtype=np.int64)
    frame_areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    error = np.abs(p.astype(np.float64) - g)
    undefined = np.full(len(boxes), np.nan)
    return {
        **object_geometry(boxes, areas, frame_areas, _SIDE, _SIDE),
        "mae": np.array([error[a:c, b:d].mean() for a, b, c, d in parts.boxes], dtype=np.float64),
        **dict.fromkeys(("f_mean", "f_max", "auc", "iou_binary", "recall_binary"), undefined),
    }
