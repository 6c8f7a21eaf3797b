"""Counts of objects and of wrong pixels that add up over images, and the table of predicted objects.

Every object and every wrong pixel is in one class (docs/errors.md). All of it follows from the predicted
objects (`objects.measure_predicted`) and the histograms.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sisod.scoring.arrays import Values
from sisod.scoring.counting.histograms import BINARY, Histogram
from sisod.scoring.counting.objects import HALF, SMALL, PredictedObjects
from sisod.scoring.partition import Partition
from sisod.scoring.scores import object_geometry

Codes = NDArray[np.uint8]
# what `count_objects` counts in every image, beside errors, the curve and detections
COUNTS = (
    *("images", "pixels", "objects", "found", "predicted", "precise", "false", "false_pixels"),
    *("matched", "matched_iou", "objects_small", "found_small", "predicted_small", "precise_small"),
    *("intersection", "union", "iou", "iou_images"),
)
# the class of an object of the ground truth, in the column `error` of the object table
OBJECT_CLASSES = ("correct", "partly_found", "spilled", "merged", "split", "missed")
_CORRECT, _PARTLY_FOUND, _SPILLED, _MERGED, _SPLIT, _MISSED = range(len(OBJECT_CLASSES))
# Those of missed and of false objects are above: `objects` - `found`, `false`, and `false_pixels`.
ERROR_COUNTS = (
    *("objects_correct", "objects_partly_found", "objects_spilled", "objects_merged", "objects_split"),
    *("fn_missed", "fn_split", "fn_partly_found", "fn_below_min_area"),
    *("fp_merged", "fp_spilled", "fp_in_frame", "fp_below_min_area"),
)


def predicted_columns(
    predicted: Sequence[PredictedObjects], shapes: Sequence[tuple[int, int]]
) -> dict[str, NDArray[np.generic]]:
    """Return the columns of the table of predicted objects of a batch; `shapes` are of its images."""
    height, width = np.repeat(shapes, [len(image) for image in predicted], axis=0).T
    areas, salient = _joined(predicted, "areas"), _joined(predicted, "salient")
    geometry = object_geometry(_joined(predicted, "boxes"), areas, areas, height, width)
    del geometry["fill"]  # it is of a frame
    return {
        **geometry,
        "mean": _joined(predicted, "means"),
        "peak": _joined(predicted, "peaks"),
        "precision": salient / areas,
        "match": _joined(predicted, "match"),
        "iou": _joined(predicted, "iou"),
        "false": salient == 0,
        "holds": _joined(predicted, "holds"),
        "spilled_pixels": _joined(predicted, "spilled_pixels"),
    }


def _joined(predicted: Sequence[PredictedObjects], name: str) -> NDArray[Any]:
    """Return an attribute of the predicted objects of a batch, image after image."""
    return np.concatenate([getattr(image, name) for image in predicted])


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
    # salient in at least half of their pixels
    precise = np.append(2 * _joined(predicted, "salient") >= _joined(predicted, "areas"), True)
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


def count_objects(
    predicted: Sequence[PredictedObjects],
    partitions: Sequence[Partition],
    recalls: Values,
    codes: Codes,
    histograms: Sequence[Histogram],
) -> dict[str, Values]:
    """Return the counts of each image of a batch, all of which add up over images.

    Args:
        predicted: the predicted objects of each image.
        partitions: its frames.
        recalls: those of the frames at p > 0.5, image after image.
        codes: the class of every object, from `classify_objects`.
        histograms: its counts of pixels.
    """
    n_images = len(predicted)
    sizes = np.array([partition.size for partition in partitions])
    n_predicted = np.array([len(image) for image in predicted])
    n_objects = np.array([len(partition) for partition in partitions])
    # the image of each predicted and of each true object
    image, true_image = (np.repeat(np.arange(n_images), n) for n in (n_predicted, n_objects))
    areas, salient = _joined(predicted, "areas"), _joined(predicted, "salient")
    true_areas = np.concatenate([partition.areas for partition in partitions])
    small, true_small = areas / sizes[image] < SMALL, true_areas / sizes[true_image] < SMALL
    false, precise, found = salient == 0, 2 * salient >= areas, recalls >= HALF
    ious = [image.iou[image.iou > HALF] for image in predicted]
    above = np.stack(
        [histogram.counts[0, :, histogram.cuts[BINARY] :].sum(axis=1) for histogram in histograms]
    )
    n_salient = np.array([histogram.counts[0, 1].sum() for histogram in histograms])
    intersection, union = above[:, 1], above[:, 0] + n_salient

    def total(values: NDArray[Any]) -> Values:  # over the predicted objects of each image
        return np.bincount(image, values, n_images).astype(np.float64)

    counts = {
        "images": np.ones(n_images),
        "pixels": sizes,
        "objects": n_objects,
        "found": np.bincount(true_image, found, n_images),
        "predicted": n_predicted,
        "precise": total(precise),
        "false": total(false),
        "false_pixels": total(areas * false),
        "matched": [len(matched) for matched in ious],
        "matched_iou": [matched.sum() for matched in ious],
        "objects_small": np.bincount(true_image, true_small, n_images),
        "found_small": np.bincount(true_image, found & true_small, n_images),
        "predicted_small": total(small),
        "precise_small": total(precise & small),
        **{f"curve_{key}": [image.curve[key] for image in predicted] for key in predicted[0].curve},
        "intersection": intersection,
        "union": union,
        "iou": np.divide(intersection, union, out=np.zeros(n_images), where=union > 0),
        "iou_images": union > 0,
        **{key: [image.detections[key] for image in predicted] for key in predicted[0].detections},
    }
    cells, n_classes = true_image * len(OBJECT_CLASSES) + codes, len(OBJECT_CLASSES)
    of_class, misses = (
        np.bincount(cells, values, n_images * n_classes).reshape(-1, n_classes)
        for values in (None, _joined(predicted, "missed_pixels"))
    )
    spilled, merges = _joined(predicted, "spilled_pixels"), _joined(predicted, "holds") >= 2
    false_positives, others = areas - salient, ~merges & ~false
    counts |= {
        f"objects_{name}": of_class[:, code] for code, name in enumerate(OBJECT_CLASSES[:_MISSED])
    }
    counts |= {
        "fn_missed": misses[:, _MISSED],
        "fn_split": misses[:, _SPLIT],
        "fn_partly_found": misses.sum(axis=1) - misses[:, _MISSED] - misses[:, _SPLIT],
        "fn_below_min_area": n_salient - intersection - misses.sum(axis=1),
        "fp_merged": total(false_positives * merges),
        "fp_spilled": total(spilled * others),
        "fp_in_frame": total((false_positives - spilled) * others),
        "fp_below_min_area": above[:, 0] - total(false_positives),
    }
    return {key: np.asarray(values, dtype=np.float64) for key, values in counts.items()}
