"""Objects of the prediction: which are true and which are false (docs/metrics.md, Predicted objects).

A predicted object is a connected component of {p > 0.5}. All that is said of the objects of a data set
is a function of counts that add up over images (`families.objects`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Integers, Map, Mask, Values, unit_values
from sisod.scoring.counting.components import Boxes, Components, in_order, label_mask, shared_pixels
from sisod.scoring.counting.histograms import (
    BINARY,
    LEVELS,
    count_joint,
    count_rows,
    grey_cuts,
)
from sisod.scoring.partition import Partition, least_area
from sisod.scoring.protocols import Protocol

HALF = 0.5  # threshold on p; share of pixels from which an object is found, a predicted one precise
SMALL = 0.01  # share of the image below which an object is small
# of the curve: p > 1 / (1 + exp(-l)), l = -12, -11.5, ..., 12; l = 0 is exactly one half
THRESHOLDS = 1 / (1 + np.exp(-np.arange(-24, 25) / 2))
N_THRESHOLDS = len(THRESHOLDS)
NEAR = 3  # pixels: a detection's centroid is nearer than this to its target's
_FEW_COMPONENTS = 84  # with the background and in three kinds of pixels: less than 256 numbers
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
        curve: what `_count_curve` returns if a metric needs it; else empty.
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
    def precise(self) -> Mask:
        """Which of them are salient in at least half of their pixels."""
        return np.asarray(2 * self.salient >= self.areas)

    @property
    def holds(self) -> Integers:
        """Number of objects of the ground truth that each of them holds more than half of."""
        return np.bincount(self.holder[self.holder >= 0], minlength=len(self))


def measure_predicted(
    pred: Map,
    gt: Mask,
    partition: Partition,
    protocol: Protocol,
    *,
    curve: bool = False,
    cut_from_gt: bool = True,
) -> PredictedObjects:
    """Return the components of {p > 0.5} that are large enough, and what each is matched with.

    Args:
        pred: the prediction.
        gt: the ground truth.
        partition: its frames.
        protocol: connectivity, least area and normalisation.
        curve: whether to count at all thresholds too.
        cut_from_gt: whether the partition was cut from `gt`; False for frames of the caller, whose
            instances may also cover pixels that are not salient.
    """
    table = None
    values: NDArray[Any] = pred
    if pred.dtype == np.uint8:
        table, cuts = grey_cuts(int(pred.min()), int(pred.max()), protocol.normalize)
        # an int: a NumPy integer would convert the whole map; 256 if no grey value is above one half
        above = pred > int(cuts[BINARY]) - 1
    else:
        values = unit_values(pred, normalize=protocol.normalize)
        above = values > HALF
    components = label_mask(above, protocol.connectivity)
    least = least_area(protocol.min_area, gt.size)
    kept = in_order(components, np.flatnonzero(components.areas >= least))
    n_kept = len(kept)
    number = np.full(len(components), n_kept)  # the last number gathers all that are too small
    number[kept] = np.arange(n_kept)
    areas = components.areas[kept]
    if table is not None and 0 < len(components) <= _FEW_COMPONENTS:
        salient, spilled, means, peaks = _count_grey(pred, above, gt, components, partition, kept, table)
    else:
        # of every pixel above one half, in raster order: its object, and whether it is salient
        window = components.window
        inside = above[window]
        owner = np.repeat(number[components.runs.owner], components.runs.lengths)
        is_salient = gt[window][inside]
        is_spilled = partition.outside_boxes[window][inside] & ~is_salient
        salient, spilled = _count(owner[is_salient], n_kept), _count(owner[is_spilled], n_kept)
        means, peaks = _statistics(values[window][inside], owner, n_kept, table)
    component, target, shared = _overlaps(components, partition)
    match, most = _best_matches(number[component], target, shared, n_kept)
    true_areas = np.append(partition.areas, 0)[match]  # -1, no match, takes the last
    if cut_from_gt:
        covered = np.bincount(target, shared, minlength=len(partition)).astype(np.int64)
        missed_pixels = partition.areas - covered
    else:
        missed_pixels = _missed_pixels(above, gt, partition)
    return PredictedObjects(
        boxes=components.boxes[kept],
        areas=areas,
        means=means,
        peaks=peaks,
        salient=salient,
        match=match,
        iou=most / (areas + true_areas - most),
        spilled_pixels=spilled,
        holder=_holders(number[component], target, shared, partition.areas, n_kept),
        missed_pixels=missed_pixels,
        detections=_count_detections(components, kept, partition) if protocol.detections else {},
        curve=_count_curve(_steps(values, table), gt, partition, protocol) if curve else {},
    )


def measured_objects(
    pred: NDArray[np.uint8],
    gt: Mask,
    partition: Partition,
    protocol: Protocol,
    objects: kernel.MeasuredObjects,
    *,
    curve: bool,
) -> PredictedObjects:
    """Return the same of an 8-bit map from what the kernel measured."""
    table, _ = grey_cuts(int(pred.min()), int(pred.max()), protocol.normalize)
    means, peaks = _grey_statistics(objects.histograms, table)
    true_areas = np.append(partition.areas, 0)[objects.match]
    return PredictedObjects(
        boxes=objects.boxes,
        areas=objects.areas,
        means=means,
        peaks=peaks,
        salient=objects.salient,
        match=objects.match,
        iou=objects.shared / (objects.areas + true_areas - objects.shared),
        spilled_pixels=objects.spilled,
        holder=objects.holder,
        missed_pixels=objects.missed,
        detections={},
        curve=_count_curve(_steps(pred, table), gt, partition, protocol) if curve else {},
    )


def _count(owner: NDArray[np.intp], n_kept: int) -> Integers:
    return np.bincount(owner, minlength=n_kept + 1)[:n_kept]


def _count_grey(
    grey: NDArray[np.uint8],
    above: Mask,
    gt: Mask,
    components: Components,
    partition: Partition,
    kept: NDArray[np.intp],
    table: Values,
) -> tuple[Integers, Integers, Values, Values]:
    """Return salient and spilled pixels, mean and largest p of the components of an 8-bit map."""
    window = components.window
    numbers = components.labels.astype(np.uint8)
    numbers *= 3
    numbers += (partition.outside_boxes[window] > gt[window]).view(np.uint8)
    numbers += gt[window] * np.uint8(2)
    sizes = 3 * (len(components) + 1), LEVELS
    counts = count_joint(numbers, grey[window], sizes, above.view(np.uint8)[window])
    by_kind = counts.reshape(-1, 3, LEVELS)[kept + 1]
    _, spilled, salient = by_kind.sum(axis=2).astype(np.int64).T
    return salient, spilled, *_grey_statistics(by_kind.sum(axis=1), table)


def _grey_statistics(counts: NDArray[Any], table: Values) -> tuple[Values, Values]:
    """Return mean and largest p of each object; the same bits in whatever order its pixels come."""
    means = np.einsum("rc,c->r", counts, table) / np.maximum(counts.sum(axis=1), 1)
    return means, table[LEVELS - 1 - np.argmax(counts[:, ::-1] > 0, axis=1)]


def _statistics(
    pixels: NDArray[Any], owner: NDArray[np.intp], n_kept: int, table: Values | None
) -> tuple[Values, Values]:
    """Return mean and largest p of each object; `pixels` are p, or indices of the table of p."""
    if table is not None:
        cells = np.bincount(owner * LEVELS + pixels, minlength=(n_kept + 1) * LEVELS)
        return _grey_statistics(cells.reshape(-1, LEVELS)[:n_kept], table)
    sums = np.bincount(owner, weights=pixels, minlength=n_kept + 1)[:n_kept]
    peaks = np.zeros(n_kept + 1)
    np.maximum.at(peaks, owner, pixels)
    return sums / np.maximum(_count(owner, n_kept), 1), peaks[:n_kept]


def _overlaps(components: Components, partition: Partition) -> tuple[Integers, Integers, Integers]:
    """Return the pairs of a component and a frame's object that share pixels, and how many."""
    truth = partition.components
    component, true, shared = shared_pixels(components, truth, partition.shape[1])
    frame = np.full(len(truth), -1)
    frame[partition.framed] = np.arange(len(partition))
    framed = frame[true] >= 0
    return component[framed], frame[true[framed]], shared[framed]


def _best_matches(
    index: Integers, target: Integers, shared: Integers, n_kept: int
) -> tuple[Integers, Integers]:
    """Return for each predicted object the true one that shares most pixels, and how many these are."""
    match, most = np.full(n_kept + 1, -1), np.zeros(n_kept + 1, dtype=np.int64)
    order = np.lexsort((-target, shared))  # of several values assigned to one index NumPy keeps the last
    match[index[order]], most[index[order]] = target[order], shared[order]
    return match[:n_kept], most[:n_kept]


def _holders(
    index: Integers, target: Integers, shared: Integers, areas: Integers, n_kept: int
) -> Integers:
    """Return for each true object the predicted one with more than half of its pixels, or -1."""
    holder = np.full(len(areas), -1)
    holds = (2 * shared > areas[target]) & (index < n_kept)
    holder[target[holds]] = index[holds]
    return holder


def _missed_pixels(above: Mask, gt: Mask, partition: Partition) -> Integers:
    """Return for each true object its salient pixels that are not predicted."""
    truth = partition.components
    missed = gt[truth.window] > above[truth.window]
    counts = np.bincount(truth.labels[missed], minlength=len(truth) + 1)
    return counts[partition.framed + 1]


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


def _steps(values: NDArray[Any], table: Values | None) -> NDArray[np.uint8]:
    """Return how many thresholds each pixel is above; `values` are p, or rows of the table of p."""
    steps = np.searchsorted(THRESHOLDS, values if table is None else table).astype(np.uint8)
    return steps if table is None else steps[values]


def _count_curve(
    steps: NDArray[np.uint8], gt: Mask, partition: Partition, protocol: Protocol
) -> dict[str, Integers]:
    """Return the counts of one image at every threshold."""
    least = least_area(protocol.min_area, gt.size)
    per_frame = count_rows(steps, gt, partition, N_THRESHOLDS + 1)[1:-1, 1]
    salient_above = per_frame[:, ::-1].cumsum(axis=1)[:, ::-1]  # above i thresholds or more, i = 0..49
    found = (2 * salient_above[:, 1:] >= salient_above[:, :1]) & (salient_above[:, :1] > 0)
    small = partition.areas / gt.size < SMALL
    predicted = _predicted_above(steps, gt, protocol.connectivity, least)
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
    used = np.bincount(steps.ravel(), minlength=N_THRESHOLDS + 1) > 0
    salient_before = np.zeros(gt.size + 1, dtype=np.int32)
    np.cumsum(gt, out=salient_before[1:])
    predicted = np.zeros((4, N_THRESHOLDS), dtype=np.int64)
    tally: tuple[int, ...] = (0, 0, 0, 0)
    for i in range(N_THRESHOLDS - 1, -1, -1):
        if used[i + 1]:  # else the components are those of the threshold above
            tally = _count_components(steps > i, salient_before, connectivity, least)
        predicted[:, i] = tally
    return predicted


def _count_components(
    above: Mask, salient_before: NDArray[np.int32], connectivity: int, least: int
) -> tuple[int, ...]:
    """Return how many components are large enough, precise among them, and small ones of both."""
    components = label_mask(above, connectivity)
    start, stop = components.spans(above.shape[1])
    in_runs = salient_before[stop] - salient_before[start]
    salient = np.bincount(components.runs.owner, weights=in_runs, minlength=len(components))
    large, small = components.areas >= least, components.areas / above.size < SMALL
    precise = large & (2 * salient >= components.areas)
    return tuple(
        int(np.count_nonzero(chosen)) for chosen in (large, precise, large & small, precise & small)
    )
