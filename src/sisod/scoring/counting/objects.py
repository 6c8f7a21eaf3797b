"""Objects of the prediction: which are true and which are false (docs/metrics.md, Predicted objects).

A predicted object is a connected component of {p > 0.5}. All that is said of the objects of a data set
is a function of counts that add up over images (`families.objects`).
"""

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Integers, Map, Mask, Values, unit_values
from sisod.scoring.counting.components import Boxes, Components, Index, in_order, label_mask, label_runs
from sisod.scoring.counting.histograms import LEVELS, count_rows, grey_cuts
from sisod.scoring.partition import Partition, least_area
from sisod.scoring.protocols import Protocol

HALF = 0.5  # threshold on p; share of pixels from which an object is found, a predicted one precise
SMALL = 0.01  # share of the image below which an object is small
# of the curve: p > 1 / (1 + exp(-l)), l = -12, -11.5, ..., 12; l = 0 is exactly one half
THRESHOLDS = 1 / (1 + np.exp(-np.arange(-24, 25) / 2))
N_THRESHOLDS = len(THRESHOLDS)
NEAR = 3  # pixels: a detection's centroid is nearer than this to its target's
_NO_STATISTICS = np.empty(0), np.empty(0)
_ROUNDING = 1e-6  # of distances: nearer to the limit than this they are compared exactly


@dataclass(frozen=True, eq=False)
class PredictedObjects:
    """The predicted objects of one image, ordered as frames are: by top, then left.

    Attributes:
        boxes: one row y0, x0, y1, x1 each, half-open.
        areas: pixels.
        means: mean of p.
        peaks: largest p.
        salient: pixels that are salient in the ground truth, whether a frame holds them or not.
        match: index of the object that shares most pixels; of equals the lower index, -1 for none.
        iou: with the component of that object; 0 for none.
        spilled_pixels: pixels that are not salient and lie outside the bounding box of every object.
        holder: for each object of the ground truth, the predicted object with more than half of its
            pixels; -1 for none. There is at most one.
        missed_pixels: for each object of the ground truth, its salient pixels with p <= 0.5.
        detections: for the protocol `infrared`, what `_count_detections` returns; else empty.
        curve: what `count_curve` returns if a metric needs it; else empty.
    """

    boxes: Boxes
    areas: Integers
    means: Values
    peaks: Values
    salient: Integers
    match: Integers
    iou: Values
    spilled_pixels: Integers
    holder: Integers
    missed_pixels: Integers
    detections: dict[str, int]
    curve: dict[str, Integers]

    def __len__(self) -> int:
        return len(self.areas)

    @property
    def holds(self) -> Integers:
        """Number of objects of the ground truth that each of them holds more than half of."""
        return np.bincount(self.holder[self.holder >= 0], minlength=len(self))


def measure_predicted(pred: Map, gt: Mask, partition: Partition, protocol: Protocol) -> PredictedObjects:
    """Return the components of {p > 0.5} that are large enough, and what each is matched with.

    Args:
        pred: the prediction.
        gt: the ground truth.
        partition: its frames.
        protocol: connectivity, least area and normalisation.
    """
    p = unit_values(pred, normalize=protocol.normalize)
    above = p > HALF
    components = label_mask(above, protocol.connectivity)
    large = np.flatnonzero(components.areas >= least_area(protocol.min_area, gt.size))
    kept = in_order(components, large)
    areas = components.areas[kept]
    # of the pixels above one half: which predicted and which true object hold each
    inside = np.flatnonzero(above)
    owner = components.index_map(kept, inside)
    inside, owner = inside[owner >= 0], owner[owner >= 0]
    true = partition.components.index_map(partition.framed, inside)
    is_false = ~gt.take(inside)
    is_spilled = is_false & partition.outside_boxes.take(inside)
    missed = partition.components.index_map(partition.framed, np.flatnonzero(gt & ~above))
    if pred.dtype == np.uint8:
        cells = owner * LEVELS + pred.take(inside)
        histograms = np.bincount(cells, minlength=len(kept) * LEVELS).reshape(-1, LEVELS)
        ends = int(pred.min()), int(pred.max())
        means, peaks = _grey_statistics(histograms, ends, protocol)
    else:
        means = np.bincount(owner, weights=p.take(inside), minlength=len(kept)) / areas
        peaks = np.zeros(len(kept))
        np.maximum.at(peaks, owner, p.take(inside))
    match, most, holder = _match(owner, true, partition.areas, len(kept))
    true_areas = np.append(partition.areas, 0)[match]  # -1, no match, takes the last
    return PredictedObjects(
        boxes=components.boxes[kept],
        areas=areas,
        means=means,
        peaks=peaks,
        salient=areas - np.bincount(owner[is_false], minlength=len(kept)),
        match=match,
        iou=most / (areas + true_areas - most),
        spilled_pixels=np.bincount(owner[is_spilled], minlength=len(kept)),
        holder=holder,
        missed_pixels=np.bincount(missed[missed >= 0], minlength=len(partition)),
        detections=_count_detections(components, kept, partition) if protocol.detections else {},
        curve={},
    )


def measured_objects(
    measured: dict[str, NDArray[Any]], ends: tuple[int, int], protocol: Protocol
) -> PredictedObjects:
    """Return the same of an 8-bit map from what the kernel measured, but for the curve."""
    histograms = measured.pop("histograms")
    means, peaks = _NO_STATISTICS  # of which only tables tell
    if len(histograms):
        means, peaks = _grey_statistics(histograms, ends, protocol)
    return PredictedObjects(**measured, means=means, peaks=peaks, detections={}, curve={})


def _grey_statistics(
    histograms: NDArray[Any], ends: tuple[int, int], protocol: Protocol
) -> tuple[Values, Values]:
    """Return mean and largest p of each object, from its pixels of each grey value of an 8-bit map.

    They are the same bits in whatever order the pixels come. `ends` are the extreme grey values.
    """
    table, _ = grey_cuts(*ends, protocol.normalize)
    means = np.einsum("rc,c->r", histograms, table) / np.maximum(histograms.sum(axis=1), 1)
    return means, table[LEVELS - 1 - np.argmax(histograms[:, ::-1] > 0, axis=1)]


def _match(
    predicted: Index, true: Index, areas: Integers, n_predicted: int
) -> tuple[Integers, Integers, Integers]:
    """Match the predicted and the true object of each pixel, -1 for none.

    Args:
        predicted: of each pixel that a predicted object holds.
        true: of the same pixels.
        areas: of the true objects.
        n_predicted: the number of predicted objects.

    Returns:
        Of each predicted object the true one that shares most pixels, and how many these are; of each
        true one the predicted one with more than half of its pixels; -1 for none.
    """
    both = true >= 0
    cells, shared = np.unique(predicted[both] * np.int64(len(areas)) + true[both], return_counts=True)
    index, target = np.divmod(cells, max(len(areas), 1))
    match, most = np.full(n_predicted, -1), np.zeros(n_predicted, dtype=np.int64)
    order = np.lexsort((-target, shared))  # of several values assigned to one index NumPy keeps the last
    match[index[order]], most[index[order]] = target[order], shared[order]
    holder = np.full(len(areas), -1)
    holds = 2 * shared > areas[target]
    holder[target[holds]] = index[holds]
    return match, most, holder


def _count_detections(
    components: Components, kept: NDArray[np.intp], partition: Partition
) -> dict[str, int]:
    """Return how many targets are detected, and the pixels of predicted objects that detect none.

    Each target in raster order takes the first free predicted object whose centroid is near.
    """
    truth = partition.components
    candidates = kept[np.argsort(components.first[kept], kind="stable")]
    targets = partition.framed[np.argsort(truth.first[partition.framed], kind="stable")]
    sums, areas = components.coordinate_sums()[candidates], components.areas[candidates]
    centroids = sums / areas[:, None]
    free = np.ones(len(candidates), dtype=np.bool_)
    for target, area in zip(truth.coordinate_sums()[targets], truth.areas[targets], strict=True):
        distances = np.linalg.norm(centroids - target / area, axis=1)
        for index in np.flatnonzero(free & (distances < NEAR + _ROUNDING)):
            if distances[index] < NEAR - _ROUNDING or _is_near(sums[index], areas[index], target, area):
                free[index] = False
                break
    n_detected = len(free) - int(np.count_nonzero(free))
    return {"detected": n_detected, "alarm_pixels": int(areas[free].sum())}


def _is_near(sums: Integers, area: int, other_sums: Integers, other_area: int) -> bool:
    """Compare the distance of two centroids with `NEAR` in integers, without rounding."""
    pairs = zip(sums.tolist(), other_sums.tolist(), strict=True)
    squares = sum((a * int(other_area) - b * int(area)) ** 2 for a, b in pairs)
    return bool(squares < (NEAR * int(area) * int(other_area)) ** 2)


def count_curve(pred: Map, gt: Mask, partition: Partition, protocol: Protocol) -> dict[str, Integers]:
    """Return the counts of objects of one image at every threshold."""
    # how many thresholds each pixel is above
    if pred.dtype == np.uint8:
        table, _ = grey_cuts(int(pred.min()), int(pred.max()), protocol.normalize)
        of_level = np.searchsorted(THRESHOLDS, table).astype(np.uint8)
        steps = np.asarray(cv2.LUT(pred, of_level), dtype=np.uint8)
    else:
        p = unit_values(pred, normalize=protocol.normalize)
        steps = np.searchsorted(THRESHOLDS, p).astype(np.uint8)
    per_frame = count_rows(steps, gt, partition, N_THRESHOLDS + 1)[1:-1, 1]
    salient_above = per_frame[:, ::-1].cumsum(axis=1)[:, ::-1]  # above i thresholds or more, i = 0..49
    found = (2 * salient_above[:, 1:] >= salient_above[:, :1]) & (salient_above[:, :1] > 0)
    small = partition.areas / gt.size < SMALL
    predicted = _predicted_above(
        steps, gt, protocol.connectivity, least_area(protocol.min_area, gt.size)
    )
    names = ("predicted", "precise", "predicted_small", "precise_small")
    return {
        "found": found.sum(axis=0),
        "found_small": found[small].sum(axis=0),
        **dict(zip(names, predicted, strict=True)),
    }


def _predicted_above(steps: NDArray[np.uint8], gt: Mask, connectivity: int, least: int) -> Integers:
    """Return predicted and precise objects above every threshold, and both of small ones."""
    if kernel.is_usable(gt):
        return kernel.count_thresholds(steps, gt, N_THRESHOLDS, connectivity=connectivity, least=least)
    n_pixels = np.bincount(steps.ravel(), minlength=N_THRESHOLDS + 1)
    salient_before = np.append(0, np.cumsum(gt))  # of every pixel in raster order, and of the end
    predicted = np.zeros((4, N_THRESHOLDS + 1), dtype=np.int64)  # above the last there is nothing
    for step in range(N_THRESHOLDS - 1, -1, -1):
        if n_pixels[step + 1] == 0:  # the components are those of the threshold above
            predicted[:, step] = predicted[:, step + 1]
            continue
        above = (steps > step).view(np.uint8)
        count, labels = cv2.connectedComponents(above, connectivity=connectivity, ltype=cv2.CV_32S)
        owner, start, end = label_runs(np.asarray(labels, dtype=np.int32))
        areas = np.bincount(owner, weights=end - start, minlength=count - 1)
        n_salient = salient_before[end] - salient_before[start]
        salient = np.bincount(owner, weights=n_salient, minlength=count - 1)
        large, small = areas >= least, areas / gt.size < SMALL
        precise = large & (2 * salient >= areas)
        chosen = large, precise, large & small, precise & small
        predicted[:, step] = [np.count_nonzero(objects) for objects in chosen]
    return predicted[:, :-1]
