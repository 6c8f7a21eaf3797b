"""The error breakdown: every object and every wrong pixel in one class (docs/errors.md).

All of it follows from the predicted objects (`objects.measure_predicted`). Counts add up over images.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Values
from sisod.scoring.counting.histograms import BINARY, Histogram
from sisod.scoring.counting.objects import HALF, PredictedObjects
from sisod.scoring.partition import Partition

Codes = NDArray[np.uint8]
# the class of an object of the ground truth, in the column `error` of the object table
OBJECT_CLASSES = ("correct", "partly_found", "spilled", "merged", "split", "missed")
_CORRECT, _PARTLY_FOUND, _SPILLED, _MERGED, _SPLIT, _MISSED = range(len(OBJECT_CLASSES))
# Counts that every image has beside `objects.COUNTS`. Those of missed and of false objects have names
# there: `objects` - `found`, `false`, and `false_pixels` for the pixels of false objects.
ERROR_COUNTS = (
    *("objects_correct", "objects_partly_found", "objects_spilled", "objects_merged", "objects_split"),
    *("fn_missed", "fn_split", "fn_partly_found", "fn_below_min_area"),
    *("fp_merged", "fp_spilled", "fp_in_frame", "fp_below_min_area"),
)


def classify_objects(
    predicted: Sequence[PredictedObjects], n_objects: Sequence[int], recalls: Values
) -> Codes:
    """Return the class of every object of a batch, as an index of `OBJECT_CLASSES`.

    Args:
        predicted: the predicted objects of each image.
        n_objects: the number of frames of each image.
        recalls: those of the frames at p > 0.5, image after image.
    """
    # indices of objects and of predicted objects in the batch; the last predicted one stands for none
    n_predicted = [len(image) for image in predicted]
    none = sum(n_predicted)
    holder = _in_batch([image.holder for image in predicted], n_predicted, none=none)
    match = _in_batch([image.match for image in predicted], n_objects, none=len(recalls))
    matched = np.concatenate([image.iou for image in predicted]) > HALF
    precise = np.append(np.concatenate([image.precise for image in predicted]), True)
    n_held = np.bincount(holder, minlength=none + 1)
    n_pieces = np.bincount(match, minlength=len(recalls) + 1)[:-1]
    is_held = holder < none
    codes = np.full(len(recalls), _PARTLY_FOUND, dtype=np.uint8)
    # from the weakest rule to the strongest, each replaces those before it
    codes[~is_held & (n_pieces >= 2)] = _SPLIT
    codes[~precise[holder]] = _SPILLED
    codes[is_held & (n_held[holder] >= 2)] = _MERGED
    codes[match[matched]] = _CORRECT
    codes[~(recalls >= HALF)] = _MISSED
    return codes


def _in_batch(
    indices: Sequence[NDArray[np.int64]], sizes: Sequence[int], *, none: int
) -> NDArray[np.int64]:
    """Return indices inside each image as indices inside the batch; `none` for -1."""
    first = np.cumsum([0, *sizes[:-1]])
    offsets = np.repeat(first, [len(image) for image in indices])
    joined = np.concatenate(list(indices))
    return np.where(joined < 0, none, joined + offsets)


def count_errors(
    predicted: Sequence[PredictedObjects],
    partitions: Sequence[Partition],
    codes: Codes,
    histograms: Sequence[Histogram],
) -> dict[str, Values]:
    """Return the counts of `ERROR_COUNTS`, one value for each image.

    Args:
        predicted: the predicted objects of each image.
        partitions: its frames.
        codes: the class of every object, from `classify_objects`.
        histograms: its counts of pixels.
    """
    n_images, n_classes = len(predicted), len(OBJECT_CLASSES)
    n_objects = [len(partition) for partition in partitions]
    cells = np.repeat(np.arange(n_images), n_objects) * n_classes + codes
    missed_pixels = np.concatenate([image.missed_pixels for image in predicted])
    size = n_images * n_classes
    objects = np.bincount(cells, minlength=size).reshape(-1, n_classes)
    misses = np.bincount(cells, missed_pixels, minlength=size).reshape(-1, n_classes)
    of_image = np.repeat(np.arange(n_images), [len(image) for image in predicted])
    areas = np.concatenate([image.areas for image in predicted])
    salient = np.concatenate([image.salient for image in predicted])
    spilled_pixels = np.concatenate([image.spilled_pixels for image in predicted])
    merges = np.concatenate([image.holds for image in predicted]) >= 2
    others = ~merges & (salient > 0)

    def sums(pixels: NDArray[np.int64]) -> Values:
        return np.bincount(of_image, pixels, minlength=n_images).astype(np.float64)

    false_positives = areas - salient
    above = np.stack([histogram.above[0, :, BINARY] for histogram in histograms])
    all_misses = np.stack([histogram.totals[0, 1] for histogram in histograms]) - above[:, 1]
    counts = {
        f"objects_{name}": objects[:, code].astype(np.float64)
        for code, name in enumerate(OBJECT_CLASSES)
        if code != _MISSED
    }
    return counts | {
        "fn_missed": misses[:, _MISSED],
        "fn_split": misses[:, _SPLIT],
        "fn_partly_found": misses.sum(axis=1) - misses[:, _MISSED] - misses[:, _SPLIT],
        "fn_below_min_area": all_misses - misses.sum(axis=1),
        "fp_merged": sums(false_positives * merges),
        "fp_spilled": sums(spilled_pixels * others),
        "fp_in_frame": sums((false_positives - spilled_pixels) * others),
        "fp_below_min_area": above[:, 0] - sums(false_positives),
    }
