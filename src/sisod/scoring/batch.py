"""Statistics of images -> curves -> scores."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sisod.scoring import kernel
from sisod.scoring.arrays import Values
from sisod.scoring.counting.histograms import ADAPTIVE, BINARY, LEVELS, Histogram
from sisod.scoring.counting.object_counts import classify_objects, count_objects, predicted_columns
from sisod.scoring.counting.objects import PredictedObjects
from sisod.scoring.families.counts import confusion_counts
from sisod.scoring.families.family import Family
from sisod.scoring.families.objects import BALANCED
from sisod.scoring.metrics import FAMILIES, METRICS
from sisod.scoring.partition import Partition
from sisod.scoring.scores import INVERTED_AUC, Columns, Scores, object_geometry
from sisod.scoring.size_invariant import separable

_OBJECT_FAMILIES = ("f", "iou", "recall", "auc")  # columns of the object table
_SCALARS = slice(kernel.VALUES.index("mae"), kernel.VALUES.index("n_predicted"))  # without a curve


@dataclass(frozen=True, eq=False)
class ImageStatistics:
    """Statistics of the pixels of one image, all that its scores need.

    Attributes:
        histogram: counts and sums of errors.
        partition: the frames.
        predicted: the predicted objects; None if nothing needs them.
        looks_binary: an integer prediction with maximum 1.
        n_tiny: number of frames below the protocol's least area.
        n_left_out: number of components without a frame.
        pixel_values: metric key -> value, for the metrics that are computed from pixels.
        frame_values: column of the object table -> a value per frame, for metrics of the user.
    """

    histogram: Histogram
    partition: Partition
    predicted: PredictedObjects | None
    looks_binary: bool
    n_tiny: int = 0
    n_left_out: int = 0
    pixel_values: dict[str, float] = field(default_factory=dict)
    frame_values: dict[str, Values] = field(default_factory=dict)


def score_statistics(images: Sequence[ImageStatistics], keys: tuple[str, ...], first: int) -> Scores:
    """Return the scores of a batch.

    Args:
        images: the statistics of each image.
        keys: the metrics.
        first: the threshold at which size-invariant curves begin.
    """
    families = _families(keys)
    # those with a curve; the separable one comes last
    curved = sorted((row for row in families if row.kind == "curve"), key=lambda row: row.separable)
    names = tuple(family.key for family in curved)
    measured = [_image_curves(image, families, first) for image in images]
    plain, si = (
        np.array([[curves[f"{start}{name}"] for name in names] for curves, _ in measured])
        for start in ("", "si_")
    )
    partitions = [image.partition for image in images]
    objects = _frame_columns(images, [frames for _, frames in measured])
    counts: dict[str, Values] = {}
    table: Columns = {}
    predicted = [image.predicted for image in images if image.predicted is not None]
    if predicted:  # of all images, or of none
        histograms = [image.histogram for image in images]
        recalls = np.concatenate([frames["recall_binary"] for _, frames in measured])
        errors = classify_objects(predicted, [len(frames) for frames in partitions], recalls)
        objects["error"] = errors
        objects["missed_pixels"] = np.concatenate([image.missed_pixels for image in predicted])
        counts = count_objects(predicted, partitions, recalls, errors, histograms)
        table = predicted_columns(predicted, [frames.shape for frames in partitions])
    auc = np.array([curves["auc"] for curves, _ in measured])
    columns = _form_columns(names, plain, si, partitions, first)
    for key in keys:
        family = METRICS[key].family
        if family.kind in ("pixels", "custom"):
            columns[key] = np.array([image.pixel_values[key] for image in images])
        elif family.kind == "objects":
            columns[key] = family.function(counts)
        elif family.kind == "balanced":
            si_values = columns[f"si_{BALANCED[key]}_binary"]
            columns[key] = family.function(si_values, counts["objects"], counts["false"])
        elif family.kind != "curve" or key == "si_f_max_frame":
            columns[key] = np.array([curves[key] for curves, _ in measured])
    kept = np.concatenate([plain[:, :, :LEVELS], si[:, :, :LEVELS]], axis=1)
    kept[:, len(names) :, :first] = np.nan
    return Scores(
        keys=keys,
        values=np.stack([columns[key] for key in keys], axis=1),
        curve_names=(*names, *(f"si_{name}" for name in names)),
        curves=kept,
        objects=objects,
        predicted=table,
        object_counts=counts,
        shapes=np.array([frames.shape for frames in partitions]),
        n_objects=np.array([len(frames) for frames in partitions]),
        alphas=np.array([frames.alpha for frames in partitions]),
        looks_binary=np.array([image.looks_binary for image in images]),
        looks_inverted=auc < INVERTED_AUC,
        n_tiny=np.array([image.n_tiny for image in images]),
        n_left_out=np.array([image.n_left_out for image in images]),
    )


def score_image(image: ImageStatistics, keys: tuple[str, ...], first: int) -> list[float]:
    """Return the values of one image: those of `score_statistics`, and nothing else."""
    columns = _kernel_columns(keys)
    if kernel.engine() == "python" or columns is None:
        values: list[float] = score_statistics([image], keys, first).values[0].tolist()
        return values
    found: list[float] = _kernel_values(image, first).values.tolist()
    if not image.pixel_values:
        return [found[column] for column in columns]
    return [
        image.pixel_values[key] if column < 0 else found[column]
        for key, column in zip(keys, columns, strict=True)
    ]


def _kernel_values(image: ImageStatistics, first: int) -> kernel.ImageValues:
    pixels, frames, objects = image.histogram, image.partition, image.predicted
    arrays = (
        *(pixels.counts, pixels.cuts, pixels.absolute, pixels.squared),
        *(frames.areas, frames.frame_areas),
        *(kernel.NO_OBJECTS if objects is None else (objects.areas, objects.salient, objects.iou)),
    )
    return kernel.values(arrays, first, frames.background_area, frames.alpha_terms)


@functools.lru_cache
def _kernel_columns(keys: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the column of each key in `kernel.VALUES`, -1 for pixels; None if one is neither."""
    columns = []
    for key in keys:
        name = key.removesuffix("_image")  # of one image, the same as the maximum
        if METRICS[key].family.kind in ("pixels", "custom"):
            columns.append(-1)
        elif name in kernel.VALUES:
            columns.append(kernel.VALUES.index(name))
        else:
            return None
    return tuple(columns)


@functools.lru_cache
def _families(keys: tuple[str, ...]) -> tuple[Family, ...]:
    """Return the families to compute: those of the keys and those in the object table."""
    wanted = {METRICS[key].family.key for key in keys}.union(_OBJECT_FAMILIES)
    wanted.update(BALANCED[key] for key in keys if key in BALANCED)
    return tuple(family for family in FAMILIES if family.key in wanted)


def _image_curves(
    image: ImageStatistics, families: Sequence[Family], first: int
) -> tuple[dict[str, Any], dict[str, Values]]:
    """Return curves and values of one image by key, and columns of the object table.

    Of a family with a curve there are the values at every column of the histogram, plain and, with
    `si_` before the key, size-invariant.
    """
    histogram, partition = image.histogram, image.partition
    curves: dict[str, Any] = {}
    frames: dict[str, Values] = {}
    wanted = [family for family in families if family.kind in ("error", "curve", "scalar")]
    in_kernel = (*kernel.CURVES, *kernel.VALUES[_SCALARS])
    if kernel.engine() == "native" and all(family.key in in_kernel for family in wanted):
        found = _kernel_values(image, first)
        curves |= zip(kernel.CURVES, found.plain, strict=True)
        curves |= zip((f"si_{key}" for key in kernel.CURVES), found.si, strict=True)
        curves |= zip(kernel.VALUES[_SCALARS], found.values[_SCALARS], strict=True)
        frames |= zip(kernel.FRAME_VALUES, found.frames[1:].T, strict=True)
        return curves, frames
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = confusion_counts(histogram.above, histogram.totals)
        for family in wanted:
            # rows are the image, its frames, and the union of the frames
            rows = family.function(histogram if family.kind == "error" else counts)
            if family.separable:
                curves[family.key] = rows[0] / partition.size
                curves[f"si_{family.key}"] = separable(rows, partition)
                continue
            of_frames = rows[1:-1]
            curves[family.key], curves[f"si_{family.key}"] = rows[0], _frame_mean(of_frames)
            if family.key == "f":
                frames["f_mean"] = of_frames[:, first:LEVELS].mean(axis=1)
                frames["f_max"] = of_frames[:, first:LEVELS].max(axis=1)
            elif family.key in ("iou", "recall"):
                frames[f"{family.key}_binary"] = of_frames[:, BINARY]
            elif family.key == "auc":
                frames["auc"] = of_frames
        curves["si_f_max_frame"] = _frame_mean(frames["f_max"])
    return curves, frames


def _frame_mean(values: Values) -> Values:
    """Return the mean over the frames, axis 0, where the value is defined."""
    defined = ~np.isnan(values)
    # one after the other: the order of NumPy's sum depends on the number of columns
    total = np.cumsum(np.where(defined, values, 0.0), axis=0)[-1:].sum(axis=0)
    return np.asarray(total / defined.sum(axis=0))


def _form_columns(
    names: Sequence[str], plain: Values, si: Values, partitions: Sequence[Partition], first: int
) -> dict[str, Values]:
    """Return metric key -> a value per image, for every form of every curve."""
    columns = {}
    unframed = np.array([len(partition) == 0 for partition in partitions])
    for start, curves in (("", plain), ("si_", si)):
        thresholds = curves[:, :, first if start else 0 : LEVELS]
        means, maxima = thresholds.mean(axis=2), thresholds.max(axis=2)
        if start and unframed.any():  # the defined values are the plain ones, over all thresholds
            means[unframed] = curves[unframed, :, :LEVELS].mean(axis=2)
            maxima[unframed] = curves[unframed, :, :LEVELS].max(axis=2)
        for index, name in enumerate(names):
            columns[f"{start}{name}_mean"] = means[:, index]
            columns[f"{start}{name}_max"] = maxima[:, index]
            columns[f"{start}{name}_adaptive"] = curves[:, index, ADAPTIVE]
            columns[f"{start}{name}_binary"] = curves[:, index, BINARY]
        columns[f"{start}f_max_image"] = columns[f"{start}f_max"]  # of one image they are the same
    return columns


def _frame_columns(images: Sequence[ImageStatistics], frames: Sequence[dict[str, Values]]) -> Columns:
    """Return the columns of the object table that do not depend on predicted objects."""
    partitions = [image.partition for image in images]
    n_objects = [len(partition) for partition in partitions]
    boxes = np.concatenate([partition.boxes for partition in partitions])
    height, width = np.repeat([partition.shape for partition in partitions], n_objects, axis=0).T
    areas = np.concatenate([partition.areas for partition in partitions])
    frame_areas = np.concatenate([partition.frame_areas for partition in partitions])
    absolute = np.concatenate([image.histogram.absolute[1:-1] for image in images])
    scores = ("f_mean", "f_max", "auc", "iou_binary", "recall_binary")
    return {
        **object_geometry(boxes, areas, frame_areas, height, width),
        "mae": absolute / frame_areas,
        **{column: np.concatenate([image[column] for image in frames]) for column in scores},
        **{
            key: np.concatenate([image.frame_values[key] for image in images])
            for key in images[0].frame_values
        },
    }
