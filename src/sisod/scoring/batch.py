"""Statistics of a batch of images -> curves -> scores: every step once, for all images together."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sisod.scoring import kernel
from sisod.scoring.arrays import Mask, Values
from sisod.scoring.counting.histograms import ADAPTIVE, BINARY, COLUMNS, LEVELS, Histogram
from sisod.scoring.counting.object_counts import classify_objects, count_objects, predicted_columns
from sisod.scoring.counting.objects import PredictedObjects
from sisod.scoring.families.counts import confusion_counts
from sisod.scoring.families.family import Family
from sisod.scoring.families.objects import BALANCED
from sisod.scoring.metrics import FAMILIES, METRICS
from sisod.scoring.partition import Partition
from sisod.scoring.scores import INVERTED_AUC, Columns, Scores, object_geometry
from sisod.scoring.size_invariant import separable

_ROWS_AT_ONCE = 48  # rows of a histogram: the arrays of all families together fit in the cache
_OBJECT_FAMILIES = ("f", "iou", "recall", "auc")  # columns of the object table
_FORMS = ("mean", "max", "adaptive", "binary")  # of a curve
_NO_OBJECTS = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)


@dataclass(frozen=True, eq=False)
class ImageStatistics:
    """Statistics of the pixels of one image, all that its scores need.

    Attributes:
        histogram: counts and sums of errors.
        partition: the frames.
        pixel_values: metric key -> value, for the metrics that are computed from pixels.
        frame_values: column of the object table -> a value per frame, for metrics of the user.
        predicted: the predicted objects; None if nothing needs them.
        looks_binary: an integer prediction with maximum 1.
        n_tiny: number of frames below the protocol's least area.
        n_left_out: number of components without a frame.
    """

    histogram: Histogram
    partition: Partition
    pixel_values: dict[str, float]
    frame_values: dict[str, Values]
    predicted: PredictedObjects | None
    looks_binary: bool
    n_tiny: int
    n_left_out: int


def score_statistics(images: Sequence[ImageStatistics], keys: tuple[str, ...], first: int) -> Scores:
    """Return the scores of a batch.

    Args:
        images: the statistics of each image.
        keys: the metrics.
        first: the threshold at which size-invariant curves begin.
    """
    batch = _batch_curves(images, _families(keys), first)
    partitions = [image.partition for image in images]
    objects = _frame_columns(images, batch)
    counts: dict[str, Values] = {}
    table: Columns = {}
    predicted = [image.predicted for image in images if image.predicted is not None]
    if predicted:  # of all images, or of none
        histograms, recalls = [image.histogram for image in images], batch.frames["recall_binary"]
        errors = classify_objects(predicted, [len(frames) for frames in partitions], recalls)
        objects["error"] = errors
        objects["missed_pixels"] = np.concatenate([image.missed_pixels for image in predicted])
        counts = count_objects(predicted, partitions, recalls, errors, histograms)
        table = predicted_columns(predicted, [frames.shape for frames in partitions])
    return Scores(
        keys=keys,
        values=_values(images, batch, keys, first, counts),
        curve_names=(*batch.names, *(f"si_{name}" for name in batch.names)),
        curves=_kept_curves(batch, first),
        objects=objects,
        predicted=table,
        object_counts=counts,
        shapes=np.array([frames.shape for frames in partitions]),
        n_objects=np.array([len(frames) for frames in partitions]),
        alphas=np.array([frames.alpha for frames in partitions]),
        looks_binary=np.array([image.looks_binary for image in images]),
        looks_inverted=batch.scalars["auc"] < INVERTED_AUC,
        n_tiny=np.array([image.n_tiny for image in images]),
        n_left_out=np.array([image.n_left_out for image in images]),
    )


def score_image(image: ImageStatistics, keys: tuple[str, ...], first: int) -> list[float]:
    """Return the values of one image: those of `score_statistics`, and nothing else."""
    columns = _kernel_columns(keys)
    if kernel.engine() == "python" or columns is None:
        values: list[float] = score_statistics([image], keys, first).values[0].tolist()
        return values
    histogram, partition, predicted = image.histogram, image.partition, image.predicted
    found: list[float] = kernel.values(
        (histogram.counts, histogram.cuts, histogram.absolute, histogram.squared),
        (partition.areas, partition.frame_areas),
        _NO_OBJECTS if predicted is None else (predicted.areas, predicted.salient, predicted.iou),
        partition.background_area,
        partition.alpha_terms,
        first,
    ).tolist()
    return [
        image.pixel_values[key] if column < 0 else found[column]
        for key, column in zip(keys, columns, strict=True)
    ]


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


@dataclass(frozen=True, eq=False)
class _BatchCurves:
    """Curves and values from the counts of a batch.

    Attributes:
        names: families with a curve.
        plain: images x names x columns of a histogram.
        si: the same, size-invariant.
        frames: column of the object table -> one value per frame, image after image.
        scalars: key of a metric without a curve -> one value per image.
    """

    names: tuple[str, ...]
    plain: Values
    si: Values
    frames: dict[str, Values]
    scalars: dict[str, Values]


def _batch_curves(
    images: Sequence[ImageStatistics], families: Sequence[Family], first: int
) -> _BatchCurves:
    composites = [family for family in families if family.kind == "curve" and not family.separable]
    single = [family for family in families if family.kind == "scalar"]
    errors = [family for family in families if family.kind == "error"]
    summed = [family for family in families if family.kind == "curve" and family.separable]
    stack = _stack(images)
    if kernel.engine() == "native" and {family.key for family in composites} <= set(kernel.CURVES):
        plain, si, per_row = _kernel_composites(images, composites, first)
    else:
        plain, si, per_row = _composites(images, stack, composites, single, first)
    plain_means, si_means = _separables(images, errors, summed)
    frames = {key: values[~stack.is_image] for key, values in per_row.items()}
    scalars = {"si_f_max_frame": stack.means(frames["f_max"])}
    for family in single:
        scalars[family.key] = per_row[family.key][stack.is_image]
        scalars[f"si_{family.key}"] = stack.means(frames[family.key])
    for column, family in enumerate(errors):
        scalars[family.key], scalars[f"si_{family.key}"] = plain_means[:, column], si_means[:, column]
    shape = (len(images), len(summed), COLUMNS)
    return _BatchCurves(
        names=tuple(family.key for family in composites + summed),
        plain=np.concatenate([plain, plain_means[:, len(errors) :].reshape(shape)], axis=1),
        si=np.concatenate([si, si_means[:, len(errors) :].reshape(shape)], axis=1),
        frames=frames,
        scalars=scalars,
    )


@dataclass(frozen=True, eq=False)
class _Stack:
    """The rows of a batch: of each image one of its own, then one for each frame."""

    owner: NDArray[np.intp]
    is_image: Mask

    def means(self, values: Values) -> Values:
        """Return each image's mean over the frames where the value is defined."""
        defined = ~np.isnan(values)
        owner, n_images = self.owner[~self.is_image][defined], self.owner[-1] + 1
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.bincount(owner, values[defined], n_images) / np.bincount(owner, minlength=n_images)
            )


def _stack(images: Sequence[ImageStatistics]) -> _Stack:
    n_rows = [len(image.partition) + 1 for image in images]
    is_image = np.zeros(sum(n_rows), dtype=np.bool_)
    is_image[np.cumsum([0, *n_rows[:-1]])] = True
    return _Stack(owner=np.repeat(np.arange(len(images)), n_rows), is_image=is_image)


def _kernel_composites(
    images: Sequence[ImageStatistics], curved: Sequence[Family], first: int
) -> tuple[Values, Values, dict[str, Values]]:
    """Return what `_composites` returns, computed by the kernel."""
    parts = [kernel.curves(image.histogram.counts[:-1], image.histogram.cuts, first) for image in images]
    chosen = [kernel.CURVES.index(family.key) for family in curved]
    plain, si = (np.stack([part[kind] for part in parts])[:, chosen] for kind in (0, 1))
    columns = np.concatenate([part[2] for part in parts]).T
    return plain, si, dict(zip(kernel.FRAME_VALUES, columns, strict=True))


def _composites(
    images: Sequence[ImageStatistics],
    stack: _Stack,
    curved: Sequence[Family],
    single: Sequence[Family],
    first: int,
) -> tuple[Values, Values, dict[str, Values]]:
    """Return the curves of the images, their means over frames, and the values kept of every row."""
    above = np.concatenate([image.histogram.above[:-1] for image in images])
    totals = np.concatenate([image.histogram.totals[:-1] for image in images])
    index = {family.key: row for row, family in enumerate(curved)}
    n_images, n_rows = int(stack.owner[-1]) + 1, len(stack.owner)
    plain = np.empty((n_images, len(curved), COLUMNS))
    total, n_defined = np.zeros_like(plain), np.zeros((n_images, len(curved), 1))
    columns = ("f_mean", "f_max", "iou_binary", "recall_binary", *(family.key for family in single))
    per_row = {column: np.empty(n_rows) for column in columns}
    with np.errstate(divide="ignore", invalid="ignore"):
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            owner, is_image = stack.owner[rows], stack.is_image[rows]
            counts = confusion_counts(above[rows], totals[rows], is_image)
            for family in single:
                per_row[family.key][rows] = family.function(counts)
            values = np.stack([family.function(counts) for family in curved], axis=1)
            thresholds = values[:, index["f"], first:LEVELS]
            per_row["f_mean"][rows] = thresholds.mean(axis=1)
            per_row["f_max"][rows] = thresholds.max(axis=1)
            for key in ("iou", "recall"):
                per_row[f"{key}_binary"][rows] = values[:, index[key], BINARY]
            plain[owner[is_image]] = values[is_image]
            undefined = np.isnan(values[:, :, :1])  # a row is undefined at all thresholds or at none
            if undefined.any():
                values[undefined[:, :, 0]] = 0.0
            # row by row, in order: the same sums whatever else is in the batch
            for row in np.flatnonzero(~is_image).tolist():
                total[owner[row]] += values[row]
                n_defined[owner[row]] += ~undefined[row]
        return plain, total / n_defined, per_row


def _separables(
    images: Sequence[ImageStatistics], errors: Sequence[Family], summed: Sequence[Family]
) -> tuple[Values, Values]:
    """Return plain and size-invariant means over pixels: a column per error, then those of curves."""
    plain, si = [], []
    for image in images:
        counts = image.histogram
        sums = [family.function(counts)[:, None] for family in errors]
        sums += [family.function(confusion_counts(counts.above, counts.totals)) for family in summed]
        columns = np.concatenate(sums, axis=1) if sums else np.empty((len(counts.totals), 0))
        plain.append(columns[0] / image.partition.background.size)
        si.append(separable(columns, image.partition))
    return np.stack(plain), np.stack(si)


def _values(
    images: Sequence[ImageStatistics],
    batch: _BatchCurves,
    keys: tuple[str, ...],
    first: int,
    counts: dict[str, Values],
) -> Values:
    """Return images x keys."""
    si = _all_forms(batch.si, first)
    unframed = [index for index, image in enumerate(images) if len(image.partition) == 0]
    if unframed:  # the defined size-invariant values are the plain ones, over all thresholds
        si[unframed] = _all_forms(batch.si[unframed], 0)
    forms = np.concatenate([_all_forms(batch.plain, 0), si], axis=1)
    values = np.empty((len(images), len(keys)))
    form_columns, others = _form_columns(keys, batch.names)
    values[:, list(form_columns)] = forms[:, list(form_columns.values())]
    for column in others:
        key, family = keys[column], METRICS[keys[column]].family
        if family.kind in ("pixels", "custom"):
            values[:, column] = [image.pixel_values[key] for image in images]
        elif family.kind == "objects":
            values[:, column] = family.function(counts)
        elif family.kind == "balanced":
            curve = batch.names.index(BALANCED[key])
            si_values = batch.si[:, curve, BINARY]
            values[:, column] = family.function(si_values, counts["objects"], counts["false"])
        else:
            values[:, column] = batch.scalars[key]
    return values


def _all_forms(curves: Values, first: int) -> Values:
    """Return every form of every curve, images x (forms, names)."""
    thresholds = curves[:, :, first:LEVELS]
    forms = thresholds.mean(axis=2), thresholds.max(axis=2), curves[:, :, ADAPTIVE], curves[:, :, BINARY]
    return np.concatenate(forms, axis=1)


@functools.lru_cache
def _form_columns(keys: tuple[str, ...], names: tuple[str, ...]) -> tuple[dict[int, int], list[int]]:
    """Return the column of `_all_forms` for each key, and the keys without a curve, by their index."""
    columns, others = {}, []
    for index, key in enumerate(keys):
        metric = METRICS[key]
        form = metric.form.removesuffix("_image")  # of one image, the same as the maximum
        if form in _FORMS:
            block = _FORMS.index(form) + len(_FORMS) * metric.size_invariant
            columns[index] = block * len(names) + names.index(metric.family.key)
        else:
            others.append(index)
    return columns, others


def _kept_curves(batch: _BatchCurves, first: int) -> Values:
    """Return the curves at the 256 thresholds, plain then size-invariant."""
    curves = np.concatenate([batch.plain[:, :, :LEVELS], batch.si[:, :, :LEVELS]], axis=1)
    curves[:, len(batch.names) :, :first] = np.nan
    return curves


def _frame_columns(images: Sequence[ImageStatistics], batch: _BatchCurves) -> Columns:
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
        **{column: batch.frames[column] for column in scores},
        **{
            key: np.concatenate([image.frame_values[key] for image in images])
            for key in images[0].frame_values
        },
    }
