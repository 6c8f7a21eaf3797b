"""Metrics of objects, from counts summed over images (`counting.objects.count_objects`).

The same function serves one image, a data set, a group of images and a bootstrap sample: counts may have
any leading axes, and there is one value for each. 0/0 is NaN.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from sisod.scoring.arrays import Values
from sisod.scoring.families.family import Family

Sums = Mapping[str, Values]  # name of a count -> its sum; those of the curve have thresholds last


def ratio(part: Values, whole: Values) -> Values:
    """Return part / whole, NaN for 0/0."""
    return np.asarray(part / np.where(whole == 0, np.nan, whole))


def harmonic_mean(first: Values, second: Values) -> Values:
    """Return the harmonic mean; of two zeros it is 0, and NaN if one of them is."""
    total = first + second
    return np.asarray(2 * first * second / np.where(total == 0, 1.0, total))


def mean_count(name: str) -> Callable[[Sums], Values]:
    """Return the function that gives a count per image."""

    def count(sums: Sums) -> Values:
        return ratio(sums[name], sums["images"])

    count.__doc__ = (
        f"{name.capitalize()} objects of an image; of a data set, the mean of its images' counts."
    )
    return count


def false_objects(sums: Sums) -> Values:
    """False objects / images, which is the value of n_false over the data set."""
    return ratio(sums["false"], sums["images"])


def false_area(sums: Sums) -> Values:
    """Pixels of false objects / all pixels."""
    return ratio(sums["false_pixels"], sums["pixels"])


def detection_rate(sums: Sums) -> Values:
    """Targets that a predicted object is near / targets."""
    return ratio(sums["detected"], sums["objects"])


def false_alarm_area(sums: Sums) -> Values:
    """Pixels of predicted objects that detect no target / all pixels."""
    return ratio(sums["alarm_pixels"], sums["pixels"])


def niou(sums: Sums) -> Values:
    """Mean IoU of the images where it is defined."""
    return ratio(sums["iou"], sums["iou_images"])


def iou_total(sums: Sums) -> Values:
    """IoU of counts of pixels summed over images."""
    return ratio(sums["intersection"], sums["union"])


def recall(sums: Sums, suffix: str = "") -> Values:
    """Found objects / objects."""
    return ratio(sums[f"found{suffix}"], sums[f"objects{suffix}"])


def precision(sums: Sums, suffix: str = "") -> Values:
    """Predicted objects that are at least half salient / predicted objects."""
    return ratio(sums[f"precise{suffix}"], sums[f"predicted{suffix}"])


def f1(sums: Sums, suffix: str = "") -> Values:
    """Harmonic mean of object recall and object precision."""
    return harmonic_mean(precision(sums, suffix), recall(sums, suffix))


def recognition_quality(sums: Sums) -> Values:
    """Recognition quality, TP / (TP + FP/2 + FN/2), matches at IoU > 0.5."""
    return ratio(sums["matched"], (sums["predicted"] + sums["objects"]) / 2)


def segmentation_quality(sums: Sums) -> Values:
    """Segmentation quality, the mean IoU of the matches."""
    return ratio(sums["matched_iou"], sums["matched"])


def panoptic_quality(sums: Sums) -> Values:
    """Panoptic quality, SQ times RQ; 0 without a match, where SQ is undefined."""
    return ratio(sums["matched_iou"], (sums["predicted"] + sums["objects"]) / 2)


def curve(sums: Sums, suffix: str = "") -> tuple[Values, Values]:
    """Object recall and object precision at every threshold, the last axis."""
    found, objects = sums[f"curve_found{suffix}"], sums[f"objects{suffix}"][..., None]
    return ratio(found, objects), ratio(sums[f"curve_precise{suffix}"], sums[f"curve_predicted{suffix}"])


def f1_max(sums: Sums, suffix: str = "") -> Values:
    """Largest object F1 over 49 thresholds, of those at which it is defined."""
    recalls, precisions = curve(sums, suffix)
    scores = harmonic_mean(precisions, recalls)
    best = np.where(np.isnan(scores), -1.0, scores).max(axis=-1)
    return np.where(best < 0, np.nan, best)


def average_precision(sums: Sums) -> Values:
    """Average precision of objects over 49 thresholds.

    It is the sum over thresholds of (rise in recall) x (largest precision at that recall or more). At a
    threshold where nothing is predicted there is no precision; it counts as 0.
    """
    recalls, precisions = curve(sums)
    order = np.argsort(recalls, axis=-1, kind="stable")
    recalls = np.take_along_axis(recalls, order, axis=-1)
    precisions = np.take_along_axis(np.nan_to_num(precisions), order, axis=-1)
    best = np.maximum.accumulate(precisions[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((np.diff(recalls, axis=-1, prepend=0.0) * best).sum(axis=-1))


def balanced(si_values: Values, n_objects: Values, n_false: Values) -> Values:
    """Mean over true and false objects alike, a false one scoring 0; the SI value without false ones."""
    share = ratio(n_objects, n_objects + n_false)
    return np.where(n_objects == 0, share, si_values * share)


def _small(function: Callable[[Sums, str], Values]) -> Callable[[Sums], Values]:
    """Return the same over objects below 1 % of the image, and predicted ones below 1 %."""

    def of_small(sums: Sums) -> Values:
        return function(sums, "_small")

    first_line = (function.__doc__ or "").partition("\n")[0].rstrip(".")
    of_small.__doc__ = f"{first_line}; those below 1 % of the image only."
    return of_small


# computed from sums over images, so they have no size-invariant form
_objects = partial(Family, kind="objects", size_invariant=False)
_balanced = partial(Family, direction="up", function=balanced, kind="balanced", size_invariant=False)
# balanced metric -> the family whose size-invariant binary form it starts from
BALANCED = {f"bsi_{family}_binary": family for family in ("iou", "dice", "f")}

OBJECT_FAMILIES = (
    _objects("n_predicted", "Predicted objects", "none", mean_count("predicted")),
    _objects("n_false", "False objects", "down", mean_count("false")),
    _objects("n_found", "Found objects", "up", mean_count("found")),
    _balanced("bsi_iou_binary", "BSI-IoU binary"),
    _balanced("bsi_dice_binary", "BSI-Dice binary"),
    _balanced("bsi_f_binary", "BSI-F binary"),
    _objects("object_recall", "Object recall", "up", recall),
    _objects("object_precision", "Object precision", "up", precision),
    _objects("object_f1", "Object F1", "up", f1),
    _objects("object_recall_small", "Object recall small", "up", _small(recall)),
    _objects("object_precision_small", "Object precision small", "up", _small(precision)),
    _objects("object_f1_small", "Object F1 small", "up", _small(f1)),
    _objects("false_objects", "False objects per image", "down", false_objects),
    _objects("false_area", "False area", "down", false_area),
    _objects("pq", "PQ", "up", panoptic_quality),
    _objects("sq", "SQ", "up", segmentation_quality),
    _objects("rq", "RQ", "up", recognition_quality),
    _objects("object_f1_max", "Object F1 max", "up", f1_max, on_request=True),
    _objects("object_f1_max_small", "Object F1 max small", "up", _small(f1_max), on_request=True),
    _objects("object_ap", "Object AP", "up", average_precision, on_request=True),
    _objects("pd", "Pd", "up", detection_rate, detections=True, symbol="P_d"),
    _objects("fa", "Fa", "down", false_alarm_area, detections=True, symbol="F_a"),
    _objects("niou", "nIoU", "up", niou, detections=True),
    _objects("iou_total", "IoU total", "up", iou_total, detections=True),
)
